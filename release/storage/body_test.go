package storage_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/storage"
)

func TestBodyRoundTrip(t *testing.T) {
	for _, content := range []string{"{}", "null", `{"a":[1,2,{"é":"\u0000"}]}`, `"` + strings.Repeat("x", 1<<20) + `"`, " 1 \n"} {
		body, err := storage.Encode(json.RawMessage(content))
		if err != nil {
			t.Fatal(err)
		}
		got, err := storage.Decode(body)
		if err != nil || string(got) != content {
			t.Errorf("%.20s: got %.20s, %v", content, got, err)
		}
		if body[0] != 1 {
			t.Errorf("version byte %d", body[0])
		}
		again, err := storage.Encode(json.RawMessage(content))
		if err != nil || !bytes.Equal(again, body) {
			t.Errorf("%.20s: another body the second time: %v", content, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		kind    errkind.Kind
	}{
		"nothing":   {nil, errkind.Invalid},
		"not JSON":  {[]byte("{"), errkind.Invalid},
		"too large": {bytes.Repeat([]byte(" "), storage.MaxContent+1), errkind.Limit},
	} {
		_, err := storage.Encode(c.content)
		if e, ok := errors.AsType[*errkind.Error](err); !ok || e.Kind != c.kind || e.Field != "content" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func packed(t *testing.T, form byte, content []byte) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{form})
	w := gzip.NewWriter(b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDecodeRefuses(t *testing.T) {
	good := packed(t, 1, []byte(`{"a":"some text that is there to be cut"}`))
	for name, body := range map[string][]byte{
		"empty":       {},
		"no gzip":     {1},
		"cut":         good[:len(good)-1],
		"cut early":   good[:12],
		"bytes after": append(bytes.Clone(good), 0),
		"gzip after":  append(bytes.Clone(good), good[1:]...),
		"not JSON":    packed(t, 1, []byte("{")),
	} {
		if _, err := storage.Decode(body); !errors.Is(err, driver.ErrCorrupt) || !errkind.Is(err, errkind.Internal) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for i := range good { // each bit is covered by a checksum, but for some of gzip's header
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		got, err := storage.Decode(bad)
		if err == nil && !bytes.Contains(got, []byte("some text")) {
			t.Errorf("byte %d: got %s", i, got)
		}
	}
	if _, err := storage.Decode(packed(t, 2, []byte("{}"))); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("a later form: %v", err)
	}
	// A small body may be large when it is decompressed.
	bomb := packed(t, 1, bytes.Repeat([]byte(" "), storage.MaxContent+1))
	if _, err := storage.Decode(bomb); !errkind.Is(err, errkind.Limit) || len(bomb) > 1<<20 {
		t.Errorf("%d bytes that become too large: %v", len(bomb), err)
	}
}

// FuzzDecode takes any bytes without a panic; what it takes is JSON, and can be encoded.
func FuzzDecode(f *testing.F) {
	for _, content := range []string{"{}", "null", `{"a":1}`} {
		body, err := storage.Encode(json.RawMessage(content))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
		f.Add(body[:len(body)/2])
	}
	f.Add([]byte{})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, body []byte) {
		content, err := storage.Decode(body)
		if err != nil {
			if _, ok := errors.AsType[*errkind.Error](err); !ok {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		again, err := storage.Encode(content)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := storage.Decode(again); err != nil || !bytes.Equal(back, content) {
			t.Fatalf("%v", err)
		}
	})
}
