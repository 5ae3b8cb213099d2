package results

import (
	"errors"
	"fmt"
)

// Names of the files of a saved run.
const (
	RunFile      = "run.json"
	LatencyFile  = "latency.hlog"
	HistoryFile  = "history.bin"
	EnvelopeFile = "envelope.svg" // picture of a sweep
	SequenceFile = "sequence.svg" // picture of a counterexample
	latestLink   = "latest"
	unfinished   = ".partial"
	writerFile   = ".writer" // locked by the process that writes the run
	killedFile   = ".killed" // new name of writerFile if that process was killed
)

func damaged(path string, err error) error { return fmt.Errorf("%s %w: %w", path, ErrDamaged, err) }

// ErrDamaged says that a file of a saved run is not what was saved. The error names the file.
var ErrDamaged = errors.New("is damaged")

var (
	errForeign = errors.New("it does not begin as it should")
	errTorn    = errors.New("its end is missing")
)
