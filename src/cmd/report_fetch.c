#include "cmd/report_fetch.h"

#include <stdio.h>
#include <unistd.h>

#include "cmd/api_trace.h"
#include "cmd/terminal.h"
#include "host/file.h"
#include "host/kubeconfig.h"
#include "host/loop.h"
#include "host/transport.h"
#include "kube/client.h"
#include "web/request_auth.h"

#define REPORT_FETCH_OUTPUT_MAX ((size_t)64 * 1024 * 1024) /* as the largest document */

const struct option report_fetch_options[REPORT_FETCH_OPTION_COUNT] = {
    { "o", OPTION_CHOICE, OPTION(struct report_fetch_flags, output), "FORM", "text",
      "text|wide|json|yaml|name",
      "text as wide as the terminal, lines with everything, the document, or names alone",
      .also = "output" },
    { "w", OPTION_BOOL, OPTION(struct report_fetch_flags, watch), NULL, "false", NULL,
      "show it again whenever it has changed, until interrupted", .also = "watch" },
    { "address", OPTION_TEXT, OPTION(struct report_fetch_flags, address), "URL", "", NULL,
      "ask the controller at this address: http://127.0.0.1:8080" },
    { "token-file", OPTION_FILE, OPTION(struct report_fetch_flags, token_file), "FILE", "", NULL,
      "who asks, where --auth=cluster wants to know; with --address else as the kubeconfig says" },
    { "certificate-authority", OPTION_FILE, OPTION(struct report_fetch_flags, ca_file), "FILE", "",
      NULL, "CA of the server at --address; otherwise those of the system" },
    { "tls-server-name", OPTION_TEXT, OPTION(struct report_fetch_flags, tls_server_name), "NAME",
      "", NULL, "name in the certificate of the server at --address; otherwise its host" },
    { "kubeconfig", OPTION_FILE, OPTION(struct report_fetch_flags, kubeconfig), "FILE", "", NULL,
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },
    { "context", OPTION_TEXT, OPTION(struct report_fetch_flags, kubecontext), "NAME", "", NULL,
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",
      .also = "kubecontext" },
    { "n", OPTION_TEXT, OPTION(struct report_fetch_flags, ns), "NAME", "", NULL,
      "where the controller runs; otherwise wherever its Lease is found", .also = "namespace" },
    { "port", OPTION_U32, OPTION(struct report_fetch_flags, port), "PORT", "8080", NULL,
      "of the controller's pod" },
    { "timeout", OPTION_DURATION, OPTION(struct report_fetch_flags, time_max), "DURATION", "10s",
      NULL, "how long to wait for an answer" },
    { "v", OPTION_U32, OPTION(struct report_fetch_flags, verbosity), "N", "0", NULL,
      "from 1 on every request to the cluster is told, with its answer" },
};

/* A controller on this machine, in no pod. */
struct report_fetch_here {
    struct cluster_access access;
    struct api *transport;
    struct api_trace trace;
    struct api *api;
    struct err why; /* no pod could be asked because of this */
    bool in_use;
};

struct report_fetch {
    const struct command_call *call;
    const struct report_fetch_flags *flags;
    const struct report_query *query;
    struct loop *loop;
    struct cluster_access access;
    struct api *transport;
    struct api_trace trace;
    struct api *api; /* the transport, or the trace on it */
    struct report_fetch_here here;
    struct loop_timer refresh;
    struct arena found; /* memory of `leaders` */
    struct leaders leaders;
    uint32_t at;            /* index of the leader that is asked, while there are any */
    struct err unreachable; /* why a shard could not be asked; code 0 = all could */
    bool secure;            /* pods are asked by HTTPS */
    struct err plain;       /* why not by HTTP; code 0 = they are */
    struct buf printed;     /* the text that was printed last */
    bool answered;          /* once at least */
    bool terminal;
    bool colour;
    uint32_t columns; /* of the terminal; 0 = there is none */
    int code;
};

static void report_fetch_end(struct report_fetch *a, int code)
{
    a->code = code;
    host_loop_stop(a->loop);
}

