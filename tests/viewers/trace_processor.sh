# timeout: 400
# Perfetto's own trace_processor, which is behind ui.perfetto.dev, loads what pt-query -f perfetto writes: its tables have what ours have, to
# the nanosecond: calls, VM exits, guest runs, who ran, marks, with tracks, nesting, arguments; arrows, counters, threads; nothing was lost. It
# comes as a library in Debian sid's chromium-shell (trace_processor.c), and runs on sid's C library; $caches/pt-trace-processor keeps both.
source tests/common.bash
cache=$caches/pt-trace-processor
fetch() {
	local mirror options deb
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 2>/dev/null | awk '$2 ~ /^[a-z]+$/ { print $1; exit }')
	[ -n "$mirror" ] && [ "$(dpkg --print-architecture)" = amd64 ] || return 1
	mkdir -p "$tmp/apt/lists/partial" "$tmp/apt/cache/archives/partial" "$tmp/apt/debs" "$tmp/apt/x"
	printf 'Types: deb\nURIs: %s\nSuites: sid\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$mirror" >"$tmp/apt/list.sources"
	options=(-q -o "Dir::Etc::sourcelist=$tmp/apt/list.sources" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$tmp/apt/lists"
		-o "Dir::Cache=$tmp/apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
	timeout 100 apt-get "${options[@]}" update >/dev/null 2>&1
	(cd "$tmp/apt/debs" && timeout 150 apt-get "${options[@]}" download chromium-shell libc6 libgcc-s1 zlib1g) >/dev/null 2>&1 || return 1
	for deb in "$tmp"/apt/debs/*.deb; do
		dpkg --fsys-tarfile "$deb" | tar -x -C "$tmp/apt/x" --wildcards './usr/lib/x86_64-linux-gnu/*' './usr/lib/chromium/libtest_trace_processor.so' 2>/dev/null
	done
	# Whole or not at all: another test may be at it, too.
	rm -rf "$cache.new.$$" && mkdir -p "$cache.new.$$"
	cp -L "$tmp"/apt/x/usr/lib/x86_64-linux-gnu/{ld-linux-x86-64.so.2,libc.so.6,libm.so.6,libdl.so.2,libgcc_s.so.1,libz.so.1} \
		"$tmp/apt/x/usr/lib/chromium/libtest_trace_processor.so" "$cache.new.$$/" && basename "$tmp"/apt/debs/chromium-shell_*.deb >"$cache.new.$$/version" &&
		mv -T "$cache.new.$$" "$cache" 2>/dev/null
	rm -rf "$cache.new.$$"
	[ -s "$cache/version" ]
}
if ! [ -s "$cache/version" ] && ! fetch; then
	skip 40 "Debian sid's chromium-shell, libc6, libgcc-s1, zlib1g are not to be had"
	exit
fi
cat "$cache/version"
"${CC:-cc}" -std=gnu11 -O1 -o "$tmp/trace_processor" tests/viewers/trace_processor.c -ldl || fail "its driver"
trace_processor() { "$cache/ld-linux-x86-64.so.2" --library-path "$cache" "$tmp/trace_processor" "$@"; }

# dump TRACE: what trace_processor has of it. A place is a thread's pid and tid, or a track's name with that of the one above.
dump() {
	trace_processor "$1" "CREATE PERFETTO TABLE place AS SELECT t.id, coalesce('thread ' || p.pid || ' ' || h.tid, coalesce(u.name || '/', '') || t.name) AS name
			FROM track t LEFT JOIN thread_track x ON x.id = t.id LEFT JOIN thread h USING (utid) LEFT JOIN process p USING (upid) LEFT JOIN track u ON u.id = t.parent_id" \
		"SELECT 'call', p.name, s.ts, s.ts + s.dur, s.name, extract_arg(s.arg_set_id, 'debug.instructions'), extract_arg(s.arg_set_id, 'debug.cycles'), s.depth
			FROM slice s JOIN place p ON p.id = s.track_id WHERE s.category = 'call'" \
		"SELECT 'vm', s.category, p.name, s.ts, s.ts + s.dur, s.name, s.depth, extract_arg(s.arg_set_id, 'debug.id'), extract_arg(s.arg_set_id, 'debug.reason'),
				extract_arg(s.arg_set_id, 'debug.qualification'), extract_arg(s.arg_set_id, 'debug.guest_rip'), extract_arg(s.arg_set_id, 'debug.guest_symbol'),
				extract_arg(s.arg_set_id, 'debug.operand'), extract_arg(s.arg_set_id, 'debug.handler'), extract_arg(s.arg_set_id, 'debug.off_cpu_ns'),
				extract_arg(s.arg_set_id, 'debug.stolen_by'), extract_arg(s.arg_set_id, 'debug.instructions')
			FROM slice s JOIN place p ON p.id = s.track_id WHERE s.category IN ('vmexit', 'guest')" \
		"SELECT 'running', p.name, s.ts, s.ts + s.dur, s.name, s.depth, extract_arg(s.arg_set_id, 'debug.pid'), extract_arg(s.arg_set_id, 'debug.tid')
			FROM slice s JOIN place p ON p.id = s.track_id WHERE s.category = 'running'" \
		"SELECT 'mark', s.category, p.name, s.ts, s.dur, s.name, extract_arg(s.arg_set_id, 'debug.text')
			FROM slice s JOIN place p ON p.id = s.track_id WHERE s.category IN ('event', 'interrupt', 'error')" \
		"SELECT 'left out', s.name FROM slice s WHERE s.category = 'left out'" \
		"SELECT 'flow', extract_arg(o.arg_set_id, 'debug.id'), o.category, extract_arg(i.arg_set_id, 'debug.id'), i.category
			FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in" \
		"SELECT 'count', p.name, c.ts, printf('%.9f', c.value) FROM counter c JOIN place p ON p.id = c.track_id" \
		"SELECT DISTINCT 'thread', p.pid, p.name, h.tid, h.name FROM thread h JOIN process p USING (upid) JOIN thread_track x USING (utid)" \
		"SELECT 'track', name FROM place" \
		"SELECT 'stat', name, value, severity FROM stats WHERE value <> 0 AND severity <> 'info'" \
		"SELECT 'all', count(*), sum(category IN ('call', 'vmexit', 'guest', 'running', 'event', 'interrupt', 'error', 'left out')), sum(dur < 0) FROM slice"
}
# of KIND: its rows
of() { grep -aP "^$1\t" "$tmp/dump" | cut -f 2- | sort; }
# ns TSC: when that is on perf's clock, by the columns of trace t
ns() { echo "(t.time_zero + ($1 >> t.time_shift) * t.time_mult + (($1 & (1 << t.time_shift) - 1) * t.time_mult >> t.time_shift))"; }
ask() { sqlite3 -separator $'\t' -nullvalue '[NULL]' "$@"; }

# compared DB [PARAMETER...]: all that there is between $after and $until
after=-9223372036854775808 until=9223372036854775807
compared() {
	local db=$1 name
	name="$(basename "$db")${2:+ ${*:2}}"
	"$PT_BIN/pt-query" "$db" -f perfetto -o "$tmp/x.pftrace" "${@:2}"
	succeeded $? "$name: perfetto"
	dump "$tmp/x.pftrace" >"$tmp/dump" 2>"$tmp/err"
	succeeded $? "$name: trace_processor loads it: $(head -n 2 "$tmp/err")"
	same "$name: nothing was lost, no errors" /dev/null <(of stat)
	same "$name: nothing else is there" <(of all | awk '{ print $1, $1, 0 }') <(of all | awk '{ print $1, $2, $3 }')
	# Where what happened to a row of `thread` is shown: idle threads have a place for each CPU, in a VM vCPU.
	ask "$db" <<-END
		CREATE TEMP TABLE place AS SELECT DISTINCT h.id AS thread, h.tid, m.name AS machine, coalesce(s.vcpu, s.cpu) AS cpu,
			CASE WHEN m.pid THEN m.name || '/' || m.name || ': ' || l.comm || CASE WHEN l.tid THEN ' ' || l.tid ELSE coalesce(' vCPU ' || s.vcpu, '') END
				WHEN l.tid THEN 'thread ' || l.pid || ' ' || l.tid ELSE l.comm || coalesce(' CPU ' || s.cpu, '') END AS name, l.pid, l.comm, h.first
		FROM slice s JOIN thread r ON r.id = s.thread JOIN thread h ON h.first = r.first AND (h.tid OR h.id = r.id)
			JOIN thread l ON l.id = CASE WHEN h.tid THEN (SELECT max(x.id) FROM thread x WHERE x.first = h.first) ELSE h.id END
			JOIN machine m ON m.id = h.machine;
		CREATE INDEX temp.place_of ON place (thread, cpu);
		.output $tmp/calls
		SELECT c.id, coalesce(c.parent, 0), c.begin_ns < $until AND c.end_ns >= $after,
			coalesce((SELECT p.name FROM place p WHERE p.thread = c.thread AND (h.tid OR p.cpu IS coalesce(
					(SELECT coalesce(s.vcpu, s.cpu) FROM slice s WHERE s.id =
						(SELECT g.slice FROM run_group g WHERE g.id <= coalesce(c.return_branch, c.call_branch) >> 10 ORDER BY g.id DESC LIMIT 1)),
					(SELECT min(q.cpu) FROM place q WHERE q.thread = c.thread)))), t.name),
			c.begin_ns, c.end_ns, coalesce(s.demangled, CASE WHEN s.unnamed THEN s.name || printf('+0x%x', p.ip - s.start_ip)
				ELSE coalesce(s.name, printf('%x', p.ip)) END, '[not known]'), c.insn_count, c.cyc_count
		FROM (SELECT c.*, $(ns c.call_tsc) AS begin_ns, $(ns c.return_tsc) AS end_ns FROM call c JOIN trace t ON t.id = c.trace) c
			JOIN trace t ON t.id = c.trace LEFT JOIN thread h ON h.id = c.thread
			LEFT JOIN call_path p ON p.id = c.call_path LEFT JOIN symbol s ON s.id = p.symbol ORDER BY c.id DESC;
		.output $tmp/vms
		SELECT 'vmexit', machine || '/' || machine || ' vCPU ' || vcpu, time_ns, time_end_ns, coalesce(reason_name, '[reason not known]'), 0, id, reason,
			qualification, guest_ip, guest_symbol, operand, handler, off_cpu_ns, stolen_by_comm, host_insns
		FROM vmexits WHERE time_ns < $until AND time_end_ns >= $after;
		SELECT 'guest', machine || '/' || machine || ' vCPU ' || vcpu, time_ns, time_end_ns, 'guest', 0, id, NULL,
			NULL, guest_ip, guest_symbol, NULL, NULL, NULL, NULL, guest_insns
		FROM guest_runs WHERE time_ns < $until AND time_end_ns >= $after;
		.output $tmp/flows
		SELECT x.id, 'vmexit', r.id, 'guest' FROM vmexits x JOIN guest_runs r ON r.id = x.vmentry_after
		WHERE x.time_ns < $until AND x.time_end_ns >= $after AND r.time_ns < $until AND r.time_end_ns >= $after;
		.output $tmp/slices
		SELECT s.cpu, s.thread, s.stream, s.time_ns, s.time_end_ns, coalesce(h.comm, '[not known]'), h.pid, h.tid
		FROM slice s LEFT JOIN thread h ON h.id = s.thread LEFT JOIN machine m ON m.id = h.machine
		WHERE s.vcpu IS NULL AND s.cpu IS NOT NULL AND s.time_ns IS NOT NULL AND s.time_end_ns IS NOT NULL AND coalesce(m.pid, 0) = 0
		ORDER BY s.cpu, s.tsc, s.id;
		.output $tmp/marks
		SELECT v.category, coalesce((SELECT p.name FROM place p WHERE p.machine = v.machine AND p.tid = v.tid AND p.thread = p.first AND p.tid),
				'CPUs/CPU ' || v.cpu, t.name), v.time_ns, 0, v.name, v.text
		FROM (SELECT 'event' AS category, trace, time_ns, name, machine, tid, cpu, fields AS text FROM events WHERE name <> 'cbr'
			UNION ALL SELECT 'error', trace, time_ns, kind, machine, tid, cpu, message FROM errors
			UNION ALL SELECT 'interrupt', trace, time_ns, coalesce(to_symbol, 'interrupt'), machine, tid, cpu,
				'from ' || coalesce(from_symbol, from_ip_hex) FROM interrupts) v JOIN trace t ON t.id = v.trace
		WHERE v.time_ns >= $after AND v.time_ns < $until;
		.output $tmp/threads
		SELECT DISTINCT p.pid, coalesce((SELECT l.comm FROM thread l JOIN machine m ON m.id = l.machine WHERE NOT m.pid AND l.pid = p.pid AND l.tid = p.pid
			ORDER BY l.id DESC LIMIT 1), (SELECT q.comm FROM place q WHERE q.machine = 'host' AND q.pid = p.pid ORDER BY q.tid LIMIT 1)), p.tid, p.comm
		FROM place p WHERE p.tid AND p.machine = 'host';
		.output $tmp/left_out
		SELECT n || ' ' || what || ' whose time is not known'
		FROM (SELECT 'calls' AS what, count(*) AS n FROM call WHERE call_tsc IS NULL OR return_tsc IS NULL
			UNION ALL SELECT 'VM exits', count(*) FROM vmexits WHERE time_ns IS NULL OR time_end_ns IS NULL
			UNION ALL SELECT 'guest runs', count(*) FROM guest_runs WHERE time_ns IS NULL OR time_end_ns IS NULL
			UNION ALL SELECT 'events', count(*) FROM events WHERE time_ns IS NULL
			UNION ALL SELECT 'errors', count(*) FROM errors WHERE time_ns IS NULL) WHERE n;
		.output $tmp/counts
		WITH t AS MATERIALIZED (SELECT *, max((last_tsc - first_tsc) / 5000 + 1, 1) AS step FROM traces),
			part AS (SELECT i.cpu, (i.tsc - t.first_tsc) / t.step AS at, 1.0 * sum(i.insn_count) / sum(i.cyc_count) AS ipc
				FROM (SELECT * FROM ipc WHERE cyc_count IS NOT NULL LIMIT -1) i CROSS JOIN t GROUP BY i.cpu, 2),
			timed AS (SELECT part.cpu, ipc, $(ns '(first_tsc + at * step)') AS time_ns, $(ns '(first_tsc + (at + 1) * step)') AS time_end_ns FROM part CROSS JOIN t)
		SELECT 'CPUs/IPC' || coalesce(' CPU ' || cpu, ''), time_ns, printf('%.9f', ipc) FROM timed WHERE ipc > 0 AND time_ns < $until AND time_end_ns >= $after;
		SELECT 'CPUs/CBR CPU ' || cpu, time_ns, printf('%.9f', json_extract(fields, '\$.cbr')) FROM events
		WHERE name = 'cbr' AND cpu IS NOT NULL AND time_ns >= $after AND time_ns < $until;
	END
	# A call's depth: how many of its callers are shown, too.
	same_rows call "$name: calls: where, when, what, how deep" <(awk -F'\t' -v OFS='\t' '{ depth[$1] = ($3 == 1) + depth[$2] }
		$3 == 1 { print $4, $5, $6, $7, $8, $9, depth[$1] - 1 }' "$tmp/calls")
	same_rows vm "$name: VM exits and guest runs, with their arguments" "$tmp/vms"
	same_rows flow "$name: arrows" "$tmp/flows"
	# Slices of one thread, one after the other, are one; a CPU has one thread at a time.
	same_rows running "$name: who ran on which CPU" <(awk -F'\t' -v OFS='\t' -v after="$after" -v until="$until" '
		function put(to) { if (end > to) end = to; if (NR > 1 && end >= after && begin < until) print "CPUs/CPU " cpu, begin, end, who[6], 0, who[7], who[8] }
		$1 == cpu && $2 == who[2] && $3 == who[3] && NR > 1 { if ($5 > end) end = $5; next }
		{ put($1 == cpu ? $4 : end); split($0, who, "\t"); cpu = $1; begin = $4; end = $5 }
		END { NR++; put(end) }' "$tmp/slices")
	same_rows mark "$name: events, interrupts, errors" "$tmp/marks"
	# Those that something is shown of.
	awk -F'\t' 'FILENAME ~ /calls$/ { if ($3 == 1) shown[$4] = 1; next } FILENAME ~ /marks$/ { shown[$2] = 1; next } ("thread " $1 " " $3) in shown' \
		"$tmp/calls" "$tmp/marks" "$tmp/threads" >"$tmp/shown"
	same_rows thread "$name: threads and processes" "$tmp/shown"
	same_rows 'left out' "$name: what has no time is counted" "$tmp/left_out"
	same_rows count "$name: IPC and core-to-bus ratio" "$tmp/counts" '\t0\.0*$'
}
# same_rows KIND NAME EXPECTED [BUT]: trace_processor's rows of that kind, but those, are the expected ones; both may be none.
same_rows() {
	sort "$3" >"$tmp/expected"
	of "$1" | grep -avP "${4:-^\$}" >"$tmp/got"
	same "$2" "$([ -s "$tmp/expected" ] && echo "$tmp/expected" || echo /dev/null)" "$tmp/got"
	rows=$((rows + $(wc -l <"$tmp/got")))
}
rows=0
# half DB: from a third to a half of the time that it has
half() { sqlite3 -separator ' ' "$1" "SELECT min(time_ns) + (max(time_end_ns) - min(time_ns)) / 3, min(time_ns) + (max(time_end_ns) - min(time_ns)) / 2 FROM slice"; }
# Made up, with two vCPUs: all of it, and a time range.
"$PT_BUILD/tests/tools/mkvmrecords" --exits 1500 --vcpus 2 --seed 9 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/made-up" || fail "load"
compared "$tmp/made-up"
read -r after until < <(half "$tmp/made-up")
compared "$tmp/made-up" -p after="$after" -p until="$until"
# Two traces, whose processes, threads, CPUs have the same numbers: together, and one of them.
for seed in 3 4; do
	"$PT_BUILD/tests/tools/mkrecords" --runs 6000 --calls 2000 --errors 0 --paths 300 --seed $seed --uuid "trace $seed" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/two" || fail "load"
done
"$PT_BIN/pt-query" "$tmp/two" -f perfetto -o "$tmp/x.pftrace" && dump "$tmp/x.pftrace" >"$tmp/dump"
same "two traces: each has its CPUs" <(ask "$tmp/two" "SELECT 'CPUs/CBR CPU ' || cpu FROM (SELECT DISTINCT trace, cpu FROM events WHERE name = 'cbr') ORDER BY 1") <(of track | grep CBR)
check "two traces: with the same number" test "$(of track | grep CBR | sort -u | wc -l)" -lt "$(of track | grep -c CBR)"
for n in 1 2; do
	"$PT_BIN/pt-query" "$tmp/two" -f perfetto -p trace=$n -o "$tmp/x.pftrace" && dump "$tmp/x.pftrace" >"$tmp/dump"
	same "two traces: trace=$n: its calls" <(ask "$tmp/two" "SELECT call_time, return_time FROM calls WHERE trace = $n AND call_time AND return_time" | sort) <(of call | cut -f 2,3 | sort)
done
# A million calls and more.
"$PT_BUILD/tests/tools/mkrecords" --runs 700000 --calls 1200000 --errors 0 --paths 1000 --seed 2 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/big" || fail "load"
"$PT_BIN/pt-query" "$tmp/big" -f perfetto -o "$tmp/x.pftrace"
trace_processor "$tmp/x.pftrace" "SELECT 'call', count(*), sum(dur) FROM slice WHERE category = 'call'" \
	"SELECT 'stat', name, value, severity FROM stats WHERE value <> 0 AND severity <> 'info'" \
	"SELECT 'ms', value / 1000000 FROM stats WHERE name = 'parse_trace_duration_ns'" >"$tmp/dump"
same "a million calls: as many, as long" <(ask "$tmp/big" "SELECT count(*), sum(return_time - call_time) FROM calls WHERE call_time AND return_time") <(of call)
same "a million calls: nothing was lost" /dev/null <(of stat)
check "they are a million" test "$(of call | cut -f 1)" -ge 1000000
echo "$(of call | cut -f 1) calls, $(stat -c %s "$tmp/x.pftrace") bytes: read in $(of ms) ms"
# Recordings of two CPUs, and of hosts with a guest.
archives=$PT_SHARED/traces/emulated
recording() { # NAME DATA IMPORT-OPTION...
	tar --zstd -xf "$archives/$1.tar.zst" -C "$tmp" && (cd "$tmp/$1" && "$PT_BIN/pt-capture" import -q --symfs symfs "${@:3}" "$2") 2>"$tmp/err" |
		"$PT_BIN/pt-decode" -q | "$PT_BIN/pt-load" -q "$tmp/$1.db"
	succeeded $? "$1: load: $(head -n 3 "$tmp/err")"
	rm -rf "${tmp:?}/$1"
}
if [ -d "$archives" ] && command -v zstd >/dev/null; then
	after=-9223372036854775808 until=9223372036854775807
	recording linux-guest-cyc-1cpu vm.data --guest guest.data,101
	compared "$tmp/linux-guest-cyc-1cpu.db"
	recording host-all-cyc-2cpu all.data
	compared "$tmp/host-all-cyc-2cpu.db"
	read -r after until < <(half "$tmp/host-all-cyc-2cpu.db")
	compared "$tmp/host-all-cyc-2cpu.db" -p after="$after" -p until="$until"
	recording qemu-guest pt.data --guest g1/guest.data,87
	read -r after until < <(half "$tmp/qemu-guest.db")
	compared "$tmp/qemu-guest.db" -p after="$after" -p until="$until"
	echo "$rows rows compared"
	check "many rows: $rows" test "$rows" -gt 900000
else
	skip 60 "no $archives, or no zstd"
fi
