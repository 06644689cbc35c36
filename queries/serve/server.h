/*
 * server.h - an HTTP/1.1 server for the browser of who started it.
 *
 * It listens on 127.0.0.1. A request must be a GET, have the Host "127.0.0.1:PORT" or "localhost:PORT" (so
 * that no other site's name can be made to lead here) and a path that begins with /TOKEN/, 128 random bits
 * that only who started it knows. Everything else gets 403, 404, 405, 414 or 431, and the callback never
 * sees it. Answers forbid caching, framing and whatever would load from elsewhere (Content-Security-Policy).
 *
 * At most SERVER_CLIENTS clients are connected; one that sends or takes nothing for SERVER_IDLE_S seconds is
 * disconnected; a request's head has at most SERVER_HEAD_BYTES.
 */
#ifndef QUERIES_SERVE_SERVER_H
#define QUERIES_SERVE_SERVER_H

#include <stdbool.h>
#include <stdio.h>

#include "schema/error.h"

enum { SERVER_CLIENTS = 32, SERVER_IDLE_S = 15, SERVER_HEAD_BYTES = 65536 };

struct server;
struct server_request;

/* What the callback says: 200 and text/plain until it sets others. type lives as long as the program. */
struct server_answer {
	unsigned status;
	const char *type;
	bool own_policy; /* an HTML page that says itself what it may load */
	FILE *body;
};

struct server_options {
	unsigned port; /* 0: any that is free */
	/* Called in a thread of its own for each client, several at once. */
	void (*answer)(void *arg, const struct server_request *r, struct server_answer *a);
	void *arg;
};

/* NULL: PT_ERR_IO (the port is taken), PT_ERR_REFUSED (built without libmicrohttpd), PT_ERR_NO_MEMORY. */
struct server *server_start(const struct server_options *o, struct pt_error *e);
/* "http://127.0.0.1:PORT/TOKEN/", until server_stop(). */
const char *server_url(const struct server *s);
/* Waits for the answers that are being made. NULL is fine. */
void server_stop(struct server *s);

/* The path behind /TOKEN/, decoded. */
const char *server_path(const struct server_request *r);
/* An argument of the query string, decoded; NULL: it is not given. Until the answer is made. */
const char *server_argument(const struct server_request *r, const char *name);
/* Each argument in their order; value is never NULL. It ends when each() returns false. */
void server_arguments(const struct server_request *r,
		      bool (*each)(void *arg, const char *name, const char *value), void *arg);
/* Whether the client has gone away, and nobody waits for the answer. */
bool server_is_gone(const struct server_request *r);

#endif
