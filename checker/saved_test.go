package checker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// saved are histories with the status and cause of the checker's verdict.
var saved = map[string]struct {
	checker Checker
	write   func(s *script)
	status  Status
	cause   string
}{
	"exclusion: hand-offs": {Exclusion, handOffs, Pass, ""},
	"exclusion: nobody contended": {Exclusion, func(s *script) {
		s.release(s.acquire(1, 0, 1, 300), 10, 11)
	}, Inconclusive, ""},
	"exclusion: nothing": {Exclusion, func(*script) {}, Inconclusive, ""},
	"exclusion: lost by the service": {Exclusion, func(s *script) {
		a := s.acquire(1, 10, 12, 300)
		s.fault(failsOver, 20, 60)
		b := s.acquire(2, 70, 72, 300)
		s.denied(a, 100, 101)
		s.release(b, 110, 111)
	}, Fail, "service-loss"},
	"exclusion: an acquire in two steps": {Exclusion, func(s *script) {
		a, b := s.acquire(1, 10, 12, 300), s.acquire(2, 11, 13, 300)
		s.release(a, 20, 21)
		s.release(b, 20, 21)
	}, Fail, "double-grant"},
	"exclusion: a stalled worker explains no double grant": {Exclusion, func(s *script) {
		s.fault(workerLate, 1, 5)
		a, b := s.acquire(1, 10, 12, 300), s.acquire(2, 11, 13, 300)
		s.release(a, 20, 21)
		s.release(b, 20, 21)
	}, Fail, "double-grant"},
	"exclusion: another rate explains no double grant": {Exclusion, func(s *script) {
		s.fault(nothingBreaks, 1, 5)
		a, b := s.acquire(1, 10, 12, 300), s.acquire(2, 11, 13, 300)
		s.release(a, 20, 21)
		s.release(b, 20, 21)
	}, Fail, "double-grant"},
	"exclusion: a fault by hand explains it": {Exclusion, func(s *script) {
		s.fault(nothingBreaks, 1, 5)
		s.fault(serverDies, 6, 11)
		s.Faults[1].ByHand = true
		a, b := s.acquire(1, 10, 12, 300), s.acquire(2, 11, 13, 300)
		s.release(a, 20, 21)
		s.release(b, 20, 21)
	}, Fail, "service-loss"},
	"exclusion: a fault of nobody knows what explains it": {Exclusion, func(s *script) {
		s.fault(history.Effect{}, 6, 11)
		doubleGrant(s, 10)
	}, Fail, "service-loss"},
	"exclusion: a fault that was healed a lease ago explains nothing": {Exclusion, func(s *script) {
		s.fault(failsOver, 20, 60)
		doubleGrant(s, 370)
	}, Fail, "double-grant"},
	"exclusion: a fault that was healed before either asked explains nothing": {Exclusion, func(s *script) {
		s.fault(failsOver, 20, 60)
		doubleGrant(s, 70)
	}, Fail, "double-grant"},
	"exclusion: a minority that hangs explains nothing": {Exclusion, func(s *script) {
		s.Sites = 5
		s.fault(minorityHangs, 5, 400)
		doubleGrant(s, 10)
	}, Fail, "double-grant"},
	"exclusion: a server that hangs forgets nothing": {Exclusion, func(s *script) {
		s.fault(serverHangs, 5, 400)
		doubleGrant(s, 10)
	}, Fail, "double-grant"},
	"exclusion: told of a lease that lingers, which a server forgot": {Exclusion, func(s *script) {
		s.Bounds.Linger = 800 * ms
		a := s.acquire(1, 0, 1, 300)
		s.last().Until = 1099 * ms
		s.fault(serverDies, 310, 320)
		b := s.acquire(2, 400, 401, 300)
		s.denied(a, 410, 411)
		s.release(b, 420, 421)
	}, Fail, "service-loss"},
	"exclusion: told of a lease that lingers, which no server forgot": {Exclusion, func(s *script) {
		s.Bounds.Linger = 800 * ms
		a := s.acquire(1, 0, 1, 300)
		s.last().Until = 1099 * ms
		b := s.acquire(2, 400, 401, 300)
		s.denied(a, 410, 411)
		s.release(b, 420, 421)
	}, Fail, "over-claim"},
	"exclusion: a server that died by itself": {Exclusion, func(s *script) {
		handOffs(s)
		s.op(history.Incident, -1, 9000, 9011)
		doubleGrant(s, 9010)
	}, Inconclusive, ""},
	"exclusion: a server that died by itself before either asked": {Exclusion, func(s *script) {
		handOffs(s)
		s.op(history.Incident, -1, 9000, 9001)
		doubleGrant(s, 9010)
	}, Fail, "double-grant"},
	"exclusion: a holder whose machine stood still": {Exclusion, func(s *script) {
		handOffs(s)
		overrunAfter(s, 9000)
		s.gap(0, 9003, 9314)
	}, Inconclusive, ""},
	"exclusion: a gap that is shorter than the holder was late": {Exclusion, func(s *script) {
		handOffs(s)
		overrunAfter(s, 9000)
		s.gap(0, 9003, 9010)
	}, Fail, "overrun"},
	"exclusion: a gap that is most of what the holder was late": {Exclusion, func(s *script) {
		handOffs(s)
		overrunAfter(s, 9000)
		s.gap(0, 9003, 9015)
	}, Inconclusive, ""},
	"exclusion: a gap of another process": {Exclusion, func(s *script) {
		s.Processes = 2
		handOffs(s)
		overrunAfter(s, 9000)
		s.gap(1, 9003, 9314)
	}, Fail, "overrun"},
	"exclusion: a stopped process stands still as planned": {Exclusion, func(s *script) {
		handOffs(s)
		s.fault(processStops, 9002, 9316)
		overrunAfter(s, 9000)
		s.gap(0, 9003, 9314)
	}, Fail, "overrun"},
	"exclusion: a holder that died in its late store": {Exclusion, func(s *script) {
		handOffs(s)
		a := s.acquire(11, 9000, 9001, 300)
		b := s.acquire(12, 9310, 9311, 300)
		s.on(a, history.Store, 9314, 9400).Outcome = history.Unknown
		s.op(history.Crash, 11, 9320, 9320)
		s.release(b, 9330, 9331)
	}, Pass, ""},
	"exclusion: a late store without an answer": {Exclusion, func(s *script) {
		handOffs(s)
		a := s.acquire(11, 9000, 9001, 300)
		b := s.acquire(12, 9310, 9311, 300)
		s.on(a, history.Store, 9314, 9400).Outcome = history.Unknown
		s.release(b, 9430, 9431)
	}, Fail, "overrun"},
	"exclusion: a watchdog whose process was stopped, and that was told when it went on": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		handOffs(s)
		s.fault(processStops, 9002, 9325)
		unrenewed(s, 9000)
	}, Pass, ""},
	"exclusion: a watchdog whose process was stopped, and that stored when it went on": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		handOffs(s)
		s.fault(processStops, 9002, 9325)
		a := s.acquire(11, 9000, 9001, 300)
		s.last().Until = history.Forever
		s.acquire(12, 9310, 9311, 300)
		s.on(a, history.Store, 9326, 9327)
		s.denied(a, 9330, 9331)
	}, Fail, "overrun"},
	"exclusion: a watchdog that may have renewed once more, unseen, before its process was stopped": {Exclusion,
		func(s *script) {
			s.Claims.Renews = true
			handOffs(s)
			s.fault(processStops, 9230, 9620)
			unseen(s, 9000, 9450)
		}, Pass, ""},
	"exclusion: a watchdog that had time for one more, unseen, before its process was stopped": {Exclusion,
		func(s *script) {
			s.Claims.Renews = true
			handOffs(s)
			s.fault(processStops, 9390, 9620)
			unseen(s, 9000, 9450)
		}, Fail, "renewal-failure"},
	"exclusion: a watchdog whose machine stood still": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		handOffs(s)
		unrenewed(s, 9000)
		s.gap(0, 9100, 9200)
	}, Inconclusive, ""},
	"exclusion: a watchdog that had time enough": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		handOffs(s)
		unrenewed(s, 9000)
		s.gap(0, 9100, 9120)
	}, Fail, "renewal-failure"},
	"exclusion: late messages are no excuse for a watchdog": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		s.fault(messagesLate, 9000, 9400)
		unrenewed(s, 9000)
	}, Fail, "renewal-failure"},
	"exclusion: a worker that is held is no excuse for a watchdog": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		s.fault(workerLate, 9000, 9400)
		unrenewed(s, 9000)
	}, Fail, "renewal-failure"},
	"exclusion: a dead holder's lease is lost": {Exclusion, func(s *script) {
		s.acquire(1, 10, 12, 300)
		s.op(history.Crash, 1, 15, 15)
		s.fault(serverDies, 20, 30)
		s.release(s.acquire(2, 70, 72, 300), 80, 81)
	}, Fail, "service-loss"},
	"exclusion: a dead holder's lease ends": {Exclusion, func(s *script) {
		s.acquire(1, 10, 12, 300)
		s.op(history.Crash, 1, 15, 15)
		s.busy(2, 13, 14)
		s.release(s.acquire(2, 320, 322, 300), 330, 331)
	}, Pass, ""},
	"exclusion: released by another": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 2, 300)
		b := s.acquire(2, 310, 312, 300)
		s.release(a, 320, 321) // a overran its lease and deletes b's key
		c := s.acquire(3, 330, 332, 300)
		s.denied(b, 340, 341)
		s.release(c, 350, 351)
	}, Fail, "foreign-release"},
	"exclusion: counted from the reply": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 60, 300)
		s.last().Until = 360 * ms
		b := s.acquire(2, 320, 321, 300)
		s.denied(a, 362, 363)
		s.release(b, 370, 371)
	}, Fail, "over-claim"},
	"exclusion: a holder that went on": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.on(a, history.Load, 2, 3)
		b := s.acquire(2, 310, 311, 300)
		s.on(b, history.Load, 312, 313)
		s.on(a, history.Store, 314, 315)
		s.denied(a, 316, 317)
		s.release(b, 320, 321)
	}, Fail, "overrun"},
	"exclusion: a holder that went on alone": {Exclusion, func(s *script) {
		handOffs(s)
		a := s.acquire(9, 9000, 9001, 300)
		s.on(a, history.Load, 9002, 9003)
		s.on(a, history.Store, 9314, 9315)
		s.denied(a, 9316, 9317)
	}, Pass, ""},
	"exclusion: an extension takes the lock anew": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 310, 311, 300)
		s.extend(a, 320, 321, 300)
		s.release(a, 330, 331)
		s.denied(b, 340, 341)
	}, Fail, "silent-reacquire"},
	"exclusion: extended what the server forgot and gave to another": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.fault(serverDies, 10, 20)
		b := s.acquire(2, 30, 31, 300)
		s.extend(a, 40, 41, 300)
		s.denied(a, 50, 51)
		s.release(b, 60, 61)
	}, Fail, "service-loss"},
	"exclusion: granted before and after the server forgot, and heard of when it was back": {Exclusion,
		func(s *script) {
			a := s.acquire(1, 8, 30, 300)
			s.fault(serverDies, 10, 20)
			b := s.acquire(2, 5, 31, 300)
			s.extend(a, 40, 41, 300)
			s.denied(b, 50, 51)
			s.release(a, 60, 61)
		}, Fail, "service-loss"},
	"exclusion: a watchdog that slept": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		a := s.acquire(1, 0, 1, 300)
		s.last().Until = history.Forever
		b := s.acquire(2, 310, 311, 300)
		s.last().Until = history.Forever
		s.denied(a, 330, 331)
		s.release(b, 340, 341)
	}, Fail, "renewal-failure"},
	"exclusion: refused, yet there": {Exclusion, func(s *script) {
		handOffs(s)
		token := s.busy(7, 9000, 9001).Token
		found := s.op(history.Found, -1, 9900, 9901)
		found.Token, found.Until = token, 9999*ms
	}, Fail, "phantom"},
	"exclusion: no answer, and two releases succeeded, of which one freed what was another's": {Exclusion,
		func(s *script) {
			a := s.acquire(1, 0, 1, 300)
			b := s.acquire(2, 10, 20, 300)
			s.last().Outcome, s.last().Until = history.Unknown, 0
			s.release(b, 21, 22)
			s.release(s.acquire(3, 23, 24, 300), 25, 26)
			s.release(a, 30, 31)
		}, Fail, "foreign-release"},
	"exclusion: no answer, two releases succeeded, and the server may have forgotten the first grant": {Exclusion,
		func(s *script) {
			s.fault(serverDies, 5, 6)
			a := s.acquire(1, 0, 1, 300)
			b := s.acquire(2, 10, 20, 300)
			s.last().Outcome, s.last().Until = history.Unknown, 0
			s.release(b, 21, 22)
			s.release(a, 30, 31)
		}, Fail, "service-loss"},
	"exclusion: no answer, and two releases succeeded, of which one freed nothing": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 10, 20, 300)
		s.last().Outcome, s.last().Until = history.Unknown, 0
		s.release(b, 21, 22)
		s.release(a, 30, 31)
	}, Fail, "false-release"},
	"exclusion: no answer, and its release freed another's": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 10, 20, 300)
		s.last().Outcome, s.last().Until = history.Unknown, 0
		s.release(b, 21, 22)
		s.denied(a, 30, 31)
	}, Fail, "foreign-release"},
	"exclusion: a release that was under way when the next one asked": {Exclusion, func(s *script) {
		a, b := s.acquire(1, 0, 1, 300), s.acquire(2, 310, 311, 300)
		s.release(a, 312, 313)
		c := s.acquire(3, 314, 315, 300)
		s.release(b, 320, 330)
		s.acquire(4, 321, 324, 300)
		s.acquire(5, 326, 328, 300)
		s.denied(c, 340, 341)
	}, Fail, "foreign-release"},
	"exclusion: the release of one of two who had the lock": {Exclusion, func(s *script) {
		a, b := s.acquire(1, 0, 1, 300), s.acquire(2, 310, 311, 300)
		s.release(a, 312, 313)
		c := s.acquire(3, 314, 318, 300)
		s.release(b, 319, 320)
		d := s.acquire(4, 316, 323, 300)
		s.release(c, 330, 335)
		s.acquire(5, 331, 334, 300)
		s.denied(d, 340, 341)
	}, Fail, "foreign-release"},
	"exclusion: one foreign release, and all that follow": {Exclusion, func(s *script) {
		a, b := s.acquire(1, 0, 1, 300), s.acquire(2, 310, 311, 300)
		s.release(a, 320, 321) // deletes b's key
		c := s.acquire(3, 330, 331, 300)
		s.release(b, 340, 341) // deletes c's key
		d := s.acquire(4, 350, 351, 300)
		s.release(c, 360, 361)
		s.denied(d, 370, 371)
	}, Fail, "foreign-release"},
	"exclusion: no answer, never proven": {Exclusion, func(s *script) {
		handOffs(s)
		b := s.acquire(2, 10, 20, 300)
		s.last().Outcome, s.last().Until = history.Unknown, 0
		s.denied(b, 21, 22)
	}, Pass, ""},
	"exclusion: less than the clocks may differ": {Exclusion, func(s *script) {
		s.Processes, s.Bounds.Slack = 2, 5*ms
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 28, 29, 300)
		s.last().Process = 1
		s.release(a, 31, 32)
		s.release(b, 60, 61)
		s.last().Process = 1
	}, Inconclusive, ""},
	"exclusion: hand-offs that are shorter than the clocks may differ": {Exclusion, func(s *script) {
		s.Processes, s.Bounds.Slack = 2, 10*ms
		for n := range 80 {
			at, process := 20*time.Duration(n), int16(n%2)
			a := s.acquire(int32(1+process), at, at+1, 300)
			s.last().Process = process
			s.busy(int32(2-process), at+8, at+9).Process = 1 - process
			s.release(a, at+16, at+17).Process = process
		}
	}, Inconclusive, ""},
	"exclusion: hand-offs that are longer than the clocks may differ": {Exclusion, func(s *script) {
		s.Processes, s.Bounds.Slack = 2, 5*ms
		for n := range 80 {
			at, process := 20*time.Duration(n), int16(n%2)
			a := s.acquire(int32(1+process), at, at+1, 300)
			s.last().Process = process
			s.busy(int32(2-process), at+8, at+9).Process = 1 - process
			s.release(a, at+16, at+17).Process = process
		}
	}, Pass, ""},
	"exclusion: no slack within a process": {Exclusion, func(s *script) {
		s.Processes, s.Bounds.Slack = 2, 50*ms
		s.acquire(1, 10, 12, 300)
		s.op(history.Crash, 1, 15, 15)
		s.release(s.acquire(2, 280, 282, 300), 290, 291)
	}, Fail, "double-grant"},
	"exclusion: a lease without a TTL ends when it was said to": {Exclusion, func(s *script) {
		handOffs(s)
		a := s.acquire(11, 9000, 9001, 0)
		s.last().Until = 9300 * ms
		s.busy(12, 9100, 9101)
		b := s.acquire(12, 9310, 9311, 0)
		s.last().Until = 9600 * ms
		s.denied(a, 9320, 9321)
		s.release(b, 9330, 9331)
	}, Pass, ""},
	"exclusion: a lease that a server forgot began no earlier for that": {Exclusion, func(s *script) {
		handOffs(s)
		late := s.acquire(11, 9000, 9411, 300)
		s.busy(12, 9005, 9006)
		s.release(s.acquire(12, 9120, 9121, 300), 9240, 9241)
		s.fault(serverDies, 9530, 9531)
		s.denied(late, 9532, 9533)
	}, Pass, ""},
	"exclusion: a lease that was over at its release began that much earlier": {Exclusion, func(s *script) {
		handOffs(s)
		late := s.acquire(11, 9000, 9411, 300)
		s.busy(12, 9005, 9006)
		s.release(s.acquire(12, 9120, 9121, 300), 9240, 9241)
		s.denied(late, 9532, 9533)
	}, Fail, "double-grant"},
	"exclusion: a release of what was granted late, without an answer, after a server had forgotten the " +
		"first": {Exclusion, func(s *script) {
		handOffs(s)
		late := s.acquire(12, 9000, 10000, 300)
		s.last().Outcome = history.Unknown
		first := s.acquire(11, 10300, 10301, 300)
		s.fault(serverDies, 10302, 10303)
		s.release(late, 10304, 10305)
		s.release(s.acquire(13, 10348, 10349, 300), 10460, 10461)
		s.denied(first, 10420, 10421)
	}, Fail, "service-loss"},
	"exclusion: a release of what was granted late, after a server had forgotten the first": {Exclusion,
		func(s *script) {
			handOffs(s)
			first := s.acquire(12, 9330, 9331, 300)
			s.fault(serverDies, 9409, 9410)
			s.release(s.acquire(11, 9000, 9411, 300), 9412, 9413)
			s.release(s.acquire(11, 9414, 9415, 300), 9600, 9601)
			s.denied(first, 9430, 9431)
		}, Fail, "service-loss"},
	"exclusion: a lease without a TTL that was granted again": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 0)
		s.last().Until = 300 * ms
		b := s.acquire(2, 100, 101, 0)
		s.last().Until = 400 * ms
		s.release(a, 200, 201)
		s.release(b, 210, 211)
	}, Fail, "double-grant"},
	"exclusion: granted within a lease that a re-entry prolonged": {Exclusion, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.reenter(a, 200, 201, 300)
		s.op(history.Crash, 1, 210, 210)
		s.release(s.acquire(2, 400, 401, 300), 410, 411)
	}, Fail, "false-extension"},
	"exclusion: granted to another, who had it, before an extension": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 290, 390, 300).Outcome = history.Unknown
		b := s.acquire(2, 400, 401, 300)
		s.extend(a, 450, 451, 300)
		s.release(b, 500, 501)
	}, Fail, "false-extension"},
	"exclusion: a late release freed the second's, whose lease seems to have begun before": {Exclusion,
		func(s *script) {
			a := s.acquire(1, 216, 217, 400)
			b := s.acquire(2, 300, 902, 400)
			s.release(a, 901, 903)
			s.denied(b, 1003, 1004)
		}, Fail, "foreign-release"},
	"exclusion: an extension that came late took the lock": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 290, 420, 300)
		b := s.acquire(2, 400, 401, 300)
		s.denied(b, 430, 431)
		s.release(a, 440, 441)
	}, Fail, "silent-reacquire"},
	"exclusion: the same, with one token for both": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		token := s.last().Token
		s.extend(a, 290, 420, 300)
		b := s.acquire(2, 400, 401, 300)
		s.last().Token = token
		s.denied(b, 430, 431)
		s.release(a, 440, 441)
	}, Fail, "double-grant"},
	"exclusion: a renewal without an answer is believed in": {Exclusion, func(s *script) {
		s.Claims.Renews = true
		a := s.acquire(1, 0, 1, 300)
		x := s.extend(a, 100, 190, 300)
		x.Outcome, x.Until = history.Unknown, 400*ms
		s.release(s.acquire(2, 350, 351, 300), 360, 361)
		s.denied(a, 380, 381)
	}, Fail, "over-claim"},
	"exclusion: a release of what was over succeeded, and took nothing": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(s.acquire(2, 320, 321, 300), 340, 341)
		s.release(a, 400, 401)
	}, Fail, "false-release"},
	"exclusion: the same, and took the lock of the one who had it": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 320, 321, 300)
		s.release(a, 400, 401)
		s.denied(b, 410, 411)
	}, Fail, "foreign-release"},
	"exclusion: fences that were drawn in another order than the grants": {Exclusion, func(s *script) {
		s.Claims.Fences, s.Fenced = true, true
		a := s.acquire(1, 0, 450, 300)
		s.last().Fence = 2
		b := s.acquire(2, 400, 401, 300)
		s.last().Fence = 1
		s.use(b, 0, 0, 405, 480)
		s.use(a, 0, 0, 460, 470)
		s.release(b, 500, 501)
	}, Fail, "regressed"},
	"exclusion: a re-entry that finds what the server has forgotten": {Exclusion, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.fault(serverDies, 10, 20)
		b := s.acquire(2, 30, 31, 300)
		s.release(b, 32, 33)
		s.reenter(a, 40, 41, 300).Value = 2
		s.release(a, 50, 51)
	}, Fail, "service-loss"}, // another server may have answered
	"exclusion: a re-entry that is counted as the first": {Exclusion, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.fault(serverDies, 10, 20)
		b := s.acquire(2, 30, 31, 300)
		s.release(b, 32, 33)
		s.reenter(a, 40, 41, 300).Value = 1
		s.release(a, 50, 51)
	}, Fail, "service-loss"},
	"exclusion: an extension without an answer after a release that may be an inner one": {Exclusion, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.on(a, history.Load, 2, 3)
		op := s.reenter(a, 10, 20, 300)
		op.Outcome, op.Reason, op.Until = history.Unknown, history.Timeout, 0
		s.release(a, 30, 31)
		op = s.extend(a, 100, 150, 300)
		op.Outcome, op.Reason = history.Unknown, history.Timeout
		b := s.acquire(2, 330, 331, 300)
		s.on(a, history.Store, 340, 341)
		s.release(a, 342, 343).Outcome = history.Unknown
		s.release(b, 350, 351)
	}, Inconclusive, ""}, // it was told to believe in the lock
	"exclusion: granted after an inner release that was refused": {Exclusion, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.last().Value = 1
		s.reenter(a, 2, 3, 300).Value = 2
		op := s.release(a, 4, 5)
		op.Value, op.Outcome, op.Reason = 1, history.Failed, history.Refused
		b := s.acquire(2, 100, 101, 300)
		s.release(b, 110, 111)
		s.release(a, 120, 121)
	}, Fail, "double-grant"},
	"exclusion: released after another's grant, and an extension without an answer": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 100)
		op := s.extend(a, 50, 90, 100)
		op.Outcome, op.Reason, op.Until = history.Unknown, history.Timeout, 0
		b := s.acquire(2, 210, 211, 100)
		s.release(a, 230, 231)
		s.release(b, 240, 241)
	}, Fail, "false-release"},
	"exclusion: released after another's grant, and nothing took it back": {Exclusion, func(s *script) {
		a := s.acquire(1, 0, 1, 100)
		b := s.acquire(2, 210, 211, 100)
		s.release(a, 230, 231)
		s.release(b, 240, 241)
	}, Fail, "false-release"},
	"exclusion: a re-entry that prolongs nothing": {Exclusion, func(s *script) {
		handOffs(s)
		s.Claims.Reentrant = true
		a := s.acquire(11, 9000, 9001, 300)
		until := s.last().Until
		s.reenter(a, 9200, 9201, 300).Until = until
		s.op(history.Crash, 11, 9210, 9210)
		s.release(s.acquire(12, 9400, 9401, 300), 9410, 9411)
	}, Pass, ""},
	"exclusion: an acquire without an answer that was extended": {Exclusion, func(s *script) {
		a := s.acquire(1, 10, 20, 300)
		s.last().Outcome, s.last().Until = history.Unknown, 0
		s.extend(a, 40, 41, 300)
		b := s.acquire(2, 50, 51, 300)
		s.release(a, 60, 61)
		s.release(b, 70, 71)
	}, Fail, "double-grant"},
	"exclusion: a hold of no length inside of a lease": {Exclusion, func(s *script) {
		handOffs(s)
		a := s.acquire(11, 9000, 9001, 300)
		b := s.acquire(12, 9100, 9101, 300)
		s.release(b, 9101, 9102)
		s.op(history.Crash, 11, 9105, 9105)
		_ = a
	}, Fail, "double-grant"},
	"exclusion: a store after the release while another holds": {Exclusion, func(s *script) {
		handOffs(s)
		a := s.acquire(11, 9000, 9001, 300)
		s.on(a, history.Load, 9002, 9003)
		s.release(a, 9004, 9005)
		b := s.acquire(12, 9006, 9007, 300)
		s.on(a, history.Store, 9010, 9011)
		s.release(b, 9020, 9021)
	}, Fail, "overrun"},
	"exclusion: more than the clocks may differ": {Exclusion, func(s *script) {
		s.Processes, s.Bounds.Slack = 2, 5*ms
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 18, 19, 300)
		s.last().Process = 1
		s.release(a, 31, 32)
		s.release(b, 60, 61)
		s.last().Process = 1
	}, Fail, "double-grant"},

	"lease-validity: hand-offs": {leaseValidity, handOffs, Pass, ""},
	"lease-validity: released in the very stamp in which its extension was answered": {leaseValidity, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		op := s.extend(a, 100, 110, 300)
		op.Outcome, op.Reason, op.Until = history.Failed, history.Lost, 0
		s.release(a, 110, 111).Outcome = history.Unknown
	}, Pass, ""},
	"lease-validity: made shorter, and extended after its end": {leaseValidity, func(s *script) {
		a := s.acquire(1, 0, 1, 1000)
		s.extend(a, 10, 11, 60)
		s.extend(a, 520, 521, 1000)
		s.release(a, 530, 531)
	}, Fail, "silent-reacquire"},
	"lease-validity: made shorter by a call that another overlaps": {leaseValidity, func(s *script) {
		a := s.acquire(1, 0, 1, 1000)
		s.extend(a, 10, 14, 60)
		s.extend(a, 11, 13, 1000)
		s.extend(a, 520, 521, 1000)
		s.release(a, 530, 531)
	}, Pass, ""},
	"lease-validity: nothing": {leaseValidity, func(*script) {}, Inconclusive, ""},
	"lease-validity: past every reply": {leaseValidity, func(s *script) {
		s.release(s.acquire(1, 0, 1, 300), 9, 10)
		s.Ops[0].Until = 302 * ms
	}, Fail, "over-claim"},
	"lease-validity: from the reply, each time": {leaseValidity, func(s *script) {
		for n := range 4 {
			at := 1000 * time.Duration(n)
			a := s.acquire(1, at, at+60, 300)
			s.last().Until = s.last().Return + 295*ms
			s.release(a, at+70, at+71)
		}
	}, Fail, "over-claim"},
	"activity: a fault that was not healed": {Activity, func(s *script) {
		turns(s)
		s.fault(serverHangs, 20, 40)
		s.last().Outcome = history.Failed
	}, Inconclusive, ""},
	"activity: a fault whose end is missing": {Activity, func(s *script) {
		turns(s)
		s.fault(serverHangs, 20, 40)
		s.Ops = s.Ops[:len(s.Ops)-1]
	}, Inconclusive, ""},
	"activity: a fault that was healed": {Activity, func(s *script) {
		turns(s)
		s.fault(serverHangs, 20, 40)
	}, Pass, ""},
	"lease-validity: one stall before the sends of four": {leaseValidity, func(s *script) {
		for n := range int32(4) {
			a := s.acquire(1+n, 0, 60, 300)
			s.last().Key, s.last().Until = n, s.last().Return+295*ms
			s.release(a, 70, 71)
		}
	}, Pass, ""},
	"lease-validity: one stall before the send": {leaseValidity, func(s *script) {
		a := s.acquire(1, 0, 60, 300)
		s.last().Until = 310 * ms
		s.release(a, 70, 71)
	}, Pass, ""},
	"lease-validity: gone early": {leaseValidity, func(s *script) {
		s.denied(s.acquire(1, 0, 1, 300), 100, 101)
	}, Fail, "premature-loss"},
	"lease-validity: gone early by another's release": {leaseValidity, func(s *script) {
		a, b := s.acquire(1, 0, 1, 300), s.acquire(2, 310, 311, 300)
		s.release(a, 320, 321)
		s.denied(b, 330, 331)
	}, Fail, "foreign-release"},
	"lease-validity: gone early by a fault": {leaseValidity, func(s *script) {
		s.fault(serverDies, 20, 30)
		s.denied(s.acquire(1, 0, 1, 300), 100, 101)
	}, Pass, ""},
	"lease-validity: expired as it should": {leaseValidity, func(s *script) {
		s.denied(s.acquire(1, 0, 1, 300), 310, 311)
	}, Pass, ""},
	"lease-validity: extended after the end": {leaseValidity, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 400, 401, 300)
		s.release(a, 410, 411)
	}, Fail, "silent-reacquire"},
	"lease-validity: extended after it was given back": {leaseValidity, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 11)
		s.extend(a, 20, 21, 300)
	}, Fail, "silent-reacquire"},
	"lease-validity: an extension that landed after its client gave up": {leaseValidity, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		x := s.extend(a, 200, 210, 300)
		x.Outcome, x.Reason, x.Until = history.Unknown, history.Timeout, 0 // it may have taken effect at 299
		s.extend(a, 550, 551, 300)
		s.release(a, 560, 561)
	}, Pass, ""},
	"lease-validity: told lost within the lease that a re-entry prolonged": {leaseValidity, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.reenter(a, 200, 201, 300)
		s.denied(a, 400, 401)
	}, Fail, "false-extension"},
	"lease-validity: counted from a moment after a short stall": {leaseValidity, func(s *script) {
		s.acquire(1, 0, 2, 60)
		s.last().Until = 60*ms + 300*time.Microsecond // as in redsync: 59.4 ms from the moment when it had a CPU
	}, Pass, ""},
	"lease-validity: counted from later than its reply": {leaseValidity, func(s *script) {
		s.acquire(1, 0, 2, 60)
		s.last().Until = 63 * ms
	}, Fail, "over-claim"},
	"lease-validity: not renewed": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		s.denied(s.acquire(1, 0, 1, 300), 310, 311)
	}, Fail, "renewal-failure"},
	"lease-validity: not renewed while messages were late": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		s.fault(messagesLate, 20, 290)
		s.denied(s.acquire(1, 0, 1, 300), 310, 311)
	}, Fail, "renewal-failure"},
	"lease-validity: not renewed while nobody was served": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		s.fault(serverHangs, 20, 290)
		s.denied(s.acquire(1, 0, 1, 300), 310, 311)
	}, Pass, ""},
	"lease-validity: not renewed while it paused, first by itself, then because it was asked to": {leaseValidity,
		func(s *script) {
			s.Claims.Renews, s.Bounds.Gap = true, 10*ms
			s.Faults = append(s.Faults, history.Injection{Effect: processStops, From: 150 * ms, To: 400 * ms})
			s.op(history.Fault, -1, 150, 151)
			a := s.acquire(1, 0, 100, 300)
			s.gap(0, 120, 180) // a third of the lease by both pauses
			s.gap(0, 180, 220)
			s.op(history.Heal, -1, 220, 221)
			s.denied(a, 410, 411)
		}, Inconclusive, ""},
	"lease-validity: not renewed while a minority of the sites hung: no more than a majority may have granted " +
		"it": {leaseValidity, func(s *script) {
		s.Claims.Renews, s.Sites = true, 3
		s.fault(minorityHangs, 20, 290)
		s.denied(s.acquire(1, 0, 1, 300), 310, 311)
	}, Pass, ""},
	"lease-validity: not renewed while the machine paused": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		s.gap(0, 50, 200)
		s.denied(s.acquire(1, 0, 1, 300), 310, 311)
	}, Inconclusive, ""},
	"lease-validity: not renewed, for nobody answered": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 100, 205, 300).Outcome = history.Unknown
		s.denied(a, 310, 311)
	}, Inconclusive, ""},
	"lease-validity: not renewed, and one answer was late": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 100, 190, 300).Outcome = history.Unknown
		s.denied(a, 310, 311)
	}, Fail, "renewal-failure"},
	"lease-validity: told lost between changes of roles of two failovers": {leaseValidity, func(s *script) {
		s.op(history.Role, -1, 40, 50).Value = 1
		a := s.acquire(1, 80, 81, 300)
		s.denied(a, 90, 91)
		s.op(history.Role, -1, 120, 130).Value = 2
	}, Fail, "premature-loss"},
	"lease-validity: not renewed, for an answer was lost": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		s.fault(messagesLate, 90, 290)
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 100, 300, 300).Outcome = history.Unknown
		s.denied(a, 310, 311)
	}, Fail, "renewal-failure"},
	"lease-validity: not renewed while a server was out by itself, and the process was paused for a " +
		"moment": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		s.gap(0, 5, 6)
		s.op(history.Incident, -1, 20, 290)
		s.denied(s.acquire(1, 0, 1, 300), 310, 311)
	}, Pass, ""},
	"lease-validity: gone early, long after a fault": {leaseValidity, func(s *script) {
		s.fault(serverDies, 20, 30)
		s.denied(s.acquire(1, 1000, 1001, 300), 1100, 1101)
	}, Fail, "premature-loss"},
	"lease-validity: gone early while a minority hangs": {leaseValidity, func(s *script) {
		s.Sites = 5
		s.fault(minorityHangs, 0, 300)
		s.denied(s.acquire(1, 1, 2, 300), 100, 101)
	}, Fail, "premature-loss"},
	"lease-validity: a release that was sent twice": {leaseValidity, func(s *script) {
		s.fault(messagesLate, 50, 110)
		s.denied(s.acquire(1, 0, 1, 300), 100, 125)
	}, Pass, ""},
	"lease-validity: ran out on the way of its release": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		s.denied(s.acquire(1, 0, 1, 300), 200, 310)
	}, Pass, ""},
	"lease-validity: extended while it is given back": {leaseValidity, func(s *script) {
		s.Claims.Renews = true
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 30, 31, 300)
		s.last().Outcome, s.last().Reason, s.last().Until = history.Failed, history.Lost, 0
		s.release(a, 20, 40)
	}, Pass, ""},
	"lease-validity: re-entered after the end": {leaseValidity, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.acquire(1, 400, 401, 300)
		s.last().Hold = a
		s.release(a, 410, 411)
	}, Pass, ""}, // the lock may have been granted anew
	"lease-validity: re-entered after the end, and counted": {leaseValidity, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.reenter(a, 400, 401, 300).Value = 2
		s.release(a, 410, 411)
	}, Fail, "silent-reacquire"},

	"release: hand-offs": {release, handOffs, Pass, ""},
	"release: nothing":   {release, func(s *script) { s.acquire(1, 0, 1, 300) }, Inconclusive, ""},
	"release: of what was another's by then": {release, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 310, 311, 300)
		s.release(a, 320, 321)
		s.denied(b, 330, 331)
	}, Fail, "foreign-release"},
	"release: twice": {release, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 20, 21)
		s.release(a, 30, 31)
	}, Fail, "double-release"},
	"release: long after the lease, and another came and went": {release, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 310, 311, 300)
		s.release(b, 320, 321)
		s.release(a, 900, 901)
	}, Fail, "false-release"},
	"release: repeated after one without an answer, and another came": {release, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		x := s.release(a, 10, 20)
		x.Outcome, x.Reason = history.Unknown, history.Timeout
		b := s.acquire(2, 30, 31, 300)
		s.release(a, 40, 41)
		s.denied(b, 50, 51)
	}, Fail, "foreign-release"},
	"release: repeated after one without an answer": {release, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		x := s.release(a, 10, 20)
		x.Outcome, x.Reason = history.Unknown, history.Timeout
		s.release(a, 40, 41)
	}, Pass, ""},
	"release: of a re-entered hold that tells no counts": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.reenter(a, 10, 11, 300)
		s.release(a, 20, 21)
		s.release(a, 30, 31)
	}, Pass, ""},
	"release: of a re-entered hold, once too often": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.reenter(a, 10, 11, 300)
		s.release(a, 20, 21)
		s.release(a, 30, 31)
		s.release(a, 40, 41)
	}, Fail, "double-release"},
	"exclusion: granted between an inner and the outer release that tell no counts": {Exclusion, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.reenter(a, 10, 11, 300)
		s.release(a, 20, 21)
		b := s.acquire(2, 25, 26, 300)
		s.release(a, 30, 31)
		s.release(b, 40, 41)
	}, Fail, "double-grant"},
	"fencing: a token was given twice": {fencing, func(s *script) {
		s.Claims.Fences = true
		for _, at := range []time.Duration{0, 20, 40} {
			a := s.acquire(1, at, at+1, 300)
			s.last().Fence = int64(1 + at/40)
			s.release(a, at+10, at+11)
		}
	}, Fail, "repeated"},
	"exclusion: a store that a fence took after the next holder had read": {Exclusion, func(s *script) {
		s.Fenced = true
		overruns(s)
	}, Fail, "overrun"},
	"exclusion: a store that a fence took before the next holder had read": {Exclusion, func(s *script) {
		s.Fenced = true
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 310, 311, 300)
		last := s.use(a, 0, 0, 10, 320)
		last = s.use(b, last, 1, 330, 340)
		s.release(b, 350, 351)
		s.denied(a, 360, 361)
		s.final(last, 2, 600)
	}, Inconclusive, ""},
	"lost-updates: a holder overran its lease": {lostUpdates, overruns, Fail, "overrun"},
	"lost-updates: a holder stood still and overran its lease": {lostUpdates, func(s *script) {
		overruns(s)
		s.gap(0, 20, 500)
	}, Inconclusive, ""},
	"lost-updates: a holder stood still for less than it overran": {lostUpdates, func(s *script) {
		overruns(s)
		s.gap(0, 20, 60)
	}, Fail, "overrun"},
	"lost-updates: without names, a holder stood still and its store was slow": {lostUpdates, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 310, 311, 300)
		s.use(b, 0, 0, 320, 330)
		s.release(b, 340, 341)
		s.use(a, 0, 0, 10, 510)
		s.last().Return = 600 * ms // the call was late by the pause; the server took the rest
		s.denied(a, 620, 621)
		s.final(0, 1, 700)
		s.gap(0, 20, 270)
		for i := range s.Ops {
			if op := &s.Ops[i]; op.Kind == history.Load || op.Kind == history.Store || op.Kind == history.Final {
				op.Seen, op.Value = 0, op.Value+5
			}
		}
	}, Inconclusive, ""},
	"lost-updates: another process stood still": {lostUpdates, func(s *script) {
		s.Processes = 2
		overruns(s)
		s.gap(1, 20, 500)
	}, Fail, "overrun"},
	"lost-updates: a server ended unexpectedly": {lostUpdates, func(s *script) {
		collide(s)
		s.op(history.Incident, -1, 15, 35)
	}, Inconclusive, ""},
	"lost-updates: a server ended unexpectedly long before": {lostUpdates, func(s *script) {
		s.op(history.Incident, -1, 0, 1)
		s.release(s.acquire(3, 2, 3, 300), 2000, 2001)
		collideAt(s, 3000)
	}, Fail, "exclusion"},
	"lost-updates: a server that was ended": {lostUpdates, func(s *script) {
		s.fault(serverDies, 15, 35)
		collide(s)
	}, Fail, "exclusion"},
	"release: refused within the lease": {release, func(s *script) {
		s.denied(s.acquire(1, 0, 1, 300), 20, 21)
		s.Ops[len(s.Ops)-1].Reason = history.Conflict
	}, Fail, "false-refusal"},
	"release: refused within the lease, by a server that was broken": {release, func(s *script) {
		s.fault(serverDies, 15, 35)
		s.denied(s.acquire(1, 0, 1, 300), 20, 21)
		s.Ops[len(s.Ops)-1].Reason = history.Conflict
	}, Pass, ""},
	"release: refused after the lease": {release, func(s *script) {
		s.denied(s.acquire(1, 0, 1, 300), 320, 321)
		s.Ops[len(s.Ops)-1].Reason = history.Conflict
	}, Pass, ""},
	"release: of what another had, and a re-entry without an answer may have taken again": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 100)
		op := s.reenter(a, 50, 90, 100)
		op.Outcome, op.Reason, op.Until = history.Unknown, history.Timeout, 0
		b := s.acquire(2, 210, 211, 100)
		s.release(b, 212, 213)
		s.release(a, 230, 231)
	}, Pass, ""},
	"release: twice, and a re-entry without an answer may have taken it again": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 100)
		s.last().Value = 1
		op := s.reenter(a, 10, 30, 100)
		op.Outcome, op.Reason, op.Until = history.Unknown, history.Timeout, 0
		s.release(a, 40, 41)
		s.release(a, 60, 61)
	}, Pass, ""},
	"release: refused, then entered for the second time": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.last().Value = 1
		s.denied(a, 20, 21)
		s.reenter(a, 30, 31, 300).Value = 2
		s.release(a, 40, 41)
	}, Fail, "false-refusal"},
	"release: of what another had, and a re-entry without an answer came later": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 100)
		b := s.acquire(2, 210, 211, 100)
		s.release(b, 212, 213)
		s.release(a, 230, 231)
		op := s.reenter(a, 240, 260, 100)
		op.Outcome, op.Reason, op.Until = history.Unknown, history.Timeout, 0
	}, Fail, "false-release"},
	"release: an inner one was refused as another's": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.last().Value = 1
		op := s.release(a, 10, 11)
		op.Value, op.Outcome, op.Reason = 1, history.Failed, history.Busy
	}, Fail, "false-refusal"},
	"release: refused, then entered anew": {release, func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.reenter(a, 10, 11, 300).Value = 2
		s.denied(a, 20, 21)
		s.reenter(a, 30, 31, 300).Value = 1 // the server had forgotten it
		s.release(a, 40, 41)
	}, Pass, ""},
	"release: refused, then done": {release, func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.denied(a, 20, 21)
		s.release(a, 30, 31)
	}, Fail, "false-refusal"},

	"exclusion: granted twice where a replica took over by itself while the primary hung": {Exclusion, func(s *script) {
		s.fault(serverHangs, 0, 20)
		s.op(history.Role, -1, 4, 12)
		doubleGrant(s, 10)
	}, Inconclusive, ""},
	"exclusion: granted twice where a fault let a replica take over": {Exclusion, func(s *script) {
		s.fault(failsOver, 0, 20)
		s.op(history.Role, -1, 4, 5)
		doubleGrant(s, 10)
	}, Fail, "service-loss"},

	"linearizable: hand-offs": {linearizable, handOffs, Pass, ""},
	"linearizable: one hold":  {linearizable, func(s *script) { s.acquire(1, 0, 1, 300) }, Inconclusive, ""},
	"linearizable: granted twice": {linearizable, func(s *script) {
		a, b := s.acquire(1, 10, 12, 300), s.acquire(2, 11, 13, 300)
		s.release(a, 20, 21)
		s.release(b, 20, 21)
	}, Fail, "not-linearizable"},
}

