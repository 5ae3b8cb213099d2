package faults

import (
	"slices"
	"testing"
	"time"
)

// TestNoWorkerDiesAloneWhoseLibraryGoesOn: its whole process is killed instead, if it has one.
func TestNoWorkerDiesAloneWhoseLibraryGoesOn(t *testing.T) {
	s := single
	s.Outlives = true
	if list, _ := auto(s, time.Minute, 1); slices.Contains(namesOf(list), "crash-worker") ||
		slices.Contains(namesOf(list), "kill-process") {
		t.Errorf("one process: auto is %v", namesOf(list))
	}
	s.Processes = 2
	if list, _ := auto(s, time.Minute, 1); slices.Contains(namesOf(list), "crash-worker") ||
		!slices.Contains(namesOf(list), "kill-process") {
		t.Errorf("two processes: auto is %v", namesOf(list))
	}
	if unavailable(crashWorker, "", s) == "" || unavailable(crashWorker, "", single) != "" {
		t.Error("crash-worker is possible for the wrong lock")
	}
}
