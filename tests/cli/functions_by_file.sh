#!/usr/bin/env bash
# A function of a file that several processes map, each elsewhere, is one: for call paths, the view functions, lines. What each
# call's call path says is where in which file its branch went to.
source tests/common.bash
if ! "$PT_BIN/pt-capture" -q --engine step -o "$tmp/in.ptc" -- \
	sh -c 'for i in 1 2 3; do /bin/true; /bin/ls -d /; done' >"$tmp/out" 2>"$tmp/err"; then
	fail "capture: $(head -n 1 "$tmp/err")"
fi
"$PT_BIN/pt-decode" -q "$tmp/in.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
number() { "$PT_BIN/pt-query" "$tmp/db" --format csv --sql "$1" 2>&1 | tail -n 1 | tr -d '\r'; } # SQL
places=$(number "SELECT count(*) FROM symbol WHERE first <> id")
check "functions are at several places" test "$places" -gt 500
# perf and nm know what is where in a file; pt-capture has it from there (oracle/names.sh).
check "each place is of the same function of the same file" test 0 -eq "$(number "SELECT count(*) FROM symbol s JOIN symbol f ON f.id = s.first
	WHERE f.name IS NOT s.name OR f.dso IS NOT s.dso OR f.start_ip - f.base IS NOT s.start_ip - s.base OR f.first <> f.id")"
check "no function has two first places" test 0 -eq "$(number "SELECT count(*) FROM (SELECT 1 FROM symbol WHERE base IS NOT NULL AND first = id
	GROUP BY dso, start_ip - base, name HAVING count(*) > 1)")"
callers="FROM call c CROSS JOIN branches b CROSS JOIN edge e CROSS JOIN symbol y CROSS JOIN call_path p CROSS JOIN symbol s
	WHERE b.id = c.call_branch AND e.id = b.edge AND y.id = e.to_symbol AND p.id = c.call_path AND s.id = p.symbol"
all=$(number "SELECT count(*) $callers")
elsewhere=$(number "SELECT count(*) $callers AND y.id <> s.id")
echo "$all calls, $elsewhere of them elsewhere than the first one of the function; $places places"
check "calls of functions elsewhere" test "$elsewhere" -gt 1000
check "calls of code without symbols, elsewhere" test 0 -lt "$(number "SELECT count(*) $callers AND y.id <> s.id AND s.unnamed")"
check "each call's call path ends with what was called" test 0 -eq "$(number "SELECT count(*) $callers AND y.first <> s.id")"
check "and where in the file that is" test 0 -eq "$(number "SELECT count(*) $callers AND s.base IS NOT NULL
	AND (s.unnamed OR p.ip IS NULL) AND coalesce(p.ip, s.start_ip) - s.base IS NOT b.to_ip - y.base AND (s.unnamed OR b.to_ip = y.start_ip)")"
check "a call path's callee is called once" test 0 -eq "$(number "SELECT count(*) FROM (SELECT 1 FROM call_path
	GROUP BY parent, symbol, ip HAVING count(*) > 1)")"
check "one row for each function" test 0 -eq "$(number "SELECT count(*) FROM (SELECT 1 FROM functions f JOIN symbol s ON s.id = f.symbol_id
	GROUP BY s.dso, s.name, s.start_ip - s.base HAVING count(*) > 1)")"
same "instructions of functions" <(number "SELECT insn_count FROM trace") <(number "SELECT sum(insn_count) FROM functions")
same "calls of functions" <(number "SELECT count(*) FROM call WHERE call_path IS NOT NULL") <(number "SELECT sum(calls) FROM functions")
same "seven programs began" <(echo 7) <(number "SELECT sum(calls) FROM call_tree WHERE parent IS NULL AND function = '_start' AND dso LIKE '%/ld-linux%'
	GROUP BY id")
