# timeout: 60
# go tool pprof reads what --format pprof writes: each function's own instructions and those with its callees' are SQL's.
source tests/common.bash
if ! command -v go >/dev/null; then
	skip 3 "no go (scripts/deps viewers)"
	exit
fi
"$PT_BIN/pt-decode" -q demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
"$PT_BIN/pt-query" "$tmp/db" folded -p percent=0 -f pprof -o "$tmp/x.pb.gz" 2>"$tmp/err"
if grep -q 'without protobuf-c' "$tmp/err"; then
	skip 3 "pt-query was built without protobuf-c"
	exit
fi
GOFLAGS=-mod=mod GOCACHE=$tmp/go go tool pprof -raw "$tmp/x.pb.gz" >"$tmp/raw" 2>"$tmp/err"
succeeded $? "go tool pprof reads it: $(tail -n 1 "$tmp/err")"
GOCACHE=$tmp/go go tool pprof -top -nodecount=1000000 -nodefraction=0 -unit=count "$tmp/x.pb.gz" 2>/dev/null | awk 'top { $1 = $1; print } /flat%/ { top = 1 }' |
	awk '{ name = $6; for (i = 7; i <= NF; i++) name = name " " $i; print name "\t" $1 "\t" $4 }' | sort >"$tmp/pprof"
# Of recursive functions a stack counts once.
"$PT_BIN/pt-query" "$tmp/db" folded -p percent=0 | awk '{ n = $NF; sub(/ [0-9]+$/, ""); k = split($0, f, ";"); own[f[k]] += n; delete seen
	for (i = 1; i <= k; i++) if (!(f[i] in seen)) { seen[f[i]] = 1; all[f[i]] += n } } END { for (x in all) printf "%s\t%d\t%d\n", x, own[x], all[x] }' | sort >"$tmp/folded"
same "each function's instructions" "$tmp/folded" "$tmp/pprof"
check "there are many: $(wc -l <"$tmp/pprof")" test "$(wc -l <"$tmp/pprof")" -gt 100
