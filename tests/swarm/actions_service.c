/*
 * What happens to a configuration, to the nodes that are served by it, and to third parties.
 */
#include "tests/swarm/actions.h"

/* ── the configuration on disk ─────────────────────────────────────────────────────────────── */

void trial_read_file(struct trial *t, struct process *p)
{
    if (t->budget.on && process_runs(p) && p->blueprint_count != t->file_count) {
        process_configure_asking(p, t->file_count);
    }
    if (t->service.on && process_runs(p) && !process_frozen(p) &&
        p->blueprint_count != t->file_count) {
        process_configure(p, t->file, t->file_count);
    }
}

void trial_start(struct trial *t, struct process *p)
{
    process_start(p);
    p->blueprint_count = 0;
    trial_read_file(t, p);
}

static void trial_write_file(struct trial *t, uint32_t file)
{
    t->file = file;
    t->good = file < SERVICE_BLUEPRINTS ? file : t->good;
    t->file_count++;
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        trial_read_file(t, &t->processes[i]);
    }
}

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

struct instance_names {
    struct arena *out;
    struct str *items;
    uint32_t n;
    uint32_t cap;
};

static void names_visit(void *ctx, const struct jval *object)
{
    struct instance_names *names = ctx;
    ARENA_GROW(names->out, names->items, names->n, names->cap);
    names->items[names->n++] = arena_str(names->out, jval_str(jval_at(object, "metadata.name")));
}

static struct instance_names trial_nodes(struct trial *t)
{
    struct instance_names names = { .out = &t->tmp };
    apiserver_each(t->server, STR(""), STR("nodes"), STR(""), names_visit, &names);
    return names;
}

static struct str need_of(struct trial *t, uint32_t profile)
{
    return arena_printf(&t->tmp, "example.com/need-p%u", profile);
}

void trial_label_nodes(struct trial *t)
{
    static const struct str labels[] = { STR_INIT("p0"),     STR_INIT("p0"),
                                         STR_INIT("p0"),     STR_INIT("p1"),
                                         STR_INIT("p0--p1"), STR_INIT("p1--p0"),
                                         STR_INIT("p2--p0"), STR_INIT("p0--p1--p2") };
    struct instance_names names = trial_nodes(t);
    for (uint32_t i = 0; i < names.n; i++) {
        struct str label = labels[rng_below(&t->rng, ARRAY_LEN(labels))];
        trial_set_meta(t, names.items[i], "labels", PROFILE_LABEL, label);
        for (uint32_t p = 0; p < BLUEPRINT_PROFILES_MAX; p++) {
            if (rng_chance(&t->rng, 500)) {
                trial_set_meta(t, names.items[i], "labels", need_of(t, p), STR("true"));
            }
        }
        if (rng_chance(&t->rng, 500)) {
            trial_set_meta(t, names.items[i], "annotations", BLUEPRINT_APPROVED, STR("yes"));
        }
        trial_set_meta(t, names.items[i], "labels", BLUEPRINT_VERSION,
                       rng_chance(&t->rng, 500) ? STR("1.2.3") : STR("1.3.0"));
        if (i == 0 && rng_chance(&t->rng, 700)) {
            trial_set_meta(t, names.items[i], "labels", BLUEPRINT_GO, STR("go"));
        }
    }
}

void trial_cordon(struct trial *t, struct str node, bool cordon)
{
    struct str path = arena_printf(&t->tmp, "/api/v1/nodes/" STR_FMT, STR_ARG(node));
    struct str body = cordon ? STR("{\"spec\":{\"unschedulable\":true}}")
                             : STR("{\"spec\":{\"unschedulable\":null}}");
    int status = trial_ask(t, "PATCH", path, STR("application/merge-patch+json"), body);
    ASSERT(status == 200);
}