/* Before the first answer a failure ends the command; after it --watch reports it and goes on. */
static void report_fetch_fail(struct report_fetch *a, const struct err *err)
{
    (void)command_fail(a->call, err); /* answers COMMAND_FAILED, as it is */
    a->leaders.n = 0;                 /* others may lead now */
    a->here.in_use = false;
    a->secure = false;
    buf_reset(&a->printed);
    if (a->flags->watch && a->answered) {
        loop_timer_set(&a->refresh, loop_now(a->loop) + REPORT_FETCH_WATCH_EVERY);
    } else {
        report_fetch_end(a, COMMAND_FAILED);
    }
}

/* ---- the document ---- */

static void report_fetch_output(struct report_fetch *a, struct buf *text)
{
    bool json = report_output_is_json(a->flags->output);
    bool same = a->answered && str_eq(buf_str(text), buf_str(&a->printed));
    if (!same) {
        if (a->flags->watch && a->terminal && !json) {
            (void)fputs("\033[H\033[2J\033[3J",
                        stdout); /* a closed pipe is the reader's business */
        } else if (a->answered && !json) {
            (void)fputs("\n", stdout); /* likewise */
        }
        (void)fwrite(text->p, 1, text->n, stdout);
        (void)fflush(stdout);
    }
    buf_done(&a->printed);
    a->printed = *text;
    *text = (struct buf){ 0 };
    a->answered = true;
    if (!a->flags->watch || ferror(stdout) != 0) {
        report_fetch_end(a, COMMAND_OK);
    } else {
        loop_timer_set(&a->refresh, loop_now(a->loop) + REPORT_FETCH_WATCH_EVERY);
    }
}

/* An error of a controller or bridge is {"error":"…"}. If the pod was not reached, the API server
 * answers a Status, which has no such member. */
static struct str report_fetch_error_text(const struct api_reply *reply, struct arena *out)
{
    const struct jval *root = NULL;
    struct err ignored = { 0 };
    return reply->status != 0 && json_parse(reply->body, 0, out, &root, &ignored) == 0
               ? jval_str(jval_get(root, STR("error")))
               : STR_NONE;
}

static void report_fetch_explain(const struct report_fetch *a, const struct api_reply *reply,
                                 struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str error_text = report_fetch_error_text(reply, &tmp);
    if (error_text.n > 0) {
        (void)err_set(err, reply->status == 404 ? ERR_NOTFOUND : ERR_IO, STR_FMT,
                      STR_ARG(error_text));
        if (err->code == ERR_NOTFOUND) {
            return; /* the server was asked, and there is no such thing */
        }
    } else {
        client_explain(reply->status, reply->body, reply->err, err);
    }
    if (a->leaders.n > 0 && reply->status == 401 && error_text.n > 0) {
        (void)err_set(err, ERR_DENIED,
                      "pod '" STR_FMT "' in namespace '" STR_FMT
                      "' wants to know who asks, and the API server passes no credentials on: give "
                      "a token with --token-file, or forward the port and use --address https://…",
                      STR_ARG(a->leaders.pods[a->at]), STR_ARG(a->leaders.ns));
    } else if (a->leaders.n > 0) {
        (void)err_wrap(err,
                       "pod '" STR_FMT "' in namespace '" STR_FMT
                       "' (--address asks a %s that runs elsewhere)",
                       STR_ARG(a->leaders.pods[a->at]), STR_ARG(a->leaders.ns),
                       leader_kind_name(a->query->leader_kind));
    }
}

static void report_fetch_get(struct report_fetch *a);
static bool report_fetch_try_here(struct report_fetch *a, const struct err *why);

/* What the API server says of a pod that speaks TLS and was asked without; true: it is asked again
 * with TLS. */
static bool report_fetch_try_secure(struct report_fetch *a, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (a->leaders.n == 0 || a->here.in_use || a->secure || reply->status < 500 ||
        report_fetch_error_text(reply, &tmp).n > 0) {
        return false;
    }
    report_fetch_explain(a, reply, &a->plain);
    a->secure = true;
    report_fetch_get(a);
    return true;
}

/* With shards: asks the next one if this shard does not look after the Machine or could not be
 * asked; false: there is nobody else to ask. The answer of the last shard counts if all shards
 * could be asked. */
