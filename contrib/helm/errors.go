package helm

import (
	"fmt"
	"strings"

	helmdriver "helm.sh/helm/v4/pkg/storage/driver"

	"holdfast/internal/errkind"
)

// helmError makes an error what Helm looks for, and keeps what it was.
func helmError(err error) error {
	switch {
	case err == nil:
		return nil
	case errkind.Is(err, errkind.NotFound):
		return fmt.Errorf("%w: %w", helmdriver.ErrReleaseNotFound, err)
	case errkind.Is(err, errkind.Exists):
		return fmt.Errorf("%w: %w", helmdriver.ErrReleaseExists, err)
	case strings.Contains(err.Error(), notFound):
		return misleading{err}
	}
	return err
}

// notFound is what Helm's storage looks for in the text of any error, to learn that there is
// no deployed release.
const notFound = "not found"

// misleading is an error whose text Helm would take for that of a release that is not there.
type misleading struct{ error }

func (e misleading) Error() string { return strings.ReplaceAll(e.error.Error(), notFound, "not there") }
func (e misleading) Unwrap() error { return e.error }

// invalidKey is the error of a key that is not NAME.vREVISION.
func invalidKey(err error) error { return fmt.Errorf("%w: %w", helmdriver.ErrInvalidKey, err) }
