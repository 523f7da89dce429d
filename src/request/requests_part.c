/* Joins the requests to the core, and makes them once the core has an arbiter. */
#include "request/requests_part.h"

#include "drain/cordon.h"
#include "drain/drain_rules.h"
#include "kinds/keys.h"

/* The last two are the bridge's: for which request of a Machine a Node is wanted; see prepare.h. */
static const struct str annotations[] = {
    KEY_REQUEST_CORDON,
    KEY_DRAIN_RULES,
    KEY_DELETION_REQUEST,
    KEY_MAINTENANCE_REQUEST,
};

static struct requests *requests_of(struct core_part *p)
{
    return CONTAINER_OF(p, struct requests_part, part)->requests;
}

static bool requests_part_may_act(void *ctx)
{
    const struct requests_part *p = ctx;
    return core_may_act(p->core);
}

static usec_t requests_part_wall(void *ctx)
{
    const struct requests_part *p = ctx;
    return server_clock_wall(&p->core->client.clock);
}

static void requests_part_on_trouble(void *ctx, const struct core_request_news *news)
{
    const struct requests_part *p = ctx;
    core_tell_request(p->core, news);
}

static void requests_part_on_arbiter(struct core_part *part)
{
    struct requests_part *p = CONTAINER_OF(part, struct requests_part, part);
    struct core *core = p->core;
    if (core->arbiter == NULL) {
        return;
    }
    struct requests_config config = p->config;
    config.client = &core->client;
    config.recorder = &core->recorder;
    config.log = core->log;
    config.metrics = core->config.metrics;
    config.arbiter = core->arbiter;
    config.drains = core->drains;
    config.nodes = &core->nodes.store;
    config.may_act = requests_part_may_act;
    config.wall = requests_part_wall;
    config.on_trouble = requests_part_on_trouble;
    config.ctx = p;
    p->requests = requests_new(&config);
}

static void requests_part_on_node(struct core_part *p, struct store_item *item, const void *before,
                                  bool gone)
{
    if (requests_of(p) != NULL) {
        requests_on_node(requests_of(p), item, before, gone);
    }
}

static void requests_part_on_may_act(struct core_part *p)
{
    if (requests_of(p) != NULL) {
        requests_wake(requests_of(p));
    }
}

static void requests_part_on_arbiter_turn(struct core_part *p)
{
    if (requests_of(p) != NULL) {
        requests_on_arbiter_turn(requests_of(p));
    }
}

/* While the requests are not known, any mark may belong to one of them. */
static bool requests_part_has_mark(struct core_part *p, struct str uid)
{
    return requests_of(p) == NULL || requests_node_has_mark(requests_of(p), uid);
}

static const struct core_part_ops requests_part_ops = {
    .on_arbiter = requests_part_on_arbiter,
    .on_node = requests_part_on_node,
    .on_may_act = requests_part_on_may_act,
    .on_arbiter_turn = requests_part_on_arbiter_turn,
    .has_mark = requests_part_has_mark,
};

void requests_part_init(struct requests_part *p, struct core *core,
                        const struct requests_config *config)
{
    *p = (struct requests_part){ .core = core, .config = *config };
    p->part.annotations = annotations;
    p->part.annotation_n = ARRAY_LEN(annotations);
    core_join(core, &p->part, &requests_part_ops);
}

void requests_part_done(struct requests_part *p)
{
    if (p->core != NULL) {
        core_leave(&p->part);
        requests_free(STEAL(p->requests));
        p->core = NULL;
    }
}
