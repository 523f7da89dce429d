/*
 * What is judged when everything that was wrong has ended long ago.
 */
#include "drain/drain_rules.h"
#include "tests/swarm/check_bridge_internal.h"

struct rest {
    struct treaty *t;
    uint32_t cluster;
    bool found;
};

static const struct jval *node_find(struct treaty *t, uint32_t cluster, struct str name)
{
    return name.n == 0
               ? NULL
               : apiserver_find(t->clusters[cluster].server, STR(""), STR("nodes"), STR(""), name);
}

static const struct jval *machine_find(struct treaty *t, const struct treaty_machine *m)
{
    return m == NULL ? NULL
                     : apiserver_find(t->home, TREATY_GROUP, STR("machines"), m->space, m->name);
}

/* B-14: without this one too few of a control plane would be left, for ever. */
struct plane {
    const struct jval *machine;
    uint32_t members;
    uint32_t others; /* with a Node, that stay */
};

static void plane_visit(void *ctx, const struct jval *object)
{
    struct plane *plane = ctx;
    if (jval_get(jval_at(object, "metadata.labels"), KEY_CONTROL_PLANE) == NULL ||
        !str_eq(text_at(object, "spec.clusterName"), text_at(plane->machine, "spec.clusterName"))) {
        return;
    }
    plane->members++;
    bool other = !str_eq(text_at(object, "metadata.uid"), text_at(plane->machine, "metadata.uid"));
    bool stays = text_at(object, "status.nodeRef.name").n > 0 && !is_deleting(object);
    plane->others += other && stays ? 1 : 0;
}

static bool is_needed(struct treaty *t, const struct jval *machine)
{
    struct plane plane = { .machine = machine };
    if (jval_get(jval_at(machine, "metadata.labels"), KEY_CONTROL_PLANE) == NULL) {
        return false;
    }
    apiserver_each(t->home, TREATY_GROUP, STR("machines"), text_at(machine, "metadata.namespace"),
                   plane_visit, &plane);
    return plane.members > 1 && plane.others < plane.members / 2 + 1;
}

static void rest_machine(void *ctx, const struct jval *object)
{
    struct rest *rest = ctx;
    struct treaty *t = rest->t;
    const struct treaty_machine *m = map_find(&t->machines, text_at(object, "metadata.uid"));
    const struct jval *node = node_find(t, m->cluster, m->node);
    bool enabled = is_true(object, KEY_ENABLED);
    bool hook = has_note(object, KEY_HOOK);
    bool waits = m->node.n > 0 && node == NULL && t->terms.missing_holds;
    const char *wrong = NULL;
    if (is_deleting(object) && !(waits && hook && enabled)) {
        wrong = "is still being deleted";
    } else if (!enabled && hook) {
        wrong = "is disabled and has the hook";
    } else if (enabled && !hook && node != NULL && is_managed(node) && !t->terms.strict) {
        wrong = "has no hook";
    } else if (enabled && node != NULL && is_managed(node) &&
               str_eq(label_of(object, KEY_MAINTENANCE), KEY_REQUESTED) && !is_needed(t, object)) {
        wrong = "still waits for its maintenance";
    }
    if (wrong != NULL) {
        promise_break(t->promise, "I9: Machine " STR_FMT "/" STR_FMT " %s in the end",
                      STR_ARG(m->space), STR_ARG(m->name), wrong);
    }
}

static void rest_book(const struct rest *rest, const struct treaty_machine *m,
                      const struct jval *node, bool wanted)
{
    const struct treaty_cluster *c = &rest->t->clusters[rest->cluster];
    struct str name = text_at(node, "metadata.name");
    const char *wrong = NULL;
    if (!wanted && has_note(node, DRAIN_RULES_ANNOTATION)) {
        wrong = "carries drain rules without a request";
    } else if (wanted && !treaty_book_is_right(rest->t, m, node)) {
        wrong = "does not carry the drain rules of its Machine";
    }
    if (wrong != NULL) {
        struct str book = note_of(node, DRAIN_RULES_ANNOTATION);
        promise_break(rest->t->promise,
                      "B-16: Node " STR_FMT " of " STR_FMT "/" STR_FMT " %s in the end: " STR_FMT,
                      STR_ARG(name), STR_ARG(c->space), STR_ARG(c->name), wrong, STR_ARG(book));
    }
}

