/* The gate `job`: a Job that exits with 0 when all is well, with 75 to be asked again, and with
 * anything else to say that waiting is of no use. On the machine of the visit; for a wave anywhere,
 * without access to a host. */
#include "operation/operations_internal.h"

#define GATE_JOB_OPERATION STR("gate") /* label of such Jobs, and part of their names */
#define GATE_JOB_ASKS_MAX 20u          /* of one visit or wave: each is a pod */
#define GATE_JOB_TIMEOUT MINUTES(10)
#define GATE_JOB_LOST MINUTES(1) /* a Job that was made and is not seen for that long is gone */
#define EXIT_ASK_AGAIN 75        /* EX_TEMPFAIL of sysexits.h */

static const struct job_state *gate_find_job(const struct gate_question *q)
{
    const struct operations *o = q->o;
    struct str key = arena_printf(&q->o->tmp, STR_FMT "/" STR_FMT,
                                  STR_ARG(o->config.jobs_namespace), STR_ARG(buf_str(&q->job)));
    const struct store_item *item = store_find(&o->jobs.store, key);
    return item != NULL ? item->object : NULL;
}

bool gate_job_is_needed(const struct operations *o, struct str job)
{
    LIST_EACH (&o->questions, link) {
        const struct gate_question *q = CONTAINER_OF(link, struct gate_question, link);
        if (q->job.n > 0 && str_eq(buf_str(&q->job), job)) {
            return true;
        }
    }
    return false;
}

/* One at a time for each object. */
static bool gate_job_must_wait(const struct gate_question *q)
{
    LIST_EACH (&q->o->questions, link) {
        const struct gate_question *other = CONTAINER_OF(link, struct gate_question, link);
        if (other != q && other->job.n > 0 && str_eq(other->maintenance_uid, q->maintenance_uid)) {
            return true;
        }
    }
    return false;
}

/* One that whoever led before has made for the same machine goes on. */
static bool gate_job_adopt(struct gate_question *q)
{
    MAP_EACH (&q->o->jobs.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct job_state *job = item->object;
        if (job->state == RUN_JOB_ACTIVE && !job->deleting &&
            str_eq(job->operation, GATE_JOB_OPERATION) &&
            str_eq(job->owner_uid, q->maintenance_uid) && str_eq(job->machine, q->machine)) {
            buf_add(&q->job, job->name);
            return true;
        }
    }
    return false;
}

static void gate_job_give_up(struct gate_question *q, const char *why)
{
    gate_question_answer(q, GATE_REFUSES, "%s", why);
    q->final = true;
}

void gate_job_ask(struct gate_question *q)
{
    struct operations *o = q->o;
    struct err err = { 0 };
    struct run_job_spec spec = {
        .namespace = o->config.jobs_namespace,
        .machine = q->machine,
        .machine_uid = q->machine_uid,
        .maintenance = q->maintenance,
        .maintenance_uid = q->maintenance_uid,
        .operation = GATE_JOB_OPERATION,
        .revision = q->revision,
        .attempt = q->asks + 1,
        .visit = arena_printf(&o->tmp, STR_FMT "@%lld", STR_ARG(q->key), (long long)o->now),
        .timeout = MIN(q->timeout, GATE_JOB_TIMEOUT),
        .payload = q->fields,
        .runner_image = o->config.runner_image,
        .priority_class = o->config.priority_class,
        .no_host = q->machine.n == 0,
    };
    if (gate_job_must_wait(q) || store_count(&o->jobs.store) >= o->config.jobs_max ||
        gate_job_adopt(q)) {
        return; /* the end of a Job asks for a turn */
    }
    buf_reset(&o->body);
    if (q->asks >= GATE_JOB_ASKS_MAX) {
        gate_job_give_up(q, "its Job was asked 20 times, and that is enough");
    } else if (o->config.runner_image.n == 0 && jval_get(q->fields, STR("image")) == NULL) {
        gate_job_give_up(q, "scripts need the controller's flag --runner-image, the image of "
                            "drydock that runs them on machines");
    } else if (run_job_print(&spec, &o->body, &err) < 0) {
        gate_job_give_up(q, err.msg);
    } else {
        q->asks++;
        buf_add(&q->job, run_job_name(&spec, &o->tmp));
        buf_reset(&q->path);
        buf_add(&q->path, STR("/apis/batch/v1/namespaces/"));
        client_add_segment(&q->path, o->config.jobs_namespace);
        buf_add(&q->path, STR("/jobs"));
        gate_question_post(q, buf_str(&o->body));
    }
}

void gate_job_step(struct gate_question *q)
{
    const struct job_state *job = gate_find_job(q);
    struct operations *o = q->o;
    if (job == NULL) {
        usec_t lost = q->began + GATE_JOB_LOST;
        if (loop_now(o->loop) < lost) {
            loop_timer_pull(&o->turn, lost);
        } else {
            gate_question_answer(q, GATE_REFUSES, "%s", "its Job is gone");
        }
    } else if (job->state == RUN_JOB_SUCCEEDED) {
        gate_question_answer(q, GATE_PASSES, "%s", "");
    } else if (job->state == RUN_JOB_FAILED) {
        buf_reset(&q->path);
        run_output_add_path(o, job->name, &q->path);
        gate_question_get(q);
    }
}

/* The pods of a Job that has failed. */
void gate_job_read(struct gate_question *q, const struct jval *list)
{
    struct run_output end = { 0 };
    if (jval_get(list, STR("items")) == NULL) {
        return; /* the Job that was made: the watch tells of its end */
    }
    run_output_read_pods(&end, list);
    const struct run_job_message *m = &end.message;
    if (end.taken_away) {
        gate_question_answer(q, GATE_REFUSES, "%s", "the pod of its Job was taken away");
    } else if (m->said && m->exit_code == EXIT_ASK_AGAIN) {
        gate_question_answer(q, GATE_REFUSES, "its Job says: not yet (exit code 75) " STR_FMT,
                             STR_ARG(m->output));
    } else if (m->said) {
        gate_question_answer(q, GATE_REFUSES, "its Job failed with exit code %lld " STR_FMT,
                             (long long)m->exit_code, STR_ARG(m->output));
        q->final = true;
    } else {
        gate_question_answer(q, GATE_REFUSES, "%s", "its Job failed, and its pod does not say how");
        q->final = true;
    }
    run_output_done(&end);
}
