/* check.c - pt-capture check; see check.h. */
#include "capture/record/check.h"
#include "capture/commands.h"
#include "schema/options.h"

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

static const struct pt_option options[] = {PT_OPTION_END};

static void usage(void)
{
	fputs("usage: pt-capture check\n"
	      "Says, one line per condition, whether Processor Trace works on this machine, and what to do\n"
	      "where not.\n"
	      "\n",
	      stdout);
	pt_options_print(options, stdout);
	fputs("  -h, --help                this text\n"
	      "\n"
	      "Exit status: 0 it works; 1 it does not; 2 wrong usage.\n",
	      stdout);
}

int cmd_check(int argc, char **argv)
{
	static const struct pt_command_line line = {"pt-capture check", options, false};
	struct check_cpu cpu = check_this_cpu();
	struct check_result r;
	struct pt_error e = {0};
	int operand, ret = pt_options_parse(&line, argc, argv, NULL, &operand, &e);

	if (ret > 0) {
		usage();
		return 0;
	}
	if (ret == 0 && operand < argc)
		ret = pt_fail(&e, PT_ERR_USAGE, PT_NO_OFFSET,
			      "check takes no arguments; see 'pt-capture check --help'");
	if (ret)
		return command_failed(&e);
	check_all(&r, "", &cpu);
	check_print(&r, stdout);
	return r.can_trace ? 0 : 1;
}