// turns are hand-offs between two workers that wait for each other.
func turns(s *script) {
	for n := range time.Duration(50) {
		a := s.acquire(int32(n%2), 10*n, 10*n+1, 300)
		s.busy(int32((n+1)%2), 10*n+2, 10*n+3)
		s.release(a, 10*n+4, 10*n+5)
	}
}

// doubleGrant is a lock that two workers hold at the same time.
func doubleGrant(s *script, at time.Duration) {
	a, b := s.acquire(11, at, at+2, 300), s.acquire(12, at+1, at+3, 300)
	s.release(a, at+10, at+11)
	s.release(b, at+10, at+11)
}

// overrunAfter is a holder that stores when its lease is over and another worker holds the lock.
func overrunAfter(s *script, at time.Duration) {
	a := s.acquire(11, at, at+1, 300)
	s.on(a, history.Load, at+2, at+3)
	b := s.acquire(12, at+310, at+311, 300)
	s.on(a, history.Store, at+314, at+315)
	s.denied(a, at+316, at+317)
	s.release(b, at+320, at+321)
}

// unrenewed is a holder that believes in a lease after another worker was granted the lock.
func unrenewed(s *script, at time.Duration) {
	a := s.acquire(11, at, at+1, 300)
	s.last().Until = history.Forever
	b := s.acquire(12, at+310, at+311, 300)
	s.last().Until = history.Forever
	s.denied(a, at+330, at+331)
	s.release(b, at+340, at+341)
}

