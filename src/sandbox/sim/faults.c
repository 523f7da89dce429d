#include "sandbox/sim/faults.h"

#define FAULTS_LATENCY_MIN MSECONDS(1)
#define FAULTS_LATENCY_MAX MSECONDS(3)

void faults_init(struct faults *f, uint64_t seed)
{
    *f = (struct faults){
        .latency_min = FAULTS_LATENCY_MIN,
        .latency_max = FAULTS_LATENCY_MAX,
        .latency_slow = SECONDS(20),
        .watch_life = MINUTES(10),
        .watch_stall_max = MINUTES(2),
        .cancel_executes = 500,
    };
    rng_init(&f->rng, seed);
    list_init(&f->orphans);
}

void faults_done(struct faults *f)
{
    while (f->orphans.next != NULL && !list_empty(&f->orphans)) {
        struct faults_orphan *orphan = CONTAINER_OF(f->orphans.next, struct faults_orphan, link);
        list_del(&orphan->link);
        orphan->drop(orphan);
    }
}

usec_t faults_latency(struct faults *f)
{
    if (f->slow > 0 && faults_happens(f, f->slow)) {
        return rng_usec(&f->rng, f->latency_max, MAX(f->latency_max, f->latency_slow));
    }
    return f->latency_max > f->latency_min ? rng_usec(&f->rng, f->latency_min, f->latency_max)
                                           : f->latency_min;
}

bool faults_happens(struct faults *f, uint32_t per_mille)
{
    /* Nothing is drawn for what cannot happen: it would cost, and calm runs stay comparable. */
    if (per_mille == 0 || f->calm || !rng_chance(&f->rng, per_mille)) {
        return false;
    }
    f->injected++;
    return true;
}
