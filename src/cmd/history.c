/* drydock history: prints what NodeMaintenances have done on a node, or one of them on all nodes,
 * from the ConfigMaps that the controller keeps. */
#include "base/humantime.h"
#include "base/textwrap.h"
#include "base/timestamp.h"
#include "client/client_session.h"
#include "cmd/commands.h"
#include "format/json_writer.h"
#include "kinds/keys.h"
#include "kinds/run_history.h"
#include "kube/client.h"

#include <stdio.h>
#include <stdlib.h>

#define HISTORY_OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define HISTORY_COLUMNS 80u

struct history_flags {
    struct str output;
    struct str ns;
    struct str kubeconfig;
    struct str kubecontext;
};

static const struct option history_options[] = {
    { "o", OPTION_CHOICE, OPTION(struct history_flags, output), "FORM", "text", "text|wide|json",
      "lines of 80 columns, lines of any length, or JSON", .also = "output" },
    { "n", OPTION_TEXT, OPTION(struct history_flags, ns), "NAME", "drydock-system", NULL,
      "--system-namespace of the controller", .also = "namespace" },
    { "kubeconfig", OPTION_FILE, OPTION(struct history_flags, kubeconfig), "FILE", "", NULL,
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },
    { "context", OPTION_TEXT, OPTION(struct history_flags, kubecontext), "NAME", "", NULL,
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",
      .also = "kubecontext" },
};

struct histories {
    struct run_history_entry *items;
    uint32_t n;
    uint32_t cap;
};

static void histories_read(struct histories *h, const struct jval *map, struct str maintenance,
                           struct arena *out)
{
    struct str rest = jval_str(jval_at(map, "data." RUN_HISTORY_KEY));
    struct str line;
    while (rest.n > 0 && str_split_next(&rest, '\n', &line)) {
        struct run_history_entry e;
        if (!run_history_read(line, out, &e) ||
            (maintenance.n > 0 && !str_eq(e.maintenance, maintenance))) {
            continue;
        }
        if (h->n == h->cap) {
            ARENA_GROW(out, h->items, h->n, h->cap);
        }
        h->items[h->n++] = e;
    }
}

/* The ConfigMap of one machine, or all of them if there is no name. */
static int history_fetch(struct client_session *session, struct str ns, struct str name,
                         struct arena *out, const struct jval **ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    struct blocking_api_reply reply;
    buf_add(&path, STR("/api/v1/namespaces/"));
    client_add_segment(&path, ns);
    buf_add(&path, STR("/configmaps"));
    if (name.n > 0) {
        buf_add_char(&path, '/');
        client_add_segment(&path, name);
    } else {
        buf_add(&path, STR("?labelSelector=" KEY_HISTORY_QUERY "%3Dtrue"));
    }
    int r = blocking_api_send(&session->blocking_api,
                              &(struct api_request){ .verb = API_GET, .path = buf_str(&path) }, out,
                              &reply, err);
    if (r == 0 && reply.status >= 300) {
        client_explain(reply.status, reply.body, NULL, err);
        return reply.status == 404
                   ? -ERR_NOTFOUND
                   : err_wrap(err, "history in namespace '" STR_FMT "'", STR_ARG(ns));
    }
    return r < 0 ? r : json_parse(reply.body, JSON_GO, out, ret, err);
}

static int entry_cmp(const void *a, const void *b)
{
    const struct run_history_entry *x = a;
    const struct run_history_entry *y = b;
    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    int by_node = str_cmp(x->node, y->node);
    return by_node != 0 ? by_node : str_cmp(x->operation, y->operation);
}

/* ── printing ──────────────────────────────────────────────────────────────────────────────── */

static void history_print_line(const struct run_history_entry *e, bool nodes, struct textwrap *line,
                               struct arena *tmp)
{
    char text[TIMESTAMP_TEXT_MAX];
    line->hang = 4;
    textwrap_add(line, timestamp_print_seconds(e->time, text));
    if (nodes) {
        textwrap_printf(line, "  " STR_FMT, STR_ARG(e->node));
    }
    textwrap_printf(line, "  " STR_FMT "/" STR_FMT " " STR_FMT, STR_ARG(e->maintenance),
                    STR_ARG(e->operation), STR_ARG(e->result));
    if (e->took > 0) {
        textwrap_printf(line, " after " STR_FMT, STR_ARG(humantime_span(e->took, tmp)));
    }
    if (e->attempt > 1) {
        textwrap_printf(line, ", attempt %u", e->attempt);
    }
    if (e->rebooted) {
        textwrap_add(line, STR(", rebooted"));
    }
    if (e->reason.n > 0) {
        textwrap_printf(line, ": " STR_FMT, STR_ARG(e->reason));
    }
    if (e->message.n > 0) {
        textwrap_printf(line, ": " STR_FMT, STR_ARG(e->message));
    }
    textwrap_end(line);
}

