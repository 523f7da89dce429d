#include "kinds/visit_record.h"

static const struct str phase_names[] = {
    [VISIT_NONE] = STR_INIT(""),
    [VISIT_CHECKING] = STR_INIT("Checking"),
    [VISIT_REQUESTED] = STR_INIT("Requested"),
    [VISIT_LABELLING] = STR_INIT("Labelling"),
    [VISIT_CORDONING] = STR_INIT("Cordoning"),
    [VISIT_DRAINING] = STR_INIT("Draining"),
    [VISIT_RUNNING] = STR_INIT("Running"),
    [VISIT_REBOOTING] = STR_INIT("Rebooting"),
    [VISIT_SETTLING] = STR_INIT("Settling"),
    [VISIT_VERIFYING] = STR_INIT("Verifying"),
    [VISIT_ENDING] = STR_INIT("Ending"),
};
static const struct str cordon_names[] = {
    [VISIT_CORDON_NONE] = STR_INIT("None"),
    [VISIT_CORDON_OTHERS] = STR_INIT("Others"),
    [VISIT_CORDON_OURS] = STR_INIT("Ours"),
};
static const struct str run_phase_names[] = {
    [VISIT_RUN_PENDING] = STR_INIT("Pending"), [VISIT_RUN_CHECKING] = STR_INIT("Checking"),
    [VISIT_RUN_RUNNING] = STR_INIT("Running"), [VISIT_RUN_SUCCEEDED] = STR_INIT("Succeeded"),
    [VISIT_RUN_SKIPPED] = STR_INIT("Skipped"), [VISIT_RUN_FAILED] = STR_INIT("Failed"),
    [VISIT_RUN_NOT_RUN] = STR_INIT("NotRun"),
};
static const struct str on_failure_names[] = {
    [VISIT_FAILURE_AUTO] = STR_INIT("Auto"),
    [VISIT_FAILURE_KEEP] = STR_INIT("KeepCordoned"),
    [VISIT_FAILURE_UNCORDON] = STR_INIT("Uncordon"),
};
static const struct str reboot_names[] = {
    [VISIT_REBOOT_NEVER] = STR_INIT("Never"),
    [VISIT_REBOOT_IF_REQUIRED] = STR_INIT("IfRequired"),
    [VISIT_REBOOT_ALWAYS] = STR_INIT("Always"),
};

struct str visit_run_phase_name(enum visit_run_phase phase)
{
    return run_phase_names[phase];
}

struct str visit_phase_name(enum visit_phase phase)
{
    return phase < VISIT_UNKNOWN ? phase_names[phase] : STR("Unknown");
}

