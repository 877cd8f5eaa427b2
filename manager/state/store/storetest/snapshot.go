package storetest

import (
	"bytes"
	"fmt"
	"io"

	"holdfast/manager/state"
)

// Record is one record of a snapshot.
type Record struct {
	Section string
	Data    []byte
}

// Snapshot is a snapshot in memory. It is a state.SectionWriter.
type Snapshot struct {
	Records []Record
	section string
}

var _ state.SectionWriter = (*Snapshot)(nil)

// Tester is what *testing.T and rapid's T have in common.
type Tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Save saves an image.
func Save(t Tester, image state.Image) *Snapshot {
	t.Helper()
	s := &Snapshot{}
	if err := image.Save(s); err != nil {
		t.Fatalf("save: %v", err)
	}
	return s
}

// Section implements state.SectionWriter.
func (s *Snapshot) Section(name string) error {
	s.section = name
	return nil
}

// Record implements state.SectionWriter.
func (s *Snapshot) Record(b []byte) error {
	s.Records = append(s.Records, Record{s.section, b})
	return nil
}

// Copy returns a snapshot whose records may be changed.
func (s *Snapshot) Copy() *Snapshot {
	c := &Snapshot{}
	for _, r := range s.Records {
		c.Records = append(c.Records, Record{r.Section, bytes.Clone(r.Data)})
	}
	return c
}

// Reader gives the records back, each as a copy.
func (s *Snapshot) Reader() state.SectionReader { return &reader{records: s.Records} }

// Diff tells the first record in which two snapshots differ, or "".
func (s *Snapshot) Diff(other *Snapshot) string {
	for i := range min(len(s.Records), len(other.Records)) {
		a, b := s.Records[i], other.Records[i]
		if a.Section != b.Section || !bytes.Equal(a.Data, b.Data) {
			return fmt.Sprintf("record %d: %s %q, and %s %q", i, a.Section, a.Data, b.Section, b.Data)
		}
	}
	if len(s.Records) != len(other.Records) {
		return fmt.Sprintf("%d records, and %d", len(s.Records), len(other.Records))
	}
	return ""
}

type reader struct{ records []Record }

// Next implements state.SectionReader.
func (r *reader) Next() (section string, record []byte, err error) {
	if len(r.records) == 0 {
		return "", nil, io.EOF
	}
	next := r.records[0]
	r.records = r.records[1:]
	return next.Section, bytes.Clone(next.Data), nil
}
