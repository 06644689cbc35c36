# ptbox.bash - runs captures in the emulated PC with Processor Trace and holds them against its ground truth. Sourced after
# common.bash by tests/ptbox/*.sh.
#
#   host=$tmp/host; programs ls ...; cat >"$host/run.sh"       what the box is to do; pt-capture is in its PATH
#   box [run.sh options]                                         runs it; its /host/out is $tmp/out
#   truth CPU                                                    the CPU's branches, as a decoder can know them: "from to"
#   branches CPU FILE...                                         the same of containers, one after the other; a thread's
#                                                                without a CPU are CPU 0's
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034
ptbox=$PT_SHARED/ptbox/run.sh
host=$tmp/host out=$tmp/out
mkdir -p "$host/bin"

# The first run fetches Debian's kernel; without a network there is no box, which is no failure of ours.
if [ ! -e "$ptbox" ]; then
	skip 1 "no $ptbox: nothing was captured with Processor Trace"
	exit 0
fi
if ! "$PT_SHARED/ptbox/fetch-system.sh" -q >"$tmp/fetch.log" 2>&1; then
	skip 1 "ptbox's kernel cannot be fetched here: $(tail -n 1 "$tmp/fetch.log")"
	exit 0
fi
[ -x "$PT_BUILD/static/pt-capture" ] || {
	fail "$PT_BUILD/static/pt-capture is not there: make static"
	exit 1
}
cp "$PT_BUILD/static/pt-capture" "$host/bin/"
gcc -O2 -w -o "$tmp/truthdump" "$PT_SHARED/tools/truthdump.c" || exit 1

# programs NAME...: Debian's programs at their own places
programs() {
	local p
	mkdir -p "$host/rootfs/usr/bin"
	for p; do cp -L "$(command -v "$p")" "$host/rootfs/usr/bin/$p" || exit 1; done
}
# workload: /usr/bin/work ROUNDS: shell, fork and exec, pipes, sort, gzip
workload() {
	programs dash sort gzip seq
	cat >"$host/rootfs/usr/bin/work" <<'WORK'
#!/usr/bin/dash
i=0
while [ $i -lt "$1" ]; do
	/usr/bin/seq 1 40 | /usr/bin/sort -rn | /usr/bin/gzip -c >/dev/null
	i=$((i+1))
done
WORK
	chmod +x "$host/rootfs/usr/bin/work"
}
# compiled NAME: tests/programs/NAME.c, static, in PATH
compiled() {
	gcc -O1 -g -pthread -static -o "$host/bin/$1" "tests/programs/$1.c" || exit 1
}
box() {
	local status
	"$ptbox" -t "${PTBOX_LIMIT:-800}" -s -o "$out" "$@" "$host" >"$tmp/box.log" 2>&1
	status=$?
	if [ $status -ne 0 ]; then
		fail "the box: exit status $status"
		tail -n 5 "$tmp/box.log"
		tail -n 25 "$out/console.log" "$out"/*.err 2>/dev/null | tr -d '\r' | cut -c 1-200
		exit 1
	fi
}
truth() { "$tmp/truthdump" -p "$out/truth-cpu$1.bin"; }
branches() {
	local cpu=$1 f
	shift
	for f; do
		"$PT_BIN/pt-decode" --text -F cpu,from,to "$f" 2>"$tmp/decode.err" |
			awk -v cpu="$cpu" '$1 == cpu || ($1 == "-1" && cpu == 0) { print $2, $3 }'
		[ "${PIPESTATUS[0]}" -eq 0 ] || echo "pt-decode $(basename "$f"): $(head -n 1 "$tmp/decode.err")"
	done
}
# exact CPUS NAME FILE...: the containers together hold each branch of the truth and no other
exact() {
	local cpu cpus=$1 name=$2
	shift 2
	for ((cpu = 0; cpu < cpus; cpu++)); do
		truth "$cpu" >"$tmp/truth"
		branches "$cpu" "$@" >"$tmp/got"
		same "$name, CPU $cpu: branches" "$tmp/truth" "$tmp/got"
		check "$name, CPU $cpu: nothing was traced" test -s "$tmp/truth"
	done
}
