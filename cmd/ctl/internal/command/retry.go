package command

import "holdfast/internal/errkind"

// maxConflicts is how often an object may change under an update before it gives up.
const maxConflicts = 5

// Retry does an update, which reads an object and writes it, again if the object changed in
// between.
func Retry[T any](update func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		o, err := update()
		if n == maxConflicts || !errkind.Is(err, errkind.OutOfSequence) {
			return o, err
		}
	}
}