static void deed_to_served(struct trial *t, const struct deed *deed)
{
    struct str node = trial_pick_node(t, deed);
    struct str need = need_of(t, deed->what % t->plan->wish.profiles);
    bool odd = deed->what % 2 == 1;
    if (node.n == 0) {
        return;
    }
    switch (deed->kind) {
    case DEED_NEED:
        trial_set_meta(t, node, "labels", need, STR("true"));
        break;
    case DEED_DONE:
        trial_set_meta(t, node, "labels", need, STR_NONE);
        break;
    case DEED_APPROVE:
        trial_set_meta(t, node, "annotations", BLUEPRINT_APPROVED, STR("yes"));
        break;
    case DEED_REVOKE:
        trial_set_meta(t, node, "annotations", BLUEPRINT_APPROVED, STR_NONE);
        break;
    case DEED_CORDON:
    case DEED_UNCORDON:
        trial_cordon(t, node, deed->kind == DEED_CORDON);
        break;
    case DEED_GO:
        trial_set_meta(t, node, "labels", BLUEPRINT_GO, odd ? STR("go") : STR_NONE);
        break;
    case DEED_VERSION:
        trial_set_meta(t, node, "labels", BLUEPRINT_VERSION, odd ? STR("1.3.0") : STR("1.4.0"));
        break;
    default:
        ASSERT(false);
    }
}

static void trial_make_late(struct trial *t, const struct deed *deed)
{
    if (t->budget.on) {
        trial_crash_step(t, deed);
        return;
    }
    struct process *p = &t->processes[deed->who % t->plan->processes];
    /* The leader's writes are those that count. */
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        struct process *other = &t->processes[i];
        p = process_runs(other) && controller_leading(other->controller) ? other : p;
    }
    if (process_runs(p) && p->late_at == USEC_NEVER) {
        p->tap.crash = deed->what % 4 == 0 ? API_TAP_CRASH_GRANTS : API_TAP_CRASH_MAINTENANCE;
        p->late_span = deed->span;
    }
}

void trial_approve(struct trial *t)
{
    struct instance_names names = trial_nodes(t);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *object =
            apiserver_find(t->server, STR(""), STR("nodes"), STR(""), names.items[i]);
        if (jval_get(jval_at(object, "metadata.annotations"), BLUEPRINT_APPROVED) == NULL) {
            trial_set_meta(t, names.items[i], "annotations", BLUEPRINT_APPROVED, STR("yes"));
        }
    }
}

