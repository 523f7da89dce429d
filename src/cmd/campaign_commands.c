/* approve, rerun and hold, and pause and resume of one NodeMaintenance: labels and annotations by
 * which people tell the controller. */
#include "cmd/campaign_commands.h"

#include "base/timestamp.h"
#include "client/client_session.h"
#include "cmd/commands.h"
#include "format/json_writer.h"
#include "kinds/keys.h"
#include "kube/client.h"

#include <stdio.h>

#define REVISION_SHOWN 16u

struct campaign_flags {
    struct str kubeconfig;
    struct str kubecontext;
    struct str node;        /* rerun */
    struct str maintenance; /* hold */
    bool release;           /* hold */
};

#define CLUSTER_OPTIONS                                                                            \
    { "kubeconfig",                                                                                \
      OPTION_FILE,                                                                                 \
      OPTION(struct campaign_flags, kubeconfig),                                                   \
      "FILE",                                                                                      \
      "",                                                                                          \
      NULL,                                                                                        \
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },     \
    {                                                                                              \
        "context", OPTION_TEXT, OPTION(struct campaign_flags, kubecontext), "NAME", "", NULL,      \
            "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",        \
            .also = "kubecontext"                                                                  \
    }

static const struct option approve_options[] = { CLUSTER_OPTIONS };
static const struct option rerun_options[] = {
    CLUSTER_OPTIONS,
    { "node", OPTION_TEXT, OPTION(struct campaign_flags, node), "NAME", "", NULL,
      "only there; otherwise on every machine of the object" },
};
static const struct option hold_options[] = {
    CLUSTER_OPTIONS,
    { "for", OPTION_TEXT, OPTION(struct campaign_flags, maintenance), "NAME", "", NULL,
      "only from visits of this NodeMaintenance; otherwise from all" },
    { "release", OPTION_BOOL, OPTION(struct campaign_flags, release), NULL, NULL, NULL,
      "end the hold" },
};

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static int campaign_send(struct client_session *session, const struct api_request *request,
                         const char *what, struct str name, struct arena *out,
                         const struct jval **ret, struct err *err)
{
    struct blocking_api_reply reply;
    int r = blocking_api_send(&session->blocking_api, request, out, &reply, err);
    if (r == 0 && reply.status >= 300) {
        client_explain(reply.status, reply.body, NULL, err);
        return err_wrap(err, "%s '" STR_FMT "'", what, STR_ARG(name));
    }
    return r < 0 ? r : json_parse(reply.body, JSON_GO, out, ret, err);
}

static void campaign_path(struct str name, struct buf *path)
{
    buf_add(path, STR(NODE_MAINTENANCES_PATH "/"));
    client_add_segment(path, name);
}

static int campaign_read(struct client_session *session, struct str name, struct arena *out,
                         const struct jval **ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    campaign_path(name, &path);
    return campaign_send(session, &(struct api_request){ .verb = API_GET, .path = buf_str(&path) },
                         "NodeMaintenance", name, out, ret, err);
}

/* Sets a label or an annotation; `value` NULL removes it. */
static int object_mark(struct client_session *session, struct str path, const char *what,
                       struct str name, const char *where, struct str key, const struct str *value,
                       struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf body = { 0 };
    const struct jval *ignored = NULL;
    struct json_writer w = json_writer_on(&body);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_key(&w, str_from(where));
    jw_obj(&w);
    jw_key(&w, key);
    if (value != NULL) {
        jw_str(&w, *value);
    } else {
        jw_null(&w);
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    jw_obj_end(&w);
    return campaign_send(session,
                         &(struct api_request){ .verb = API_PATCH,
                                                .path = path,
                                                .content_type = API_MERGE_PATCH,
                                                .body = buf_str(&body) },
                         what, name, &tmp, &ignored, err);
}

static int campaign_annotate(struct client_session *session, struct str name, struct str key,
                             struct str value, struct err *err)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    campaign_path(name, &path);
    return object_mark(session, buf_str(&path), "NodeMaintenance", name, "annotations", key, &value,
                       err);
}

static int campaign_label(struct client_session *session, struct str name, bool held,
                          struct err *err)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    struct str truth = KEYS_TRUE;
    campaign_path(name, &path);
    return object_mark(session, buf_str(&path), "NodeMaintenance", name, "labels", KEY_HOLD,
                       held ? &truth : NULL, err);
}

/* ── approve ───────────────────────────────────────────────────────────────────────────────── */

/* The wave that waits: the first that wants an approval, from the present one on. */
static struct str approve_wave(const struct jval *object)
{
    int64_t index = 0;
    int64_t i = 0;
    (void)jval_i64(jval_at(object, "status.wave.index"), &index); /* absent: the first */
    JVAL_EACH (jval_at(object, "spec.rollout.waves"), wave) {
        if (i++ >= index && str_eq(jval_str(jval_get(wave, STR("approval"))), STR("Manual"))) {
            return jval_str(jval_get(wave, STR("name")));
        }
    }
    return STR_NONE;
}

