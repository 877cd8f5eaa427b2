package compose

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	gogo "github.com/gogo/protobuf/types"
)

// fallible keeps the first error of a conversion, so that the fields of a message can be
// written one below the other.
type fallible struct {
	err error
}

func (f *fallible) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// period converts a time that may be left out.
func (f *fallible) period(path string, d *types.Duration) *gogo.Duration {
	if d == nil {
		return nil
	}
	if *d < 0 {
		f.fail("%s: %s is negative", path, time.Duration(*d))
	}
	return gogo.DurationProto(time.Duration(*d))
}

// periodOrNone converts a time that counts as left out when it is 0.
func (f *fallible) periodOrNone(path string, d types.Duration) *gogo.Duration {
	if d == 0 {
		return nil
	}
	return f.period(path, &d)
}

// within checks a number against its upper end.
func (f *fallible) within(path string, n, most uint64) uint64 {
	if n > most {
		f.fail("%s: %d is more than %d", path, n, most)
	}
	return n
}

// bytes checks an amount of memory.
func (f *fallible) bytes(path string, n types.UnitBytes) int64 {
	if n < 0 {
		f.fail("%s: %d is negative", path, int64(n))
	}
	return int64(n)
}

// maxCPUs is far beyond any machine, and small enough for float64 to hold billionths of it.
const maxCPUs = 1 << 20

// nanoCPUs converts a number of processors as it stands in the file; compose-go keeps it in 32
// bits, too few for the third decimal to stay what it was.
func (f *fallible) nanoCPUs(path string, raw any) int64 {
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseFloat(fmt.Sprint(raw), 64)
	if err != nil || !(n >= 0 && n <= maxCPUs) {
		f.fail("%s: %v is not a number of processors", path, raw)
		return 0
	}
	nano := math.Round(n * 1e9)
	if math.Abs(n*1e9-nano) > 0.01 {
		f.fail("%s: %v has more than 9 decimals", path, raw)
	}
	return int64(nano)
}

// choose finds the value that a word stands for.
func choose[V any](f *fallible, path, word string, values map[string]V) V {
	v, ok := values[word]
	if !ok {
		var known []string
		for _, k := range sortedKeys(values) {
			if k != "" {
				known = append(known, k)
			}
		}
		f.fail("%s: %q is not one of %s", path, word, strings.Join(known, ", "))
	}
	return v
}