void trial_deliver(struct trial *t, struct process *p)
{
    static const struct str methods[] = {
        [API_POST] = STR_INIT("POST"),
        [API_PUT] = STR_INIT("PUT"),
        [API_PATCH] = STR_INIT("PATCH"),
        [API_DELETE] = STR_INIT("DELETE"),
    };
    struct apiserver_request request = {
        .method = methods[p->tap.late_verb],
        .path = buf_str(&p->tap.late_path),
        .content_type = p->tap.late_verb == API_PATCH ? API_MERGE_PATCH : API_JSON,
        .user_agent = str_from(p->late_agent),
        .body = buf_str(&p->tap.late_body),
    };
    struct apiserver_reply reply;
    p->late_at = USEC_NEVER;
    apiserver_handle(t->server, &request, &t->tmp, &reply); /* taken or refused: nobody waits */
    if (t->verbose) {
        (void)fprintf(stderr, "%12.3f s late write of %s: %d\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, p->late_agent, reply.status);
    }
}

void trial_hold_pods(struct trial *t, bool hold)
{
    struct instance_names names = { .out = &t->tmp };
    apiserver_each(t->server, STR("policy"), STR("poddisruptionbudgets"), STR(""), names_visit,
                   &names);
    for (uint32_t i = 0; i < names.n; i++) {
        struct str path = arena_printf(
            &t->tmp, "/apis/policy/v1/namespaces/default/poddisruptionbudgets/" STR_FMT,
            STR_ARG(names.items[i]));
        struct str body = arena_printf(&t->tmp, "{\"spec\":{\"maxUnavailable\":%d}}", hold ? 0 : 1);
        int status = trial_ask(t, "PATCH", path, STR("application/merge-patch+json"), body);
        ASSERT(status == 200);
    }
}

void trial_do_service(struct trial *t, const struct deed *deed)
{
    switch (deed->kind) {
    case DEED_CONFIG_OTHER:
        trial_write_file(t, (t->good + 1) % SERVICE_BLUEPRINTS);
        break;
    case DEED_CONFIG_BROKEN:
        trial_write_file(t, SERVICE_BLUEPRINTS);
        break;
    case DEED_LATE:
        trial_make_late(t, deed);
        break;
    case DEED_DEAF:
        t->deaf_end = virtual_loop_now(t->vloop) + deed->span;
        break;
    case DEED_HOLD:
        t->hold_end = virtual_loop_now(t->vloop) + deed->span;
        trial_hold_pods(t, /* hold= */ true);
        break;
    default:
        deed_to_served(t, deed);
    }
}

/* ── work on nodes in maintenance ──────────────────────────────────────────────────────────── */

void trial_note_chore(struct trial *t, struct str node)
{
    if (t->chore_n == TRIAL_CHORES_MAX || virtual_loop_now(t->vloop) >= t->chores_end) {
        return;
    }
    struct chore *chore = &t->chores[t->chore_n++];
    (void)snprintf(chore->node, sizeof(chore->node), STR_FMT, STR_ARG(node));
    chore->at = virtual_loop_now(t->vloop) + rng_usec(&t->rng, MSECONDS(10), SECONDS(40));
}

usec_t trial_next_chore(const struct trial *t)
{
    usec_t next = USEC_NEVER;
    for (uint32_t i = 0; i < t->chore_n; i++) {
        next = MIN(next, t->chores[i].at);
    }
    return next;
}

/* The work is done: whatever profile the node is in maintenance for has its need fulfilled. */
static void trial_do_chore(struct trial *t, struct str node)
{
    const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
    struct judge_node read;
    if (object == NULL) {
        return;
    }
    struct blueprint all = { .profile_n = BLUEPRINT_PROFILES_MAX };
    judge_read(&all, object, &t->tmp, &read);
    for (uint32_t i = 0; i < read.entry_n; i++) {
        if (read.entries[i].current == STATE_MAINTENANCE) {
            trial_set_meta(t, node, "labels", need_of(t, read.entries[i].profile), STR_NONE);
        }
    }
}

void trial_do_chores(struct trial *t, usec_t now)
{
    if (t->deaf_end <= now) {
        t->deaf_end = USEC_NEVER;
    }
    for (uint32_t i = t->chore_n; i-- > 0;) {
        if (t->chores[i].at <= now) {
            struct chore chore = t->chores[i];
            t->chores[i] = t->chores[--t->chore_n];
            trial_do_chore(t, str_from(chore.node));
        }
    }
}

void trial_calm_service(struct trial *t)
{
    struct instance_names names = trial_nodes(t);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *object =
            apiserver_find(t->server, STR(""), STR("nodes"), STR(""), names.items[i]);
        bool marked = jval_get(jval_at(object, "metadata.annotations"),
                               STR("drydock.dev/cordoned-by")) != NULL;
        if (jval_bool(jval_at(object, "spec.unschedulable"), false) && !marked) {
            trial_cordon(t, names.items[i], false);
        }
        trial_set_meta(t, names.items[i], "annotations", BLUEPRINT_APPROVED, STR("yes"));
    }
    if (t->file == SERVICE_BLUEPRINTS) {
        /* Those that had a good one go on by it; who began meanwhile gets one now. */
        t->file = t->good;
        for (uint32_t i = 0; i < t->plan->processes; i++) {
            struct process *p = &t->processes[i];
            if (process_runs(p) && p->blueprint == SERVICE_BLUEPRINTS) {
                trial_read_file(t, p);
            }
        }
    }
    t->service.calm_since = virtual_loop_now(t->vloop);
}

/* ── third parties ─────────────────────────────────────────────────────────────────────────── */

void trial_on_message(void *ctx, const struct inbox_message *message, struct inbox_answer *answer)
{
    struct trial *t = ctx;
    if (!message->is_mail && str_contains(message->request.url, STR("/api/v1/query"))) {
        answer->body = STR("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":"
                           "[{\"metric\":{},\"value\":[1800000000,\"1\"]}]}}");
    }
    if (t->verbose) {
        struct str all = message->is_mail ? message->mail.payload : message->request.body;
        (void)fprintf(stderr, "%12.3f s heard '" STR_FMT "' deaf %d\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(all),
                      t->deaf_end != USEC_NEVER);
    }
    if (t->deaf_end != USEC_NEVER) {
        uint32_t how = rng_below(&t->rng, 3);
        answer->status = how == 0 ? 0 : message->is_mail ? 451 : 500;
        answer->failure = how == 1 ? ERR_IO : 0;
        answer->body = STR("not now");
        return;
    }
    struct str text =
        service_message(message->is_mail ? message->mail.payload : message->request.body);
    if (text.n > 0) {
        service_on_heard(&t->service, text);
    }
}