/* Who asks, as the API server knows them; empty: it does not say. */
static struct str approve_user(struct client_session *session, struct arena *out)
{
    const struct jval *review = NULL;
    struct err ignored = { 0 };
    int r = campaign_send(session,
                          &(struct api_request){
                              .verb = API_POST,
                              .path = STR("/apis/authentication.k8s.io/v1/selfsubjectreviews"),
                              .body = STR("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":"
                                          "\"SelfSubjectReview\"}"),
                          },
                          "user", STR(""), out, &review, &ignored);
    return r < 0 ? STR_NONE : jval_str(jval_at(review, "status.userInfo.username"));
}

static int approve(struct client_session *session, const struct command_call *call, struct err *err)
{
    struct arena *tmp = call->memory;
    const struct jval *object = NULL;
    struct str name = call->args[0];
    int r = campaign_read(session, name, tmp, &object, err);
    if (r < 0) {
        return r;
    }
    struct str revision = jval_str(jval_at(object, "status.revision"));
    struct str tick = jval_str(jval_at(object, "status.wave.tick"));
    struct str wave = call->arg_count > 1 ? call->args[1] : approve_wave(object);
    if (revision.n < REVISION_SHOWN) {
        return err_set(err, ERR_BUSY,
                       "NodeMaintenance '" STR_FMT "' has no revision yet: no controller has "
                       "accepted it",
                       STR_ARG(name));
    }
    if (wave.n == 0) {
        return err_set(err, ERR_INVALID,
                       "no wave of NodeMaintenance '" STR_FMT "' waits for an approval: want a "
                       "wave with approval Manual in spec.rollout.waves, or its name",
                       STR_ARG(name));
    }
    struct str user = approve_user(session, tmp);
    struct str text =
        arena_printf(tmp, STR_FMT "/" STR_FMT "%s" STR_FMT "%s" STR_FMT,
                     STR_ARG(str_sub(revision, 0, REVISION_SHOWN)), STR_ARG(wave),
                     tick.n > 0 ? "@" : "", STR_ARG(tick), user.n > 0 ? " by " : "", STR_ARG(user));
    r = campaign_annotate(session, name, KEY_OPERATION_APPROVE, text, err);
    if (r == 0) {
        printf("nodemaintenance/" STR_FMT ": wave " STR_FMT " is approved\n", STR_ARG(name),
               STR_ARG(wave));
    }
    return r;
}

/* ── the others ────────────────────────────────────────────────────────────────────────────── */

static int rerun(struct client_session *session, const struct command_call *call, struct err *err)
{
    const struct campaign_flags *flags = call->config;
    struct arena *tmp = call->memory;
    char now[TIMESTAMP_TEXT_MAX];
    const struct jval *object = NULL;
    bool known = false;
    struct str name = call->args[0];
    struct str operation = call->args[1];
    int r = campaign_read(session, name, tmp, &object, err);
    JVAL_EACH (jval_at(object, "spec.operations"), o) {
        known = known || str_eq(jval_str(jval_get(o, STR("name"))), operation);
    }
    if (r == 0 && !known) {
        r = err_set(err, ERR_NOTFOUND,
                    "NodeMaintenance '" STR_FMT "' has no operation '" STR_FMT "'", STR_ARG(name),
                    STR_ARG(operation));
    }
    struct str text = arena_printf(tmp, STR_FMT "%s" STR_FMT "@" STR_FMT, STR_ARG(operation),
                                   flags->node.n > 0 ? "/" : "", STR_ARG(flags->node),
                                   STR_ARG(timestamp_print_seconds(loop_wall(session->loop), now)));
    r = r < 0 ? r : campaign_annotate(session, name, KEY_OPERATION_RERUN, text, err);
    if (r == 0) {
        printf("nodemaintenance/" STR_FMT ": operation " STR_FMT " runs again on %.*s\n",
               STR_ARG(name), STR_ARG(operation), flags->node.n > 0 ? (int)flags->node.n : 13,
               flags->node.n > 0 ? flags->node.p : "every machine");
    }
    return r;
}

