# `make install` with DESTDIR and PREFIX puts everything in its place and nothing elsewhere; uninstall leaves
# nothing.
source tests/common.bash
unset MAKEFLAGS
check "make install" make -s --no-print-directory install DESTDIR="$tmp/root" PREFIX=/usr
for p in pt-capture pt-decode pt-load pt-query; do
	check "$p is installed" "$tmp/root/usr/bin/$p" --version >/dev/null
	check "$p's man page" test -s "$tmp/root/usr/share/man/man1/$p.1"
	check "$p's completion" grep -q "complete -F _${p/-/_} $p" "$tmp/root/usr/share/bash-completion/completions/$p"
done
for page in docs/*.[15]; do
	check "${page#docs/} is installed" cmp -s "$page" "$tmp/root/usr/share/man/man${page##*.}/${page#docs/}"
done
check "nothing outside of PREFIX" test "$(ls "$tmp/root")" = usr
check "programs are executable, the rest is not" test "$(find "$tmp/root" -type f -perm /111 | wc -l)" = 4
check "make uninstall" make -s --no-print-directory uninstall DESTDIR="$tmp/root" PREFIX=/usr
check "nothing is left" test -z "$(find "$tmp/root" -type f -o -type l)"
# The default is /usr/local.
check "the default PREFIX" grep -q '^PREFIX ?= /usr/local$' Makefile
