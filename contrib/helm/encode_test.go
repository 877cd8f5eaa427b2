package helm

import (
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	v1 "helm.sh/helm/v4/pkg/release/v1"

	"holdfast/internal/errkind"
)

// FuzzDecode takes any bytes without a panic; what it takes can be stored again.
func FuzzDecode(f *testing.F) {
	body, err := encode(&v1.Release{Name: "web", Version: 1, Info: &v1.Info{Status: common.StatusDeployed}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(body), string(body[:20]), "", "bnVsbA==", "e30=", "H4sIAAAAAAAA/w=="} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decode(body)
		if err != nil {
			if _, ok := errors.AsType[*errkind.Error](err); !ok {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		if _, err := encode(r); err != nil && !strings.Contains(err.Error(), "unsupported") {
			t.Fatal(err)
		}
	})
}
