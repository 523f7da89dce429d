#include "kinds/node_state.h"

static void operations_read(const struct spec_node *status, struct node_state *s)
{
    struct spec_node list = spec_member(status, "operations");
    struct operation_state *items = ARENA_ARRAY(status->reader->out, struct operation_state,
                                                MIN(spec_count(&list), NODE_STATE_OPERATIONS_MAX));
    s->operations = items;
    SPEC_EACH(&list, NODE_STATE_OPERATIONS_MAX, item)
    {
        struct spec_node success = spec_member(&item, "lastSuccess");
        items[s->operation_n++] = (struct operation_state){
            .maintenance = spec_text(&item, "maintenance"),
            .maintenance_uid = spec_text(&item, "maintenanceUID"),
            .operation = spec_text(&item, "operation"),
            .revision = spec_text(&item, "revision"),
            .phase = spec_text(&item, "phase"),
            .reason = spec_text(&item, "reason"),
            .attempt = (uint32_t)spec_number(&item, "attempt", 0, 0, INT32_MAX),
            .tick = spec_time(&item, "tick"),
            .started = spec_time(&item, "startedAt"),
            .finished = spec_time(&item, "finishedAt"),
            .success_revision = spec_text(&success, "revision"),
            .success_time = spec_time(&success, "time"),
            .interruptions = (uint32_t)spec_number(&item, "interruptions", 0, 0, INT32_MAX),
            .interrupted_revision = spec_text(&item, "interruptedRevision"),
            .interrupted_tick = spec_time(&item, "interruptedTick"),
            .job = spec_text(&item, "job"),
            .request = spec_text(&item, "request"),
            .message = spec_text(&item, "message"),
        };
    }
}

/* A stranger's word: cut, and without what a terminal or a log would act upon. */
static struct str agent_word(const struct jval *agent, const char *key, struct arena *out)
{
    struct str text = jval_str(jval_get(agent, str_from(key)));
    size_t n = MIN(text.n, (size_t)NODE_STATE_WORD_MAX);
    char *copy = arena_alloc(out, n + 1);
    for (size_t i = 0; i < n; i++) {
        copy[i] = text.p[i] >= ' ' && text.p[i] <= '~' ? text.p[i] : '?';
    }
    return (struct str){ .p = copy, .n = n };
}

static void agent_read(const struct jval *agent, struct arena *out, struct agent_report *r)
{
    const struct jval *facts = jval_get(agent, STR("facts"));
    const struct jval *reboot = jval_at(facts, "rebootRequired.value");
    if (jval_kind(agent) != JOBJ) {
        return;
    }
    *r = (struct agent_report){
        .given = true,
        .version = agent_word(agent, "version", out),
        .boot_id = agent_word(agent, "bootID", out),
        .machine_id = agent_word(agent, "machineID", out),
        .probe = agent_word(agent, "probe", out),
        .observed_revision = agent_word(agent, "observedRevision", out),
        .adopted_revision = agent_word(agent, "adoptedRevision", out),
        .seal_key = agent_word(agent, "sealKey", out),
        .facts = {
            .os_id = agent_word(facts, "osId", out),
            .os_version = agent_word(facts, "osVersion", out),
            .kernel = agent_word(facts, "kernel", out),
            .kubelet = agent_word(facts, "kubelet", out),
            .arch = agent_word(facts, "arch", out),
            .package_manager = agent_word(facts, "packageManager", out),
        },
        .reboot_known = jval_kind(reboot) == JBOOL,
        .reboot_required = jval_bool(reboot, false),
        .last_report = jval_time(jval_get(agent, STR("lastReport")), 0),
    };
}

void node_state_read(const struct jval *object, struct arena *out, struct node_state *ret)
{
    static const char *const kinds[] = { "Node", "ExternalMachine" };
    struct spec_reader reader = { .out = out };
    struct spec_node spec = spec_root(&reader, object, "spec");
    struct spec_node target = spec_member(&spec, "target");
    struct spec_node status = spec_root(&reader, object, "status");
    *ret = (struct node_state){
        .meta = spec_read_meta(object, out),
        .format_known = spec_number(&spec, "format", 0, 0, INT32_MAX) == NODE_STATE_FORMAT,
        .kind = (enum machine_kind)SPEC_ENUM(&target, "kind", kinds, MACHINE_NODE),
        .machine = spec_text(&target, "name"),
        .machine_uid = spec_text(&target, "uid"),
        .revision = spec_text(&spec, "revision"),
        .sequence = (uint64_t)spec_number(&spec, "sequence", 0, 0, INT64_MAX),
        .seal_key = spec_text(&status, "sealKey"),
        .has_status = status.value != NULL,
        .rebooted = spec_time(&status, "rebootedAt"),
        .reboot_useless = spec_bool(&status, "rebootDidNotHelp", false),
        .conditions = spec_json(&status, "conditions"),
    };
    if (ret->machine.n == 0 || ret->machine_uid.n == 0) {
        spec_wrong(&target, "Invalid", "name and uid of a machine");
    }
    operations_read(&status, ret);
    if (visit_record_read(jval_get(status.value, STR("visit")), out, &ret->visit) &&
        ret->visit.phase == VISIT_UNKNOWN) {
        struct spec_node visit = spec_member(&status, "visit");
        spec_wrong(&visit, "UnknownVisit", "a visit of format %u that this version knows",
                   VISIT_FORMAT);
    }
    agent_read(jval_get(status.value, STR("agent")), out, &ret->agent);
    ret->problem = reader.problem;
}

const struct operation_state *node_state_find(const struct node_state *s, struct str maintenance,
                                              struct str operation)
{
    for (uint32_t i = 0; i < s->operation_n; i++) {
        const struct operation_state *o = &s->operations[i];
        if (str_eq(o->maintenance, maintenance) && str_eq(o->operation, operation)) {
            return o;
        }
    }
    return NULL;
}

static int node_state_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                              void **ret, struct err *err UNUSED)
{
    struct node_state *s = ARENA_NEW(out, struct node_state);
    node_state_read(object, out, s);
    *ret = s;
    return 0;
}

/* Every version counts: the next write is based on it, and the visit is in it. */
static bool node_state_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

const struct store_kind node_state_kind = {
    .name = "node state",
    .namespaced = true,
    .project = node_state_project,
    .same = node_state_same,
};
