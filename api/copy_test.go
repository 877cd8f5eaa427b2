package api_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gogo/protobuf/proto"
	"github.com/gogo/protobuf/types"

	"holdfast/api"
	_ "holdfast/api/holdfast" // registers its messages
)

// TestCopy fills every message of both packages at random and checks that its copies are
// equal to it and have no memory in common with it.
func TestCopy(t *testing.T) {
	names := messageNames(t)
	if len(names) < 100 {
		t.Fatalf("only %d messages found", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			msg := proto.MessageType(name).Elem()
			f := filler{rand: rand.New(rand.NewPCG(1, 2))}
			for range 100 {
				original, dirty := reflect.New(msg), reflect.New(msg)
				f.fill(original.Elem(), nil, 0)
				f.fill(dirty.Elem(), nil, 0)

				checkCopy(t, original, original.MethodByName("Copy").Call(nil)[0])
				original.MethodByName("CopyInto").Call([]reflect.Value{dirty})
				checkCopy(t, original, dirty)
			}
			if !reflect.Zero(reflect.PointerTo(msg)).MethodByName("Copy").Call(nil)[0].IsNil() {
				t.Error("Copy of nil is not nil")
			}
		})
	}
}

func checkCopy(t *testing.T, original, copied reflect.Value) {
	t.Helper()
	if !reflect.DeepEqual(original.Interface(), copied.Interface()) {
		t.Fatalf("copy differs:\n%.1000s\n%.1000s", original.Interface(), copied.Interface())
	}
	if where := shared("m", original, copied); where != "" {
		t.Fatalf("%s is shared with the copy", where)
	}
}

// shared returns the place of a piece of memory that a and b, which are equal, have in
// common, or "".
func shared(where string, a, b reflect.Value) string {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() {
			return ""
		}
		if a.Pointer() == b.Pointer() {
			return where
		}
		return shared(where, a.Elem(), b.Elem())
	case reflect.Interface:
		if a.IsNil() {
			return ""
		}
		return shared(where, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if s := shared(where+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); s != "" {
				return s
			}
		}
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			return where
		}
		for i := range a.Len() {
			if s := shared(fmt.Sprintf("%s[%d]", where, i), a.Index(i), b.Index(i)); s != "" {
				return s
			}
		}
	case reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			return where
		}
		for _, k := range a.MapKeys() {
			if s := shared(fmt.Sprintf("%s[%v]", where, k), a.MapIndex(k), b.MapIndex(k)); s != "" {
				return s
			}
		}
	}
	return ""
}

// filler fills messages with random values, nil and empty ones among them.
type filler struct{ rand *rand.Rand }

const maxDepth = 7

// fill sets v; wrappers are those of the oneofs of the message that v is in.
func (f filler) fill(v reflect.Value, wrappers []any, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.rand.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(int32(f.rand.Uint32())))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.rand.Uint64() & (1<<v.Type().Bits() - 1))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.rand.IntN(1000)))
	case reflect.String:
		v.SetString(fmt.Sprint("s", f.rand.IntN(1000)))
	case reflect.Pointer:
		if depth < maxDepth && f.rand.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), nil, depth+1)
		}
	case reflect.Struct:
		if w, ok := v.Addr().Interface().(interface{ XXX_OneofWrappers() []any }); ok {
			wrappers = w.XXX_OneofWrappers()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "XXX_sizecache" { // no part of the value
				f.fill(v.Field(i), wrappers, depth)
			}
		}
	case reflect.Interface:
		f.oneof(v, wrappers, depth)
	case reflect.Slice:
		if n := f.rand.IntN(4) - 1; n >= 0 { // else nil
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				f.fill(v.Index(i), nil, depth+1)
			}
		}
	case reflect.Map:
		n := f.rand.IntN(4) - 1
		if n < 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, nil, depth+1)
			f.fill(value, nil, depth+1)
			v.SetMapIndex(key, value)
		}
	default:
		panic("a kind of field that no message had: " + v.Kind().String())
	}
}

func (f filler) oneof(v reflect.Value, wrappers []any, depth int) {
	var fit []reflect.Type
	for _, w := range wrappers {
		if t := reflect.TypeOf(w); t.Implements(v.Type()) {
			fit = append(fit, t)
		}
	}
	if i := f.rand.IntN(len(fit) + 1); i < len(fit) {
		v.Set(reflect.New(fit[i].Elem()))
		f.fill(v.Elem().Elem(), nil, depth+1)
	}
}

func BenchmarkCopy(b *testing.B) {
	service := &api.Service{
		ID:   "0123456789abcdefghijklmno",
		Meta: api.Meta{CreatedAt: types.TimestampNow(), UpdatedAt: types.TimestampNow()},
		Spec: api.ServiceSpec{
			Annotations: api.Annotations{Name: "web", Labels: map[string]string{"a": "b", "c": "d"}},
			Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
				Container: &api.ContainerSpec{Image: "nginx", Args: []string{"a", "b"}},
			}},
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		service.Copy()
	}
}
