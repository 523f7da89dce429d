/*
 * What happens to the rules that nodes are drained by.
 */
#include "tests/swarm/actions.h"

static void must(struct trial *t, const char *method, const char *path, struct str type,
                 struct str body)
{
    int status = trial_ask(t, method, str_from(path), type, body);
    ASSERT(status == 200 || status == 201);
}

static void set_book(struct trial *t, struct str node, uint32_t book)
{
    trial_set_meta(t, node, "annotations", RULES_KEY, rules_text(book));
    if (t->verbose) {
        struct str text = rules_text(book);
        (void)fprintf(stderr, "%12.3f s rules of " STR_FMT ": " STR_FMT "\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(node), STR_ARG(text));
    }
}

/* Which node comes `at`-th, or NONE. */
struct choice {
    struct arena *out;
    uint32_t at;
    uint32_t n;
    struct str name;
};

static void choice_visit(void *ctx, const struct jval *node)
{
    struct choice *c = ctx;
    if (c->n++ == c->at) {
        c->name = arena_str(c->out, jval_str(jval_at(node, "metadata.name")));
    }
}

static struct str node_at(struct trial *t, uint32_t at)
{
    struct choice c = { .out = &t->tmp, .at = at };
    apiserver_each(t->server, STR(""), STR("nodes"), STR(""), choice_visit, &c);
    return c.name;
}

void trial_begin_rules(struct trial *t)
{
    struct rng *rng = &t->rules_rng;
    rng_init(rng, t->plan->seed ^ 0x6e2b91c5ULL);
    if (!rng_chance(rng, 667)) {
        return;
    }
    t->service.rules.on = true;
    must(t, "PATCH", "/api/v1/namespaces/default", STR("application/merge-patch+json"),
         STR("{\"metadata\":{\"labels\":{\"team\":\"a\"}}}"));
    for (uint32_t i = 0; i < RULES_APPS; i++) {
        must(t, "POST", "/apis/apps/v1/namespaces/default/deployments", STR("application/json"),
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
            set_book(t, node_at(t, i), rng_below(rng, rules_count()));
        }
    }
    t->rules_at = rng_usec(rng, SECONDS(10), MINUTES(8));
}

void trial_change_rules(struct trial *t)
{
    struct rng *rng = &t->rules_rng;
    struct str node = node_at(t, rng_below(rng, 12));
    if (node.n > 0) {
        set_book(t, node, rng_below(rng, rules_count() + 1));
    }
    t->rules_at = virtual_loop_now(t->vloop) + rng_usec(rng, SECONDS(5), MINUTES(8));
}

void trial_calm_rules(struct trial *t)
{
    t->rules_at = USEC_NEVER;
    if (!t->service.rules.on) {
        return;
    }
    for (uint32_t i = 0;; i++) {
        struct str node = node_at(t, i);
        if (node.n == 0) {
            return;
        }
        const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
        struct str text = jval_str(jval_get(jval_at(object, "metadata.annotations"), RULES_KEY));
        for (uint32_t book = 0; book < rules_count(); book++) {
            if (rules_blocks(book) && str_eq(text, rules_text(book))) {
                set_book(t, node, 1);
            }
        }
    }
}
