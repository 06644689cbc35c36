# pt-schema(5) describes every column of every view, and no others; what it says is never NULL is not.
source tests/common.bash
"$PT_BUILD/tests/tools/mkvmrecords" --exits 500 --seed 3 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
trace_of_true "$tmp/true.ptc" cyc
"$PT_BIN/pt-decode" -q "$tmp/true.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load a second"
sqlite3 -separator ' ' "$tmp/db" "SELECT v.name, c.name FROM sqlite_schema v JOIN pragma_table_info(v.name) c
	WHERE v.type = 'view' AND v.name <> 'vmentries'" | sort >"$tmp/views"
# One line per column in the section VIEWS: its view (.SS), its name (a word of .BR after .TP), and NEVER when
# its text says so.
sed 's/\\-/-/g' docs/pt-schema.5 | awk '
function put(  i) { for (i = 1; i <= n; i++) print view, name[i], text ~ /Never NULL/ ? "NEVER" : "-"; n = 0; text = "" }
/^\.S[HS]/ || /^\.TP/ || /^\.PP/ { put() }
/^\.SH/ { views = $2 == "VIEWS" }
/^\.SS/ { view = $2 }
views && tag { gsub(/"[^"]*"/, " "); for (n = 0; n < NF - 1; n++) name[n + 1] = $(n + 2); tag = 0; next }
views && /^\.TP/ { tag = 1 }
n { text = text " " $0 }
END { put() }' | sort >"$tmp/manual"
cut -d ' ' -f 1,2 "$tmp/manual" >"$tmp/columns"
check "there are columns" test "$(wc -l <"$tmp/views")" -gt 300
same "the columns of the views, and those of the manual" "$tmp/views" "$tmp/columns"
same "vmentries is another name of guest_runs" <(sqlite3 "$tmp/db" "SELECT name FROM pragma_table_info('guest_runs')") \
	<(sqlite3 "$tmp/db" "SELECT name FROM pragma_table_info('vmentries')")
check "no column is described twice: $(uniq -d "$tmp/columns")" test -z "$(uniq -d "$tmp/columns")"
while read -r view column _; do
	nulls=$(sqlite3 "$tmp/db" "SELECT count(*) FROM $view WHERE \"$column\" IS NULL")
	check "$view.$column is never NULL, and is $nulls times" test "$nulls" = 0
done < <(grep ' NEVER$' "$tmp/manual")
check "there are such columns" test "$(grep -c ' NEVER$' "$tmp/manual")" -gt 60
