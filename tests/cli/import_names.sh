#!/usr/bin/env bash
# What import takes an argument for: a pipe is read once, and a file that is written, not read, is no input.
source tests/common.bash
capture=$PT_BIN/pt-capture
trace_of_true "$tmp/c.ptc"
"$capture" export --perf-data "$tmp/x.data" "$tmp/c.ptc"
gzip -k "$tmp/x.data"
branches() { "$PT_BIN/pt-decode" --text -F from,to "$1" 2>/dev/null | md5sum; }
"$capture" import -q -o "$tmp/whole.ptc" "$tmp/x.data" 2>"$tmp/err"
succeeded $? "import of a file: $(cat "$tmp/err")"
"$capture" import -q -o "$tmp/pipe.ptc" <(zcat "$tmp/x.data.gz") 2>"$tmp/err"
succeeded $? "import <(zcat x.gz): $(cat "$tmp/err")"
same "import <(zcat x.gz): branches" <(branches "$tmp/whole.ptc") <(branches "$tmp/pipe.ptc")
for options in "-o $tmp/old.dat" "--output $tmp/old.dat" "--output=$tmp/old.dat" "-q -o $tmp/old.dat --symfs $tmp/old.dat"; do
	printf '\x17\x08\x44tracing' >"$tmp/old.dat"
	# shellcheck disable=SC2086
	"$capture" import -q $options "$tmp/x.data" 2>"$tmp/err"
	succeeded $? "import $options, which was a trace.dat: $(cat "$tmp/err")"
	check "import $options: a container" "$capture" info "$tmp/old.dat" >/dev/null
done
printf '\x17\x08\x44tracing' >"$tmp/old.dat"
"$capture" import -o "$tmp/z.ptc" "$tmp/old.dat" 2>"$tmp/err"
check "a trace.dat is known by its first bytes: $(cat "$tmp/err")" grep -q 'old.dat' "$tmp/err"
check "and no perf.data" test "$(grep -c 'perf.data' "$tmp/err")" = 0