/* The index of the name; `n` when it is none of them. */
static uint32_t name_index(const struct str *names, uint32_t n, struct str name)
{
    uint32_t i = 0;
    while (i < n && !str_eq(names[i], name)) {
        i++;
    }
    return i;
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static struct str read_text(const struct jval *object, const char *key, struct arena *out)
{
    return arena_str(out, jval_str(jval_get(object, str_from(key))));
}

static uint32_t read_number(const struct jval *object, const char *key)
{
    int64_t n = 0;
    return jval_i64(jval_get(object, str_from(key)), &n) && n > 0 && n <= (int64_t)UINT32_MAX
               ? (uint32_t)n
               : 0;
}

/* Whole seconds; `otherwise` where it is not said. */
static usec_t read_seconds(const struct jval *object, const char *key, usec_t otherwise)
{
    int64_t n = 0;
    bool there = jval_i64(jval_get(object, str_from(key)), &n) && n >= 0 && n <= UINT32_MAX;
    return there ? SECONDS(n) : otherwise;
}

static bool read_flag(const struct jval *object, const char *key)
{
    return jval_bool(jval_get(object, str_from(key)), false);
}

/* False when it says what this version does not know. */
static bool read_run(const struct jval *run, struct arena *out, struct visit_run *ret)
{
    uint32_t phase = name_index(run_phase_names, ARRAY_LEN(run_phase_names),
                                jval_str(jval_get(run, STR("phase"))));
    uint32_t reboot =
        name_index(reboot_names, ARRAY_LEN(reboot_names), jval_str(jval_get(run, STR("reboot"))));
    *ret = (struct visit_run){
        .maintenance = read_text(run, "maintenance", out),
        .maintenance_uid = read_text(run, "maintenanceUID", out),
        .operation = read_text(run, "operation", out),
        .revision = read_text(run, "revision", out),
        .attempt = read_number(run, "attempt"),
        .tick = jval_time(jval_get(run, STR("tick")), 0),
        .reboot = reboot < ARRAY_LEN(reboot_names) ? reboot : VISIT_REBOOT_NEVER,
        .reboot_required = read_flag(run, "rebootRequired"),
        .preflight = read_flag(run, "preflight"),
        .bare = read_flag(run, "bare"),
        .stopping = read_flag(run, "stopping"),
        .interrupted = read_flag(run, "interrupted"),
        .phase = phase < ARRAY_LEN(run_phase_names) ? phase : VISIT_RUN_NOT_RUN,
        .since = jval_time(jval_get(run, STR("since")), 0),
        .started = jval_time(jval_get(run, STR("startedAt")), 0),
        .reason = read_text(run, "reason", out),
        .message = read_text(run, "message", out),
    };
    return phase < ARRAY_LEN(run_phase_names) && reboot < ARRAY_LEN(reboot_names) &&
           ret->maintenance_uid.n > 0 && ret->operation.n > 0;
}

static bool read_runs(const struct jval *runs, struct arena *out, struct visit_record *ret)
{
    uint32_t count = jval_kind(runs) == JARR ? runs->n : 0;
    bool known = count > 0 && count <= VISIT_RUNS_MAX;
    ret->runs = ARENA_ARRAY(out, struct visit_run, VISIT_RUNS_MAX);
    JVAL_EACH (runs, run) {
        if (ret->run_n < VISIT_RUNS_MAX) {
            known = read_run(run, out, &ret->runs[ret->run_n]) && known;
            ret->run_n++;
        }
    }
    return known;
}

/* Absent: the visit does not drain. */
static struct visit_drain read_drain(const struct jval *drain, struct arena *out)
{
    struct str on_timeout = jval_str(jval_get(drain, STR("onTimeout")));
    return (struct visit_drain){
        .enabled = jval_kind(drain) == JOBJ,
        .timeout = read_seconds(drain, "timeoutSeconds", USEC_NEVER),
        .grace = read_seconds(drain, "gracePeriodSeconds", -1),
        .pod_selector = read_text(drain, "podSelector", out),
        .evict_daemon_sets = read_flag(drain, "daemonSets"),
        .keep_empty_dir = read_flag(drain, "keepEmptyDirData"),
        .keep_unmanaged = read_flag(drain, "keepUnmanagedPods"),
        .proceed = str_eq(on_timeout, STR("Proceed")),
        .force = str_eq(on_timeout, STR("Force")),
    };
}

/* None where it is not said: an empty value is one. */
static struct str read_value(const struct jval *object, const char *key, struct arena *out)
{
    const struct jval *v = jval_get(object, str_from(key));
    return jval_kind(v) == JSTR ? arena_str(out, jval_str(v)) : STR_NONE;
}

static bool read_labels(const struct jval *labels, struct arena *out, struct visit_record *ret)
{
    uint32_t count = jval_kind(labels) == JARR ? labels->n : 0;
    if (count > VISIT_LABELS_MAX) {
        return false;
    }
    ret->labels = ARENA_ARRAY(out, struct visit_label, count);
    JVAL_EACH (labels, label) {
        ret->labels[ret->label_n++] = (struct visit_label){
            .key = read_value(label, "key", out),
            .value = read_value(label, "value", out),
            .old = read_value(label, "old", out),
            .after = read_value(label, "after", out),
        };
    }
    return true;
}

bool visit_record_read(const struct jval *visit, struct arena *out, struct visit_record *ret)
{
    *ret = (struct visit_record){ .phase = VISIT_NONE };
    if (jval_kind(visit) == JNULL) {
        return false;
    }
    const struct jval *request = jval_get(visit, STR("request"));
    uint32_t phase =
        name_index(phase_names, ARRAY_LEN(phase_names), jval_str(jval_get(visit, STR("phase"))));
    uint32_t cordon =
        name_index(cordon_names, ARRAY_LEN(cordon_names), jval_str(jval_get(visit, STR("cordon"))));
    uint32_t on_failure = name_index(on_failure_names, ARRAY_LEN(on_failure_names),
                                     jval_str(jval_get(visit, STR("onFailure"))));
    *ret = (struct visit_record){
        .format = read_number(visit, "format"),
        .id = read_text(visit, "id", out),
        .node_uid = read_text(visit, "nodeUID", out),
        .quiet = read_flag(visit, "quiet"),
        .request = read_text(request, "name", out),
        .request_uid = read_text(request, "uid", out),
        .grant = read_number(request, "grant"),
        .phase = phase < ARRAY_LEN(phase_names) && phase > VISIT_NONE ? phase : VISIT_UNKNOWN,
        .phase_time = jval_time(jval_get(visit, STR("phaseTime")), 0),
        .deadline = jval_time(jval_get(visit, STR("deadline")), USEC_NEVER),
        .cordon = cordon < ARRAY_LEN(cordon_names) ? cordon : VISIT_CORDON_OTHERS,
        .drain = read_drain(jval_get(visit, STR("drain")), out),
        .leave_wait = read_seconds(visit, "leaveSeconds", 0),
        .min_ready = read_seconds(visit, "minReadySeconds", 0),
        .reboot_timeout = read_seconds(visit, "rebootTimeoutSeconds", 0),
        .boot_id = read_text(visit, "bootID", out),
        .reboot_id = read_text(visit, "rebootID", out),
        .began = jval_time(jval_get(visit, STR("beganAt")), 0),
        .reboot_checked = read_flag(visit, "rebootChecked"),
        .reboot_useless = read_flag(visit, "rebootUseless"),
        .expired = read_flag(visit, "expired"),
        .keep_cordon = read_flag(visit, "keepCordon"),
        .on_failure = on_failure < ARRAY_LEN(on_failure_names) ? on_failure : VISIT_FAILURE_AUTO,
        .failure = read_text(visit, "failure", out),
        .message = read_text(visit, "message", out),
    };
    bool runs_known = read_runs(jval_get(visit, STR("runs")), out, ret) &&
                      read_labels(jval_get(visit, STR("labels")), out, ret);
    if (ret->format != VISIT_FORMAT || ret->id.n == 0 || cordon == ARRAY_LEN(cordon_names) ||
        !runs_known) {
        ret->phase = VISIT_UNKNOWN;
    }
    return true;
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void print_seconds(struct json_writer *w, const char *key, usec_t time, usec_t absent)
{
    if (time != absent) {
        jw_pair_i64(w, key, time / SECONDS(1));
    }
}

static void print_flag(struct json_writer *w, const char *key, bool flag)
{
    if (flag) {
        jw_pair_bool(w, key, true);
    }
}

static void print_run(const struct visit_run *run, struct json_writer *w)
{
    jw_obj(w);
    jw_pair(w, "maintenance", run->maintenance);
    jw_pair(w, "maintenanceUID", run->maintenance_uid);
    jw_pair(w, "operation", run->operation);
    jw_pair(w, "revision", run->revision);
    jw_pair_i64(w, "attempt", run->attempt);
    jw_pair_time(w, "tick", run->tick);
    jw_pair(w, "reboot", reboot_names[run->reboot]);
    print_flag(w, "rebootRequired", run->reboot_required);
    print_flag(w, "preflight", run->preflight);
    print_flag(w, "bare", run->bare);
    print_flag(w, "stopping", run->stopping);
    print_flag(w, "interrupted", run->interrupted);
    jw_pair(w, "phase", run_phase_names[run->phase]);
    jw_pair_time(w, "since", run->since);
    jw_pair_time(w, "startedAt", run->started);
    jw_pair_some(w, "reason", run->reason);
    jw_pair_some(w, "message", run->message);
    jw_obj_end(w);
}

static void print_drain(const struct visit_drain *d, struct json_writer *w)
{
    if (!d->enabled) {
        return;
    }
    jw_key(w, STR("drain"));
    jw_obj(w);
    print_seconds(w, "timeoutSeconds", d->timeout, USEC_NEVER);
    print_seconds(w, "gracePeriodSeconds", d->grace, -1);
    jw_pair_some(w, "podSelector", d->pod_selector);
    print_flag(w, "daemonSets", d->evict_daemon_sets);
    print_flag(w, "keepEmptyDirData", d->keep_empty_dir);
    print_flag(w, "keepUnmanagedPods", d->keep_unmanaged);
    jw_pair_some(w, "onTimeout", d->proceed ? STR("Proceed") : d->force ? STR("Force") : STR_NONE);
    jw_obj_end(w);
}

static void print_value(struct json_writer *w, const char *key, struct str value)
{
    if (value.p != NULL) {
        jw_pair(w, key, value);
    }
}

static void print_labels(const struct visit_record *v, struct json_writer *w)
{
    if (v->label_n == 0) {
        return;
    }
    jw_key(w, STR("labels"));
    jw_arr(w);
    for (uint32_t i = 0; i < v->label_n; i++) {
        jw_obj(w);
        jw_pair(w, "key", v->labels[i].key);
        print_value(w, "value", v->labels[i].value);
        print_value(w, "old", v->labels[i].old);
        print_value(w, "after", v->labels[i].after);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

void visit_record_print(const struct visit_record *v, struct json_writer *w)
{
    ASSERT(v->phase > VISIT_NONE && v->phase < VISIT_UNKNOWN);
    jw_obj(w);
    jw_pair_i64(w, "format", VISIT_FORMAT);
    jw_pair(w, "id", v->id);
    jw_pair(w, "nodeUID", v->node_uid);
    print_flag(w, "quiet", v->quiet);
    if (v->request.n > 0) {
        jw_key(w, STR("request"));
        jw_obj(w);
        jw_pair(w, "name", v->request);
        jw_pair_some(w, "uid", v->request_uid);
        jw_pair_i64(w, "grant", v->grant);
        jw_obj_end(w);
    }
    jw_pair(w, "phase", phase_names[v->phase]);
    jw_pair_time(w, "phaseTime", v->phase_time);
    jw_pair_time(w, "deadline", v->deadline);
    jw_pair_time(w, "beganAt", v->began);
    jw_pair(w, "cordon", cordon_names[v->cordon]);
    print_drain(&v->drain, w);
    print_labels(v, w);
    print_seconds(w, "leaveSeconds", v->leave_wait, 0);
    print_seconds(w, "minReadySeconds", v->min_ready, 0);
    print_seconds(w, "rebootTimeoutSeconds", v->reboot_timeout, 0);
    jw_pair_some(w, "bootID", v->boot_id);
    jw_pair_some(w, "rebootID", v->reboot_id);
    print_flag(w, "rebootChecked", v->reboot_checked);
    print_flag(w, "rebootUseless", v->reboot_useless);
    print_flag(w, "expired", v->expired);
    print_flag(w, "keepCordon", v->keep_cordon);
    if (v->on_failure != VISIT_FAILURE_AUTO) {
        jw_pair(w, "onFailure", on_failure_names[v->on_failure]);
    }
    jw_pair_some(w, "failure", v->failure);
    jw_pair_some(w, "message", v->message);
    jw_key(w, STR("runs"));
    jw_arr(w);
    for (uint32_t i = 0; i < v->run_n; i++) {
        print_run(&v->runs[i], w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

/* ── for whoever keeps one ─────────────────────────────────────────────────────────────────── */

static struct str record_text(const struct visit_record *v, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    visit_record_print(v, &w);
    return buf_str(out);
}

bool visit_record_same(const struct visit_record *a, const struct visit_record *b)
{
    CLEANUP(buf_done)
    struct buf x = { 0 };
    CLEANUP(buf_done)
    struct buf y = { 0 };
    if (a->phase >= VISIT_UNKNOWN || b->phase >= VISIT_UNKNOWN || a->phase == VISIT_NONE ||
        b->phase == VISIT_NONE) {
        return a->phase == b->phase;
    }
    return str_eq(record_text(a, &x), record_text(b, &y));
}

void visit_record_copy(const struct visit_record *v, struct arena *out, struct visit_record *ret)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *parsed = NULL;
    struct err err = { 0 };
    struct str json = record_text(v, &text);
    bool read =
        json_parse(json, 0, &tmp, &parsed, &err) == 0 && visit_record_read(parsed, out, ret);
    ASSERT(read); /* what was printed here can be read */
}
