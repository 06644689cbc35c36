/* http.c - see http.h. */
#ifdef HAVE_LIBCURL
#include "schema/clickhouse/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/clickhouse/url.h"

enum { ANSWER_MAX = 64 << 20, PORT = 8123, TLS_PORT = 8443 };

struct clickhouse {
	CURL *curl;
	struct curl_slist *headers; /* user and password, never in a URL */
	struct clickhouse_parts parts;
	char *text; /* the URL as given */
	bool without_database;
	unsigned version; /* 0: not asked yet */
	bool (*interrupted)(void *arg);
	void *interrupted_arg;
};

/* What comes back of one request. */
struct answer {
	const struct clickhouse_request *request;
	CURL *curl;
	bool refused; /* take() wanted no more */
	char message[768];
	size_t message_bytes;
};

static int is_interrupted(void *arg, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t f)
{
	struct clickhouse *c = arg;

	(void)a, (void)b, (void)d, (void)f;
	return c->interrupted && c->interrupted(c->interrupted_arg);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	long status = 0;

	n *= size;
	curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) {
		size_t room = sizeof a->message - 1 - a->message_bytes, take = n < room ? n : room;

		memcpy(a->message + a->message_bytes, bytes, take);
		a->message_bytes += take;
		return n;
	}
	if (a->request->take && a->request->take(a->request->arg, bytes, n) < 0) {
		a->refused = true;
		return 0;
	}
	return n;
}

static int add_header(struct clickhouse *c, const char *name, const char *value)
{
	struct curl_slist *more;
	char *line;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		return -1;
	more = curl_slist_append(c->headers, line);
	explicit_bzero(line, strlen(line));
	free(line);
	if (!more)
		return -1;
	c->headers = more;
	return 0;
}

static int set_up(struct clickhouse *c, struct pt_error *e)
{
	char *password = NULL;
	int r;

	if (clickhouse_password(&password, e) < 0)
		return -1;
	c->curl = curl_easy_init();
	r = !c->curl || add_header(c, "Content-Type", "application/octet-stream") < 0 ||
	    add_header(c, "Expect", "") < 0 ||
	    add_header(c, "X-ClickHouse-User", c->parts.user ? c->parts.user : "default") < 0 ||
	    (password && add_header(c, "X-ClickHouse-Key", password) < 0);
	if (password)
		explicit_bzero(password, strlen(password));
	free(password);
	return r ? pt_fail_no_memory(e, "libcurl") : 0;
}

struct clickhouse *clickhouse_create(const char *url, struct pt_error *e)
{
	struct clickhouse *c = calloc(1, sizeof *c);

	if (!c || !(c->text = strdup(url))) {
		free(c);
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (clickhouse_parts_init(&c->parts, url, e) < 0 || set_up(c, e) < 0) {
		clickhouse_destroy(c);
		return NULL;
	}
	return c;
}

void clickhouse_destroy(struct clickhouse *c)
{
	if (!c)
		return;
	curl_slist_free_all(c->headers);
	curl_easy_cleanup(c->curl);
	clickhouse_parts_deinit(&c->parts);
	free(c->text);
	free(c);
}

const char *clickhouse_url(const struct clickhouse *c)
{
	return c->text;
}

const char *clickhouse_database(const struct clickhouse *c)
{
	return c->parts.database;
}

void clickhouse_without_database(struct clickhouse *c, bool without)
{
	c->without_database = without;
}

void clickhouse_interrupted(struct clickhouse *c, bool (*interrupted)(void *arg), void *arg)
{
	c->interrupted = interrupted;
	c->interrupted_arg = arg;
}

/* "&name=value", escaped; "" for no value. For free(). NULL: no memory. */
static char *url_part(CURL *curl, const char *name, const char *value)
{
	char *escaped = value ? curl_easy_escape(curl, value, 0) : NULL, *ret = NULL;

	if (value && !escaped)
		return NULL;
	if (asprintf(&ret, "%s%s%s%s", value ? "&" : "", value ? name : "", value ? "=" : "",
		     value ? escaped : "") < 0)
		ret = NULL;
	curl_free(escaped);
	return ret;
}

/* The URL that libcurl gets, for free(). NULL: no memory. */
static char *request_url(struct clickhouse *c, const struct clickhouse_request *r)
{
	const struct clickhouse_parts *p = &c->parts;
	char *database = url_part(c->curl, "database", c->without_database ? NULL : p->database);
	char *sql = url_part(c->curl, "query", r->body ? r->sql : NULL), *url = NULL;

	if (database && sql &&
	    asprintf(&url, "%s://%s%s%s:%u/?wait_end_of_query=1&insert_distributed_sync=1%s%s%s%s%s",
		     p->tls ? "https" : "http", p->bracketed ? "[" : "", p->host, p->bracketed ? "]" : "",
		     p->port ? p->port : (unsigned)(p->tls ? TLS_PORT : PORT), database,
		     r->settings ? "&" : "", r->settings ? r->settings : "", r->reads ? "&readonly=2" : "",
		     sql) < 0)
		url = NULL;
	free(database);
	free(sql);
	return url;
}

/* Errors of the server that another try does not mend: its numbers, of ErrorCodes.cpp. Of others
 * (memory, disk, timeouts, too many parts or queries) it may. */
static bool is_fatal(const char *message)
{
	/* clang-format off */
	static const int codes[] = {
		6, 10, 16, 20, 26, 27, 36, 41, 42, 43, 44, 46, 47, 48, 50, 53, 57, 60, 62, 63, 69, 70,
		81, 82, 92, 115, 131, 164, 179, 184, 192, 193, 194, 195, 206, 215, 291, 344, 352, 386,
		390, 403, 452, 497, 516,
	};
	/* clang-format on */
	int code = 0;

	if (sscanf(message, "Code: %d", &code) != 1)
		return false;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i] == code)
			return true;
	return false;
}

