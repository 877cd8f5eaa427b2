package object_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/release/driver/object"
)

// fakeStore is a store in memory that keeps the rules of secrets, which are the stricter ones.
type fakeStore struct {
	clock func() time.Time

	mu       sync.Mutex
	objects  map[string]object.Object // by lower-case name
	version  uint64
	ids      int
	writes   int
	data     int                         // objects whose data was given away
	on       func(ops []object.Op) error // before each write; an error ends it
	after    func(ops []object.Op) error // after each write that was done
	away     error
	maxBytes int // of the largest write
}

func newFake(clock func() time.Time) *fakeStore {
	return &fakeStore{clock: clock, objects: map[string]object.Object{}}
}

func copyObject(o object.Object) object.Object {
	o.Labels, o.Data = maps.Clone(o.Labels), bytes.Clone(o.Data)
	return o
}

func (s *fakeStore) Get(ctx context.Context, name string) (object.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return object.Object{}, s.away
	}
	o, ok := s.objects[strings.ToLower(name)]
	if !ok {
		return object.Object{}, errkind.New(errkind.NotFound, "not found").On("secret", name)
	}
	s.data++
	return copyObject(o), ctx.Err()
}

func (s *fakeStore) List(_ context.Context, labels map[string]string) iter.Seq2[object.Object, error] {
	return func(yield func(object.Object, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.away != nil {
			yield(object.Object{}, s.away)
			return
		}
		for _, o := range s.objects {
			match := true
			for key, value := range labels {
				have, ok := o.Labels[key]
				match = match && ok && have == value && value != ""
			}
			if o = copyObject(o); match {
				o.Data = nil
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

func (s *fakeStore) Write(_ context.Context, ops []object.Op) ([]object.Object, error) {
	s.mu.Lock()
	on, after := s.on, s.after
	s.mu.Unlock()
	if on != nil {
		if err := on(ops); err != nil {
			return nil, err
		}
	}
	left, err := s.write(ops)
	if err == nil && after != nil {
		err = after(ops)
	}
	return left, err
}

func (s *fakeStore) write(ops []object.Op) ([]object.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return nil, s.away
	}
	if err := s.check(ops); err != nil {
		return nil, err
	}
	before := maps.Clone(s.objects)
	s.version++
	left := make([]object.Object, len(ops))
	for i, op := range ops {
		var err error
		if left[i], err = s.do(copyObject(op.Object), op.Do); err != nil {
			s.objects = before
			return nil, err
		}
	}
	s.writes++
	return left, nil
}

func (s *fakeStore) check(ops []object.Op) error {
	size := 0
	for _, op := range ops {
		size += len(op.Name) + len(op.Data) + 60
		for key, value := range op.Labels {
			size += len(key) + len(value) + 8
		}
		if op.Do == object.Create && (len(op.Data) == 0 || len(op.Data) >= 512_000) {
			return errkind.Field("spec.data", "has %d bytes", len(op.Data))
		}
		if !regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,62}[a-zA-Z0-9])?$`).MatchString(op.Name) {
			return errkind.Field("spec.annotations.name", "%q is not a name", op.Name)
		}
		if op.ID != "" && !id.Valid(op.ID) {
			return errkind.Field("id", "%q is not an ID", op.ID)
		}
	}
	s.maxBytes = max(s.maxBytes, size)
	if len(ops) > 512 || size > 4<<20 {
		return errkind.New(errkind.Limit, "%d operations and %d bytes", len(ops), size)
	}
	return nil
}

func (s *fakeStore) find(wanted string) (string, object.Object) {
	for key, o := range s.objects {
		if o.ID == wanted {
			return key, o
		}
	}
	return "", object.Object{}
}

func (s *fakeStore) do(o object.Object, do object.Action) (object.Object, error) {
	fails := func(kind errkind.Kind) (object.Object, error) {
		return object.Object{}, errkind.New(kind, "%s", o.Name).On("secret", o.ID)
	}
	if do == object.Create {
		if o.ID == "" {
			s.ids++
			o.ID = fmt.Sprintf("id%023d", s.ids)
		}
		key := strings.ToLower(o.Name)
		if _, taken := s.objects[key]; taken {
			return fails(errkind.Exists)
		}
		if _, other := s.find(o.ID); other.ID != "" {
			return fails(errkind.Exists)
		}
		o.Version, o.Created = s.version, s.clock()
		s.objects[key] = o
		return copyObject(o), nil
	}
	key, old := s.find(o.ID)
	switch {
	case old.ID == "":
		return fails(errkind.NotFound)
	case (o.Version != 0 || do == object.SetLabels) && o.Version != old.Version:
		return fails(errkind.OutOfSequence)
	case do == object.Remove:
		delete(s.objects, key)
		return object.Object{}, nil
	case maps.Equal(old.Labels, o.Labels):
		return copyObject(old), nil // as a store does: nothing changed
	}
	old.Labels, old.Version = o.Labels, s.version
	s.objects[key] = old
	return copyObject(old), nil
}

// names gives the names of the objects there are, but for those given.
func (s *fakeStore) names(but map[string]bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name := range s.objects {
		if !but[name] {
			all = append(all, name)
		}
	}
	return all
}

// edit changes an object in place.
func (s *fakeStore) edit(t testing.TB, name string, change func(*object.Object)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[name]
	if !ok {
		t.Fatalf("%s is not there", name)
	}
	o = copyObject(o)
	change(&o)
	s.objects[name] = o
}

func (s *fakeStore) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

func (s *fakeStore) hook(on, after func(ops []object.Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.after = on, after
}
