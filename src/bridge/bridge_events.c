#include "bridge/bridge_internal.h"

bool bridge_logs(const struct bridge *b)
{
    return b->log != NULL;
}

static void bridge_record(struct bridge *b, enum rules_event event, struct str note,
                          const struct recorder_ref *regarding)
{
    if (event == RULES_MISMATCH) {
        b->stats.mismatches++;
        tally_mismatch(&b->tally);
    } else if (event == RULES_STALE_APPROVAL) {
        b->stats.stale++;
        tally_stale(&b->tally);
    }
    if (bridge_logs(b)) {
        log_info(b->log, "told", KV_STR("reason", rules_event_reason(event)),
                 KV_STR("namespace", regarding->space), KV_STR("name", regarding->name),
                 KV_STR("note", note));
    }
    recorder_add(&b->recorder,
                 &(struct recorder_event){
                     .type = rules_event_warns(event) ? STR("Warning") : STR("Normal"),
                     .reason = rules_event_reason(event),
                     .action = STR("Bridge"),
                     .note = note,
                     .regarding = *regarding,
                 });
}

static struct recorder_ref bridge_ref(struct bridge *b, const char *kind, struct str space,
                                      struct str name)
{
    return (struct recorder_ref){
        .kind = str_from(kind),
        .api_version =
            arena_printf(&b->tmp, EDITION_GROUP "/" STR_FMT, STR_ARG(b->edition.version)),
        .space = space,
        .name = name,
    };
}

void bridge_tell(struct berth *at, enum rules_event event, struct str note)
{
    struct bridge *b = at->bridge;
    const struct machine *m = berth_machine(at);
    struct recorder_ref machine = bridge_ref(b, "Machine", m->space, m->name);
    machine.uid = m->uid;
    bridge_record(b, event, note, &machine);
}

void bridge_tell_cluster(struct yard *y, enum rules_event event, struct str note)
{
    struct recorder_ref cluster = bridge_ref(y->bridge, "Cluster", y->space, y->cluster);
    cluster.uid = str_from(y->uid);
    bridge_record(y->bridge, event, note, &cluster);
}
