package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// gap is the space between two columns.
const gap = 3

// Rows prints a table whose rows come one after another, each at once. A column is as wide as
// the widest cell so far.
type Rows struct {
	out    io.Writer
	widths []int
}

// NewRows makes a table that is printed to out.
func NewRows(out io.Writer) *Rows { return &Rows{out: out} }

// Widen makes columns at least as wide as the cells of a row, for such as are to come.
func (r *Rows) Widen(row ...string) {
	for i, cell := range row {
		if i == len(r.widths) {
			r.widths = append(r.widths, 0)
		}
		r.widths[i] = max(r.widths[i], utf8.RuneCountInString(cell))
	}
}

// Print prints rows, of which the first may well be titles.
func (r *Rows) Print(rows ...[]string) error {
	clean := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			clean[i] = append(clean[i], Clean(cell))
		}
		r.Widen(clean[i]...)
	}
	for _, row := range clean {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", r.widths[i]-utf8.RuneCountInString(cell)+gap))
		}
		if _, err := io.WriteString(r.out, strings.TrimRight(b.String(), " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}
