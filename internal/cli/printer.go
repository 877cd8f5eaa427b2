package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Format is how objects are printed.
type Format string

// The formats.
const (
	Table Format = "table" // aligned columns under a header
	JSON  Format = "json"  // protobuf's JSON
	Name  Format = "name"  // one name to a line
	ID    Format = "id"    // one ID to a line: -q
)

// Formats lists the formats that -o takes.
func Formats() []Format { return []Format{Table, JSON, Name} }

// Set takes the value of -o.
func (f *Format) Set(s string) error {
	for _, known := range Formats() {
		if s == string(known) {
			*f = known
			return nil
		}
	}
	return fmt.Errorf("must be one of %v", Formats())
}

// String gives the value of -o.
func (f *Format) String() string { return string(*f) }

// Type names the flag's value in help.
func (f *Format) Type() string { return "table|json|name" }

// Printer prints objects in one format.
type Printer struct {
	Out    io.Writer
	Format Format // empty means the default of the command
	// Encode gives the JSON of one object.
	Encode func(any) ([]byte, error)
}

// View says how objects of one kind look.
type View[T any] struct {
	ID      func(T) string
	Name    func(T) string // if empty for an object, its ID stands for it
	Columns []Column[T]
}

// Column is a column of a table.
type Column[T any] struct {
	Title string
	Value func(T) string
}

// PrintList prints what a list found, by default as a table. JSON is one array.
func PrintList[T any](p Printer, v View[T], items []T) error {
	if p.Format == JSON {
		return p.array(anys(items))
	}
	return printLines(p, v, items)
}

// PrintObjects prints objects that were asked for by name, by default as JSON: one object, or
// an array of several.
func PrintObjects[T any](p Printer, v View[T], items []T) error {
	if p.Format == "" || p.Format == JSON {
		if len(items) == 1 {
			return p.one(items[0])
		}
		return p.array(anys(items))
	}
	return printLines(p, v, items)
}

// PrintCreated prints what a command made or changed, by default its ID.
func PrintCreated[T any](p Printer, v View[T], item T) error {
	if p.Format == "" {
		p.Format = ID
	}
	return PrintObjects(p, v, []T{item})
}

func printLines[T any](p Printer, v View[T], items []T) error {
	if p.Format == ID || p.Format == Name {
		var b strings.Builder
		for _, item := range items {
			line := v.ID(item)
			if name := v.Name(item); p.Format == Name && name != "" {
				line = name
			}
			b.WriteString(Clean(line) + "\n")
		}
		_, err := io.WriteString(p.Out, b.String())
		return err
	}
	titles := make([]string, len(v.Columns))
	for i, c := range v.Columns {
		titles[i] = c.Title
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		for _, c := range v.Columns {
			rows[i] = append(rows[i], c.Value(item))
		}
	}
	return PrintTable(p.Out, titles, rows)
}

// PrintTable prints rows under titles, in aligned columns.
func PrintTable(out io.Writer, titles []string, rows [][]string) error {
	return NewRows(out).Print(append([][]string{titles}, rows...)...)
}

// Line prints any value as JSON on a line of its own.
func (p Printer) Line(v any) error {
	data, err := p.Encode(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(p.Out)
	return err
}

// JSON prints any value as one JSON document.
func (p Printer) JSON(v any) error { return p.one(v) }

func (p Printer) one(v any) error {
	data, err := p.Encode(v)
	if err != nil {
		return err
	}
	return p.indent(data)
}

func (p Printer) array(items []any) error {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		data, err := p.Encode(item)
		if err != nil {
			return err
		}
		b.Write(data)
	}
	b.WriteByte(']')
	return p.indent(b.Bytes())
}

// indent prints JSON for people, in the same form each time.
func (p Printer) indent(data []byte) error {
	var tight, b bytes.Buffer
	if err := json.Compact(&tight, data); err != nil {
		return err
	}
	if err := json.Indent(&b, tight.Bytes(), "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(p.Out)
	return err
}

func anys[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}

// Clean makes text that others wrote safe for a terminal and for a line of a table: what does
// not print is shown as Go would write it.
func Clean(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
