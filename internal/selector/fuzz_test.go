package selector_test

import (
	"strings"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/internal/selector"
)

// FuzzParse takes any text without a panic; what it parses has a text that parses to the same,
// and what it does not parse has an error that names the selector.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "a", "!a", "a=b", "a==b", "a!=b", "a in (b,c)", "a notin(b)", "in in (in)",
		` .name = "x, \"y\" \\" , !"a b"`, "é\u00a0=日本", "a=\xff", `a="`, `a="\`, "a in (", "a=,",
		`"a"in(b,c)`, ".=a", strings.Repeat("a,", 40), "a in(b,c)," + strings.Repeat("x", 4086),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := selector.Parse(text)
		if err != nil {
			if k := errkind.Of(err); k != errkind.Invalid && k != errkind.Limit {
				t.Fatalf("%q: an error of kind %d: %v", text, k, err)
			}
			if !strings.HasPrefix(err.Error(), "selector: ") {
				t.Fatalf("%q: the error does not name the selector: %v", text, err)
			}
			return
		}
		again, err := selector.Parse(s.String())
		if err != nil {
			t.Fatalf("%q: canonical %q: %v", text, s, err)
		}
		if !s.Equal(again) || s.String() != again.String() {
			t.Fatalf("%q: %q is not %q", text, s, again)
		}
		// Neither panics, whatever the selector.
		s.Matches(nil, func(string) []string { return nil })
		_ = s.Check(nil)
	})
}
