#include "host/credentials.h"

#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/timestamp.h"
#include "format/json_writer.h"
#include "host/child.h"
#include "host/file.h"

struct credentials {
    struct loop *loop;                   /* borrowed: from whoever made it */
    const struct cluster_access *access; /* borrowed: likewise */
    void (*on_ready)(void *ctx);
    void *ctx;
    struct credential *current; /* NULL = none yet */
    uint64_t generation;
    bool refused; /* the current one got a 401 */
    struct file_mark mark;
    usec_t looked_at; /* monotonic; of the token file */
    struct child *plugin;
    usec_t plugin_next; /* monotonic; not run again before */
    usec_t renew_at;    /* wall; 0 = never */
    usec_t expires_at;  /* wall; 0 = never */
    struct err err;     /* of the last run; code 0 = it was good */
    struct loop_timer ready;
};

void credential_unref(struct credential *c)
{
    if (c == NULL || --c->refs > 0) {
        return;
    }
    arena_wipe(&c->memory);
    alloc_free(c);
}

/* A token goes into a header: what could end that header is no token. */
static bool token_ok(struct str token)
{
    for (size_t i = 0; i < token.n; i++) {
        if (token.p[i] <= ' ' || token.p[i] > '~') {
            return false;
        }
    }
    return token.n > 0;
}

struct credential_parts {
    struct str token;
    struct str cert_pem;
    struct str key_pem;
};

/* Replaces the current credential. */
static void credentials_put(struct credentials *c, const struct credential_parts *parts)
{
    struct credential *fresh = ALLOC_NEW(struct credential);
    fresh->refs = 1;
    fresh->generation = ++c->generation;
    fresh->memory.first = 256 + parts->token.n + parts->cert_pem.n + parts->key_pem.n;
    if (parts->token.n > 0) {
        fresh->header =
            arena_printf(&fresh->memory, "Authorization: Bearer " STR_FMT, STR_ARG(parts->token));
    } else if (c->access->username.n > 0) {
        CLEANUP(arena_wipe)
        struct arena tmp = { 0 };
        struct str plain = arena_printf(&tmp, STR_FMT ":" STR_FMT, STR_ARG(c->access->username),
                                        STR_ARG(c->access->password));
        char *code = arena_alloc(&tmp, plain.n * 4 / 3 + 4);
        (void)EVP_EncodeBlock((unsigned char *)code, (const unsigned char *)plain.p, (int)plain.n);
        fresh->header = arena_printf(&fresh->memory, "Authorization: Basic %s", code);
    }
    (void)str_cut_prefix(fresh->header, STR("Authorization: "), &fresh->authorization); /* or "" */
    fresh->cert_pem = arena_str(&fresh->memory, parts->cert_pem);
    fresh->key_pem = arena_str(&fresh->memory, parts->key_pem);
    credential_unref(c->current);
    c->current = fresh;
    c->refused = false;
}

static void on_ready_timer(void *ctx)
{
    struct credentials *c = ctx;
    c->on_ready(c->ctx);
}

struct credentials *credentials_new(struct loop *loop, const struct cluster_access *access,
                                    void (*on_ready)(void *ctx), void *ctx)
{
    struct credentials *c = ALLOC_NEW(struct credentials);
    c->loop = loop;
    c->access = access;
    c->on_ready = on_ready;
    c->ctx = ctx;
    loop_timer_init(&c->ready, loop, on_ready_timer, c);
    if (access->exec.command.n == 0 && access->token_file.n == 0) {
        credentials_put(c, &(struct credential_parts){ .token = access->token,
                                                       .cert_pem = access->cert_pem,
                                                       .key_pem = access->key_pem });
    }
    return c;
}

void credentials_free(struct credentials *c)
{
    if (c == NULL) {
        return;
    }
    child_stop(c->plugin);
    credential_unref(c->current);
    loop_timer_done(&c->ready);
    alloc_free(c);
}

static int token_file_read(struct credentials *c, struct err *err)
{
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct str text = STR_NONE;
    int r = file_mark(c->access->token_file, &c->mark, err);
    if (r == 0) {
        r = file_read(c->access->token_file, CREDENTIAL_FILE_BYTES_MAX, &tmp, &text, err);
    }
    if (r < 0) {
        return err_wrap(err, "token");
    }
    struct str token = str_trim(text);
    if (!token_ok(token)) {
        return err_set(err, ERR_DENIED, "token: file '" STR_FMT "': holds no token",
                       STR_ARG(c->access->token_file));
    }
    struct credential_parts parts = { .token = token,
                                      .cert_pem = c->access->cert_pem,
                                      .key_pem = c->access->key_pem };
    credentials_put(c, &parts);
    return 0;
}

/* A file that cannot be read for a moment, while it is replaced, is no reason to drop a token the
 * server still takes; before the first reading, a token given beside the file serves. */
