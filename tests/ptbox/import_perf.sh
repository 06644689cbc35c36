#!/usr/bin/env bash
# pt-capture import of what Debian's perf records with Processor Trace in ptbox: a thread's buffer,
# compression and tracepoints, pipe mode, a buffer that is too small, snapshots, samples with AUX data. perf
# is the judge. (The box's PT has no address filters.)
# timeout: 900
source tests/common.bash

capture=$PT_BIN/pt-capture decode=$PT_BIN/pt-decode box=$PT_SHARED/ptbox
if ! command -v perf >/dev/null || [ ! -x "$box/run.sh" ]; then
	skip 1 "no perf or no $box here"
	exit 0
fi
bash -c '. "$0"; programs "$dir" perf ls dash seq sort gzip' "$box/examples/common.sh" "$tmp/host" || fail "no HOSTDIR"
cat >"$tmp/host/run.sh" <<'END'
#!/bin/sh
cd /host/out && vmctl vdso vdso.so
record() { perf record -N --no-bpf-event "$@"; }
record -o thread.data --per-thread -e intel_pt/cyc/u -- /usr/bin/ls -la / >/dev/null
record -o sched.data -z -e intel_pt/cyc/u -e sched:sched_switch -e sched:sched_process_exec -- /usr/bin/ls / >/dev/null
record -o - -e intel_pt/cyc/u -- /usr/bin/ls -la / 2>pipe.err | cat >pipe.data
record -o small.data -m,4 -e intel_pt/cyc/u -- dash -c 'seq 1 99 | sort -rn | gzip -c >/dev/null; seq 1 99 | sort >/dev/null'
record -o snapshot.data -S8192 -m,16 -e intel_pt/cyc/u -- dash -c 'for i in 1 2; do seq 1 99 | sort -rn | gzip -c >/dev/null; kill -USR2 $PPID; sleep 0.005; done'
record -o sample.data --aux-sample=4096 -e '{intel_pt/cyc/u,cpu-clock:u}' -c 50000 -- dash -c 'seq 1 99 | sort -rn | gzip -c >/dev/null'
END
if ! "$box/run.sh" -o "$tmp/out" -k -t 700 "$tmp/host" >"$tmp/log" 2>&1; then
	skip 1 "the box failed: $(tail -n 1 "$tmp/log")"
	exit 0
fi
out=$tmp/out
# Where perf and we look for the vdso.
id=$(readelf -n "$out/vdso.so" | sed -n 's/.*Build ID: //p')
mkdir -p "$out/symfs/.debug/[vdso]/$id" "$out/symfs/.debug/.build-id/${id:0:2}"
cp "$out/vdso.so" "$out/symfs/.debug/[vdso]/$id/vdso"
ln -s "../../[vdso]/$id" "$out/symfs/.debug/.build-id/${id:0:2}/${id:2}"

for t in thread sched pipe small snapshot sample; do
	options=(--symfs "$out/symfs") wanted='NF == 4'
	if [ $t = pipe ]; then
		# This pipe has no build ids: perf then has no vdso, and takes a branch longer to go on after
		# it.
		options+=(--buildid-dir "$tmp/none")
		# shellcheck disable=SC2016
		wanted='NF == 4 && $2 != 0 && $4 != 0'
	fi
	"$capture" import "$out/$t.data" "${options[@]}" -o "$tmp/c.ptc" 2>"$tmp/notes"
	succeeded $? "$t: import: $(head -n 2 "$tmp/notes")"
	[ $t = pipe ] || check "$t: nothing is missing: $(head -n 2 "$tmp/notes")" test ! -s "$tmp/notes"
	from=(-i "$out/$t.data")
	[ $t != pipe ] || from=(-i -)
	# A line without a branch is a loss that perf shows.
	perf script "${from[@]}" --symfs "$out/symfs" --itrace=be -F tid,ip,addr 2>/dev/null < <(cat "$out/$t.data") |
		awk "$wanted"' { print $1, $2, $4 }' | sort -s -n -k1,1 >"$tmp/perf"
	"$decode" --text -F tid,from,to "$tmp/c.ptc" 2>"$tmp/err" | grep -v '^#' |
		awk '{ print $1, $2, "x", $3 }' | awk "$wanted"' { print $1, $2, $4 }' | sort -s -n -k1,1 >"$tmp/ours"
	check "$t: there are branches: $(head -n 2 "$tmp/err")" test "$(wc -l <"$tmp/ours")" -gt 5000
	same "$t: branches" "$tmp/perf" "$tmp/ours"
done
"$capture" import -q "$out/sched.data" -o "$tmp/c.ptc"
"$capture" info "$tmp/c.ptc" >"$tmp/info"
check "formats of the two tracepoints: $(grep FORMAT "$tmp/info")" grep -qE '^  FORMAT +2,' "$tmp/info"
"$capture" import -q "$out/small.data" -o "$tmp/c.ptc"
check "losses are reported" grep -q 'truncated' <("$capture" info "$tmp/c.ptc")
