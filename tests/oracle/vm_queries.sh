# What the queries say of a recorded virtual machine, against SQL written by hand on the machine's own log of
# VM entries and exits.
# timeout: 240
source tests/common.bash
archive=$PT_SHARED/traces/emulated/qemu-guest.tar.zst
if [ ! -e "$archive" ] || ! command -v zstd >/dev/null; then
	skip 12 "vm_queries: no $archive, or no zstd"
	exit
fi
if ! tar --zstd -xf "$archive" -C "$tmp" || ! "${CC:-cc}" -w -O2 -o "$tmp/truthdump" "$PT_SHARED/tools/truthdump.c"; then
	fail "unpacking"
fi
(cd "$tmp/qemu-guest" && "$PT_BIN/pt-capture" import -q --symfs symfs --guest g1/guest.data,87 pt.data) 2>"$tmp/err" |
	"$PT_BIN/pt-decode" -q | "$PT_BIN/pt-load" -q "$tmp/db"
check "loaded: $(head -n 3 "$tmp/err")" test -s "$tmp/db"

# The truth: one row per VM exit (of one vCPU on one CPU), to the entry after it, and one row per guest run.
"$tmp/truthdump" "$tmp/qemu-guest/truth-cpu0.bin" | awk -v OFS=, '
	$6 == "vmexit" { exit_tsc = $1; reason = $12; if (entry_tsc) print "guest_run", entry_tsc, exit_tsc, reason }
	$6 == "vmentry" { entry_tsc = $1; if (exit_tsc) print "vmexit", exit_tsc, entry_tsc, reason }' >"$tmp/truth.csv"
sqlite3 "$tmp/db" 'CREATE TABLE truth (what TEXT, a INTEGER, b INTEGER, reason INTEGER)' ".mode csv" ".import $tmp/truth.csv truth"
for q in vmexit-latency vmentry-latency timeline; do
	parameter=vcpu=0
	[ $q = timeline ] && parameter=ms=1
	"$PT_BIN/pt-query" "$tmp/db" $q --format csv -p $parameter >"$tmp/$q.csv"
	sqlite3 "$tmp/db" ".mode csv" ".import $tmp/$q.csv got_${q%-*}"
done
# holds WHAT SQL: the SQL's only value is 1
holds() { check "$1: $(sqlite3 "$tmp/db" "$2" | head -n 3)" test "$(sqlite3 "$tmp/db" "$2")" = 1; }

holds "each reason's exits" "SELECT NOT EXISTS (
	SELECT reason, count(*) FROM truth WHERE what = 'vmexit' GROUP BY reason
	EXCEPT SELECT CAST(reason AS INTEGER), CAST(timed AS INTEGER) FROM got_vmexit WHERE reason <> '')"
holds "no other reasons" "SELECT count(*) = (SELECT count(DISTINCT reason) FROM truth WHERE what = 'vmexit')
	FROM got_vmexit WHERE reason <> '' AND timed > 0"
# A transition is known to lie in an interval; so does then any order statistic of lengths between two.
for kind in vmexit guest_run; do
	if [ $kind = vmexit ]; then
		q=vmexit view=vmexits length=latency reason=x.reason
		key="CAST(g.reason AS INTEGER)"
	else
		q=vmentry view=vmentries length=residency reason="(SELECT e.reason FROM exit_reason e WHERE e.name = x.ended_by)"
		key="(SELECT e.reason FROM exit_reason e WHERE e.name = g.ended_by)"
	fi
	sqlite3 "$tmp/db" "CREATE TABLE slack_$kind AS SELECT $reason AS reason,
			max(max(coalesce(x.uncertainty_tsc, 0), coalesce(x.uncertainty_end_tsc, 0))) + 2 AS tsc FROM $view x GROUP BY 1;
		CREATE TABLE sorted_$kind AS SELECT reason, b - a AS tsc, row_number() OVER (PARTITION BY reason ORDER BY b - a) AS k,
			count(*) OVER (PARTITION BY reason) AS n FROM truth WHERE what = '$kind'"
	for p in 50:p50 90:p90 99:p99 99.9:p99_9 100:max; do
		holds "$length: ${p#*:} by reason" "SELECT count(*) > 3 AND sum(abs(CAST(g.${p#*:}_ns AS INTEGER) * 1.0
				/ (t.time_mult * 1.0 / (1 << t.time_shift)) - s.tsc) > u.tsc + 2) = 0
			FROM got_$q g JOIN trace t JOIN sorted_$kind s ON s.reason = $key AND s.k = CAST(ceil(s.n * ${p%:*} / 100.0) AS INTEGER)
			JOIN slack_$kind u ON u.reason = s.reason"
	done
done
holds "timeline: exits" "SELECT sum(exits) = (SELECT count(tsc) FROM vmexits) FROM got_timeline"
holds "timeline: time in the guest" "SELECT abs(sum(guest_ns) - (SELECT sum(b - a) * t.time_mult * 1.0 / (1 << t.time_shift)
	FROM truth JOIN trace t WHERE what = 'guest_run')) / sum(guest_ns) < 0.01 FROM got_timeline"
