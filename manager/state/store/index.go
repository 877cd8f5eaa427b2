package store

import (
	"fmt"
	"slices"
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
	indexRelease      = "release"
	indexService      = "service"
	indexNode         = "node"
	indexSlot         = "slot"
	indexDesiredState = "desired-state"
	indexState        = "state"
	indexRole         = "role"
	indexMembership   = "membership"
	indexPort         = "port"
)

// indexValues is memdb's name of what keeps the indexes that are not by ID.
const indexValues = "values"

// index finds the objects of a table by values of theirs.
type index[T interface{ GetID() string }] struct {
	name   string
	values func(T) []string
}

// kept tells whether memdb keeps the index. What is selected by runtime is nearly everything,
// so a look at each object costs less than an entry for each.
func (x *index[T]) kept() bool { return x.name != indexRuntime }

// matches tells whether an object has the value, or a value that begins with it.
func (x *index[T]) matches(object T, value string, prefix bool) bool {
	_, ok := x.find(object, value, prefix)
	return ok
}

// match returns the value of an object that is looked for.
func (x *index[T]) match(object T, value string, prefix bool) string {
	v, _ := x.find(object, value, prefix)
	return v
}

func (x *index[T]) find(object T, value string, prefix bool) (v string, ok bool) {
	for _, v := range x.values(object) {
		if v == value || prefix && strings.HasPrefix(v, value) {
			return v, true
		}
	}
	return "", false
}

// valueIndex is memdb's MultiIndexer and PrefixIndexer for all kept indexes of a table but the
// one of IDs. They are one index of memdb, since each that a table has costs every transaction
// on the table, also one that puts nothing into it. A key is the place of the index in the
// list, then the value, closed by a zero byte; a value has none in it, so that no value is the
// prefix of another.
type valueIndex[T interface{ GetID() string }] []*index[T]

// FromObject gives memdb the keys of an object.
func (l valueIndex[T]) FromObject(raw any) (bool, [][]byte, error) {
	object, ok := raw.(T)
	if !ok {
		return false, nil, fmt.Errorf("index %s: object of type %T", indexValues, raw)
	}
	id := object.GetID()
	var keys [][]byte
	for at, x := range l {
		for _, v := range x.values(object) {
			key := make([]byte, 0, 1+len(v)+1+len(id)+1) // memdb appends the ID's key
			keys = append(keys, append(appendKey(append(key, byte(at)), v), 0))
		}
	}
	return len(keys) > 0, keys, nil
}

// FromArgs gives memdb the key of a value that is looked for, by the name of its index.
func (l valueIndex[T]) FromArgs(args ...any) ([]byte, error) {
	key, err := l.PrefixFromArgs(args...)
	if err != nil {
		return nil, err
	}
	return append(key, 0), nil
}

// PrefixFromArgs gives memdb the beginning of the keys that are looked for.
func (l valueIndex[T]) PrefixFromArgs(args ...any) ([]byte, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("index %s: takes a name and a value, got %d", indexValues, len(args))
	}
	name, ok := args[0].(string)
	at := slices.IndexFunc(l, func(x *index[T]) bool { return x.name == name })
	if !ok || at < 0 {
		return nil, fmt.Errorf("index %s: there is no %v", indexValues, args[0])
	}
	value, ok := args[1].(string)
	if !ok {
		return nil, fmt.Errorf("index %s: takes a string, got %T", name, args[1])
	}
	return appendKey(append(make([]byte, 0, 1+len(value)+1), byte(at)), value), nil
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

// idIndex is the primary index: memdb wants one key per object there. It is memdb's
// SingleIndexer and PrefixIndexer; a key is closed as those of values are.
type idIndex[T interface{ GetID() string }] struct{}

// FromObject gives memdb the key of an object.
func (idIndex[T]) FromObject(raw any) (bool, []byte, error) {
	object, ok := raw.(T)
	if !ok {
		return false, nil, fmt.Errorf("index id: object of type %T", raw)
	}
	id := object.GetID()
	return id != "", append(appendKey(make([]byte, 0, len(id)+1), id), 0), nil
}

// FromArgs gives memdb the key of an ID that is looked for.
func (x idIndex[T]) FromArgs(args ...any) ([]byte, error) {
	key, err := x.PrefixFromArgs(args...)
	if err != nil {
		return nil, err
	}
	return append(key, 0), nil
}

// PrefixFromArgs gives memdb the beginning of the keys that are looked for.
func (idIndex[T]) PrefixFromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("index id: takes one value, got %d", len(args))
	}
	id, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("index id: takes a string, got %T", args[0])
	}
	return appendKey(make([]byte, 0, len(id)+1), id), nil
}
