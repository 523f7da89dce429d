/* faults_randomize: the mixture of faults of one simulated run (faults.h). Only tests link it. */
#include "sandbox/sim/faults.h"

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
