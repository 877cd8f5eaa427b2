package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"holdfast/api"
)

// chooser is a message of which some fields exclude each other.
type chooser interface{ XXX_OneofWrappers() []any }

// filler makes objects with something in every field, at random.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", f.IntN(3)))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.Int64N(3))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(f.Uint64N(3))
	case reflect.Float64:
		v.SetFloat(f.Float64())
	case reflect.Pointer:
		if depth > 0 && f.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 3))
		for range f.IntN(3) {
			e := reflect.New(v.Type().Elem()).Elem()
			if e.Kind() == reflect.Pointer { // an element is never nil
				e.Set(reflect.New(e.Type().Elem()))
				f.fill(e.Elem(), depth-1)
			} else {
				f.fill(e, depth-1)
			}
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(3) {
			e := reflect.New(v.Type().Elem()).Elem()
			if e.Kind() == reflect.Pointer {
				e.Set(reflect.New(e.Type().Elem()))
				f.fill(e.Elem(), depth-1)
			} else {
				f.fill(e, depth-1)
			}
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", f.IntN(4))), e)
		}
	case reflect.Struct:
		f.fields(v, depth)
	}
}

func (f filler) fields(v reflect.Value, depth int) {
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "XXX_unrecognized" || name == "XXX_sizecache" {
			continue
		}
		if v.Field(i).Kind() != reflect.Interface {
			f.fill(v.Field(i), depth)
			continue
		}
		wrappers := v.Addr().Interface().(chooser).XXX_OneofWrappers()
		for _, at := range f.Perm(len(wrappers)) {
			w := reflect.New(reflect.TypeOf(wrappers[at]).Elem())
			if !w.Type().Implements(v.Field(i).Type()) {
				continue
			}
			if inner := w.Elem().Field(0); inner.Kind() == reflect.Pointer {
				inner.Set(reflect.New(inner.Type().Elem()))
				f.fill(inner.Elem(), depth-1)
			} else {
				f.fill(inner, depth-1)
			}
			v.Field(i).Set(w)
			break
		}
	}
}

// poke makes one field, somewhere, another at random.
func (f filler) poke(v reflect.Value) {
	for {
		switch {
		case v.Kind() == reflect.Struct && v.NumField() > 0:
			next := v.Field(f.IntN(v.NumField()))
			if next.Kind() == reflect.Interface && !next.IsNil() {
				next = next.Elem().Elem()
			}
			v = next
		case v.Kind() == reflect.Pointer && !v.IsNil() && f.IntN(5) > 0:
			v = v.Elem()
		case v.Kind() == reflect.Slice && v.Len() > 0 && f.IntN(5) > 0:
			v = v.Index(f.IntN(v.Len()))
		case v.Kind() == reflect.Interface:
			return
		default:
			f.fill(v, 3)
			return
		}
	}
}

// apart counts what is not one in memory in two equal values.
func apart(t *testing.T, path string, a, b reflect.Value) {
	switch b.Kind() {
	case reflect.Pointer:
		if a.Pointer() != b.Pointer() {
			t.Errorf("%s is not shared", path)
		}
	case reflect.Slice, reflect.Map:
		if b.Len() > 0 && a.Pointer() != b.Pointer() {
			t.Errorf("%s is not shared", path)
		}
	case reflect.Interface:
		if !b.IsNil() && a.Elem().Pointer() != b.Elem().Pointer() {
			t.Errorf("%s is not shared", path)
		}
	case reflect.Struct:
		for i := range b.NumField() {
			apart(t, path+"."+b.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	}
}

func checkShare[T object[T]](t *testing.T, f filler, blank func() T, table *Table[T]) {
	encode := func(o T) string {
		data, err := o.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for range 300 {
		before := blank()
		f.fill(reflect.ValueOf(before).Elem(), 6)
		equal, after, other := before.Copy(), before.Copy(), blank()
		for range 1 + f.IntN(3) {
			f.poke(reflect.ValueOf(after).Elem())
		}
		f.fill(reflect.ValueOf(other).Elem(), 6)
		was := encode(before)
		for _, o := range []T{equal, after, other, blank()} {
			want := encode(o)
			copied := o.Copy()
			share(before, o)
			if encode(o) != want || !o.Equal(copied) || encode(before) != was {
				t.Fatalf("%s: sharing changed\n%v\nto\n%v\nbefore it\n%v", table.noun, copied, o, before)
			}
		}
		apart(t, table.noun, reflect.ValueOf(before).Elem(), reflect.ValueOf(equal).Elem())
		if t.Failed() {
			t.FailNow()
		}
	}
}

// Sharing changes nothing that can be seen, and equal parts are one in memory after it.
func TestShare(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(1, 2))}
	checkShare(t, f, func() *api.Node { return &api.Node{} }, Nodes)
	checkShare(t, f, func() *api.Service { return &api.Service{} }, Services)
	checkShare(t, f, func() *api.Task { return &api.Task{} }, Tasks)
	checkShare(t, f, func() *api.Network { return &api.Network{} }, Networks)
	checkShare(t, f, func() *api.Cluster { return &api.Cluster{} }, Clusters)
	checkShare(t, f, func() *api.Secret { return &api.Secret{} }, Secrets)
	checkShare(t, f, func() *api.Config { return &api.Config{} }, Configs)
}

func BenchmarkShare(b *testing.B) {
	f := filler{rand.New(rand.NewPCG(1, 2))}
	before := &api.Service{}
	f.fill(reflect.ValueOf(before).Elem(), 3)
	after := before.Copy()
	after.Spec.Annotations.Name = "another"
	b.ReportAllocs()
	for b.Loop() {
		share(before, after)
	}
}
