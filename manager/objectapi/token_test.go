package objectapi

import (
	"math"
	"strings"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/manager/objects"
)

// FuzzDecodeToken holds that what is decoded is encoded as it came, and that nothing is taken for
// a token of another form.
func FuzzDecodeToken(f *testing.F) {
	f.Add("")
	for _, s := range []string{
		objects.Token{Revision: 1, After: "a"}.Encode(),
		historyToken{1, 2, 3, 4, "a"}.encode(),
		historyToken{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64, strings.Repeat("z", 128)}.encode(),
		diffToken{1, 2, holdfast.Kind_KIND_TASK, id.New()}.encode(),
		diffToken{math.MaxUint64, math.MaxUint64, -1, "\x00\xff"}.encode(),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, listErr := objects.DecodeToken(s)
		history, historyErr := decodeHistoryToken(s)
		diff, diffErr := decodeDiffToken(s)
		taken := 0
		for _, c := range []struct {
			err     error
			encoded string
		}{{listErr, list.Encode()}, {historyErr, history.encode()}, {diffErr, diff.encode()}} {
			switch {
			case c.err == nil && c.encoded != s:
				t.Fatalf("%q is encoded as %q", s, c.encoded)
			case c.err == nil:
				taken++
			case !errkind.Is(c.err, errkind.Invalid):
				t.Fatalf("kind %v", errkind.Of(c.err))
			}
		}
		if taken > 1 {
			t.Fatalf("%q is a token of %d forms", s, taken)
		}
	})
}

func TestTokens(t *testing.T) {
	for _, want := range []historyToken{{1, 2, 3, 4, "a"}, {math.MaxUint64, 0, math.MaxUint32, 1, strings.Repeat("z", 128)}} {
		if got, err := decodeHistoryToken(want.encode()); err != nil || got != want {
			t.Errorf("%v became %v, %v", want, got, err)
		}
	}
	for _, want := range []diffToken{{0, 2, holdfast.Kind_KIND_NODE, "a"}, {math.MaxUint64, 1, holdfast.Kind_KIND_CONFIG, strings.Repeat("z", 128)}} {
		if got, err := decodeDiffToken(want.encode()); err != nil || got != want {
			t.Errorf("%v became %v, %v", want, got, err)
		}
	}
	for _, s := range []string{
		"", "x", historyToken{1, 2, 3, 4, ""}.encode(), diffToken{1, 2, 3, ""}.encode(),
		objects.SealToken(tokenHistory, []byte{1, 2}), objects.SealToken(tokenDiff, []byte{0x80}),
		objects.SealToken(tokenHistory, []byte{0x81, 0, 2, 3, 4, 'a'}), // 1, the long way
		strings.Repeat("A", 1000),
	} {
		if got, err := decodeHistoryToken(s); !errkind.Is(err, errkind.Invalid) {
			t.Errorf("history %q: %v, %v", s, got, err)
		}
		if got, err := decodeDiffToken(s); !errkind.Is(err, errkind.Invalid) {
			t.Errorf("diff %q: %v, %v", s, got, err)
		}
	}
}
