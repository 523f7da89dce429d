/*
 * What happens to limits and requests, and the actors that ask.
 */
#include "format/json_writer.h"
#include "kinds/crd.h"
#include "tests/swarm/actions.h"

#define LIMITS_PATH "/apis/repairman.k8s.io/v1/maintenancelimits"
#define REQUESTS_PATH "/apis/repairman.k8s.io/v1/maintenancerequests"
#define ASK_SOONEST MSECONDS(10)

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

static struct str limit_path(struct trial *t, uint32_t i)
{
    return arena_printf(&t->tmp, LIMITS_PATH "/l%u", i);
}

static void limit_add(struct trial *t, uint32_t i)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    buf_printf(&body,
               "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
               "\"metadata\":{\"name\":\"l%u\"},\"spec\":",
               i);
    terms_print(&t->budget.terms.limits[i], &body);
    buf_add(&body, STR("}"));
    int status = trial_ask(t, "POST", STR(LIMITS_PATH), API_JSON, buf_str(&body));
    ASSERT(status == 201 || status == 409); /* it may be there already */
}

/* What a pause or a reduction has changed is as it was; the limit may be gone. */
static void limit_restore(struct trial *t, uint32_t i)
{
    const struct terms_limit *l = &t->budget.terms.limits[i];
    struct str body =
        l->percent > 0
            ? arena_printf(&t->tmp, "{\"spec\":{\"paused\":null,\"minimum\":null,\"limit\":%u}}",
                           l->percent)
            : arena_printf(&t->tmp, "{\"spec\":{\"paused\":null,\"minimum\":%u,\"limit\":0}}",
                           l->count);
    t->limits_end[i] = USEC_NEVER;
    (void)trial_ask(t, "PATCH", limit_path(t, i), API_MERGE_PATCH, body);
}

static void deed_to_limit(struct trial *t, const struct deed *deed)
{
    uint32_t i = deed->who % TERMS_LIMITS_MAX;
    switch (deed->kind) {
    case DEED_LIMIT_ADD:
        limit_add(t, i);
        break;
    case DEED_LIMIT_DELETE:
        (void)trial_ask(t, "DELETE", limit_path(t, i), API_JSON, STR("")); /* it may be gone */
        break;
    default: {
        struct str body = deed->kind == DEED_LIMIT_PAUSE
                              ? STR("{\"spec\":{\"paused\":true}}")
                              : STR("{\"spec\":{\"minimum\":0,\"limit\":0}}");
        /* It may be gone. */
        (void)trial_ask(t, "PATCH", limit_path(t, i), API_MERGE_PATCH, body);
        t->limits_end[i] = virtual_loop_now(t->vloop) + deed->span;
    }
    }
}

/* ── actors ────────────────────────────────────────────────────────────────────────────────── */

static const struct jval *request_find(struct trial *t, struct str name)
{
    return apiserver_find(t->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), name);
}

static struct str request_path(struct trial *t, struct str name)
{
    return arena_printf(&t->tmp, REQUESTS_PATH "/" STR_FMT, STR_ARG(name));
}

static void actor_write(struct trial *t, const struct actor *a, const char *state)
{
    struct str body = arena_printf(&t->tmp, "{\"spec\":{\"state\":\"%s\"}}", state);
    struct str path = request_path(t, str_from(a->name));
    int status = trial_ask(t, "PATCH", path, API_MERGE_PATCH, body);
    ASSERT(status == 200); /* an actor knows which steps there are */
}

/* It does nothing before its request changes. */
static void actor_act_pending(struct trial *t, struct actor *a)
{
    if (t->calm) {
        return;
    }
    if (a->manner == MANNER_WITHDRAWS) {
        actor_write(t, a, "Completed");
    } else if (a->manner == MANNER_FORGES) {
        actor_write(t, a, "Approved");
    }
}

static void actor_act_approved(struct trial *t, struct actor *a)
{
    bool idle = a->manner == MANNER_IDLE && !t->calm;
    if (a->manner == MANNER_WITHDRAWS) {
        actor_write(t, a, "Completed");
    } else if (a->manner == MANNER_GIVES_BACK && !a->gave) {
        a->gave = true;
        actor_write(t, a, "Pending");
    } else if (!idle) {
        actor_write(t, a, "InProgress");
    }
}

