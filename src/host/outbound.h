/*
 * outbound: the door to third parties on a real machine, on libcurl.
 *
 * Certificates are verified against the system's authorities, and against those of `ca_file`
 * besides. Proxies are chosen by the rules of Go's net/http from the environment that is given;
 * mail goes without one, as Go's does. Calls beyond `calls_max` wait in order of arrival, and their
 * time runs meanwhile. Nothing is called back from inside outbound_http, outbound_mail or libcurl.
 * Handles may be cancelled at any time, also from inside a callback.
 *
 * For a mail, libcurl connects and logs in; smtp.h does the transaction itself, because libcurl
 * would block the loop while it waits for the answer to QUIT.
 */
#pragma once

#include "host/proxy.h"
#include "port/loop.h"
#include "port/outbound.h"

#define OUTBOUND_CALLS_MAX 8u /* notifications are few; more at once only meets rate limits */
#define OUTBOUND_CONNECT_MAX SECONDS(10)

struct host_outbound_config {
    proxy_env env; /* NULL = no proxies */
    void *env_ctx;
    struct str ca_file; /* authorities in PEM form besides the system's; empty = none */
    uint32_t calls_max; /* 0 = the default, in both */
    usec_t connect_max; /* name, TCP and TLS together */
};

#define OUTBOUND_PIN_BYTES 32u /* SHA-256 of a public key */

/* The configuration's texts are copied. */
struct outbound *host_outbound_new(struct loop *loop, const struct host_outbound_config *config);
/* What is in flight is dropped without a callback. Also from inside one. Accepts NULL. */
void host_outbound_free(struct outbound *outbound);

/* From now on a server of HTTPS is known by its public key alone, which is one of these two: for
 * peers that share a certificate in which their addresses are not. */
void host_outbound_pin(struct outbound *outbound, const unsigned char one[OUTBOUND_PIN_BYTES],
                       const unsigned char other[OUTBOUND_PIN_BYTES]);

uint32_t host_outbound_queued(const struct outbound *outbound);
uint32_t
host_outbound_in_flight(const struct outbound *outbound); /* answered and not yet told included */
