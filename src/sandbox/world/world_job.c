/* world_job: the controllers of Jobs and CronJobs. */
#include "base/timestamp.h"
#include "sandbox/world/world_internal.h"

#define CONTROLLER "kube-controller-manager"

static void job_finish(struct world_object *t, struct tree *status, const char *type,
                       const char *reason, const char *message)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    const struct jval *old = jval_at(world_object_get(t), "status.conditions");
    bool complete = strcmp(type, "Complete") == 0;
    struct tree *list = tree_arr(a);
    tree_add(list, world_condition(w, old, complete ? "SuccessCriteriaMet" : "FailureTarget",
                                   "True", reason, message));
    tree_add(list, world_condition(w, old, type, "True", reason, message));
    TREE_EACH (list, c) {
        tree_set(a, c, STR("lastProbeTime"),
                 tree_str(a, tree_text(tree_get(c, STR("lastTransitionTime")))));
    }
    tree_set(a, status, STR("conditions"), list);
    if (complete) {
        tree_set(a, status, STR("completionTime"), tree_str(a, world_time(w)));
    }
}

/* Deletes a finished Job when its ttlSecondsAfterFinished is over. */
static void job_delete_after_ttl(struct world_object *t, const struct jval *object)
{
    struct world *w = t->w;
    int64_t ttl = jval_number(object, "spec.ttlSecondsAfterFinished", -1);
    if (ttl < 0) {
        return;
    }
    usec_t now = loop_now(w->loop);
    t->next_at = t->next_at == 0 ? now + SECONDS(ttl) : t->next_at;
    if (now >= t->next_at) {
        struct str path = arena_printf(&w->tmp, STR_FMT "?propagationPolicy=Background",
                                       STR_ARG(world_object_url(t, "")));
        (void)world_send(w, CONTROLLER, "DELETE", path, STR(""), NULL);
    } else {
        world_mark_dirty_at(t, t->next_at);
    }
}

static void job_create_pods(struct world_object *t, int64_t n)
{
    struct arena *a = &t->w->tmp;
    for (int64_t i = 0; i < n; i++) {
        struct tree *pod = workload_new_pod(t, world_object_get(t), STR(""));
        if (pod == NULL) {
            return;
        }
        struct tree *labels = tree_make_at(a, pod, "metadata.labels");
        static const char *const names[] = { "batch.kubernetes.io/job-name", "job-name" };
        static const char *const uids[] = { "batch.kubernetes.io/controller-uid",
                                            "controller-uid" };
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            tree_set(a, labels, str_from(names[k]), tree_str(a, t->name));
            tree_set(a, labels, str_from(uids[k]), tree_str(a, t->uid));
        }
        workload_create_pod(t, pod);
    }
}

/* activeDeadlineSeconds counts from the Job's start. */
static bool job_is_overdue(struct world_object *t, const struct jval *object)
{
    struct world *w = t->w;
    int64_t deadline = jval_number(object, "spec.activeDeadlineSeconds", -1);
    usec_t started = jval_time(jval_at(object, "status.startTime"), 0);
    if (deadline < 0 || started == 0) {
        return false;
    }
    usec_t left = started + SECONDS(deadline) - loop_wall(w->loop);
    if (left > 0) {
        world_mark_dirty_at(t, loop_now(w->loop) + left);
    }
    return left <= 0;
}

