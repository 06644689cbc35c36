#!/usr/bin/env bash
# Command lines of perf's manual pages (perf-record(1), perf-intel-pt(1) of Linux 6.1), as they stand there: "perf record" is a shell function that
# runs pt-capture with the same arguments. sudo and a path before perf are left out, and what a line records until Ctrl-C gets SIGINT.
# What they record is the machine's.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
programs ls uname sleep
for name in sort loopy eg_ptw; do
	gcc -O1 -g -static -o "$host/bin/$name" tests/ptbox/perf_lines.c || exit 1
done
# NAME|LINE. fg: until it ends; bg: until SIGINT; usr2: with a snapshot before it; control: with a snapshot by its FIFO.
cat >"$host/lines" <<'EOS'
fg|ls|perf record -e intel_pt//u ls
fg|kcore|perf record -o pt_ls --kcore -e intel_pt// -- ls
fg|psb|perf record -e intel_pt/psb_period=15/u uname
fg|mtc|perf record -e intel_pt/mtc_period=15/u uname
fg|cyc|perf record -e intel_pt/cyc,cyc_thresh=15/u uname
fg|uname|perf record -e intel_pt//u uname
fg|vv|perf record -vv -e intel_pt//u uname
fg|sorted|perf record -e intel_pt//u ./sort 3000
fg|event|perf record -e intel_pt/event/u uname
fg|notnt|perf record -e intel_pt/notnt/u uname
fg|ptw|perf record -e intel_pt/ptw/u ./eg_ptw 0x1234567890abcdef
fg|sampled|perf record --aux-sample -e '{intel_pt//u,branch-misses:u}' -- ls
fg|sampled_size|perf record -e intel_pt//u -e branch-misses/aux-sample-size=8192/u ls
fg|sampled_group|perf record -e '{intel_pt//u,branch-misses/aux-sample-size=8192/u}' ls
fg|sampled_filter|perf record -e intel_pt//u --filter 'filter * @/bin/ls' -e branch-misses/aux-sample-size=8192/u -- ls
fg|filter|perf record -e intel_pt//u --filter 'filter * @/bin/ls' -- ls
fg|clock|perf record --aux-sample=8192 -c 100000 -e '{intel_pt//u,cpu-clock:u}' -- ./sort 3000
bg|all|perf record -o host.data -m,64M --kcore -a -e intel_pt/cyc/
bg|sideband|perf record -o guest.data --sample-identifier --buildid-all --switch-events --kcore -a -e dummy
usr2|snapshot|perf record -v -e intel_pt//u -S ./loopy 1000000000
control|control|perf record --control fifo:perf.control,perf.ack -S -e intel_pt//u -- sleep 60
fg|never|perf record -D -1 -e intel_pt//u uname
fg|both|perf record -N -T -B --no-inherit -m 128,512 --compression-level=3 --all-user -e intel_pt// ./sort 300
fg|backward|perf record -e intel_pt//u --overwrite ls
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cp /host/bin/sort /host/bin/loopy /host/bin/eg_ptw /tmp/ && cd /tmp || exit 1
mkfifo perf.control perf.ack
# As on Debian: one program.
ln -sf /usr/bin/ls /bin/ls
perf() {
	[ "$1" = record ] || exit 1
	shift
	exec pt-capture "$@"
}
# begun NAME TEXT: until its messages have the text
begun() {
	n=0
	until grep -q "$2" /host/out/$1.err || [ $n -ge 200 ]; do
		n=$((n+1))
		usleep 10000
	done
}
while IFS='|' read -r how name line; do
	echo "$name"
	(eval "$line") >/host/out/$name.stdout 2>/host/out/$name.err </dev/null &
	pid=$!
	case $how in
	bg) sleep 0.3 && kill -INT $pid ;;
	usr2) begun $name recording && kill -USR2 $pid && begun $name taken && kill -INT $pid ;;
	control) echo snapshot >perf.control && read -r answer <perf.ack && echo "$answer" >/host/out/answer && kill -INT $pid ;;
	esac
	wait $pid
	echo $? >/host/out/$name.status
