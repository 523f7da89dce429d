/* Whatever a NodeMaintenance holds, it is read; without a problem it says what to do on whom. */
#include "kinds/node_maintenance.h"
#include "tests/fuzz/target.h"

static int find_zone(void *ctx UNUSED, struct str name, const struct zone **ret, struct err *err)
{
    if (name.n % 2 == 0) {
        return err_set(err, ERR_NOTFOUND, "no such zone");
    }
    *ret = NULL;
    return 0;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    const struct jval *payload = NULL;
    struct node_maintenance m;
    const struct window_sources sources = { .find_zone = find_zone, .now = SECONDS(1767323045) };
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    node_maintenance_read(object, &sources, &a, &m);
    ASSERT((m.problem.reason.n > 0) == (m.problem.field.n > 0));
    ASSERT(m.rollout.wave_n >= 1 && m.rollout.wave_n <= MAINTENANCE_WAVES_MAX + 1);
    ASSERT(m.record.place_n <= MAINTENANCE_VISITS_MAX);
    if (m.problem.reason.n > 0) {
        return;
    }
    ASSERT(m.operation_n >= 1 && m.operation_n <= OPERATIONS_MAX);
    ASSERT(m.rollout.max_concurrent.n >= 1 && m.failure.pause_after.n >= 1);
    ASSERT(!m.window.given || m.window.refs.n > 0 || m.window.own.given || m.window.has_override);
    for (uint32_t i = 0; i < m.operation_n; i++) {
        const struct node_operation *o = &m.operations[i];
        ASSERT(o->name.n > 0 && o->name.n <= OPERATION_NAME_MAX);
        ASSERT(o->payload != PAYLOAD_NONE || o->reboot.policy != REBOOT_NEVER);
        if (o->payload == PAYLOAD_JOB || o->payload == PAYLOAD_RESOURCES) {
            int r = json_parse(o->payload_json, 0, &a, &payload, &err);
            ASSERT(r == 0);
        }
    }
}
