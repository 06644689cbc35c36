/* url.c - see url.h. */
#include "schema/clickhouse/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/clickhouse/http.h"

static const char plain[] = "clickhouse://", tls[] = "clickhouses://";

bool clickhouse_is_url(const char *name)
{
	return !strncmp(name, plain, sizeof plain - 1) || !strncmp(name, tls, sizeof tls - 1);
}

void clickhouse_parts_deinit(struct clickhouse_parts *p)
{
	free(p->user);
	free(p->host);
	free(p->database);
	memset(p, 0, sizeof *p);
}

static bool is_name(const char *text, size_t n)
{
	if (!n || n > 128)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
			return false;
	return true;
}

/* A database's name is put into SQL as it is. */
static bool is_database(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	return *text && !isdigit((unsigned char)*text) && strlen(text) <= 128;
}

static int fail_url(const char *url, const char *why, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: %s: clickhouse://[user@]host[:port]/database", url,
		       why);
}

/* host[:port], [address][:port] */
static int read_host(struct clickhouse_parts *p, const char *at, size_t n, const char *url,
		     struct pt_error *e)
{
	const char *end = at + n, *host = at, *close = n && *at == '[' ? memchr(at, ']', n) : NULL, *colon;
	char *rest;

	p->bracketed = close != NULL;
	host = close ? at + 1 : at;
	colon = close ? close + 1 : memchr(at, ':', n) ? (const char *)memchr(at, ':', n) : end;
	n = (size_t)((close ? close : colon) - host);
	if (close ? n < 2 || strspn(host, "0123456789abcdefABCDEF:.%") < n : !is_name(host, n))
		return fail_url(url, "no host's name", e);
	if (colon < end) {
		unsigned long port = strtoul(colon + 1, &rest, 10);

		if (*colon != ':' || !isdigit((unsigned char)colon[1]) || rest != end || !port ||
		    port > 65535)
			return fail_url(url, "no port", e);
		p->port = (unsigned)port;
	}
	p->host = strndup(host, n);
	return p->host ? 0 : pt_fail_no_memory(e, NULL);
}

static int read_parts(struct clickhouse_parts *p, const char *url, struct pt_error *e)
{
	const char *at = strstr(url, "://") + 3, *slash = strchr(at, '/');
	const char *end = slash ? slash : at + strlen(at), *user_end = memchr(at, '@', (size_t)(end - at));

	p->tls = !strncmp(url, tls, sizeof tls - 1);
	if (user_end && memchr(at, ':', (size_t)(user_end - at)))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "a password does not belong on a command line: put it into "
			       "CLICKHOUSE_PASSWORD, or into a "
			       "file that CLICKHOUSE_PASSWORD_FILE names");
	if (user_end && !is_name(at, (size_t)(user_end - at)))
		return fail_url(url, "no user's name", e);
	if (user_end && !(p->user = strndup(at, (size_t)(user_end - at))))
		return pt_fail_no_memory(e, NULL);
	if (!slash || !is_database(slash + 1))
		return fail_url(url, "no database's name", e);
	if (!(p->database = strdup(slash + 1)))
		return pt_fail_no_memory(e, NULL);
	at = user_end ? user_end + 1 : at;
	return read_host(p, at, (size_t)(end - at), url, e);
}

int clickhouse_parts_init(struct clickhouse_parts *p, const char *url, struct pt_error *e)
{
	int r;

	memset(p, 0, sizeof *p);
	r = read_parts(p, url, e);
	if (r < 0)
		clickhouse_parts_deinit(p);
	return r;
}

static int read_password_file(const char *path, char **ret, struct pt_error *e)
{
	FILE *f = fopen(path, "re");
	char line[1024] = "";
	bool failed;

	if (!f)
		return pt_fail_errno(e, "cannot read the password in %s", path);
	failed = !fgets(line, sizeof line, f) && ferror(f);
	fclose(f);
	if (failed)
		return pt_fail_errno(e, "cannot read the password in %s", path);
	line[strcspn(line, "\n")] = 0;
	*ret = strdup(line);
	explicit_bzero(line, sizeof line);
	return *ret ? 0 : pt_fail_no_memory(e, NULL);
}

int clickhouse_password(char **ret, struct pt_error *e)
{
	const char *given = getenv("CLICKHOUSE_PASSWORD"), *path = getenv("CLICKHOUSE_PASSWORD_FILE");

	*ret = NULL;
	if (given && !(*ret = strdup(given)))
		return pt_fail_no_memory(e, NULL);
	if (!given && path && read_password_file(path, ret, e) < 0)
		return -1;
	for (const char *p = *ret; p && *p; p++)
		if (iscntrl((unsigned char)*p)) {
			free(*ret);
			*ret = NULL;
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the password has a control character");
		}
	return 0;
}

char *clickhouse_quote(const char *text, struct pt_error *e)
{
	char *ret = malloc(2 * strlen(text) + 3), *to = ret;

	if (!ret) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	*to++ = '\'';
	*to = 0;
	return ret;
}
