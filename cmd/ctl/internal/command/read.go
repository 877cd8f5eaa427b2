package command

import (
	"fmt"
	"io"
	"os"

	"holdfast/internal/errkind"
)

// maxData is more than the cluster takes as data, which says itself what its limit is, and
// less than a request may have.
const maxData = 4<<20 - 64<<10

// ReadData reads the data of an object from a file, or from standard input for "-".
func (e *Env) ReadData(name string) (data []byte, err error) {
	in := e.Streams.In
	if name == "-" {
		if e.Streams.InIsTerminal() {
			e.Notef("reading from the terminal; Ctrl-D ends it")
		}
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err = io.ReadAll(io.LimitReader(in, maxData+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxData {
		e := errkind.Field("spec.data", "%s has more than %d bytes, no request may", name, maxData)
		e.Kind, e.Max = errkind.Limit, fmt.Sprintf("%d bytes", maxData)
		return nil, e
	}
	return data, nil
}
