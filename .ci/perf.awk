# Reads the output of go test -bench and writes a table of what was asked: what does the suite itself cost? Fails if a
# benchmark failed or is missing.

/^FAIL|^--- FAIL|^panic:/ { failed = 1 }
/^Benchmark/ { sub(/-[0-9]+$/, "", $1); at = index($1, "/"); name = at ? substr($1, 1, at - 1) : $1; part = at ? substr($1, at + 1) : "" }
/^Benchmark/ { for (i = 3; i < NF; i += 2) value[name, part, $(i + 1)] = $i }
/^BenchmarkUp/ { ups[++up] = part }
/^BenchmarkDashboard/ { watched[++watch] = part }
/^BenchmarkOverhead/ { crowds[++crowd] = part }
/^BenchmarkVerify/ { kepts[++kept] = part }
/^BenchmarkExplore/ { explored[++explore] = part }
/^BenchmarkScenarios/ { strains[++strain] = part }
/^BenchmarkWitness/ { flights[++flight] = part }
/^BenchmarkRecord/ { records[++record] = part }

END {
	print ""
	for (i = 1; i <= record; i++) {
		r = records[i]
		row("record an operation: " r, sprintf("%.0f ns", value["BenchmarkRecord", r, "ns/op"]),
			value["BenchmarkRecord", r, "allocs/op"] " allocations" (r ~ /^call/ ? " (wanted: under 100 ns, 0)" : ", with the merge's part"))
	}
	if (("BenchmarkObserve", "", "ns/op") in value)
		row("take a visit into account", sprintf("%.0f ns", value["BenchmarkObserve", "", "ns/op"]),
			sprintf("not in the workers but beside them; %.0f ns where others have had the caches", value["BenchmarkObserveCold", "", "ns/visit"]))
	if (("BenchmarkReport", "", "ns/op") in value)
		row("report of 10 000 000 operations", sprintf("%.1f s", value["BenchmarkReport", "", "ns/op"] / 1e9),
			sprintf("%.1f MB (wanted: under 5)", value["BenchmarkReport", "", "page-bytes"] / 1e6))
	if (("BenchmarkWireCommand", "", "added-us") in value)
		row("proxy of the wire: added to a command", sprintf("%.0f us", value["BenchmarkWireCommand", "", "added-us"]),
			sprintf("in the median, which is %.0f us without it, in turns (wanted: 15 or less)", value["BenchmarkWireCommand", "", "direct-us"]))
	if (("BenchmarkWirePipelined", "", "proxied/s") in value)
		row("proxy of the wire: pipelines of 16", sprintf("%.0f", value["BenchmarkWirePipelined", "", "proxied/s"]),
			sprintf("commands/s, %.0f without it, in turns (wanted: 700 000 or more)", value["BenchmarkWirePipelined", "", "direct/s"]))
	if (("BenchmarkWirePipelined", "", "cpu-ns/command") in value)
		row("proxy of the wire: its processor time", sprintf("%.2f us", value["BenchmarkWirePipelined", "", "cpu-ns/command"] / 1e3),
			sprintf("a command in pipelines of 16; %.0f us where each waits for the one before", value["BenchmarkWireSteady", "", "cpu-us/command"]))
	if (("BenchmarkWatchAlone", "", "core-%") in value)
		row("watch of a stream alone", sprintf("%.1f %% of a core", value["BenchmarkWatchAlone", "", "core-%"]),
			"at 20 000 writes of locks a second (wanted: 5 or less)")
	for (i = 1; i <= flight; i++)
		row("reader of the wire: commands in flight " flights[i], sprintf("%.0f us", value["BenchmarkWitnessInFlight", flights[i], "ns/command"] / 1e3),
			"a command (wanted: no more where there are ten times as many)")
	for (i = 1; i <= up; i++)
		row("bring up: " ups[i], sprintf("%.0f ms", value["BenchmarkUp", ups[i], "ns/op"] / 1e6), "until it is ready")
	for (i = 1; i <= crowd; i++) {
		c = crowds[i]
		row("throughput beside bare commands, " c, sprintf("%.1f %%", value["BenchmarkOverhead", c, "%-of-bare"]),
			sprintf("+-%.1f, in turns (wanted: 95 %% or more); one after the other %.0f and %.0f visits/s",
				value["BenchmarkOverhead", c, "%-error"], value["BenchmarkVisit", c, "visits/s"], value["BenchmarkBareVisit", c, "visits/s"]))
	}
	for (i = 1; i <= kept; i++)
		row("throughput with every operation kept, " kepts[i], sprintf("%.1f %%", value["BenchmarkVerify", kepts[i], "%-of-bench"]),
			"of that without, in turns (wanted: 90 % or more)")
	for (i = 1; i <= watch; i++) {
		d = watched[i]
		row("with the dashboard on, " d " loop: visits", sprintf("%.1f %%", value["BenchmarkDashboard", d, "%-visits"]),
			sprintf("of those without it, in turns; two without it differ up to %.1f %%", value["BenchmarkDashboard", d, "%-noise-visits"] - 100))
		row("with the dashboard on, " d " loop: own CPU", sprintf("%.1f %%", value["BenchmarkDashboard", d, "%-cpu"]), "a visit, of that without it")
		row("with the dashboard on, " d " loop: p99", sprintf("%.1f %%", value["BenchmarkDashboard", d, "%-p99"]),
			sprintf("of that without it, in turns; two without it differ up to %.1f %%", value["BenchmarkDashboard", d, "%-noise-p99"] - 100))
	}
	for (i = 1; i <= explore; i++) {
		e = explored[i]
		sub(/:cores=/, ", cores: ", e)
		row("explore with two deviations: " e, sprintf("%.0f", value["BenchmarkExplore", explored[i], "schedules/s"]),
			"schedules/s" (e ~ /^lease.* 2$/ ? " (wanted: 2500 or more)" : ""))
	}
	for (i = 1; i <= strain; i++) {
		s = strains[i]
		label = s
		gsub(/_/, " ", label)
		row("all scenarios of lease, " label, sprintf("%.1f s", value["BenchmarkScenarios", s, "ns/op"] / 1e9),
			sprintf("%d runs, %.1f s of CPU with the servers", value["BenchmarkScenarios", s, "runs"], value["BenchmarkScenarios", s, "cpu-s"]))
	}
	if (failed || !record || !up || !crowd || !kept || !watch || !explore || !strain || !flight) { print "\nperf: a benchmark failed"; exit 1 }
}

function row(what, number, note) { printf "%-44s %8s  %s\n", what, number, note }
