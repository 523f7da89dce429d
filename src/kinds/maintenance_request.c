#include "kinds/maintenance_request.h"

#include "base/timestamp.h"
#include "format/json_writer.h"

static const struct str state_names[] = {
    [MR_STATE_PENDING] = STR_INIT("Pending"),
    [MR_STATE_APPROVED] = STR_INIT("Approved"),
    [MR_STATE_IN_PROGRESS] = STR_INIT("InProgress"),
    [MR_STATE_COMPLETED] = STR_INIT("Completed"),
};

static const struct str phase_names[] = {
    [MR_PHASE_PENDING] = STR_INIT("Pending"),   [MR_PHASE_PREPARING] = STR_INIT("Preparing"),
    [MR_PHASE_APPROVED] = STR_INIT("Approved"), [MR_PHASE_IN_PROGRESS] = STR_INIT("InProgress"),
    [MR_PHASE_EXPIRED] = STR_INIT("Expired"),   [MR_PHASE_COMPLETED] = STR_INIT("Completed"),
    [MR_PHASE_REJECTED] = STR_INIT("Rejected"),
};

static const struct str step_names[] = {
    [MR_STEP_CORDON] = STR_INIT("Cordon"),
    [MR_STEP_DRAIN] = STR_INIT("Drain"),
    [MR_STEP_DRAIN_GRACE] = STR_INIT("DrainGrace"),
    [MR_STEP_DETACH] = STR_INIT("Detach"),
    [MR_STEP_DETACH_GRACE] = STR_INIT("DetachGrace"),
    [MR_STEP_FINAL_CHECK] = STR_INIT("FinalCheck"),
};

static const struct str result_names[] = {
    [MR_RESULT_SUCCEEDED] = STR_INIT("Succeeded"),
    [MR_RESULT_WITHDRAWN] = STR_INIT("Withdrawn"),
    [MR_RESULT_REJECTED] = STR_INIT("Rejected"),
    [MR_RESULT_FAILED] = STR_INIT("Failed"),
};

static const struct str condition_names[MR_CONDITIONS] = {
    [COND_ACCEPTED] = STR_INIT("Accepted"),  [COND_LIMIT_AVAILABLE] = STR_INIT("LimitAvailable"),
    [COND_PREPARED] = STR_INIT("Prepared"),  [COND_SAFE] = STR_INIT("SafeToProceed"),
    [COND_TIMED_OUT] = STR_INIT("TimedOut"),
};

static const struct str truth_names[] = {
    [COND_TRUE] = STR_INIT("True"),
    [COND_FALSE] = STR_INIT("False"),
    [COND_UNKNOWN] = STR_INIT("Unknown"),
};

/* The place of a text in a table that begins with "absent"; 0 when it is not there. */
static uint32_t name_find(const struct str *names, size_t n, struct str text)
{
    for (uint32_t i = 1; i < n; i++) {
        if (str_eq(names[i], text)) {
            return i;
        }
    }
    return 0;
}

struct str mrequest_state_name(enum mrequest_state state)
{
    return state < ARRAY_LEN(state_names) ? state_names[state] : STR_NONE;
}

enum mrequest_state mrequest_state_for_actor(enum mrequest_state state)
{
    return state == MR_STATE_ABSENT || state == MR_STATE_OTHER ? MR_STATE_PENDING : state;
}

struct str mrequest_phase_name(enum mrequest_phase phase)
{
    return phase_names[phase];
}

struct str mrequest_step_name(enum mrequest_step step)
{
    return step_names[step];
}

struct str mrequest_result_name(enum mrequest_result result)
{
    return result_names[result];
}

struct str mrequest_condition_name(enum mrequest_cond_type type)
{
    return condition_names[type];
}

bool mrequest_phase_ended(enum mrequest_phase phase)
{
    return phase == MR_PHASE_COMPLETED || phase == MR_PHASE_REJECTED;
}

bool mrequest_phase_with_actor(enum mrequest_phase phase)
{
    return phase == MR_PHASE_APPROVED || phase == MR_PHASE_IN_PROGRESS;
}