// unseen is a hold that its library may renew at any time, and a later hold of another worker.
func unseen(s *script, at, later time.Duration) {
	a := s.acquire(11, at, at+1, 300)
	s.last().Until = history.Forever
	renewal := s.on(a, history.Extend, at+1, later+200)
	renewal.Outcome, renewal.Reason, renewal.TTL = history.Unknown, history.Other, 300*ms
	b := s.acquire(12, later, later+1, 300)
	s.last().Until = history.Forever
	s.denied(a, later+201, later+202)
	s.release(b, later+210, later+211)
}

// handOffs are eight workers that wait for each other.
func handOffs(s *script) {
	for n := range 80 {
		at := 10 * time.Duration(n)
		s.busy(int32((n+1)%8), at+3, at+4)
		a := s.acquire(int32(n%8), at+1, at+2, 300)
		s.on(a, history.Load, at+3, at+4)
		s.on(a, history.Store, at+5, at+6)
		s.release(a, at+7, at+8)
	}
}

func TestSaved(t *testing.T) {
	for name, test := range saved {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			test.write(s)
			c := s.prepare(t)
			v := test.checker.Check(c)
			if v.Status != test.status || v.Cause != test.cause {
				t.Fatalf("got %v %q, want %v %q\n%s\n%s", v.Status, v.Cause, test.status, test.cause, v.Summary,
					strings.Join(v.Story, "\n"))
			}
			if v.Summary == "" || v.Status == Fail && test.cause != "not-linearizable" &&
				(len(v.Story) == 0 || len(v.Evidence) == 0) {
				t.Errorf("got no summary, story or evidence: %+v", v)
			}
			if v.Status == Fail {
				t.Logf("%s\n%s", v.Summary, strings.Join(v.Story, "\n"))
			}
		})
	}
}

