# Guests of emulated recordings: each VM entry and exit, its time, its reason and the guest's clock are the
# truth's.
# timeout: 240
source tests/common.bash
archives=$PT_SHARED/traces/emulated
if [ ! -d "$archives" ] || ! command -v zstd >/dev/null; then
	skip 4 "emulated: no $archives, or no zstd"
	exit
fi

"${CC:-cc}" -O2 -w -o "$tmp/truthdump" "$PT_SHARED/tools/truthdump.c" || exit 1
# What perf prints for VMCS and TSC offset (`perf inject --vm-time-correlation=dry-run`) is in each
# recording's README.
# guest NAME DATA GUEST PID VMCS OFFSET [insns]
guest() {
	local name=$1 dir=$tmp/$1 vmcs=$5 offset=$6
	mkdir "$dir"
	if ! tar --zstd -xf "$archives/$name.tar.zst" -C "$tmp"; then
		fail "$name cannot be unpacked"
		return
	fi
	(cd "$dir" && "$PT_BIN/pt-capture" import -q --symfs symfs --guest "$3,$4" -o c.ptc "$2") 2>"$dir/err"
	succeeded $? "$name: import: $(head -n 3 "$dir/err")"
	"$PT_BIN/pt-decode" vm-clock "$dir/c.ptc" | cut -f 1,4-6,8 >"$dir/clock"
	printf 'vmcs\toffset_hex\tratio\tsource\tworst_residual_tsc\n%s\t%s\t1\tsolved\t0\n' "$vmcs" "$offset" >"$dir/expected"
	same "$name: vm-clock" "$dir/expected" "$dir/clock"
	# A container that was read from a pipe says the same.
	"$PT_BIN/pt-decode" vm-clock <"$dir/c.ptc" | cut -f 1,4-6,8 >"$dir/clock"
	same "$name: vm-clock of a pipe" "$dir/expected" "$dir/clock"
	"$PT_BIN/pt-decode" -q "$dir/c.ptc" | "$tools/vm_truth" "$dir/truth-cpu0.bin" "$offset" "${@:7}" >"$dir/out"
	counts "$dir/out"
	# An option outdoes the trace, and what the trace says is its residual.
	"$PT_BIN/pt-decode" vm-clock --tsc-offset "$vmcs:$((offset - 1000))" "$dir/c.ptc" | cut -f 1,3,6,8 >"$dir/clock"
	printf 'vmcs\toffset\tsource\tworst_residual_tsc\n%s\t%d\toption\t1000\n' "$vmcs" "$((offset - 1000))" >"$dir/expected"
	same "$name: --tsc-offset" "$dir/expected" "$dir/clock"
	# One that is 10 ms off is reported, and no branch comes of it that was not.
	"$tmp/truthdump" -p "$dir/truth-cpu0.bin" >"$dir/expected"
	"$PT_BIN/pt-decode" --text -F from,to --tsc-offset "$((offset + 15000000))" "$dir/c.ptc" 2>"$dir/err" >"$dir/got"
	"$PT_BIN/pt-decode" -q --tsc-offset "$((offset + 15000000))" "$dir/c.ptc" 2>"$dir/err" | "$PT_BIN/pt-load" -q "$dir/db"
	check "$name: a wrong --tsc-offset is reported" test "$(sqlite3 "$dir/db" "SELECT group_concat(message) FROM errors WHERE kind = 'clock'")" = \
		"--tsc-offset is off by 15000000 ticks or more: it is not known which processes of vm $4 run, nor when"
	# Text has every error that the database has, also those that are of no stream.
	sqlite3 -separator ' ' "$dir/db" "SELECT kind || ': ' || message FROM errors" | sort >"$dir/errors"
	sed -n 's/^# error .* ip [0-9a-f]* //p' "$dir/got" | sort >"$dir/text"
	same "$name: a wrong --tsc-offset: errors of --text" "$dir/errors" "$dir/text"
	sed -i '/^#/d' "$dir/got"
	changed minimal "$dir/expected" "$dir/got"
	check "$name: a wrong --tsc-offset: $invented branches that were not, $missing missing" \
		test "$invented" -eq 0 -a "$missing" -gt 0 -a "$missing" -lt 100000
	rm -rf "$dir"
}

guest linux-guest-cyc-1cpu vm.data guest.data 101 0x5fc57 0xfffffd0b3e60cd07
guest qemu-guest pt.data g1/guest.data 87 0x7c924 0xffffffffa2715550 insns
