package report

import (
	"slices"
	"time"

	"hammerlock/history"
)

// overlap is a time in which two workers held the lock of the same page.
type overlap struct {
	from, to time.Duration
	a, b     int32
	key      int32
	late     bool // there is an overlap only because a worker went on after the end of its lease
}

type overlapFinder struct {
	keys  map[int32]*keyHolds
	found func(overlap)
}

type keyHolds struct {
	active []pageHold // holds of visits in progress
	closed []pageHold // ended holds that a visit in progress may overlap
}

type pageHold struct {
	worker               int32
	from, held, believed time.Duration
}

func (f *overlapFinder) granted(v *stripVisit) {
	k := f.keys[v.key]
	if k == nil {
		k = &keyHolds{}
		f.keys[v.key] = k
	}
	k.active = append(k.active, pageHold{worker: v.worker, from: v.grant})
}

// done compares a visit's hold with earlier holds of the same lock. It forgets an earlier hold that ended before the
// oldest grant in progress: no later hold can overlap it, because grants come in the order of time.
func (f *overlapFinder) done(v *stripVisit) {
	k := f.keys[v.key]
	if k == nil || v.grant == history.Forever {
		return
	}
	k.active = slices.DeleteFunc(k.active, func(h pageHold) bool { return h.worker == v.worker })
	h := pageHold{v.worker, v.grant, v.held(), v.believed()}
	oldest := history.Forever
	for i := range k.active {
		oldest = min(oldest, k.active[i].from)
	}
	keep := k.closed[:0]
	for _, c := range k.closed {
		if from, to := max(c.from, h.from), min(c.held, h.held); from < to {
			sure := min(c.believed, h.believed)
			o := overlap{from: from, to: to, a: c.worker, b: h.worker, key: v.key, late: from >= sure}
			if !o.late {
				o.to = min(to, sure)
			}
			f.found(o)
		}
		if c.held > oldest {
			keep = append(keep, c)
		}
	}
	k.closed = keep
	if h.held > oldest {
		k.closed = append(k.closed, h)
	}
}

// operations calls the function each for every operation of a run. It can be called again.
type operations func(each func(*history.Op)) error

// readVisits calls done for each visit of a run, and found for each overlap of two holds.
func readVisits(source operations, found func(overlap), done func(*stripVisit)) (*visitReader, error) {
	finder := &overlapFinder{keys: map[int32]*keyHolds{}, found: found}
	r := &visitReader{granted: finder.granted, done: func(v *stripVisit) { finder.done(v); done(v) }}
	if err := source(r.observe); err != nil {
		return nil, err
	}
	for i := range r.workers { // visits in progress at the end of the history
		r.close(&r.workers[i], r.last)
	}
	return r, nil
}