check "vm-check finds nothing" test "$("$PT_BIN/pt-query" "$tmp/db" vm-check --format csv | wc -l)" = 1

# The same trace as raw bytes, without anything that says which vCPU runs.
mkdir "$tmp/raw"
python3 tests/oracle/perf2raw.py "$tmp/qemu-guest/pt.data/data" "$tmp/raw" |
	sed 's/--sample-type [^ ]*//; s/--sideband [^ ]*//' >"$tmp/raw/options"
# shellcheck disable=SC2046
(cd "$tmp/raw" && "$PT_BIN/pt-capture" import $(cat options) --kernel --kcore ../qemu-guest/pt.data/kcore_dir/kcore \
	--kallsyms ../qemu-guest/pt.data/kcore_dir/kallsyms) 2>"$tmp/err" | "$PT_BIN/pt-decode" -q 2>/dev/null |
	"$PT_BIN/pt-load" -q "$tmp/unknown" 2>/dev/null
check "raw: every guest run, none with a vCPU: $(head -n 1 "$tmp/err")" test \
	"$(sqlite3 "$tmp/unknown" 'SELECT count(*) || " " || count(vcpu) FROM guest_run')" = \
	"$("$tmp/truthdump" "$tmp/qemu-guest/truth-cpu0.bin" | awk '$6 == "vmentry"' | wc -l) 0"
check "raw: vm-check finds nothing" test "$("$PT_BIN/pt-query" "$tmp/unknown" vm-check --format csv | wc -l)" = 1

# Where the guest was at each exit, what the host executed until the entry, and which timer interrupts (vector
# 236) reached the guest, from what: a host timer interrupt while the guest ran, whose handler KVM calls after
# the exit, or one that came later.
"$tmp/truthdump" "$tmp/qemu-guest/truth-cpu0.bin" | awk -v OFS=, '
	$6 == "event" && $12 == 236 { if (in_guest) at_guest = $9; else at_host = $9 }
	{ line[NR] = $0 }
	$6 == "vmexit" { in_guest = 0 }
	$6 == "vmentry" { in_guest = 1 }
	END {
		for (i = 1; i <= NR; i++) {
			split(line[i], f, " ")
			if (f[6] == "vmexit") {
				exit_tsc = f[1]; rip = f[7]; reason = f[12]; host_cyc = f[3]; host_ic = f[5]; called = came = 0; guest = 0
				if (entry_tsc) print "guest_run", entry_tsc, exit_tsc, reason, rip, f[5] - guest_ic, f[3] - guest_cyc
			} else if (f[6] == "vmentry") {
				entry_tsc = f[1]; guest_ic = f[5]; guest_cyc = f[3]; guest = 1; first = 1
				if (exit_tsc) print "vmexit", exit_tsc, entry_tsc, reason, rip, f[5] - host_ic, f[3] - host_cyc
			} else if (!guest && f[9] == at_host && f[6] == "event") {
				came = f[1]
			} else if (!guest && f[9] == at_host) {
				called = f[1]
			} else if (guest && f[9] == at_guest && f[6] == "event" && first && exit_tsc) {
				first = 0
				if (reason == 1 && called) print "irq", exit_tsc, f[1], "external interrupt"
				else if (came) print "irq", came, f[1], "host handler"
			}
		}
	}' >"$tmp/more.csv"
sqlite3 "$tmp/db" 'CREATE TABLE more (what TEXT, a INTEGER, b INTEGER, reason, rip TEXT, insns INTEGER, cycles INTEGER)' ".mode csv" \
	".import $tmp/more.csv more" 2>"$tmp/err"
for q in interrupt-latency exits-by-rip exits-by-function slowest-exits vcpu-time vcpu-stolen; do
	parameters=()
	[[ $q != exits-* ]] || parameters=(-p limit=100000)
	"$PT_BIN/pt-query" "$tmp/db" $q --format csv "${parameters[@]}" >"$tmp/$q.csv"
	sqlite3 "$tmp/db" ".mode csv" ".import $tmp/$q.csv got_${q//-/_}"
done
clock="(t.time_mult * 1.0 / (1 << t.time_shift))"
slack="(SELECT max(max(coalesce(uncertainty_tsc, 0), coalesce(uncertainty_end_tsc, 0))) + 2 FROM vmexits)"
holds "there are interrupts" "SELECT count(*) >= 4 FROM more WHERE what = 'irq'"
holds "interrupt-latency: cases by cause" "SELECT NOT EXISTS (SELECT cause, CAST(cases AS INTEGER) FROM got_interrupt_latency
	EXCEPT SELECT reason, count(*) FROM more WHERE what = 'irq' GROUP BY reason) AND (SELECT sum(cases) FROM got_interrupt_latency) =
	(SELECT count(*) FROM more WHERE what = 'irq')"
