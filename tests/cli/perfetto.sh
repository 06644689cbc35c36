# --format perfetto and pprof: what a reader of the test's own finds in the files is what SQL says: calls, VM exits, guest runs, marks
# and their times, to the nanosecond. (tests/viewers has Perfetto's own definitions, and pprof.)
# timeout: 60
source tests/common.bash
"$PT_BUILD/tests/tools/mkvmrecords" --exits 1500 --vcpus 1 --seed 9 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/vm.db" || fail "load"
trace_of_true "$tmp/cyc.ptc" cyc
"$PT_BIN/pt-decode" -q "$tmp/cyc.ptc" | "$PT_BIN/pt-load" -q "$tmp/cyc.db" || fail "load"
"$PT_BIN/pt-query" "$tmp/vm.db" -f perfetto -o "$tmp/vm.pftrace" 2>"$tmp/err"
status=$?
if grep -q 'without protobuf-c' "$tmp/err"; then
	check "without protobuf-c: 1, and nothing is left" test $status = 1 -a ! -e "$tmp/vm.pftrace"
	skip 20 "pt-query was built without protobuf-c"
	exit
fi
# compared DB WHERE...: all that is in the trace of DB. (Marks of an instant have no order.)
compared() { # DB [PARAMETER...]
	local db=$1 name
	name=$(basename "$db")
	"$PT_BIN/pt-query" "$db" -f perfetto -o "$tmp/x.pftrace" "${@:2}"
	succeeded $? "$name: perfetto ${*:2}"
	python3 tests/cli/perfetto_reader.py "$tmp/x.pftrace" >"$tmp/read" 2>"$tmp/err"
	succeeded $? "$name: slices nest, times go on: $(tail -n 1 "$tmp/err")"
	local after=${after:-0} until=${until:-9223372036854775807}
	same "$name: calls ${*:2}" <(sqlite3 "$db" "SELECT coalesce(c.call_time, 0) || ' ' || c.return_time || ' ' || coalesce(s.demangled,
			CASE WHEN s.unnamed THEN s.name || printf('+0x%x', p.ip - s.start_ip) ELSE coalesce(s.name, printf('%x', p.ip)) END, '[not known]')
			FROM calls c JOIN call d ON d.id = c.id LEFT JOIN call_path p ON p.id = d.call_path LEFT JOIN symbol s ON s.id = p.symbol
			WHERE d.call_tsc IS NOT NULL AND d.return_tsc IS NOT NULL AND c.return_time >= $after AND c.call_time < $until" | sort) \
		<(awk -F'\t' '$1 == "slice" && $2 == "call" { print $5, $6, $4 }' "$tmp/read" | sort)
	[ -z "$(sqlite3 "$db" "SELECT 1 FROM vm_exit LIMIT 1")" ] && return
	same "$name: exits ${*:2}" <(sqlite3 -separator ' ' "$db" "SELECT time_ns, time_end_ns, coalesce(reason_name, '[reason not known]') FROM vmexits
			WHERE time_ns IS NOT NULL AND time_end_ns IS NOT NULL AND time_end_ns >= $after AND time_ns < $until" | sort) \
		<(awk -F'\t' '$2 == "vmexit" && $1 == "slice" { print $5, $6, $4 }' "$tmp/read" | sort)
	same "$name: guest runs ${*:2}" <(sqlite3 -separator ' ' "$db" "SELECT time_ns, time_end_ns FROM guest_runs
			WHERE time_ns IS NOT NULL AND time_end_ns IS NOT NULL AND time_end_ns >= $after AND time_ns < $until" | sort) \
		<(awk -F'\t' '$2 == "guest" && $1 == "slice" { print $5, $6 }' "$tmp/read" | sort)
	same "$name: marks ${*:2}" <(sqlite3 -separator ' ' "$db" "SELECT 'event', time_ns, name FROM events WHERE time_ns >= $after AND time_ns < $until AND name <> 'cbr'
			UNION ALL SELECT 'error', time_ns, kind FROM errors WHERE time_ns >= $after AND time_ns < $until
			UNION ALL SELECT 'interrupt', time_ns, coalesce(to_symbol, 'interrupt') FROM interrupts WHERE time_ns >= $after AND time_ns < $until" | sort) \
		<(awk -F'\t' '$1 == "mark" && $2 != "left out" { print $2, $5, $4 }' "$tmp/read" | sort)
	# shellcheck disable=SC2016
	check "$name: exits and guest runs take turns" awk -F'\t' '$1 == "slice" && ($2 == "vmexit" || $2 == "guest") && $9 > 0 { exit 1 }' "$tmp/read"
}
compared "$tmp/cyc.db"
# A guest run that takes no time ends when the exit begins.
sqlite3 "$tmp/vm.db" "UPDATE guest_run SET entry_tsc = exit_tsc, time_ns = (SELECT time_end_ns FROM guest_runs g WHERE g.id = guest_run.id) WHERE id % 40 = 0"
compared "$tmp/vm.db"
# Exits' arguments, and the arrow from each to its entry.
same "qualifications" <(sqlite3 "$tmp/vm.db" "SELECT printf('0x%x', qualification) FROM vmexits WHERE qualification IS NOT NULL AND time_ns IS NOT NULL
		AND time_end_ns IS NOT NULL" | sort | uniq -c) \
	<(awk -F'\t' '$1 == "argument" && $2 == "vmexit" && $4 == "qualification" { print $5 }' "$tmp/read" | sort | uniq -c)
same "arrows from exits to entries" <(sqlite3 "$tmp/vm.db" "SELECT vmentry_after FROM vmexits WHERE vmentry_after IS NOT NULL AND time_ns IS NOT NULL
		AND time_end_ns IS NOT NULL" | sort) \
	<(awk -F'\t' '$1 == "slice" && $2 == "vmexit" && $7 { print $7 }' "$tmp/read" | sort)
check "which end at a guest run" test -z "$(comm -23 <(awk -F'\t' '$2 == "vmexit" && $7 { print $7 }' "$tmp/read" | sort -u) \
	<(awk -F'\t' '$2 == "guest" && $8 { print $8 }' "$tmp/read" | sort -u))"
same "tracks of vCPUs" <(sqlite3 "$tmp/vm.db" "SELECT DISTINCT machine || ' vCPU ' || vcpu FROM vmexits" | sort) \
	<(awk -F'\t' '$1 == "track" && / vCPU / && $4 !~ /:/ { print $4 }' "$tmp/read" | sort)
# What has no time is counted by a mark.
cp "$tmp/vm.db" "$tmp/untimed.db" && sqlite3 "$tmp/untimed.db" "UPDATE event SET tsc = NULL, time_ns = NULL WHERE id % 10 = 0"
"$PT_BIN/pt-query" "$tmp/untimed.db" -f perfetto -o "$tmp/x.pftrace" && python3 tests/cli/perfetto_reader.py "$tmp/x.pftrace" >"$tmp/read"
same "events without a time" <(sqlite3 "$tmp/untimed.db" "SELECT count(*) || ' events whose time is not known' FROM events WHERE time_ns IS NULL") \
	<(awk -F'\t' '$2 == "left out" { print $4 }' "$tmp/read")
# Two CPUs: perf calls both idle threads the same; one's calls do not last until the other's return. A CPU runs one thread at a time.
archive=$PT_SHARED/traces/emulated/host-all-cyc-2cpu.tar.zst
if [ -e "$archive" ] && command -v zstd >/dev/null; then
	tar -C "$tmp" --zstd -xf "$archive" && (cd "$tmp/host-all-cyc-2cpu" && "$PT_BIN/pt-capture" import -q --symfs symfs all.data) |
		"$PT_BIN/pt-decode" -q | "$PT_BIN/pt-load" -q "$tmp/cpus.db"
	compared "$tmp/cpus.db"
	same "a track for each CPU's idle thread" <(printf 'swapper CPU %s\n' 0 1) <(awk -F'\t' '$1 == "track" && /swapper/ { print $4 }' "$tmp/read" | sort)
	# shellcheck disable=SC2016
	check "one thread at a time" awk -F'\t' '$1 == "slice" && $2 == "running" { n++; if ($9) exit 1 } END { if (n < 20) exit 1 }' "$tmp/read"
else
	skip 8 "no $archive, or no zstd"
fi
# IPC, by CYC packets and by MTC packets: what the view says, summed up in 5,000 parts of the time.
trace_of_true "$tmp/mtc.ptc"
"$PT_BIN/pt-decode" -q "$tmp/mtc.ptc" | "$PT_BIN/pt-load" -q "$tmp/mtc.db" || fail "load"
for db in cyc mtc; do
	"$PT_BIN/pt-query" "$tmp/$db.db" -f perfetto -o "$tmp/x.pftrace" && python3 tests/cli/perfetto_reader.py "$tmp/x.pftrace" >"$tmp/read"
	# shellcheck disable=SC2016
	awk -F'\t' '$1 == "track" && $4 ~ /^IPC/ { ipc[$2] } $1 == "count" && $2 in ipc && $4 > 0 { printf "%d %.9f\n", $3, $4 }' "$tmp/read" | sort >"$tmp/ipc"
	same "$db: IPC" <(sqlite3 -separator ' ' "$tmp/$db.db" "WITH t AS MATERIALIZED (SELECT *, max((last_tsc - first_tsc) / 5000 + 1, 1) AS step FROM traces),
			part AS (SELECT (i.tsc - t.first_tsc) / t.step AS at, 1.0 * sum(i.insn_count) / sum(i.cyc_count) AS ipc
				FROM (SELECT * FROM ipc WHERE cyc_count IS NOT NULL LIMIT -1) i CROSS JOIN t GROUP BY i.cpu, 1)
			SELECT time_zero + ((first_tsc + at * step) * time_mult >> time_shift), printf('%.9f', ipc) FROM part CROSS JOIN t WHERE ipc > 0" | sort) \
		"$tmp/ipc"
	check "$db: there is some" test "$(wc -l <"$tmp/ipc")" -gt 20
done
# A time range: what has something of it.
read -r after until < <(sqlite3 -separator ' ' "$tmp/vm.db" "SELECT min(time_ns) + (max(time_ns) - min(time_ns)) / 3, min(time_ns) + (max(time_ns) - min(time_ns)) / 2 FROM vmexits")
compared "$tmp/vm.db" -p after="$after" -p until="$until"
check "less than all" test "$(grep -c '^slice' "$tmp/read")" -lt 3000 -a "$(grep -c '^slice' "$tmp/read")" -gt 100
for wrong in "summary -f perfetto" "-f perfetto -p x=1" "-f perfetto -p after=soon" "-f perfetto -p trace=2"; do
	# shellcheck disable=SC2086
	"$PT_BIN/pt-query" "$tmp/vm.db" $wrong -o "$tmp/none" 2>"$tmp/err"
	check "refused: $wrong: $(cat "$tmp/err")" test $? = 0 -a ! -e "$tmp/none" -a -s "$tmp/err"
done

# pprof: the stacks of `folded`, by the wire format.
"$PT_BIN/pt-query" "$tmp/cyc.db" folded -p percent=0 -f pprof -o "$tmp/x.pb.gz"
succeeded $? "pprof"
"$PT_BIN/pt-query" "$tmp/cyc.db" folded -p percent=0 >"$tmp/folded"
check "pprof: the same stacks" python3 -c 'import gzip, runpy, sys
sys.argv[1:1] = []
source = open("tests/cli/perfetto_reader.py", encoding="utf-8").read().split("def signed")[0]
space = {}
exec(source, space)
def packed(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
strings, functions, locations, samples = [], {}, {}, []
for number, value in space["fields"](gzip.open(sys.argv[1]).read()):
    if number == 6:
        strings.append(value.decode())
    elif number == 5:
        f = dict(space["fields"](value)); functions[f[1]] = f[2]
    elif number == 4:
        f = dict(space["fields"](value)); locations[f[1]] = dict(space["fields"](f[4]))[1]
    elif number == 2:
        f = dict(space["fields"](value)); samples.append((list(packed(f[1])), list(packed(f[2]))))
lines = [";".join(strings[functions[locations[i]]] for i in reversed(ids)) + f" {w}" for ids, (w,) in samples]
sys.exit(lines != open(sys.argv[2], encoding="utf-8").read().splitlines() or strings[:3] != ["", "instructions", "count"])' "$tmp/x.pb.gz" "$tmp/folded"
