/*
 * dialer: the door to clusters that are found at run time, on kubeconfig and transport.
 *
 * Taken from a kubeconfig are server, tls-server-name, certificate-authority-data,
 * client-certificate-data with client-key-data, token, username with password, and whom to
 * impersonate. Refused with a sentence is what names a file or a program of this machine, and,
 * unless it is allowed, a server that does not prove who it is, a proxy-url, and a server at an
 * address of this machine or its link, also one that a name resolves to. The proxy is that of
 * HTTPS_PROXY and NO_PROXY, as everywhere in this program and in kubectl; it is spoken to without
 * TLS, or by SOCKS, and it resolves the server's name itself.
 *
 * What was read from the text is wiped before dial returns, all but what every new connection
 * needs: the private key in its binary form, and a token or a password in the header that is sent
 * with each request. Those are wiped when the api is freed. Copies that libyaml and libcurl make
 * meanwhile are freed without being wiped.
 */
#pragma once

#include "base/defs.h"
#include "port/dialer.h"

struct loop;

/* What one cluster may cost, however it behaves. */
#define DIALER_KUBECONFIG_BYTES_MAX                                                                \
    ((size_t)128 * 1024)               /* one context with its certificates has some ten KiB */
#define DIALER_REQUESTS_MAX 4u         /* patches in flight at once */
#define DIALER_WATCHES_MAX 2u          /* one, and its successor while it is being given up */
#define DIALER_CONNECT_MAX SECONDS(10) /* name, TCP and TLS together */
#define DIALER_REPLY_BYTES_MAX                                                                     \
    ((size_t)8 * 1024 * 1024) /* a page of 500 nodes' metadata has some 3 MiB */
#define DIALER_LINE_BYTES_MAX                                                                      \
    ((size_t)1024 * 1024) /* annotations have 256 KiB at most, managed fields less */

struct host_dialer_config {
    bool allow_insecure;    /* insecure-skip-tls-verify, and servers without TLS */
    bool allow_proxy;       /* proxy-url of a kubeconfig */
    bool allow_local;       /* servers at loopback and link-local addresses */
    const char *const *env; /* "NAME=value", …, NULL; NULL = the process's own */
};

struct dialer *host_dialer_new(struct loop *loop, const struct host_dialer_config *config);
/* All have hung up before, and no callback of theirs runs. Accepts NULL. */
void host_dialer_free(struct dialer *d);
