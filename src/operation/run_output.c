/* How a run ended, as its pod tells: the Job itself only says whether it did. */
#include "operation/operations_internal.h"

#define OUTPUT_RETRY SECONDS(2)
#define PODS_LIMIT "5" /* a Job of ours makes one pod; one that was replaced makes two */

void run_output_done(struct run_output *r)
{
    /* Whoever has the call has cancelled it. */
    arena_done(&r->memory);
    buf_done(&r->job);
    *r = (struct run_output){ 0 };
}

/* The API server's own words for a pod that was taken away from its machine. */
static bool pod_was_taken_away(const struct jval *pod)
{
    JVAL_EACH (jval_at(pod, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("DisruptionTarget")) &&
            str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"))) {
            return true;
        }
    }
    struct str reason = jval_str(jval_at(pod, "status.reason"));
    return str_eq(reason, STR("Evicted")) || str_eq(reason, STR("Preempting")) ||
           str_eq(reason, STR("NodeLost")) || str_eq(reason, STR("Terminated")) ||
           str_eq(reason, STR("NodeShutdown"));
}

static void run_output_read_pod(struct run_output *r, const struct jval *pod)
{
    const struct jval *container = jval_first(jval_at(pod, "status.containerStatuses"));
    const struct jval *end = jval_at(container, "state.terminated");
    struct str text = jval_str(jval_get(end, STR("message")));
    int64_t code = 0;
    run_job_read_message(text, &r->memory, &r->message);
    if (!r->message.said && jval_i64(jval_get(end, STR("exitCode")), &code)) {
        /* An image of somebody else's: its own last words, and its exit code. */
        r->message.said = true;
        r->message.exit_code = code;
        r->message.nothing_to_do = code == RUN_JOB_NOTHING_TO_DO;
        r->message.output = run_job_clean_output(text, &r->memory);
    }
    r->taken_away = pod_was_taken_away(pod);
    r->image_pulled = jval_str(jval_get(container, STR("imageID"))).n > 0;
    struct str reason = jval_str(jval_at(pod, "status.reason"));
    r->pod_reason = arena_str(&r->memory, reason.n > 0 ? reason : STR("Disrupted"));
}

void run_output_read_pods(struct run_output *r, const struct jval *list)
{
    const struct jval *last = NULL;
    JVAL_EACH (jval_get(list, STR("items")), pod) {
        last = pod;
    }
    if (last != NULL) {
        run_output_read_pod(r, last);
    }
}

void run_output_add_path(const struct operations *o, struct str job, struct buf *path)
{
    buf_add(path, STR("/api/v1/namespaces/"));
    client_add_segment(path, o->config.jobs_namespace);
    buf_add(path,
            STR("/pods?limit=" PODS_LIMIT "&labelSelector=batch.kubernetes.io%2Fjob-name%3D"));
    client_add_segment(path, job);
}

static void run_output_on_pods(void *ctx, const struct api_reply *reply)
{
    struct work *w = ctx;
    struct run_output *r = &w->output;
    struct operations *o = w->o;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *list = NULL;
    struct err err = { 0 };
    r->call = NULL;
    enum retry_verdict verdict = client_note(&o->core->client, API_GET, reply);
    if (verdict != RETRY_DONE || json_parse(reply->body, JSON_GO, &tmp, &list, &err) < 0) {
        r->state = RUN_OUTPUT_NONE;
        r->retry_at = loop_now(o->loop) + OUTPUT_RETRY;
        loop_timer_pull(&o->turn, r->retry_at);
        return;
    }
    run_output_read_pods(r, list);
    r->state = RUN_OUTPUT_KNOWN;
    operations_schedule(o);
}

bool run_output_know(struct work *w, const struct job_state *job)
{
    struct run_output *r = &w->output;
    struct operations *o = w->o;
    if (!str_eq(buf_str(&r->job), job->name) && r->call == NULL) {
        run_output_done(r);
        buf_add(&r->job, job->name);
    }
    if (r->state == RUN_OUTPUT_KNOWN && str_eq(buf_str(&r->job), job->name)) {
        return true;
    }
    if (r->call != NULL || !client_open(&o->core->client)) {
        return false;
    }
    if (loop_now(o->loop) < r->retry_at) {
        loop_timer_pull(&o->turn, r->retry_at);
        return false;
    }
    buf_reset(&o->path);
    run_output_add_path(o, job->name, &o->path);
    r->state = RUN_OUTPUT_READING;
    r->call = api_send(o->core->client.api,
                       &(struct api_request){ .verb = API_GET, .path = buf_str(&o->path) },
                       run_output_on_pods, w);
    return false;
}
