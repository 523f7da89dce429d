/*
 * What is judged of drain rules (B-16): who is asked finds the rules that apply to its Machine
 * beside the request, they are those of the server, and go with the last request.
 *
 * The rules are read here with eyes of their own. Those of a run are simple: selectors have one
 * label each.
 */
#include "drain/drain_rules.h"
#include "tests/swarm/check_bridge_internal.h"

#define BOOK_RULES_MAX 16u

struct shelf {
    const struct jval *rules[BOOK_RULES_MAX];
    uint32_t n;
};

static void shelf_visit(void *ctx, const struct jval *rule)
{
    struct shelf *shelf = ctx;
    ASSERT(shelf->n < BOOK_RULES_MAX);
    uint32_t at = shelf->n++;
    struct str name = text_at(rule, "metadata.name");
    for (; at > 0 && str_cmp(text_at(shelf->rules[at - 1], "metadata.name"), name) > 0; at--) {
        shelf->rules[at] = shelf->rules[at - 1];
    }
    shelf->rules[at] = rule;
}

static bool selects(const struct jval *selector, const struct jval *object)
{
    JVAL_EACH (jval_get(selector, STR("matchLabels")), wanted) {
        if (!str_eq(jval_str(wanted), label_of(object, jval_key(wanted)))) {
            return false;
        }
    }
    return true;
}

