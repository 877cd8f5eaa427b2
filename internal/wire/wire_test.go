package wire_test

import (
	"strings"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

func TestFreshness(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string // "" is an error
	}{
		{"", "linearizable"},
		{"linearizable", "linearizable"},
		{"local", "local"},
		{"min=7", "min=7"},
		{"at=0", "at=0"},
		{"min", ""},
		{"at=", ""},
		{"at=x", ""},
		{"at=-1", ""},
		{"local=3", ""},
		{"stale", ""},
	} {
		f, err := wire.ParseFreshness(c.in)
		switch {
		case c.want == "" && !errkind.Is(err, errkind.Invalid):
			t.Errorf("%q: got %v, %v; want an error", c.in, f, err)
		case c.want != "" && (err != nil || f.String() != c.want):
			t.Errorf("%q: got %v, %v; want %s", c.in, f, err, c.want)
		}
	}
}

// Headers that nobody escaped come through as they are.
func TestUnescapeText(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "100 % sure": "100 % sure", "%": "%", "%4": "%4", "50%zz": "50%zz", "f%C3%BCnf": "fünf", "%25": "%",
	} {
		if got := wire.UnescapeText(header); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add("min=7", "1/7", "7.abcdefghijklmnop")
	f.Add("fünf\n100 %, 5%25", "", " ")
	f.Fuzz(func(t *testing.T, read, revision, id string) {
		header := wire.EscapeText(read)
		if again := wire.UnescapeText(header); again != read {
			t.Errorf("%q became %q by %q", read, again, header)
		}
		if strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(header) != header {
			t.Errorf("%q is no header", header)
		}
		if fr, err := wire.ParseFreshness(read); err == nil {
			if again, err := wire.ParseFreshness(fr.String()); err != nil || again != fr {
				t.Errorf("%q: %v became %v, %v", read, fr, again, err)
			}
		}
		if inc, rev, err := wire.ParseRevision(revision); err == nil {
			if i, r, err := wire.ParseRevision(wire.FormatRevision(inc, rev)); err != nil || i != inc || r != rev {
				t.Errorf("%q: %d/%d became %d/%d, %v", revision, inc, rev, i, r, err)
			}
		}
		if seen, err := wire.ParseRequestID(id); err == nil && len(id) > 128 {
			t.Errorf("%q: %d, too long", id, seen)
		}
	})
}