// TestTheFencePutsUsesInOrder: if the counter has seen a holder's greater token, that holder cannot overrun an
// earlier holder.
func TestTheFencePutsUsesInOrder(t *testing.T) {
	s := newScript()
	s.Fenced, s.Claims.Fences = true, true
	a := s.acquire(1, 54, 55, 300)
	s.last().Fence = 1
	s.on(a, history.Load, 55, 56)
	s.fault(serverDies, 56, 57)
	b := s.acquire(2, 5, 60, 50)
	s.last().Fence = 2
	s.on(b, history.Load, 61, 62)
	s.on(b, history.Store, 90, 91)
	s.release(b, 92, 93)
	s.denied(a, 100, 101)
	if v := Exclusion.Check(s.prepare(t)); v.Violations != 1 || v.Cause != history.ServiceLoss {
		t.Errorf("%d violations: %v", v.Violations, v.Causes)
	}
}

// longAfter are the saved histories in which a lease was over when it was released.
var longAfter = []string{"release: long after the lease, and another came and went",
	"release: of what was another's by then",
	"release: of what another had, and a re-entry without an answer came later"}

// TestServersThatFailByThemselvesAccuseNobody lets a server fail all the time: the lock is not blamed for holds that
// the server may have forgotten or granted twice.
func TestServersThatFailByThemselvesAccuseNobody(t *testing.T) {
	fails := map[string]int{}
	for title, tt := range saved {
		if tt.status != Fail ||
			!slices.Contains([]string{fencing.Name, lostUpdates.Name, release.Name, linearizable.Name},
				tt.checker.Name) {
			continue
		}
		s := newScript()
		if tt.write(s); len(s.Faults) > 0 {
			continue
		}
		fails[tt.checker.Name]++
		s.op(history.Incident, -1, 0, 100_000)
		v := tt.checker.Check(s.prepare(t))
		if slices.Contains(longAfter, title) {
			if v.Status != Fail { // a server cannot forget a lease that was over
				t.Errorf("%s: %s", title, v.Summary)
			}
		} else if v.Status != Inconclusive || v.Misses["unplanned"] == 0 {
			t.Errorf("%s: %s %s: %s", title, v.Status, v.Cause, v.Summary)
		}
	}
	for name, tt := range nestings {
		s := newBuilder()
		s.h.Claims.Expires = true
		if tt.write(s); tt.status != Fail {
			continue
		}
		fails[reentrancy.Name]++
		s.add(history.Op{Kind: history.Incident, Worker: -1, Key: -1, Call: 0, Return: dur(100)})
		if v := judgeReentrancy(s.prepared()); v.Status != Inconclusive {
			t.Errorf("reentrancy: %s: %s %s: %s", name, v.Status, v.Cause, v.Summary)
		}
	}
	t.Log(fails)
	if len(fails) < 5 {
		t.Errorf("too few histories that fail: %v", fails)
	}
}

