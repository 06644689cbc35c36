# Recordings of an emulated PC with PT, imported: every branch, of kernels, users and guests, is the truth's.
# timeout: 240
source tests/common.bash
archives=$PT_SHARED/traces/emulated
if [ ! -d "$archives" ] || ! command -v zstd >/dev/null; then
	skip 4 "emulated: no $archives, or no zstd"
	exit
fi
check "truthdump" "${CC:-cc}" -w -O2 -o "$tmp/truthdump" "$PT_SHARED/tools/truthdump.c"

# recording NAME DATA OPTION...: unpacks NAME, imports DATA with OPTIONs, decodes; compares what each CPU has
# with the truth
recording() {
	local name=$1 data=$2 truth cpu status
	mkdir "$tmp/$name"
	if ! tar --zstd -xf "$archives/$name.tar.zst" -C "$tmp" || ! cd "$tmp/$name"; then
		fail "$name cannot be unpacked"
		return
	fi
	"$PT_BIN/pt-capture" import -q --symfs symfs "${@:3}" -o c.ptc "$data" 2>err
	status=$?
	check "$name: import: $(head -n 3 err)" test $status -eq 0
	"$PT_BIN/pt-decode" --text -F cpu,from,to c.ptc >text 2>err
	status=$?
	check "$name: decode: $(grep -m 3 '^#' text)" test $status -eq 0
	for truth in truth-cpu*.bin; do
		cpu=${truth#truth-cpu}
		cpu=${cpu%.bin}
		"$tmp/truthdump" -p "$truth" >expected
		awk -v cpu="$cpu" '$1 == cpu { print $2, $3 }' text >got
		same "$name: branches of CPU $cpu" expected got
	done
	[ -z "${wrong:-}" ] || misled "$name"
	cd "$OLDPWD" && rm -rf "${tmp:?}/$name"
}

# A guest's clock that is wrong by a millisecond has its processes at wrong times: what contradicts their CR3s
# is missing then, and said to be; nothing is taken for what was not.
misled() {
	local invented missing
	"$PT_BIN/pt-decode" --text -F from,to --tsc-offset "$wrong" c.ptc 2>err | grep -v '^#' >got
	check "$1: a wrong clock: $(head -n 1 err)" test "${PIPESTATUS[0]}" -eq 3
	changed patience expected got
	check "$1: a wrong clock: $invented branches that were not" test "$invented" -eq 0
	check "$1: a wrong clock: $(wc -l <got) branches" test "$(wc -l <got)" -gt "$(($(wc -l <expected) / 2))"
}

recording user-ls-cyc user.data
recording host-all-cyc-2cpu all.data
recording linux-guest-cyc-1cpu vm.data --guest guest.data,101,0xfffffd0b3e60cd07
wrong=-1568130896
recording qemu-guest pt.data --guest g1/guest.data,87,-1569630896

# Without time nobody knows which of the guest's processes runs: what is placed at random is known all the
# same; what the linker has placed is error rows; everything else is the truth.
mkdir "$tmp/timeless" && tar --zstd -xf "$archives/linux-guest-timeless-thread.tar.zst" -C "$tmp/timeless" --strip-components 1
cd "$tmp/timeless" || exit
"$PT_BIN/pt-capture" import -q --symfs symfs --guest guest.data,101 -o c.ptc vm.data 2>err
status=$?
check "timeless: import: $(head -n 3 err)" test $status -eq 0
"$PT_BIN/pt-decode" --text -F from,to c.ptc >text 2>err
status=$?
check "timeless: exit status $status" test $status -eq 3
# shellcheck disable=SC2016
kernel='/^#/ { next } ($1 == "0" || $1 ~ /^ffffffff/) && ($2 == "0" || $2 ~ /^ffffffff/)'
"$tmp/truthdump" -p truth-cpu0.bin | awk "$kernel" >expected
awk "$kernel" text >got
same "timeless: branches of the host's and the guest's kernel" expected got
"$tmp/truthdump" -p truth-cpu0.bin >expected
grep -v '^#' text >got
changed minimal expected got
check "timeless: $invented branches that were not" test "$invented" -eq 0
check "timeless: whose code it is, is not known, and that is said" test \
	"$(grep -c '^#' text)" -eq "$(grep -c '^#.*it is not known which process runs$' text)"
check "timeless: of $(wc -l <expected) branches $missing are missing" test "$missing" -lt $(($(wc -l <expected) / 100))
