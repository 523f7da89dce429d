/* pause and resume: stops all new grants and all drains by an annotation of the controller's Lease,
 * and lets them go on. The controller sees it when it next renews the Lease. */
#include "base/timestamp.h"
#include "client/client_session.h"
#include "cmd/campaign_commands.h"
#include "cmd/commands.h"
#include "cmd/leader_find.h"
#include "format/json_writer.h"
#include "kinds/keys.h"
#include "kube/client.h"

#include <stdio.h>

struct pause_flags {
    struct str kubeconfig;
    struct str kubecontext;
    struct str ns;
    struct str reason; /* of pause alone */
};

static const struct option pause_options[] = {
    { "kubeconfig", OPTION_FILE, OPTION(struct pause_flags, kubeconfig), "FILE", "", NULL,
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },
    { "context", OPTION_TEXT, OPTION(struct pause_flags, kubecontext), "NAME", "", NULL,
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",
      .also = "kubecontext" },
    { "n", OPTION_TEXT, OPTION(struct pause_flags, ns), "NAME", "", NULL,
      "where the controller runs; otherwise wherever its Lease is found", .also = "namespace" },
    { "reason", OPTION_TEXT, OPTION(struct pause_flags, reason), "TEXT", "", NULL,
      "why, for everybody who looks; otherwise only when" },
};
#define RESUME_OPTIONS (ARRAY_LEN(pause_options) - 1) /* all but the last */

static int pause_send(struct client_session *session, const struct api_request *request,
                      struct arena *out, struct blocking_api_reply *ret, struct err *err)
{
    int r = blocking_api_send(&session->blocking_api, request, out, ret, err);
    if (r < 0 || ret->status < 300 || ret->status == 404) {
        return r;
    }
    client_explain(ret->status, ret->body, NULL, err);
    return err_wrap(err, "the controller's Lease");
}

/* What is found of the Lease. */
struct pause_lease {
    struct str ns;
    bool exists;
    bool paused;
};

static int pause_find(struct client_session *session, struct str ns, struct arena *out,
                      struct pause_lease *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    struct blocking_api_reply reply;
    const struct jval *root = NULL;
    *ret = (struct pause_lease){ .ns = ns };
    leader_lease_path(LEADER_CONTROLLER, ns, &path);
    int r = pause_send(session, &(struct api_request){ .verb = API_GET, .path = buf_str(&path) },
                       out, &reply, err);
    if (r < 0 || reply.status == 404) {
        return r;
    }
    r = json_parse(reply.body, JSON_GO, out, &root, err);
    if (r < 0) {
        return err_wrap(err, "the controller's Lease");
    }
    const struct jval *lease = root;
    const struct jval *items = jval_get(root, STR("items"));
    if (jval_kind(items) == JARR) {
        lease = jval_first(items);
        if (lease != NULL && jval_next(items, lease) != NULL) {
            struct str first = jval_str(jval_at(lease, "metadata.namespace"));
            return err_set(err, ERR_INVALID,
                           "several namespaces have a controller's Lease, '" STR_FMT
                           "' among them: choose one with --namespace",
                           STR_ARG(first));
        }
    }
    if (lease != NULL) {
        ret->exists = true;
        ret->ns = jval_str(jval_at(lease, "metadata.namespace"));
        ret->paused = jval_get(jval_at(lease, "metadata.annotations"), KEY_ALL_PAUSED) != NULL;
    }
    return 0;
}