// TestMinoritiesAddUp: a lock is idle while two faults stop servers. Each fault alone leaves a majority. The two
// faults come at the same time, less than a lease apart, or far apart.
func TestMinoritiesAddUp(t *testing.T) {
	for to, want := range map[time.Duration]Status{4000: Pass, 1900: Pass, 100: Fail} {
		s := newScript()
		s.Sites = 5
		s.release(s.acquire(1, 0, 1, 300), 10, 11)
		s.fault(minorityHangs, 20, to)
		s.fault(minorityHangs, 2000, 4000)
		for at := time.Duration(2100); at < 4500; at += 50 {
			s.busy(2, at, at+1)
		}
		s.release(s.acquire(2, 4600, 4601, 300), 4610, 4611)
		s.op(history.End, 2, 2100, 4612)
		if v := judgeLiveness(s.prepare(t)); v.Status != want {
			t.Errorf("to %d: %s %s, want %s", to, v.Status, v.Summary, want)
		}
	}
}

// TestNamesOfFaultsDecideNothing gives the faults other names, also those of the suite's own faults.
func TestNamesOfFaultsDecideNothing(t *testing.T) {
	names := []string{"stall-worker", "kill-primary", "clock-forward", "drop-reply", "mine"}
	judged := func(write func(*script), name string) string {
		s := newScript()
		write(s)
		for i := range s.Faults {
			s.Faults[i].Name = name
		}
		verdicts, err := Judge(s.prepare(t))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, v := range verdicts {
			text += fmt.Sprintln(v.Checker, v.Status, v.Cause, v.Exposed, v.Violations, v.Causes, v.Misses,
				len(v.Evidence))
		}
		return text
	}
	renamed := 0
	for title, tt := range saved {
		s := newScript()
		if tt.write(s); len(s.Faults) == 0 {
			continue
		}
		renamed++
		want := judged(tt.write, s.Faults[0].Name)
		for _, name := range names {
			if got := judged(tt.write, name); got != want {
				t.Errorf("%s: as %s\n%swant\n%s", title, name, got, want)
			}
		}
	}
	if renamed < 20 {
		t.Errorf("only %d histories with faults", renamed)
	}
}

