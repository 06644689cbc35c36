# timeout: 300
# The report in a browser: it is clicked, zoomed and searched, and what it shows is what SQL says. Wants Chromium and, from npm,
# what drives it (tests/report/package-lock.json): scripts/deps browser.
source tests/common.bash

# From the npm registry once a run, as the lock file pins it.
drivers() {
	local folder=${PT_CACHE:-$tmp}/report
	command -v npm >/dev/null && command -v node >/dev/null && { command -v chromium >/dev/null || [ -n "${CHROMIUM:-}" ]; } || return 1
	mkdir -p "$folder" && cp tests/report/*.js tests/report/package*.json "$folder" &&
		timeout 100 npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund >"$tmp/npm" 2>&1 && drive=$folder/drive.js
}
"$PT_BIN/pt-decode" -q demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/guest.db" || fail "load"
"$PT_BIN/pt-query" "$tmp/guest.db" report -o "$tmp/report.html"
succeeded $? "pt-query report"
python3 tests/cli/html_page.py "$tmp/report.html" >"$tmp/out" 2>&1
succeeded $? "one page, well-formed, that asks for nothing: $(tail -n 1 "$tmp/out")"
if ! drivers; then
	skip 30 "no Chromium, no npm, or nothing to be had from its registry (scripts/deps browser)"
	exit
fi
# shown DB ACTION...: what the report of DB shows goes to $tmp/shown
shown() {
	"$PT_BIN/pt-query" "$1" report -o "$tmp/report.html" || fail "pt-query report"
	node "$drive" "$tmp/report.html" "${@:2}" >"$tmp/shown" 2>&1
	check "the browser is done: $(tail -n 2 "$tmp/shown" | cut -c 1-300)" grep -qx 'done' "$tmp/shown"
	check "no message, error, request or breach of the policy: $(grep -E '^(console|error|request)' "$tmp/shown" | head -n 3)" \
		test "$(grep -cE '^(console|error|request)' "$tmp/shown")" = 0
	# Chromium asks for nothing; a page that did would be in the list above.
	if grep -q '^axe-passes' "$tmp/shown"; then
		check "axe-core finds nothing: $(grep -P '^axe\t' "$tmp/shown" | head -n 2)" test "$(grep -cP '^axe\t' "$tmp/shown")" = 0
	fi
}
said() { grep -P "^$1\t" "$tmp/shown" | cut -f 2-; }
sql() { "$PT_BIN/pt-query" "$1" --sql "$2" -f tsv "${@:3}" | tail -n +2 | sed 's/\\N//g'; }
# All that move by wheel, drag and keys does.
moved() {
	said range >"$tmp/ranges"
	# shellcheck disable=SC2016
	check "wheel, drag and keys move the time line" awk -F'\t' '
		{ b[$1] = $2; l[$1] = $3 - $2 }
		function near(x, y) { return x - y < 1 && y - x < 1 }
		END { exit !(l["wheel"] < l["all"] && near(l["drag"], l["wheel"]) && b["drag"] < b["wheel"] && b["ArrowRight"] > b["drag"] &&
			l["+"] < l["ArrowRight"] && near(l["-"], l["ArrowRight"]) && b["Home"] == 0 && l["Home"] >= l["all"]) }' "$tmp/ranges"
}
functions_are() { # DB
	said function | cut -f 1,2,3 | head -n 20 | sort >"$tmp/got"
	"$PT_BIN/pt-query" "$1" hot-functions -f tsv | tail -n +2 | awk -F'\t' -v OFS='\t' '{ print $3, $5, $6 + 0 }' | sort >"$tmp/expected"
	same "the hottest functions" "$tmp/expected" "$tmp/got"
	name=$(said insn | head -n 1 | cut -f 1)
	said insn | awk -F'\t' '$3 != "" { print $2, $3 }' >"$tmp/got"
	"$PT_BIN/pt-query" "$1" annotate -p function="$name" -f tsv | tail -n +2 | sed 's/^[^\t]*\t\\N/\t/' | awk -F'\t' '$3 != "\\N" { print $2, $3 }' >"$tmp/expected"
	same "instructions of $name, and how often each ran" "$tmp/expected" "$tmp/got"
}
flames_are() { # DB TERM
	"$PT_BIN/pt-query" "$1" folded -p percent=0 >"$tmp/folded"
	check "the flame graph has all instructions that folded has" test "$(said total | awk '$1 == "insns" { print $2 }')" = \
		"$(awk '{ s += $NF } END { print s }' "$tmp/folded")"
	check "an icicle has its root above, a flame below: $(said root | tr '\n\t' ', ')" test "$(said root | tr '\n\t' ', ')" = "icicle above,flame below,"
	check "searched: $2" test "$(said search | sed 's/.*match, \([0-9,]*\) of.*/\1/; s/,//g')" = \
		"$(grep "$2" "$tmp/folded" | awk '{ s += $NF } END { print s }')"
	check "a frame says what it is when the keyboard is on it: $(said frame)" grep -q 'instructions, .*%' <(said frame)
}
# Of each thread what its stack's bottoms had (flag 1: no call), which has all that its calls had.
threads_are() { # DB
	said of | awk -F'\t' -v OFS='\t' '$2 ~ /^t/ && $1 != "time" {
		guest = match($2, /, \[guest .*\]$/) ? substr($2, RSTART + 9, RLENGTH - 10) : "host"
		sub(/, \[guest .*/, "", $2)
		n = split($2, w, " ")
		sum[$1 OFS w[n] OFS guest] += $3
	} END { for (k in sum) print k, sum[k] }' | sort >"$tmp/got"
	for by in insns:insn_count cycles:cyc_count; do
		sql "$1" "SELECT '${by%:*}', tid, machine, sum(${by#*:}) FROM function_calls WHERE flags & 1 GROUP BY 2, 3 HAVING sum(${by#*:}) > 0"
	done | sort >"$tmp/expected"
	same "the flame graph of each thread, by instructions and by cycles" "$tmp/expected" "$tmp/got"
}
# What was executed until a time, by the view of all branches, whose times are estimates between two packets: within a hundredth of all.
counters_are() { # DB
	said counter >"$tmp/got"
	sql "$1" "SELECT time_ns - (SELECT min(time_ns) FROM branches), insn_count, coalesce(cyc_count, 0) FROM branches WHERE time_ns IS NOT NULL ORDER BY 1" \
		>"$tmp/expected"
	# shellcheck disable=SC2016
	check "instructions and cycles over time: $(wc -l <"$tmp/got") points" awk -F'\t' '
		NR == FNR { at[NR] = $1; insns[NR] = insns[NR - 1] + $2; cycles[NR] = cycles[NR - 1] + $3; n = NR; next }
		{
			while (k < n && at[k + 1] < $1 + $2) k++
			i += $3; c += $4
			if (near(i, insns[k], insns[n]) && near(c, cycles[k], cycles[n]) && near($5 * $2, $3, $3) && ($4 == 0 || near($6 * $4, $7, $7))) good++
			else print "at", $1, i, insns[k], c, cycles[k], $5, $6
		}
		function near(x, y, all) { return x - y <= all / 100 && y - x <= all / 100 }
		END { exit !(good > 100 && good == FNR) }' "$tmp/expected" "$tmp/got"
}

