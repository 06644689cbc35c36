#!/usr/bin/env bash
# pt-decode --guest: the same record stream as of the container that pt-capture merge makes of the same two,
# on a recording of a host and its guest; and what is said where they cannot be joined. (Of a guest's own
# pt-capture: ptbox/vm.sh, ptbox/qemu.sh.)
# timeout: 120
source tests/common.bash
capture=$PT_BIN/pt-capture decode=$PT_BIN/pt-decode
t=$tmp/linux-guest-cyc-1cpu
if ! tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/linux-guest-cyc-1cpu.tar.zst" --zstd 2>/dev/null; then
	skip 1 "no $PT_SHARED/traces"
	exit 0
fi
"$capture" import -q --symfs "$t/symfs" -o "$tmp/host.ptc" "$t/vm.data"
succeeded $? "import of the host's"
# What perf recorded in the guest, alone: its clock, kernel, names and mappings, code of its files.
"$capture" import -q --symfs "$t/symfs" -o "$tmp/guest.ptc" "$t/guest.data"
succeeded $? "import of the guest's"
"$capture" merge -o "$tmp/merged.ptc" "$tmp/host.ptc" "$tmp/guest.ptc,101"
succeeded $? "merge"

# decoded STATUS NAME ARGUMENTS...: the record stream is in $tmp/NAME
decoded() {
	local status
	"$decode" -o "$tmp/$2" "${@:3}" 2>"$tmp/$2.err"
	status=$?
	check "${*:3}: exit status $status, not $1: $(cat "$tmp/$2.err")" test $status -eq "$1"
}
# 3: the guest's kernel is missing.
decoded 3 alone "$tmp/host.ptc"
# From a pipe: of a file the stream says the name, for branches on demand.
# shellcheck disable=SC2002
decoded 0 expected < <(cat "$tmp/merged.ptc")
"$capture" import -q --symfs "$t/symfs" --guest "$t/guest.data,101" -o "$tmp/at_once.ptc" "$t/vm.data"
same "the branches are those of what is imported at once" <("$decode" --text -F tsc,from,to "$tmp/at_once.ptc") \
	<("$decode" --text -F tsc,from,to "$tmp/merged.ptc")
check "the guest's sideband changes what is decoded" test "$(cmp "$tmp/alone" "$tmp/expected" 2>&1 | wc -l)" -eq 1
for way in file stdin; do
	if [ $way = file ]; then
		decoded 0 got --guest "$tmp/guest.ptc,101" "$tmp/host.ptc"
	else
		decoded 0 got --guest "$tmp/guest.ptc,101" <"$tmp/host.ptc"
	fi
	check "$way: the record stream is the merged container's" cmp "$tmp/expected" "$tmp/got"
done
same "packets" <("$decode" --packets "$tmp/merged.ptc") <("$decode" --packets --guest "$tmp/guest.ptc,101" "$tmp/host.ptc")
same "vm-clock" <("$decode" vm-clock "$tmp/merged.ptc") <("$decode" vm-clock --guest "$tmp/guest.ptc,101" "$tmp/host.ptc")
same "a part of the time" <("$decode" --text --time ..+1ms "$tmp/merged.ptc") \
	<("$decode" --text --time ..+1ms --guest "$tmp/guest.ptc,101" "$tmp/host.ptc")
# The reader of its lines goes away, and so do both programs.
timeout 300 "$decode" --text --guest "$tmp/guest.ptc,101" "$tmp/host.ptc" 2>"$tmp/err" | head -n 3 >"$tmp/out"
check "closed pipe: ${PIPESTATUS[*]} $(cat "$tmp/err")" test ! -s "$tmp/err" -a "$(wc -l <"$tmp/out")" -eq 3

# refused STATUS PATTERN ARGUMENTS...: and nothing is left
refused() {
	decoded "$1" got.new "${@:3}"
	check "${*:3}: '$2' is not in: $(cat "$tmp/got.new.err")" grep -qE "$2" "$tmp/got.new.err"
	check "${*:3}: no output" test ! -e "$tmp/got.new"
}
refused 1 'none: No such file' --guest "$tmp/none,101" "$tmp/host.ptc"
refused 1 'none: No such file' --guest "$tmp/guest.ptc,101" "$tmp/none"
refused 2 'no VM: say' --guest "$tmp/guest.ptc" "$tmp/host.ptc"
refused 2 'two guests with the pid 101' --guest "$tmp/guest.ptc,101" --guest "$tmp/guest.ptc,101" "$tmp/host.ptc"
refused 1 'has a trace of its own' --guest "$tmp/host.ptc,101" "$tmp/host.ptc"
# shellcheck disable=SC2002
cat "$tmp/host.ptc" | "$decode" --null --guest "$tmp/guest.ptc,101" 2>"$tmp/err"
check "a pipe cannot be read twice: ${PIPESTATUS[1]}" test "${PIPESTATUS[1]}" -eq 2
check "a pipe cannot be read twice: $(cat "$tmp/err")" grep -q 'name a file' "$tmp/err"
# A guest's container that is cut: what there is of it counts, and that is said.
trace_of_true "$tmp/whole.ptc"
"$decode" --null "$tmp/whole.ptc" 2>"$tmp/err"
succeeded $? "a whole trace"
head -c $(($(stat -c %s "$tmp/guest.ptc") / 2)) "$tmp/guest.ptc" >"$tmp/cut.ptc"
"$decode" --null --guest "$tmp/guest.ptc,7" "$tmp/whole.ptc" 2>"$tmp/err"
succeeded $? "a whole guest: $(cat "$tmp/err")"
"$decode" --null --guest "$tmp/cut.ptc,7" "$tmp/whole.ptc" 2>"$tmp/err"
check "a cut guest: status 3" test $? -eq 3
check "a cut guest: $(cat "$tmp/err")" grep -q 'cut.ptc: .*cut' "$tmp/err"
# pt-capture is in PATH when it is not beside.
mkdir "$tmp/bin" && cp "$decode" "$tmp/bin"
PATH=$PATH:$PT_BIN "$tmp/bin/pt-decode" -q -o "$tmp/got" --guest "$tmp/guest.ptc,101" "$tmp/host.ptc"
check "pt-capture from PATH" cmp "$tmp/expected" "$tmp/got"
(PATH=/nowhere "$tmp/bin/pt-decode" --null --guest "$tmp/guest.ptc,101" "$tmp/host.ptc" 2>"$tmp/err")
check "no pt-capture: status $?" test $? -eq 1
check "no pt-capture: $(cat "$tmp/err")" grep -q 'needs pt-capture' "$tmp/err"