/* `reason` NULL: it goes on. A Lease that is not there is made, without a holder. */
static int pause_write(struct client_session *session, const struct pause_lease *lease,
                       const struct str *reason, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf path = { 0 };
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct json_writer w = json_writer_on(&body);
    struct blocking_api_reply reply;
    jw_obj(&w);
    if (!lease->exists) {
        jw_pair(&w, "apiVersion", STR("coordination.k8s.io/v1"));
        jw_pair(&w, "kind", STR("Lease"));
    }
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    if (!lease->exists) {
        jw_pair(&w, "name", CORE_LEASE_NAME);
    }
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    jw_key(&w, KEY_ALL_PAUSED);
    if (reason != NULL) {
        jw_str(&w, *reason);
    } else {
        jw_null(&w);
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    jw_obj_end(&w);
    leader_lease_path(LEADER_CONTROLLER, lease->ns, &path);
    struct str collection;
    (void)str_cut_suffix(buf_str(&path), CORE_LEASE_NAME, &collection); /* it ends so */
    (void)str_cut_suffix(collection, STR("/"), &collection);
    const struct api_request request = {
        .verb = lease->exists ? API_PATCH : API_POST,
        .path = lease->exists ? buf_str(&path) : collection,
        .content_type = lease->exists ? API_MERGE_PATCH : API_JSON,
        .body = buf_str(&body),
    };
    int r = pause_send(session, &request, &tmp, &reply, err);
    if (r == 0 && reply.status == 404) {
        return err_set(err, ERR_NOTFOUND, "the controller's Lease is gone");
    }
    return r;
}

static int pause_pause(struct client_session *session, const struct pause_flags *flags,
                       struct arena *tmp, struct err *err)
{
    struct pause_lease lease;
    char now[TIMESTAMP_TEXT_MAX];
    struct str when = timestamp_print_seconds(loop_wall(session->loop), now);
    struct str reason = flags->reason.n > 0 ? arena_printf(tmp, STR_FMT " (" STR_FMT ")",
                                                           STR_ARG(flags->reason), STR_ARG(when))
                                            : arena_printf(tmp, "since " STR_FMT, STR_ARG(when));
    int r = pause_find(session, flags->ns, tmp, &lease, err);
    if (r == 0 && !lease.exists && flags->ns.n == 0) {
        struct str name = CORE_LEASE_NAME;
        r = err_set(err, ERR_NOTFOUND,
                    "no controller is known to this cluster: there is no Lease '" STR_FMT
                    "'; --namespace NAME makes one, for a controller that runs there without "
                    "election",
                    STR_ARG(name));
    }
    r = r < 0 ? r : pause_write(session, &lease, &reason, err);
    if (r == 0) {
        printf("everything is paused: " STR_FMT "\nthe controller stops within 5 seconds; "
               "'drydock resume' lets it go on\n",
               STR_ARG(reason));
    }
    return r;
}

static int pause_resume(struct client_session *session, const struct pause_flags *flags,
                        struct arena *tmp, struct err *err)
{
    struct pause_lease lease;
    int r = pause_find(session, flags->ns, tmp, &lease, err);
    if (r == 0 && !lease.paused) {
        printf("nothing was paused\n");
        return 0;
    }
    r = r < 0 ? r : pause_write(session, &lease, NULL, err);
    if (r == 0) {
        printf("everything goes on\n");
    }
    return r;
}

static int pause_call(const struct command_call *call,
                      int (*run)(struct client_session *session, const struct pause_flags *flags,
                                 struct arena *tmp, struct err *err))
{
    const struct pause_flags *flags = call->config;
    struct err err = { 0 };
    struct client_session session = { 0 };
    int r = client_session_init(&session, flags->kubeconfig,
                                command_kubecontext(flags->kubecontext), &err);
    session.blocking_api.fail_fast = true;
    if (r == 0 && call->arg_count > 0) {
        r = run == pause_pause ? campaign_pause(&session, call->args[0], &err)
                               : campaign_resume(&session, call->args[0], call->memory, &err);
    } else {
        r = r < 0 ? r : run(&session, flags, call->memory, &err);
    }
    client_session_done(&session);
    return r < 0 ? command_fail(call, &err) : COMMAND_OK;
}

static int pause_run(const struct command_call *call)
{
    return pause_call(call, pause_pause);
}

static int resume_run(const struct command_call *call)
{
    return pause_call(call, pause_resume);
}

const struct command command_pause = {
    .name = "pause",
    .args = "[NODEMAINTENANCE]",
    .args_max = 1,
    .summary = "stop all new maintenance and all drains",
    .text = "With a NodeMaintenance: nothing new of that one starts, by the label " KEY_HOLD_TEXT
            ".\n\nWithout: pauses everything that the controller of the cluster does on its own: "
            "no node goes "
            "into maintenance, no request is approved, no pod is evicted, until 'drydock resume'. "
            "Drains of profiles stand still with their cordon; requests that were being prepared "
            "wait again. What is in maintenance or approved already belongs to whoever works "
            "there, and comes back as always. It is the annotation " KEY_ALL_PAUSED_TEXT " of the "
            "controller's Lease, so it outlives restarts and new leaders, and kubectl annotate "
            "does the same.\n\n"
            "Exit code 0: it is paused. 1: it could not be. 2: the command line is wrong.",
    .options = { .options = pause_options, .count = ARRAY_LEN(pause_options) },
    .config_size = sizeof(struct pause_flags),
    .run = pause_run,
};

const struct command command_resume = {
    .name = "resume",
    .args = "[NODEMAINTENANCE]",
    .args_max = 1,
    .summary = "let maintenance and drains go on after a pause",
    .text =
        "Ends what 'drydock pause' began. A NodeMaintenance that failures have stopped goes on, "
        "too: machines that failed are tried again.\n\n"
        "Exit code 0: nothing is paused any more. 1: it could not be ended. 2: the command "
        "line is wrong.",
    .options = { .options = pause_options, .count = RESUME_OPTIONS },
    .config_size = sizeof(struct pause_flags),
    .run = resume_run,
};
