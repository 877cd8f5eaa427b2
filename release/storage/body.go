package storage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

const (
	// MaxContent is the largest content of a release, in bytes of JSON.
	MaxContent = 32 << 20

	// formGzip is the version byte of a body that is gzip of JSON.
	formGzip = 1
)

// Encode makes a body of content, which must be JSON. It fails with errkind.Invalid or
// errkind.Limit. The same content gives the same body.
func Encode(content json.RawMessage) ([]byte, error) {
	if len(content) > MaxContent {
		return nil, tooLarge(len(content))
	}
	if !json.Valid(content) {
		return nil, errkind.Field("content", "is not JSON")
	}
	var b bytes.Buffer
	b.WriteByte(formGzip)
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("compress content: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress content: %w", err)
	}
	return b.Bytes(), nil
}

// Decode reads what Encode made. A body that Encode did not make is an error that is
// driver.ErrCorrupt; one of a later version is errkind.Invalid.
func Decode(body []byte) (json.RawMessage, error) {
	if len(body) == 0 {
		return nil, corrupt("it is empty")
	}
	if body[0] != formGzip {
		return nil, errkind.Field("body", "is of the form %d, which is not known here", body[0]).
			WithHint("read it with the version of Holdfast that wrote it, or a later one")
	}
	packed := bytes.NewReader(body[1:])
	r, err := gzip.NewReader(packed)
	if err != nil {
		return nil, corrupt(err.Error())
	}
	r.Multistream(false)
	content, err := io.ReadAll(io.LimitReader(r, MaxContent+1))
	switch {
	case err != nil:
		return nil, corrupt(err.Error())
	case len(content) > MaxContent:
		return nil, tooLarge(len(content))
	case packed.Len() > 0:
		return nil, corrupt(fmt.Sprintf("%d bytes follow the end", packed.Len()))
	case !json.Valid(content):
		return nil, corrupt("it is not JSON")
	}
	return content, nil
}

func corrupt(what string) error {
	return &errkind.Error{
		Field: "body", Msg: "is corrupt: " + what, Err: driver.ErrCorrupt,
		Hint: "delete this revision; others are not harmed by it",
	}
}

func tooLarge(size int) error {
	return &errkind.Error{
		Kind: errkind.Limit, Field: "content", Max: "32 MiB",
		Msg: fmt.Sprintf("has %d bytes or more, at most %d are allowed", size, MaxContent),
	}
}
