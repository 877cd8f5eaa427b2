package kinds_test

import (
	"testing"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/cmd/ctl/internal/kinds"
)

func TestFormatAge(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for age, want := range map[time.Duration]string{
		-time.Hour:                "0s",
		0:                         "0s",
		119999 * time.Millisecond: "119s",
		2 * time.Minute:           "2m",
		119 * time.Minute:         "119m",
		2 * time.Hour:             "2h",
		47 * time.Hour:            "47h",
		48 * time.Hour:            "2d",
		1000 * 24 * time.Hour:     "1000d",
	} {
		at, err := types.TimestampProto(now.Add(-age))
		if err != nil {
			t.Fatal(err)
		}
		if got := kinds.FormatAge(at, now); got != want {
			t.Errorf("%v: got %q, want %q", age, got, want)
		}
	}
	if got := kinds.FormatAge(nil, now); got != "" {
		t.Errorf("no time: %q", got)
	}
	if got := kinds.FormatAge(&types.Timestamp{Seconds: 1 << 62}, now); got != "" {
		t.Errorf("a time that is none: %q", got)
	}
}
