# Lines of sources are within 112 columns, with tabs of eight: clang-format leaves comments as they are.
source tests/common.bash

find capture decode export queries schema tests \( -name '*.[ch]' -o -name '*.sql' \) -type f | sort >"$tmp/files"
check "there are sources" test "$(wc -l <"$tmp/files")" -gt 600
while read -r f; do
	expand -t 8 "$f" | awk -v f="$f" 'length($0) > 112 { print f ":" NR ": " length($0) " columns" }'
done <"$tmp/files" >"$tmp/wide"
check "widths: $(head -n 20 "$tmp/wide")" test ! -s "$tmp/wide"
