/*
 * What happens to the rules that nodes are drained by.
 */
#include "tests/swarm/actions.h"

static void admin_request(struct sim_run *t, const char *method, const char *path, struct str type,
                          struct str body)
{
    int status = sim_run_admin_request(t, method, str_from(path), type, body);
    ASSERT(status == 200 || status == 201);
}

static void set_drain_rules(struct sim_run *t, struct str node, uint32_t known)
{
    sim_run_set_node_meta(t, node, "annotations", CHECK_DRAIN_RULES_KEY,
                          check_drain_rules_text(known));
    if (t->verbose) {
        struct str text = check_drain_rules_text(known);
        (void)fprintf(stderr, "%12.3f s rules of " STR_FMT ": " STR_FMT "\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(node), STR_ARG(text));
    }
}

/* Which node comes `at`-th, or NONE. */
struct node_search {
    struct arena *out;
    uint32_t at;
    uint32_t n;
    struct str name;
};

static void node_search_visit(void *ctx, const struct jval *node)
{
    struct node_search *c = ctx;
    if (c->n++ == c->at) {
        c->name = arena_str(c->out, jval_str(jval_at(node, "metadata.name")));
    }
}

static struct str node_by_index(struct sim_run *t, uint32_t at)
{
    struct node_search c = { .out = &t->tmp, .at = at };
    apiserver_each(t->server, STR(""), STR("nodes"), STR(""), node_search_visit, &c);
    return c.name;
}

void sim_run_init_drain_rules(struct sim_run *t)
{
    struct rng *rng = &t->rules_rng;
    rng_init(rng, t->scenario->seed ^ 0x6e2b91c5ULL);
    if (!rng_chance(rng, 667)) {
        return;
    }
    t->service.rules.on = true;
    admin_request(t, "PATCH", "/api/v1/namespaces/default", STR("application/merge-patch+json"),
                  STR("{\"metadata\":{\"labels\":{\"team\":\"a\"}}}"));
    for (uint32_t i = 0; i < CHECK_DRAIN_RULES_APPS; i++) {
        admin_request(
            t, "POST", "/apis/apps/v1/namespaces/default/deployments", STR("application/json"),
            arena_printf(&t->tmp,
                         "{\"metadata\":{\"name\":\"rule-%u\"},\"spec\":{\"replicas\":%u,"
                         "\"selector\":{\"matchLabels\":{\"app\":\"r%u\"}},\"template\":{"
                         "\"metadata\":{\"labels\":{\"app\":\"r%u\"}},\"spec\":{\"containers\":[{"
                         "\"name\":\"c\",\"image\":\"i\"}]}}}}",
                         i, 2 + rng_below(rng, 4), i, i));
    }
    uint32_t nodes = apiserver_count(t->server, STR(""), STR("nodes"));
    for (uint32_t i = 0; i < nodes; i++) {
        if (rng_chance(rng, 700)) {
            set_drain_rules(t, node_by_index(t, i), rng_below(rng, check_drain_rules_count()));
        }
    }
    t->rules_at = rng_usec(rng, SECONDS(10), MINUTES(8));
}

void sim_run_change_drain_rules(struct sim_run *t)
{
    struct rng *rng = &t->rules_rng;
    struct str node = node_by_index(t, rng_below(rng, 12));
    if (node.n > 0) {
        set_drain_rules(t, node, rng_below(rng, check_drain_rules_count() + 1));
    }
    t->rules_at = virtual_loop_now(t->vloop) + rng_usec(rng, SECONDS(5), MINUTES(8));
}

void sim_run_recover_drain_rules(struct sim_run *t)
{
    t->rules_at = USEC_NEVER;
    if (!t->service.rules.on) {
        return;
    }
    for (uint32_t i = 0;; i++) {
        struct str node = node_by_index(t, i);
        if (node.n == 0) {
            return;
        }
        const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
        struct str text =
            jval_str(jval_get(jval_at(object, "metadata.annotations"), CHECK_DRAIN_RULES_KEY));
        for (uint32_t known = 0; known < check_drain_rules_count(); known++) {
            if (check_drain_rules_may_block(known) && str_eq(text, check_drain_rules_text(known))) {
                set_drain_rules(t, node, 1);
            }
        }
    }
}
