/* check.c - pt-capture check; see check.h. */
#include "capture/record/check.h"
#include "capture/commands.h"

#include <string.h>

void check_print(const struct check_result *r, FILE *to)
{
	static const char *const words[] = {"yes", "NO", "limited", "unknown"};

	for (unsigned i = 0; i < r->count; i++) {
		const struct check_line *l = &r->lines[i];

		fprintf(to, "%-8s %-32s %s\n", words[l->answer], l->what, l->detail);
		if (l->remedy[0])
			fprintf(to, "%-8s %-32s -> %s\n", "", "", l->remedy);
	}
	fprintf(to, "%s\n",
		r->can_trace ? "Processor Trace can be used here."
			     : "Processor Trace cannot be used here; pt-capture -- PROGRAM single-steps.");
}

int cmd_check(int argc, char **argv)
{
	struct check_cpu cpu = check_this_cpu();
	struct check_result r;

	if (argc > 1) {
		bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;

		fputs("usage: pt-capture check\n"
		      "Says, one line per condition, whether Processor Trace works on this machine, and what "
		      "to "
		      "do where not.\n"
		      "Exit status: 0 it works; 1 it does not.\n",
		      help ? stdout : stderr);
		return help ? 0 : 2;
	}
	check_all(&r, "", &cpu);
	check_print(&r, stdout);
	return fflush(stdout) || !r.can_trace ? 1 : 0;
}
