package driver_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

func TestKeyText(t *testing.T) {
	for text, want := range map[string]driver.Key{
		"default/web.v1":                      {Namespace: "default", Name: "web", Revision: 1},
		"n/web.v1.v2":                         {Namespace: "n", Name: "web.v1", Revision: 2},
		"n/web.v0":                            {Namespace: "n", Name: "web"},
		"n/a/b.v3":                            {Namespace: "n", Name: "a/b", Revision: 3},
		"n/.v.v9223372036854775807":           {Namespace: "n", Name: ".v", Revision: 1<<63 - 1},
		"n/sh.helm.release.v1.angry-bird.v12": {Namespace: "n", Name: "sh.helm.release.v1.angry-bird", Revision: 12},
	} {
		k, err := driver.ParseKey(text)
		if err != nil || k != want || k.String() != text {
			t.Errorf("%s: got %+v (%v), %v", text, k, k, err)
		}
	}
}

func TestKeyTextInvalid(t *testing.T) {
	for text, field := range map[string]string{
		"": "key", "web": "key", "web.v1": "key", "n/web": "key", "/web.v1": "key.namespace", "n/.v1": "key.name",
		"n/web.v": "key.revision", "n/web.v-1": "key.revision",
		"n/web.v01": "key.revision", "n/web.v+1": "key.revision", "n/web.v1 ": "key.revision",
		"n/web.v9223372036854775808": "key.revision", "n/a\nb.v1": "key.name", "\xff/a.v1": "key.namespace",
		strings.Repeat("n", 254) + "/a.v1": "key.namespace", "n/" + strings.Repeat("n", 1025) + ".v1": "key.name",
	} {
		_, err := driver.ParseKey(text)
		e, ok := errors.AsType[*errkind.Error](err)
		if !ok || e.Field != field || e.Kind != errkind.Invalid && e.Kind != errkind.Limit {
			t.Errorf("%.40q: got %v, want an error about %s", text, err, field)
		}
	}
}

// FuzzParseKey takes any text without a panic. What it takes is valid, and has that text.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{"", "a/b.v1", "a/b.v1.v2", "a/.v.v1", "a/b.v00", "/", "a/b.v9999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := driver.ParseKey(text)
		if err != nil {
			if kind := errkind.Of(err); kind != errkind.Invalid && kind != errkind.Limit {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if err := k.Check(); err != nil || k.String() != text {
			t.Fatalf("%q: %q, %v", text, k, err)
		}
	})
}