void job_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    struct arena *a = &w->tmp;
    if (jval_at(object, "status.completionTime") != NULL ||
        jval_first(jval_at(object, "status.conditions")) != NULL) {
        job_delete_after_ttl(t, object);
        return;
    }
    struct workload_count n = workload_count(t);
    int64_t parallelism = jval_number(object, "spec.parallelism", 1);
    int64_t completions = jval_number(object, "spec.completions", MAX(parallelism, 1));
    int64_t backoff = jval_number(object, "spec.backoffLimit", 6);
    bool suspended = jval_bool(jval_at(object, "spec.suspend"), false);
    bool done = n.succeeded >= completions;
    bool overdue = !done && job_is_overdue(t, object);
    bool failed = !done && (n.failed > backoff || overdue);
    int64_t want = suspended || done || failed ? 0 : MIN(parallelism, completions - n.succeeded);
    struct str started = jval_str(jval_at(object, "status.startTime"));
    struct tree *status = tree_obj(a);
    if (!suspended) {
        tree_set(a, status, STR("startTime"), tree_str(a, started.n > 0 ? started : world_time(w)));
    }
    if (n.alive < want) {
        job_create_pods(t, want - n.alive);
        n = workload_count(t);
    }
    if (suspended || failed) {
        LIST_EACH (&t->children, item) {
            struct world_object *pod = WORLD_OBJECT_OF(item, sibling);
            if (!pod->finished && !pod->deleting) {
                world_object_delete(pod, CONTROLLER, -1);
            }
        }
        n = workload_count(t);
    }
    tree_set(a, status, STR("active"), n.alive > 0 ? tree_i64(a, n.alive) : tree_null(a));
    tree_set(a, status, STR("ready"), tree_i64(a, n.ready));
    tree_set(a, status, STR("succeeded"),
             n.succeeded > 0 ? tree_i64(a, n.succeeded) : tree_null(a));
    tree_set(a, status, STR("failed"), n.failed > 0 ? tree_i64(a, n.failed) : tree_null(a));
    tree_set(a, status, STR("terminating"), tree_i64(a, n.deleting));
    tree_set(a, status, STR("uncountedTerminatedPods"), tree_obj(a));
    if (done) {
        job_finish(t, status, "Complete", "CompletionsReached",
                   "Reached expected number of succeeded pods");
    } else if (failed) {
        job_finish(t, status, "Failed", overdue ? "DeadlineExceeded" : "BackoffLimitExceeded",
                   overdue ? "Job was active longer than specified deadline"
                           : "Job has reached the specified backoff limit");
    }
    world_object_set_status(t, CONTROLLER, status);
}

/* A cron field as a set of minutes, hours, … : "*", "5", "1-5", "1,2", and "/2" behind any. */
static bool cronjob_field(struct str text, uint32_t low, uint32_t high, uint64_t *ret)
{
    struct str piece;
    *ret = 0;
    while (str_split_next(&text, ',', &piece)) {
        struct str range;
        struct str step_text;
        uint32_t step = 1;
        uint32_t from = low;
        uint32_t to = high;
        bool stepped = str_cut(piece, STR("/"), &range, &step_text);
        if (stepped && (!str_to_u32(step_text, &step) || step == 0)) {
            return false;
        }
        if (!str_eq(range, STR("*"))) {
            struct str left;
            struct str right;
            bool two = str_cut(range, STR("-"), &left, &right);
            if (!str_to_u32(left, &from) || (two && !str_to_u32(right, &to))) {
                return false;
            }
            to = two ? to : stepped ? high : from;
        }
        if (from < low || to > high || from > to) {
            return false;
        }
        for (uint32_t i = from; i <= to; i += step) {
            *ret |= (uint64_t)1 << i;
        }
    }
    return *ret != 0;
}

struct cronjob_times {
    uint64_t minute, hour, day, month, weekday;
    bool any_day, any_weekday;
};

static bool cronjob_parse(struct str text, struct cronjob_times *ret)
{
    static const struct {
        const char *name, *means;
    } names[] = { { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },
                  { "@midnight", "0 0 * * *" }, { "@weekly", "0 0 * * 0" },
                  { "@monthly", "0 0 1 * *" },  { "@yearly", "0 0 1 1 *" } };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(text, str_from(names[i].name))) {
            text = str_from(names[i].means);
        }
    }
    struct str field[5];
    for (size_t i = 0; i < 5; i++) {
        text = str_trim(text);
        if (text.n == 0) {
            return false;
        }
        (void)str_cut(text, STR(" "), &field[i], &text);
    }
    ret->any_day = field[2].p[0] == '*';
    ret->any_weekday = field[4].p[0] == '*';
    if (!cronjob_field(field[0], 0, 59, &ret->minute) ||
        !cronjob_field(field[1], 0, 23, &ret->hour) || !cronjob_field(field[2], 1, 31, &ret->day) ||
        !cronjob_field(field[3], 1, 12, &ret->month) ||
        !cronjob_field(field[4], 0, 7, &ret->weekday) || str_trim(text).n > 0) {
        return false;
    }
    ret->weekday |= ret->weekday >> 7; /* 7 is Sunday too */
    return true;
}

