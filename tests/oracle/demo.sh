# demo/qemu-guest.ptc: decodes without an error, and to the same branches and VM exits as the recording that
# it is a part of.
# timeout: 120
source tests/common.bash
demo=demo/qemu-guest.ptc

load() { "$PT_BIN/pt-decode" -q "$1" | "$PT_BIN/pt-load" -q "$2"; }
check "at most 2 MB" test "$(stat -c %s $demo)" -le 2000000
"$PT_BIN/pt-decode" --text -F cpu,tsc,from,to $demo >"$tmp/demo.text" 2>"$tmp/err"
succeeded $? "decodes: status $?: $(head -n 1 "$tmp/err")"
check "branches" test "$(wc -l <"$tmp/demo.text")" -gt 1900000
load $demo "$tmp/demo.db"
columns="tsc, cpu, vcpu, printf('%x', guest_ip), reason, reason_name, qualification, latency_tsc, host_insns, host_cycles"
exits() { sqlite3 "$1" "SELECT $columns FROM vmexits WHERE tsc > $from AND tsc < $to ORDER BY tsc"; }
from=0 to=9223372036854775807
check "VM exits" test "$(exits "$tmp/demo.db" | wc -l)" -gt 300

archive=$PT_SHARED/traces/emulated/qemu-guest.tar.zst
if [ -e "$archive" ] && command -v zstd >/dev/null; then
	mkdir "$tmp/q" && tar --zstd -xf "$archive" -C "$tmp/q" --strip-components 1
	(cd "$tmp/q" && "$PT_BIN/pt-capture" import -q --symfs symfs --guest g1/guest.data,87,-1569630896 -o "$tmp/q.ptc" pt.data)
	rm -rf "$tmp/q"
	"$PT_BIN/pt-decode" --text -F cpu,tsc,from,to "$tmp/q.ptc" 2>"$tmp/err" >"$tmp/q.text"
	# From after the first two PSBs' worth, where the clock was corrected, to the end.
	from=$(awk 'NR == 20000 { print $2 }' "$tmp/demo.text") to=$(awk 'END { print $2 }' "$tmp/demo.text")
	range() { awk -v a="$from" -v b="$to" '$2 > a && $2 < b' "$1"; }
	range "$tmp/q.text" >"$tmp/want"
	range "$tmp/demo.text" >"$tmp/got"
	same "the recording's branches" "$tmp/want" "$tmp/got"
	load "$tmp/q.ptc" "$tmp/q.db"
	exits "$tmp/q.db" >"$tmp/want"
	exits "$tmp/demo.db" >"$tmp/got"
	check "there are exits" test "$(wc -l <"$tmp/got")" -gt 300
	same "the recording's VM exits" "$tmp/want" "$tmp/got"
else
	skip 3 "no $archive, or no zstd"
fi
