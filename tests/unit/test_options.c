/* test_options - schema/options.h: parsing by a table, and --help from it. */
#include <stdlib.h>
#include <string.h>

#include "schema/options.h"
#include "tests/unit/check.h"

struct arguments {
	const char *output;
	bool quiet, all;
	long long level;
	const char *sample, *guest;
	int samples;
};

static int set_level(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("-z", value, -7, 19, &((struct arguments *)arg)->level, e);
}

static int set_sample(void *arg, const char *value, struct pt_error *e)
{
	struct arguments *a = arg;

	(void)e;
	a->sample = value;
	a->samples++;
	return 0;
}

static const struct pt_option table[] = {
    PT_OPTION_HEADING("Output:"),
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write to FILE",
     PT_OPTION_TEXT(struct arguments, output)},
    PT_OPERAND("-- PROGRAM", "a program"),
    {.name = "quiet", .letter = 'q', .help = "no progress", PT_OPTION_FLAG(struct arguments, quiet)},
    {.name = "all", .help = "a\nb", PT_OPTION_FLAG(struct arguments, all)},
    {.name = "level", .letter = 'z', .argument = "N", .help = "zstd level", .set = set_level},
    {.name = "aux-sample", .argument = "[=SIZE]", .help = "samples", .set = set_sample},
    {.name = "guest",
     .argument = "[PID:]FILE",
     .help = "a file of a guest",
     PT_OPTION_TEXT(struct arguments, guest)},
    PT_OPTION_END};

static int parse(bool stop, struct arguments *a, int *operand, struct pt_error *e, char **argv)
{
	struct pt_command_line line = {"prog", table, stop};
	int argc = 0;

	while (argv[argc])
		argc++;
	*a = (struct arguments){0};
	return pt_options_parse(&line, argc, argv, a, operand, e);
}
#define PARSE(stop, ...) parse((stop), &a, &operand, &e, (char *[]){"prog", __VA_ARGS__, NULL})

int main(void)
{
	struct arguments a;
	struct pt_error e;
	int operand;
	char *text = NULL;
	size_t size;
	FILE *f;

	check(PARSE(false, "-o", "x", "in", "-q", "--level=-3") == 0 && !strcmp(a.output, "x") && a.quiet &&
		  a.level == -3 && operand == 5 && !a.all,
	      "options before and after an operand");
	check(PARSE(true, "-q", "in", "--all") == 0 && a.quiet && !a.all && operand == 2,
	      "with stop_at_operand those after it are its own");
	check(PARSE(false, "--aux-sample", "--aux-sample=8K") == 0 && a.samples == 2 &&
		  !strcmp(a.sample, "8K"),
	      "an argument that may be missing");
	check(PARSE(false, "--aux-sample", "x") == 0 && !a.sample, "is not taken from the next word");
	check(PARSE(false, "--guest", "7:x", "in") == 0 && !strcmp(a.guest, "7:x") && operand == 3,
	      "an argument that has a part in brackets");
	check(PARSE(false, "--", "-q") == 0 && !a.quiet && operand == 2, "-- ends them");
	check(PARSE(false, "-z", "20") == -1 && e.kind == PT_ERR_USAGE && strstr(e.message, "-7 to 19"),
	      "range");
	check(PARSE(false, "-z", "5x") == -1 && e.kind == PT_ERR_USAGE, "no number");
	check(PARSE(false, "-z", "0x5") == -1 && e.kind == PT_ERR_USAGE, "no decimal number");
	check(PARSE(false, "-h") == 1 && PARSE(false, "--help") == 1, "help");
	if (!freopen("/dev/null", "w", stderr))
		return 1;
	check(PARSE(false, "--nonsense") == -1 && !strcmp(e.message, "see 'prog --help'"), "unknown");

	f = open_memstream(&text, &size);
	if (!f)
		return 1;
	pt_options_print(table, f);
	fclose(f);
	check(!strncmp(text, "Output:\n  -o, --output FILE         write to FILE\n", 49),
	      "help of an option");
	check(strstr(text, "      --aux-sample[=SIZE]   samples\n") != NULL, "help of an optional argument");
	check(strstr(text, "\n  -- PROGRAM                a program\n") != NULL, "help of an operand");
	check(strstr(text, "--all                 a\n                            b\n") != NULL, "line break");
	free(text);
	return sum_up();
}
