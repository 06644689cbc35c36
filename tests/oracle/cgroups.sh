#!/usr/bin/env bash
# perf record --all-cgroups: samples of each event, by control group and thread, as perf report counts them; the field is found
# behind what else a sample can have.
# timeout: 120
source tests/common.bash
command -v perf >/dev/null || { skip 1 "no perf here" && exit 0; }
export HOME=$tmp
group=''
cleanup() {
	local status=$?
	[ -z "$group" ] || rmdir "$group"/* "$group" 2>/dev/null
	return $status
}
trap 'cleanup; finish' EXIT
# Groups of this test's own, where it may make them; else all is in those that are there.
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$root" ] && mkdir "$root/pt-test.$$" 2>"$tmp/err"; then
	group=$root/pt-test.$$
fi
cat >"$tmp/work.sh" <<'EOS'
spin() { for ((i = 0; i < 30000; i++)); do :; done; }
spin
[ -z "$1" ] || echo $$ >"$1/cgroup.procs"
spin
[ -z "$1" ] || { mkdir "$1/made, later" && echo $$ >"$1/made, later/cgroup.procs"; }
spin
/bin/ls / >/dev/null
EOS
# by_perf DATA, by_us CONTAINER: event|group|thread|samples (perf's Pid is a thread's)
by_perf() {
	perf report -i "$1" --stdio -F sample,cgroup,pid -t '|' 2>/dev/null |
		sed -nE "s/^# Samples: .* of event '(.*)'$/# \1/p; s/^ *([0-9]+) *\|([^|]*[^ |]) *\| *(-?[0-9]+):.*/\2|\3|\1/p" |
		awk '/^# / { event = substr($0, 3); next } { print event "|" $0 }' | sort
}
by_us() {
	rm -f "$tmp/c.db"
	"$PT_BIN/pt-decode" -q "$1" | "$PT_BIN/pt-load" -q "$tmp/c.db"
	sqlite3 "$tmp/c.db" "SELECT name, json_extract(fields, '\$.cgroup'), coalesce(tid, -1), count(*) FROM events
		WHERE name <> 'cgroup' AND name <> 'context_switch' GROUP BY 1, 2, 3" | sort
}
# as_perf NAME OPTIONS...
as_perf() {
	if ! perf record -q -o "$tmp/c.data" --all-cgroups -e cpu-clock:u "${@:2}" -- bash "$tmp/work.sh" "$group" >/dev/null 2>"$tmp/err"; then
		skip 3 "$1: perf cannot record this here: $(head -n 1 "$tmp/err")"
		return
	fi
	[ -z "$group" ] || rmdir "$group/made, later"
	by_perf "$tmp/c.data" >"$tmp/expected"
	"$PT_BIN/pt-capture" import -q -o "$tmp/c.ptc" "$tmp/c.data" 2>"$tmp/err"
	succeeded $? "$1: import: $(head -n 1 "$tmp/err")"
	by_us "$tmp/c.ptc" >"$tmp/got"
	same "$1: samples by event, group and thread are perf's ($(wc -l <"$tmp/expected"))" "$tmp/expected" "$tmp/got"
	check "$1: groups: $(cut -d '|' -f 2 "$tmp/got" | sort -u | tr '\n' ' ')" \
		test "$(cut -d '|' -f 2 "$tmp/got" | sort -u | wc -l)" -ge "${group:+3}" -o -z "$group"
}
as_perf "plain"
as_perf "tracepoints, switches" -e sched:sched_switch --switch-events
as_perf "call chains" -g
as_perf "user stacks" --call-graph dwarf,512
as_perf "registers" --intr-regs=ax,bx --user-regs=ip,sp
as_perf "addresses, weights" -d -W --phys-data --data-page-size --code-page-size
"$PT_BIN/pt-query" "$tmp/c.db" cgroups --format csv >"$tmp/csv"
check "pt-query cgroups: each sample once: $(head -n 3 "$tmp/csv" | tr '\n' ' ')" test "$(sed 1d "$tmp/csv" | awk -F, '{ n += $(NF - 2) } END { print n }')" = \
	"$(awk -F '|' '{ n += $4 } END { print n }' "$tmp/got")"
# Where the records say other numbers, the samples' are shown: perf knows no name then.
python3 - "$tmp/c.data" <<'PYTHON'
import re, sys
data = open(sys.argv[1], "rb").read()
# PERF_RECORD_CGROUP: type, misc, size, id, path
data, n = re.subn(rb"(\x13\0\0\0..[\x18-\x80]\0).{8}(?=/)", lambda m: m[1] + b"\xff" * 7 + b"\x7f", data, flags=re.S)
open(sys.argv[1], "wb").write(data)
sys.exit(n == 0)
PYTHON
succeeded $? "no CGROUP record in the file"
perf report -i "$tmp/c.data" --stdio -F sample,cgroup -t '|' 2>/dev/null | sed -nE 's/^ *([0-9]+) *\|(.*[^ ]) *$/\2 \1/p' >"$tmp/expected"
"$PT_BIN/pt-capture" import -q -o "$tmp/c.ptc" "$tmp/c.data" 2>/dev/null
"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$tmp/n.db"
sqlite3 -separator ' ' "$tmp/n.db" "SELECT 'unknown', count(*) FROM events WHERE json_extract(fields, '\$.cgroup_id') > 0
	GROUP BY json_extract(fields, '\$.cgroup_id') ORDER BY 2 DESC" >"$tmp/got"
same "a group of each number" "$tmp/expected" "$tmp/got"

# pt-capture's own, of which perf reads an export.
"$PT_BIN/pt-capture" --sideband-only -q -a --all-cgroups --tracepoint sched:sched_switch -o "$tmp/o.ptc" -- bash "$tmp/work.sh" "$group" >/dev/null 2>"$tmp/err"
if [ $? -eq 1 ] && grep -qE 'does not permit|cannot open|refuses|not mounted|are mounted|no such tracepoint' "$tmp/err"; then
	skip 3 "pt-capture --all-cgroups is not permitted here: $(head -n 1 "$tmp/err")"
	exit 0
fi
[ -z "$group" ] || rmdir "$group/made, later"
by_us "$tmp/o.ptc" >"$tmp/got"
"$PT_BIN/pt-capture" export -q --perf-data "$tmp/o.data" "$tmp/o.ptc" 2>"$tmp/err"
succeeded $? "export: $(head -n 1 "$tmp/err")"
by_perf "$tmp/o.data" >"$tmp/expected"
same "pt-capture --all-cgroups: what perf reads ($(wc -l <"$tmp/expected"))" "$tmp/expected" "$tmp/got"
check "groups: $(cut -d '|' -f 2 "$tmp/got" | sort -u | tr '\n' ' ')" \
	test "$(cut -d '|' -f 2 "$tmp/got" | sort -u | wc -l)" -ge "${group:+3}" -o -z "$group"
check "each has a path: $(grep '||' "$tmp/got" | head -n 1)" test "$(grep -c '||' "$tmp/got")" = 0
# Those that are there by the kernel's list: groups' numbers are those of their folders.
find "$root" -type d -printf '%i /%P\n' | grep -v ' /pt-test' | sort >"$tmp/expected"
sqlite3 -separator ' ' "$tmp/c.db" "SELECT json_extract(fields, '\$.id'), json_extract(fields, '\$.path') FROM events WHERE name = 'cgroup'" |
	grep -v ' /pt-test' | sort >"$tmp/got"
same "the groups that are there" "$tmp/expected" "$tmp/got"