static void rest_node(void *ctx, const struct jval *node)
{
    struct rest *rest = ctx;
    struct treaty *t = rest->t;
    struct str name = text_at(node, "metadata.name");
    const struct treaty_cluster *c = &t->clusters[rest->cluster];
    const struct treaty_machine *m = treaty_owner(t, rest->cluster, name);
    const struct jval *machine = machine_find(t, m);
    bool served = machine != NULL && is_true(machine, KEY_ENABLED);
    bool managed = is_managed(node);
    struct str label = label_of(machine, KEY_MAINTENANCE);
    if (machine == NULL && is_true(node, TREATY_STRANGER)) {
        return; /* it carries another cluster's request: perhaps the two share a server */
    }
    if (machine == NULL && !treaty_needs(t, rest->cluster)) {
        return; /* nobody is there any more who could tell that there was something to clean */
    }
    const bool wanted[TREATY_KINDS] = {
        [TREATY_DELETION] = served && managed && is_deleting(machine),
        [TREATY_MAINTENANCE] =
            served && managed && (str_eq(label, KEY_REQUESTED) || str_eq(label, KEY_APPROVED)),
    };
    if (!served && c->astray.last > 0) {
        return; /* another cluster, which a Secret named, has no such Node: that counted as clean */
    }
    for (unsigned i = 0; i < TREATY_KINDS; i++) {
        struct treaty_keys keys = keys_of((enum treaty_kind)i);
        bool asks = is_true(node, keys.asked);
        /* The number of the last request may stay: it asks for nothing. */
        bool names = has_note(node, keys.request);
        if (asks != wanted[i] || (asks && !names)) {
            promise_break(t->promise,
                          "I9: Node " STR_FMT " of " STR_FMT "/" STR_FMT " %s " STR_FMT
                          " in the end%s",
                          STR_ARG(name), STR_ARG(c->space), STR_ARG(c->name),
                          wanted[i] ? "does not carry" : "carries", STR_ARG(keys.asked),
                          machine == NULL ? ", and has no Machine" : "");
        }
    }
    rest_book(rest, m, node, wanted[TREATY_DELETION] || wanted[TREATY_MAINTENANCE]);
}

void treaty_at_rest(struct treaty *t, usec_t now)
{
    struct rest rest = { .t = t };
    t->now = now;
    apiserver_each(t->home, TREATY_GROUP, STR("machines"), STR(""), rest_machine, &rest);
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        rest.cluster = i;
        apiserver_each(t->clusters[i].server, STR(""), STR("nodes"), STR(""), rest_node, &rest);
    }
    if (t->terms.metal3) {
        treaty_host_at_rest(t);
    }
}

static void needs_visit(void *ctx, const struct jval *machine)
{
    struct rest *rest = ctx;
    const struct treaty_cluster *c = &rest->t->clusters[rest->cluster];
    rest->found = rest->found || (is_true(machine, KEY_ENABLED) &&
                                  str_eq(text_at(machine, "metadata.namespace"), c->space) &&
                                  str_eq(text_at(machine, "spec.clusterName"), c->name));
}

bool treaty_needs(struct treaty *t, uint32_t cluster)
{
    const struct treaty_cluster *c = &t->clusters[cluster];
    struct rest rest = { .t = t, .cluster = cluster };
    if (apiserver_find(t->home, TREATY_GROUP, STR("clusters"), c->space, c->name) == NULL) {
        return false;
    }
    apiserver_each(t->home, TREATY_GROUP, STR("machines"), STR(""), needs_visit, &rest);
    return rest.found;
}
