/*
 * What is judged when everything that was wrong has ended long ago.
 */
#include "drain/drain_rules.h"
#include "kinds/keys.h"
#include "tests/swarm/check_bridge_internal.h"

struct end_check {
    struct check_bridge *t;
    uint32_t cluster;
    bool found;
};

static const struct jval *node_find(struct check_bridge *t, uint32_t cluster, struct str name)
{
    return name.n == 0
               ? NULL
               : apiserver_find(t->clusters[cluster].server, STR(""), STR("nodes"), STR(""), name);
}

static const struct jval *machine_find(struct check_bridge *t, const struct check_bridge_machine *m)
{
    return m == NULL ? NULL
                     : apiserver_find(t->management, CHECK_CAPI_GROUP, STR("machines"),
                                      m->namespace, m->name);
}

/* B21: without this one too few of a control plane would be left, for ever. */
struct control_plane {
    const struct jval *machine;
    uint32_t members;
    uint32_t others; /* with a Node, that stay */
};

static void control_plane_visit(void *ctx, const struct jval *object)
{
    struct control_plane *plane = ctx;
    if (jval_get(jval_at(object, "metadata.labels"), KEY_CONTROL_PLANE) == NULL ||
        !str_eq(text_at(object, "spec.clusterName"), text_at(plane->machine, "spec.clusterName"))) {
        return;
    }
    plane->members++;
    bool other = !str_eq(text_at(object, "metadata.uid"), text_at(plane->machine, "metadata.uid"));
    bool stays = text_at(object, "status.nodeRef.name").n > 0 && !is_deleting(object);
    plane->others += other && stays ? 1 : 0;
}

static bool is_quorum_needed(struct check_bridge *t, const struct jval *machine)
{
    struct control_plane plane = { .machine = machine };
    if (jval_get(jval_at(machine, "metadata.labels"), KEY_CONTROL_PLANE) == NULL) {
        return false;
    }
    apiserver_each(t->management, CHECK_CAPI_GROUP, STR("machines"),
                   text_at(machine, "metadata.namespace"), control_plane_visit, &plane);
    return plane.members > 1 && plane.others < plane.members / 2 + 1;
}

static void end_machine(void *ctx, const struct jval *object)
{
    struct end_check *end = ctx;
    struct check_bridge *t = end->t;
    const struct check_bridge_machine *m = map_find(&t->machines, text_at(object, "metadata.uid"));
    const struct jval *node = node_find(t, m->cluster, m->node);
    bool enabled = label_is_true(object, KEY_ENABLED);
    bool hook = has_annotation(object, KEY_HOOK);
    bool waits_for_node = m->node.n > 0 && node == NULL && t->options.missing_holds;
    const char *error = NULL;
    if (is_deleting(object) && !(waits_for_node && hook && enabled)) {
        error = "is still being deleted";
    } else if (!enabled && hook) {
        error = "is disabled and has the hook";
    } else if (enabled && !hook && node != NULL && is_managed(node) && !t->options.strict) {
        error = "has no hook";
    } else if (enabled && node != NULL && is_managed(node) &&
               str_eq(label_of(object, KEY_MAINTENANCE), KEY_REQUESTED) &&
               !is_quorum_needed(t, object)) {
        error = "still waits for its maintenance";
    }
    if (error != NULL) {
        check_violation(t->basic, "I9: Machine " STR_FMT "/" STR_FMT " %s in the end",
                        STR_ARG(m->namespace), STR_ARG(m->name), error);
    }
}

static void end_drain_rules(const struct end_check *end, const struct check_bridge_machine *m,
                            const struct jval *node, bool wanted)
{
    const struct check_bridge_cluster *c = &end->t->clusters[end->cluster];
    struct str name = text_at(node, "metadata.name");
    const char *error = NULL;
    if (!wanted && has_annotation(node, KEY_DRAIN_RULES)) {
        error = "carries drain rules without a request";
    } else if (wanted && !check_bridge_drain_rules_match(end->t, m, node)) {
        error = "does not carry the drain rules of its Machine";
    }
    if (error != NULL) {
        struct str text = annotation_of(node, KEY_DRAIN_RULES);
        check_violation(end->t->basic,
                        "B23: Node " STR_FMT " of " STR_FMT "/" STR_FMT " %s in the end: " STR_FMT,
                        STR_ARG(name), STR_ARG(c->namespace), STR_ARG(c->name), error,
                        STR_ARG(text));
    }
}

