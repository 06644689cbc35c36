# The views and queries of virtual machines on made-up ones, against their truth; in the sqlite3 shell, too.
source tests/common.bash
"$PT_BUILD/tests/tools/mkvmrecords" --exits 3000 --vcpus 3 --seed 7 --truth "$tmp/truth" >"$tmp/s" 2>/dev/null || fail "mkvmrecords"
check "load" "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s"
check "integrity" test "$(sqlite3 "$tmp/db" 'PRAGMA integrity_check')" = ok
python3 tests/cli/vm_truth.py "$PT_BIN/pt-query" "$tmp/db" "$tmp/truth" >"$tmp/out" 2>&1
counts "$tmp/out"
names="vmexit-latency vmexit-latency-histogram vmentry-latency slowest-exits why-slow vcpu-time interrupt-latency vcpu-stolen exits-by-function exits-by-rip timeline
	vm-clocks vm-check merged-events folded"
mkdir "$tmp/q"
for name in $names; do
	"$PT_BIN/pt-query" "$tmp/db" "$name" --format csv >"$tmp/q/$name.ours"
	"$PT_BIN/pt-query" "$tmp/db" "$name" --format json >"$tmp/q/$name.json"
	"$PT_BIN/pt-query" "$tmp/db" "$name" --print | sqlite3 -header -csv "$tmp/db" >"$tmp/q/$name.shell"
done
# shellcheck disable=SC2086
python3 tests/cli/same_csv.py "$tmp/q" $names >"$tmp/out" 2>&1
counts "$tmp/out"
"$PT_BIN/pt-query" "$tmp/db" --format html >"$tmp/html"
check "the dashboard" python3 tests/cli/html_page.py "$tmp/html" vmexit-latency timeline vcpu-time vm-check
"$PT_BIN/pt-query" "$tmp/db" vmexit-latency --format prometheus >"$tmp/prometheus"
"$PT_BIN/pt-query" "$tmp/db" vmexit-latency --format json >"$tmp/json"
"$PT_BIN/pt-query" "$tmp/db" vmexit-latency-histogram --format prometheus >"$tmp/histogram"
"$PT_BIN/pt-query" "$tmp/db" vmexit-latency-histogram --format json >"$tmp/histogram.json"
check "a histogram" python3 tests/cli/prometheus_text.py "$tmp/histogram" "$tmp/histogram.json"
same "its counts" <(sqlite3 "$tmp/db" 'SELECT reason, count(latency_tsc) FROM vmexits GROUP BY 1 HAVING count(latency_tsc) > 0 ORDER BY 1') \
	<(sed -nE 's/^pt_vmexit_latency_seconds_count\{(.*reason="([0-9]+)")?.*\} /\2|/p' "$tmp/histogram" | sort -n)
check "Prometheus' text" python3 tests/cli/prometheus_text.py "$tmp/prometheus" "$tmp/json"
check "seconds by reason" grep -q '^pt_vmexit_latency_p99_seconds{trace="1",machine="vm1",reason="48",' "$tmp/prometheus"

check "a function of the same name in host and guest is two" test "$(sqlite3 "$tmp/db" "SELECT group_concat(machine || ' ' || dso, ', ')
	FROM (SELECT * FROM functions WHERE name = 'asm_sysvec_apic_timer_interrupt' OR name = 'schedule' ORDER BY machine)")" = \
	"host [kernel], vm1 [guest.kernel]"
check "dsos know their machine" test "$(sqlite3 "$tmp/db" "SELECT group_concat(host_or_guest) FROM dsos_view")" = unknown,host,guest

# A record that is not where it should be is found: a guest run that ends too early, an event of the guest
# outside of any.
cp "$tmp/db" "$tmp/wrong"
sqlite3 "$tmp/wrong" 'UPDATE guest_run SET exit_tsc = entry_tsc, exit_uncertainty_tsc = 0 WHERE id = 50'
check "a guest run that is too short" test "$("$PT_BIN/pt-query" "$tmp/wrong" vm-check --format csv | grep -c '^run,')" -ge 1
cp "$tmp/db" "$tmp/wrong"
sqlite3 "$tmp/wrong" "UPDATE event SET tsc = (SELECT exit_tsc + 100 FROM vm_exit WHERE vcpu = event.vcpu LIMIT 1)
	WHERE id = (SELECT min(id) FROM event WHERE vcpu IS NOT NULL)"
check "an event outside" test "$("$PT_BIN/pt-query" "$tmp/wrong" vm-check --format csv | grep -c '^event,')" = 1

# A vCPU that is not known is distinguished from others by its CPU; what is wrong of it is found as well.
cp "$tmp/db" "$tmp/unknown"
sqlite3 "$tmp/unknown" 'UPDATE guest_run SET vcpu = NULL; UPDATE slice SET vcpu = NULL; UPDATE event SET vcpu = NULL'
check "vCPUs that are not known: their runs are on several CPUs" test "$(sqlite3 "$tmp/unknown" 'SELECT count(DISTINCT s.cpu)
	FROM slice s JOIN thread h ON h.id = s.thread JOIN machine m ON m.id = h.machine WHERE m.pid <> 0')" = 3