static int token_file_refresh(struct credentials *c, struct err *err)
{
    usec_t now = loop_now(c->loop);
    bool due = c->current == NULL || c->refused || now - c->looked_at >= CREDENTIALS_FILE_EVERY;
    if (!due) {
        return 0;
    }
    c->looked_at = now;
    struct file_mark mark;
    struct err ignored = { 0 };
    if (c->current != NULL && !c->refused &&
        (file_mark(c->access->token_file, &mark, &ignored) < 0 || file_mark_eq(&mark, &c->mark))) {
        return 0;
    }
    int r = token_file_read(c, err);
    if (r < 0 && c->current == NULL && c->access->token.n > 0) {
        credentials_put(c, &(struct credential_parts){ .token = c->access->token,
                                                       .cert_pem = c->access->cert_pem,
                                                       .key_pem = c->access->key_pem });
        return 0;
    }
    return r < 0 && c->current != NULL && !c->refused ? 0 : r;
}

/* What is told to the plugin in KUBERNETES_EXEC_INFO. */
static struct str exec_info(const struct cluster_access *access, struct arena *tmp)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_pair(&w, "kind", STR("ExecCredential"));
    jw_pair(&w, "apiVersion", access->exec.api_version);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    if (access->exec.provide_cluster_info) {
        jw_key(&w, STR("cluster"));
        jw_obj(&w);
        jw_pair(&w, "server", access->server);
        jw_pair_some(&w, "tls-server-name", access->tls_server_name);
        if (access->insecure) {
            jw_pair_bool(&w, "insecure-skip-tls-verify", true);
        }
        if (access->ca_pem.n > 0) {
            char *code = arena_alloc(tmp, access->ca_pem.n * 4 / 3 + 8);
            int n = EVP_EncodeBlock((unsigned char *)code, (const unsigned char *)access->ca_pem.p,
                                    (int)access->ca_pem.n);
            jw_pair(&w, "certificate-authority-data", (struct str){ .p = code, .n = (size_t)n });
        }
        jw_pair_some(&w, "proxy-url", access->proxy_url);
        if (access->exec.cluster_config.n > 0) {
            jw_key(&w, STR("config"));
            jw_raw(&w, access->exec.cluster_config);
        }
        jw_obj_end(&w);
    }
    jw_pair_bool(&w, "interactive", false);
    jw_obj_end(&w);
    jw_obj_end(&w);
    return arena_concat(tmp, STR("KUBERNETES_EXEC_INFO="), buf_str(&text));
}

static int exec_times(struct credentials *c, const struct jval *status, struct err *err)
{
    c->renew_at = 0;
    c->expires_at = 0;
    struct str text = jval_str(jval_at(status, "expirationTimestamp"));
    if (text.n == 0) {
        return 0;
    }
    struct timestamp stamp;
    int r = timestamp_parse(text, &stamp, err);
    if (r < 0) {
        return err_wrap(err, "status.expirationTimestamp");
    }
    /* Short-lived answers are renewed in their last fifth, or a plugin would never rest. */
    usec_t wall = loop_wall(c->loop);
    c->expires_at = timestamp_to_usec(stamp);
    usec_t early = MAX((c->expires_at - wall) / 5, (usec_t)0);
    c->renew_at = c->expires_at - MIN(early, CREDENTIALS_EXEC_EARLY);
    return 0;
}

/* Reads a plugin's answer and takes it over. */
static int exec_take(struct credentials *c, struct str answer, struct err *err)
{
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    const struct jval *v;
    int r = json_parse(answer, 0, &tmp, &v, err);
    if (r < 0) {
        return err_wrap(err, "its answer is not JSON");
    }
    struct str version = jval_str(jval_at(v, "apiVersion"));
    if (!str_eq(jval_str(jval_at(v, "kind")), STR("ExecCredential")) ||
        !str_eq(version, c->access->exec.api_version)) {
        return err_set(err, ERR_PROTO,
                       "it answered kind '" STR_FMT "' of '" STR_FMT
                       "', want 'ExecCredential' of '" STR_FMT "'",
                       STR_ARG(jval_str(jval_at(v, "kind"))), STR_ARG(version),
                       STR_ARG(c->access->exec.api_version));
    }
    const struct jval *status = jval_at(v, "status");
    struct credential_parts parts = {
        .token = jval_str(jval_at(status, "token")),
        .cert_pem = jval_str(jval_at(status, "clientCertificateData")),
        .key_pem = jval_str(jval_at(status, "clientKeyData")),
    };
    if ((parts.cert_pem.n > 0) != (parts.key_pem.n > 0)) {
        return err_set(err, ERR_PROTO,
                       "it answered only one of clientCertificateData and clientKeyData");
    }
    if (parts.token.n == 0 && parts.cert_pem.n == 0) {
        return err_set(err, ERR_PROTO, "it answered neither token nor client certificate");
    }
    if (parts.token.n > 0 && !token_ok(parts.token)) {
        return err_set(err, ERR_PROTO, "it answered a token that no header can carry");
    }
    r = exec_times(c, status, err);
    if (r < 0) {
        return r;
    }
    if (parts.cert_pem.n == 0) {
        parts.cert_pem = c->access->cert_pem;
        parts.key_pem = c->access->key_pem;
    }
    credentials_put(c, &parts);
    return 0;
}

