# Debian's libipt decodes the step engine's bytes to the branches that were executed.
# timeout: 600
source tests/common.bash
source tests/programs.bash

compare() {
	capture "$@" || return
	"$tools/libipt_flow" "$tmp/c.ptc" >"$tmp/text" 2>"$tmp/err"
	check "$*: libipt: exit status $?: $(tail -n 1 "$tmp/err")" test ! -s "$tmp/err"
	sort -s -n -k1,1 "$tmp/text" >"$tmp/got"
	same "$*" "$tmp/expected" "$tmp/got"
}
for name in $(programs); do
	# libipt has no notion of code that changes.
	case $name in jit* | selfmod) ;; *) compare "$name" ;; esac
done
for terms in cyc cyc,noretcomp psb_period=0 mtc=0 tsc=0,mtc=0; do
	for name in indirect signals threads; do
		compare "$name" -e "$terms"
	done
done

# Every erratum that libipt knows of a model is known here; what only we know is of models that came after its release.
"$tools/libipt_errata" >"$tmp/got"
succeeded $? "libipt_errata"
same "errata that only libipt knows" /dev/null <(grep libipt "$tmp/got")
