#include "cmd/report_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/kubeconfig.h"
#include "host/loop.h"
#include "host/transport.h"
#include "kube/client.h"

#define ASK_OUTPUT_MAX ((size_t)64 * 1024 * 1024) /* as the largest document */

const struct option ask_server_options[ASK_OPTION_COUNT] = {
    { "o", OPTION_CHOICE, OPTION(struct ask_flags, output), "FORM", "text", "text|wide|json",
      "text at 80 columns, wide lines with everything, or the document itself" },
    { "watch", OPTION_BOOL, OPTION(struct ask_flags, watch), NULL, "false", NULL,
      "show it again whenever it has changed, until interrupted" },
    { "address", OPTION_TEXT, OPTION(struct ask_flags, address), "URL", "", NULL,
      "ask the controller at this address: http://127.0.0.1:8080" },
    { "kubeconfig", OPTION_FILE, OPTION(struct ask_flags, kubeconfig), "FILE", "", NULL,
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },
    { "kubecontext", OPTION_TEXT, OPTION(struct ask_flags, kubecontext), "NAME", "", NULL,
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice" },
    { "namespace", OPTION_TEXT, OPTION(struct ask_flags, ns), "NAME", "", NULL,
      "where the controller runs; otherwise wherever its Lease is found" },
    { "port", OPTION_U32, OPTION(struct ask_flags, port), "PORT", "8080", NULL,
      "of the controller's pod" },
    { "timeout", OPTION_DURATION, OPTION(struct ask_flags, time_max), "DURATION", "10s", NULL,
      "how long to wait for an answer" },
};

struct ask {
    const struct command_call *call;
    const struct ask_flags *flags;
    const struct ask_question *question;
    struct loop *loop;
    struct cluster_access access;
    struct api *api;
    struct loop_timer again;
    struct arena found; /* of what the Leases said */
    struct leaders leaders;
    uint32_t at;            /* the one of them that is asked, while there are any */
    struct err unreachable; /* one of them was not; code 0 = all were */
    struct buf shown;       /* the text that was printed last */
    bool answered;          /* once at least */
    bool terminal;
    int code;
};

static void ask_end(struct ask *a, int code)
{
    a->code = code;
    host_loop_stop(a->loop);
}

/* The first failure ends the command; behind an answer --watch goes on and says so. */
static void ask_fail(struct ask *a, const struct err *err)
{
    (void)command_fail(a->call, err); /* answers COMMAND_FAILED, as it is */
    a->leaders.n = 0;                 /* others may lead now */
    buf_reset(&a->shown);
    if (a->flags->watch && a->answered) {
        loop_timer_set(&a->again, loop_now(a->loop) + ASK_EVERY);
    } else {
        ask_end(a, COMMAND_FAILED);
    }
}

/* ---- the document ---- */

static void ask_show(struct ask *a, struct buf *text)
{
    bool json = str_eq(a->flags->output, STR("json"));
    bool same = a->answered && str_eq(buf_str(text), buf_str(&a->shown));
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
    buf_done(&a->shown);
    a->shown = *text;
    *text = (struct buf){ 0 };
    a->answered = true;
    if (!a->flags->watch || ferror(stdout) != 0) {
        ask_end(a, COMMAND_OK);
    } else {
        loop_timer_set(&a->again, loop_now(a->loop) + ASK_EVERY);
    }
}

/* What whoever was asked says is wrong is {"error":"…"}; the API server answers a Status, and then
 * the pod was not reached. */
static struct str ask_complaint(const struct api_reply *reply, struct arena *out)
{
    const struct jval *root = NULL;
    struct err ignored = { 0 };
    return reply->status != 0 && json_parse(reply->body, 0, out, &root, &ignored) == 0
               ? jval_str(jval_get(root, STR("error")))
               : STR_NONE;
}

static void ask_explain(const struct ask *a, const struct api_reply *reply, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str said = ask_complaint(reply, &tmp);
    if (said.n > 0) {
        (void)err_set(err, reply->status == 404 ? ERR_NOTFOUND : ERR_IO, STR_FMT, STR_ARG(said));
        if (err->code == ERR_NOTFOUND) {
            return; /* it was asked, and there is no such thing */
        }
    } else {
        client_explain(reply->status, reply->body, reply->err, err);
    }
    if (a->leaders.n > 0) {
        (void)err_wrap(err,
                       "pod '" STR_FMT "' in namespace '" STR_FMT
                       "' (--address asks a %s that runs elsewhere)",
                       STR_ARG(a->leaders.pods[a->at]), STR_ARG(a->leaders.ns),
                       leader_kind_name(a->question->whom));
    }
}

static void ask_document(struct ask *a);

/* With shards: whether somebody else is asked now, because this one does not look after it or
 * could not be asked. What the last one says counts if all could. */
static bool ask_next(struct ask *a, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (a->leaders.n < 2 || (reply->status == 200 && !a->question->foreign(reply->body))) {
        a->unreachable = (struct err){ 0 };
        return false;
    }
    bool unknown = reply->status == 404 && ask_complaint(reply, &tmp).n > 0;
    if (reply->status != 200 && !unknown) {
        ask_explain(a, reply, &a->unreachable);
    }
    if (a->at + 1 == a->leaders.n) {
        return false;
    }
    a->at++;
    ask_document(a);
    return true;
}

static void ask_on_document(void *ctx, const struct api_reply *reply)
{
    struct ask *a = ctx;
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf text = { .max = ASK_OUTPUT_MAX };
    if (ask_next(a, reply)) {
        return;
    }
    if (a->unreachable.code != 0) {
        err = a->unreachable;
        a->unreachable = (struct err){ 0 };
        ask_fail(a, &err);
        return;
    }
    if (reply->status != 200) {
        ask_explain(a, reply, &err);
        ask_fail(a, &err);
        return;
    }
    bool wide = str_eq(a->flags->output, STR("wide"));
    if (str_eq(a->flags->output, STR("json"))) {
        buf_add(&text, reply->body);
        buf_add(&text, STR("\n"));
    } else if (a->question->print(reply->body, wide ? REPORT_WIDE : REPORT_TEXT, &text, &err) < 0) {
        (void)err_wrap(&err, "the %s's answer cannot be read", leader_kind_name(a->question->whom));
        ask_fail(a, &err);
        return;
    }
    ask_show(a, &text);
}

static void ask_get(struct ask *a, struct str path, api_on_reply on_reply)
{
    (void)api_send(
        a->api,
        &(struct api_request){ .verb = API_GET, .path = path, .timeout = a->flags->time_max },
        on_reply, a); /* nothing is ever cancelled */
}

static void ask_document(struct ask *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    if (a->leaders.n > 0) {
        buf_add(&path, STR("/api/v1/namespaces/"));
        client_add_segment(&path, a->leaders.ns);
        buf_add(&path, STR("/pods/http:"));
        client_add_segment(&path, a->leaders.pods[a->at]);
        buf_printf(&path, ":%u/proxy", a->flags->port);
    }
    buf_add(&path, a->question->path);
    ask_get(a, buf_str(&path), ask_on_document);
}

/* ---- the leader ---- */

static int ask_read_leases(struct ask *a, const struct api_reply *reply, struct err *err)
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
    return leader_read(a->question->whom, root, &a->found, &a->leaders, err);
}