done </host/lines
mv pt_ls /host/out/kcore.stdout
mv host.data /host/out/all.stdout
mv guest.data /host/out/sideband.stdout
exit 0
EOS
box -k

# As perf, which says it in other words.
for name in psb mtc cyc; do
	term=$(sed -n "s/^fg|$name|.*intel_pt.\(.*\)=15.*/\1/p" "$host/lines")
	term=${term#cyc,}
	check "$name: 2, and what this CPU allows: $(cat "$out/$name.err")" grep -q "^pt-capture: -e: $term=15: this CPU allows" "$out/$name.err"
	check "$name: status" grep -qx 2 "$out/$name.status"
done
check "--overwrite: refused, and why" grep -q -- '--overwrite: records of tasks' "$out/backward.err"
while IFS='|' read -r how name line; do
	case $name in
	psb | mtc | cyc | backward) continue ;;
	esac
	# A program that SIGINT ended.
	status='[03]'
	case $how in
	usr2 | control) status='130' ;;
	esac
	check "$line: $(cat "$out/$name.status"): $(tail -n 3 "$out/$name.err")" grep -qx "$status" "$out/$name.status"
	"$PT_BIN/pt-capture" info "$out/$name.stdout" >"$tmp/info" 2>&1
	succeeded $? "$line: a container: $(head -n 2 "$tmp/info")"
done <"$host/lines"
for name in ls uname vv sorted event both; do
	pieces "$name" 1 "$out/$name.stdout" u -b -e
done
pieces kcore 1 "$out/kcore.stdout" uk -b -e
pieces all 1 "$out/all.stdout" uk -b -e
pieces snapshot 1 "$out/snapshot.stdout" u -b -e
pieces control 1 "$out/control.stdout" u -b -e

# Samples and what a filter lets through: in the machine's order, with gaps that nobody can see.
truth 0 >"$tmp/truth0"
for name in clock notnt; do
	"$PT_BIN/pt-decode" --text -F from,to "$out/$name.stdout" 2>/dev/null | awk '!/^#/ && $1 != "0" && $2 != "0"' >"$tmp/got"
	# shellcheck disable=SC2016
	check "$name: a branch that never was, or in the wrong order" awk '
		BEGIN { at = 0; n = 0 }
		FILENAME == ARGV[1] { want[n++] = $0; next }
		at < n && $0 == want[at] { at++ }
		END { exit at != n }' "$tmp/got" "$tmp/truth0"
	check "$name: $(wc -l <"$tmp/got") branches" test "$(wc -l <"$tmp/got")" -gt 100
done
# (Beside the branches of sampled_filter, which had the same configuration before it.)
captured_truth 0 "$out/filter.stdout" u $((1 << 32)) >"$tmp/truth"
branches 0 "$out/filter.stdout" >"$tmp/got"
tail -n "$(wc -l <"$tmp/got")" "$tmp/truth" >"$tmp/filtered"
same "filter: branches" "$tmp/filtered" "$tmp/got"
check "filter: $(wc -l <"$tmp/got") branches" test "$(wc -l <"$tmp/got")" -gt 100
check "clock: samples: $(cat "$out/clock.err")" grep -q '[1-9] samples, 0 of them without a trace' "$out/clock.err"
# (The emulated CPU mispredicts nothing.)
for name in sampled sampled_size sampled_group sampled_filter; do
	check "$name: the event is there" grep -q '^  event 1: branch-misses:u (type 0, config 0x5, ' <("$PT_BIN/pt-capture" info "$out/$name.stdout")
done
check "-S: as many snapshots as were asked for, and one at the end: $(cat "$out/snapshot.err")" test "$(grep -c 'snapshot taken' "$out/snapshot.err")" = 2
check "--control: the answer" grep -qx ack "$out/answer"
check "eg_ptw: the value" grep -qi '1234567890abcdef' <("$PT_BIN/pt-decode" --packets "$out/ptw.stdout" | grep ' ptw ')
check "-e dummy: what happens, without a trace" grep -q '^  COMM ' <("$PT_BIN/pt-capture" info "$out/sideband.stdout")
check "-D -1: nothing" test "$("$PT_BIN/pt-decode" --text "$out/never.stdout" 2>/dev/null | grep -vc '^#')" = 0