// use lets a hold load what a store wrote, and store one more.
func (s *script) use(hold history.ID, seen history.ID, views int64, loads, stores time.Duration) history.ID {
	load := s.on(hold, history.Load, loads, loads+1)
	load.Seen, load.Value = seen, views
	store := s.on(hold, history.Store, stores, stores+1)
	store.Seen, store.Value = seen, views+1
	return store.ID
}

func (s *script) final(seen history.ID, views int64, at time.Duration) {
	op := s.op(history.Final, -1, at, at+1)
	op.Seen, op.Value = seen, views
}

// overruns is a visit that loads within its lease, and stores after another worker has come and gone.
func overruns(s *script) {
	a := s.acquire(1, 0, 1, 300)
	b := s.acquire(2, 310, 311, 300)
	s.use(b, 0, 0, 320, 330)
	s.release(b, 340, 341)
	last := s.use(a, 0, 0, 10, 510)
	s.denied(a, 520, 521)
	s.final(last, 1, 600)
}

// collide has two holders at the same time, which replace the same value.
func collide(s *script) { collideAt(s, 0) }

func collideAt(s *script, t time.Duration) {
	a, b := s.acquire(1, t+10, t+11, 300), s.acquire(2, t+20, t+21, 300)
	s.use(a, 0, 0, t+12, t+30)
	last := s.use(b, 0, 0, t+22, t+40)
	s.release(a, t+50, t+51)
	s.release(b, t+50, t+51)
	s.final(last, 1, t+60)
}

func TestJudgeAgrees(t *testing.T) {
	s := newScript()
	handOffs(s)
	verdicts, err := Judge(s.prepare(t))
	if err != nil || len(verdicts) == 0 {
		t.Fatalf("got %d verdicts, %v", len(verdicts), err)
	}
}
