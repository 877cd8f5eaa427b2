package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "helm.sh/helm/v4/pkg/release/v1"
	helmdriver "helm.sh/helm/v4/pkg/storage/driver"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

const (
	// Kind is the kind of the records: the type of Helm's secrets.
	Kind = "helm.sh/release.v1"

	// maxJSON bounds a release after it is decompressed.
	maxJSON = 64 << 20

	owner = "helm"
)

// Labels that Helm gives to a record.
const (
	labelName       = "name"
	labelOwner      = "owner"
	labelStatus     = "status"
	labelVersion    = "version"
	labelCreatedAt  = "createdAt"
	labelModifiedAt = "modifiedAt"
)

// encode makes the body of a release, byte by byte as Helm does.
func encode(r *v1.Release) ([]byte, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode release: %w", err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("encode release: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("encode release: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode release: %w", err)
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes()), nil
}

// decode reads the body of a release: also one that is not compressed, as Helm once stored
// them. What no Helm has written is an error that is driver.ErrCorrupt.
func decode(body []byte) (*v1.Release, error) {
	packed, err := base64.StdEncoding.AppendDecode(nil, body)
	if err != nil {
		return nil, corrupt(err)
	}
	plain := io.Reader(bytes.NewReader(packed))
	if bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 0x08}) {
		if plain, err = gzip.NewReader(plain); err != nil {
			return nil, corrupt(err)
		}
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxJSON+1))
	switch {
	case err != nil:
		return nil, corrupt(err)
	case len(text) > maxJSON:
		return nil, &errkind.Error{
			Kind: errkind.Limit, Field: "body", Max: "64 MiB", Msg: "is more than 64 MiB when it is decompressed",
		}
	}
	var r *v1.Release
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, corrupt(err)
	}
	if r == nil {
		return nil, corrupt(fmt.Errorf("it is null"))
	}
	return r, nil
}

func corrupt(err error) error {
	return &errkind.Error{
		Field: "body", Msg: "is corrupt: " + err.Error(), Err: driver.ErrCorrupt,
		Hint: "delete this revision; others are not harmed by it",
	}
}

// head makes the head of a record.
func head(key driver.Key, r *v1.Release) driver.Head {
	status := driver.Status(r.Info.Status)
	if !status.Valid() {
		status = driver.StatusUnknown // the label keeps what Helm says
	}
	labels := maps.Clone(r.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelName], labels[labelOwner] = r.Name, owner
	labels[labelStatus], labels[labelVersion] = r.Info.Status.String(), strconv.Itoa(r.Version)
	// Helm has releases of a name that are deployed at once, if programs work on it at once.
	return driver.Head{Key: key, Kind: Kind, Status: status, Labels: labels, Overlap: true}
}

// seconds gives a time as Helm has it in labels.
func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// custom returns the labels that are not Helm's own; nil if there are none.
func custom(labels map[string]string) map[string]string {
	var own map[string]string
	for key, value := range labels {
		if slices.Contains(helmdriver.GetSystemLabels(), key) {
			continue
		}
		if own == nil {
			own = map[string]string{}
		}
		own[key] = value
	}
	return own
}
