# Source lines: addr2line's for each instruction that ran, gcov's counts for each line that both have, in C and C++; what
# lcov's format wants.
# timeout: 120
source tests/common.bash
sql() { sqlite3 "$tmp/db" "$1"; }
if ! ldd "$PT_BIN/pt-load" | grep -q libdw; then
	skip 1 "pt-load was built without libdw"
	exit 0
fi
cat >"$tmp/a.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
static int twice(int x)
{
	return 2 * x;
}
int never(int x)
{
	if (x)
		return 1;
	return 0;
}
static int collatz(long n)
{
	int steps = 0;

	while (n != 1) {
		if (n % 2)
			n = 3 * n + 1;
		else
			n /= 2;
		steps++;
	}
	return steps;
}
static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
int main(int argc, char **argv)
{
	int most = 0, all[40];

	(void)argv;
	for (int i = 1; i < 100; i++) {
		int s = collatz(i);

		if (s > most)
			most = s;
	}
	for (int i = 0; i < 40; i++)
		all[i] = i * 17 % 40;
	qsort(all, 40, sizeof *all, compare);
	switch (argc) {
	case 1:
		most += twice(most);
		break;
	case 2:
		most = never(most);
		break;
	default:
		most = 0;
	}
	printf("%d\n", most + all[3]);
	return 0;
}
END
cat >"$tmp/b.cc" <<'END'
#include <map>
#include <stdexcept>
#include <string>
#include <cstdio>
template <typename T> static T add(T a, T b)
{
	T sum = a;

	sum += b;
	return sum;
}
struct shape {
	virtual ~shape() = default;
	virtual int corners() const = 0;
};
struct square : shape {
	int corners() const override
	{
		return 4;
	}
};
struct line : shape {
	int corners() const override
	{
		return 0;
	}
};
static int check(const shape &s)
{
	int n = s.corners();

	if (n == 0)
		throw std::runtime_error("flat");
	return n;
}
int main()
{
	std::map<std::string, int> seen;
	int sum = 0;

	for (int i = 0; i < 6; i++) {
		try {
			if (i % 3)
				sum = add(sum, check(square()));
			else
				sum = add(sum, check(line()));
		} catch (const std::runtime_error &e) {
			seen[e.what()]++;
		}
	}
	std::printf("%d %d %s\n", sum, seen["flat"], add(std::string("a"), std::string("b")).c_str());
	return 0;
}
END
# recorded PROGRAM: $tmp/db
recorded() {
	"$PT_BIN/pt-capture" -q -o "$tmp/x.ptc" -- "$1" >/dev/null 2>"$tmp/err"
	succeeded $? "capture $1: $(cat "$tmp/err")"
	rm -f "$tmp/db"
	"$PT_BIN/pt-decode" -q "$tmp/x.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
}
mkdir "$tmp/cov"
for source in a.c b.cc; do
	name=${source%.*}
	compiler=gcc
	static=()
	[ "$source" = a.c ] || { compiler=g++ && static=(-static-libstdc++); }
	for o in 0 2; do
		# With libstdc++ in it: the dynamic linker is 1.8 million steps else.
		"$compiler" -g -O$o -static-libgcc "${static[@]}" -o "$tmp/$name$o" "$tmp/$source" || fail "$source does not compile"
		recorded "$tmp/$name$o"
		# addr2line, for each instruction of the program itself
		sql "SELECT DISTINCT printf('0x%x', dso_ip), coalesce(file || ':' || line, '??:0') FROM insns WHERE dso = '$tmp/$name$o'
			ORDER BY 1" >"$tmp/ours"
		check "$source -O$o: $(wc -l <"$tmp/ours") instructions" test "$(wc -l <"$tmp/ours")" -gt 50
		cut -d '|' -f 1 "$tmp/ours" | addr2line -e "$tmp/$name$o" | sed 's/ (discriminator .*//; s/^.*:[?0]$/??:0/' >"$tmp/lines"
		# Of functions in COMDAT sections, as C++ has them, binutils 2.40 gives the unit's file with another file's line.
		[ "$source" = a.c ] || sed -i 's/[^|]*:/:/; s/|[^|]*:/|:/' "$tmp/lines" "$tmp/ours"
		same "$source -O$o: addr2line's lines" <(cut -d '|' -f 1 "$tmp/ours" | paste -d '|' - "$tmp/lines") "$tmp/ours"
		# Inlined calls: the functions, innermost first, and the lines that they are called in.
		sql "WITH RECURSIVE insn AS (SELECT DISTINCT printf('0x%x', dso_ip) AS ip, inlined_call FROM insns WHERE dso = '$tmp/$name$o'),
			k AS (SELECT ip, i.id, '|' || i.name || '|' || i.line AS text, i.outer FROM insn JOIN inlined_call i ON i.id = insn.inlined_call
			UNION ALL SELECT ip, i.id, text || '|' || i.name || '|' || i.line, i.outer FROM k JOIN inlined_call i ON i.id = k.outer)
			SELECT ip || text FROM k WHERE outer IS NULL
			UNION ALL SELECT ip FROM insn WHERE inlined_call IS NULL" | sort >"$tmp/inlined"
		for tool in llvm-addr2line addr2line; do
			command -v "$tool" >/dev/null || { skip 1 "$tool is not there" && continue; }
			cut -d '|' -f 1 "$tmp/ours" | "$tool" -a -f -i -e "$tmp/$name$o" | sed 's/ (discriminator .*//' | awk '
				function put() { if (ip) print ip text } /^0x/ { put(); ip = $0; sub(/0x0*/, "0x", ip); text = ""; n = 0; next }
				n++ % 2 == 0 { name = $0; next } { sub(/.*:/, ""); if (n > 2) text = text "|" before "|" $0; before = name }
				END { put() }' | sort >"$tmp/theirs"
			# binutils 2.40 names the function around for an inlined one without a linkage name: lines alone, then.
			[ "$tool$source" = addr2lineb.cc ] && sed -i -E 's/\|[^|]*\|([0-9]+)/|\1/g' "$tmp/theirs" "$tmp/inlined"
			same "$source -O$o: $tool -i's calls" "$tmp/theirs" "$tmp/inlined"
		done
		[ $o = 0 ] || check "$source: $(grep -c '|' "$tmp/inlined") instructions of inlined functions" \
			test "$(grep -c '|' "$tmp/inlined")" -ge 10
		"$PT_BIN/pt-query" "$tmp/db" lcov -p dso="$name$o" -p file="$source" >"$tmp/$name$o.info"
		[ $o = 0 ] || continue
		# gcov counts heads of functions and labels, which have no code of their own; and not their braces.
		(cd "$tmp/cov" && "$compiler" -g -O0 --coverage -o "$name" "../$source" && "./$name" >/dev/null && gcov -t -- *"$name".gcda >"$name.gcov" 2>/dev/null)
		awk -F: -v name="$source" '/:Source:/ { on = $0 ~ name "$" } on && $2 + 0 > 0 && $1 !~ /-$/ && $1 !~ /^----/ {
			if ($3 ~ /^[ \t]*}$/) next; gsub(/[ *]/, "", $1); print $2 + 0, ($1 ~ /[#=]/ ? 0 : $1) }' "$tmp/cov/$name.gcov" | awk '!seen[$1]++' >"$tmp/gcov"
		sed -n 's/^DA:\([0-9]*\),/\1 /p' "$tmp/$name$o.info" | sort -k1,1n >"$tmp/da"
		# Where a call always throws, gcov counts what comes before and after it together.
		sed -i "/^$(grep -n 'check(line())' "$tmp/$source" | cut -d : -f 1 | grep . || echo none) /d" "$tmp/gcov"
		# gcc 14's counts a line once more for each of its temporaries that an exception would destroy.
		sed -i "/^$(grep -n 'std::printf' "$tmp/$source" | cut -d : -f 1 | grep . || echo none) /d" "$tmp/gcov"
		join <(sort "$tmp/gcov") <(sort "$tmp/da") | sort -n >"$tmp/both"
		check "$source: $(wc -l <"$tmp/both") lines both have" test "$(wc -l <"$tmp/both")" -ge 18
		same "$source: gcov's counts" /dev/null <(awk '$2 != $3' "$tmp/both")
		# Branches, where gcov counts no calls that may throw, no switch: its counts of each line.
		(cd "$tmp/cov" && gcov -t -b -c -- *"$name".gcda 2>/dev/null) | awk -F: -v name="$source" '/:Source:/ { on = $0 ~ name "$" }
			on && /^branch / { n = split($0, a, " "); if (!/throw/) print line, a[4]; next } $2 + 0 > 0 { line = $2 + 0 }' | sort -u >"$tmp/branches"
		sed -n 's/^BRDA:\([0-9]*\),0,[0-9]*,/\1 /p' "$tmp/$name$o.info" | sort -u >"$tmp/brda"
		sed -i "/^$(grep -n 'switch' "$tmp/$source" | cut -d : -f 1 | grep . || echo none) /d" "$tmp/branches" "$tmp/brda"
		[ "$source" != a.c ] || same "$source: gcov's branches" <(grep -v ' never$' "$tmp/branches" | grep -vE '^(8|9) ') "$tmp/brda"
		[ "$source" != a.c ] || check "$source: $(wc -l <"$tmp/brda") counts of branches" test "$(wc -l <"$tmp/brda")" -ge 10
		same "$source: only ours" /dev/null <(join -v 2 <(sort "$tmp/gcov") <(sort "$tmp/da") | while read -r n _; do
			sed -n "${n}p" "$tmp/$source"
		done | grep -vxE '\s*[{}].*|struct .*|.*check\(line\(\)\).*|.*std::printf.*')
	done
done
check "lines with 0 are there" grep -qxE 'DA:[0-9]+,0' "$tmp/a0.info"
check "lcov's records: $(head -n 3 "$tmp/a0.info" | tr '\n' ' ')" test "$(head -n 1 "$tmp/a0.info")" = TN: -a \
	"$(sed -n 2p "$tmp/a0.info")" = "SF:$tmp/a.c" -a "$(tail -n 1 "$tmp/a0.info")" = end_of_record
check "LF and LH count DA" test "$(awk -F '[:,]' '$1 == "DA" { lf++; lh += $3 > 0 } $1 == "LF" { a = $2 } $1 == "LH" { b = $2 }
	END { print (lf == a && lh == b) }' "$tmp/a0.info")" = 1
if command -v genhtml >/dev/null; then
	genhtml -q --branch-coverage -o "$tmp/pages" "$tmp/a0.info" >"$tmp/out" 2>&1
	succeeded $? "genhtml: $(head -n 3 "$tmp/out")"
	check "genhtml makes the file's page" test -s "$(find "$tmp/pages" -name 'a.c.gcov.html')"
else
	skip 2 "genhtml is not there"
fi
check "FNDA: collatz 99 times" grep -qx 'FNDA:99,collatz' "$tmp/a0.info"

# ---- The view lines and hot-lines add up
same "lines: the instructions that have one" <(sql 'SELECT sum(count) FROM insns WHERE line IS NOT NULL') <(sql 'SELECT sum(insn_count) FROM lines')
recorded "$tmp/a2"
same "hot-lines: one file" <(sql "SELECT sum(count) FROM insns WHERE file = '$tmp/a.c'") \
	<("$PT_BIN/pt-query" "$tmp/db" hot-lines -p file=a.c -p limit=1000 --format csv | awk -F, 'NR > 1 { n += $6 } END { print n }')

# ---- A file that is not the one that ran says nothing
cp "$tmp/a2" "$tmp/kept"
gcc -g -O1 -o "$tmp/a2" "$tmp/a.c"
rm "$tmp/db"
"$PT_BIN/pt-decode" -q "$tmp/x.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
check "another build id: no lines" test "$(sql "SELECT count(line) FROM insns WHERE dso = '$tmp/a2'")" = 0
check "and its code all the same" test "$(sql "SELECT count(*) FROM insns WHERE dso = '$tmp/a2'")" -gt 50
rm "$tmp/a2"
mkfifo "$tmp/a2"
rm "$tmp/db"
"$PT_BIN/pt-decode" -q "$tmp/x.ptc" >"$tmp/s"
check "a fifo in its place does not stop it" timeout 60 "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s"
