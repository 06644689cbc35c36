# Demangled names against nm -C (C++ of libraries, Rust of a program if there is a compiler): of the symbols that a trace of
# each executed. And pt-query's --no-demangle.
# timeout: 300
source tests/common.bash
make -pn 2>/dev/null | grep -q '^LIBIBERTY := /' || { skip 8 "libiberty is not installed"; exit; }
cat >"$tmp/c.cc" <<'END'
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace shapes {
struct Shape { virtual double area() const = 0; virtual ~Shape() {} };
template <class T, int N> struct Box : Shape {
	T side; Box(T s) : side(s) {}
	__attribute__((noinline)) double area() const override { return side * side * N; }
};
}
__attribute__((noinline)) std::string join(const std::vector<std::string> &all) { std::string s; for (auto &x : all) s += x; return s; }
int main(int argc, char **) {
	std::map<std::string, int> count;
	std::vector<std::string> all;
	for (int i = 0; i < 20; i++) { all.push_back(std::to_string(i * argc % 7)); count[all.back()]++; }
	std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a > b; });
	shapes::Shape *box = new shapes::Box<int, 3>(argc);
	double a = box->area();
	delete box;
	return join(all).size() + count.size() + a == 0;
}
END
g++ -O1 -static-libstdc++ -static-libgcc -o "$tmp/c" "$tmp/c.cc" || fail "compile C++"
programs=("$tmp/c")
home=$(getent passwd "$(id -u)" | cut -d: -f6)
export RUSTUP_HOME=${RUSTUP_HOME:-$home/.rustup} CARGO_HOME=${CARGO_HOME:-$home/.cargo}
if command -v rustc >/dev/null && printf '%s\n' 'use std::collections::HashMap;' 'struct Thing<T>(T);' \
	'impl<T: std::fmt::Debug> Thing<T> { #[inline(never)] fn show(&self) -> String { format!("{:?}", self.0) } }' \
	'fn main() { let mut m: HashMap<String, usize> = HashMap::new(); for i in 0..9 { *m.entry(Thing(i % 3).show()).or_default() += 1; } println!("{}", m.len()); }' >"$tmp/r.rs" &&
	(cd "$tmp" && rustc -O -o r r.rs && rustc -O -C symbol-mangling-version=v0 -o r0 r.rs) >"$tmp/log" 2>&1; then
	programs+=("$tmp/r" "$tmp/r0")
else
	skip 1 "rustc is not there"
fi
for p in "${programs[@]}"; do
	"$PT_BIN/pt-capture" -q -o "$tmp/p.ptc" -- "$p" >/dev/null || fail "trace $p"
	"$PT_BIN/pt-decode" -q "$tmp/p.ptc" >"$tmp/s" || fail "decode $p"
	rm -f "$tmp/db"
	"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s" || fail "load $p"
	sqlite3 -separator $'\t' "$tmp/db" "SELECT DISTINCT s.name, coalesce(s.demangled, s.name) FROM symbols s JOIN dsos d ON d.id = s.dso_id
		WHERE NOT s.name LIKE '%+0x%' ORDER BY 1" >"$tmp/ours"
	# nm shows no names of its own making; it demangles what it is given by the same rules.
	cut -f 1 "$tmp/ours" | c++filt --no-verbose --no-strip-underscore >"$tmp/theirs"
	same "${p##*/}: c++filt's names" "$tmp/theirs" <(cut -f 2 "$tmp/ours")
	nm -C "$p" | cut -c 20- | sort -u >"$tmp/nm"
	sqlite3 "$tmp/db" "SELECT coalesce(demangled, name) FROM functions WHERE dso = '$p' AND NOT unnamed
		AND name NOT LIKE '%@plt' AND name NOT LIKE '%+0x%'" | sort -u >"$tmp/executed"
	check "${p##*/}: nm -C has them: $(comm -13 "$tmp/nm" "$tmp/executed" | head -n 2)" test -z "$(comm -13 "$tmp/nm" "$tmp/executed")"
	check "${p##*/}: there are demangled ones" test "$(sqlite3 "$tmp/db" "SELECT count(*) FROM functions WHERE dso = '$p' AND demangled IS NOT NULL")" -ge 3
	[ "$p" = "$tmp/c" ] || continue
	query() { "$PT_BIN/pt-query" "$tmp/db" "$@" --format csv | tr -d '\r'; }
	for q in hot-functions callers callees call-tree call-times folded; do
		limit=(-p limit=100000)
		[ $q != call-tree ] || limit+=(-p percent=0)
		[ $q != folded ] || limit=(-p percent=0)
		check "$q: the demangled name" test "$(query $q "${limit[@]}" | grep -cF 'shapes::Box<int, 3>::area() const')" -gt 0
		check "$q: no raw ones" test "$(query $q "${limit[@]}" | grep -c '_ZN')" = 0
		check "$q --no-demangle" test "$(query $q "${limit[@]}" --no-demangle | grep -c '_ZNK6shapes3BoxIiLi3EE4areaEv')" -gt 0
	done
	"$PT_BIN/pt-query" "$tmp/db" --format html --no-demangle >"$tmp/html"
	check "the dashboard, raw" grep -q _ZN "$tmp/html"
	for name in 'shapes::Box<int, 3>::area() const' _ZNK6shapes3BoxIiLi3EE4areaEv; do
		check "callers of $name" test "$(query callers -p function="$name" | wc -l)" = 2
	done
done
