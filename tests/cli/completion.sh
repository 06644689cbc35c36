# bash completion, as bash calls it: words in, candidates out.
source tests/common.bash
source scripts/completion.bash
"$PT_BUILD/tests/tools/mkrecords" --runs 100 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/trace.db"
# candidates PROGRAM WORD...: those for the last word
candidates() {
	local program=$1
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	"_${program/-/_}" "$PT_BIN/$program" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>"$tmp/err"
	printf '%s\n' "${COMPREPLY[@]}"
	grep -v 'not currently executing completion function' "$tmp/err" # compopt says so outside of bash's own call
}
# has WHAT WANTED PROGRAM WORD...: the candidates have the line
has() {
	candidates "${@:3}" >"$tmp/got"
	check "$1: $(head -n 5 "$tmp/got" | tr '\n' ' ')" grep -qxF -- "$2" "$tmp/got"
}
has "a query" vmexit-latency pt-query "$tmp/trace.db" vm
check "only those" test "$(grep -vc '^vm' "$tmp/got")" = 0
has "a query after an option" summary pt-query -f csv "$tmp/trace.db" su
has "a format" prometheus pt-query "$tmp/trace.db" summary --format p
has "a parameter" limit= pt-query "$tmp/trace.db" hot-edges -p ""
has "a query after --db" diff pt-query --db "$tmp/trace.db" --db "$tmp/trace.db" di
has "a parameter after --db" what= pt-query --db "$tmp/trace.db" --db "$tmp/trace.db" diff -p wh
has "a database after --db" "$tmp/trace.db" pt-query --db "$tmp/tra"
has "an option" --format pt-query "$tmp/trace.db" summary --f
has "a database" "$tmp/trace.db" pt-query "$tmp/tra"
has "a subcommand" spool pt-load sp
has "a form of the schema" replicated pt-load --schema re
has "a subcommand" import pt-capture im
for sub in check export import info merge trim; do
	has "the subcommand $sub" "$sub" pt-capture "${sub%?}"
done
has "an option of merge" --guest-kcore pt-capture merge --guest-kc
has "an option of trim" --used-code pt-capture trim --us
has "an event to sample" cpu-clock pt-capture --sample-event cpu
has "virtual machines" list pt-capture --vm l
has "an option of capture" --engine pt-capture --eng
has "an option of a subcommand" --symfs pt-capture import --sym
has "an engine" step pt-capture --engine s
has "a program after --" "$tmp/trace.db" pt-capture -- "$tmp/tr"
has "a field" tid,comm pt-decode -F tid,co
has "an option of decode" --packets pt-decode --pa
has "its subcommand" vm-clock pt-decode vm
has "an option of load" --replace pt-load --re
has "a stream" "$tmp/trace.db" pt-load x "$tmp/t"
