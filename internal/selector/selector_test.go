package selector_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/internal/selector"
)

func parse(t testing.TB, text string) selector.Selector {
	t.Helper()
	s, err := selector.Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

func TestMatches(t *testing.T) {
	labels := map[string]string{"tier": "front", "env": "prod", "note": "", "a,b": "c (d)", "name": "label"}
	fields := map[string][]string{
		".id": {"x1"}, ".name": {"web"}, ".network": {"n1", "n2"}, ".node": nil, ".comment": {""},
	}
	for _, c := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"tier", true},
		{"!tier", false},
		{"owner", false},
		{"!owner", true},
		{"tier=front", true},
		{"tier==front", true},
		{"tier=back", false},
		{"tier=fron", false},
		{"Tier=front", false},
		{"tier!=front", false},
		{"tier!=back", true},
		{"owner=me", false},
		{"owner!=me", true},
		{"tier in (back,front)", true},
		{"tier in (back,mid)", false},
		{"owner in (back,mid)", false},
		{"tier notin (back,front)", false},
		{"tier notin (back,mid)", true},
		{"owner notin (back,mid)", true},
		{"owner,owner!=me", false},
		{"note", true},
		{`note=""`, true},
		{`note!=""`, false},
		{`owner=""`, false},
		{`"a,b"="c (d)"`, true},
		{`name=label`, true},
		{"tier=front,env=prod", true},
		{"tier=front,env=test", false},
		{"tier=front,tier=back", false},
		{".id=x1,.name=web,tier", true},
		{".name=label", false},
		{".network", true},
		{".network=n1", true},
		{".network=n1,.network=n2", true},
		{".network=n3", false},
		{".network!=n2", false},
		{".network!=n3", true},
		{".network in (n2,n3)", true},
		{".network notin (n2,n3)", false},
		{".network notin (n3,n4)", true},
		{".node", false},
		{"!.node", true},
		{".node=a", false},
		{".node!=a", true},
		{".comment", true},
		{`.comment=""`, true},
	} {
		get := func(key string) []string { return fields[key] }
		if got := parse(t, c.text).Matches(labels, get); got != c.want {
			t.Errorf("%q: got %v", c.text, got)
		}
	}
}

func TestZeroSelector(t *testing.T) {
	var s selector.Selector
	if !s.Empty() || s.String() != "" || !s.Matches(nil, nil) || s.Check(nil) != nil || !s.Equal(parse(t, " ")) {
		t.Errorf("the zero selector is %q", s)
	}
}

func TestMatchesWithoutLabelsOrFields(t *testing.T) {
	if !parse(t, "!a,b!=c").Matches(nil, nil) {
		t.Error("no labels: does not match")
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a=1,b", " b , a in (1)", true},
		{"a in (x,y)", "a in (y,x,x)", true},
		{"a", `"a"`, true},
		{"a,a", "a", true},
		{"a", "b", false},
		{"a", "!a", false},
		{"a", "a,b", false},
		{"a=b", "a!=b", false},
		{"a=b", "a=c", false},
		{"a in (x,y)", `a in ("x,y")`, false},
		{"name", ".name", false},
		{"a in (x,y)", "a notin (x,y)", false},
		{"", "a", false},
	} {
		a, b := parse(t, c.a), parse(t, c.b)
		if a.Equal(b) != c.want || b.Equal(a) != c.want || (a.String() == b.String()) != c.want {
			t.Errorf("%q and %q: Equal is %v", a, b, a.Equal(b))
		}
	}
}

func TestCheck(t *testing.T) {
	known := func(field string) bool { return field == ".network" || field == ".node" }
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"anything,a=b", ""},
		{".id,.name=a,.version!=1,.generation in (1,2)", ""},
		{".network=a,!.node", ""},
		{"a, .Name=b", `selector: column 4: no such field: ".Name"`},
		{"z,!.role", `selector: column 4: no such field: ".role"`},
		{".network.x", `selector: column 1: no such field: ".network.x"`},
		{"é=1, .x , .x", `selector: column 6: no such field: ".x"`},
	} {
		err := parse(t, c.text).Check(known)
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		e, ok := errors.AsType[*errkind.Error](err)
		if !ok || e.Kind != errkind.Invalid || e.Error() != c.want || !strings.Contains(e.Hint, ".generation") {
			t.Errorf("%q: got %+v, want %s", c.text, err, c.want)
		}
	}
	if err := parse(t, ".id").Check(nil); err != nil {
		t.Errorf("a field of every kind: %v", err)
	}
	if err := parse(t, ".node").Check(nil); err == nil {
		t.Error("no fields but those of every kind: .node is known")
	}
}