static bool report_fetch_next_shard(struct report_fetch *a, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (a->leaders.n < 2 || reply->status == 200) {
        a->unreachable = (struct err){ 0 };
        return false;
    }
    bool unknown = reply->status == 404 && report_fetch_error_text(reply, &tmp).n > 0;
    if (!unknown) {
        report_fetch_explain(a, reply, &a->unreachable);
    }
    if (a->at + 1 == a->leaders.n) {
        return false;
    }
    a->at++;
    report_fetch_get(a);
    return true;
}

/* An older server does not know format= and answers JSON. */
static int report_fetch_check_text(const struct report_fetch *a, struct str body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct err ignored = { 0 };
    const char *who = leader_kind_name(a->query->leader_kind);
    if (body.n == 0) {
        return err_set(err, ERR_PROTO, "the %s's answer cannot be read: it is empty", who);
    }
    if (!str_starts(body, STR("{")) || json_parse(body, 0, &tmp, &root, &ignored) < 0) {
        return 0;
    }
    struct str version = jval_str(jval_get(root, STR("version")));
    return err_set(err, ERR_PROTO,
                   "the %s's answer cannot be read: its version%s" STR_FMT
                   " answers JSON only, which '-o json' prints",
                   who, version.n > 0 ? " " : "", STR_ARG(version));
}

static void report_fetch_on_document(void *ctx, const struct api_reply *reply)
{
    struct report_fetch *a = ctx;
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf text = { .max = REPORT_FETCH_OUTPUT_MAX };
    bool json = report_output_is_json(a->flags->output);
    if (report_fetch_try_secure(a, reply) || report_fetch_next_shard(a, reply)) {
        return;
    }
    if (a->unreachable.code != 0) {
        err = a->unreachable;
        a->unreachable = (struct err){ 0 };
        report_fetch_fail(a, &err);
        return;
    }
    if (reply->status != 200) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        bool reached = report_fetch_error_text(reply, &tmp).n > 0;
        report_fetch_explain(a, reply, &err);
        if (!reached && a->plain.code != 0) {
            err = a->plain; /* nobody is there, with TLS or without */
            a->plain = (struct err){ 0 };
        }
        if (reached || !report_fetch_try_here(a, &err)) {
            report_fetch_fail(a, &err);
        }
        return;
    }
    if (!json && report_fetch_check_text(a, reply->body, &err) < 0) {
        report_fetch_fail(a, &err);
        return;
    }
    if (report_output_add(a->flags->output, a->query->about, a->colour, reply->body, &text, &err) <
        0) {
        report_fetch_fail(a, &err);
        return;
    }
    report_fetch_output(a, &text);
}

static void report_fetch_send(struct report_fetch *a, struct str path, api_on_reply on_reply)
{
    (void)api_send(
        a->here.in_use ? a->here.api : a->api,
        &(struct api_request){ .verb = API_GET, .path = path, .timeout = a->flags->time_max },
        on_reply, a); /* nothing is ever cancelled */
}

static void report_fetch_add_param(struct buf *path, struct str key, struct str value)
{
    buf_printf(path, "%s" STR_FMT "=" STR_FMT, str_contains(buf_str(path), STR("?")) ? "&" : "?",
               STR_ARG(key), STR_ARG(value));
}

/* Any shard but the last one is only asked for a Machine that it looks after. The last one is asked
 * for what it knows, unless a shard that may look after the Machine could not be asked. */
static void report_fetch_get(struct report_fetch *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    if (a->leaders.n > 0 && !a->here.in_use) {
        buf_add(&path, STR("/api/v1/namespaces/"));
        client_add_segment(&path, a->leaders.ns);
        buf_printf(&path, "/pods/%s:", a->secure ? "https" : "http");
        client_add_segment(&path, a->leaders.pods[a->at]);
        buf_printf(&path, ":%u/proxy", a->flags->port);
    }
    buf_add(&path, a->query->path);
    if (!report_output_is_json(a->flags->output)) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        report_fetch_add_param(&path, STR("format"), a->flags->output);
        if (a->columns > 0) {
            report_fetch_add_param(&path, STR("columns"), arena_printf(&tmp, "%u", a->columns));
        }
    }
    if (a->at + 1 < a->leaders.n || a->unreachable.code != 0) {
        report_fetch_add_param(&path, STR("shard"), STR("own"));
    }
    report_fetch_send(a, buf_str(&path), report_fetch_on_document);
}

/* ---- a controller on this machine ---- */

