/*
 * tls_files: the files of a server's TLS: certificate, key, and the CA of its clients.
 *
 * They are read at the start and again whenever one of them changes. Files that do not fit together
 * are told and not used; the certificate before stays.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metric.h"
#include "host/http_server.h"
#include "port/loop.h"

#define TLS_FILES_N 3u

struct filewatch;

struct tls_files {
    struct str cert; /* paths; `cert` empty = no TLS */
    struct str key;
    struct str client_ca; /* empty = certificates of clients are not asked for */
    struct loop *loop;    /* borrowed, as the rest */
    struct log *log;
    struct metrics *metrics;
    /* A certificate came into use. */
    void (*on_use)(void *ctx, const struct tls_server_leaf *leaf);
    void *ctx;
    struct http_server *server;
    struct filewatch *watches[TLS_FILES_N];
    struct metric_series *not_after;
    struct metric_series *failures;
};

/* Whether the flags go together. */
NODISCARD
int tls_files_check(const struct tls_files *f, struct err *err);
/* Begins to watch the files and fills the texts of `config`, which live in `out`. */
NODISCARD
int tls_files_start(struct tls_files *f, struct arena *out, struct http_server_config *config,
                    struct err *err);
/* From now on changes reach this server. */
void tls_files_serve(struct tls_files *f, struct http_server *server);
void tls_files_stop(struct tls_files *f); /* accepts a zeroed one */
