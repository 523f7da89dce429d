/*
 * What happens to a configuration, to the nodes that are served by it, and to third parties.
 */
#include "tests/swarm/actions.h"

#include "kinds/keys.h"

/* ── the configuration on disk ─────────────────────────────────────────────────────────────── */

void sim_run_load_config(struct sim_run *t, struct controller_process *p)
{
    if (t->requests.on && controller_process_runs(p) && p->config_version != t->file_version) {
        controller_process_configure_requests(p, t->file_version);
    }
    if (t->service.on && controller_process_runs(p) && !controller_process_frozen(p) &&
        p->config_version != t->file_version) {
        controller_process_configure(p, t->file, t->file_version);
    }
}

void sim_run_start_process(struct sim_run *t, struct controller_process *p)
{
    controller_process_start(p);
    p->config_version = 0;
    sim_run_load_config(t, p);
}

static void sim_run_write_config(struct sim_run *t, uint32_t file)
{
    t->file = file;
    t->last_good_file = file < CHECK_SERVICE_CONFIGS ? file : t->last_good_file;
    t->file_version++;
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        sim_run_load_config(t, &t->processes[i]);
    }
}

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

struct node_names {
    struct arena *out;
    struct str *items;
    uint32_t n;
    uint32_t cap;
};

static void node_names_visit(void *ctx, const struct jval *object)
{
    struct node_names *names = ctx;
    ARENA_GROW(names->out, names->items, names->n, names->cap);
    names->items[names->n++] = arena_str(names->out, jval_str(jval_at(object, "metadata.name")));
}

static struct node_names sim_run_node_names(struct sim_run *t)
{
    struct node_names names = { .out = &t->tmp };
    apiserver_each(t->server, STR(""), STR("nodes"), STR(""), node_names_visit, &names);
    return names;
}

static struct str need_label(struct sim_run *t, uint32_t profile)
{
    return arena_printf(&t->tmp, "example.com/need-p%u", profile);
}

void sim_run_label_nodes(struct sim_run *t)
{
    static const struct str labels[] = { STR_INIT("p0"),     STR_INIT("p0"),
                                         STR_INIT("p0"),     STR_INIT("p1"),
                                         STR_INIT("p0--p1"), STR_INIT("p1--p0"),
                                         STR_INIT("p2--p0"), STR_INIT("p0--p1--p2") };
    struct node_names names = sim_run_node_names(t);
    for (uint32_t i = 0; i < names.n; i++) {
        struct str label = labels[rng_below(&t->rng, ARRAY_LEN(labels))];
        sim_run_set_node_meta(t, names.items[i], "labels", PROFILE_LABEL, label);
        for (uint32_t p = 0; p < RANDOM_CONFIG_PROFILES_MAX; p++) {
            if (rng_chance(&t->rng, 500)) {
                sim_run_set_node_meta(t, names.items[i], "labels", need_label(t, p), STR("true"));
            }
        }
        if (rng_chance(&t->rng, 500)) {
            sim_run_set_node_meta(t, names.items[i], "annotations", RANDOM_CONFIG_APPROVED,
                                  STR("yes"));
        }
        sim_run_set_node_meta(t, names.items[i], "labels", RANDOM_CONFIG_VERSION,
                              rng_chance(&t->rng, 500) ? STR("1.2.3") : STR("1.3.0"));
        if (i == 0 && rng_chance(&t->rng, 700)) {
            sim_run_set_node_meta(t, names.items[i], "labels", RANDOM_CONFIG_GO, STR("go"));
        }
    }
}

void sim_run_cordon(struct sim_run *t, struct str node, bool cordon)
{
    struct str path = arena_printf(&t->tmp, "/api/v1/nodes/" STR_FMT, STR_ARG(node));
    struct str body = cordon ? STR("{\"spec\":{\"unschedulable\":true}}")
                             : STR("{\"spec\":{\"unschedulable\":null}}");
    int status = sim_run_admin_request(t, "PATCH", path, STR("application/merge-patch+json"), body);
    ASSERT(status == 200);
}

