# The layers: a folder includes what the line "Includes:" of its README lists, and nothing else. An arrow that
# is listed and not used is an error, too, so that the READMEs remain the truth.
source tests/common.bash

# What the report's page has is not C.
find capture decode export queries schema -type d -not -path 'queries/report/*' | sort >"$tmp/folders"
while read -r folder; do
	check "$folder has a README of at most ten lines" awk 'END { exit !(NR > 0 && NR <= 10) }' "$folder/README"
	check "$folder/README says what it includes" grep -q '^Includes:' "$folder/README"
	sed -n "s|^Includes:|$folder|p" "$folder/README"
done <"$tmp/folders" >"$tmp/allowed"

# One line per include: folder, included folder, included file, file.
while read -r f; do
	grep -oE '^#include "[^"]+"' "$f" | cut -d '"' -f 2 | while read -r included; do
		printf '%s %s %s %s\n' "$(dirname "$f")" "$(dirname "$included")" "$included" "$f"
	done
done < <(find capture decode export queries schema -name '*.[ch]') >"$tmp/includes"
check "there are includes" test "$(wc -l <"$tmp/includes")" -gt 300

awk '
NR == FNR { for (i = 2; i <= NF; i++) allowed[$1 " " $i] = 1; next }
$1 == $2 { next }
{ used[$1 " " $2] = 1 }
!(($1 " " $2) in allowed) { print $4 " may not include " $3 }
# The top folders hold the mains, which know all. Of them others may have these headers only.
$2 == "capture" && $3 != "capture/commands.h" { print $4 " may not include " $3 }
$2 == "decode" && $3 != "decode/insn.h" { print $4 " may not include " $3 }
END { for (a in allowed) if (!(a in used)) print "nothing is included along " a }
' "$tmp/allowed" "$tmp/includes" >"$tmp/wrong"
check "includes: $(head -n 20 "$tmp/wrong")" test ! -s "$tmp/wrong"

# circles WHAT: none among the pairs of names on standard input
circles() { check "circles between $1: $(tsort 2>&1 >/dev/null)" test -z "$(tsort <"$tmp/pairs" 2>&1 >/dev/null)"; }
awk '$1 != $2 && $1 " " $2 !~ /(^| )(capture|decode)( |$)/ { print $1, $2 }' "$tmp/includes" >"$tmp/pairs"
circles folders <"$tmp/pairs"
awk '$4 ~ /\.h$/ { print $4, $3 }' "$tmp/includes" >"$tmp/pairs"
circles headers <"$tmp/pairs"
# A header that its own source does not include, or a source that says "see X.h" of a header that is not
# there.
while read -r f; do
	named=$(sed -n '1,3s|.*see \([a-z_/]*\.h\).*|\1|p' "$f" | head -n 1)
	[ -z "$named" ] || check "$f: there is no $named" test -e "$(dirname "$f")/$named" -o -e "$named" -o -e "${f%%/*}/$named"
done < <(find capture decode export queries schema -name '*.c')
