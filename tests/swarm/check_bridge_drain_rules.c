/*
 * What is judged of drain rules (B23): who is asked finds the rules that apply to its Machine
 * beside the request, they are those of the server, and go with the last request.
 *
 * The rules are read here with eyes of their own. Those of a run are simple: selectors have one
 * label each.
 */
#include "drain/drain_rules.h"
#include "kinds/keys.h"
#include "tests/swarm/check_bridge_internal.h"

#define LISTED_RULES_MAX 16u

struct rule_list {
    const struct jval *rules[LISTED_RULES_MAX];
    uint32_t n;
};

static void rule_list_visit(void *ctx, const struct jval *rule)
{
    struct rule_list *list = ctx;
    ASSERT(list->n < LISTED_RULES_MAX);
    uint32_t at = list->n++;
    struct str name = text_at(rule, "metadata.name");
    for (; at > 0 && str_cmp(text_at(list->rules[at - 1], "metadata.name"), name) > 0; at--) {
        list->rules[at] = list->rules[at - 1];
    }
    list->rules[at] = rule;
}

static bool selector_matches(const struct jval *selector, const struct jval *object)
{
    JVAL_EACH (jval_get(selector, STR("matchLabels")), wanted) {
        if (!str_eq(jval_str(wanted), label_of(object, jval_key(wanted)))) {
            return false;
        }
    }
    return true;
}

static bool rule_applies(const struct jval *rule, const struct jval *machine,
                         const struct jval *cluster)
{
    const struct jval *machines = jval_at(rule, "spec.machines");
    JVAL_EACH (machines, entry) {
        if (selector_matches(jval_get(entry, STR("selector")), machine) &&
            selector_matches(jval_get(entry, STR("clusterSelector")), cluster)) {
            return true;
        }
    }
    return machines == NULL;
}

static void print_rule(struct buf *out, const struct jval *rule)
{
    int64_t order = 0;
    (void)jval_i64(jval_at(rule, "spec.drain.order"), &order); /* 0 without one */
    buf_printf(out, "%s{\"name\":\"" STR_FMT "\",\"behavior\":\"" STR_FMT "\"",
               out->n > 1 ? "," : "", STR_ARG(text_at(rule, "metadata.name")),
               STR_ARG(text_at(rule, "spec.drain.behavior")));
    if (order != 0) {
        buf_printf(out, ",\"order\":%lld", (long long)order);
    }
    const struct jval *pods = jval_first(jval_at(rule, "spec.pods"));
    const struct jval *label = jval_first(jval_at(pods, "selector.matchLabels"));
    if (label != NULL) {
        buf_printf(out, ",\"pods\":[{\"selector\":\"" STR_FMT "=" STR_FMT "\"}]",
                   STR_ARG(jval_key(label)), STR_ARG(jval_str(label)));
    }
    buf_add_char(out, '}');
}

/* What that Machine's Node should have beside a request; of an error only how it begins. */
static void print_rules(struct check_bridge *t, const struct check_bridge_machine *m,
                        struct buf *out)
{
    const struct check_bridge_cluster *c = &t->clusters[m->cluster];
    const struct jval *machine =
        apiserver_find(t->management, CHECK_CAPI_GROUP, STR("machines"), m->namespace, m->name);
    const struct jval *cluster =
        apiserver_find(t->management, CHECK_CAPI_GROUP, STR("clusters"), c->namespace, c->name);
    struct rule_list list = { 0 };
    apiserver_each(t->management, CHECK_CAPI_GROUP, STR("machinedrainrules"), m->namespace,
                   rule_list_visit, &list);
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < list.n; i++) {
        const struct jval *rule = list.rules[i];
        if (str_eq(text_at(rule, "spec.drain.behavior"), CHECK_BRIDGE_BAD_BEHAVIOR)) {
            buf_reset(out);
            buf_printf(out, "{\"error\":\"MachineDrainRule '" STR_FMT "': ",
                       STR_ARG(text_at(rule, "metadata.name")));
            return;
        }
        if (rule_applies(rule, machine, cluster)) {
            print_rule(out, rule);
        }
    }
    buf_add_char(out, ']');
}

bool check_bridge_drain_rules_match(struct check_bridge *t, const struct check_bridge_machine *m,
                                    const struct jval *node)
{
    CLEANUP(buf_done)
    struct buf wanted = { 0 };
    struct str text = annotation_of(node, KEY_DRAIN_RULES);
    print_rules(t, m, &wanted);
    bool error = str_starts(buf_str(&wanted), STR("{"));
    return error ? str_starts(text, buf_str(&wanted)) : str_eq(text, buf_str(&wanted));
}

/* The first rule that means the pod decides; there is no other reason to leave one where it is. */
static bool pod_is_skipped(const struct rule_list *applying, const struct jval *pod)
{
    for (uint32_t i = 0; i < applying->n; i++) {
        const struct jval *rule = applying->rules[i];
        const struct jval *pods = jval_first(jval_at(rule, "spec.pods"));
        if (pods == NULL || selector_matches(jval_get(pods, STR("selector")), pod)) {
            return str_eq(text_at(rule, "spec.drain.behavior"), STR("Skip"));
        }
    }
    return false;
}