echo "-- made-up virtual machines"
"$PT_BUILD/tests/tools/mkvmrecords" --exits 1500 --vcpus 3 --seed 7 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/vm.db" || fail "load"
some=$(sql "$tmp/vm.db" 'SELECT id FROM vmexits WHERE latency_ns IS NOT NULL ORDER BY id LIMIT 1 OFFSET 700')
EXITS_WANTED="$some 99999999" TERM_WANTED=guest shown "$tmp/vm.db" accessible findings reasons find bars click move losses narrow
check "an exit is found by its number: $(said found | head -n 1)" grep -q "calls of exit $some," <(said found | head -n 1)
check "one that is not there is said: $(said found | tail -n 1)" grep -q 'exit=99999999$' <(said found | tail -n 1)
said reason | cut -f 1,3-7 | sort >"$tmp/got"
"$PT_BIN/pt-query" "$tmp/vm.db" vmexit-latency -f tsv | tail -n +2 | sed 's/\\N//g' |
	awk -F'\t' -v OFS='\t' '{ print $4 != "" ? $4 : $5 != "" ? $5 : $3 != "" ? $3 : "[unknown]", $6, $8, $10, $12, $13 }' | sort >"$tmp/expected"
same "reasons, with exact percentiles" "$tmp/expected" "$tmp/got"
said bar | awk -F'\t' '{ n[$1] += $2 } END { for (r in n) print r "\t" n[r] }' | sort >"$tmp/got"
"$PT_BIN/pt-query" "$tmp/vm.db" vmexit-latency -f tsv | tail -n +2 | sed 's/\\N//g' |
	awk -F'\t' -v OFS='\t' '$7 > 0 { print $4 != "" ? $4 : $5 != "" ? $5 : $3 != "" ? $3 : "[unknown]", $7 }' | sort >"$tmp/expected"
