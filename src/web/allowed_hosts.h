/*
 * allowed_hosts: which names a server answers for, against DNS rebinding.
 *
 * A page of a stranger can let its own name point to our address. The browser then takes our
 * answers for the page's own and lets it read them; but it says in the Host header which name it
 * believes to have asked. So we answer for names that no stranger can own:
 *
 *   addresses                                127.0.0.1, 10.0.0.7, [::1]
 *   names of one label                       localhost, a Service within its namespace
 *   NAME.NAMESPACE                           a Service, if NAMESPACE is that of our pod
 *   names below svc, cluster.local, localhost
 *   the name of this machine
 *
 * and for those that the operator names. A request without a Host comes from no browser. Neither
 * does one with a header whose name begins with "Sec-", other than the browser's own: a page cannot
 * set it.
 */
#pragma once

#include "base/arena.h"
#include "port/inbound.h"

/* Sent by our own client: through the API server's proxy our Host is that of the API server. */
#define ALLOWED_HOSTS_CLIENT_HEADER "Sec-Drydock-Client"
#define ALLOWED_HOSTS_MAX 64u /* names in the flag */

struct allowed_hosts {
    const struct str *names; /* "drydock.example.com", "*.example.com" for all below, "*" for all */
    uint32_t n;
    struct str machine;   /* its name; may be empty */
    struct str namespace; /* of our pod; empty = there is none */
};

/* Reads names that are separated by commas; the other members are left alone. The names live in
 * `out` and in `list`. */
NODISCARD
int allowed_hosts_parse(struct str list, struct arena *out, struct allowed_hosts *ret,
                        struct err *err);

/* `host` is the header's value, with or without a port. */
bool allowed_hosts_allow(const struct allowed_hosts *hosts, struct str host);

/* Whether the request may be served. If not, it has been answered with 421 and a sentence. */
bool allowed_hosts_check(const struct allowed_hosts *hosts, struct inbound_exchange *x,
                         const struct inbound_request *req);
