package checker_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// twoHolders is a recorded history of two workers. Each was granted the lock for a second, the second worker while the
// first one held it. An ID has two parts: the lane (one worker's log) and the operation's number in it, both counted
// from 1.
func twoHolders() *history.History {
	const ms, lane = time.Millisecond, 1 << 40
	acquire := func(worker int32, call time.Duration) history.Op {
		id := history.ID(uint64(worker+1)*lane + 1)
		return history.Op{
			ID: id, Hold: id, Worker: worker, Kind: history.Acquire, Outcome: history.OK, Token: uint64(worker) + 1,
			Call: call, Return: call + ms, TTL: 1000 * ms, Until: call + 990*ms,
		}
	}
	release := func(worker int32, call time.Duration) history.Op {
		hold := history.ID(uint64(worker+1)*lane + 1)
		return history.Op{ID: hold + 1, Hold: hold, Worker: worker, Kind: history.Release, Outcome: history.OK,
			Call: call, Return: call + ms}
	}
	return &history.History{
		Header: history.Header{
			Workers: 2, Processes: 1, Keys: 1, Claims: history.Claims{Excludes: true, Expires: true},
		},
		Ops: []history.Op{acquire(0, 10*ms), acquire(1, 30*ms), release(0, 100*ms), release(1, 120*ms)},
	}
}

func printFailures(verdicts []checker.Verdict, err error) {
	if err != nil {
		fmt.Println(err)
	}
	for _, v := range verdicts {
		if v.Status == checker.Fail {
			fmt.Printf("%s: %s\n", v.Checker, v.Cause)
		}
	}
}

func ExampleJudgeHistory() {
	printFailures(checker.JudgeHistory(twoHolders()))
	// Output:
	// exclusion: double-grant
	// linearizable: not-linearizable
}

// A run that verify keeps has a file history.bin, which is judged again in the same way.
func ExampleJudgeFile() {
	file, err := os.CreateTemp("", "*.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	if err := errors.Join(history.WriteJSONL(file, twoHolders()), file.Close()); err != nil {
		fmt.Println(err)
	}
	printFailures(checker.JudgeFile(file.Name()))
	// Output:
	// exclusion: double-grant
	// linearizable: not-linearizable
}
