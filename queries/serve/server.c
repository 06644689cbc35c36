/* server.c - see server.h. By libmicrohttpd, a thread for each client: an answer may take seconds. */
#include "queries/serve/server.h"

#ifdef HAVE_LIBMICROHTTPD
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { TOKEN_BYTES = 16, TOKEN_DIGITS = 2 * TOKEN_BYTES };

struct server {
	struct MHD_Daemon *daemon;
	void (*answer)(void *arg, const struct server_request *r, struct server_answer *a);
	void *arg;
	char token[TOKEN_DIGITS + 1];
	char hosts[2][32]; /* what Host may be */
	char url[96];
};

struct server_request {
	struct MHD_Connection *connection;
	const char *path;
};

static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
			     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
static const char no_frames[] = "frame-ancestors 'none'";

const char *server_path(const struct server_request *r)
{
	return r->path;
}

const char *server_argument(const struct server_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct each {
	bool (*each)(void *arg, const char *name, const char *value);
	void *arg;
};

static enum MHD_Result one_argument(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	const struct each *e = arg;

	(void)kind;
	return e->each(e->arg, name, value ? value : "") ? MHD_YES : MHD_NO;
}

void server_arguments(const struct server_request *r,
		      bool (*each)(void *arg, const char *name, const char *value), void *arg)
{
	struct each e = {each, arg};

	MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, one_argument, &e);
}

bool server_is_gone(const struct server_request *r)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	char byte;
	ssize_t n = info ? recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 1;

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Takes as long whatever is wrong with it. */
static bool is_token(const struct server *s, const char *path)
{
	unsigned char differs = 0;

	if (strnlen(path, TOKEN_DIGITS + 2) < TOKEN_DIGITS + 2)
		return false;
	for (size_t i = 0; i < TOKEN_DIGITS; i++)
		differs |= (unsigned char)(path[i + 1] ^ s->token[i]);
	return !differs && path[0] == '/' && path[TOKEN_DIGITS + 1] == '/';
}

/* 0: the request may be answered; else the status that it gets. */
static unsigned refused(const struct server *s, struct MHD_Connection *c, const char *path,
			const char *method)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");

	if (!host || (strcmp(host, s->hosts[0]) != 0 && strcmp(host, s->hosts[1]) != 0))
		return MHD_HTTP_FORBIDDEN;
	if (strcmp(method, "GET") != 0)
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	/* The token alone, without the slash, or another one. */
	return strlen(path) == TOKEN_DIGITS + 1 || !is_token(s, path) ? MHD_HTTP_NOT_FOUND : 0;
}

static const char *words_of(unsigned status)
{
	return status == MHD_HTTP_FORBIDDEN ? "This server is for 127.0.0.1 and localhost only.\n"
	       : status == MHD_HTTP_METHOD_NOT_ALLOWED
		   ? "Only GET.\n"
		   : "There is nothing here: the address is the one that pt-query printed.\n";
}

/* Sends what the answer's body was: it is free()d. */
static enum MHD_Result send_answer(struct MHD_Connection *c, const struct server_answer *a, char *body,
				   size_t bytes)
{
	static const char *const headers[][2] = {{"Cache-Control", "no-store"},
						 {"Referrer-Policy", "no-referrer"},
						 {"X-Content-Type-Options", "nosniff"},
						 {"Cross-Origin-Resource-Policy", "same-origin"},
						 {"X-Frame-Options", "DENY"}};
	struct MHD_Response *r = MHD_create_response_from_buffer(bytes, body, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result ret;

	if (!r) {
		free(body);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", a->type);
	MHD_add_response_header(r, "Content-Security-Policy", a->own_policy ? no_frames : policy);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		MHD_add_response_header(r, headers[i][0], headers[i][1]);
	if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow", "GET");
	ret = MHD_queue_response(c, a->status, r);
	MHD_destroy_response(r);
	return ret;
}

/* libmicrohttpd's: first with the head alone, when a refusal may be said already, then with the whole
 * request. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *url, const char *method,
			      const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	static int seen;
	const struct server *s = arg;
	struct server_answer a = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8"};
	unsigned why = refused(s, c, url, method);
	char *body = NULL;
	size_t bytes = 0;

	(void)version, (void)upload;
	if (!*state && !why) {
		*state = &seen;
		return MHD_YES;
	}
	if (*upload_bytes && !why) {
		*upload_bytes = 0;
		return MHD_YES;
	}
	a.body = open_memstream(&body, &bytes);
	if (!a.body)
		return MHD_NO;
	if (why) {
		a.status = why;
		fputs(words_of(why), a.body);
	} else {
		struct server_request r = {c, url + TOKEN_DIGITS + 2};

		s->answer(s->arg, &r, &a);
	}
	if (fclose(a.body)) {
		free(body);
		return MHD_NO;
	}
	return send_answer(c, &a, body, bytes);
}

static int make_token(struct server *s, struct pt_error *e)
{
	unsigned char random[TOKEN_BYTES];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return pt_fail_errno(e, "no random numbers");
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(s->token + 2 * i, 3, "%02x", random[i]);
	return 0;
}

static int listen_at(struct server *s, unsigned port, struct pt_error *e)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const union MHD_DaemonInfo *info;

	s->daemon = MHD_start_daemon(
	    MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, (uint16_t)port,
	    NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_CONNECTION_LIMIT,
	    (unsigned)SERVER_CLIENTS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SERVER_IDLE_S,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER_HEAD_BYTES, MHD_OPTION_END);
	info = s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!info)
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
			       "cannot listen on 127.0.0.1:%u: another program does (--port)", port);
	snprintf(s->hosts[0], sizeof s->hosts[0], "127.0.0.1:%u", (unsigned)info->port);
	snprintf(s->hosts[1], sizeof s->hosts[1], "localhost:%u", (unsigned)info->port);
	snprintf(s->url, sizeof s->url, "http://%s/%s/", s->hosts[0], s->token);
	return 0;
}

struct server *server_start(const struct server_options *o, struct pt_error *e)
{
	struct server *s = calloc(1, sizeof *s);

	if (!s) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	s->answer = o->answer;
	s->arg = o->arg;
	if (make_token(s, e) < 0 || listen_at(s, o->port, e) < 0) {
		server_stop(s);
		return NULL;
	}
	return s;
}

const char *server_url(const struct server *s)
{
	return s->url;
}

void server_stop(struct server *s)
{
	if (s && s->daemon)
		MHD_stop_daemon(s->daemon);
	free(s);
}
#endif
