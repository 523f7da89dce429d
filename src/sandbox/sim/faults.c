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

/* Zero half of the time, so that runs differ in kind and not only in number. */
static uint32_t faults_rate(struct faults *f, uint32_t most)
{
    return rng_chance(&f->rng, 500) ? 0 : 1 + rng_below(&f->rng, most);
}

void faults_randomize(struct faults *f)
{
    f->latency_max = rng_usec(&f->rng, f->latency_min, MSECONDS(200));
    f->slow = faults_rate(f, 20);
    f->request_lost = faults_rate(f, 50);
    f->reply_lost = faults_rate(f, 50);
    f->refused = faults_rate(f, 30);
    f->error_429 = faults_rate(f, 50);
    f->error_500 = faults_rate(f, 30);
    f->error_503 = faults_rate(f, 30);
    f->error_504 = faults_rate(f, 30);
    f->watch_cut = faults_rate(f, 500);
    f->watch_dead = faults_rate(f, 100);
    f->watch_life = rng_usec(&f->rng, SECONDS(1), MINUTES(30));
    f->watch_stall = faults_rate(f, 20);
    f->watch_stall_max = rng_usec(&f->rng, SECONDS(1), MINUTES(5));
    f->watch_garbled = faults_rate(f, 3);
    f->bookmark_lost = faults_rate(f, 1000);
    f->cancel_executes = rng_below(&f->rng, 1001);
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
