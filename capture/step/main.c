/* main.c - pt-capture -- PROGRAM where there is no Processor Trace: the program is single-stepped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/commands.h"
#include "capture/pt/config.h"
#include "capture/pt/host_meta.h"
#include "capture/step/engine.h"
#include "schema/output.h"

/* ---- Signals ---- */

static volatile sig_atomic_t stop, stop_signal;

/* The program gets the signal, and two seconds to end by it. */
/* The kernel's own (SI_KERNEL) is the terminal's Ctrl-C, which the program has got, too: 0, to send none. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig != SIGALRM) {
		stop_signal = info->si_code == SI_KERNEL ? 0 : sig;
		alarm(2);
	}
	stop = stop + 1;
}

static void handle_signals(struct step_options *o)
{
	struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, hup;

	o->stop = &stop;
	o->stop_signal = &stop_signal;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	/* Ignored: nohup. */
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &act, NULL);
	sigaction(SIGALRM, &act, NULL);
}

/* ---- The program ---- */

/* execvp()'s search; NULL: it is not found, or no memory. To be freed. */
static char *search_path(const char *name)
{
	const char *p = getenv("PATH");
	struct stat st;

	for (p = p ? p : "/usr/local/bin:/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		char *path = NULL;

		if (asprintf(&path, "%.*s/%s", n ? (int)n : 1, n ? p : ".", name) < 0)
			path = NULL;
		if (path && access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
			return path;
		free(path);
		p += n + (p[n] == ':');
	}
	return NULL;
}

static bool is_32_bit(const char *path)
{
	char head[5];
	FILE *f = fopen(path, "re");
	bool is = f && fread(head, 1, sizeof head, f) == sizeof head && !memcmp(head, "\177ELF\1", 5);

	if (f)
		fclose(f);
	return is;
}

/* name: as the user gave it. */
static int check_file(const char *path, const char *name, struct pt_error *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: it is no file", name);
	if (access(path, X_OK) < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: %s (chmod +x?)", name,
			       strerror(errno));
	if (is_32_bit(path))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is a 32-bit program: stepping is for 64-bit ones only so far", name);
	if (st.st_mode & (S_ISUID | S_ISGID) && geteuid() != 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is set-user-ID, and would run without its privileges when traced: run "
			       "pt-capture as root",
			       name);
	return 0;
}

/* Checks that the program can be run and stepped, to say it before anything is written. */
static int check_program(const char *name, struct pt_error *e)
{
	char *path;
	int r;

	if (strchr(name, '/'))
		return check_file(name, name, e);
	path = search_path(name);
	if (!path)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "no program is called %s in PATH; give its path, or look at the spelling",
			       name);
	r = check_file(path, name, e);
	free(path);
	return r;
}

/* ---- The container ---- */

static int put_meta(struct ptc_writer *w, char **program, uint64_t config, struct pt_error *e)
{
	struct host_meta m = {.engine = "step", .synthetic = true, .command = program};
	int r = host_meta_put(w, &m, e);

	r |= ptc_put_metaf(w, e, "tsc_ctc_numerator", "%d", PT_MODEL_CTC_NUM);
	r |= ptc_put_metaf(w, e, "tsc_ctc_denominator", "%d", PT_MODEL_CTC_DEN);
	r |= ptc_put_metaf(w, e, "tsc_hz", "%d", PT_MODEL_TSC_HZ);
	r |= ptc_put_metaf(w, e, "nominal_ratio", "%d", PT_MODEL_NOMINAL);
	r |= ptc_put_metaf(w, e, "mtc_freq", "%u", pt_config_field(config, PT_CONFIG_MTC_PERIOD));
	r |= ptc_put_metaf(w, e, "pt_config", "0x%" PRIx64, config);
	r |= ptc_put_meta(w, "pt_user_only", "1", e);
	r |= ptc_put_meta(w, "time_zero", "0", e);
	r |= ptc_put_meta(w, "time_mult", "512", e);
	r |= ptc_put_meta(w, "time_shift", "10", e);
	return r < 0 ? -1 : 0;
}

/* Steps the program, into a whole container. */
static int put_container(const struct step_command *c, const struct step_options *o, int fd,
			 struct step_result *result, struct pt_error *e)
{
	struct ptc_writer *w = ptc_writer_create(fd, output_name(c->output), c->level, e);
	int r = -1;

