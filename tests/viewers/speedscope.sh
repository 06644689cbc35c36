# timeout: 200
# The speedscope of npm, in Chromium, opens what --format speedscope writes: its table of functions has SQL's numbers. Wants Chromium, node, npm.
source tests/common.bash
folder=${PT_CACHE:-$tmp}/speedscope
mkdir -p "$folder" && cp tests/viewers/speedscope/* tests/report/browser.js "$folder"
if ! command -v npm >/dev/null || ! command -v node >/dev/null || ! { command -v chromium >/dev/null || [ -n "${CHROMIUM:-}" ]; } ||
	! timeout 100 npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund >"$tmp/npm" 2>&1; then
	skip 4 "no Chromium, no npm, or nothing to be had from its registry (scripts/deps browser)"
	exit
fi
"$PT_BIN/pt-decode" -q demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
"$PT_BIN/pt-query" "$tmp/db" folded -p percent=0 -f speedscope -o "$tmp/x.json"
timeout 150 node "$folder/open.js" "$folder/node_modules/speedscope/dist/release" "$tmp/x.json" >"$tmp/shown" 2>&1
check "speedscope opens it: $(tail -n 1 "$tmp/shown")" grep -qx 'done' "$tmp/shown"
check "without an error: $(grep -m 1 '^error' "$tmp/shown")" test "$(grep -c '^error' "$tmp/shown")" = 0
grep -P '^row\t[0-9]' "$tmp/shown" | sed 's/ ([^)]*)//; s/ ([^)]*)//' |
	awk -F'\t' -v OFS='\t' '{ gsub(",", "", $2); gsub(",", "", $3); print $4, $3, $2 }' | sort >"$tmp/got"
# Of recursive functions a stack counts once.
"$PT_BIN/pt-query" "$tmp/db" folded -p percent=0 >"$tmp/folded"
awk '{ n = $NF; sub(/ [0-9]+$/, ""); k = split($0, f, ";"); own[f[k]] += n; delete seen
	for (i = 1; i <= k; i++) if (!(f[i] in seen)) { seen[f[i]] = 1; all[f[i]] += n } } END { for (x in all) printf "%s\t%d\t%d\n", x, own[x], all[x] }' "$tmp/folded" | sort >"$tmp/all"
# It lists as many as its window has room for, those with the largest own numbers first.
check "functions are listed: $(wc -l <"$tmp/got")" test "$(wc -l <"$tmp/got")" -gt 50
check "each with SQL's own and total instructions: $(comm -13 "$tmp/all" "$tmp/got" | head -n 2)" test "$(comm -13 "$tmp/all" "$tmp/got" | wc -l)" = 0