static void ask_on_leases(void *ctx, const struct api_reply *reply)
{
    struct ask *a = ctx;
    struct err err = { 0 };
    if (ask_read_leases(a, reply, &err) < 0) {
        ask_fail(a, &err);
    } else {
        ask_document(a);
    }
}

static void ask_leader(struct ask *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    leader_path(a->question->whom, a->flags->ns, &path);
    ask_get(a, buf_str(&path), ask_on_leases);
}

static void ask_again(void *ctx)
{
    struct ask *a = ctx;
    if (a->flags->address.n == 0 && a->leaders.n == 0) {
        ask_leader(a);
    } else {
        ask_document(a);
    }
}

static int ask_reach(struct ask *a, struct err *err)
{
    if (a->flags->address.n > 0) {
        struct str address = a->flags->address;
        (void)str_cut_suffix(address, STR("/"), &address);
        bool plain = !str_contains(address, STR("://"));
        a->access = (struct cluster_access){
            .server = plain ? arena_concat(a->call->memory, STR("http://"), address) : address,
        };
    } else {
        struct str context = a->flags->kubecontext;
        const struct kubeconfig_source source = {
            .path = a->flags->kubeconfig,
            .context = context.n > 0 ? context : str_from(getenv("KUBECONTEXT")),
        };
        int r = kubeconfig_load(&source, a->call->memory, &a->access, err);
        if (r < 0) {
            return r;
        }
    }
    a->api = transport_new(a->loop, &a->access, err);
    if (a->api == NULL) {
        return err_wrap(err, "%s", a->flags->address.n > 0 ? "--address" : "the cluster");
    }
    transport_set_limits(a->api, &(struct transport_limits){ .reply_bytes_max = ASK_OUTPUT_MAX });
    return 0;
}

int ask_run(const struct command_call *call, const struct ask_question *question)
{
    struct err err = { 0 };
    struct ask a = {
        .call = call,
        .flags = call->config,
        .question = question,
        .loop = host_loop_new(),
        .terminal = isatty(STDOUT_FILENO) != 0,
    };
    loop_timer_init(&a.again, a.loop, ask_again, &a);
    if (ask_reach(&a, &err) < 0) {
        a.code = command_fail(call, &err);
    } else {
        ask_again(&a);
        host_loop_run(a.loop);
    }
    loop_timer_done(&a.again);
    transport_free(a.api);
    host_loop_free(a.loop);
    arena_done(&a.found);
    buf_done(&a.shown);
    return a.code;
}