same "the bars of a reason have all its exits" "$tmp/expected" "$tmp/got"
said exit | cut -f 2,3 | sort -n >"$tmp/got"
sql "$tmp/vm.db" 'SELECT id, latency_ns FROM vmexits WHERE latency_ns IS NOT NULL' | sort -n >"$tmp/expected"
check "exits that bars list are there: $(comm -13 <(sort "$tmp/expected") <(sort "$tmp/got") | head -n 2)" \
	test "$(comm -13 <(sort "$tmp/expected") <(sort "$tmp/got") | wc -l)" = 0
check "and many of them" test "$(wc -l <"$tmp/got")" -gt 500
id=$(said clicked)
latency=$(sql "$tmp/vm.db" "SELECT latency_ns FROM vmexits WHERE id = $id")
check "exit $id is shown in the time line: $(said under | grep "exit $id," | head -n 1)" grep -q "exit $id," <(said under)
# shellcheck disable=SC2016
check "as long as it took" awk -F'\t' -v l="$latency" '{ exit !($3 - $2 >= l && $3 - $2 <= 3 * l + 20) }' <(said shown)
moved
check "no wider than 500 pixels" test "$(said width)" -le 500
check "the longest share: $(said finding | head -n 1)" grep -qF "$(sql "$tmp/vm.db" 'SELECT kvm_name FROM vmexits GROUP BY reason
	ORDER BY sum(latency_tsc) DESC LIMIT 1') takes" <(said finding | head -n 1)
slowest=$("$PT_BIN/pt-query" "$tmp/vm.db" slowest-exits -p limit=1 -f tsv | tail -n 1 | cut -f 1)
check "the slowest exit: $(said finding | sed -n 2p)" grep -q "exit $slowest," <(said finding | sed -n 2p)

echo "-- a real guest"
TERM_WANTED=alloc shown "$tmp/guest.db" accessible findings click functions sort threads counters
functions_are "$tmp/guest.db"
threads_are "$tmp/guest.db"
counters_are "$tmp/guest.db"
check "Enter on a table's head sorts it" test "$(said sorted)" = ascending
id=$(said clicked)
# By the view of all calls, and not as the report looks for them.
said call | cut -f 2,5 | sort >"$tmp/got"
sql "$tmp/guest.db" "SELECT function, insn_count FROM function_calls c JOIN vmexits x ON x.id = $id
	WHERE c.call_branch >= x.exit_branch AND c.return_branch <= x.entry_branch AND c.pid = x.pid AND c.tid = x.tid AND c.machine = 'host'
	ORDER BY c.insn_count DESC LIMIT 300" | sort >"$tmp/expected"
