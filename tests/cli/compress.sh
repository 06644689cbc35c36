# pt-load --compress: the database in zstd's seekable format. The oracles are zstd, which unpacks it to the database
# that SQLite finds whole, and the database that is not compressed, whose queries answer the same.
source tests/common.bash
make_records=$PT_BUILD/tests/tools/mkrecords
"$make_records" --runs 20000 --calls 3000 --paths 1000 --seed 1 >"$tmp/records" 2>/dev/null || fail "mkrecords"
"$make_records" --runs 1000 --seed 2 >"$tmp/second" 2>/dev/null

"$PT_BIN/pt-load" -q --compress "$tmp/packed" "$tmp/records" 2>"$tmp/err"
status=$?
check "loaded, with the errors that are in it ($(cat "$tmp/err"))" test $status -eq 3
check "nothing is left beside it" test -z "$(find "$tmp" -name 'packed?*')"
check "nobody else may read it" test "$(stat -c %a "$tmp/packed")" = 600
zstd -qdc <"$tmp/packed" >"$tmp/plain"
succeeded $? "zstd unpacks it"
check "what zstd unpacks is whole" test "$(sqlite3 "$tmp/plain" 'PRAGMA integrity_check')" = ok
check "it is smaller by a third" test "$(stat -c %s "$tmp/packed")" -lt $(($(stat -c %s "$tmp/plain") * 2 / 3))
# Load times differ, and nothing else does.
content() { sqlite3 "$1" "UPDATE trace SET load_time = 0" .dump | sha256sum; }
"$PT_BIN/pt-load" -q "$tmp/alone" "$tmp/records"
cp "$tmp/plain" "$tmp/copy"
check "it is what is loaded without --compress" test "$(content "$tmp/copy")" = "$(content "$tmp/alone")"
for threads in 1 2 5; do
	"$PT_BIN/pt-load" -q --compress -j $threads "$tmp/threads" "$tmp/records"
	zstd -qdc <"$tmp/threads" >"$tmp/copy"
	check "the same by $threads threads" test "$(content "$tmp/copy")" = "$(content "$tmp/alone")"
	check "the same frames by $threads threads" test "$(zstd -l "$tmp/threads" | awk 'NR == 2 { print $1, $2, $NF }')" = "$(zstd -l "$tmp/packed" | awk -v t="$tmp/threads" 'NR == 2 { print $1, $2, t }')"
	rm "$tmp/threads"
done
"$PT_BIN/pt-load" -q --compress=19 "$tmp/small" "$tmp/records"
check "level 19 is smaller" test "$(stat -c %s "$tmp/small")" -lt "$(stat -c %s "$tmp/packed")"

# Each canned query, ad-hoc SQL, a list.
for query in $("$PT_BIN/pt-query" "$tmp/plain" | awk '{ print $1 }'); do
	"$PT_BIN/pt-query" "$tmp/plain" "$query" >"$tmp/expected" 2>"$tmp/expected.err"
	status=$?
	"$PT_BIN/pt-query" "$tmp/packed" "$query" >"$tmp/got" 2>"$tmp/got.err"
	succeeded $(($? - status)) "$query: the same exit status"
	check "$query: the same rows" cmp -s "$tmp/expected" "$tmp/got"
done
sql="SELECT kind, count(*), sum(tsc) FROM branches GROUP BY kind ORDER BY kind"
same "all branches" <("$PT_BIN/pt-query" "$tmp/plain" --sql "$sql") <("$PT_BIN/pt-query" "$tmp/packed" --sql "$sql")
same "pt-load --list" <("$PT_BIN/pt-load" --list "$tmp/plain") <("$PT_BIN/pt-load" --list "$tmp/packed")
check "SQLite finds it whole" test "$("$PT_BIN/pt-query" "$tmp/packed" --format csv --sql 'PRAGMA integrity_check' | tail -n 1 | tr -d '\r')" = ok
ln -s packed "$tmp/link"
same "by a symbolic link" <("$PT_BIN/pt-query" "$tmp/plain" summary) <("$PT_BIN/pt-query" "$tmp/link" summary)
# A journal of another database of that name is none of its own.
head -c 4096 /dev/urandom >"$tmp/packed-journal"
same "beside a journal" <("$PT_BIN/pt-query" "$tmp/plain" summary) <("$PT_BIN/pt-query" "$tmp/packed" summary)
check "the journal is left alone" test -e "$tmp/packed-journal"
rm "$tmp/packed-journal"

