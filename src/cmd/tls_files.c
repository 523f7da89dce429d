#include "cmd/tls_files.h"

#include "host/file.h"
#include "host/filewatch.h"

int tls_files_check(const struct tls_files *f, struct err *err)
{
    if ((f->cert.n > 0) != (f->key.n > 0)) {
        return err_set(err, ERR_INVALID,
                       "--tls-cert-file and --tls-private-key-file: want both or none");
    }
    if (f->client_ca.n > 0 && f->cert.n == 0) {
        return err_set(
            err, ERR_INVALID,
            "--tls-client-ca-file: want --tls-cert-file and --tls-private-key-file, too");
    }
    return 0;
}

static int tls_files_read_one(const char *flag, struct str path, struct arena *out, struct str *ret,
                              struct err *err)
{
    if (path.n == 0) {
        *ret = STR_NONE;
        return 0;
    }
    int r = file_read(path, CREDENTIAL_FILE_BYTES_MAX, out, ret, err);
    return r < 0 ? err_wrap(err, "%s", flag) : 0;
}

static int tls_files_read(const struct tls_files *f, struct arena *out,
                          struct tls_server_files *ret, struct tls_server_leaf *ret_leaf,
                          struct err *err)
{
    int r = tls_files_read_one("--tls-cert-file", f->cert, out, &ret->cert, err);
    r = r < 0 ? r : tls_files_read_one("--tls-private-key-file", f->key, out, &ret->key, err);
    r = r < 0 ? r
              : tls_files_read_one("--tls-client-ca-file", f->client_ca, out, &ret->client_ca, err);
    if (r == 0 && tls_server_read_leaf(ret->cert, ret_leaf, err) < 0) {
        r = err_wrap(err, "--tls-cert-file '" STR_FMT "'", STR_ARG(f->cert));
    }
    return r;
}

static void tls_files_use(struct tls_files *f, const struct tls_server_leaf *leaf)
{
    metric_set(f->not_after, (double)leaf->not_after / 1e6);
    if (f->on_use != NULL) {
        f->on_use(f->ctx, leaf);
    }
}

static void tls_files_on_change(void *ctx)
{
    struct tls_files *f = ctx;
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct tls_server_files files = { 0 };
    struct tls_server_leaf leaf = { 0 };
    struct err err = { 0 };
    if (f->server == NULL) {
        return; /* it has not begun, or has ended */
    }
    int r = tls_files_read(f, &tmp, &files, &leaf, &err);
    r = r < 0 ? r : http_server_set_tls(f->server, &files, &err);
    if (r < 0) {
        metric_add(f->failures, 1);
        log_error(f->log, "the new certificate is not used; the one before stays",
                  KV_STR("file", f->cert), KV_ERR(&err));
        return;
    }
    log_info(f->log, "the certificate was read again", KV_STR("file", f->cert));
    tls_files_use(f, &leaf);
}

int tls_files_start(struct tls_files *f, struct arena *out, struct http_server_config *config,
                    struct err *err)
{
    const struct str paths[TLS_FILES_N] = { f->cert, f->key, f->client_ca };
    struct tls_server_files files = { 0 };
    struct tls_server_leaf leaf = { 0 };
    if (f->cert.n == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < TLS_FILES_N; i++) {
        if (paths[i].n == 0) {
            continue;
        }
        f->watches[i] = filewatch_new(f->loop, paths[i], tls_files_on_change, f, err);
        if (f->watches[i] == NULL) {
            return err_wrap(err, "watch '" STR_FMT "'", STR_ARG(paths[i]));
        }
    }
    int r = tls_files_read(f, out, &files, &leaf, err);
    if (r < 0) {
        return r;
    }
    f->not_after =
        metrics_series(f->metrics, METRIC_GAUGE, "drydock_tls_not_after_seconds",
                       "When the certificate of --tls-cert-file ends, since unix epoch.");
    f->failures = metrics_series(f->metrics, METRIC_COUNTER, "drydock_tls_reload_failures_total",
                                 "Changes of the TLS files that could not be used.");
    config->tls_cert = files.cert;
    config->tls_key = files.key;
    config->tls_client_ca = files.client_ca;
    tls_files_use(f, &leaf);
    return 0;
}

void tls_files_serve(struct tls_files *f, struct http_server *server)
{
    f->server = server;
}

void tls_files_stop(struct tls_files *f)
{
    for (uint32_t i = 0; i < TLS_FILES_N; i++) {
        filewatch_free(f->watches[i]);
        f->watches[i] = NULL;
    }
    f->server = NULL;
}