static int hold(struct client_session *session, const struct command_call *call, struct err *err)
{
    const struct campaign_flags *flags = call->config;
    CLEANUP(buf_done)
    struct buf path = { 0 };
    struct str node = call->args[0];
    struct str truth = KEYS_TRUE;
    struct str key = KEY_HOLD;
    if (flags->maintenance.n > 0) {
        key = arena_printf(call->memory, KEY_HOLD_FOR_TEXT STR_FMT, STR_ARG(flags->maintenance));
    }
    buf_add(&path, STR("/api/v1/nodes/"));
    client_add_segment(&path, node);
    int r = object_mark(session, buf_str(&path), "node", node, "labels", key,
                        flags->release ? NULL : &truth, err);
    if (r == 0) {
        printf("node/" STR_FMT " is %s\n", STR_ARG(node),
               flags->release ? "released" : "held: no visit begins there");
    }
    return r;
}

int campaign_pause(struct client_session *session, struct str name, struct err *err)
{
    int r = campaign_label(session, name, true, err);
    if (r == 0) {
        printf("nodemaintenance/" STR_FMT " is held: nothing new starts\n", STR_ARG(name));
    }
    return r;
}

/* Failures that stopped it count no more. */
int campaign_resume(struct client_session *session, struct str name, struct arena *tmp,
                    struct err *err)
{
    const struct jval *object = NULL;
    char now[TIMESTAMP_TEXT_MAX];
    int r = campaign_read(session, name, tmp, &object, err);
    struct str revision = jval_str(jval_at(object, "status.revision"));
    r = r < 0 ? r : campaign_label(session, name, false, err);
    if (r == 0 && revision.n >= REVISION_SHOWN) {
        struct str text =
            arena_printf(tmp, STR_FMT "@" STR_FMT, STR_ARG(str_sub(revision, 0, REVISION_SHOWN)),
                         STR_ARG(timestamp_print_seconds(loop_wall(session->loop), now)));
        r = campaign_annotate(session, name, KEY_OPERATION_RESUME, text, err);
    }
    if (r == 0) {
        printf("nodemaintenance/" STR_FMT " goes on; machines that failed are tried again\n",
               STR_ARG(name));
    }
    return r;
}

static int campaign_call(const struct command_call *call,
                         int (*run)(struct client_session *session, const struct command_call *call,
                                    struct err *err))
{
    const struct campaign_flags *flags = call->config;
    struct err err = { 0 };
    struct client_session session = { 0 };
    int r = client_session_init(&session, flags->kubeconfig,
                                command_kubecontext(flags->kubecontext), &err);
    session.blocking_api.fail_fast = true;
    r = r < 0 ? r : run(&session, call, &err);
    client_session_done(&session);
    return r < 0 ? command_fail(call, &err) : COMMAND_OK;
}

static int approve_run(const struct command_call *call)
{
    return campaign_call(call, approve);
}

static int rerun_run(const struct command_call *call)
{
    return campaign_call(call, rerun);
}

static int hold_run(const struct command_call *call)
{
    return campaign_call(call, hold);
}

const struct command command_approve = {
    .name = "approve",
    .args = "NODEMAINTENANCE [WAVE]",
    .summary = "let a wave that waits for a person begin",
    .text = "Approves a wave with approval Manual, at the present revision (and tick) alone: the "
            "next change asks again. Without a name it is the wave that comes next. It is the "
            "annotation " KEY_OPERATION_APPROVE_TEXT ", so kubectl annotate does the same.\n\n"
            "Exit code 0: it is approved. 1: it could not be. 2: the command line is wrong.",
    .options = { .options = approve_options, .count = ARRAY_LEN(approve_options) },
    .config_size = sizeof(struct campaign_flags),
    .args_min = 1,
    .args_max = 2,
    .run = approve_run,
};

const struct command command_rerun = {
    .name = "rerun",
    .args = "NODEMAINTENANCE OPERATION",
    .summary = "run an operation again that has been done",
    .text = "Makes an operation due again, on all its machines or on one, once. Windows, limits "
            "and waves count as always. It is the annotation " KEY_OPERATION_RERUN_TEXT ".\n\n"
            "Exit code 0: it is due. 1: it could not be made so. 2: the command line is wrong.",
    .options = { .options = rerun_options, .count = ARRAY_LEN(rerun_options) },
    .config_size = sizeof(struct campaign_flags),
    .args_min = 2,
    .args_max = 2,
    .run = rerun_run,
};

const struct command command_hold = {
    .name = "hold",
    .args = "NODE",
    .summary = "keep visits of NodeMaintenances away from a node",
    .text = "Sets the label " KEY_HOLD_TEXT " on the node: no visit begins there, and the node "
            "neither completes a wave nor keeps one open. A visit in progress ends as planned. "
            "'drydock pause NODEMAINTENANCE' holds an object instead of a node.\n\n"
            "Exit code 0: it is done. 1: it could not be. 2: the command line is wrong.",
    .options = { .options = hold_options, .count = ARRAY_LEN(hold_options) },
    .config_size = sizeof(struct campaign_flags),
    .args_min = 1,
    .args_max = 1,
    .run = hold_run,
};