same "the host's calls in exit $id" "$tmp/expected" "$tmp/got"
check "instructions: $(said fact | grep Instr)" test "$(said fact | awk -F'\t' '$1 == "Instructions" { print $2 }')" = \
	"$(sql "$tmp/guest.db" 'SELECT insn_count FROM traces')"

echo "-- a program, and another run of it"
for n in 10 400; do
	# shellcheck disable=SC2016
	"$PT_BIN/pt-capture" -q -- perl -e 'print join(" ", sort { $a <=> $b } map { $_ * 7919 % 1009 } 1 .. '$n'), "\n"' 2>/dev/null |
		{ cat >"$tmp/p.ptc"; "$PT_BIN/pt-decode" -q "$tmp/p.ptc"; } | "$PT_BIN/pt-load" -q "$tmp/$n.db"
done
if [ "$(sql "$tmp/10.db" 'SELECT count(*) FROM traces')" = 1 ]; then
	TERM_WANTED=malloc shown "$tmp/10.db" accessible findings frames search functions move threads counters
	flames_are "$tmp/10.db" malloc
	functions_are "$tmp/10.db"
	moved
	threads_are "$tmp/10.db"
	# Of a thread that nobody shares a path with: each stack's time is rounded.
	all=$(sql "$tmp/10.db" 'SELECT sum(elapsed_ns) FROM function_calls WHERE flags & 1')
	check "elapsed time: $(said of | grep -P '^time\tt')" test "$(said of | grep -P '^time\tt' |
		awk -F'\t' -v all="$all" '{ print ($3 > .999 * all && $3 < 1.001 * all) }')" = 1
	"$PT_BIN/pt-query" --db "$tmp/400.db" --db "$tmp/10.db" report -o "$tmp/two.html" || fail "two databases"
	node "$drive" "$tmp/two.html" compare >"$tmp/shown" 2>&1
	check "two databases: frames are colored by the change" test "$(said colors)" -gt 3
	# The share of each thread, or outermost function, by what folded has of both.
	for n in 400 10; do
		"$PT_BIN/pt-query" "$tmp/$n.db" folded -p percent=0 | awk -F'[; ]' '{ v = $NF; all += v; sub(/;.*/, ""); sum[$0] += v }
			END { for (k in sum) printf "%s\t%.0f\n", k, 1e6 * sum[k] / all }' | sort >"$tmp/share.$n"
	done
	join -t "$(printf '\t')" -a 1 "$tmp/share.400" "$tmp/share.10" | awk -F'\t' '{ print $1 "\t" $2 - $3 }' | sort >"$tmp/expected"
	same "and that is the difference of shares" "$tmp/expected" <(said delta | sort)
	check "no error there: $(grep -E '^(console|error|request)' "$tmp/shown" | head -n 3)" test "$(grep -cE '^(console|error)' "$tmp/shown")" = 0
fi

echo "-- losses"
head -c $(($(stat -c %s demo/qemu-guest.ptc) * 6 / 10)) demo/qemu-guest.ptc >"$tmp/cut.ptc"
"$PT_BIN/pt-decode" -q "$tmp/cut.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/cut.db" 2>/dev/null
check "a cut container has errors" test "$(sql "$tmp/cut.db" 'SELECT count(*) FROM errors')" -gt 0
shown "$tmp/cut.db" accessible findings losses
said loss | cut -f 1,2 | sort >"$tmp/got"
same "losses by kind" <(sql "$tmp/cut.db" 'SELECT kind, count(*) FROM errors GROUP BY kind' | sort) "$tmp/got"

echo "-- 100,000 exits"
"$PT_BUILD/tests/tools/mkvmrecords" --exits 100000 --vcpus 4 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/big.db" || fail "load"
shown "$tmp/big.db" fluid
echo "information: $(stat -c %s "$tmp/report.html") bytes, a step of the wheel $(said median-ms) ms"
check "10 MB at most" test "$(stat -c %s "$tmp/report.html")" -le 10000000
check "the wheel has been turned" test -n "$(said median-ms)"