static bool applies(const struct jval *rule, const struct jval *machine, const struct jval *cluster)
{
    const struct jval *machines = jval_at(rule, "spec.machines");
    JVAL_EACH (machines, entry) {
        if (selects(jval_get(entry, STR("selector")), machine) &&
            selects(jval_get(entry, STR("clusterSelector")), cluster)) {
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
static void print_book(struct treaty *t, const struct treaty_machine *m, struct buf *out)
{
    const struct treaty_cluster *c = &t->clusters[m->cluster];
    const struct jval *machine =
        apiserver_find(t->home, TREATY_GROUP, STR("machines"), m->space, m->name);
    const struct jval *cluster =
        apiserver_find(t->home, TREATY_GROUP, STR("clusters"), c->space, c->name);
    struct shelf shelf = { 0 };
    apiserver_each(t->home, TREATY_GROUP, STR("machinedrainrules"), m->space, shelf_visit, &shelf);
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < shelf.n; i++) {
        const struct jval *rule = shelf.rules[i];
        if (str_eq(text_at(rule, "spec.drain.behavior"), TREATY_NO_BEHAVIOR)) {
            buf_reset(out);
            buf_printf(out, "{\"error\":\"MachineDrainRule '" STR_FMT "': ",
                       STR_ARG(text_at(rule, "metadata.name")));
            return;
        }
        if (applies(rule, machine, cluster)) {
            print_rule(out, rule);
        }
    }
    buf_add_char(out, ']');
}

bool treaty_book_is_right(struct treaty *t, const struct treaty_machine *m, const struct jval *node)
{
    CLEANUP(buf_done)
    struct buf wanted = { 0 };
    struct str book = note_of(node, DRAIN_RULES_ANNOTATION);
    print_book(t, m, &wanted);
    bool error = str_starts(buf_str(&wanted), STR("{"));
    return error ? str_starts(book, buf_str(&wanted)) : str_eq(book, buf_str(&wanted));
}

/* The first rule that means the pod decides; there is no other reason to leave one where it is. */
static bool pod_stays(const struct shelf *applying, const struct jval *pod)
{
    for (uint32_t i = 0; i < applying->n; i++) {
        const struct jval *rule = applying->rules[i];
        const struct jval *pods = jval_first(jval_at(rule, "spec.pods"));
        if (pods == NULL || selects(jval_get(pods, STR("selector")), pod)) {
            return str_eq(text_at(rule, "spec.drain.behavior"), STR("Skip"));
        }
    }
    return false;
}

struct sweep {
    const struct shelf *applying;
    struct str node;
    bool left; /* some pod that must go */
};

static void sweep_visit(void *ctx, const struct jval *pod)
{
    struct sweep *sweep = ctx;
    sweep->left = sweep->left || (str_eq(text_at(pod, "spec.nodeName"), sweep->node) &&
                                  !pod_stays(sweep->applying, pod));
}

bool treaty_is_drained(struct treaty *t, const struct treaty_machine *m)
{
    const struct treaty_cluster *c = &t->clusters[m->cluster];
    const struct jval *node =
        m->node.n == 0 ? NULL : apiserver_find(c->server, STR(""), STR("nodes"), STR(""), m->node);
    const struct jval *machine =
        apiserver_find(t->home, TREATY_GROUP, STR("machines"), m->space, m->name);
    const struct jval *cluster =
        apiserver_find(t->home, TREATY_GROUP, STR("clusters"), c->space, c->name);
    struct shelf all = { 0 };
    struct shelf applying = { 0 };
    if (node == NULL || machine == NULL || !jval_bool(jval_at(node, "spec.unschedulable"), false)) {
        return false;
    }
    apiserver_each(t->home, TREATY_GROUP, STR("machinedrainrules"), m->space, shelf_visit, &all);
    for (uint32_t i = 0; i < all.n; i++) {
        if (str_eq(text_at(all.rules[i], "spec.drain.behavior"), TREATY_NO_BEHAVIOR)) {
            return false;
        }
        if (applies(all.rules[i], machine, cluster)) {
            applying.rules[applying.n++] = all.rules[i];
        }
    }
    struct sweep sweep = { .applying = &applying, .node = m->node };
    apiserver_each(c->server, STR(""), STR("pods"), STR(""), sweep_visit, &sweep);
    return !sweep.left;
}

static bool asks(const struct jval *node, bool *ret_anew, const struct jval *old)
{
    bool any = false;
    for (unsigned i = 0; i < TREATY_KINDS; i++) {
        struct treaty_keys keys = keys_of((enum treaty_kind)i);
        if (is_true(node, keys.asked)) {
            any = true;
            *ret_anew = *ret_anew || !is_true(old, keys.asked) ||
                        !str_eq(note_of(old, keys.request), note_of(node, keys.request));
        }
    }
    return any;
}

void treaty_check_book(struct treaty *t, uint32_t cluster, const struct apiserver_commit *commit,
                       usec_t lag)
{
    bool anew = false;
    const struct treaty_machine *m = treaty_owner(t, cluster, commit->name);
    struct str was = note_of(commit->old, DRAIN_RULES_ANNOTATION);
    struct str is = note_of(commit->now, DRAIN_RULES_ANNOTATION);
    const char *wrong = NULL;
    if (!asks(commit->now, &anew, commit->old)) {
        wrong = is.p != NULL ? "leaves drain rules without a request" : NULL;
    } else if (is.p == NULL && (anew || was.p != NULL)) {
        wrong = "asks without the drain rules";
    } else if ((anew || was.p == NULL || !str_eq(was, is)) && m != NULL && is.p != NULL &&
               t->now - t->clusters[cluster].rules_at >= lag &&
               !treaty_book_is_right(t, m, commit->now)) {
        wrong = "writes drain rules that are not the Machine's";
    }
    if (wrong != NULL) {
        promise_break(t->promise,
                      "B-16: " STR_FMT " %s, at Node " STR_FMT " of " STR_FMT "/" STR_FMT,
                      STR_ARG(commit->user_agent), wrong, STR_ARG(commit->name),
                      STR_ARG(t->clusters[cluster].space), STR_ARG(t->clusters[cluster].name));
    }
}

/* ── when they have changed ────────────────────────────────────────────────────────────────── */

void treaty_note_rules(struct treaty *t, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    bool rule = str_eq(commit->plural, STR("machinedrainrules"));
    bool machine = str_eq(commit->plural, STR("machines"));
    struct str key = machine ? TREATY_TIER : TREATY_ENV;
    struct str name = machine ? text_at(object, "spec.clusterName") : commit->name;
    if (!rule && str_eq(label_of(commit->old, key), label_of(commit->now, key))) {
        return;
    }
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        struct treaty_cluster *c = &t->clusters[i];
        if (str_eq(c->space, commit->namespace) && (rule || str_eq(c->name, name))) {
            c->rules_at = t->now;
            treaty_note_drained(t, i);
        }
    }
}
