package agreement_test

import (
	"fmt"
	"slices"
	"testing"

	"holdfast/manager/agreement"
)

func TestJudge(t *testing.T) {
	type told = map[uint64][]agreement.Point
	at := func(revision uint64, hash string) agreement.Point {
		return agreement.Point{Revision: revision, Hash: hash}
	}
	three, five := []uint64{1, 2, 3}, []uint64{1, 2, 3, 4, 5}
	for name, c := range map[string]struct {
		told            told
		voters          []uint64
		equal, differ   []uint64
		minority, split bool
	}{
		"nothing told":          {told{}, three, nil, nil, false, false},
		"alone":                 {told{1: {at(1, "a")}}, []uint64{1}, nil, nil, false, false},
		"all equal":             {told{1: {at(1, "a")}, 2: {at(1, "a")}, 3: {at(1, "a")}}, three, []uint64{2, 3}, nil, false, false},
		"nothing in common":     {told{1: {at(1, "a")}, 2: {at(2, "b")}, 3: {at(3, "c")}}, three, nil, nil, false, false},
		"a checkpoint":          {told{1: {at(64, "a"), at(70, "b")}, 2: {at(64, "a"), at(71, "c")}}, three, []uint64{2}, nil, false, false},
		"the newest counts":     {told{1: {at(64, "a"), at(70, "b")}, 2: {at(70, "x"), at(64, "a")}}, three, nil, []uint64{2}, false, false},
		"another differs":       {told{1: {at(1, "a")}, 2: {at(1, "b")}, 3: {at(1, "a")}}, three, []uint64{3}, []uint64{2}, false, false},
		"this one differs":      {told{1: {at(1, "b")}, 2: {at(1, "a")}, 3: {at(1, "a")}}, three, nil, []uint64{2, 3}, true, false},
		"one of two heard":      {told{1: {at(1, "b")}, 2: {at(1, "a")}}, three, nil, []uint64{2}, false, false},
		"three of five":         {told{1: {at(1, "b")}, 2: {at(1, "a")}, 3: {at(1, "a")}, 4: {at(1, "a")}}, five, nil, []uint64{2, 3, 4}, true, false},
		"two of five":           {told{1: {at(1, "b")}, 2: {at(1, "a")}, 3: {at(1, "a")}}, five, nil, []uint64{2, 3}, false, false},
		"all differ":            {told{1: {at(1, "a")}, 2: {at(1, "b")}, 3: {at(1, "c")}}, three, nil, []uint64{2, 3}, false, true},
		"two members":           {told{1: {at(1, "a")}, 2: {at(1, "b")}}, []uint64{1, 2}, nil, []uint64{2}, false, true},
		"a learner differs":     {told{1: {at(1, "a")}, 2: {at(1, "b")}}, []uint64{1}, nil, []uint64{2}, false, false},
		"this one is a learner": {told{1: {at(1, "b")}, 2: {at(1, "a")}, 3: {at(1, "a")}}, []uint64{2, 3}, nil, []uint64{2, 3}, true, false},
		"told again":            {told{1: {at(1, "a")}, 2: {at(1, "x"), at(1, "a")}}, three, []uint64{2}, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := agreement.NewRecord()
			for member, points := range c.told {
				for _, p := range points {
					r.Note(member, p)
				}
			}
			f := r.Judge(1, c.voters, []uint64{2, 3, 4, 5})
			if !slices.Equal(f.Equal, c.equal) || !slices.Equal(f.Differ, c.differ) || f.Minority != c.minority || f.Split != c.split {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestRecordIsBounded(t *testing.T) {
	r := agreement.NewRecord()
	for i := range uint64(1000) {
		r.Note(1, agreement.Point{Revision: i, Hash: fmt.Sprint(i)})
		r.Note(2, agreement.Point{Revision: i, Hash: fmt.Sprint(i)})
		r.Note(2, agreement.Point{Revision: i}) // nothing is known there
	}
	if f := r.Judge(1, []uint64{1, 2}, []uint64{2}); len(f.Equal) != 1 {
		t.Errorf("%+v", f)
	}
	r.Keep([]uint64{1})
	if f := r.Judge(1, []uint64{1, 2}, []uint64{2}); len(f.Equal) != 0 {
		t.Errorf("after it left: %+v", f)
	}
}
