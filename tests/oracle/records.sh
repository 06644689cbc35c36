# A record stream read by a second reader, which was written from pt-records(5) alone: checksums, counts, and
# the sums that the database of the same stream has.
source tests/common.bash
# (3 of 16 ms: the sqlite3 shell counts the branches by SQL.)
"$PT_BIN/pt-decode" -q --time ..+3ms -o "$tmp/records" demo/qemu-guest.ptc
succeeded $? "decode"
python3 tests/oracle/ptr_reader.py "$tmp/records" >"$tmp/sums" 2>"$tmp/err"
succeeded $? "the second reader: $(tail -n 1 "$tmp/err")"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/records"
succeeded $? "load"
# equal NAME SQL
equal() {
	local ours theirs
	theirs=$(awk -v n="$1" '$1 == n { print $2 }' "$tmp/sums")
	ours=$(sqlite3 "$tmp/db" "$2")
	check "$1: $theirs in the stream, $ours in the database" test "${theirs:-none}" = "$ours"
}
equal branches 'SELECT count(*) FROM branches'
equal RUN 'SELECT count(*) FROM run'
equal EDGE 'SELECT count(*) FROM edge'
equal SYMBOL 'SELECT count(*) FROM symbol'
equal functions 'SELECT count(DISTINCT first) FROM symbol'
equal edges_of_kind_1 "SELECT count(*) FROM edge JOIN kind ON kind.id = edge.kind WHERE kind.name = 'jcc'"
equal edges_of_kind_6 "SELECT count(*) FROM edge JOIN kind ON kind.id = edge.kind WHERE kind.name = 'ret'"
equal CALL 'SELECT count(*) FROM call'
equal call_insns 'SELECT sum(insn_count) FROM call'
equal call_branches 'SELECT sum(branch_count) FROM call'
equal call_elapsed_tsc 'SELECT sum(elapsed_tsc) FROM call'
equal call_branch_ids 'SELECT sum(return_branch - call_branch) FROM call'
equal insns 'SELECT sum(insn_count) FROM slice'
equal GUEST_RUN 'SELECT count(*) FROM vmentries'
equal VMEXIT_INTERVAL 'SELECT count(*) FROM vmexits'
equal guest_insns 'SELECT sum(guest_insns) FROM vmentries'
equal host_insns 'SELECT sum(host_insns) FROM vm_exit'
equal EVENT 'SELECT count(*) FROM events'
# The same of what is summed up.
"$PT_BIN/pt-decode" -q --time ..+3ms --detail vm -o "$tmp/vm" demo/qemu-guest.ptc
python3 tests/oracle/ptr_reader.py "$tmp/vm" >"$tmp/sums" 2>"$tmp/err"
succeeded $? "the second reader of sums: $(tail -n 1 "$tmp/err")"
equal branches 'SELECT branches FROM traces'
equal summed_calls 'SELECT count(*) FROM call'
equal INTERRUPT 'SELECT count(*) FROM interrupts'
equal RUN 'SELECT 0'
# One flipped bit is found by both.
printf '\x40' | dd of="$tmp/records" bs=1 seek=5000 conv=notrunc status=none
python3 tests/oracle/ptr_reader.py "$tmp/records" >/dev/null 2>&1
check "a damaged stream" test $? -ne 0
