package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// defaultWidth is the width of text where there is no terminal.
const defaultWidth = 100

// Streams are where a command reads and writes. Data goes to Out, talk to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// System returns the streams of the process.
func System() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// InIsTerminal tells whether a person types what In gives.
func (s Streams) InIsTerminal() bool {
	f, ok := s.In.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the number of columns of Out.
func (s Streams) Width() int {
	if f, ok := s.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return defaultWidth
}
