package report

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// saved is a saved run and the rest of the data for its page.
type saved struct {
	*results.Run
	series  *series
	strip   *ownership
	faults  []string         // names of faults by number: planned faults first, then those that a user injected
	notes   map[int64]string // by number of a fault: what the fault did
	others  []event          // unplanned events of servers and processes
	picture []byte           // as SVG
	shows   string           // title of the picture
	damaged error            // files that could be read in part, or not at all
}

// pictures has the titles of the pictures that a saved run can have, by file name.
var pictures = map[string]string{results.EnvelopeFile: "Where one deviation breaks a lock",
	results.SequenceFile: "Message by message"}

type event struct {
	from, to time.Duration
	what     string
	role     bool // a node changed its role
}

// readSaved reads a saved run. Without its record it returns an error. Other files may be damaged.
func readSaved(dir string) (*saved, error) {
	run, err := results.ReadRun(dir)
	if err != nil {
		return nil, err
	}
	r := &saved{Run: run, faults: run.Faults, notes: map[int64]string{}}
	if r.series, r.damaged = readSeries(dir, run); r.damaged != nil && !errors.Is(r.damaged, results.ErrDamaged) {
		return nil, r.damaged
	}
	for file, shows := range pictures {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
			r.picture, r.shows = text, shows
		}
	}
	if _, err := os.Stat(filepath.Join(dir, results.HistoryFile)); err != nil {
		for _, c := range run.Roles { // the command "bench" saves no history, only totals
			r.others = append(r.others, event{time.Duration(c.After), time.Duration(c.By), c.Text,
				c.Became != results.NoticedDown})
		}
		return r, nil
	}
	err = r.readHistory(dir)
	if errors.Is(err, results.ErrDamaged) {
		r.strip, r.damaged, err = nil, errors.Join(r.damaged, err), nil
	}
	return r, err
}

// readHistory reads the history for two purposes: the strip, and descriptions of what the faults did.
func (r *saved) readHistory(dir string) (err error) {
	faults := map[history.ID]int64{}
	var others []history.Op
	var h *history.History
	r.strip, err = buildStrip(func(each func(*history.Op)) error {
		others = others[:0] // buildStrip reads the operations twice
		h, err = results.ScanHistory(dir, r.Run, func(op *history.Op) {
			switch op.Kind {
			case history.Fault:
				faults[op.ID] = op.Value
			case history.Gap, history.Role, history.Incident:
				others = append(others, *op)
			}
			each(op)
		})
		return err
	}, r.Run)
	if err != nil {
		return err
	}
	if r.strip.Excludes = h.Claims.Excludes; h.Service {
		r.strip = nil // a service does not show who holds its locks
	}
	for id, text := range h.Notes {
		if fault, ok := faults[id]; ok {
			r.notes[fault] = text
		}
	}
	for _, f := range h.Faults[min(len(r.faults), len(h.Faults)):] {
		r.faults = append(r.faults[:len(r.faults):len(r.faults)], "by hand: "+f.Name)
	}
	for _, op := range others {
		what := "a process paused for " + human.Duration(op.Latency())
		r.others = append(r.others, event{op.Call, op.Return, cmp.Or(h.Notes[op.ID], what), op.Kind == history.Role})
	}
	return nil
}
