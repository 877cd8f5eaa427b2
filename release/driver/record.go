package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/internal/errkind"
)

// Limits of a record, in bytes.
const (
	MaxBody       = 16 << 20
	MaxKind       = 253
	MaxLabelKey   = 512
	MaxLabelValue = 4 << 10
	MaxLabels     = 32 << 10 // all keys and values together
)

// Begin checks a record that is to be created and returns its head with all but the version.
// It fails with errkind.Invalid or errkind.Limit.
func Begin(r Record, now time.Time) (Head, error) {
	if err := r.Key.Check(); err != nil {
		return Head{}, err
	}
	h := Head{
		Key: r.Key, Kind: r.Kind, Status: r.Status, Labels: cloned(r.Labels), Overlap: r.Overlap,
		Created: stamp(now), Modified: stamp(now),
	}
	if len(r.Body) == 0 {
		return Head{}, errkind.Field("body", "is empty").On(noun, h.Key.String())
	}
	return h.with(r.Body)
}

// Next checks an update of old that was made from a version of it, and returns the new head
// with all but the version. It fails with errkind.OutOfSequence, errkind.Invalid or
// errkind.Limit.
func Next(old Head, version uint64, r Record, now time.Time) (Head, error) {
	if err := CheckUpdate(version, r); err != nil {
		return Head{}, err
	}
	if old.Version != version {
		return Head{}, Changed(old.Key, version, old.Version)
	}
	if r.Kind != old.Kind {
		return Head{}, errkind.Field("kind", "is %q and cannot be changed to %q", old.Kind, r.Kind).
			On(noun, old.Key.String())
	}
	h := old
	h.Status, h.Labels, h.Overlap = r.Status, cloned(r.Labels), r.Overlap
	if h.Modified = stamp(now); h.Modified.Before(old.Modified) { // a clock that was set back
		h.Modified = old.Modified
	}
	h.Version = 0
	return h.with(r.Body)
}

// CheckUpdate checks what can be checked of an update without the record as it is.
func CheckUpdate(version uint64, r Record) error {
	if err := r.Key.Check(); err != nil {
		return err
	}
	if version == 0 {
		return errkind.Field("version", "is 0, which no record has").On(noun, r.Key.String()).
			WithHint("give the version of the head that the change was made from")
	}
	if r.Body != nil && len(r.Body) == 0 {
		return errkind.Field("body", "is empty").On(noun, r.Key.String()).
			WithHint("leave it nil to keep the body that there is")
	}
	_, err := r.with(r.Body)
	return err
}

// with checks a head, and gives it the size and digest of a body unless that is nil.
func (h Head) with(body []byte) (Head, error) {
	if err := h.check(); err != nil {
		return Head{}, On(err, h.Key)
	}
	if len(body) > MaxBody {
		return Head{}, (&errkind.Error{
			Kind: errkind.Limit, Field: "body", Max: "16 MiB",
			Msg: fmt.Sprintf("has %d bytes, at most %d are allowed", len(body), MaxBody),
		}).On(noun, h.Key.String())
	}
	if body != nil {
		h.Size, h.Digest = int64(len(body)), Digest(body)
	}
	return h, nil
}

func (h Head) check() error {
	if err := checkText("kind", h.Kind, MaxKind); err != nil {
		return err
	}
	if h.Kind == "" {
		return errkind.Field("kind", "is empty")
	}
	if !h.Status.Valid() {
		return errkind.Field("status", "%q is not a status", h.Status).WithHint("use one of %v", Statuses())
	}
	return checkLabels(h.Labels)
}

func checkLabels(labels map[string]string) error {
	total := 0
	for key, value := range labels {
		if key == "" {
			return errkind.Field("labels", "has an empty key")
		}
		if err := checkText(fmt.Sprintf("labels[%.80q].key", key), key, MaxLabelKey); err != nil {
			return err
		}
		if err := checkText(fmt.Sprintf("labels[%.80q]", key), value, MaxLabelValue); err != nil {
			return err
		}
		total += len(key) + len(value)
	}
	if total > MaxLabels {
		return &errkind.Error{
			Kind: errkind.Limit, Field: "labels", Max: "32 KiB",
			Msg: fmt.Sprintf("keys and values have %d bytes, at most %d are allowed", total, MaxLabels),
		}
	}
	return nil
}

// checkText refuses what is too long or what some backend could not keep. It may be empty.
func checkText(field, value string, limit int) error {
	switch {
	case len(value) > limit:
		return &errkind.Error{
			Kind: errkind.Limit, Field: field, Max: fmt.Sprintf("%d bytes", limit),
			Msg: fmt.Sprintf("has %d bytes, at most %d are allowed", len(value), limit),
		}
	case !utf8.ValidString(value):
		return errkind.Field(field, "is not valid UTF-8")
	case strings.ContainsRune(value, 0):
		return errkind.Field(field, "has a NUL character")
	}
	return nil
}

// CheckBody tells whether a body is the one that a head was stored with: if it is not, the
// error is ErrCorrupt.
func (h Head) CheckBody(body []byte) error {
	if int64(len(body)) != h.Size {
		return Corrupt(h.Key, "body", "it has %d bytes, %d were stored", len(body), h.Size)
	}
	if got := Digest(body); got != h.Digest {
		return Corrupt(h.Key, "body", "its digest is %s, what was stored has %s", got, h.Digest)
	}
	return nil
}

// Digest returns the digest of a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "sha256:"

// cloned copies labels; it is nil if there are none.
func cloned(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	return maps.Clone(labels)
}

// stamp makes a time what every backend can keep.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