/* "https://127.0.0.1:6443" and the like. */
static bool server_is_here(struct str server)
{
    static const struct str here[] = { STR_INIT("127."), STR_INIT("localhost"), STR_INIT("[::1]") };
    struct str scheme;
    struct str host;
    bool found = false;
    (void)str_cut(server, STR("://"), &scheme, &host); /* kubeconfig_load wants a scheme */
    for (size_t i = 0; i < ARRAY_LEN(here); i++) {
        found = found || str_starts(host, here[i]);
    }
    return found;
}

/* Who answers here must be the controller of this cluster, and not of another. */
static void report_fetch_on_here(void *ctx, const struct api_reply *reply)
{
    struct report_fetch *a = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct err err = a->here.why;
    struct err ignored = { 0 };
    struct str known = a->access.name.n > 0 ? a->access.name : a->access.server;
    bool read = reply->status == 200 && json_parse(reply->body, 0, &tmp, &root, &ignored) == 0;
    struct str title = jval_str(jval_get(root, STR("title")));
    if (read && str_eq(title, known)) {
        report_fetch_get(a);
        return;
    }
    a->here.in_use = false;
    if (read && title.n > 0) {
        (void)err_set(&err, ERR_NOTFOUND,
                      "%s; the controller at " STR_FMT " is of another cluster, '" STR_FMT "'",
                      a->here.why.msg, STR_ARG(a->here.access.server), STR_ARG(title));
    }
    report_fetch_fail(a, &err);
}

/* False: no controller of this cluster can be on this machine. */
static bool report_fetch_try_here(struct report_fetch *a, const struct err *why)
{
    struct report_fetch_here *here = &a->here;
    struct err ignored = { 0 };
    if (here->in_use || a->flags->address.n > 0 || a->query->leader_kind != LEADER_CONTROLLER ||
        !server_is_here(a->access.server)) {
        return false;
    }
    if (here->transport == NULL) {
        here->access = (struct cluster_access){
            .server = arena_printf(a->call->memory, "http://127.0.0.1:%u", a->flags->port),
        };
        here->transport = transport_new(a->loop, &here->access, &ignored);
    }
    if (here->transport == NULL) {
        return false;
    }
    here->api = api_trace_on(&here->trace, here->transport, a->loop, a->flags->verbosity);
    here->why = *why;
    here->in_use = true;
    report_fetch_send(a, STR("/api/v1/status?board=0"), report_fetch_on_here);
    return true;
}

/* ---- the leader ---- */

static int report_fetch_read_leases(struct report_fetch *a, const struct api_reply *reply,
                                    struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root;
    if (reply->status != 200) {
        client_explain(reply->status, reply->body, reply->err, err);
        return err_wrap(err, "who leads");
    }
    int r = json_parse(reply->body, 0, &tmp, &root, err);
    if (r < 0) {
        return err_wrap(err, "who leads");
    }
    arena_reset(&a->found);
    a->at = 0;
    return leader_find_pods(a->query->leader_kind, root, &a->found, &a->leaders, err);
}

static void report_fetch_on_leases(void *ctx, const struct api_reply *reply)
{
    struct report_fetch *a = ctx;
    struct err err = { 0 };
    if (report_fetch_read_leases(a, reply, &err) < 0) {
        if (reply->status != 200 || !report_fetch_try_here(a, &err)) {
            report_fetch_fail(a, &err);
        }
    } else {
        report_fetch_get(a);
    }
}

static void report_fetch_find_leader(struct report_fetch *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    leader_lease_path(a->query->leader_kind, a->flags->ns, &path);
    report_fetch_send(a, buf_str(&path), report_fetch_on_leases);
}

static void report_fetch_refresh(void *ctx)
{
    struct report_fetch *a = ctx;
    if (a->flags->address.n == 0 && a->leaders.n == 0 && !a->here.in_use) {
        report_fetch_find_leader(a);
    } else {
        report_fetch_get(a);
    }
}

static int report_fetch_load(const struct report_fetch *a, struct cluster_access *ret,
                             struct err *err)
{
    const struct kubeconfig_source source = {
        .path = a->flags->kubeconfig,
        .context = command_kubecontext(a->flags->kubecontext),
    };
    return kubeconfig_load(&source, a->call->memory, ret, err);
}

