/* Jobs that have ended: the newest of each operation stay, for people; the others go. */
#include "operation/operations_internal.h"

#include <stdlib.h>

static int job_cmp(const void *a, const void *b)
{
    const struct job_state *x = *(const struct job_state *const *)a;
    const struct job_state *y = *(const struct job_state *const *)b;
    int cmp = str_cmp(x->maintenance, y->maintenance);
    cmp = cmp != 0 ? cmp : str_cmp(x->operation, y->operation);
    cmp = cmp != 0 ? cmp : (int)x->state - (int)y->state;
    if (cmp != 0) {
        return cmp;
    }
    if (x->finished != y->finished) {
        return x->finished > y->finished ? -1 : 1; /* the newest first */
    }
    return str_cmp(x->name, y->name);
}

/* A visit may still want to know how it ended. */
static bool job_is_needed(const struct operations *o, const struct job_state *job)
{
    if (gate_job_is_needed(o, job->name)) {
        return true;
    }
    const struct turn_machine *machine = operations_machine(o, job->machine);
    return machine != NULL && machine->state != NULL && machine->state->visit.phase != VISIT_NONE;
}

static void job_history_on_deleted(void *ctx, const struct api_reply *reply)
{
    struct operations *o = ctx;
    o->trim_call = NULL;
    o->in_flight--;
    (void)client_note(&o->core->client, API_DELETE, reply); /* the next look tells what is left */
    operations_schedule(o);
}

static void job_delete(struct operations *o, const struct job_state *job)
{
    buf_reset(&o->path);
    buf_add(&o->path, STR("/apis/batch/v1/namespaces/"));
    client_add_segment(&o->path, o->config.jobs_namespace);
    buf_add(&o->path, STR("/jobs/"));
    client_add_segment(&o->path, job->name);
    job_print_delete(job, "Background", &o->body);
    o->in_flight++;
    o->trim_call =
        api_send(o->core->client.api,
                 &(struct api_request){
                     .verb = API_DELETE, .path = buf_str(&o->path), .body = buf_str(&o->body) },
                 job_history_on_deleted, o);
}

void job_history_trim(struct operations *o)
{
    uint32_t count = store_count(&o->jobs.store);
    const struct job_state **jobs = ARENA_ARRAY(&o->tmp, const struct job_state *, count);
    uint32_t n = 0;
    if (o->trim_call != NULL || !operations_may_send(o) || !client_open(&o->core->client)) {
        return;
    }
    MAP_EACH (&o->jobs.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct job_state *job = item->object;
        if (job->state != RUN_JOB_ACTIVE && !job->deleting && !job_is_needed(o, job)) {
            jobs[n++] = job;
        }
    }
    if (n > 0) {
        qsort(jobs, n, sizeof(jobs[0]), job_cmp);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool same = i > 0 && str_eq(jobs[i]->maintenance, jobs[i - 1]->maintenance) &&
                    str_eq(jobs[i]->operation, jobs[i - 1]->operation) &&
                    jobs[i]->state == jobs[i - 1]->state;
        const struct campaign *c = operations_campaign_named(o, jobs[i]->maintenance);
        uint32_t keep = c == NULL                             ? 0
                        : jobs[i]->state == RUN_JOB_SUCCEEDED ? c->m->keep_succeeded
                                                              : c->m->keep_failed;
        kept = same ? kept + 1 : 1;
        if (kept > keep) {
            job_delete(o, jobs[i]);
            return; /* one at a time: nobody waits for it */
        }
    }
}
