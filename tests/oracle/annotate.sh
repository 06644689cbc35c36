# pt-query annotate: counts, branches and loops of programs whose counts are known; objdump's addresses; each row against
# the views.
# timeout: 120
source tests/common.bash
sql() { sqlite3 "$tmp/db" "$1"; }
cat >"$tmp/loops.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#define HERE __attribute__((noinline, noclone, noipa))
static int sink;
HERE void leaf(int i) { sink += i; }
HERE int inner(int n) { int s = 0; for (int i = 0; i < n; i++) s += i ^ sink; return s; }
HERE void calls(int n) { for (int i = 0; i < n; i++) leaf(i); }
HERE void rec(int depth, int n) {
	for (int i = 0; i < n; i++) { leaf(i); if (i == 1 && depth) rec(depth - 1, n + 1); }
}
HERE void nest(int n, int m) { for (int i = 0; i < n; i++) { leaf(i); for (int k = 0; k < m; k++) leaf(k); } }
HERE void sw(int n) { for (int i = 0; i < n; i++) switch (i % 5) { case 0: leaf(1); break; case 1: leaf(2); break; case 2: sink ^= 7; break; case 3: sink--; break; case 4: leaf(9); } }
HERE void ind(int n) { void (*volatile f[2])(int) = {leaf, calls}; for (int i = 0; i < n; i++) f[i % 4 == 3](2); }
int main(void)
{
	for (int i = 1; i <= 9; i++)
		sink += inner(i * 10);
	sink += inner(0);
	calls(5), calls(7), calls(100);
	rec(3, 4);
	nest(6, 8);
	sw(103);
	ind(11);
	printf("%d\n", sink);
	return 0;
}
END
annotate() { "$PT_BIN/pt-query" "$tmp/db" annotate --format json "$@"; }
# trips FUNCTION: its loops' column, in the order of addresses
trips() { annotate -p "function=$1" | jq -r '.[] | .loop | strings'; }
if "$PT_BIN/pt-query" --version >/dev/null && ! command -v jq >/dev/null; then
	annotate() { "$PT_BIN/pt-query" "$tmp/db" annotate --format csv "$@"; }
	trips() { annotate -p "function=$1" | python3 -c 'import csv, sys
for r in csv.DictReader(sys.stdin):
    if r["loop"]: print(r["loop"])'; }
fi
column() { # NAME FUNCTION...: of the rows of instructions
	"$PT_BIN/pt-query" "$tmp/db" annotate --format csv -p "function=$2" "${@:3}" | python3 -c 'import csv, sys
for r in csv.DictReader(sys.stdin):
    if r["ip"]: print(*[r[c] for c in sys.argv[1].split(",")])' "$1"
}
for o in 0 1 2; do
	# Straight loops: no vectors, whose trips are others.
	gcc -g -O$o -fno-tree-vectorize -fno-unroll-loops -o "$tmp/loops" "$tmp/loops.c" || fail "loops.c does not compile"
	"$PT_BIN/pt-capture" -q -o "$tmp/x.ptc" -- "$tmp/loops" >/dev/null 2>"$tmp/err"
	succeeded $? "capture: $(cat "$tmp/err")"
	rm -f "$tmp/db"
	"$PT_BIN/pt-decode" -q "$tmp/x.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
	if ! "$PT_BIN/pt-query" "$tmp/db" annotate -p function=main >"$tmp/out" 2>"$tmp/err" && grep -q 'without capstone' "$tmp/err"; then
		skip 1 "pt-query was built without capstone"
		exit 0
	fi
	# -O0 tests at the end: the header is the test, and runs once more. Without optimizing, inner(0) gets there, too.
	plus=$((o == 0))
	expect_trips() { same "-O$o: loops of $1" <(printf '%s\n' "${@:2}" | sort) <(trips "$1" | sort); }
	if [ $o = 0 ]; then
		expect_trips inner "entered 10, trips min 1 median 41 max 91"
	else
		expect_trips inner "entered 9, trips min 10 median 50 max 90"
	fi
	expect_trips calls "entered 5, trips min $((2 + plus)) median $((5 + plus)) max $((100 + plus))"
	expect_trips rec "entered 4, trips min $((4 + plus)) median $((5 + plus)) max $((7 + plus))"
	expect_trips nest "entered 1, trips min $((6 + plus)) median $((6 + plus)) max $((6 + plus))" \
		"entered 6, trips min $((8 + plus)) median $((8 + plus)) max $((8 + plus))"
	expect_trips sw "entered 1, trips min $((103 + plus)) median $((103 + plus)) max $((103 + plus))"
	expect_trips ind "entered 1, trips min $((11 + plus)) median $((11 + plus)) max $((11 + plus))"
	# At -O2 it is a search by comparing.
	[ $o = 2 ] || check "-O$o: an indirect jump's five targets" test "$(column code,branches sw | grep -c '^\(notrack \)*jmp r.*21.*21.*21.*20.*20')" = 1
	check "-O$o: an indirect call's two" test "$(column code,branches ind | grep -c 'leaf 9, calls 2')" = 1
	check "-O$o: a call out" test "$(column code,branches calls | grep -c '^call.* leaf 116$')" = 1
	for f in inner calls rec nest sw ind main leaf; do
		same "-O$o: $f: counts of insns" <(sql "SELECT ip_hex || ' ' || count FROM insns WHERE symbol = '$f' ORDER BY ip") <(column ip,count $f)
		[ $f != leaf ] || continue # it has none
		# taken and not taken are all
		same "-O$o: $f: conditional branches" <(sql "SELECT i.ip_hex || ' ' || i.count FROM insns i WHERE symbol = '$f'
			AND ip IN (SELECT from_ip FROM edge WHERE kind = 1) ORDER BY ip") <(column 'ip,branches' $f |
			awk '/not taken/ && /\+0x/ { n = 0; for (i = 3; i <= NF; i++) if ($i + 0 > 0 || $i ~ /^0,?$/) n += $i; print $1, n }' |
			grep -vE ' 0$'; :)
	done
	# Names and addresses are objdump's.
	objdump -d --no-show-raw-insn -M intel "$tmp/loops" | awk '/^[0-9a-f]+ <sw>:/ { on = 1 } /^$/ { on = 0 } on && NF > 1 { sub(/:/, "", $1); print $1, $2 }' >"$tmp/objdump"
	base=$(sql "SELECT base FROM symbol WHERE name = 'sw'")
	column ip,code sw | while read -r ip name _; do printf '%x %s\n' $((0x$ip - base)) "$name"; done >"$tmp/ours"
	same "-O$o: sw: objdump's names and addresses" /dev/null <(sort "$tmp/objdump" | comm -13 - <(sort "$tmp/ours"))
	# perf annotate, of a sample at every instruction: the same shares, to the hundredth of a percent that it prints.
	if command -v perf >/dev/null; then
		"$PT_BIN/pt-capture" export -q --perf-data "$tmp/perf.data" "$tmp/x.ptc" 2>"$tmp/err" || fail "export: $(cat "$tmp/err")"
		# perf 6.12 looks for samples before --itrace makes them.
		if perf annotate -i "$tmp/perf.data" --stdio --itrace=i1i -s main 2>&1 | grep -q 'has no samples'; then
			skip 7 "$(perf --version)'s annotate makes no samples of a trace"
			set --
		else
			set -- inner calls rec nest sw ind main
		fi
		for f; do
			perf annotate -i "$tmp/perf.data" --stdio --stdio-color=never --itrace=i1i -s "$f" 2>/dev/null |
				sed -nE 's/^ +([0-9.]+) : +([0-9a-f]+): .*/\2 \1/p' | while read -r at share; do
				[ "$share" = 0.00 ] || printf '%x %s\n' $((0x$at)) "$share"
			done >"$tmp/perf"
			column ip,count "$f" | while read -r ip n; do printf '%x %s\n' $((0x$ip - base)) "$n"; done |
				awk '{ at[NR] = $1; n[NR] = $2; all += $2 } END { for (i = 1; i <= NR; i++) printf "%s %.2f\n", at[i], 100 * n[i] / all }' |
				grep -v ' 0.00$' >"$tmp/ours"
			same "-O$o: $f: perf annotate" "$tmp/perf" "$tmp/ours"
		done
	else
		skip 7 "no perf: perf annotate"
	fi
	check "-O$o: source lines" grep -q 'loops.c:[0-9]*: HERE void sw' <("$PT_BIN/pt-query" "$tmp/db" annotate -p function=sw)
done

# ---- By address, by thread, in AT&T's words; what is wrong is said
ip=$(sql "SELECT ip_hex FROM insns WHERE symbol = 'calls' LIMIT 1")
same "by address" <("$PT_BIN/pt-query" "$tmp/db" annotate -p function=calls) <("$PT_BIN/pt-query" "$tmp/db" annotate -p "ip=0x$ip")
tid=$(sql 'SELECT tid FROM thread LIMIT 1')
same "the only thread" <(column ip,count,branches sw) <(column ip,count,branches sw -p "thread=$tid")
check "another thread ran nothing" test "$(column count sw -p thread=1 | sort -u)" = 0
check "AT&T" grep -q '%' <("$PT_BIN/pt-query" "$tmp/db" annotate -p function=sw -p syntax=att)
wrong() { # WHAT, the message, ARGUMENT...
	"$PT_BIN/pt-query" "$tmp/db" annotate "${@:3}" >"$tmp/out" 2>"$tmp/err"
	check "$1: $?" test $? -eq 0 -o ! -s "$tmp/out"
	check "$1: $(cat "$tmp/err")" grep -q "$2" "$tmp/err"
}
wrong "both asked for" 'annotate wants -p function=NAME or' -p function=sw -p ip=1
same "nothing asked for: the hottest function" <("$PT_BIN/pt-query" "$tmp/db" annotate) <("$PT_BIN/pt-query" "$tmp/db" annotate -p "function=$(sql 'SELECT name
	FROM functions WHERE NOT unnamed ORDER BY insn_count DESC LIMIT 1')")
wrong "no such function" 'no function nothing was executed' -p function=nothing
"$PT_BUILD/tests/tools/mkrecords" --runs 10 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/no_code.db"
"$PT_BIN/pt-query" "$tmp/no_code.db" annotate >"$tmp/out" 2>"$tmp/err"
check "no code at all: $?" test $? -eq 2 -a ! -s "$tmp/out"
check "no code at all: $(cat "$tmp/err")" grep -q 'no code that was executed is known' "$tmp/err"
wrong "no such address" 'no code that is known was executed at 0x1' -p ip=1
wrong "no address" 'not an address' -p ip=x
wrong "no such parameter" 'annotate has no parameter x' -p x=1 -p function=sw
wrong "no such syntax" 'intel or att' -p syntax=x -p function=sw

# ---- Stripped: from the call's target on, and the same counts
strip "$tmp/loops"
"$PT_BIN/pt-capture" -q -o "$tmp/x.ptc" -- "$tmp/loops" >/dev/null 2>"$tmp/err"
mv "$tmp/db" "$tmp/named"
"$PT_BIN/pt-decode" -q "$tmp/x.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
at=$(sqlite3 "$tmp/named" "SELECT dso_ip FROM insns WHERE symbol = 'nest' ORDER BY ip LIMIT 1")
counts_of() { "$PT_BIN/pt-query" "$1" annotate --format csv -p "$2" | python3 -c 'import csv, sys
for r in csv.DictReader(sys.stdin):
    if r["ip"]: print(r["count"], r["code"].split()[0], r["loop"])'; }
same "stripped: nest" <(counts_of "$tmp/named" function=nest) <(counts_of "$tmp/db" "ip=$(sql "SELECT ip FROM insns WHERE dso_ip = $at AND dso LIKE '%/loops'")")