/* The first or the last profile of its label goes; a node that has one has none then. */
static void sim_run_drop_profile(struct sim_run *t, struct str node, bool first)
{
    const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
    struct str label = jval_str(jval_get(jval_at(object, "metadata.labels"), PROFILE_LABEL));
    if (label.n == 0) {
        return;
    }
    size_t one = STR("p0--").n;
    struct str rest = label.n <= one ? STR_NONE
                      : first        ? str_sub(label, one, label.n)
                                     : str_sub(label, 0, label.n - one);
    sim_run_set_node_meta(t, node, "labels", PROFILE_LABEL, rest);
}

static void action_on_served_node(struct sim_run *t, const struct action *action)
{
    struct str node = sim_run_pick_node(t, action);
    struct str need = need_label(t, action->variant % t->scenario->config_options.profiles);
    bool odd = action->variant % 2 == 1;
    if (node.n == 0) {
        return;
    }
    switch (action->kind) {
    case ACTION_NEED:
        sim_run_set_node_meta(t, node, "labels", need, STR("true"));
        break;
    case ACTION_NEED_DONE:
        sim_run_set_node_meta(t, node, "labels", need, STR_NONE);
        break;
    case ACTION_APPROVE:
        sim_run_set_node_meta(t, node, "annotations", RANDOM_CONFIG_APPROVED, STR("yes"));
        break;
    case ACTION_UNAPPROVE:
        sim_run_set_node_meta(t, node, "annotations", RANDOM_CONFIG_APPROVED, STR_NONE);
        break;
    case ACTION_PROFILE_DROP:
        sim_run_drop_profile(t, node, odd);
        break;
    case ACTION_ABORT:
        sim_run_set_node_meta(t, node, "annotations", KEY_ABORT, STR("true"));
        break;
    case ACTION_CORDON:
    case ACTION_UNCORDON:
        sim_run_cordon(t, node, action->kind == ACTION_CORDON);
        break;
    case ACTION_GO_LABEL:
        sim_run_set_node_meta(t, node, "labels", RANDOM_CONFIG_GO, odd ? STR("go") : STR_NONE);
        break;
    case ACTION_VERSION:
        sim_run_set_node_meta(t, node, "labels", RANDOM_CONFIG_VERSION,
                              odd ? STR("1.3.0") : STR("1.4.0"));
        break;
    default:
        ASSERT(false);
    }
}

static void sim_run_delay_next_write(struct sim_run *t, const struct action *action)
{
    if (t->requests.on || t->operations.on) {
        sim_run_crash_at_write(t, action);
        return;
    }
    struct controller_process *p = &t->processes[action->pick % t->scenario->processes];
    /* The leader's writes are those that count. */
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        struct controller_process *other = &t->processes[i];
        p = controller_process_runs(other) && core_leads(other->core) ? other : p;
    }
    if (controller_process_runs(p) && p->late_at == USEC_NEVER) {
        p->tap.crash = action->variant % 4 == 0 ? API_TAP_CRASH_GRANTS : API_TAP_CRASH_MAINTENANCE;
        p->late_duration = action->duration;
    }
}

void sim_run_approve_all(struct sim_run *t)
{
    struct node_names names = sim_run_node_names(t);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *object =
            apiserver_find(t->server, STR(""), STR("nodes"), STR(""), names.items[i]);
        if (jval_get(jval_at(object, "metadata.annotations"), RANDOM_CONFIG_APPROVED) == NULL) {
            sim_run_set_node_meta(t, names.items[i], "annotations", RANDOM_CONFIG_APPROVED,
                                  STR("yes"));
        }
    }
}

void sim_run_deliver_late_write(struct sim_run *t, struct controller_process *p)
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
        .content_type = p->tap.late_type.n > 0          ? buf_str(&p->tap.late_type)
                        : p->tap.late_verb == API_PATCH ? API_MERGE_PATCH
                                                        : API_JSON,
        .user_agent = str_from(p->late_agent),
        .body = buf_str(&p->tap.late_body),
    };
    struct apiserver_reply reply;
    p->late_at = USEC_NEVER;
    t->operations.late = true;
    apiserver_handle(t->server, &request, &t->tmp, &reply); /* taken or refused: nobody waits */
    t->operations.late = false;
    if (t->verbose) {
        (void)fprintf(stderr, "%12.3f s late write of %s: %d\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, p->late_agent, reply.status);
    }
}

