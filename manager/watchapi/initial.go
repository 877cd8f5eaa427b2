package watchapi

import (
	"holdfast/api/holdfast"
	"holdfast/manager/objects"
)

// initial is how far the objects that are there at the start were sent. It holds nothing of the
// state that it shows, which the history still has.
type initial struct {
	tables []table // that are still to be sent
	after  string  // the last ID of the first of them that was
}

// maxChunk bounds how many objects one message has.
const maxChunk = 1000

// next returns the next objects that were there at a revision; done tells that they are the
// last. It fails with errkind.OutOfRange if the revision is compacted meanwhile.
func (i *initial) next(s Store, revision uint64, mostBytes int) (found []*holdfast.Object, done bool, err error) {
	tx, err := s.At(revision)
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	for len(i.tables) > 0 {
		t := i.tables[0]
		full := false
		for o := range t.kind.After(tx, t.matcher, i.after) {
			if bytes > mostBytes || len(found) == maxChunk {
				full = true
				break
			}
			i.after = o.GetID()
			object := objects.Wrap(objects.Redact(o))
			bytes += object.Size()
			found = append(found, object)
		}
		if full {
			return found, false, nil
		}
		i.tables, i.after = i.tables[1:], ""
	}
	return found, true, nil
}
