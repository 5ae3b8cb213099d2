package faults

import (
	"slices"
	"testing"
)

// TestNoWorkerDiesAloneWhoseLibraryGoesOn: its whole process is killed instead, if there is one.
func TestNoWorkerDiesAloneWhoseLibraryGoesOn(t *testing.T) {
	s := single
	s.Outlives = true
	if list := auto(s); slices.Contains(list, "crash-worker") || slices.Contains(list, "kill-process") {
		t.Errorf("one process: auto is %v", list)
	}
	s.Processes = 2
	if list := auto(s); slices.Contains(list, "crash-worker") || !slices.Contains(list, "kill-process") {
		t.Errorf("two processes: auto is %v", list)
	}
	if possible(crashWorker, s) == "" || possible(crashWorker, single) != "" {
		t.Error("crash-worker is possible for the wrong lock")
	}
}
