#include "core/node_reservation.h"

void node_reservation_init(struct node_reservation *r, struct core *core,
                           void (*on_change)(void *ctx), void *ctx)
{
    *r = (struct node_reservation){ .core = core, .on_change = on_change, .ctx = ctx };
}

void node_reservation_done(struct node_reservation *r)
{
    ask_free(STEAL(r->ask));
}

static void reservation_on_change(void *ctx)
{
    struct node_reservation *r = ctx;
    if (ask_stage(r->ask) == ASK_ENDED) {
        ask_free(STEAL(r->ask));
    }
    r->on_change(r->ctx);
}

static bool reservation_confirm(void *ctx, const struct jval *node)
{
    const struct node_reservation *r = ctx;
    return r->confirm(r->ctx, node);
}

static void reservation_ask(struct node_reservation *r, const struct store_item *item,
                            const struct node_reservation_spec *spec)
{
    const struct node *node = item->object;
    r->told_true = spec->already_true;
    r->confirm = spec->confirm;
    r->ask = ask_new(r->core->arbiter,
                     &(struct ask_spec){
                         .owner = ASK_OF_TARGET,
                         .uid = node->uid,
                         .name = spec->name,
                         .type = TARGET_NODE,
                         .target = item->name,
                         .since = r->since,
                         .state = STR("InMaintenance"),
                         .already_true = spec->already_true,
                         .confirm = reservation_confirm,
                     },
                     reservation_on_change, r);
}

/* Whether another part's reservation covers it. */
static bool reservation_is_covered(const struct node_reservation *r, const struct store_item *item,
                                   struct str *ret_why)
{
    const struct node *node = item->object;
    if (arbiter_holds(r->core->arbiter, node->uid, /* grant= */ 0)) {
        return true;
    }
    *ret_why = STR("another part of the controller asks for the node");
    return false;
}

bool node_reservation_take(struct node_reservation *r, const struct store_item *item,
                           const struct node_reservation_spec *spec, struct str *ret_why)
{
    struct ask_view view;
    r->since = r->since > 0 ? r->since : loop_wall(r->core->loop);
    if (r->core->arbiter == NULL) {
        *ret_why = STR("whether there are limits is not known yet");
        return !r->core->config.use_limits || r->core->limits_known;
    }
    if (r->ask != NULL && spec->already_true && !r->told_true && ask_stage(r->ask) == ASK_WAITING) {
        ask_free(STEAL(r->ask)); /* it is a fact by now, and is not waited for */
    }
    if (r->ask == NULL) {
        reservation_ask(r, item, spec);
    }
    if (r->ask == NULL) {
        return reservation_is_covered(r, item, ret_why);
    }
    ask_view(r->ask, &view);
    *ret_why = view.message.n > 0 ? view.message : STR("its place is being written down");
    return view.stage == ASK_HELD;
}

void node_reservation_give(struct node_reservation *r, const struct core_part *part,
                           const struct store_item *item)
{
    r->since = 0;
    if (r->ask == NULL || ask_stage(r->ask) == ASK_ENDING ||
        core_is_disturbed(r->core, part, item)) {
        return;
    }
    ask_end(r->ask);
    if (ask_stage(r->ask) == ASK_ENDED) {
        ask_free(STEAL(r->ask));
    }
}
