#!/usr/bin/env bash
# Snapshots when a function is called, returns late, or an address is reached, of a process and of the kernel: what is
# in them is what the machine did, and the last branch is that call.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
mkdir -p "$host/rootfs/usr/bin"
# PIE, no debug information.
gcc -O1 -fPIE -pie -o "$host/rootfs/usr/bin/rare" tests/ptbox/rare.c || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
taskset 2 rare &
pid=$!
sleep 0.05
grep r-xp /proc/$pid/maps >maps
grep ' T __x64_sys_newuname$' /proc/kallsyms >kernel
t() { name=$1; shift; timeout 4 pt-capture -v -o $name.ptc "$@" >$name.out 2>$name.err; echo $? >$name.status; }
t call --all-user -e psb_period=1 -p $pid --trigger call:rare
t three --all-user -e psb_period=2 -p $pid --trigger call:rare@rare --trigger-count 3
base=$((0x$(grep -m 1 /rare /proc/$pid/maps | cut -d - -f 1)))
t address --all-user -e psb_period=4 -p $pid --trigger addr:$(printf '0x%x' $((base + $(cat /host/offset))))
t late --all-user -e psb_period=5,cyc -m ,4M -p $pid --trigger 'ret:rare>2ms'
t kernel -k -e psb_period=1 -p $pid --trigger call:__x64_sys_newuname
t none --all-user -p $pid --trigger call:no_such_function
touch done
wait
exit 0
EOS
offset() { nm "$host/rootfs/usr/bin/rare" | awk -v name="$1" '$3 == name { print "0x" $1 }'; }
offset rare >"$host/offset"
box -c 2
for t in call three address late kernel none; do
	echo "$t: status $(cat "$out/$t.status"): $(head -n 6 "$out/$t.err" | tr '\n' ' ')"
done
# The file's first mapping, executable or not, is offset 0.
start=$(awk '/\/rare$/ { split($1, a, "-"); print a[1], $3; exit }' "$out/maps")
rare=$(printf '%x' $((0x${start% *} - 0x${start#* } + $(offset rare))))
newuname=$(cut -d ' ' -f 1 "$out/kernel")
# last NAME CALLED: the last branch's target. The CPU stops the trace at the call; the driver turns it on anew (a line of "0") when
# the thread comes back to a CPU before pt-capture has turned it off. What follows then is no part of this.
last() {
	"$PT_BIN/pt-decode" --include-self --text -F from,to "$out/$1.ptc" 2>/dev/null | grep -v '^#' |
		awk -v called="$2" '$1 == "0" && to == called { exit } { to = $2 } END { print to }'
}
# (Where the thread came back to the CPU too early, tracing begins, and ends, at the function: that is no call.)
calls() { "$PT_BIN/pt-decode" --include-self --text -F from,to "$out/$1.ptc" 2>/dev/null | grep -v '^0 ' | grep -c " ${2:-$rare}\$"; }
# snapshot NAME LEVELS FILTER_BITS: of CPU 1, where it runs, what is decoded is the truth
snapshot() {
	local result
	captured_truth 1 "$out/$1.ptc" "$2" "$3" >"$tmp/truth"
	"$PT_BIN/pt-decode" --include-self --text -F cpu,from,to "$out/$1.ptc" 2>/dev/null |
		awk '/^#/ && / cpu 1 / { print } $1 == 1 { print $2, $3 }' >"$tmp/got"
	# The kernel's driver turns tracing off and on by WRMSR, which the log has as no branch.
	[ "$2" = u ] || sed -i '/^0 /d; / 0$/d' "$tmp/truth" "$tmp/got"
	result=$("$tools/pieces" -b -e "$tmp/truth" "$tmp/got")
	check "$1: $result" test $? -eq 0
	echo "$1: branches, decoded, gaps, missing: $result"
	check "$1: status" test "$(cat "$out/$1.status")" = 0
	check "$1: something is in it" test "$(wc -l <"$tmp/got")" -gt 1000
}
stop=$((2 << 32))
for t in call three address; do
	snapshot $t u $stop
	check "$t ends with the call of rare ($rare): $(last $t "$rare")" test "$(last $t "$rare")" = "$rare"
done
check "call, once: $(calls call)" test "$(calls call)" = 1
check "call, three times: $(calls three)" test "$(calls three)" = 3
check "address: $(calls address)" test "$(calls address)" = 1
same "snapshots" <(echo 1 3 1) <(for t in call three address; do grep -c 'snapshot taken' "$out/$t.err"; done | xargs)
snapshot kernel k $stop
check "kernel ends with the call of the system call ($newuname): $(last kernel "$newuname")" test "$(last kernel "$newuname")" = "$newuname"
check "kernel: once: $(calls kernel "$newuname")" test "$(calls kernel "$newuname")" = 1
# What takes longer is seen when it is over: the trace goes on until then, and the call with its return is in it.
snapshot late u 0
"$PT_BIN/pt-decode" -q "$out/late.ptc" | "$PT_BIN/pt-load" -q "$tmp/late.db"
longest=$("$PT_BIN/pt-query" -f csv "$tmp/late.db" slowest-calls | awk -F, '$3 == "rare" { print $8; exit }')
check "a call of more than 2 ms, $longest ns, is in it" test "${longest:-0}" -gt 2000000
check "a function that is not there: $(cat "$out/none.err")" test "$(cat "$out/none.status")" = 1
check "it is said" grep -q 'neither the process nor the kernel has a function' "$out/none.err"
