package selector_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"holdfast/internal/selector"
)

// wish is a requirement as plainly as can be: values are nil where only the key is asked for.
type wish struct {
	key    string
	not    bool
	values []string
}

// The keys and values are few, so that they meet, and odd, so that they need quotes.
func keys() []string {
	return []string{"a", "b", "in", "notin", "x y", `"`, "é", "a,b", "(", "!", ".id", ".net", ".a"}
}

func values() []string {
	return []string{"", "a", "b", "in", ".id", " ", `\`, `"`, `\"`, "x,y", "(a)", "=", "日"}
}

func wishes() *rapid.Generator[[]wish] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wish {
		w := wish{key: rapid.SampledFrom(keys()).Draw(t, "key"), not: rapid.Bool().Draw(t, "not")}
		if rapid.Bool().Draw(t, "compare") {
			w.values = rapid.SliceOfN(rapid.SampledFrom(values()), 1, 4).Draw(t, "values")
		}
		return w
	}), 0, 6)
}

// holds is what a requirement means, with labels and fields in one map.
func (w wish) holds(object map[string][]string) bool {
	has := object[w.key]
	yes := len(has) > 0
	if w.values != nil {
		yes = false
		for _, v := range has {
			yes = yes || slices.Contains(w.values, v)
		}
	}
	return yes != w.not
}

// text writes the requirement in one of the ways in which it can be.
func (w wish) text(t *rapid.T) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\t\n"}).Draw(t, "space") }
	quote := func(s string) string {
		s = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
		return `"` + s + `"`
	}
	name := func(s string) string {
		plain := s != "" && !strings.ContainsAny(s, ",()=!\"") && !strings.ContainsFunc(s, unicode.IsSpace)
		if plain && (strings.HasPrefix(s, ".") || rapid.Bool().Draw(t, "plain")) {
			return s
		}
		return quote(s)
	}
	key := space() + name(w.key) + space()
	pick := func(yes, no []string) string {
		if w.not {
			yes = no
		}
		return rapid.SampledFrom(yes).Draw(t, "operator")
	}
	switch {
	case w.values == nil:
		return pick([]string{""}, []string{"!", " !"}) + key
	case len(w.values) == 1 && rapid.Bool().Draw(t, "short"):
		return key + pick([]string{"=", "=="}, []string{"!="}) + space() + name(w.values[0]) + space()
	}
	set := make([]string, len(w.values))
	for i, v := range w.values {
		set[i] = space() + name(v) + space()
	}
	return key + " " + pick([]string{"in"}, []string{"notin"}) + space() + "(" + strings.Join(set, ",") + ")" + space()
}

func draw(t *rapid.T, wanted []wish) selector.Selector {
	parts := make([]string, len(wanted))
	for i, w := range wanted {
		parts[i] = w.text(t)
	}
	text := strings.Join(parts, ",")
	s, err := selector.Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

// However it is written, a selector picks what its requirements say.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := wishes().Draw(t, "wishes")
		s := draw(t, wanted)
		object, labels := map[string][]string{}, map[string]string{}
		for _, key := range keys() {
			most := 1
			if strings.HasPrefix(key, ".") {
				most = 3
			}
			has := rapid.SliceOfN(rapid.SampledFrom(values()), 0, most).Draw(t, "has")
			object[key] = has
			if most == 1 && len(has) == 1 {
				labels[key] = has[0]
			}
		}
		want := true
		for _, w := range wanted {
			want = want && w.holds(object)
		}
		before := maps.Clone(labels)
		got := s.Matches(labels, func(key string) []string {
			if !strings.HasPrefix(key, ".") {
				t.Fatalf("asked for the field %q", key)
			}
			return object[key]
		})
		if got != want {
			t.Fatalf("%q on %v: got %v", s, object, got)
		}
		if !maps.Equal(labels, before) {
			t.Fatal("the labels changed")
		}
	})
}

// Selectors of the same requirements are equal, and have one text that parses to the same.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := wishes().Draw(t, "wishes")
		a := draw(t, wanted)
		b := draw(t, rapid.Permutation(wanted).Draw(t, "order"))
		c, err := selector.Parse(a.String())
		if err != nil {
			t.Fatalf("%q: %v", a, err)
		}
		if !a.Equal(b) || !a.Equal(c) || a.String() != b.String() || a.String() != c.String() {
			t.Fatalf("not equal: %q, %q, %q", a, b, c)
		}
		if a.Empty() != (len(wanted) == 0) {
			t.Fatalf("%q: Empty is %v", a, a.Empty())
		}
		other := wishes().Draw(t, "other")
		if d := draw(t, other); a.Equal(d) != (a.String() == d.String()) {
			t.Fatalf("%q and %q: Equal is %v", a, d, a.Equal(d))
		}
	})
}

// Any strings can be asked for, as long as the key is a label's.
func TestAnyStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[^.].{0,8}`).Draw(t, "key")
		value := rapid.StringN(0, 8, -1).Draw(t, "value")
		s := draw(t, []wish{{key: key, values: []string{value}}})
		if !s.Matches(map[string]string{key: value}, nil) || s.Matches(map[string]string{key: value + "x"}, nil) {
			t.Fatalf("%q does not pick %q=%q alone", s, key, value)
		}
	})
}