"$PT_BIN/pt-query" "$tmp/unknown" vm-check --format csv >"$tmp/out"
check "vCPUs that are not known: nothing is wrong: $(sed -n 2p "$tmp/out")" test "$(wc -l <"$tmp/out")" = 1
sqlite3 "$tmp/unknown" 'UPDATE guest_run SET exit_tsc = entry_tsc, exit_uncertainty_tsc = 0 WHERE id = 50'
check "vCPUs that are not known: a guest run that is too short" test \
	"$("$PT_BIN/pt-query" "$tmp/unknown" vm-check --format csv | grep -c '^run,')" -ge 1

# Another trace in the same database: its ids are moved, its numbers are not.
"$PT_BUILD/tests/tools/mkvmrecords" --exits 500 --seed 8 2>/dev/null >"$tmp/s2"
check "load a second" "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s2"
"$PT_BIN/pt-load" -q "$tmp/alone" "$tmp/s2"
for name in vmexit-latency vmentry-latency exits-by-function vcpu-time interrupt-latency vcpu-stolen vm-clocks; do
	[ $name = exits-by-function ] && all=(--param limit=100000) || all=()
	"$PT_BIN/pt-query" "$tmp/db" $name --format csv "${all[@]}" | sed -n '1p; /^2,/p' >"$tmp/both"
	"$PT_BIN/pt-query" "$tmp/alone" $name --format csv "${all[@]}" | sed 's/^1,/2,/' >"$tmp/one"
	same "$name: of a second trace" "$tmp/one" "$tmp/both"
done
check "vm-check of both" test "$("$PT_BIN/pt-query" "$tmp/db" vm-check --format csv | wc -l)" = 1
check "--replace takes it away" "$PT_BIN/pt-load" -q --replace "$tmp/db" "$tmp/s2"
check "nothing is left of it" test "$(sqlite3 "$tmp/db" 'SELECT count(*) FROM vm_exit WHERE trace = 2 OR trace = 3')" = 500

# What users' SQL may rely on.
while read -r view columns; do
	check "$view has its columns" test -z "$(comm -23 <(tr , '\n' <<<"$columns" | sort) <(
		sqlite3 "$tmp/db" "SELECT name FROM pragma_table_info('$view')" | sort))"
done <<END
branches id,trace,time_ns,tsc,cpu,machine,vcpu,pid,tid,comm,from_ip,from_symbol,from_offset,to_ip,to_symbol,to_offset,kind,insn_count,cyc_count
vmexits time_ns,tsc,cpu,machine,vcpu,vmcs,guest_ip,guest_symbol,reason,reason_name,reason_source,qualification,latency_tsc,latency_ns,host_insns,host_cycles,handler,scheduled_out,to_userspace
vmentries time_ns,tsc,cpu,machine,vcpu,guest_ip,residency_tsc,residency_ns,guest_insns,guest_cycles,ended_by
ipc tsc,tsc_end,cpu,machine,vcpu,tid,insn_count,cyc_count,ipc,source
errors time_ns,tsc,tsc_end,cpu,kind,ip,aux_offset,message
events time_ns,tsc,cpu,machine,vcpu,tid,name,fields
vm_clocks machine,vcpu,vmcs,offset,ratio,source,observations,worst_residual_tsc
calls id,thread_id,comm_id,call_path_id,call_time,return_time,branch_count,call_id,return_id,parent_call_path_id,flags,parent_id,insn_count,cyc_count
call_paths id,parent_id,symbol_id,ip
END

# Without parameters the timeline is of the branches: some fifty stretches, from where they start to where they end. Sideband
# from long before and after is there when it is asked for.
outside() { # puts two events of the trace 3 s before its first branch, and 3 s after its last one
	sqlite3 "$tmp/far" "UPDATE event SET tsc = (SELECT CASE WHEN event.id % 2 THEN first_tsc - 3 * tsc_hz ELSE last_tsc + 3 * tsc_hz END
		FROM trace WHERE id = event.trace) WHERE id IN (SELECT id FROM event WHERE trace = 1 ORDER BY id LIMIT 2);
		UPDATE event SET time_ns = (SELECT time_zero + (event.tsc >> time_shift) * time_mult
			+ ((event.tsc & ((1 << time_shift) - 1)) * time_mult >> time_shift) FROM trace WHERE id = event.trace)"
}
cp "$tmp/alone" "$tmp/far"
sqlite3 "$tmp/far" 'UPDATE trace SET tsc_hz = coalesce(tsc_hz, 2000000000)' && outside
rows() { "$PT_BIN/pt-query" "$tmp/far" "$@" --format csv | tail -n +2 | wc -l; }
n=$(rows timeline)
check "timeline: its step fits: $n rows" test "$n" -ge 20 -a "$n" -le 52
check "timeline: it has all exits" test "$("$PT_BIN/pt-query" "$tmp/far" timeline --format csv | awk -F, 'NR > 1 { n += $2 } END { print n }')" = "$(
	sqlite3 "$tmp/far" 'SELECT count(exit_tsc) FROM vm_exit')"
check "timeline: what is outside only when it is asked for" test "$(rows timeline -p after=0)" = $((n + 2))
step=$("$PT_BIN/pt-query" "$tmp/far" timeline --format csv | awk -F, 'NR > 1 { print $1 }' | awk 'NR > 1 && (d == 0 || $1 - last < d) { d = $1 - last } { last = $1 } END { print d }')
check "timeline: a step for people: $step" grep -qE '^[125]0*$' <<<"$step"
for q in events merged-events; do
	check "$q: from the first branch on" test "$(rows $q -p after=0 -p limit=1000000)" = $(($(rows $q -p limit=1000000) + 1))
done
