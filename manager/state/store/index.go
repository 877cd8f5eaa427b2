package store

import (
	"fmt"
	"strings"
)

// The indexes. A table has those that its kind can be found by.
const (
	indexID           = "id"
	indexName         = "name"
	indexRuntime      = "runtime"
	indexNetwork      = "network"
	indexSecret       = "secret"
	indexConfig       = "config"
	indexStack        = "stack"
	indexService      = "service"
	indexNode         = "node"
	indexSlot         = "slot"
	indexDesiredState = "desired-state"
	indexState        = "state"
	indexRole         = "role"
	indexMembership   = "membership"
	indexPort         = "port"
)

// index finds the objects of a table by values of theirs. It is memdb's MultiIndexer and
// PrefixIndexer; a value is closed by a zero byte, and has none in it, so that no value is the
// prefix of another.
type index[T any] struct {
	name   string
	values func(T) []string
}

// kept tells whether memdb keeps the index. What is selected by runtime is nearly everything,
// so a look at each object costs less than an entry for each.
func (x *index[T]) kept() bool { return x.name != indexRuntime }

// FromObject gives memdb the keys of an object.
func (x *index[T]) FromObject(raw any) (bool, [][]byte, error) {
	object, ok := raw.(T)
	if !ok {
		return false, nil, fmt.Errorf("index %s: object of type %T", x.name, raw)
	}
	values := x.values(object)
	keys := make([][]byte, len(values))
	for i, v := range values {
		keys[i] = append(appendKey(make([]byte, 0, len(v)+1), v), 0)
	}
	return len(keys) > 0, keys, nil
}

// FromArgs gives memdb the key of a value that is looked for.
func (x *index[T]) FromArgs(args ...any) ([]byte, error) {
	key, err := x.PrefixFromArgs(args...)
	if err != nil {
		return nil, err
	}
	return append(key, 0), nil
}

// PrefixFromArgs gives memdb the beginning of the keys that are looked for.
func (x *index[T]) PrefixFromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("index %s: takes one value, got %d", x.name, len(args))
	}
	value, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("index %s: takes a string, got %T", x.name, args[0])
	}
	return appendKey(make([]byte, 0, len(value)+1), value), nil
}

// appendKey appends a value to a key, without zero bytes and in the order of values: the bytes
// 0 and 1, which hardly any value has, become 1 1 and 1 2.
func appendKey(key []byte, value string) []byte {
	for {
		i := strings.IndexAny(value, "\x00\x01")
		if i < 0 {
			return append(key, value...)
		}
		key = append(append(key, value[:i]...), 1, value[i]+1)
		value = value[i+1:]
	}
}

// matches tells whether an object has the value, or a value that begins with it.
func (x *index[T]) matches(object T, value string, prefix bool) bool {
	for _, v := range x.values(object) {
		if v == value || prefix && strings.HasPrefix(v, value) {
			return true
		}
	}
	return false
}

// idIndex is the primary index: memdb wants one key per object there.
type idIndex[T interface{ GetID() string }] struct{ index[T] }

// FromObject gives memdb the key of an object.
func (x *idIndex[T]) FromObject(raw any) (bool, []byte, error) {
	object, ok := raw.(T)
	if !ok {
		return false, nil, fmt.Errorf("index id: object of type %T", raw)
	}
	id := object.GetID()
	return id != "", append(appendKey(make([]byte, 0, len(id)+1), id), 0), nil
}
