# What the queries say of a recorded virtual machine, against SQL written by hand on the machine's own log of VM entries and exits.
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

# The truth: a row a round trip (of one vCPU on one CPU), from a VM exit to the entry behind it, and a row a stay.
"$tmp/truthdump" "$tmp/qemu-guest/truth-cpu0.bin" | awk -v OFS=, '
	$6 == "vmexit" { exit_tsc = $1; reason = $12; if (entry_tsc) print "stay", entry_tsc, exit_tsc, reason }
	$6 == "vmentry" { entry_tsc = $1; if (exit_tsc) print "trip", exit_tsc, entry_tsc, reason }' >"$tmp/truth.csv"
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
	SELECT reason, count(*) FROM truth WHERE what = 'trip' GROUP BY reason
	EXCEPT SELECT CAST(reason AS INTEGER), CAST(timed AS INTEGER) FROM got_vmexit WHERE reason <> '')"
holds "no other reasons" "SELECT count(*) = (SELECT count(DISTINCT reason) FROM truth WHERE what = 'trip')
	FROM got_vmexit WHERE reason <> '' AND timed > 0"
# A transition is known to lie in an interval; so does then any order statistic of lengths between two.
for kind in trip stay; do
	if [ $kind = trip ]; then
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
	FROM truth JOIN trace t WHERE what = 'stay')) / sum(guest_ns) < 0.01 FROM got_timeline"
check "vm-check finds nothing" test "$("$PT_BIN/pt-query" "$tmp/db" vm-check --format csv | wc -l)" = 1
check "an interrupt's way to the guest" test "$("$PT_BIN/pt-query" "$tmp/db" interrupt-latency --format csv | wc -l)" -ge 2
"$PT_BIN/pt-query" "$tmp/db" folded --param percent=0 >"$tmp/folded"
check "folded: every instruction once" test "$(awk '{ n += $NF } END { printf "%d", n }' "$tmp/folded")" = \
	"$(sqlite3 "$tmp/db" 'SELECT sum(insn_count) FROM slice')"
check "folded: guests on their vCPU" grep -q '^CPU 0/KVM;.*;\[guest [^;]*\];' "$tmp/folded"
check "merged events" test "$("$PT_BIN/pt-query" "$tmp/db" merged-events -p limit=100000 --format csv |
	grep -cE ',(vmexit|vmentry),')" = "$(sqlite3 "$tmp/db" 'SELECT (SELECT count(tsc) FROM vmexits) + (SELECT count(tsc) FROM vmentries)')"
