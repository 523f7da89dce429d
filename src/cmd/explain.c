#include "bridge/machine_report.h"
#include "cmd/report_fetch.h"
#include "cmd/commands.h"
#include "kube/client.h"
#include "request/limits_report.h"

static int explain_print(struct str json, enum report_format form, struct buf *out, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct node_report report;
    int r = node_report_parse(json, &tmp, &report, err);
    if (r < 0) {
        return r;
    }
    node_report_print_text(&report, form, out);
    return 0;
}

static int explain_print_limits(struct str json, enum report_format form, struct buf *out,
                                struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root;
    struct limits_report limits_report;
    int r = json_parse(json, 0, &tmp, &root, err);
    r = r < 0 ? r : limits_report_read(root, &tmp, &limits_report, err);
    if (r < 0) {
        return r;
    }
    limits_report_print_text(&limits_report, form == NODE_REPORT_WIDE, out);
    return 0;
}

static int explain_print_machine(struct str json, enum report_format form, struct buf *out,
                                 struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct machine_report machine_report;
    int r = machine_report_parse(json, &tmp, &machine_report, err);
    if (r < 0) {
        return r;
    }
    machine_report_print_text(&machine_report, form == NODE_REPORT_WIDE, out);
    return 0;
}

/* Every shard knows every Machine, but says little about those of others. */
static bool explain_is_elsewhere(struct str json)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    struct machine_report machine_report;
    return machine_report_parse(json, &tmp, &machine_report, &ignored) == 0 && !machine_report.ours;
}

/* What can be asked about. */
static const struct explain_kind {
    const char *name;
    enum leader_kind leader_kind;
    node_report_fetch_print print;
    bool (*is_elsewhere)(struct str json);
} explain_kinds[] = {
    { "node", LEADER_CONTROLLER, explain_print, NULL },
    { "request", LEADER_CONTROLLER, explain_print_limits, NULL },
    { "limit", LEADER_CONTROLLER, explain_print_limits, NULL },
    { "machine", LEADER_BRIDGE, explain_print_machine, explain_is_elsewhere },
};

/* One argument is a node's name, whatever it is; before a second one stands what that is. */
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
        if (!str_eq(wanted, str_from(kind->name))) {
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
    (void)err_set(err, ERR_INVALID, "'" STR_FMT "': want node, request, limit or machine",
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
    return node_report_fetch_run(call, &(struct node_report_query){
                                           .leader_kind = kind->leader_kind,
                                           .path = buf_str(&path),
                                           .print = kind->print,
                                           .is_elsewhere = kind->is_elsewhere,
                                       });
}

const struct command command_explain = {
    .name = "explain",
    .args = "[node|request|limit|machine] NAME",
    .summary = "say what a node, request, limit or Machine waits for",
    .text = "Shows for every profile of the node and every transition out of its state the "
            "expression, each check's answer with its reason, and when it could change. Checks "
            "that stand in the way are marked with '*'. Requests and reservations that concern the "
            "node are named with what they wait for.\n\n"
            "'request NAME' shows what a MaintenanceRequest waits for, who stands in its way, and "
            "what would help; NAME may be its target's. 'limit NAME' shows a MaintenanceLimit with "
            "its numbers, what is held under it, and its queue.\n\n"
            "'machine NAMESPACE/NAME' asks a bridge in the management cluster, not a controller: "
            "it shows what the deletion or the maintenance of a Machine of Cluster API waits for, "
            "how its workload cluster and its Node are seen, and what would be written next.\n\n"
            "Exit code 0: it was shown. 1: the controller could not be asked, or there is no such "
            "thing. 2: the command line is wrong.",
    .options = { .options = node_report_fetch_options, .count = NODE_REPORT_FETCH_OPTION_COUNT },
    .config_size = sizeof(struct node_report_fetch_flags),
    .args_min = 1,
    .args_max = 2,
    .run = explain_run,
};