/* The first line of what it complained about, for the message. */
static struct str first_line(struct str text)
{
    struct str line;
    struct str rest;
    (void)str_cut(str_trim(text), STR("\n"), &line, &rest);
    return str_sub(line, 0, 200);
}

static void on_plugin_end(void *ctx, const struct child_result *result)
{
    struct credentials *c = ctx;
    const struct access_exec *exec = &c->access->exec;
    struct err err = { 0 };
    int r = 0;
    c->plugin = NULL;
    if (result->err != NULL) {
        err = *result->err;
        r = -(int)err.code;
    } else if (result->exit_code != 0) {
        struct str line = first_line(result->complaint);
        r = result->exit_code > 0
                ? err_set(&err, ERR_DENIED, "it exited with %d%s" STR_FMT, result->exit_code,
                          line.n > 0 ? ": " : "", STR_ARG(line))
                : err_set(&err, ERR_DENIED, "signal %d ended it", result->signo);
    } else {
        r = exec_take(c, result->out, &err);
    }
    if (r < 0) {
        (void)err_wrap(&err, "credential plugin '" STR_FMT "'", STR_ARG(exec->command));
    }
    c->err = err;
    c->plugin_next = loop_now(c->loop) + CREDENTIALS_EXEC_PAUSE;
    loop_timer_set(&c->ready, loop_now(c->loop));
}

static void exec_run(struct credentials *c)
{
    const struct access_exec *exec = &c->access->exec;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (exec->interactive == EXEC_INTERACTIVE_ALWAYS) {
        (void)err_set(&c->err, ERR_DENIED,
                      "credential plugin '" STR_FMT "': wants a terminal (interactiveMode Always)",
                      STR_ARG(exec->command));
        c->plugin_next = USEC_NEVER;
        return;
    }
    struct str *env = ARENA_ARRAY(&tmp, struct str, (size_t)exec->env_n + 1);
    for (uint32_t i = 0; i < exec->env_n; i++) {
        env[i] = exec->env[i];
    }
    env[exec->env_n] = exec_info(c->access, &tmp);
    struct child_spec spec = {
        .command = exec->command,
        .args = exec->args,
        .args_n = exec->args_n,
        .env = env,
        .env_n = exec->env_n + 1,
        .time_max = exec->time_max > 0 ? exec->time_max : CREDENTIALS_EXEC_MAX,
        .output_max = CREDENTIALS_EXEC_BYTES,
    };
    c->err = (struct err){ 0 };
    if (child_start(c->loop, &spec, on_plugin_end, c, &c->plugin, &c->err) == 0) {
        return;
    }
    (void)err_wrap(&c->err, "credential plugin '" STR_FMT "'%s" STR_FMT "%s",
                   STR_ARG(exec->command), exec->install_hint.n > 0 ? " (" : "",
                   STR_ARG(str_sub(exec->install_hint, 0, 200)),
                   exec->install_hint.n > 0 ? ")" : "");
    c->plugin_next = loop_now(c->loop) + CREDENTIALS_EXEC_PAUSE;
}

static int exec_refresh(struct credentials *c, struct err *err)
{
    usec_t wall = loop_wall(c->loop);
    bool may_run = c->plugin == NULL && loop_now(c->loop) >= c->plugin_next;
    bool good = c->current != NULL && !c->refused && (c->expires_at == 0 || wall < c->expires_at);
    bool renew = good && c->renew_at != 0 && wall >= c->renew_at;
    if (may_run && (!good || renew)) {
        exec_run(c);
    }
    if (good) {
        return 0; /* a renewal goes on beside it */
    }
    if (c->plugin != NULL) {
        return err_set(err, ERR_BUSY, "credential plugin '" STR_FMT "' runs",
                       STR_ARG(c->access->exec.command));
    }
    if (c->err.code != 0) {
        *err = c->err;
        err->code = ERR_DENIED; /* not ERR_BUSY, which promises a call of on_ready */
        return -ERR_DENIED;
    }
    return 0; /* refused or expired, but renewed just now: the server decides */
}

int credentials_take(struct credentials *c, struct credential **ret, struct err *err)
{
    int r = 0;
    if (c->access->exec.command.n > 0) {
        r = exec_refresh(c, err);
    } else if (c->access->token_file.n > 0) {
        r = token_file_refresh(c, err);
    }
    if (r < 0) {
        return r;
    }
    ASSERT(c->current != NULL);
    c->current->refs++;
    *ret = c->current;
    return 0;
}

void credentials_refused(struct credentials *c, const struct credential *used)
{
    if (used == c->current) {
        c->refused = true;
    }
}