bool mrequest_phase_granted(enum mrequest_phase phase)
{
    return phase == MR_PHASE_PREPARING || mrequest_phase_with_actor(phase);
}

bool mrequest_is_for(const struct maintenance_request *m, const struct request_target *target)
{
    bool node = m->type_known && m->type == TARGET_NODE;
    return str_eq_fold(m->target, target->name) && str_eq_fold(m->type_text, target->type) &&
           (node || str_eq(m->namespace, target->namespace));
}

struct str mrequest_invalid(const struct maintenance_request *m, struct str *ret_reason)
{
    if (m->has_spec && m->type_text.n > 0 && !m->type_known) {
        *ret_reason = STR("UnsupportedType");
        return STR("spec.type is none of node, deployment, daemonset, statefulset");
    }
    *ret_reason = STR("InvalidSpec");
    if (!m->has_spec) {
        return STR("there is no spec: it asks for nothing");
    }
    if (m->type_text.n == 0) {
        return STR("spec.type is missing");
    }
    if (m->target.n == 0) {
        return STR("spec.name is missing");
    }
    if (m->type != TARGET_NODE && m->namespace.n == 0) {
        return STR("spec.namespace is missing");
    }
    *ret_reason = STR_NONE;
    return STR_NONE;
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

/* What is no time, or before 1970, was never. */
static usec_t read_time(const struct jval *v)
{
    return MAX(jval_time(v, 0), (usec_t)0);
}

static uint32_t read_u32(const struct jval *v)
{
    int64_t n = 0;
    return jval_i64(v, &n) && n > 0 ? (uint32_t)MIN(n, (int64_t)UINT32_MAX) : 0;
}

static int64_t read_i64(const struct jval *v)
{
    int64_t n = 0;
    return jval_i64(v, &n) ? n : 0;
}

static const struct str *read_texts(const struct jval *v, uint32_t most, struct arena *out,
                                    uint32_t *ret_n)
{
    *ret_n = 0;
    if (jval_kind(v) != JARR || v->n == 0) {
        return NULL;
    }
    struct str *texts = ARENA_ARRAY(out, struct str, MIN(v->n, most));
    JVAL_EACH (v, text) {
        if (*ret_n < most && jval_kind(text) == JSTR) {
            texts[(*ret_n)++] = arena_str(out, jval_str(text));
        }
    }
    return texts;
}

static void read_conditions(const struct jval *list, struct arena *out, struct mrequest_status *s)
{
    if (jval_kind(list) != JARR) {
        return;
    }
    JVAL_EACH (list, c) {
        struct str type = jval_str(jval_get(c, STR("type")));
        for (uint32_t i = 0; i < MR_CONDITIONS; i++) {
            if (!str_eq(type, condition_names[i])) {
                continue;
            }
            struct str status = jval_str(jval_get(c, STR("status")));
            s->conditions[i] = (struct mrequest_condition){
                .status = name_find(truth_names, ARRAY_LEN(truth_names), status),
                .generation = read_i64(jval_get(c, STR("observedGeneration"))),
                .since = read_time(jval_get(c, STR("lastTransitionTime"))),
                .reason = arena_str(out, jval_str(jval_get(c, STR("reason")))),
                .message = arena_str(out, jval_str(jval_get(c, STR("message")))),
            };
        }
    }
}

static struct str read_text(const struct jval *object, const char *key, struct arena *out)
{
    return arena_str(out, jval_str(jval_get(object, str_from(key))));
}

static void read_status(const struct jval *v, struct arena *out, struct mrequest_status *s)
{
    struct str phase = jval_str(jval_get(v, STR("phase")));
    struct str step = jval_str(jval_get(v, STR("step")));
    struct str result = jval_str(jval_get(v, STR("result")));
    const struct jval *rejection = jval_get(v, STR("lastRejection"));
    const struct jval *preparation = jval_get(v, STR("preparation"));
    *s = (struct mrequest_status){
        .phase = name_find(phase_names, ARRAY_LEN(phase_names), phase),
        .step = name_find(step_names, ARRAY_LEN(step_names), step),
        .result = name_find(result_names, ARRAY_LEN(result_names), result),
        .reason = read_text(v, "reason", out),
        .message = read_text(v, "message", out),
        .generation = read_i64(jval_get(v, STR("observedGeneration"))),
        .queued = read_time(jval_get(v, STR("queuedTime"))),
        .reserved = read_time(jval_get(v, STR("reservedTime"))),
        .step_time = read_time(jval_get(v, STR("stepTime"))),
        .approved = read_time(jval_get(v, STR("approvedTime"))),
        .in_progress = read_time(jval_get(v, STR("inProgressTime"))),
        .finished = read_time(jval_get(v, STR("finishedTime"))),
        .deadline = read_time(jval_get(v, STR("deadline"))),
        .grant = MIN(read_u32(jval_get(v, STR("grant"))), MREQUEST_GRANT_MAX),
        .position = read_u32(jval_get(v, STR("queuePosition"))),
        .rejections = read_u32(jval_get(v, STR("rejections"))),
        .rejection_reason = read_text(rejection, "reason", out),
        .rejection_time = read_time(jval_get(rejection, STR("time"))),
        .prepared = jval_kind(preparation) == JOBJ,
        .cordoned = jval_bool(jval_get(preparation, STR("cordoned")), false),
        .pods_left = read_u32(jval_get(preparation, STR("podsLeft"))),
        .volumes_left = read_u32(jval_get(preparation, STR("volumesLeft"))),
    };
    s->limits = read_texts(jval_get(v, STR("limits")), MREQUEST_LIMITS_MAX, out, &s->limit_n);
    s->blocked = read_texts(jval_get(preparation, STR("blockedBy")), MREQUEST_BLOCKED_MAX, out,
                            &s->blocked_n);
    read_conditions(jval_get(v, STR("conditions")), out, s);
}

static enum mrequest_state read_state(const struct jval *v)
{
    if (jval_kind(v) == JNULL) {
        return MR_STATE_ABSENT;
    }
    uint32_t found = name_find(state_names, ARRAY_LEN(state_names), jval_str(v));
    return found > 0 ? (enum mrequest_state)found : MR_STATE_OTHER;
}

void mrequest_read(const struct jval *object, struct arena *out, struct maintenance_request *ret)
{
    const struct jval *metadata = jval_get(object, STR("metadata"));
    const struct jval *spec = jval_get(object, STR("spec"));
    const struct jval *ttl = jval_get(spec, STR("ttlSecondsAfterFinished"));
    const struct jval *labels = jval_get(metadata, STR("labels"));
    const struct jval *annotations = jval_get(metadata, STR("annotations"));
    struct str exit = jval_str(jval_get(annotations, KEY_EXIT_CODE));
    struct str bridge = jval_str(jval_get(annotations, KEY_BRIDGE_REQUEST));
    int64_t priority = read_i64(jval_get(spec, STR("priority")));
    int64_t seconds = 0;
    *ret = (struct maintenance_request){
        .name = read_text(metadata, "name", out),
        .uid = read_text(metadata, "uid", out),
        .version = read_text(metadata, "resourceVersion", out),
        .client = arena_str(out, jval_str(jval_get(labels, KEY_CLIENT))),
        .created = read_time(jval_get(metadata, STR("creationTimestamp"))),
        .generation = read_i64(jval_get(metadata, STR("generation"))),
        .deleting = jval_str(jval_get(metadata, STR("deletionTimestamp"))).n > 0,
        .has_spec = jval_kind(spec) == JOBJ,
        .target = read_text(spec, "name", out),
        .namespace = read_text(spec, "namespace", out),
        .type_text = read_text(spec, "type", out),
        .state = read_state(jval_get(spec, STR("state"))),
        .priority = (int32_t)MAX(MIN(priority, (int64_t)INT32_MAX), (int64_t)INT32_MIN),
        .unprepared = str_eq(jval_str(jval_get(spec, STR("preparation"))), STR("None")),
        .failed = exit.n > 0 && !str_eq(exit, STR("0")),
        .withdrawn = str_eq(jval_str(jval_get(annotations, KEY_WITHDRAWN)), KEYS_TRUE),
        .machine_request = bridge.n <= MREQUEST_BRIDGE_MAX ? arena_str(out, bridge) : STR_NONE,
        .run = arena_str(out, jval_str(jval_get(annotations, KEY_RUN))),
        .visit = arena_str(out, jval_str(jval_get(annotations, KEY_VISIT))),
        .has_ttl = jval_i64(ttl, &seconds) && seconds >= 0,
        .ttl_s = read_u32(ttl),
    };
    ret->type_known = target_type_find(ret->type_text, &ret->type);
    if (ret->type_known && ret->type == TARGET_NODE) {
        ret->namespace = STR_NONE; /* nodes live in none, whatever was written */
    }
    read_status(jval_get(object, STR("status")), out, &ret->status);
}

int mrequest_read_for_actor(const struct jval *object, struct arena *out,
                            struct maintenance_request *ret, struct err *err)
{
    struct maintenance_request m;
    mrequest_read(object, out, &m);
    if (m.name.n == 0 || m.version.n == 0) {
        return err_set(err, ERR_PROTO, "a MaintenanceRequest without name or resourceVersion");
    }
    m.state = mrequest_state_for_actor(m.state);
    *ret = m;
    return 0;
}

int mrequest_project(void *ctx UNUSED, const struct jval *object, struct arena *out, void **ret,
                     struct err *err UNUSED)
{
    struct maintenance_request *m = ARENA_NEW(out, struct maintenance_request);
    mrequest_read(object, out, m);
    *ret = m;
    return 0;
}

/* ── comparing ─────────────────────────────────────────────────────────────────────────────── */

static bool texts_same(const struct str *a, uint32_t a_n, const struct str *b, uint32_t b_n)
{
    if (a_n != b_n) {
        return false;
    }
    for (uint32_t i = 0; i < a_n; i++) {
        if (!str_eq(a[i], b[i])) {
            return false;
        }
    }
    return true;
}

bool mrequest_status_same_but_info(const struct mrequest_status *a, const struct mrequest_status *b)
{
    bool waiting = a->phase == MR_PHASE_PENDING; /* its reasons come and go */
    for (uint32_t i = 0; i < MR_CONDITIONS; i++) {
        const struct mrequest_condition *left = &a->conditions[i];
        const struct mrequest_condition *right = &b->conditions[i];
        if (left->status != right->status || left->since != right->since ||
            (!str_eq(left->reason, right->reason) && !(waiting && i == COND_LIMIT_AVAILABLE))) {
            return false;
        }
    }
    return a->phase == b->phase && a->step == b->step && a->result == b->result &&
           a->generation == b->generation && a->queued == b->queued && a->reserved == b->reserved &&
           a->step_time == b->step_time && a->approved == b->approved &&
           a->in_progress == b->in_progress && a->finished == b->finished &&
           a->deadline == b->deadline && a->grant == b->grant && a->rejections == b->rejections &&
           a->rejection_time == b->rejection_time &&
           str_eq(a->rejection_reason, b->rejection_reason) && a->cordoned == b->cordoned &&
           (waiting || (str_eq(a->reason, b->reason) &&
                        texts_same(a->limits, a->limit_n, b->limits, b->limit_n)));
}

usec_t mrequest_status_since(const struct mrequest_status *s)
{
    switch (s->phase) {
    case MR_PHASE_PREPARING:
        return s->reserved;
    case MR_PHASE_APPROVED:
        return s->approved;
    case MR_PHASE_IN_PROGRESS:
    case MR_PHASE_EXPIRED:
        return s->in_progress;
    case MR_PHASE_COMPLETED:
    case MR_PHASE_REJECTED:
        return s->finished;
    case MR_PHASE_ABSENT:
    case MR_PHASE_PENDING:
        break;
    }
    return s->queued;
}

bool mrequest_status_same(const struct mrequest_status *a, const struct mrequest_status *b)
{
    for (uint32_t i = 0; i < MR_CONDITIONS; i++) {
        const struct mrequest_condition *left = &a->conditions[i];
        const struct mrequest_condition *right = &b->conditions[i];
        if (left->generation != right->generation || !str_eq(left->reason, right->reason) ||
            !str_eq(left->message, right->message)) {
            return false;
        }
    }
    return mrequest_status_same_but_info(a, b) && str_eq(a->reason, b->reason) &&
           str_eq(a->message, b->message) && a->position == b->position &&
           a->prepared == b->prepared && a->pods_left == b->pods_left &&
           a->volumes_left == b->volumes_left &&
           texts_same(a->limits, a->limit_n, b->limits, b->limit_n) &&
           texts_same(a->blocked, a->blocked_n, b->blocked, b->blocked_n);
}

static bool mrequest_same(const void *left, const void *right)
{
    const struct maintenance_request *a = left;
    const struct maintenance_request *b = right;
    return str_eq(a->uid, b->uid) && str_eq(a->client, b->client) && a->created == b->created &&
           a->generation == b->generation && a->deleting == b->deleting &&
           a->has_spec == b->has_spec && str_eq(a->target, b->target) &&
           str_eq(a->namespace, b->namespace) && str_eq(a->type_text, b->type_text) &&
           a->state == b->state && a->priority == b->priority && a->unprepared == b->unprepared &&
           a->failed == b->failed && a->withdrawn == b->withdrawn && a->has_ttl == b->has_ttl &&
           a->ttl_s == b->ttl_s && str_eq(a->machine_request, b->machine_request) &&
           mrequest_status_same(&a->status, &b->status);
}

static struct str mrequest_uid(const void *object)
{
    const struct maintenance_request *m = object;
    return m->uid;
}

const struct store_kind mrequest_kind = {
    .name = "maintenance request",
    .project = mrequest_project,
    .same = mrequest_same,
    .uid = mrequest_uid,
};

void mrequest_condition_set(struct mrequest_status *s, enum mrequest_cond_type type,
                            const struct mrequest_condition *value)
{
    struct mrequest_condition *c = &s->conditions[type];
    usec_t since = c->status == value->status && c->since > 0 ? c->since : value->since;
    *c = *value;
    c->since = since;
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void print_text(struct json_writer *w, const char *key, struct str text)
{
    jw_key(w, str_from(key));
    if (text.n == 0) {
        jw_null(w);
    } else {
        jw_str(w, text);
    }
}

static void print_time(struct json_writer *w, const char *key, usec_t wall)
{
    char text[TIMESTAMP_TEXT_MAX];
    print_text(w, key, wall > 0 ? timestamp_print_seconds(wall, text) : STR_NONE);
}

static void print_number(struct json_writer *w, const char *key, int64_t n, bool zero)
{
    jw_key(w, str_from(key));
    if (n == 0 && !zero) {
        jw_null(w);
    } else {
        jw_i64(w, n);
    }
}

static void print_texts(struct json_writer *w, const char *key, const struct str *texts, uint32_t n)
{
    jw_key(w, str_from(key));
    if (n == 0) {
        jw_null(w);
        return;
    }
    jw_strs(w, texts, n);
}

static void print_preparation(struct json_writer *w, const struct mrequest_status *s)
{
    jw_key(w, STR("preparation"));
    if (!s->prepared) {
        jw_null(w);
        return;
    }
    jw_obj(w);
    jw_pair_bool(w, "cordoned", s->cordoned);
    print_number(w, "podsLeft", s->pods_left, /* zero= */ true);
    print_number(w, "volumesLeft", s->volumes_left, /* zero= */ true);
    print_texts(w, "blockedBy", s->blocked, s->blocked_n);
    jw_obj_end(w);
}

static void print_conditions(struct json_writer *w, const struct mrequest_status *s)
{
    jw_key(w, STR("conditions"));
    jw_arr(w);
    for (uint32_t i = 0; i < MR_CONDITIONS; i++) {
        const struct mrequest_condition *c = &s->conditions[i];
        if (c->status == COND_ABSENT) {
            continue;
        }
        char text[TIMESTAMP_TEXT_MAX];
        jw_obj(w);
        jw_pair(w, "lastTransitionTime", timestamp_print_seconds(c->since, text));
        jw_pair(w, "message", c->message);
        if (c->generation > 0) {
            print_number(w, "observedGeneration", c->generation, /* zero= */ false);
        }
        jw_pair(w, "reason", c->reason.n > 0 ? c->reason : STR("Unknown"));
        jw_pair(w, "status", truth_names[c->status]);
        jw_pair(w, "type", condition_names[i]);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

/* Opens the patch and writes its metadata but for the annotations. */
static void print_patch_begin(struct json_writer *w, struct str version, struct str uid)
{
    jw_obj(w);
    jw_key(w, STR("metadata"));
    jw_obj(w);
    jw_pair_some(w, "resourceVersion", version);
    jw_pair_some(w, "uid", uid);
}

void mrequest_print_status(const struct mrequest_status *s, struct str version, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    print_patch_begin(&w, version, STR_NONE);
    jw_obj_end(&w);
    jw_key(&w, STR("status"));
    jw_obj(&w);
    print_text(&w, "phase", mrequest_phase_name(s->phase));
    print_text(&w, "step", mrequest_step_name(s->step));
    print_text(&w, "result", mrequest_result_name(s->result));
    print_text(&w, "reason", s->reason);
    print_text(&w, "message", s->message);
    print_number(&w, "observedGeneration", s->generation, /* zero= */ false);
    print_time(&w, "queuedTime", s->queued);
    print_time(&w, "reservedTime", s->reserved);
    print_time(&w, "stepTime", s->step_time);
    print_time(&w, "approvedTime", s->approved);
    print_time(&w, "inProgressTime", s->in_progress);
    print_time(&w, "finishedTime", s->finished);
    print_time(&w, "deadline", s->deadline);
    print_number(&w, "grant", s->grant, /* zero= */ false);
    print_texts(&w, "limits", s->limits, s->limit_n);
    print_number(&w, "queuePosition", s->position, /* zero= */ false);
    print_number(&w, "rejections", s->rejections, /* zero= */ false);
    jw_key(&w, STR("lastRejection"));
    if (s->rejection_time == 0) {
        jw_null(&w);
    } else {
        jw_obj(&w);
        print_text(&w, "reason", s->rejection_reason);
        print_time(&w, "time", s->rejection_time);
        jw_obj_end(&w);
    }
    print_preparation(&w, s);
    print_conditions(&w, s);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

void mrequest_print_new(const struct mrequest_new *new, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR(MAINTENANCE_API_VERSION));
    jw_pair(&w, "kind", STR("MaintenanceRequest"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", new->name);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    jw_pair_some(&w, KEY_CLIENT.p, new->client);
    jw_obj_end(&w);
    if (new->bridge_request.n > 0 || new->created_by.n > 0 || new->visit.n > 0) {
        jw_key(&w, STR("annotations"));
        jw_obj(&w);
        jw_pair_some(&w, KEY_BRIDGE_REQUEST.p, new->bridge_request);
        jw_pair_some(&w, KEY_CREATED_BY.p, new->created_by);
        jw_pair_some(&w, KEY_VISIT.p, new->visit);
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "name", new->target.name);
    jw_pair_some(&w, "namespace", new->target.namespace);
    jw_pair(&w, "type", new->target.type);
    jw_pair(&w, "state", mrequest_state_name(MR_STATE_PENDING));
    if (new->priority != 0) {
        jw_pair_i64(&w, "priority", new->priority);
    }
    jw_pair_some(&w, "reason", new->reason);
    if (new->unprepared) {
        jw_pair(&w, "preparation", STR("None"));
    }
    if (new->ttl_s > 0) {
        jw_pair_i64(&w, "ttlSecondsAfterFinished", new->ttl_s);
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
}

void mrequest_print_change(const struct mrequest_change *change, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    print_patch_begin(&w, change->version, change->uid);
    if (change->run.n > 0 || change->exit_code.n > 0 || change->withdrawn) {
        jw_key(&w, STR("annotations"));
        jw_obj(&w);
        jw_pair_some(&w, KEY_RUN.p, change->run);
        jw_pair_some(&w, KEY_EXIT_CODE.p, change->exit_code);
        jw_pair_some(&w, KEY_WITHDRAWN.p, change->withdrawn ? KEYS_TRUE : STR_NONE);
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "state", mrequest_state_name(change->state));
    jw_obj_end(&w);
    jw_obj_end(&w);
}
