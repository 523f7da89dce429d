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

struct curl_loop;

typedef void (*curl_loop_on_done)(void *ctx, CURL *easy, CURLcode result);

struct curl_loop *curl_loop_new(struct loop *loop, curl_loop_on_done on_done, void *ctx);

/* A transfer whose end `keeps` answers true stays in the multi, and its connection with it, until
 * it is removed: for what is made with CURLOPT_CONNECT_ONLY. */
typedef bool (*curl_loop_keeps)(void *ctx, CURL *easy, CURLcode result);
void curl_loop_set_keeps(struct curl_loop *m, curl_loop_keeps keeps);

/* All transfers are removed before. Accepts NULL. */
void curl_loop_free(struct curl_loop *m);

/* How many connections, in use or idle, are kept at most. */
void curl_loop_set_connections_max(struct curl_loop *m, uint32_t n);

void curl_loop_add(struct curl_loop *m, CURL *easy);
void curl_loop_remove(struct curl_loop *m, CURL *easy);