static void actor_act(struct trial *t, struct actor *a)
{
    const struct jval *request = request_find(t, str_from(a->name));
    struct str state = jval_str(jval_at(request, "spec.state"));
    a->at = USEC_NEVER;
    if (request == NULL || str_eq(state, STR("Completed"))) {
        return;
    }
    if (a->manner == MANNER_DELETES && !t->calm) {
        int status = trial_ask(t, "DELETE", request_path(t, str_from(a->name)), API_JSON, STR(""));
        ASSERT(status == 200);
    } else if (str_eq(state, STR("Approved"))) {
        actor_act_approved(t, a);
    } else if (str_eq(state, STR("InProgress"))) {
        if (a->manner != MANNER_HANGS || t->calm) {
            actor_write(t, a, "Completed");
        }
    } else {
        actor_act_pending(t, a);
    }
}

static void actor_new(struct trial *t, const struct deed *deed)
{
    struct str node = trial_pick_node(t, deed);
    if (t->actor_n == TRIAL_ACTORS_MAX) {
        return;
    }
    if (node.n == 0 || deed->what % 16 == 0) {
        node = STR("extra-3"); /* it may come some day */
    }
    struct actor *a = &t->actors[t->actor_n];
    *a = (struct actor){ .at = USEC_NEVER };
    /* Half of all are as they should be, and one in eight of them begins with a lie. */
    uint32_t manner = deed->what / 16 % (2 * MANNERS);
    a->manner = manner < MANNERS ? (enum manner)manner : MANNER_DILIGENT;
    bool liar = a->manner == MANNER_FORGES && deed->what / 1024 % 2 == 0;
    (void)snprintf(a->name, sizeof(a->name), "mr-%u", t->actor_n++);
    struct str body = arena_printf(
        &t->tmp,
        "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\",\"metadata\":{"
        "\"name\":\"%s\",\"labels\":{\"maintenancerequests.repairman.k8s.io/clientname\":\"c%u\"}},"
        "\"spec\":{\"type\":\"node\",\"name\":\"" STR_FMT "\",\"priority\":%u%s%s}}",
        a->name, deed->what % 3, STR_ARG(node), deed->what / 2048 % 3,
        deed->what / 8192 % 4 == 0 ? ",\"preparation\":\"None\"" : "",
        liar ? ",\"state\":\"Approved\"" : "");
    int status = trial_ask(t, "POST", STR(REQUESTS_PATH), API_JSON, body);
    ASSERT(status == 201);
    a->at = virtual_loop_now(t->vloop) + rng_usec(&t->rng, ASK_SOONEST, SECONDS(60));
}

void trial_note_request(struct trial *t, const struct apiserver_commit *commit)
{
    struct str was = jval_str(jval_at(commit->old, "spec.state"));
    struct str is = jval_str(jval_at(commit->now, "spec.state"));
    if (commit->now == NULL || str_eq(was, is)) {
        return;
    }
    for (uint32_t i = 0; i < t->actor_n; i++) {
        struct actor *a = &t->actors[i];
        if (str_eq(str_from(a->name), commit->name)) {
            usec_t longest = rng_chance(&t->rng, 300) ? SECONDS(60) : SECONDS(5);
            a->at = virtual_loop_now(t->vloop) + rng_usec(&t->rng, ASK_SOONEST, longest);
        }
    }
}

/* ── deeds ─────────────────────────────────────────────────────────────────────────────────── */

void trial_crash_step(struct trial *t, const struct deed *deed)
{
    static const enum api_tap_crash crashes[] = { API_TAP_CRASH_WRITE_BEFORE,
                                                  API_TAP_CRASH_WRITE_AFTER };
    struct process *p = &t->processes[deed->who % t->plan->processes];
    if (!process_runs(p) || p->late_at != USEC_NEVER) {
        return;
    }
    p->tap.write = (enum api_tap_write)(deed->what % API_TAP_WRITES);
    p->tap.crash = deed->kind == DEED_LATE
                       ? API_TAP_CRASH_WRITE_LATE
                       : crashes[deed->what / API_TAP_WRITES % ARRAY_LEN(crashes)];
    p->late_span = deed->span;
}