/* The server's words, without what surrounds them. */
static void say(struct clickhouse *c, struct answer *a, long status, struct pt_error *e)
{
	char *text, *end;

	a->message[a->message_bytes] = 0;
	text = strstr(a->message, "DB::Exception: ");
	text = text ? text + strlen("DB::Exception: ") : a->message;
	end = strstr(text, ", e.what()");
	if (end)
		*end = 0;
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
	pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%s: the server says: %s (HTTP %ld)", c->text,
		*text ? text : "nothing", status);
}

static int judge(struct clickhouse *c, CURLcode code, struct answer *a, const char *why,
		 enum clickhouse_failure *ret_failure, struct pt_error *e)
{
	long status = 0;

	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	*ret_failure = CLICKHOUSE_UNCERTAIN;
	if (code == CURLE_OK && status == 200)
		return 0;
	if (code == CURLE_OK) {
		say(c, a, status, e);
		if (is_fatal(a->message) || status == 401 || status == 403 || status == 404)
			*ret_failure = CLICKHOUSE_FATAL;
		return -1;
	}
	if (a->refused || code == CURLE_ABORTED_BY_CALLBACK) {
		*ret_failure = CLICKHOUSE_FATAL;
		return a->refused ? -1 : pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted");
	}
	if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
		*ret_failure = CLICKHOUSE_NEVER_SENT;
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
	    code == CURLE_OUT_OF_MEMORY)
		*ret_failure = CLICKHOUSE_FATAL;
	return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%s: %s", c->text, *why ? why : curl_easy_strerror(code));
}

int clickhouse_send(struct clickhouse *c, const struct clickhouse_request *r,
		    enum clickhouse_failure *ret_failure, struct pt_error *e)
{
	struct answer a = {.request = r, .curl = c->curl};
	char why[CURL_ERROR_SIZE] = "", *url = request_url(c, r);
	struct curl_slist *headers = c->headers,
			  gzip = {.data = "Content-Encoding: gzip", .next = c->headers};
	CURLcode code;

	*ret_failure = CLICKHOUSE_FATAL;
	if (!url)
		return pt_fail_no_memory(e, "a request");
	if (r->body)
		headers = &gzip;
	curl_easy_reset(c->curl);
	curl_easy_setopt(c->curl, CURLOPT_URL, url);
	curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	/* On a connection that was used before and is found dead libcurl sends a request again: never
	 * one that inserts. */
	curl_easy_setopt(c->curl, CURLOPT_FRESH_CONNECT, r->body ? 1L : 0L);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE,
			 (curl_off_t)(r->body ? r->body_bytes : strlen(r->sql)));
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, r->body ? r->body : r->sql);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, &a);
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT, 10L);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)(r->timeout_s * 1000));
	curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, is_interrupted);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c);
	if (getenv("SSL_CERT_FILE"))
		curl_easy_setopt(c->curl, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
	code = curl_easy_perform(c->curl);
	free(url);
	return judge(c, code, &a, why, ret_failure, e);
}

/*
 * ---- Whole answers --------------------------------------------------------------------------------------
 */

struct buffer {
	char *text;
	size_t n;
	FILE *stream;
	struct pt_error *e;
};

static int keep(void *arg, const char *bytes, size_t n)
{
	struct buffer *b = arg;

	b->n += n;
	if (b->n > ANSWER_MAX)
		return pt_fail(b->e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the server's answer is larger than %d bytes", ANSWER_MAX);
	return fwrite(bytes, 1, n, b->stream) == n ? 0 : pt_fail_no_memory(b->e, "the server's answer");
}

char *clickhouse_text(struct clickhouse *c, const char *sql, double timeout_s,
		      enum clickhouse_failure *ret_failure, struct pt_error *e)
{
	struct buffer b = {.e = e};
	struct clickhouse_request r = {
	    .sql = sql, .reads = true, .timeout_s = timeout_s, .take = keep, .arg = &b};
	size_t n;
	int failed;

	*ret_failure = CLICKHOUSE_FATAL;
	b.stream = open_memstream(&b.text, &n);
	if (!b.stream) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	failed = clickhouse_send(c, &r, ret_failure, e);
	if (fclose(b.stream) && !failed)
		failed = pt_fail_no_memory(e, "the server's answer");
	if (!failed)
		return b.text;
	free(b.text);
	return NULL;
}

unsigned clickhouse_version(struct clickhouse *c, double timeout_s, enum clickhouse_failure *ret_failure,
			    struct pt_error *e)
{
	unsigned major, minor;
	char *text;

	if (c->version)
		return c->version;
	text = clickhouse_text(c, "SELECT version()", timeout_s, ret_failure, e);
	if (!text)
		return 0;
	if (sscanf(text, "%5u.%3u", &major, &minor) == 2 && major > 0 && minor < 1000)
		c->version = major * 1000 + minor;
	else
		pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%s: this is no ClickHouse: it does not say its version",
			c->text);
	free(text);
	return c->version;
}
#endif