	if (w && put_meta(w, c->program, o->config, e) == 0 && step_run(c->program, o, w, result, e) == 0) {
		r = ptc_put_metaf(w, e, "exit_status", "%d", result->status);
		if (r == 0)
			r = ptc_writer_finish(w, e);
	}
	ptc_writer_destroy(w);
	return r;
}

/* ---- The list of branches ---- */

/* It is for its owner only, as the container is. */
static FILE *open_truth(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/*
 * Closes it. r: 0, or -1 when something else failed already. Returns r, or -1 when it could not be written.
 */
static int close_truth(FILE *f, const char *path, int r, struct pt_error *e)
{
	if (!f)
		return r;
	if ((fflush(f) != 0 || ferror(f)) && r == 0)
		r = pt_fail_errno(e, "cannot write %s", path);
	fclose(f);
	return r;
}

/* ---- What is printed ---- */

static void progress(uint64_t steps)
{
	fprintf(stderr, "\rpt-capture: %" PRIu64 " instructions", steps);
}

static void print_result(const struct step_command *c, const struct step_options *o,
			 const struct step_result *r, double seconds)
{
	const char *line = o->progress ? "\r" : ""; /* over the progress */

	if (r->untraced)
		fprintf(stderr,
			"%spt-capture: 32-bit programs that it began (%u) ran without being traced: stepping "
			"is for 64-bit ones only\n",
			line, r->untraced);
	if (c->quiet)
		return;
	fprintf(stderr,
		"%spt-capture: %s ended with status %d; %" PRIu64
		" instructions, %u thread%s, %.0f steps/s\n",
		line, c->program[0], r->status, r->steps, r->threads, r->threads == 1 ? "" : "s",
		(double)r->steps / (seconds > 0 ? seconds : 1));
}

/* ---- The command ---- */

static struct pt_encode_config encode_config(uint64_t config)
{
	unsigned thresh = pt_config_field(config, PT_CONFIG_CYC_THRESH);

	return (struct pt_encode_config){.tsc = config & PT_CONFIG_TSC,
					 .mtc = config & PT_CONFIG_MTC && config & PT_CONFIG_TSC,
					 .cyc = config & PT_CONFIG_CYC,
					 .retcomp = !(config & PT_CONFIG_NORETCOMP),
					 .mtc_shift = pt_config_field(config, PT_CONFIG_MTC_PERIOD),
					 .cyc_min = thresh ? 1u << (thresh - 1) : 0,
					 .psb_bytes = (uint64_t)2048
						      << pt_config_field(config, PT_CONFIG_PSB_PERIOD)};
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* o: the engine's configuration. */
static int capture(const struct step_command *c, struct step_options *o, struct pt_error *e)
{
	struct step_result result;
	struct output out = {0};
	double begin;
	int r;

	if (output_open_capture(&out, c->output, "a container", e) < 0)
		return -1;
	o->stdout_to_stderr = out.fd == STDOUT_FILENO;
	if (c->truth && !(o->truth = open_truth(c->truth))) {
		pt_fail_errno(e, "cannot write %s", c->truth);
		output_abort(&out);
		return -1;
	}
	if (!c->quiet && isatty(STDERR_FILENO))
		o->progress = progress;
	handle_signals(o);
	if (!c->quiet)
		fprintf(stderr, "pt-capture: stepping %s: branches are real, time is a model\n",
			c->program[0]);
	begin = seconds();
	r = put_container(c, o, out.fd, &result, e);
	r = close_truth(o->truth, c->truth, r, e);
	if (r == 0)
		r = output_commit(&out, e);
	else
		output_abort(&out);
	if (r == 0)
		print_result(c, o, &result, seconds() - begin);
	return r == 0 && !c->no_exit_status ? result.status : r;
}

int step_capture(const struct step_command *c, struct pt_error *e)
{
	struct step_options o = {.config = PT_CONFIG_DEFAULT,
				 .single = c->single,
				 .max_steps = c->max_steps,
				 .started = c->started,
				 .started_arg = c->started_arg};

	if (c->terms && pt_config_parse(c->terms, &o.config, e) < 0)
		return -1;
	o.encode = encode_config(o.config);
	if (check_program(c->program[0], e))
		return -1;
	return capture(c, &o, e);
}
