/*
 * What becomes of a pod, by the rules of its drain; and what a caller may ask of a drain under way.
 */
#include "base/alloc.h"
#include "drain/drain_internal.h"

/* What has finished runs nowhere: nobody misses it, whoever made it and whatever it kept. */
static enum drain_lot lot_of_rest(const struct drain *d, const struct drain_pod *pod,
                                  enum drain_wait *ret_wait)
{
    uint32_t rules = d->forcing ? 0 : d->spec.rules;
    if (pod->finished) {
        bool goes = d->book.given || (d->spec.rules & DRAIN_FINISHED) != 0;
        return goes ? DRAIN_GOES : DRAIN_STAYS;
    }
    if ((rules & DRAIN_BAR_UNMANAGED) != 0 && !pod->managed) {
        *ret_wait = DRAIN_WAIT_UNMANAGED;
        return DRAIN_BARRED;
    }
    if ((rules & DRAIN_BAR_LOCAL) != 0 && pod->local) {
        *ret_wait = DRAIN_WAIT_LOCAL;
        return DRAIN_BARRED;
    }
    return DRAIN_GOES;
}

static enum drain_lot lot_of_daemon(const struct drain *d, const struct drain_pod *pod,
                                    enum drain_wait *ret_wait)
{
    /* Its controller would put it there again at once, so not even force helps. */
    bool barred = (d->spec.rules & DRAIN_BAR_DAEMONS) != 0 && !d->forcing && !pod->finished;
    *ret_wait = barred ? DRAIN_WAIT_DAEMON : DRAIN_WAIT_NONE;
    return barred ? DRAIN_BARRED : DRAIN_STAYS;
}

/* Force goes on without what cannot be known, but not because it is not known yet: a rule may skip
 * the pod. */
static bool lot_is_unknown(const struct drain *d, int asked)
{
    bool soon = asked == -ERR_NOTFOUND && drains_await_spaces(d->drains, loop_now(d->drains->loop));
    return asked < 0 && (!d->forcing || soon);
}

static enum drain_pod_wish lot_wish(const struct drain *d, const struct drain_pod *pod)
{
    bool counts = d->book.given || (d->spec.rules & DRAIN_WISHES) != 0;
    return counts ? pod->wish : DRAIN_WISH_NONE;
}

/* Of a DaemonSet that counts as such: Cluster API sends finished pods away, whoever made them. */
static bool lot_is_daemon(const struct drain *d, const struct drain_pod *pod)
{
    return pod->daemon && !(d->book.given && pod->finished);
}

enum drain_lot drain_patient_lot(const struct drain_patient *p, enum drain_wait *ret_wait)
{
    const struct drain *d = p->drain;
    struct drain_pod *pod = drain_patient_pod(p);
    const struct rulebook_rule *rule = NULL;
    enum drain_pod_wish wish = lot_wish(d, pod);
    bool meant = d->spec.pods == NULL || selector_match(d->spec.pods, drain_pod_lookup, pod);
    if (pod->mirror || !meant || wish == DRAIN_WISH_SKIP) {
        return DRAIN_STAYS;
    }
    if (lot_is_daemon(d, pod)) {
        return lot_of_daemon(d, pod, ret_wait);
    }
    if (lot_is_unknown(d, drain_ask_book(p, &rule))) {
        *ret_wait = DRAIN_WAIT_RULES;
        return DRAIN_BARRED;
    }
    if (rule != NULL && rule->behavior == RULEBOOK_SKIP) {
        return DRAIN_STAYS;
    }
    bool waits = wish == DRAIN_WISH_COMPLETION || (rule != NULL && rule->behavior == RULEBOOK_WAIT);
    if (waits && pod->finished && !d->book.given) {
        return DRAIN_STAYS;
    }
    if (waits && !d->forcing) {
        *ret_wait = DRAIN_WAIT_COMPLETION;
        return DRAIN_WAITED;
    }
    return lot_of_rest(d, pod, ret_wait);
}

void drain_force(struct drain *d)
{
    if (!d->forcing) {
        d->forcing = true;
        d->spec.force = true;
        d->spec.eviction_timeout = 0;
        d->spec.deletion_timeout = DRAIN_FORCE_PATIENCE;
        drain_mark(d);
    }
}

void drain_look(struct drain *d)
{
    if (!d->looking) {
        d->looking = true;
        drain_mark(d);
    }
}

void drain_unreachable(struct drain *d, bool unreachable)
{
    if (d->unreachable != unreachable) {
        d->unreachable = unreachable;
        drain_mark(d);
    }
}

bool drain_wait_is_calm(enum drain_wait wait)
{
    return wait == DRAIN_WAIT_COMPLETION || wait == DRAIN_WAIT_ORDER;
}

uint32_t drain_waiters(const struct drain *d, struct arena *out, struct drain_waiter *ret,
                       uint32_t max)
{
    CLEANUP(buf_done)
    struct buf reason = { 0 };
    uint32_t n = 0;
    for (int calm = 0; calm <= 1; calm++) {
        LIST_EACH (&d->patients, link) {
            const struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
            if (p->wait == DRAIN_WAIT_NONE || drain_wait_is_calm(p->wait) != (calm == 1) ||
                n++ >= max) {
                continue;
            }
            buf_reset(&reason);
            drain_explain(p, &reason);
            ret[n - 1] = (struct drain_waiter){
                .space = arena_str(out, drain_space(p->item)),
                .pod = arena_str(out, drain_name(p->item)),
                .wait = p->wait,
                .reason = arena_str(out, buf_str(&reason)),
            };
        }
    }
    return n;
}

/* It is left where it is on purpose, be it meant or not. */
static bool lot_is_skipped(const struct drain_patient *p)
{
    const struct drain *d = p->drain;
    const struct drain_pod *pod = drain_patient_pod(p);
    const struct rulebook_rule *rule = NULL;
    if (pod->mirror || lot_is_daemon(d, pod) || lot_wish(d, pod) == DRAIN_WISH_SKIP) {
        return true;
    }
    int r = drain_ask_book(p, &rule);
    return r == 0 && rule != NULL && rule->behavior == RULEBOOK_SKIP;
}

void drain_each_claim(const struct drain *d,
                      void (*fn)(void *ctx, struct str space, struct str claim), void *ctx)
{
    LIST_EACH (&d->patients, link) {
        const struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
        const struct drain_pod *pod = drain_patient_pod(p);
        bool skipped = pod->claim_count > 0 && lot_is_skipped(p);
        for (uint32_t i = 0; skipped && i < pod->claim_count; i++) {
            fn(ctx, drain_space(p->item), pod->claims[i]);
        }
    }
}
