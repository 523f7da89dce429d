/*
 * What becomes of a pod, by the rules of its drain; and what a caller may ask of a drain under way.
 */
#include "base/heap.h"
#include "drain/room.h"

/* What has finished runs nowhere: nobody misses it, whoever made it and whatever it kept. */
static enum drain_lot lot_of_rest(const struct drain *d, const struct drain_pod *pod,
                                  enum drain_wait *ret_wait)
{
    uint32_t rules = d->forcing ? 0 : d->spec.rules;
    if (pod->finished) {
        return (d->spec.rules & DRAIN_FINISHED) != 0 ? DRAIN_GOES : DRAIN_STAYS;
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

enum drain_lot drain_patient_lot(const struct drain_patient *p, enum drain_wait *ret_wait)
{
    const struct drain *d = p->drain;
    struct drain_pod *pod = drain_patient_pod(p);
    enum drain_pod_wish wish = (d->spec.rules & DRAIN_WISHES) != 0 ? pod->wish : DRAIN_WISH_NONE;
    bool meant = d->spec.pods == NULL || selector_match(d->spec.pods, drain_pod_lookup, pod);
    if (pod->mirror || !meant || wish == DRAIN_WISH_SKIP) {
        return DRAIN_STAYS;
    }
    if (pod->daemon) {
        /* Its controller would put it there again at once, so not even force helps. */
        bool barred = (d->spec.rules & DRAIN_BAR_DAEMONS) != 0 && !d->forcing && !pod->finished;
        *ret_wait = barred ? DRAIN_WAIT_DAEMON : DRAIN_WAIT_NONE;
        return barred ? DRAIN_BARRED : DRAIN_STAYS;
    }
    if (wish == DRAIN_WISH_COMPLETION && pod->finished) {
        return DRAIN_STAYS;
    }
    if (wish == DRAIN_WISH_COMPLETION && !d->forcing) {
        *ret_wait = DRAIN_WAIT_COMPLETION;
        return DRAIN_WAITED;
    }
    return lot_of_rest(d, pod, ret_wait);
}

bool drain_is_barred(const struct drain *d)
{
    LIST_EACH (&d->patients, link) {
        const struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
        enum drain_wait ignored = DRAIN_WAIT_NONE;
        if (!drain_patient_pod(p)->deleting && drain_patient_lot(p, &ignored) == DRAIN_BARRED) {
            return true;
        }
    }
    return false;
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

uint32_t drain_waiters(const struct drain *d, struct arena *out, struct drain_waiter *ret,
                       uint32_t max)
{
    CLEANUP(buf_done)
    struct buf reason = { 0 };
    uint32_t n = 0;
    LIST_EACH (&d->patients, link) {
        const struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
        if (p->wait == DRAIN_WAIT_NONE || n++ >= max) {
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
    return n;
}

void drain_each_claim(const struct drain *d,
                      void (*fn)(void *ctx, struct str space, struct str claim), void *ctx)
{
    bool wishes = (d->spec.rules & DRAIN_WISHES) != 0;
    LIST_EACH (&d->patients, link) {
        const struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
        const struct drain_pod *pod = drain_patient_pod(p);
        bool skipped = wishes ? drain_pod_is_skipped(pod) : pod->daemon || pod->mirror;
        for (uint32_t i = 0; skipped && i < pod->claim_count; i++) {
            fn(ctx, drain_space(p->item), pod->claims[i]);
        }
    }
}
