package objects_test

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/manager/objects"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func TestToken(t *testing.T) {
	for _, token := range []objects.Token{
		{0, "a"}, {1, id.New()}, {math.MaxUint64, strings.Repeat("z", 128)}, {1 << 32, "\x00\xff"},
	} {
		got, err := objects.DecodeToken(token.Encode())
		if err != nil || got != token {
			t.Errorf("%v became %v, %v", token, got, err)
		}
	}
}

func TestWrongToken(t *testing.T) {
	good := objects.Token{Revision: 77, After: id.New()}.Encode()
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	wrong := []string{
		"", "x", "!!!!", good + "A", good[1:], good[:len(good)-1], good + "\n", strings.Repeat("A", 10_000),
		objects.Token{Revision: 1}.Encode(), // begins after nothing
	}
	for i := range len(raw) * 8 { // each bit
		flipped := append([]byte(nil), raw...)
		flipped[i/8] ^= 1 << (i % 8)
		wrong = append(wrong, base64.RawURLEncoding.EncodeToString(flipped))
	}
	for _, s := range wrong {
		_, err := objects.DecodeToken(s)
		want(t, err, errkind.Invalid, "continue")
	}
}

func FuzzToken(f *testing.F) {
	f.Add("")
	f.Add(objects.Token{Revision: 1, After: "a"}.Encode())
	f.Add(objects.Token{Revision: math.MaxUint64, After: id.New()}.Encode())
	f.Fuzz(func(t *testing.T, s string) {
		token, err := objects.DecodeToken(s)
		if err != nil {
			if !errkind.Is(err, errkind.Invalid) {
				t.Fatalf("kind %v", errkind.Of(err))
			}
			return
		}
		if token.Encode() != s {
			t.Fatalf("%q decodes to %v, which is encoded as %q", s, token, token.Encode())
		}
	})
}
