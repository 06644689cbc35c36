# The man pages, --help and completion name the same options.
source tests/common.bash

# options FILE: the options that a text names, one per line
# (perf's own, as in `perf record --kcore`, are not ours.)
# shellcheck disable=SC2016 # backquotes of the manual
options() { sed 's/`perf [^`]*`//g; s/perf record --[-a-z]*//g' "$1" | grep -oE '(^|[^-[:alnum:]])--[a-z][-a-z0-9]+' | grep -oE -- '--[a-z][-a-z0-9]+' | sort -u; }
# page PROGRAM: its man page as text
page() {
	sed -e 's/\\-/-/g' -e 's/\\f[BIRP]//g' -e 's/^\.[A-Z]* *//' "docs/$1.1"
}
for p in pt-capture pt-decode pt-load pt-query; do
	: >"$tmp/help"
	"$PT_BIN/$p" --help >>"$tmp/help"
	case $p in
	pt-capture) for sub in check info import export merge trim; do "$PT_BIN/$p" $sub --help >>"$tmp/help"; done ;;
	pt-decode) "$PT_BIN/$p" vm-clock --help >>"$tmp/help" ;;
	pt-query) "$PT_BIN/$p" watch --help >>"$tmp/help" ;;
	esac
	options "$tmp/help" >"$tmp/in-help"
	page "$p" >"$tmp/page"
	options "$tmp/page" >"$tmp/in-page"
	check "$p --help names options" test "$(wc -l <"$tmp/in-help")" -gt 2
	comm -23 "$tmp/in-help" "$tmp/in-page" >"$tmp/missing"
	check "$p.1 does not name $(tr '\n' ' ' <"$tmp/missing")" test ! -s "$tmp/missing"
	check "$p --help is at most 110 columns wide" test "$(wc -L <"$tmp/help")" -le 110
done
