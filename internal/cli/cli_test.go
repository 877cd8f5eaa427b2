package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

type thing struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

func view() cli.View[thing] {
	return cli.View[thing]{
		ID:   func(t thing) string { return t.ID },
		Name: func(t thing) string { return t.Name },
		Columns: []cli.Column[thing]{
			{"ID", func(t thing) string { return t.ID }},
			{"NAME", func(t thing) string { return t.Name }},
		},
	}
}

func things(n int) []thing { return []thing{{"1", "one"}, {"22", "two\n\x1b[31m"}, {"3", ""}}[:n] }

func TestPrint(t *testing.T) {
	list := func(p cli.Printer, n int) error { return cli.PrintList(p, view(), things(n)) }
	inspect := func(p cli.Printer, n int) error { return cli.PrintObjects(p, view(), things(n)) }
	create := func(p cli.Printer, _ int) error { return cli.PrintCreated(p, view(), things(1)[0]) }
	for _, c := range []struct {
		print  func(cli.Printer, int) error
		format cli.Format
		n      int
		want   string
	}{
		{list, "", 3, "ID   NAME\n1    one\n22   two\\n\\x1b[31m\n3\n"},
		{list, cli.Table, 0, "ID   NAME\n"},
		{list, cli.Name, 3, "one\ntwo\\n\\x1b[31m\n3\n"},
		{list, cli.ID, 3, "1\n22\n3\n"},
		{list, cli.JSON, 0, "[]\n"},
		{list, cli.JSON, 1, "[\n  {\n    \"id\": \"1\",\n    \"name\": \"one\"\n  }\n]\n"},
		{inspect, "", 1, "{\n  \"id\": \"1\",\n  \"name\": \"one\"\n}\n"},
		{inspect, cli.JSON, 2, "[\n  {\n    \"id\": \"1\",\n    \"name\": \"one\"\n  },\n" +
			"  {\n    \"id\": \"22\",\n    \"name\": \"two\\n\\u001b[31m\"\n  }\n]\n"},
		{inspect, cli.Table, 1, "ID   NAME\n1    one\n"},
		{create, "", 1, "1\n"},
		{create, cli.Name, 1, "one\n"},
		{create, cli.JSON, 1, "{\n  \"id\": \"1\",\n  \"name\": \"one\"\n}\n"},
	} {
		var out bytes.Buffer
		if err := c.print(cli.Printer{Out: &out, Format: c.format, Encode: json.Marshal}, c.n); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("format %q of %d: got\n%s\nwant\n%s", c.format, c.n, out.String(), c.want)
		}
	}
}

func TestExitCode(t *testing.T) {
	codes := map[errkind.Kind]int{
		errkind.Internal: 1, errkind.Invalid: 1, errkind.NotFound: 7, errkind.Exists: 6,
		errkind.OutOfSequence: 6, errkind.Refused: 6, errkind.OutOfRange: 1, errkind.Limit: 1,
		errkind.NoLeader: 5, errkind.UnknownOutcome: 5, errkind.NotAllowed: 4,
		errkind.Unauthenticated: 4, errkind.Canceled: 1, errkind.DeadlineReached: 5,
	}
	for k := errkind.Internal; k <= errkind.DeadlineReached; k++ {
		want, ok := codes[k]
		if !ok {
			t.Errorf("kind %v has no exit code in this test", k)
		}
		if got := cli.ExitCode(fmt.Errorf("x: %w", errkind.New(k, "y"))); got != want {
			t.Errorf("kind %v: got %d, want %d", k, got, want)
		}
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("odd"), 1},
		{cli.Usagef("no"), 2},
		{cli.Different{}, 1},
		{cli.Compared(nil), 0},
		{cli.Compared(cli.Different{}), 1},
		{cli.Compared(cli.Usagef("no")), 2},
		{cli.Compared(errkind.New(errkind.NotFound, "no")), 8},
		{cli.Compared(errors.New("odd")), 8},
		{cli.Errors{errors.New("odd"), errkind.New(errkind.NotFound, "no")}, 1},
		{cli.Errors{errkind.New(errkind.NotFound, "no"), cli.Usagef("no")}, 7},
	} {
		if got := cli.ExitCode(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	cli.Report(&out, cli.Errors{
		errkind.New(errkind.NotFound, "not\nfound").On("service", "web").WithHint("look"),
		&cli.UsageError{Msg: "two names", Hint: "give one"},
		errors.New("odd"),
	})
	want := "error: service web: not\\nfound\nhint: look\nerror: two names\nhint: give one\nerror: odd\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A difference is no error; a comparison that failed is told as its cause is.
func TestReportOfComparisons(t *testing.T) {
	var out bytes.Buffer
	cli.Report(&out, cli.Compared(cli.Different{}))
	cli.Report(&out, cli.Compared(errkind.New(errkind.NotFound, "not found").WithHint("look")))
	if want := "error: not found\nhint: look\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// Rows that come later are aligned with those before, or the other way round.
func TestRows(t *testing.T) {
	var out bytes.Buffer
	r := cli.NewRows(&out)
	if err := r.Print([]string{"A", "B", "C"}, []string{"one", "", "x"}); err != nil {
		t.Fatal(err)
	}
	r.Widen("", "1234")
	for _, row := range [][]string{{"a", "ü", ""}, {"longer\n", "2", "y"}, {"b", "", ""}, {"c", "", "z"}} {
		if err := r.Print(row); err != nil {
			t.Fatal(err)
		}
	}
	want := "A     B   C\none       x\na     ü\nlonger\\n   2      y\nb\nc                 z\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestLine(t *testing.T) {
	var out bytes.Buffer
	p := cli.Printer{Out: &out, Encode: func(v any) ([]byte, error) { return json.MarshalIndent(v, "", " ") }}
	for _, v := range things(2) {
		if err := p.Line(v); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"id":"1","name":"one"}` + "\n" + `{"id":"22","name":"two\n\u001b[31m"}` + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestStreamsOfABuffer(t *testing.T) {
	s := cli.Streams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}}
	if s.InIsTerminal() || s.Width() != 100 {
		t.Errorf("terminal %v, width %d", s.InIsTerminal(), s.Width())
	}
}
