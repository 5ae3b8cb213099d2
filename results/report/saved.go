package report

import (
	"os"
	"path/filepath"

	"hammerlock/history"
	"hammerlock/results"
)

// saved is a saved run with everything that its report shows.
type saved struct {
	*results.Run
	series *series
	strip  *ownership
	notes  map[int64]string // what the faults did, by number
	why    string           // there is no strip
}

func readSaved(dir string) (*saved, error) {
	run, err := results.ReadRun(dir)
	if err != nil {
		return nil, err
	}
	r := &saved{Run: run, notes: map[int64]string{}}
	if r.series, err = readSeries(dir, run); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, results.HistoryFile)
	if _, err := os.Stat(path); err != nil {
		r.why = "This run kept no history: bench keeps sums, verify keeps every operation."
		return r, nil
	}
	return r, r.readHistory(path)
}

// readHistory makes the strip, and collects what the faults did.
func (r *saved) readHistory(path string) (err error) {
	faults := map[history.ID]int64{}
	var h *history.History
	r.strip, err = buildStrip(func(each func(*history.Op)) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		h, err = history.Scan(file, func(op *history.Op) {
			if op.Kind == history.Fault {
				faults[op.ID] = op.Value
			}
			each(op)
		})
		return err
	}, r.Run)
	if err != nil {
		return err
	}
	r.strip.Excludes = h.Claims.Excludes
	for id, text := range h.Notes {
		if fault, ok := faults[id]; ok {
			r.notes[fault] = text
		}
	}
	return nil
}
