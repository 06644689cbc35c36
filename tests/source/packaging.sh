# What the packages say: the version of the programs, the libraries that scripts/deps installs to build with, the files that
# `make install` puts.
source tests/common.bash

version=$(sed -n 's/^#define PT_VERSION[[:space:]]*"\(.*\)"$/\1/p' schema/version.h)
spec=scripts/packaging/pt-tools.spec pkgbuild=scripts/packaging/PKGBUILD
check "there is a version" test -n "$version"
check "debian/changelog's version is $version" grep -q "^pt-tools ($version)" <(head -n 1 debian/changelog)
check "the spec file's version" grep -qx "Version: *$version" $spec
check "the PKGBUILD's version" grep -qx "pkgver=$version" $pkgbuild

# Build-Depends has every library that scripts/deps installs, and the other way round. A compiler, make and the C library's headers
# are there without being named.
needed() { DISTRIBUTION=$1 scripts/deps build | sed -n 's/^  \([^ ]*\) .*/\1/p' | grep -vxE 'make|gcc|libc6-dev|glibc-devel' | sort; }
sed -n '/^Build-Depends/,/^[^ ]*: /s/^ \([a-z0-9-]*\).*/\1/p' debian/control | grep -vxE 'debhelper-compat|pkgconf' | sort >"$tmp/got"
same "debian/control builds with what scripts/deps installs" <(needed debian) "$tmp/got"
sed -nE 's/^(make)?depends=\((.*)\)$/\2/p' $pkgbuild | tr ' ' '\n' | grep -vx glibc | sort >"$tmp/got"
same "PKGBUILD builds with what scripts/deps names for Arch" <(needed arch) "$tmp/got"
for distribution in fedora arch opensuse-leap; do
	check "$distribution's command" grep -qE '(dnf install|pacman -S --needed|zypper install) make gcc ' <(DISTRIBUTION=$distribution scripts/deps build)
done
check "an unknown distribution gets Debian's names" grep -q 'these Debian packages' <(DISTRIBUTION=hurd scripts/deps build)

# Each program, page and completion is in the spec file's list.
check "make install" make -s --no-print-directory install DESTDIR="$tmp/root" PREFIX=/usr
sed -n '/^%files/,/^%changelog/p' $spec | sed -n 's|^%{_bindir}|/usr/bin|p; s|^%{_mandir}|/usr/share/man|p; s|^%{_datadir}|/usr/share|p' >"$tmp/patterns"
(cd "$tmp/root" && find . ! -type d | sed 's/^\.//') | while read -r f; do
	while read -r pattern; do
		# shellcheck disable=SC2053
		[[ $f == $pattern ]] && continue 2
	done <"$tmp/patterns"
	echo "$f"
done >"$tmp/left"
check "the spec file leaves out: $(tr '\n' ' ' <"$tmp/left")" test ! -s "$tmp/left"
