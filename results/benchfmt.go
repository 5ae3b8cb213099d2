package results

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// benchmarkFile is the file of a saved run that the program benchstat can read.
const benchmarkFile = "bench.txt"

// benchmarked lists the metrics that benchmarkFile has, with units that benchstat knows.
var benchmarked = []struct{ metric, unit string }{
	{"response.mean", "ns/op"},
	{"response.p50", "response-p50-ns"},
	{"response.p99", "response-p99-ns"},
	{"acquire.p50", "acquire-p50-ns"},
	{"acquire.p99", "acquire-p99-ns"},
	{"random_waiter.p50", "random-waiter-p50-ns"},
	{"handoff.p50", "handoff-p50-ns"},
	{"throughput", "visits/s"},
	{"fairness.jain", "jain"},
	{"cost.round_trips", "trips/op"},
	{"cost.commands", "commands/op"},
	{"cost.server_cpu", "server-cpu-ns/op"},
}

// WriteBenchmarks writes runs in the format of Go benchmarks, with their configuration
// (golang.org/design/14313-benchmark-format).
func WriteBenchmarks(w io.Writer, runs []Run) error {
	b := benchfmt.NewWriter(w)
	higher := &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: "jain", Key: "better"},
		OrigUnit: "jain", Value: "higher"}
	if err := b.Write(higher); err != nil {
		return err
	}
	for i := range runs {
		r := &runs[i]
		if r.Visits.Done == 0 {
			continue // a benchmark without iterations would be invalid
		}
		name := fmt.Sprintf("Visit/topology=%s/lock=%s/workers=%d/keys=%d-%d", r.Topology, r.Lock, r.Workers, r.Keys,
			max(r.Environment.Procs, 1))
		// benchstat only compares results with equal configurations. So the names that differ from run to run are
		// written as a comment.
		if _, err := fmt.Fprintf(w, "# run %s, seed %d, suite %s\n", r.Name, r.Seed, r.Environment.Suite); err != nil {
			return err
		}
		// benchstat can group results by the parts of this name.
		result := &benchfmt.Result{Iters: int(r.Visits.Done), Name: benchfmt.Name(name)}
		for _, c := range [][2]string{
			{"goos", r.Environment.OS}, {"cpu", r.Environment.CPU}, {"server", r.Settings["server"]},
			{"counter", r.Counter}, {"faults", strings.Join(r.Faults, " ")}, {"load", r.Workload()},
		} {
			if c[1] != "" {
				result.SetConfig(c[0], c[1])
				at, _ := result.ConfigIndex(c[0])
				result.Config[at].File = true
			}
		}
		for _, m := range benchmarked {
			if x := metric(m.metric).Of(r); x.Support == Supported {
				result.Values = append(result.Values, benchfmt.Value{Value: x.Value, Unit: m.unit})
			}
		}
		if err := b.Write(result); err != nil {
			return err
		}
	}
	return nil
}
