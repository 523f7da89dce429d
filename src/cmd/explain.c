/* drydock explain: prints what a node, request, limit, NodeMaintenance or Machine waits for, as the
 * controller or bridge that is in charge of it says. */
#include "cmd/commands.h"
#include "cmd/report_fetch.h"
#include "kube/client.h"

/* What can be asked about. */
static const struct explain_kind {
    const char *name;
    const char *also; /* its short name in kubectl; NULL = none */
    enum leader_kind leader_kind;
    enum report_about about;
    unsigned names;
} explain_kinds[] = {
    { "node", NULL, LEADER_CONTROLLER, REPORT_ABOUT_NODE, COMMAND_NAMES_NODES },
    { "request", NULL, LEADER_CONTROLLER, REPORT_ABOUT_REQUEST, COMMAND_NAMES_REQUESTS },
    { "limit", NULL, LEADER_CONTROLLER, REPORT_ABOUT_LIMIT, COMMAND_NAMES_LIMITS },
    { "nodemaintenance", "ndm", LEADER_CONTROLLER, REPORT_ABOUT_MAINTENANCE,
      COMMAND_NAMES_MAINTENANCES },
    { "machine", NULL, LEADER_BRIDGE, REPORT_ABOUT_MACHINE, COMMAND_NAMES_MACHINES },
};

static bool explain_is(const struct explain_kind *kind, struct str word)
{
    return str_eq(word, str_from(kind->name)) ||
           (kind->also != NULL && str_eq(word, str_from(kind->also)));
}

/* One argument alone is the name of a node. With two arguments the first one is the kind. */
static const struct explain_kind *explain_find(const struct command_call *call, struct err *err)
{
    if (call->arg_count == 1) {
        return &explain_kinds[0];
    }
    struct str wanted = call->args[0];
    struct str name = call->args[1];
    for (size_t i = 0; i < ARRAY_LEN(explain_kinds); i++) {
        const struct explain_kind *kind = &explain_kinds[i];
        struct str namespace;
        struct str rest;
        if (!explain_is(kind, wanted)) {
            continue;
        }
        bool whole = str_cut(name, STR("/"), &namespace, &rest) && namespace.n > 0 && rest.n > 0;
        if (kind->leader_kind == LEADER_BRIDGE && !whole) {
            (void)err_set(err, ERR_INVALID, "machine '" STR_FMT "': want NAMESPACE/NAME",
                          STR_ARG(name));
            return NULL;
        }
        return kind;
    }
    (void)err_set(err, ERR_INVALID,
                  "'" STR_FMT "': want node, request, limit, nodemaintenance or machine",
                  STR_ARG(wanted));
    return NULL;
}

static int explain_run(const struct command_call *call)
{
    struct err err = { 0 };
    const struct explain_kind *kind = explain_find(call, &err);
    if (kind == NULL) {
        (void)command_fail(call, &err); /* the exit code is that of a wrong command line */
        return COMMAND_USAGE;
    }
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_printf(&path, "/api/v1/explain?%s=", kind->name);
    client_add_segment(&path, call->args[call->arg_count - 1]);
    return report_fetch_run(call, &(struct report_query){
                                      .leader_kind = kind->leader_kind,
                                      .about = kind->about,
                                      .path = buf_str(&path),
                                  });
}

/* The name of a node, or a kind and then one of its names. */
static unsigned explain_names(const struct command_call *call)
{
    if (call->arg_count == 0) {
        return COMMAND_NAMES_KINDS | COMMAND_NAMES_NODES;
    }
    for (size_t i = 0; i < ARRAY_LEN(explain_kinds); i++) {
        if (explain_is(&explain_kinds[i], call->args[0])) {
            return explain_kinds[i].names;
        }
    }
    return 0;
}

const struct command command_explain = {
    .name = "explain",
    .args = "[node|request|limit|nodemaintenance|machine] NAME",
    .summary = "say what a node, request, limit, NodeMaintenance or Machine waits for",
    .text =
        "Shows for every profile of the node and every transition out of its state the "
        "expression, each check's answer with its reason, and when it could change. Checks "
        "that stand in the way are marked with '*'. Requests, reservations and NodeMaintenances "
        "that concern the node are named with what they wait for.\n\n"
        "'request NAME' shows what a MaintenanceRequest waits for, who stands in its way, and "
        "what would help; NAME may be its target's. 'limit NAME' shows a MaintenanceLimit with "
        "its numbers, what is held under it, and its queue.\n\n"
        "'nodemaintenance NAME', or 'ndm NAME', shows how a NodeMaintenance stands: its "
        "window, its operations and waves, the visits under way with what each waits for, "
        "and what failed with the end of its output.\n\n"
        "'machine NAMESPACE/NAME' asks a bridge in the management cluster, not a controller: "
        "it shows what the deletion or the maintenance of a Machine of Cluster API waits for, "
        "how its workload cluster and its Node are seen, and what would be written next.\n\n"
        "Exit code 0: it was shown. 1: the controller could not be asked, or there is no such "
        "thing. 2: the command line is wrong.",
    .options = { .options = report_fetch_options, .count = REPORT_FETCH_OPTION_COUNT },
    .config_size = sizeof(struct report_fetch_flags),
    .args_min = 1,
    .args_max = 2,
    .run = explain_run,
    .names = explain_names,
};
