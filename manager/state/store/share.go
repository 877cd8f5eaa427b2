package store

import (
	"bytes"
	"reflect"
)

// share makes what is equal in an object and the version before it one in memory: the history
// keeps every version, and most changes leave most of an object as it was. Neither is changed
// any more once it is stored; after is not stored yet.
func share[T object[T]](before, after T) {
	same(reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
}

// same tells whether two values of one type are equal, and lets the second one have the first
// one's memory where they are.
func same(a, b reflect.Value) bool {
	switch b.Kind() {
	case reflect.String:
		if a.String() != b.String() {
			return false
		}
		b.Set(a)
	case reflect.Pointer:
		return samePointer(a, b)
	case reflect.Interface: // one of several fields: a pointer to a struct
		switch {
		case a.IsNil() || b.IsNil():
			return a.IsNil() && b.IsNil()
		case a.Elem().Type() != b.Elem().Type() || a.Elem().IsNil() || b.Elem().IsNil():
			return false
		case !same(a.Elem().Elem(), b.Elem().Elem()):
			return false
		}
		b.Set(a)
	case reflect.Struct:
		all := true
		for i := range b.NumField() {
			if !same(a.Field(i), b.Field(i)) { // all of them: what follows may be equal
				all = false
			}
		}
		return all
	case reflect.Slice:
		return sameSlice(a, b)
	case reflect.Map:
		return sameMap(a, b)
	default: // numbers
		return a.Equal(b)
	}
	return true
}

func samePointer(a, b reflect.Value) bool {
	switch {
	case a.IsNil() || b.IsNil():
		return a.IsNil() && b.IsNil()
	case a.Pointer() == b.Pointer():
		return true
	case !same(a.Elem(), b.Elem()):
		return false
	}
	b.Set(a)
	return true
}

func sameSlice(a, b reflect.Value) bool {
	switch {
	case b.Len() == 0:
		return a.Len() == 0 // there is nothing to share
	case b.Type().Elem().Kind() == reflect.Uint8:
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			return false
		}
		b.Set(a)
		return true
	}
	all := a.Len() == b.Len()
	for i := range min(a.Len(), b.Len()) {
		if !same(a.Index(i), b.Index(i)) {
			all = false
		}
	}
	if all {
		b.Set(a)
	}
	return all
}

// sameMap shares a map as a whole, or nothing of it but what its values point to.
func sameMap(a, b reflect.Value) bool {
	if b.Len() == 0 {
		return a.Len() == 0
	}
	if before, ok := a.Interface().(map[string]string); ok {
		return sameText(before, b)
	}
	all := a.Len() == b.Len()
	for i := b.MapRange(); i.Next(); {
		was := a.MapIndex(i.Key())
		if !was.IsValid() || was.Kind() != reflect.Pointer || was.IsNil() || i.Value().IsNil() || !same(was.Elem(), i.Value().Elem()) {
			all = false
		}
	}
	if all {
		b.Set(a)
	}
	return all
}

func sameText(before map[string]string, b reflect.Value) bool {
	after, ok := b.Interface().(map[string]string)
	if !ok || len(before) != len(after) {
		return false
	}
	for key, value := range after {
		if was, ok := before[key]; !ok || was != value {
			return false
		}
	}
	b.Set(reflect.ValueOf(before))
	return true
}
