/*
 * pieces - whether what was decoded is what happened, with gaps only where they are reported.
 *
 *     pieces [-b] [-e] [-f] [-p N] TRUTH DECODED
 *
 * Both are lines "from to" (hexadecimal, 0: not seen). A line of DECODED that begins with # reports a
 * gap. Between two of them must be a contiguous piece of TRUTH, all pieces in order; the first begins
 * where TRUTH begins, the last ends where it ends, unless a gap is reported there. At a gap, the
 * lines where decoding began ("0 to") and ended ("from 0") may be new: also a "0 to" before it,
 * for the packet with which the buffer is full is in it, when the emulated PC's log has the branch
 * that it reports as one without PT already. -b, -e: the beginning, the end may be missing. -f: a
 * line "0 to" is a gap, too (TNT packets disabled: what is between is not in the trace). -p N: and so
 * are N others, of which nothing is reported: such a trace has so many PSBs, whose FUP says where it is
 * after a conditional branch that is not in it. Prints
 * "branches decoded gaps missing", or what is wrong, with exit status 1.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct branch {
	uint64_t from, to;
};

struct list {
	struct branch *at;
	size_t count;
	size_t *gaps; /* before which branch */
	size_t gap_count;
};

static void *grown(void *p, size_t count, size_t size)
{
	if ((count & (count + 1)) == 0)
		p = realloc(p, (count * 2 + 2) * size);
	if (!p)
		exit(2);
	return p;
}

static void gap(struct list *l)
{
	l->gaps = grown(l->gaps, l->gap_count, sizeof *l->gaps);
	l->gaps[l->gap_count++] = l->count;
}

static void read_list(struct list *l, const char *path, bool begins_are_gaps)
{
	FILE *f = fopen(path, "r");
	char line[4096];

	if (!f) {
		perror(path);
		exit(2);
	}
	while (fgets(line, sizeof line, f)) {
		struct branch b;
		char *end;

		if (line[0] == '#') {
			gap(l);
			continue;
		}
		b.from = strtoull(line, &end, 16);
		if (end == line || *end != ' ')
			continue;
		b.to = strtoull(end, NULL, 16);
		if (begins_are_gaps && !b.from)
			gap(l);
		l->at = grown(l->at, l->count, sizeof *l->at);
		l->at[l->count++] = b;
	}
	fclose(f);
}

static bool equal(struct branch a, struct branch b)
{
	return a.from == b.from && a.to == b.to;
}

/* The first place of piece[0..n) in truth from `from` on (Knuth, Morris, Pratt), or SIZE_MAX. */
static size_t find(const struct list *truth, size_t from, const struct branch *piece, size_t n)
{
	size_t *back = calloc(n + 1, sizeof *back), k = 0, i, ret = SIZE_MAX;

	if (!back)
		exit(2);
	for (i = 1; i < n; i++) {
		while (k && !equal(piece[i], piece[k]))
			k = back[k];
		k += equal(piece[i], piece[k]);
		back[i + 1] = k;
	}
	for (i = from, k = 0; i < truth->count && ret == SIZE_MAX; i++) {
		while (k && !equal(truth->at[i], piece[k]))
			k = back[k];
		k += equal(truth->at[i], piece[k]);
		if (k == n)
			ret = i + 1 - n;
	}
	free(back);
	return ret;
}

/* The most branches of the piece that are one in truth from `from` on. */
static size_t longest(const struct list *truth, size_t from, const struct branch *piece, size_t n)
{
	size_t least = 0, most = n;

	while (least < most) {
		size_t half = least + (most - least + 1) / 2;

		if (find(truth, from, piece, half) == SIZE_MAX)
			most = half - 1;
		else
			least = half;
	}
	return least;
}

/* Of each list there is as much as its count says.
 * NOLINTBEGIN(clang-analyzer-core.NullDereference,clang-analyzer-core.uninitialized.Branch) */
int main(int argc, char **argv)
{
	static struct list truth, got;
	bool open_begin = false, open_end = false, begins = false;
	size_t at = 0, found = 0, begin = 0, decoded = 0, psbs = 0;
	int o;

	while ((o = getopt(argc, argv, "befp:")) > 0) {
		psbs = o == 'p' ? strtoul(optarg, NULL, 10) : psbs;
		open_begin |= o == 'b';
		open_end |= o == 'e';
		begins |= o == 'f';
	}
	if (argc - optind != 2)
		return 2;
	read_list(&truth, argv[optind], false);
	read_list(&got, argv[optind + 1], begins);
	for (size_t g = 0; g <= got.gap_count; g++) {
		bool first = g == 0 && !begin && !open_begin, last = g == got.gap_count;
		size_t end = last ? got.count : got.gaps[g], b = begin, e = end;

		begin = end;
		while (!first && b < e && !got.at[b].from)
			b++;
		while ((!last || open_end) && b < e && !got.at[e - 1].to)
			e--;
		if (!last && b < e && !got.at[e - 1].from)
			e--;
		decoded += e - b;
		if (b == e)
			continue;
		found = find(&truth, at, got.at + b, e - b);
		if (found == SIZE_MAX) {
			size_t k = longest(&truth, at, got.at + b, e - b);

			if (k && psbs--) {
				at = find(&truth, at, got.at + b, k) + k;
				decoded -= e - b - k;
				begin = b + k;
				g--;
				continue;
			}
			printf(
			    "branches %zu to %zu (%" PRIx64 " %" PRIx64
			    "...) are no contiguous piece of the truth after its branch %zu; the first %zu "
			    "are\n",
			    b + 1, e, got.at[b].from, got.at[b].to, at, k);
			return 1;
		}
		if (first && found) {
			printf("%zu branches before the first decoded one, and no gap is reported\n", found);
			return 1;
		}
		at = found + (e - b);
	}
	if (at < truth.count && !open_end && (!got.gap_count || got.gaps[got.gap_count - 1] < got.count)) {
		/* The last piece must be at the end, whatever looks like it before. */
		size_t n = got.count - (got.gap_count ? got.gaps[got.gap_count - 1] : 0), same = 0;

		while (same < n && same < truth.count &&
		       equal(got.at[got.count - 1 - same], truth.at[truth.count - 1 - same]))
			same++;
		while (same < n && !got.at[got.count - 1 - same].from)
			same++;
		if (same < n) {
			printf("%zu branches after the last decoded one, and no gap is reported\n",
			       truth.count - at);
			return 1;
		}
	}
	printf("%zu %zu %zu %zu\n", truth.count, decoded, got.gap_count, truth.count - decoded);
	return 0;
}
/* NOLINTEND(clang-analyzer-core.NullDereference,clang-analyzer-core.uninitialized.Branch) */
