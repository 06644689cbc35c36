# Two traces compared: functions of two builds of a program against the instructions that pt-decode prints, and VM exits
# against their truth; in two databases and in one. Any question to several databases.
# timeout: 60
source tests/common.bash
cc=${CC:-cc}
mkdir "$tmp/old" "$tmp/new"
"$cc" -g -O1 -static -pthread -Wl,--build-id -o "$tmp/old/program" tests/programs/latency.c || fail "the program"
"$cc" -g -O1 -static -pthread -Wl,--build-id -DOFTEN=351 -DMORE=1000 -o "$tmp/new/program" tests/programs/latency.c || fail "its other build"
for side in old new; do
	"$PT_BIN/pt-capture" -q -e cyc -o "$tmp/$side.ptc" -- "$tmp/$side/program" >/dev/null || fail "capture"
	"$PT_BIN/pt-decode" -q "$tmp/$side.ptc" >"$tmp/$side.s"
	"$PT_BIN/pt-load" -q "$tmp/$side.db" "$tmp/$side.s" || fail "load"
	"$PT_BIN/pt-decode" -q --insns -F symbol "$tmp/$side.ptc" 2>/dev/null | sed 's/+0x[0-9a-f]*$//' | sort | uniq -c |
		awk -v OFS=, '{ print $2, $1 }' | sort >"$tmp/$side.counts"