/* Who we are to a server at --address. */
static int report_fetch_identify(struct report_fetch *a, struct err *err)
{
    struct cluster_access known = { 0 };
    struct err ignored = { 0 };
    if (a->flags->token_file.n > 0) {
        a->access.token_file = a->flags->token_file;
        return 0;
    }
    int r = report_fetch_load(a, &known, a->flags->kubeconfig.n > 0 ? err : &ignored);
    if (r < 0) {
        return a->flags->kubeconfig.n > 0 ? r : 0; /* it may want to know nothing of us */
    }
    a->access.token = known.token;
    a->access.token_file = known.token_file;
    a->access.cert_pem = known.cert_pem;
    a->access.key_pem = known.key_pem;
    a->access.exec = known.exec;
    return 0;
}

static int report_fetch_use_address(struct report_fetch *a, struct err *err)
{
    struct str address = a->flags->address;
    (void)str_cut_suffix(address, STR("/"), &address);
    bool tls = str_starts(address, STR("https://"));
    a->access = (struct cluster_access){
        .server = str_contains(address, STR("://"))
                      ? address
                      : arena_concat(a->call->memory, STR("http://"), address),
        .tls_server_name = a->flags->tls_server_name,
    };
    if (!tls && (a->flags->token_file.n > 0 || a->flags->ca_file.n > 0)) {
        return err_set(
            err, ERR_INVALID,
            "--token-file and --certificate-authority: want --address https://…, so that "
            "nobody reads the token on its way");
    }
    if (a->flags->ca_file.n > 0 && file_read(a->flags->ca_file, CREDENTIAL_FILE_BYTES_MAX,
                                             a->call->memory, &a->access.ca_pem, err) < 0) {
        return err_wrap(err, "--certificate-authority");
    }
    return tls ? report_fetch_identify(a, err) : 0;
}

/* The token for a pod, in a header that the API server passes on. */
static int report_fetch_add_header(struct report_fetch *a, struct err *err)
{
    struct str token;
    if (a->flags->token_file.n == 0) {
        return 0;
    }
    if (file_read(a->flags->token_file, CREDENTIAL_FILE_BYTES_MAX, a->call->memory, &token, err) <
        0) {
        return err_wrap(err, "--token-file");
    }
    a->access.header = arena_printf(a->call->memory, REQUEST_AUTH_TOKEN_HEADER ": " STR_FMT,
                                    STR_ARG(str_trim(token)));
    return 0;
}

static int report_fetch_connect(struct report_fetch *a, struct err *err)
{
    int r;
    if (a->flags->address.n > 0) {
        r = report_fetch_use_address(a, err);
    } else {
        r = report_fetch_load(a, &a->access, err);
        r = r < 0 ? r : report_fetch_add_header(a, err);
    }
    if (r < 0) {
        return r;
    }
    a->transport = transport_new(a->loop, &a->access, err);
    if (a->transport == NULL) {
        return err_wrap(err, "%s", a->flags->address.n > 0 ? "--address" : "the cluster");
    }
    transport_set_limits(a->transport,
                         &(struct transport_limits){ .reply_bytes_max = REPORT_FETCH_OUTPUT_MAX });
    a->api = api_trace_on(&a->trace, a->transport, a->loop, a->flags->verbosity);
    return 0;
}

int report_fetch_run(const struct command_call *call, const struct report_query *query)
{
    struct err err = { 0 };
    struct report_fetch a = {
        .call = call,
        .flags = call->config,
        .query = query,
        .loop = host_loop_new(),
        .terminal = isatty(STDOUT_FILENO) != 0,
        .colour = terminal_colour(STDOUT_FILENO),
        .columns = terminal_columns(STDOUT_FILENO),
    };
    loop_timer_init(&a.refresh, a.loop, report_fetch_refresh, &a);
    if (report_fetch_connect(&a, &err) < 0) {
        a.code = command_fail(call, &err);
    } else {
        report_fetch_refresh(&a);
        host_loop_run(a.loop);
    }
    loop_timer_done(&a.refresh);
    transport_free(a.here.transport);
    transport_free(a.transport);
    host_loop_free(a.loop);
    arena_done(&a.found);
    buf_done(&a.printed);
    return a.code;
}
