/* Sends Events about Machines and Clusters, and counts and logs them. */
#include "bridge/bridge_internal.h"

#include "kinds/keys.h"

static void bridge_event(struct bridge *b, enum rules_event event, struct str note,
                         const struct recorder_ref *regarding)
{
    if (event == RULES_EVENT_MISMATCH) {
        b->stats.mismatches++;
        bridge_metrics_mismatch(&b->series);
    } else if (event == RULES_EVENT_STALE_APPROVAL) {
        b->stats.stale++;
        bridge_metrics_stale(&b->series);
    }
    log_info(b->log, "told", KV_STR("reason", rules_event_reason(event)),
             KV_STR("namespace", regarding->namespace), KV_STR("name", regarding->name),
             KV_STR("note", note));
    recorder_add(&b->recorder,
                 &(struct recorder_event){
                     .type = rules_event_warns(event) ? STR("Warning") : STR("Normal"),
                     .reason = rules_event_reason(event),
                     .action = STR("Bridge"),
                     .note = note,
                     .regarding = *regarding,
                 });
}

static struct recorder_ref bridge_event_ref(struct bridge *b, const char *kind,
                                            struct str namespace, struct str name)
{
    return (struct recorder_ref){
        .kind = str_from(kind),
        .api_version = arena_printf(&b->tmp, CAPI_GROUP "/" STR_FMT, STR_ARG(b->capi.version)),
        .namespace = namespace,
        .name = name,
    };
}

void bridge_event_for_machine(struct machine_state *ms, enum rules_event event, struct str note)
{
    struct bridge *b = ms->bridge;
    const struct machine *m = machine_object(ms);
    struct recorder_ref machine = bridge_event_ref(b, "Machine", m->namespace, m->name);
    machine.uid = m->uid;
    bridge_event(b, event, note, &machine);
}

void bridge_event_for_cluster(struct cluster_state *cs, enum rules_event event, struct str note)
{
    struct recorder_ref cluster =
        bridge_event_ref(cs->bridge, "Cluster", cs->namespace, cs->cluster);
    cluster.uid = link_uid(cs->link);
    bridge_event(cs->bridge, event, note, &cluster);
}
