package history

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"hammerlock/internal/live"
)

func TestLaneKeepsToItsCacheLines(t *testing.T) {
	var l Lane
	if end := unsafe.Offsetof(l.Process) + unsafe.Sizeof(l.Process); end > 64 {
		t.Errorf("the writer's part ends at byte %d, want one cache line", end)
	}
	if at := unsafe.Offsetof(l.taken); at != 128 {
		t.Errorf("the reader's part begins at byte %d, want 128", at)
	}
	if n := unsafe.Sizeof(l); n != 192 {
		t.Errorf("a lane has %d bytes, want 192", n)
	}
	if n, want := LaneSize(4), 256+4*int(unsafe.Sizeof(Op{})); n != want {
		t.Errorf("LaneSize(4) is %d, want %d", n, want)
	}
}

func TestLaneRefusesBadMemory(t *testing.T) {
	words := make([]uint64, LaneSize(4)/8)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), LaneSize(4))
	for name, f := range map[string]func(){
		"short":     func() { NewLaneIn(mem[:len(mem)-1], NewClock(0), 0, 0, 4) },
		"unaligned": func() { NewLaneIn(mem[1:], NewClock(0), 0, 0, 2) },
		"odd slots": func() { NewLaneIn(mem, NewClock(0), 0, 0, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("was accepted")
				}
			}()
			f()
		})
	}
}

// TestTwoLanesOverOneMemory writes through one Lane and reads through another.
func TestTwoLanesOverOneMemory(t *testing.T) {
	const slots, each = 16, 5000
	words := make([]uint64, LaneSize(slots)/8)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), LaneSize(slots))
	clock := NewOrderedClock(0)
	writer := NewLaneIn(mem, clock, 3, 5, slots)
	writer.Process = 2
	reader := NewLaneIn(mem, clock, 3, 5, slots)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range each {
			op := writer.Call(Load, 1)
			op.Value = int64(i)
			writer.Return(op)
		}
		writer.Call(Acquire, 1)
	}()
	var got []Op
	keep := func(op *Op) { got = append(got, *op) }
	merge := NewMerge(clock, []*Lane{reader})
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
			merge.Drain(keep)
		}
	}
	merge.Flush(keep)
	checkShared(t, got, each)
	if writer.Stalls() != reader.Stalls() {
		t.Errorf("the writer counts %d stalls, the reader %d", writer.Stalls(), reader.Stalls())
	}
}

// checkShared expects all loads of a writer in order, and then the acquire without a return.
func checkShared(t *testing.T, got []Op, loads int) {
	t.Helper()
	if len(got) != loads+1 {
		t.Fatalf("got %d operations, want %d and an open call", len(got), loads)
	}
	for i, op := range got {
		if op.ID.Lane() != 3 || op.ID.Number() != uint64(i+1) || op.Worker != 5 || op.Process != 2 {
			t.Fatalf("operation %d is %+v", i, op)
		}
		if i < loads && (op.Value != int64(i) || op.Return < op.Call || op.Return == Forever) {
			t.Fatalf("operation %d is %+v", i, op)
		}
	}
	if last := got[loads]; last.Kind != Acquire || last.Return != Forever || last.Outcome != Unknown || last.Call == 0 {
		t.Fatalf("the open call is %+v", last)
	}
}

const sharedSlots = 64

// TestLiveKilledWriterIsRead lets another process write into a mapped file and kills it during a call.
func TestLiveKilledWriterIsRead(t *testing.T) {
	const loads = 1000
	path := filepath.Join(t.TempDir(), "lane")
	if err := os.WriteFile(path, make([]byte, LaneSize(sharedSlots)), 0o600); err != nil {
		t.Fatal(err)
	}
	clock := NewClock(0)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLiveSharedWriter$")
	cmd.Env = append(os.Environ(), "HAMMERLOCK_LANE="+path, fmt.Sprint("HAMMERLOCK_LOADS=", loads))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(out).ReadByte() // the writer reports that its last call is open
		opened <- err
	}()

	var got []Op
	keep := func(op *Op) { got = append(got, *op) }
	merge := NewMerge(clock, []*Lane{mapLane(t, path, clock)})
	live.Wait(t, "an open call", func() bool {
		merge.Drain(keep)
		select {
		case err := <-opened:
			if err != nil {
				t.Fatalf("the writer ended early: %v", err)
			}
			return true
		default:
			return false
		}
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("the writer ended unexpectedly: %v", cmd.ProcessState)
	}
	merge.Flush(keep)
	checkShared(t, got, loads)
}

// TestLiveSharedWriter is the other process of TestLiveKilledWriterIsRead; alone it does nothing.
func TestLiveSharedWriter(t *testing.T) {
	path := os.Getenv("HAMMERLOCK_LANE")
	if path == "" {
		return
	}
	var loads int
	fmt.Sscan(os.Getenv("HAMMERLOCK_LOADS"), &loads)
	lane := mapLane(t, path, NewClock(0))
	lane.Process = 2
	for i := range loads {
		op := lane.Call(Load, 1)
		op.Value = int64(i)
		lane.Return(op)
	}
	lane.Call(Acquire, 1)
	fmt.Print("!")
	io.Copy(io.Discard, os.Stdin) // until it is killed, or its parent ends
}

func mapLane(t *testing.T, path string, clock *Clock) *Lane {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := syscall.Mmap(int(f.Fd()), 0, LaneSize(sharedSlots), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return NewLaneIn(mem, clock, 3, 5, sharedSlots)
}

// TestSlackWaitsForClocksBehind: another process may stamp an operation after the reading with an earlier time.
func TestSlackWaitsForClocksBehind(t *testing.T) {
	clock := NewClock(0)
	a := NewLane(clock, 0, 0, 8, nil)
	b := NewLane(NewClock(-time.Minute), 1, 1, 8, nil)
	merge := NewMerge(clock, []*Lane{a, b})
	merge.Slack = time.Hour
	var got []Op
	keep := func(op *Op) { got = append(got, *op) }
	a.Return(a.Call(Load, 0))
	merge.Drain(keep)
	b.Return(b.Call(Load, 0))
	merge.Flush(keep)
	if len(got) != 2 || got[0].Worker != 1 || got[1].Worker != 0 {
		t.Errorf("got %+v", got)
	}
}
