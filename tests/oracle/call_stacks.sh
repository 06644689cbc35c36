# Call stacks of host and guest threads, across interrupts, system calls, signals, execs, context switches and
# VM transitions: what the database has open at every call and return is what its branches say, which
# oracle/emulated.sh holds to be the truth's.
# timeout: 240
source tests/common.bash
archives=$PT_SHARED/traces/emulated
if [ ! -d "$archives" ] || ! command -v zstd python3 >/dev/null; then
	skip 2 "call_stacks: no $archives, or no zstd or python3"
	exit
fi

# recording NAME DATA [OPTION...]
recording() {
	tar --zstd -xf "$archives/$1.tar.zst" -C "$tmp" || fail "$1 cannot be unpacked"
	(cd "$tmp/$1" && "$PT_BIN/pt-capture" import -q --symfs symfs "${@:3}" "$2") 2>"$tmp/err" | "$PT_BIN/pt-decode" -q |
		"$PT_BIN/pt-load" -q "$tmp/$1.db"
	python3 tests/oracle/call_stacks.py "$tmp/$1.db" >"$tmp/out" 2>&1
	grep -A 2 '^FAILED' "$tmp/out"
	check "$1: $(tail -n 1 "$tmp/out")" grep -qE '^[1-9][0-9]{4,} stacks compared, 0 differ$' "$tmp/out"
	rm -rf "${tmp:?}/$1" "$tmp/$1.db"
}

recording host-all-cyc-2cpu all.data
recording linux-guest-cyc-1cpu vm.data --guest guest.data,101
