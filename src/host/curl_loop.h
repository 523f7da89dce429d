/*
 * curl_loop: libcurl's transfers on the loop.
 *
 * libcurl says which sockets it wants watched and when it wants to be called; this turns both into
 * the loop's terms. A transfer that is over is reported after libcurl has returned, never from
 * inside it, and has left the multi by then.
 */
#pragma once

#include <curl/curl.h>

#include "port/loop.h"

struct multi;

typedef void (*multi_on_done)(void *ctx, CURL *easy, CURLcode result);

struct multi *multi_new(struct loop *loop, multi_on_done on_done, void *ctx);

/* A transfer whose end `keeps` answers true stays in the multi, and its connection with it, until
 * it is removed: for what is made with CURLOPT_CONNECT_ONLY. */
typedef bool (*multi_keeps)(void *ctx, CURL *easy, CURLcode result);
void multi_set_keeps(struct multi *m, multi_keeps keeps);

/* All transfers are removed before. Accepts NULL. */
void multi_free(struct multi *m);

/* How many connections, in use or idle, are kept at most. */
void multi_set_connections_max(struct multi *m, uint32_t n);

void multi_add(struct multi *m, CURL *easy);
void multi_remove(struct multi *m, CURL *easy);