done
two() { "$PT_BIN/pt-query" --db "$tmp/old.db" --db "$tmp/new.db" "$@"; }
csv() { python3 -c 'import csv, sys
for r in csv.DictReader(sys.stdin): print(*(r[k] for k in sys.argv[1:]), sep=",")' "$@"; }

if [ -s "$tmp/old.counts" ]; then
	# Of each function that changed: instructions before and after; nothing of the others.
	join -t, -a 1 -a 2 -e '' -o 0,1.2,2.2 "$tmp/old.counts" "$tmp/new.counts" | awk -F, -v OFS=, '$2 != $3 { print $1, $2, $3, $3 - $2 }' |
		sort >"$tmp/expected"
	two diff -p what=function -p limit=100000 --format csv | csv name insns_a insns_b insns_change | awk -F, '$2 != $3' | sort >"$tmp/got"
	same "instructions of functions, before, after and the change" "$tmp/expected" "$tmp/got"
	check "what is only in one of them is among them" grep -q '^added,,[0-9]*,[0-9]*$' "$tmp/got"
else
	skip 2 "diff: pt-decode --insns is built without capstone"
fi
two diff -p limit=100000 --format csv >"$tmp/two"
if ldd "$PT_BIN/pt-load" | grep -q libdw; then
	for side in old new; do
		sqlite3 -csv "$tmp/$side.db" "SELECT file || ':' || line, count, insn_count FROM lines ORDER BY 1" >"$tmp/$side.lines"
	done
	join -t, -a 1 -a 2 -e '' -o 0,1.2,2.2,1.3,2.3 "$tmp/old.lines" "$tmp/new.lines" | awk -F, '$2 != $3 || $4 != $5' >"$tmp/expected"
	check "lines that changed: $(wc -l <"$tmp/expected")" test "$(wc -l <"$tmp/expected")" -ge 3
	same "lines: how often they ran, instructions" "$tmp/expected" \
		<(two diff -p what=line -p limit=100000 --format csv | csv name times_a times_b insns_a insns_b |
			awk -F, '$2 != $3 || $4 != $5' | sort)
else
	skip 2 "pt-load was built without libdw"
fi
check "calls: $(csv name times_a times_b times_change <"$tmp/two" | grep ^work,)" test "$(csv name times_a times_b times_change <"$tmp/two" | grep ^work,)" = work,396,446,50
check "another build is one" test "$(csv name build <"$tmp/two" | grep ^work,)" = work,other
check "what changed most is first" sh -c "sort -c -t, -k1,1nr" < <(csv what insns_change <"$tmp/two" | sed -n 's/^function,-*//p')
check "limit" test "$(two diff -p what=function -p limit=3 --format csv | wc -l)" = 4

# In one database, either way round; with itself there is no change, and without a second there is nothing to compare.
cp "$tmp/old.db" "$tmp/both.db"
"$PT_BIN/pt-load" -q "$tmp/both.db" "$tmp/new.s"
"$PT_BIN/pt-query" "$tmp/both.db" diff -p limit=100000 --format csv >"$tmp/one"
same "two traces of one database" "$tmp/two" "$tmp/one"
"$PT_BIN/pt-query" "$tmp/both.db" diff -p a=2 -p b=1 -p limit=100000 --format csv >"$tmp/back"
same "the other way round" <(csv name insns_a insns_b insns_change total_ns_change <"$tmp/two" | sort) \
	<(csv name insns_b insns_a insns_change total_ns_change <"$tmp/back" | awk -F, -v OFS=, '{ $4 = -$4; if ($5 != "") $5 = -$5; print }' | sort)
check "with itself: no row" test "$("$PT_BIN/pt-query" --db "$tmp/old.db" --db "$tmp/old.db" diff --format csv | wc -l)" = 1
check "no second trace: says so" grep -q 'no two traces' <("$PT_BIN/pt-query" "$tmp/old.db" diff)
"$PT_BIN/pt-query" --db "$tmp/both.db" --db "$tmp/new.db" diff -p limit=100000 --format csv >"$tmp/first"
same "of several traces in the first database, its first and the second's" "$tmp/two" "$tmp/first"
check "or which are asked for: traces are counted through" test "$("$PT_BIN/pt-query" --db "$tmp/both.db" --db "$tmp/new.db" diff -p a=2 -p b=3 \
	--format csv | wc -l)" = 1

# VM exits by reason, against what the makers of two recordings say.
for seed in 5 6; do
	"$PT_BUILD/tests/tools/mkvmrecords" --exits $((seed * 200)) --seed $seed --truth "$tmp/truth$seed" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/vm$seed"
	awk -F, -v OFS=, '$1 == "exit" { n[$4]++; if ($7 % 16 == 0) v[$4] = v[$4] " " $6 - $5 } END { for (r in n) print r, n[r], v[r] }' "$tmp/truth$seed" >"$tmp/exits$seed"
done
"$PT_BIN/pt-query" --db "$tmp/vm5" --db "$tmp/vm6" diff -p what=exit --format csv >"$tmp/exits"
sqlite3 -csv "$tmp/vm5" "SELECT coalesce(reason, ''), coalesce(kvm_name, name) FROM exit_reason" >"$tmp/names"
python3 - "$tmp/exits" "$tmp/names" "$tmp/exits5" "$tmp/exits6" >"$tmp/out" <<'END'
import csv, sys
sys.path.append("tests")
from check import check, same, sum_up
rows = {r["name"]: r for r in csv.DictReader(open(sys.argv[1]))}
names = dict(csv.reader(open(sys.argv[2])))
ns = lambda t: t * 699050667 >> 31  # mkvmrecords' clock
seen = set()
for side, file in (("a", sys.argv[3]), ("b", sys.argv[4])):
    for reason, n, values in csv.reader(open(file)):
        name = names.get(reason, "[unknown]" if reason == "" else reason)
        seen.add(name)
        v = sorted(map(int, values.split()))
        want = {f"times_{side}": n}
        if v:
            want |= {f"{k}_{side}": str(ns(x)) for k, x in (("total_ns", sum(v)), ("p50_ns", v[-(-len(v) // 2) - 1]),
                     ("p99_ns", v[-(-len(v) * 99 // 100) - 1]), ("max_ns", v[-1]))}
        same(want, {k: rows[name][k] for k in want}, "exits by reason", name)
same(seen, set(rows), "all reasons")
check(len(seen) > 5, "there are some", seen)
sys.exit(sum_up())
END
counts "$tmp/out"

# Any question to several databases: each one's rows, with its name.
for name in threads hot-functions summary call-tree; do
	for format in csv json; do
		two $name --format $format >"$tmp/got"
		[ $format = csv ] || continue
		for side in old new; do
			same "$name of $side" <("$PT_BIN/pt-query" "$tmp/$side.db" $name --format csv | tail -n +2) \
				<(grep -a "^$tmp/$side.db," "$tmp/got" | cut -d, -f 2-)
		done
		check "$name: the column db" grep -q '^db,trace,' "$tmp/got"
	done
	check "$name: JSON says it, too" python3 -c 'import json, sys; sys.exit({r["db"] for r in json.load(open(sys.argv[1]))} != set(sys.argv[2:]))' \
		"$tmp/got" "$tmp/old.db" "$tmp/new.db"
done
check "SQL of one's own" test "$(two --sql 'SELECT count(*) AS n, 5 AS n FROM traces WHERE id = :id' -p id=1 --format csv | tr -d '\r' | cut -d, -f 2- | sort | uniq -c | tr -s ' ')" = " 2 1,5
 1 n,n"
check "stacks begin with the database" test "$(two folded | grep -c "^$tmp/[no][el][wd].db;")" = "$(two folded | wc -l)"
check "samples are labelled" grep -q "^pt_threads_instructions_total{db=\"$tmp/new.db\",trace=\"1\"" <(two threads --format prometheus)
for wrong in "threads -p nothing=1" "report -p nothing=1" ""; do
	# shellcheck disable=SC2086
	two $wrong >"$tmp/out" 2>"$tmp/err"
	check "wrong usage '$wrong'" test $? -eq 2 -a -s "$tmp/err"
done
"$PT_BIN/pt-query" --db "$tmp/old.db" --db "$tmp/none" threads >"$tmp/out" 2>"$tmp/err"
check "one of them is missing: it is named" grep -qF "$tmp/none" "$tmp/err"
two --sql 'DELETE FROM slice' 2>"$tmp/err"
check "writing is refused" test $? -eq 1
two --sql 'WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT max(n) FROM x' --timeout 1 >"$tmp/out" 2>"$tmp/err"
check "--timeout: $(cat "$tmp/err")" grep -q 'timeout' "$tmp/err"
