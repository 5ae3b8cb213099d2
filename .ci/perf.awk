# Passes the output of go test -bench on and ends with a table of what was asked: what does the suite itself cost?
# Fails if a benchmark failed or one of the rows is missing.

{ print; fflush() }
/^FAIL|^--- FAIL|^panic:/ { failed = 1 }
/^Benchmark/ { sub(/-[0-9]+$/, "", $1); at = index($1, "/"); name = at ? substr($1, 1, at - 1) : $1; part = at ? substr($1, at + 1) : "" }
/^Benchmark/ { for (i = 3; i < NF; i += 2) value[name, part, $(i + 1)] = $i }
/^BenchmarkUp/ { ups[++up] = part }
/^BenchmarkOverhead/ { crowds[++crowd] = part }
/^BenchmarkRecord/ { records[++record] = part }

END {
	print ""
	for (i = 1; i <= record; i++)
		row("record an operation " records[i], sprintf("%.0f ns", value["BenchmarkRecord", records[i], "ns/op"]),
			value["BenchmarkRecord", records[i], "allocs/op"] " allocations (wanted: under 100 ns, 0)")
	if (("BenchmarkObserve", "", "ns/op") in value)
		row("take a visit into account", sprintf("%.0f ns", value["BenchmarkObserve", "", "ns/op"]), "beside the workers, not in them")
	for (i = 1; i <= up; i++)
		row("bring up " ups[i], sprintf("%.0f ms", value["BenchmarkUp", ups[i], "ns/op"] / 1e6), "")
	for (i = 1; i <= crowd; i++) {
		c = crowds[i]
		row("throughput of the bare commands, " c, sprintf("%.1f %%", value["BenchmarkOverhead", c, "%-of-bare"]),
			sprintf("measured in turns (wanted: 95 %% or more); %.0f against %.0f visits/s one after the other",
				value["BenchmarkVisit", c, "visits/s"], value["BenchmarkBareVisit", c, "visits/s"]))
	}
	if (failed || !record || !up || !crowd) { print "\nperf: a benchmark failed"; exit 1 }
}

function row(what, number, note) { printf "%-46s %10s  %s\n", what, number, note }