static void end_node(void *ctx, const struct jval *node)
{
    struct end_check *end = ctx;
    struct check_bridge *t = end->t;
    struct str name = text_at(node, "metadata.name");
    const struct check_bridge_cluster *c = &t->clusters[end->cluster];
    const struct check_bridge_machine *m = check_bridge_node_owner(t, end->cluster, name);
    const struct jval *machine = machine_find(t, m);
    bool enabled = machine != NULL && label_is_true(machine, KEY_ENABLED);
    bool managed = is_managed(node);
    struct str label = label_of(machine, KEY_MAINTENANCE);
    if (machine == NULL && label_is_true(node, CHECK_BRIDGE_FORGED_LABEL)) {
        return; /* it carries another cluster's request: perhaps the two share a server */
    }
    if (machine == NULL && !check_bridge_cluster_needed(t, end->cluster)) {
        return; /* nobody is there any more who could tell that there was something to clean */
    }
    const bool wanted[CHECK_BRIDGE_KINDS] = {
        [CHECK_BRIDGE_DELETION] = enabled && managed && is_deleting(machine),
        [CHECK_BRIDGE_MAINTENANCE] =
            enabled && managed && (str_eq(label, KEY_REQUESTED) || str_eq(label, KEY_APPROVED)),
    };
    if (!enabled && c->wrong_secret.last > 0) {
        return; /* another cluster, which a Secret named, has no such Node: that counted as clean */
    }
    for (unsigned i = 0; i < CHECK_BRIDGE_KINDS; i++) {
        struct check_bridge_keys keys = request_keys((enum check_bridge_kind)i);
        bool requested = label_is_true(node, keys.requested);
        /* The number of the last request may stay: it asks for nothing. */
        bool has_request_name = has_annotation(node, keys.request);
        if (requested != wanted[i] || (requested && !has_request_name)) {
            check_violation(t->basic,
                            "I9: Node " STR_FMT " of " STR_FMT "/" STR_FMT " %s " STR_FMT
                            " in the end%s",
                            STR_ARG(name), STR_ARG(c->namespace), STR_ARG(c->name),
                            wanted[i] ? "does not carry" : "carries", STR_ARG(keys.requested),
                            machine == NULL ? ", and has no Machine" : "");
        }
    }
    end_drain_rules(end, m, node,
                    wanted[CHECK_BRIDGE_DELETION] || wanted[CHECK_BRIDGE_MAINTENANCE]);
}

void check_bridge_at_end(struct check_bridge *t, usec_t now)
{
    struct end_check end = { .t = t };
    t->now = now;
    apiserver_each(t->management, CHECK_CAPI_GROUP, STR("machines"), STR(""), end_machine, &end);
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        end.cluster = i;
        apiserver_each(t->clusters[i].server, STR(""), STR("nodes"), STR(""), end_node, &end);
    }
    if (t->options.metal3) {
        check_bridge_hosts_at_end(t);
    }
}

static void cluster_needed_visit(void *ctx, const struct jval *machine)
{
    struct end_check *end = ctx;
    const struct check_bridge_cluster *c = &end->t->clusters[end->cluster];
    end->found = end->found || (label_is_true(machine, KEY_ENABLED) &&
                                str_eq(text_at(machine, "metadata.namespace"), c->namespace) &&
                                str_eq(text_at(machine, "spec.clusterName"), c->name));
}

bool check_bridge_cluster_needed(struct check_bridge *t, uint32_t cluster)
{
    const struct check_bridge_cluster *c = &t->clusters[cluster];
    struct end_check end = { .t = t, .cluster = cluster };
    if (apiserver_find(t->management, CHECK_CAPI_GROUP, STR("clusters"), c->namespace, c->name) ==
        NULL) {
        return false;
    }
    apiserver_each(t->management, CHECK_CAPI_GROUP, STR("machines"), STR(""), cluster_needed_visit,
                   &end);
    return end.found;
}