# refused WHAT PATTERN ARGUMENTS...: pt-load fails, says PATTERN, and the file is as it was
sum=$(sha256sum <"$tmp/packed")
refused() {
	"$PT_BIN/pt-load" -q "${@:3}" 2>"$tmp/err"
	check "$1: fails" test $? -ne 0
	check "$1: says why ($(cat "$tmp/err"))" grep -q "$2" "$tmp/err"
	check "$1: the file is as it was" test "$(sha256sum <"$tmp/packed")" = "$sum"
}
refused "adding to it" 'zstd -d' "$tmp/packed" "$tmp/second"
refused "adding to it with --compress" 'zstd -d' --compress "$tmp/packed" "$tmp/second"
refused "deleting of it" 'zstd -d' --delete 1 "$tmp/packed"
refused "--compress of a database that is there" 'only a new database' --compress "$tmp/alone" "$tmp/second"
refused "a level that zstd has not" 'compress' --compress=20 "$tmp/new" "$tmp/second"
refused "--compress in ClickHouse" 'SQLite' --compress clickhouse://localhost/x "$tmp/second"
refused "--compress of a spool" 'compress' --compress spool "$tmp" "$tmp/new"
refused "--compress of a list" 'loading' --compress --list "$tmp/packed"
check "what was refused made no database" test ! -e "$tmp/new"

# A byte that is changed, and a file that is cut: each answer is the right one, or an error that says where.
"$PT_BIN/pt-query" "$tmp/packed" hot-edges >"$tmp/expected"
bytes=$(stat -c %s "$tmp/packed")
damaged() { # WHAT: of $tmp/bad
	"$PT_BIN/pt-query" "$tmp/bad" hot-edges >"$tmp/got" 2>"$tmp/err"
	local status=$?
	if [ $status -eq 0 ]; then
		check "$1: the right rows" cmp -s "$tmp/expected" "$tmp/got"
	else
		check "$1: exit status 1" test $status -eq 1
		check "$1: says where ($(head -n 1 "$tmp/err"))" grep -Eq 'at byte [0-9]+|not a database|zstd -d' "$tmp/err"
	fi
}
for at in 0 3 4 5 20 $((bytes / 3)) $((bytes / 2)) $((bytes - 200)) $((bytes - 9)) $((bytes - 5)) $((bytes - 1)) $(seq 7 $((bytes / 23)) "$bytes"); do
	cp "$tmp/packed" "$tmp/bad"
	printf '\xa5' | dd of="$tmp/bad" bs=1 seek="$at" conv=notrunc status=none
	damaged "a byte at $at"
done
for at in 0 1 4 8 9 17 $((bytes / 2)) $((bytes - 9)) $((bytes - 1)); do
	head -c "$at" "$tmp/packed" >"$tmp/bad"
	"$PT_BIN/pt-query" "$tmp/bad" hot-edges >/dev/null 2>"$tmp/err"
	status=$?
	check "cut at $at: an error ($(head -n 1 "$tmp/err"))" test $status -eq 1
done
cp "$tmp/packed" "$tmp/bad"
printf '\xa5' | dd of="$tmp/bad" bs=1 seek=20 conv=notrunc status=none
"$PT_BIN/pt-load" --list "$tmp/bad" >/dev/null 2>"$tmp/err"
succeeded $(($? - 1)) "pt-load --list of a damaged one: exit status 1"
check "pt-load --list of a damaged one: says where ($(head -n 1 "$tmp/err"))" grep -q 'at byte 0:' "$tmp/err"
# What zstd itself made has no table.
zstd -qc "$tmp/plain" >"$tmp/bad"
"$PT_BIN/pt-query" "$tmp/bad" summary 2>"$tmp/err" >/dev/null
check "packed by zstd: says what to do ($(cat "$tmp/err"))" grep -q 'zstd -d' "$tmp/err"

# A disk that is full: nothing is there after it.
for kib in 16 200 400; do
	(ulimit -f $kib && "$PT_BIN/pt-load" -q --compress "$tmp/none" "$tmp/records" 2>"$tmp/err")
	check "a file may have $kib KiB: fails" test $? -eq 1
	check "a file may have $kib KiB: nothing is left" test -z "$(find "$tmp" -name 'none*')"
done