/* The first minute after `wall` that the schedule names, in UTC; USEC_NEVER: none within a year. */
static usec_t cronjob_next(const struct cronjob_times *c, usec_t wall)
{
    int64_t sec = (wall / SECONDS(60) + 1) * 60;
    int64_t end = sec + 366 * 86400LL;
    while (sec < end) {
        struct civil t = civil_from_sec(sec);
        bool day = (c->day >> t.day) & 1;
        bool weekday = (c->weekday >> t.weekday) & 1;
        /* As in cron: with a day of the month and a weekday, one of them is enough. */
        bool date = c->any_day || c->any_weekday ? day && weekday : day || weekday;
        if (!((c->month >> t.month) & 1) || !date) {
            sec += 86400 - sec % 86400;
        } else if (!((c->hour >> t.hour) & 1)) {
            sec += 3600 - sec % 3600;
        } else if (!((c->minute >> t.minute) & 1)) {
            sec += 60;
        } else {
            return sec * SECONDS(1);
        }
    }
    return USEC_NEVER;
}

static void cronjob_start(struct world_object *t, const struct jval *object, usec_t due_wall)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    struct tree *job = tree_from(a, jval_at(object, "spec.jobTemplate"));
    if (tree_kind(job) != JOBJ) {
        return;
    }
    tree_set(a, job, STR("apiVersion"), tree_str(a, STR("batch/v1")));
    tree_set(a, job, STR("kind"), tree_str(a, STR("Job")));
    /* The Job is named by its minute, as by the real controller, so a second attempt gets a 409. */
    struct str name =
        arena_printf(a, STR_FMT "-%lld", STR_ARG(t->name), (long long)(due_wall / SECONDS(60)));
    tree_set_at(a, job, "metadata.name", tree_str(a, name));
    tree_set_at(a, job, "metadata.ownerReferences", workload_owner_reference(t));
    struct str path =
        arena_printf(a, "/apis/batch/v1/namespaces/" STR_FMT "/jobs", STR_ARG(t->namespace));
    char text[TIMESTAMP_TEXT_MAX];
    (void)world_send(w, CONTROLLER, "POST", path, tree_json(a, job), NULL);
    struct tree *status = tree_obj(a);
    tree_set(a, status, STR("lastScheduleTime"),
             tree_str(a, timestamp_print_seconds(due_wall, text)));
    world_object_set_status(t, CONTROLLER, status);
}

static bool job_running(struct world_object *t)
{
    return jval_first(jval_at(world_object_get(t), "status.conditions")) == NULL;
}

void cronjob_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    struct cronjob_times cron;
    if (jval_bool(jval_at(object, "spec.suspend"), false) ||
        !cronjob_parse(jval_str(jval_at(object, "spec.schedule")), &cron)) {
        return;
    }
    struct timestamp last;
    struct err err = { 0 };
    struct str since = jval_str(jval_at(object, "status.lastScheduleTime"));
    since = since.n > 0 ? since : jval_str(jval_at(object, "metadata.creationTimestamp"));
    if (timestamp_parse(since, &last, &err) != 0) {
        return; /* the server sets it */
    }
    usec_t wall = loop_wall(w->loop);
    usec_t due = cronjob_next(&cron, timestamp_to_usec(last));
    bool running = false;
    LIST_EACH (&t->children, item) {
        running |= job_running(WORLD_OBJECT_OF(item, sibling));
    }
    bool forbid = str_eq(jval_str(jval_at(object, "spec.concurrencyPolicy")), STR("Forbid"));
    if (due <= wall && !(forbid && running)) {
        /* Of several missed times, only the latest starts a Job. */
        for (usec_t next = cronjob_next(&cron, due); next <= wall;
             next = cronjob_next(&cron, due)) {
            due = next;
        }
        cronjob_start(t, object, due);
        due = cronjob_next(&cron, due);
    }
    if (due != USEC_NEVER && due > wall) {
        world_mark_dirty_at(t, loop_now(w->loop) + due - wall);
    }
}
