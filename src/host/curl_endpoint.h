/*
 * curl_endpoint: how libcurl is told to reach one server: URL, trust, name to verify, proxy.
 *
 * Made once from a cluster_access; what can be wrong without asking the network is found here.
 */
#pragma once

#include <curl/curl.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/cluster_access.h"

#define CURL_ENDPOINT_UPLOAD_BUFFER 16384 /* bytes; libcurl has no less */

struct curl_endpoint {
    struct arena memory;
    const struct cluster_access *access; /* borrowed: from whoever made it */
    struct str base;                     /* "https://host:port/prefix", without a final '/' */
    struct str host_header;              /* "Host: …" when the URL holds another name */
    struct curl_slist connect_to;        /* data NULL = none */
    bool tls;
    char refused[48]; /* the address that libcurl was not allowed to connect to; empty = none */
};

NODISCARD
int curl_endpoint_init(struct curl_endpoint *e, const struct cluster_access *access,
                       struct err *err);
void curl_endpoint_done(struct curl_endpoint *e);

/* Sets what all requests to anybody share. */
void curl_endpoint_prepare_any(CURL *easy);
/* Sets what all requests to this server share. */
void curl_endpoint_prepare(struct curl_endpoint *e, CURL *easy);

/* A sentence about a transfer that failed, with the server's name in front. `detail` is libcurl's
 * error buffer. */
int curl_endpoint_error(struct curl_endpoint *e, CURL *easy, CURLcode code, const char *detail,
                        struct err *err);

/* The same without the name. */
int curl_endpoint_explain(CURL *easy, CURLcode code, const char *detail, struct err *err);

/* Whether certificate and key are PEM and belong together; `whose` begins the message. */
NODISCARD
int curl_endpoint_check_pair(struct str cert_pem, struct str key_pem, const char *whose,
                             struct err *err);