for p in 50:p50 90:p90 99:p99 99.9:p99_9 100:max; do
	holds "interrupt-latency: ${p#*:}" "WITH s AS (SELECT reason, b - a AS tsc, row_number() OVER (PARTITION BY reason ORDER BY b - a) AS k,
			count(*) OVER (PARTITION BY reason) AS n FROM more WHERE what = 'irq')
		SELECT count(*) > 1 AND max(abs(CAST(g.${p#*:}_ns AS INTEGER) / $clock - s.tsc)) <= 2 * $slack
		FROM got_interrupt_latency g JOIN trace t JOIN s ON s.reason = g.cause AND s.k = CAST(ceil(s.n * ${p%:*} / 100.0) AS INTEGER)"
done
# VM exits that the trace has no end of are in the queries, not in the truth; so are exits that were not
# wholly seen.
holds "exits-by-rip: each place's exits" "SELECT count(*) > 100 AND sum(abs(n - coalesce((SELECT sum(CAST(g.timed AS INTEGER))
	FROM got_exits_by_rip g WHERE g.guest_ip_hex = m.rip AND CAST(g.reason AS INTEGER) = m.reason), 0))) = 0
	FROM (SELECT rip, reason, count(*) AS n FROM more WHERE what = 'vmexit' GROUP BY rip, reason) m"
holds "exits-by-rip: no others" "SELECT sum(timed) = (SELECT count(*) FROM more WHERE what = 'vmexit') FROM got_exits_by_rip"
# The guest's own kallsyms say where its functions begin.
holds "exits-by-function: each function's exits" "WITH y AS (SELECT s.name, s.start_ip, s.end_ip FROM symbol s JOIN machine m ON m.id = s.machine
		WHERE m.pid <> 0 AND s.start_ip < 0),
	n AS (SELECT y.name, m.reason, count(*) AS n FROM more m JOIN y ON printf('%x', y.start_ip) <= m.rip AND m.rip < printf('%x', y.end_ip)
		WHERE m.what = 'vmexit' AND m.rip >= 'ffff800000000000' AND length(m.rip) = 16 GROUP BY 1, 2)
	SELECT count(*) > 5 AND sum(n <> coalesce((SELECT sum(CAST(g.timed AS INTEGER)) FROM got_exits_by_function g
		WHERE g.guest_symbol = n.name AND CAST(g.reason AS INTEGER) = n.reason), 0)) = 0 FROM n"
holds "slowest-exits: how long, and why" "WITH s AS (SELECT *, row_number() OVER (ORDER BY b - a DESC) AS k FROM more WHERE what = 'vmexit'),
	g AS (SELECT *, row_number() OVER () AS k FROM got_slowest_exits)
	SELECT count(*) = 20 AND max(abs(g.latency_ns / $clock - (s.b - s.a))) <= 2 * $slack
		AND sum(EXISTS (SELECT 1 FROM s x JOIN exit_reason e ON e.reason = x.reason WHERE e.kvm_name = g.kvm_name
			AND abs((g.time_ns - t.time_zero) / $clock - x.a) <= 2 * $slack)) = 20
	FROM g JOIN s ON s.k = g.k JOIN trace t"
"$PT_BIN/pt-query" "$tmp/db" branches-between -p limit=1000000 --format csv >"$tmp/between.csv"
sqlite3 "$tmp/db" ".mode csv" ".import $tmp/between.csv got_between"
# From a guest's branch id on, which is another thread's, so one less; the last ends where the guest is
# entered.
holds "branches-between: the slowest exit's, the host's instructions" "SELECT sum(insn_count) = (SELECT host_insns FROM vmexits
		ORDER BY latency_ns DESC LIMIT 1) AND min(kind) IS NOT NULL AND count(DISTINCT tid) = 1 FROM got_between"
holds "vcpu-time: in the guest and out of it" "SELECT count(*) = 1 AND abs(guest_ns / $clock / (SELECT sum(b - a) FROM more WHERE what = 'guest_run') - 1) < 0.01
	AND abs((host_ns + userspace_ns + off_cpu_ns) / $clock / (SELECT sum(b - a) FROM more WHERE what = 'vmexit') - 1) < 0.01
	FROM got_vcpu_time JOIN trace t"
holds "vcpu-time: instructions per cycle in the guest" "SELECT abs(guest_ipc / (SELECT sum(insns) * 1.0 / sum(cycles) FROM more WHERE what = 'guest_run') - 1) < 0.02
	FROM got_vcpu_time"
"$PT_BIN/pt-query" "$tmp/db" folded --param percent=0 >"$tmp/folded"
check "folded: every instruction once" test "$(awk '{ n += $NF } END { printf "%d", n }' "$tmp/folded")" = \
	"$(sqlite3 "$tmp/db" 'SELECT sum(insn_count) FROM slice')"
check "folded: guests on their vCPU" grep -q '^CPU 0/KVM;.*;\[guest [^;]*\];' "$tmp/folded"
check "merged events" test "$("$PT_BIN/pt-query" "$tmp/db" merged-events -p limit=100000 --format csv |
	grep -cE ',(vmexit|vmentry),')" = "$(sqlite3 "$tmp/db" 'SELECT (SELECT count(tsc) FROM vmexits) + (SELECT count(tsc) FROM vmentries)')"