void sim_run_block_pdbs(struct sim_run *t, bool hold)
{
    struct node_names names = { .out = &t->tmp };
    apiserver_each(t->server, STR("policy"), STR("poddisruptionbudgets"), STR(""), node_names_visit,
                   &names);
    for (uint32_t i = 0; i < names.n; i++) {
        struct str path = arena_printf(
            &t->tmp, "/apis/policy/v1/namespaces/default/poddisruptionbudgets/" STR_FMT,
            STR_ARG(names.items[i]));
        struct str body = arena_printf(&t->tmp, "{\"spec\":{\"maxUnavailable\":%d}}", hold ? 0 : 1);
        int status =
            sim_run_admin_request(t, "PATCH", path, STR("application/merge-patch+json"), body);
        ASSERT(status == 200);
    }
}

void sim_run_pause_all(struct sim_run *t, bool pause)
{
    struct str path =
        arena_printf(&t->tmp, "/apis/coordination.k8s.io/v1/namespaces/default/leases/" STR_FMT,
                     STR_ARG(CORE_LEASE_NAME));
    struct str body = arena_printf(&t->tmp, "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":%s}}}",
                                   STR_ARG(KEY_ALL_PAUSED), pause ? "\"by hand\"" : "null");
    int status = sim_run_admin_request(t, "PATCH", path, STR("application/merge-patch+json"), body);
    ASSERT(status == 200 || status == 404); /* before anybody leads there is no Lease */
    if (!pause || status == 404) {
        t->service.paused_since = USEC_NEVER;
    } else {
        t->service.paused_since = MIN(t->service.paused_since, virtual_loop_now(t->vloop));
    }
}

void sim_run_service_action(struct sim_run *t, const struct action *action)
{
    switch (action->kind) {
    case ACTION_CONFIG_CHANGE:
        sim_run_write_config(t, (t->last_good_file + 1) % CHECK_SERVICE_CONFIGS);
        break;
    case ACTION_CONFIG_BREAK:
        sim_run_write_config(t, CHECK_SERVICE_CONFIGS);
        break;
    case ACTION_LATE_WRITE:
        sim_run_delay_next_write(t, action);
        break;
    case ACTION_NOTIFY_FAIL:
        t->notify_fail_end = virtual_loop_now(t->vloop) + action->duration;
        break;
    case ACTION_PROMETHEUS_NO:
        t->prometheus_no_end = virtual_loop_now(t->vloop) + action->duration;
        t->service.prometheus_no_since =
            MIN(t->service.prometheus_no_since, virtual_loop_now(t->vloop));
        break;
    case ACTION_PAUSE_ALL:
        t->pause_all_end = virtual_loop_now(t->vloop) + action->duration;
        sim_run_pause_all(t, /* pause= */ true);
        break;
    case ACTION_PDB_BLOCK:
        t->pdb_block_end = virtual_loop_now(t->vloop) + action->duration;
        sim_run_block_pdbs(t, /* hold= */ true);
        break;
    default:
        action_on_served_node(t, action);
    }
}

/* ── work on nodes in maintenance ──────────────────────────────────────────────────────────── */

void sim_run_start_work(struct sim_run *t, struct str node)
{
    if (t->work_n == SIM_RUN_WORK_MAX || virtual_loop_now(t->vloop) >= t->work_end) {
        return;
    }
    struct node_work *work = &t->work[t->work_n++];
    (void)snprintf(work->node, sizeof(work->node), STR_FMT, STR_ARG(node));
    work->at = virtual_loop_now(t->vloop) + rng_usec(&t->rng, MSECONDS(10), SECONDS(40));
}