static void history_print(const struct histories *h, struct str form, bool nodes, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    bool json = str_eq(form, STR("json"));
    struct textwrap line = { .out = out,
                             .columns = str_eq(form, STR("wide")) ? 0 : HISTORY_COLUMNS };
    buf_add(out, json ? STR("[") : STR_NONE);
    for (uint32_t i = 0; i < h->n; i++) {
        if (json) {
            buf_add(out, i > 0 ? STR(",") : STR_NONE);
            run_history_print(&h->items[i], out);
        } else {
            history_print_line(&h->items[i], nodes, &line, &tmp);
        }
    }
    buf_add(out, json ? STR("]\n") : STR_NONE);
}

/* ── the command ───────────────────────────────────────────────────────────────────────────── */

static bool history_is_maintenance(const struct command_call *call)
{
    return call->arg_count == 2 &&
           (str_eq(call->args[0], STR("nodemaintenance")) || str_eq(call->args[0], STR("ndm")));
}

static int history_check(const struct command_call *call, struct err *err)
{
    if (call->arg_count == 2 && !history_is_maintenance(call) &&
        !str_eq(call->args[0], STR("node"))) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "': want node or nodemaintenance",
                       STR_ARG(call->args[0]));
    }
    return 0;
}

static int history_collect(struct client_session *session, const struct command_call *call,
                           struct histories *h, struct err *err)
{
    const struct history_flags *flags = call->config;
    struct arena *out = call->memory;
    struct str name = call->args[call->arg_count - 1];
    const struct jval *root = NULL;
    if (!history_is_maintenance(call)) {
        int r = history_fetch(session, flags->ns, run_history_name(name, out), out, &root, err);
        if (r == 0) {
            histories_read(h, root, STR_NONE, out);
        }
        return r == -ERR_NOTFOUND ? 0 : r;
    }
    int r = history_fetch(session, flags->ns, STR_NONE, out, &root, err);
    JVAL_EACH (r == 0 ? jval_get(root, STR("items")) : NULL, map) {
        histories_read(h, map, name, out);
    }
    return r;
}

static int history_run(const struct command_call *call)
{
    const struct history_flags *flags = call->config;
    struct client_session session;
    struct histories h = { 0 };
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf out = { .max = HISTORY_OUTPUT_MAX };
    int r = client_session_init(&session, flags->kubeconfig,
                                command_kubecontext(flags->kubecontext), &err);
    r = r < 0 ? r : history_collect(&session, call, &h, &err);
    client_session_done(&session);
    if (r == 0 && h.n == 0 && !str_eq(flags->output, STR("json"))) {
        struct str name = call->args[call->arg_count - 1];
        r = err_set(&err, ERR_NOTFOUND,
                    "nothing is kept of '" STR_FMT "' in namespace '" STR_FMT "'", STR_ARG(name),
                    STR_ARG(flags->ns));
    }
    if (r < 0) {
        return command_fail(call, &err);
    }
    if (h.n > 0) {
        qsort(h.items, h.n, sizeof(h.items[0]), entry_cmp);
    }
    history_print(&h, flags->output, history_is_maintenance(call), &out);
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    return COMMAND_OK;
}

static unsigned history_names(const struct command_call *call)
{
    return call->arg_count == 0                 ? COMMAND_NAMES_NODES
           : history_is_maintenance(call)       ? 0
           : str_eq(call->args[0], STR("node")) ? COMMAND_NAMES_NODES
                                                : COMMAND_NAMES_MAINTENANCES;
}

const struct command command_history = {
    .name = "history",
    .args = "[node|nodemaintenance] NAME",
    .summary = "show what NodeMaintenances have done on a node, or one of them everywhere",
    .text =
        "Lists the runs of operations on a node with how each ended, the newest last, also "
        "when their Jobs are gone: the controller keeps the last 100 of each machine in "
        "ConfigMaps of its own namespace. 'nodemaintenance NAME', or 'ndm NAME', lists those of "
        "one NodeMaintenance on all machines.\n\n"
        "Reading needs 'get' and 'list' of ConfigMaps in that namespace.\n\n"
        "Exit code 0: it was shown. 1: the cluster could not be asked, or nothing is kept. 2: "
        "the command line is wrong.",
    .options = { .options = history_options, .count = ARRAY_LEN(history_options) },
    .config_size = sizeof(struct history_flags),
    .args_min = 1,
    .args_max = 2,
    .check = history_check,
    .run = history_run,
    .names = history_names,
};