struct pod_search {
    const struct rule_list *applying;
    struct str node;
    bool remaining; /* some pod that must go */
};

static void pod_search_visit(void *ctx, const struct jval *pod)
{
    struct pod_search *search = ctx;
    search->remaining = search->remaining || (str_eq(text_at(pod, "spec.nodeName"), search->node) &&
                                              !pod_is_skipped(search->applying, pod));
}

bool check_bridge_is_drained(struct check_bridge *t, const struct check_bridge_machine *m)
{
    const struct check_bridge_cluster *c = &t->clusters[m->cluster];
    const struct jval *node =
        m->node.n == 0 ? NULL : apiserver_find(c->server, STR(""), STR("nodes"), STR(""), m->node);
    const struct jval *machine =
        apiserver_find(t->management, CHECK_CAPI_GROUP, STR("machines"), m->namespace, m->name);
    const struct jval *cluster =
        apiserver_find(t->management, CHECK_CAPI_GROUP, STR("clusters"), c->namespace, c->name);
    struct rule_list all = { 0 };
    struct rule_list applying = { 0 };
    if (node == NULL || machine == NULL || !jval_bool(jval_at(node, "spec.unschedulable"), false)) {
        return false;
    }
    apiserver_each(t->management, CHECK_CAPI_GROUP, STR("machinedrainrules"), m->namespace,
                   rule_list_visit, &all);
    for (uint32_t i = 0; i < all.n; i++) {
        if (str_eq(text_at(all.rules[i], "spec.drain.behavior"), CHECK_BRIDGE_BAD_BEHAVIOR)) {
            return false;
        }
        if (rule_applies(all.rules[i], machine, cluster)) {
            applying.rules[applying.n++] = all.rules[i];
        }
    }
    struct pod_search search = { .applying = &applying, .node = m->node };
    apiserver_each(c->server, STR(""), STR("pods"), STR(""), pod_search_visit, &search);
    return !search.remaining;
}

static bool has_request(const struct jval *node, bool *ret_anew, const struct jval *old)
{
    bool any = false;
    for (unsigned i = 0; i < CHECK_BRIDGE_KINDS; i++) {
        struct check_bridge_keys keys = request_keys((enum check_bridge_kind)i);
        if (label_is_true(node, keys.requested)) {
            any = true;
            *ret_anew =
                *ret_anew || !label_is_true(old, keys.requested) ||
                !str_eq(annotation_of(old, keys.request), annotation_of(node, keys.request));
        }
    }
    return any;
}

void check_bridge_drain_rules(struct check_bridge *t, uint32_t cluster,
                              const struct apiserver_commit *commit, usec_t lag)
{
    bool is_new = false;
    const struct check_bridge_machine *m = check_bridge_node_owner(t, cluster, commit->name);
    struct str was = annotation_of(commit->old, KEY_DRAIN_RULES);
    struct str is = annotation_of(commit->now, KEY_DRAIN_RULES);
    const char *wrong = NULL;
    if (!has_request(commit->now, &is_new, commit->old)) {
        wrong = is.p != NULL ? "leaves drain rules without a request" : NULL;
    } else if (is.p == NULL && (is_new || was.p != NULL)) {
        wrong = "asks without the drain rules";
    } else if ((is_new || was.p == NULL || !str_eq(was, is)) && m != NULL && is.p != NULL &&
               t->now - t->clusters[cluster].rules_at >= lag &&
               !check_bridge_drain_rules_match(t, m, commit->now)) {
        wrong = "writes drain rules that are not the Machine's";
    }
    if (wrong != NULL) {
        check_violation(
            t->basic, "B23: " STR_FMT " %s, at Node " STR_FMT " of " STR_FMT "/" STR_FMT,
            STR_ARG(commit->user_agent), wrong, STR_ARG(commit->name),
            STR_ARG(t->clusters[cluster].namespace), STR_ARG(t->clusters[cluster].name));
    }
}

/* ── when they have changed ────────────────────────────────────────────────────────────────── */

void check_bridge_on_drain_rules(struct check_bridge *t, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    bool rule = str_eq(commit->plural, STR("machinedrainrules"));
    bool machine = str_eq(commit->plural, STR("machines"));
    struct str key = machine ? CHECK_BRIDGE_TIER_LABEL : CHECK_BRIDGE_ENV_LABEL;
    struct str name = machine ? text_at(object, "spec.clusterName") : commit->name;
    if (!rule && str_eq(label_of(commit->old, key), label_of(commit->now, key))) {
        return;
    }
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        struct check_bridge_cluster *c = &t->clusters[i];
        if (str_eq(c->namespace, commit->namespace) && (rule || str_eq(c->name, name))) {
            c->rules_at = t->now;
            check_bridge_update_drained(t, i);
        }
    }
}