usec_t sim_run_next_work(const struct sim_run *t)
{
    usec_t next = USEC_NEVER;
    for (uint32_t i = 0; i < t->work_n; i++) {
        next = MIN(next, t->work[i].at);
    }
    return next;
}

/* The work is done: whatever profile the node is in maintenance for has its need fulfilled. */
static void sim_run_finish_work(struct sim_run *t, struct str node)
{
    const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
    struct oracle_node data;
    if (object == NULL) {
        return;
    }
    struct random_config all = { .profile_n = RANDOM_CONFIG_PROFILES_MAX };
    node_data_read(&all, object, &t->tmp, &data);
    for (uint32_t i = 0; i < data.entry_n; i++) {
        if (data.entries[i].current == CONFIG_STATE_MAINTENANCE) {
            sim_run_set_node_meta(t, node, "labels", need_label(t, data.entries[i].profile),
                                  STR_NONE);
        }
    }
}

void sim_run_finish_work_due(struct sim_run *t, usec_t now)
{
    if (t->notify_fail_end <= now) {
        t->notify_fail_end = USEC_NEVER;
    }
    for (uint32_t i = t->work_n; i-- > 0;) {
        if (t->work[i].at <= now) {
            struct node_work work = t->work[i];
            t->work[i] = t->work[--t->work_n];
            sim_run_finish_work(t, str_from(work.node));
        }
    }
}

void sim_run_recover_service(struct sim_run *t)
{
    struct node_names names = sim_run_node_names(t);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *object =
            apiserver_find(t->server, STR(""), STR("nodes"), STR(""), names.items[i]);
        bool marked = jval_get(jval_at(object, "metadata.annotations"),
                               STR("drydock.dev/cordoned-by")) != NULL;
        if (jval_bool(jval_at(object, "spec.unschedulable"), false) && !marked) {
            sim_run_cordon(t, names.items[i], false);
        }
        sim_run_set_node_meta(t, names.items[i], "annotations", RANDOM_CONFIG_APPROVED, STR("yes"));
    }
    if (t->file == CHECK_SERVICE_CONFIGS) {
        /* Those that had a good one go on by it; who began meanwhile gets one now. */
        t->file = t->last_good_file;
        for (uint32_t i = 0; i < t->scenario->processes; i++) {
            struct controller_process *p = &t->processes[i];
            if (controller_process_runs(p) && p->config == CHECK_SERVICE_CONFIGS) {
                sim_run_load_config(t, p);
            }
        }
    }
    t->service.recovery_since = virtual_loop_now(t->vloop);
}

/* ── third parties ─────────────────────────────────────────────────────────────────────────── */

void sim_run_on_message(void *ctx, const struct inbox_message *message, struct inbox_answer *answer)
{
    struct sim_run *t = ctx;
    bool query = !message->is_mail && str_contains(message->request.url, STR("/api/v1/query"));
    if (query) {
        bool no = t->service.prometheus_no_since != USEC_NEVER;
        answer->body =
            arena_printf(&t->tmp,
                         "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":"
                         "[{\"metric\":{},\"value\":[1800000000,\"%s\"]}]}}",
                         no ? "9" : "1");
    }
    if (t->verbose) {
        struct str all = message->is_mail ? message->mail.payload : message->request.body;
        (void)fprintf(stderr, "%12.3f s heard '" STR_FMT "' deaf %d\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(all),
                      t->notify_fail_end != USEC_NEVER);
    }
    if (t->notify_fail_end != USEC_NEVER ||
        (!query && virtual_loop_now(t->vloop) >= t->scenario->messages_end)) {
        uint32_t failure = rng_below(&t->rng, 3);
        answer->status = failure == 0 ? 0 : message->is_mail ? 451 : 500;
        answer->failure = failure == 1 ? ERR_IO : 0;
        answer->body = STR("not now");
        return;
    }
    struct str text =
        check_service_message(message->is_mail ? message->mail.payload : message->request.body);
    if (text.n > 0) {
        check_service_on_notify_received(&t->service, text);
    }
}
