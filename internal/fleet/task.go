package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
)

// task is an agent's view of a run.
type task struct {
	w     *worker
	plan  *plan
	crew  *crew.Processes
	spool *spool
	begin chan int64         // receives the start time once it is final
	stop  context.CancelFunc // stops new visits
	end   context.CancelFunc // ends all activities of the task
	all   sync.WaitGroup

	mu        sync.Mutex
	exchanges []exchange
	heard     time.Time
	armed     int64 // announced start of the run; 0 = unknown
	begun     bool
	session   *crew.Session
	catches   map[int]*catch
	reporting bool
	over      bool
	why       string // reason why the task was given up
}

// exchangeEvery is the time between two clock exchanges; firstTime is the number of those at the start. exchangeMost
// is the timeout of a request. drainEvery and sendEvery are the times between two reads of records, and two frames.
// frameOps is the number of operations that fill a frame.
const (
	exchangeEvery = 50 * time.Millisecond
	firstTime     = 64
	exchangeMost  = time.Second
	drainEvery    = 20 * time.Millisecond
	sendEvery     = 250 * time.Millisecond
	frameOps      = 1000
)

// newTask prepares a run. The task does not end with ctx: the caller must call close.
func newTask(ctx context.Context, w *worker, p *plan) (*task, error) {
	t := &task{w: w, plan: p, spool: newSpool(w.nc), begin: make(chan int64, 1), heard: time.Now(),
		catches: map[int]*catch{}}
	ctx, t.end = context.WithCancel(context.WithoutCancel(ctx))
	stopped, stop := context.WithCancel(ctx)
	t.stop = stop
	var err error
	if t.crew, err = crew.SpreadShare(ctx, p.Orders, p.Share, w.o.Spawn); err != nil {
		t.end()
		return nil, err
	}
	for range firstTime {
		t.exchange()
	}
	t.all.Go(func() { t.compare(ctx) })
	t.all.Go(func() {
		select {
		case at := <-t.begin:
			t.run(ctx, stopped, at)
		case <-ctx.Done():
		}
	})
	return t, nil
}

// hear records that the coordinator is alive.
func (t *task) hear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = time.Now()
}

// compare exchanges clock messages with the coordinator until the task ends. It gives up if the coordinator is silent
// for too long.
func (t *task) compare(ctx context.Context) {
	next := time.Tick(exchangeEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
		t.exchange()
		t.spool.again()
		t.mu.Lock()
		silent := time.Since(t.heard)
		t.mu.Unlock()
		if silent > t.plan.Timeout {
			t.giveUp(fmt.Sprintf("nothing was heard of the coordinator for %s", silent.Round(time.Millisecond)))
		}
		if _, _, lost := t.spool.state(); lost != "" {
			t.giveUp(lost)
		}
	}
}

func (t *task) exchange() {
	sent := crew.Monotonic()
	m, err := t.w.clock.Request(clockSubject, nil, exchangeMost)
	received := crew.Monotonic()
	if err != nil || len(m.Data) != 16 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = time.Now()
	t.exchanges = append(t.exchanges, exchange{sent, int64(binary.LittleEndian.Uint64(m.Data)),
		int64(binary.LittleEndian.Uint64(m.Data[8:])), received})
}

// exchanged returns the exchanges that were not sent yet, and forgets them.
func (t *task) exchanged() []exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	new := t.exchanges
	t.exchanges = nil
	return new
}

// giveUp ends the task early. The reason is empty if the task has finished.
func (t *task) giveUp(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == "" && !t.over {
		t.why = why
	}
	t.over = true
	t.end()
	for _, c := range t.catches {
		c.cancel()
	}
}

func (t *task) done() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// close ends the task. It returns the reason why the task was given up; empty if it had finished.
func (t *task) close(why string) string {
	t.giveUp(why)
	t.all.Wait()
	err := t.crew.Close()
	if t.why == "" && err != nil {
		return err.Error()
	}
	return t.why
}

func (t *task) obey(ctx context.Context, o *order) (answer, error) {
	switch o.Do {
	case doArm:
		return answer{}, t.arm(o.At)
	case doGo:
		return answer{}, t.start()
	case doStop:
		t.stop()
	case doCatch:
		return t.catch(ctx, o)
	case doForget, doFree:
		t.free(o)
	case doSignal:
		return answer{}, t.signal(syscall.Signal(o.Signal))
	case doCut, doMend:
		return answer{}, t.cut(o.Do == doCut)
	case doKill: // stopped workers request nothing more; killOrPause kills them after the answer
		return answer{}, t.signal(syscall.SIGSTOP)
	case doPause: // killOrPause executes it after the answer
	default:
		return answer{}, fmt.Errorf("unknown order %q", o.Do)
	}
	return answer{}, nil
}

var errLate = errors.New("the order came after the beginning of the run")

func (t *task) arm(at int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew.Monotonic() >= at {
		return errLate
	}
	t.armed = at
	return nil
}

// start lets the run begin at the announced time.
func (t *task) start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch late := crew.Monotonic() - t.armed; {
	case t.armed == 0:
		return errors.New("it is not armed")
	case late >= 0:
		return fmt.Errorf("%w, %s late", errLate, time.Duration(late))
	case t.begun:
		return errors.New("it has begun")
	}
	t.begun = true
	t.begin <- t.armed
	return nil
}

// run lets the workers work, sends their records, and reports.
func (t *task) run(ctx, stopped context.Context, at int64) {
	pause(ctx, time.Duration(at-crew.Monotonic()))
	s, err := t.crew.BeginAt(at)
	if err != nil {
		t.giveUp(err.Error())
		return
	}
	t.mu.Lock()
	t.session = s
	t.mu.Unlock()
	sender := &sender{t: t, s: s, merge: history.NewMerge(s.Clock, s.Lanes)}
	sender.merge.Slack = s.Slack
	worked, sent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		sender.run(worked)
	}()
	report, err := t.crew.Run(ctx, stopped)
	close(worked)
	<-sent
	if err != nil {
		report.Error = err.Error()
	}
	for _, l := range s.Lanes {
		report.Load.Stalls += int64(l.Stalls())
	}
	t.report(ctx, report)
}

// report sends the report until the coordinator has it. Then it waits until all frames are written.
func (t *task) report(ctx context.Context, r crew.Report) {
	t.mu.Lock()
	t.reporting = true
	t.mu.Unlock()
	told := false
	for ctx.Err() == nil {
		all, written, lost := t.spool.state()
		switch {
		case lost != "":
			t.giveUp(lost)
			return
		case told && written == all:
			t.w.o.Say(fmt.Sprintf("run %s: done; %d frames are written", t.plan.Run, all))
			t.giveUp("")
			return
		default: // even if told: the answer has the number of written frames, whose acknowledgement may be lost
			last := final{Run: t.plan.Run, Agent: t.w.me.Epoch, Frames: all, Report: r}
			if got, err := ask[ack](t.w.nc, finalSubject, last, exchangeMost); err == nil {
				t.hear()
				t.spool.take(got)
				told = got.Received == all && got.Lost == ""
			}
		}
		if pause(ctx, drainEvery); told {
			pause(ctx, sendEvery)
		}
	}
}

// settle waits a moment if the task has finished and only acknowledgements are missing.
func (t *task) settle(ctx context.Context) {
	t.mu.Lock()
	reporting := t.reporting
	t.mu.Unlock()
	if reporting {
		pause(ctx, exchangeMost)
	}
}

// processes returns the worker processes; nil before the run begins.
func (t *task) processes() []*crew.Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == nil {
		return nil
	}
	return t.session.Processes
}