void trial_do_asking(struct trial *t, const struct deed *deed)
{
    struct str name = arena_printf(&t->tmp, "mr-%u", deed->who % MAX(t->actor_n, 1u));
    char class[2] = { (char)('a' + (int)(deed->what % TERMS_CLASSES)), '\0' };
    switch (deed->kind) {
    case DEED_ASK:
        actor_new(t, deed);
        break;
    case DEED_REQUEST_DELETE:
        (void)trial_ask(t, "DELETE", request_path(t, name), API_JSON, STR("")); /* may be gone */
        break;
    case DEED_RELABEL:
        if (apiserver_count(t->server, STR(""), STR("nodes")) > 0) {
            trial_set_meta(t, trial_pick_node(t, deed), "labels", TERMS_CLASS, str_from(class));
        }
        break;
    case DEED_CRASH_STEP:
        trial_crash_step(t, deed);
        break;
    default:
        deed_to_limit(t, deed);
    }
}

usec_t trial_next_asking(const struct trial *t)
{
    usec_t next = USEC_NEVER;
    for (uint32_t i = 0; i < t->actor_n; i++) {
        next = MIN(next, t->actors[i].at);
    }
    for (uint32_t i = 0; t->budget.on && i < TERMS_LIMITS_MAX; i++) {
        next = MIN(next, t->limits_end[i]);
    }
    return next;
}

void trial_end_asking(struct trial *t, usec_t now)
{
    for (uint32_t i = 0; i < t->actor_n; i++) {
        if (t->actors[i].at <= now) {
            actor_act(t, &t->actors[i]);
        }
    }
    for (uint32_t i = 0; t->budget.on && i < TERMS_LIMITS_MAX; i++) {
        if (t->limits_end[i] <= now) {
            limit_restore(t, i);
        }
    }
}

/* ── begin and end ─────────────────────────────────────────────────────────────────────────── */

static void install_crds(struct trial *t)
{
    for (size_t i = 0; i < crds_count; i++) {
        CLEANUP(buf_done)
        struct buf body = { 0 };
        struct json_writer w = json_writer_on(&body);
        jw_val(&w, crd_object(&crds[i], &t->tmp));
        int status =
            trial_ask(t, "POST", STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
                      API_JSON, buf_str(&body));
        ASSERT(status == 201);
    }
}

void trial_init_asking(struct trial *t)
{
    const struct plan *plan = t->plan;
    t->budget = (struct budget){
        .promise = &t->promise,
        .server = t->server,
        .on = true,
        .elect = plan->elect,
        .began = loop_wall(virtual_loop_root(t->vloop)) - virtual_loop_now(t->vloop),
    };
    terms_make(&t->budget.terms, plan->seed);
    install_crds(t);
    for (uint32_t i = 0; i < TERMS_LIMITS_MAX; i++) {
        t->limits_end[i] = USEC_NEVER;
        if (i < t->budget.terms.n) {
            limit_add(t, i);
        }
    }
    for (uint32_t i = 0; i < plan->nodes; i++) {
        const struct deed deed = { .who = i };
        char class[2] = { (char)('a' + (int)rng_below(&t->rng, TERMS_CLASSES)), '\0' };
        struct str node = trial_pick_node(t, &deed);
        trial_set_meta(t, node, "labels", TERMS_CLASS, str_from(class));
        if (t->budget.terms.profile) {
            trial_set_meta(t, node, "labels", PROFILE_LABEL, STR("p0"));
        }
    }
}

void trial_calm_asking(struct trial *t)
{
    t->calm = true;
    for (uint32_t i = 0; i < TERMS_LIMITS_MAX; i++) {
        limit_restore(t, i);
    }
    for (uint32_t i = 0; i < apiserver_count(t->server, STR(""), STR("nodes")); i++) {
        const struct deed deed = { .who = i };
        struct str node = trial_pick_node(t, &deed);
        const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
        bool marked = jval_get(jval_at(object, "metadata.annotations"), BUDGET_MARK) != NULL;
        if (jval_bool(jval_at(object, "spec.unschedulable"), false) && !marked) {
            trial_cordon(t, node, false);
        }
        trial_set_meta(t, node, "labels", STR("example.com/need-p0"), STR_NONE);
    }
    for (uint32_t i = 0; i < t->actor_n; i++) {
        t->actors[i].at = virtual_loop_now(t->vloop) + rng_usec(&t->rng, ASK_SOONEST, SECONDS(60));
    }
}
