package object_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
	"holdfast/release/drivertest"
)

// headObject makes the object of a head as a store gives it back.
func headObject(t testing.TB, r driver.Record) object.Object {
	t.Helper()
	p := object.Planner{Clock: drivertest.NewClock().Now, Random: strings.NewReader(strings.Repeat("random-bytes", 10))}
	plan, err := p.Create(r)
	if err != nil {
		t.Fatal(err)
	}
	o := plan.Last[0].Object
	o.ID, o.Version = "0000000000000000000000001", 7
	return o
}

func TestHeadRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := func(label string, limit int) string {
			return rapid.StringOfN(rapid.RuneFrom([]rune("aZ09.-_/ é日'\"=")), 1, limit, -1).Draw(rt, label)
		}
		r := driver.Record{
			Head: driver.Head{
				Key:  driver.Key{Namespace: strings.ReplaceAll(text("namespace", 40), "/", "x"), Name: text("name", 80), Revision: rapid.Int64Min(1).Draw(rt, "revision")},
				Kind: text("kind", 10), Status: rapid.SampledFrom(driver.Statuses()).Draw(rt, "status"),
				Overlap: rapid.Bool().Draw(rt, "overlap"),
				Labels:  rapid.MapOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab.=\n")), 1, 5, -1), rapid.StringN(0, 5, 20), 0, 4).Draw(rt, "labels"),
			},
			Body: []byte("body"),
		}
		for key, value := range r.Labels {
			if strings.Contains(value, "\x00") {
				r.Labels[key] = ""
			}
		}
		o := headObject(t, r)
		h, labels, err := object.DecodeHead(o)
		if err != nil {
			rt.Fatal(err)
		}
		if h.Key != r.Key || h.Kind != r.Kind || h.Status != r.Status || h.Overlap != r.Overlap ||
			!maps.Equal(h.Labels, r.Labels) || h.Version != 7 || h.Size != 4 || !maps.Equal(labels, o.Labels) {
			rt.Fatalf("got %+v of %+v", h, r)
		}
		if len(o.Name) > 64 {
			rt.Fatalf("the name %q has %d characters", o.Name, len(o.Name))
		}
	})
}

// Each label that is gone or wrong is found, and the error names it.
func TestHeadCorrupt(t *testing.T) {
	whole := headObject(t, drivertest.Record(drivertest.Key("web", 1), driver.StatusDeployed, "x"))
	for label := range whole.Labels {
		for name, change := range map[string]func(map[string]string){
			"gone":  func(l map[string]string) { delete(l, label) },
			"empty": func(l map[string]string) { l[label] = "" },
			"wrong": func(l map[string]string) { l[label] += "\x01" },
			"zero":  func(l map[string]string) { l[label] = "00" },
		} {
			o := whole
			o.Labels = maps.Clone(whole.Labels)
			change(o.Labels)
			_, _, err := object.DecodeHead(o)
			switch e, ok := errors.AsType[*errkind.Error](err); {
			case label == "holdfast.release.kind" && err == nil && name != "gone",
				label == "holdfast.release.digest" && err == nil && name != "gone": // the body will tell
			case !ok || e.ID != o.Name || e.Field == "":
				t.Errorf("%s %s: got %v", label, name, err)
			case !errors.Is(err, driver.ErrCorrupt) && label != "holdfast.release.form":
				t.Errorf("%s %s: not ErrCorrupt: %v", label, name, err)
			}
		}
	}
	other := whole
	other.Name = object.HeadName(drivertest.Key("web", 2))
	if _, _, err := object.DecodeHead(other); !errors.Is(err, driver.ErrCorrupt) {
		t.Errorf("the labels of another head: %v", err)
	}
}

// FuzzHead takes any labels without a panic; a head that it takes is written as it was read.
func FuzzHead(f *testing.F) {
	o := headObject(f, drivertest.Record(drivertest.Key("web", 1), driver.StatusDeployed, "x"))
	var lines []string
	for key, value := range o.Labels {
		lines = append(lines, key+"="+value)
	}
	f.Add(o.Name, strings.Join(lines, "\n"))
	f.Add(o.Name, "")
	f.Add("", "holdfast.release.form=1\nholdfast.release.size=-1\nholdfast.release.label.=x")
	f.Fuzz(func(t *testing.T, name, text string) {
		o := object.Object{ID: "x", Name: name, Version: 1, Labels: map[string]string{}}
		for line := range strings.SplitSeq(text, "\n") {
			key, value, _ := strings.Cut(line, "=")
			o.Labels[key] = value
		}
		h, labels, err := object.DecodeHead(o)
		if err != nil {
			if _, ok := errors.AsType[*errkind.Error](err); !ok {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		if !maps.Equal(labels, o.Labels) || h.Key.Check() != nil || !h.Status.Valid() {
			t.Fatalf("%+v\n got %v\nwant %v", h, labels, o.Labels)
		}
	})
}

// A head that cannot be read is reported, and hides no other.
func TestQueryReportsACorruptHead(t *testing.T) {
	s := newFake(time.Now)
	d := newDriver(s, time.Now)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := d.Create(t.Context(), drivertest.Record(drivertest.Key(name, 1), driver.StatusDeployed, "x")); err != nil {
			t.Fatal(err)
		}
	}
	bad := object.HeadName(drivertest.Key("b", 1))
	s.edit(t, bad, func(o *object.Object) { o.Labels["holdfast.release.size"] = "x" })
	var got []string
	var last error
	for h, err := range d.Query(t.Context(), driver.Query{}) {
		if last != nil {
			t.Fatal("the error was not the last thing")
		}
		if last = err; err == nil {
			got = append(got, h.Key.Name)
		}
	}
	e, ok := errors.AsType[*errkind.Error](last)
	if strings.Join(got, " ") != "a c" || !ok || e.ID != bad || e.Field != "holdfast.release.size" || !errors.Is(last, driver.ErrCorrupt) {
		t.Errorf("got %v, %v", got, last)
	}
	if _, err := d.Get(t.Context(), drivertest.Key("b", 1)); !errors.Is(err, driver.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}
