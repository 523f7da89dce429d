/* What is kept of the Jobs that carry out runs. */
#include "operation/operations_internal.h"

static usec_t job_finished(const struct jval *job)
{
    usec_t at = jval_time(jval_at(job, "status.completionTime"), 0);
    JVAL_EACH (jval_at(job, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Failed"))) {
            at = jval_time(jval_get(condition, STR("lastTransitionTime")), at);
        }
    }
    return at;
}

static int job_state_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                             void **ret, struct err *err UNUSED)
{
    struct job_state *j = ARENA_NEW(out, struct job_state);
    const struct jval *labels = jval_at(object, "metadata.labels");
    const struct jval *notes = jval_at(object, "metadata.annotations");
    struct run_job_end end;
    run_job_read_end(object, out, &end);
    *j = (struct job_state){
        .name = arena_str(out, jval_str(jval_at(object, "metadata.name"))),
        .uid = arena_str(out, jval_str(jval_at(object, "metadata.uid"))),
        .maintenance = arena_str(out, jval_str(jval_get(labels, KEY_JOB_MAINTENANCE))),
        .operation = arena_str(out, jval_str(jval_get(labels, KEY_JOB_OPERATION))),
        .machine = arena_str(out, jval_str(jval_get(notes, KEY_JOB_MACHINE))),
        .state = end.state,
        .reason = end.reason,
        .finished = end.state == RUN_JOB_ACTIVE ? 0 : job_finished(object),
        .deleting = jval_str(jval_at(object, "metadata.deletionTimestamp")).n > 0,
    };
    JVAL_EACH (jval_at(object, "metadata.ownerReferences"), owner) {
        if (str_eq(jval_str(jval_get(owner, STR("kind"))), STR("NodeMaintenance"))) {
            j->owner_uid = arena_str(out, jval_str(jval_get(owner, STR("uid"))));
        }
    }
    *ret = j;
    return 0;
}

static bool job_state_same(const void *left, const void *right)
{
    const struct job_state *a = left;
    const struct job_state *b = right;
    return a->state == b->state && a->deleting == b->deleting && str_eq(a->uid, b->uid) &&
           str_eq(a->owner_uid, b->owner_uid);
}

/* In the body: a server that finds one does not look at the query, and by default leaves the pods
 * of a Job behind. */
void job_print_delete(const struct job_state *job, const char *propagation, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    buf_reset(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("v1"));
    jw_pair(&w, "kind", STR("DeleteOptions"));
    jw_pair(&w, "propagationPolicy", str_from(propagation));
    jw_key(&w, STR("preconditions"));
    jw_obj(&w);
    jw_pair(&w, "uid", job->uid);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

const struct store_kind job_state_kind = {
    .name = "job",
    .namespaced = true,
    .project = job_state_project,
    .same = job_state_same,
};
