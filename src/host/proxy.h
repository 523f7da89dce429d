/*
 * proxy: whether a server is reached through a proxy, by the rules of Go's net/http, which
 * kubectl's users know: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, upper case first, never for
 * localhost.
 *
 * libcurl has rules of its own that differ in names, in ports and in "*"; it is told the outcome.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* NULL when the variable is not set. */
typedef const char *(*proxy_env)(void *ctx, const char *name);

/* The proxy's URL in libcurl's terms, or STR_NONE for none. */
struct str proxy_choose(struct str server, proxy_env env, void *ctx, struct arena *out);

/* Checks and translates a URL that was written for Go: socks5 lets the proxy resolve names. A path,
 * which Go ignores, is an error: libcurl would take it for a UNIX socket. */
NODISCARD
int proxy_url(struct str url, struct arena *out, struct str *ret, struct err *err);
