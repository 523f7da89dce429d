#include "bridge/machine_report.h"

#include "bridge/bridge.h"
#include "kinds/keys.h"

_Static_assert(MACHINE_REPORT_CHANGES_MAX >= 4 * META_PATCH_MAX,
               "all that can be written is shown");

static const struct str sights[] = {
    [RULES_NODE_UNKNOWN] = STR_INIT("unknown"),
    [RULES_NODE_SEEN] = STR_INIT("seen"),
    [RULES_NODE_MISSED] = STR_INIT("missed"),
    [RULES_NODE_ABSENT] = STR_INIT("absent"),
};

/* ── from what the bridge tells ────────────────────────────────────────────────────────────── */

static void add_changes(struct machine_report *p, const char *object,
                        const struct meta_patch *patch)
{
    for (uint32_t i = 0; i < patch->n; i++) {
        ASSERT(p->change_n < MACHINE_REPORT_CHANGES_MAX);
        p->changes[p->change_n++] = (struct machine_report_change){
            .object = str_from(object),
            .key = patch->keys[i].key,
            .value = patch->keys[i].value,
            .label = patch->keys[i].label,
            .remove = patch->keys[i].remove,
        };
    }
}

static struct machine_report_machine machine_of(const struct machine *m)
{
    return (struct machine_report_machine){
        .enabled = m->enabled,
        .paused = m->paused,
        .control_plane = m->control_plane,
        .updating = m->updating,
        .deleted_at = m->deleted_at,
        .hooks_wait_since = m->hooks_wait_since,
        .hold_max = m->hold_max,
        .request = m->request == MACHINE_REQUEST_REQUESTED  ? KEY_REQUESTED
                   : m->request == MACHINE_REQUEST_APPROVED ? KEY_APPROVED
                                                            : STR_NONE,
        .templated = m->request_templated,
        .approved = rules_approved(m),
        .hook = m->hook,
        .released = m->released,
        .power = m->power,
    };
}

static struct machine_report_node node_of(const struct bridge_machine_view *r)
{
    struct machine_report_node n = { .name = r->machine->node, .sight = sights[r->sight] };
    if (r->node != NULL) {
        n.object = *r->node;
    }
    return n;
}

void machine_report_from(const struct bridge_machine_view *r, usec_t now,
                         struct machine_report *ret)
{
    *ret = (struct machine_report){
        .now = r->wall,
        .namespace = r->namespace,
        .name = r->name,
        .ours = r->ours,
        .phase = rules_phase_name(r->verdict.phase),
        .reason = str_from(r->verdict.reason),
        .message = r->verdict.message,
        .next = r->verdict.next,
        .error = r->error,
        .machine = machine_of(r->machine),
        .cluster = { .name = r->machine->cluster },
        .link = { .retry_at = USEC_NEVER },
        .node = node_of(r),
        .rules = { .asked = r->has_request,
                   .known = r->rules_known,
                   .n = r->rules,
                   .error = r->rules_error },
        .request = r->request,
        .workload_request_state = r->workload_request_state,
    };
    if (r->cluster != NULL) {
        ret->cluster.found = true;
        ret->cluster.paused = r->cluster->paused;
        ret->cluster.deleting = r->cluster->deleting;
        ret->cluster.provisioned = r->cluster->provisioned;
    }
    if (r->linked) {
        bool waits = r->link.state == LINK_BACKOFF;
        ret->link = (struct machine_report_link){
            .state = str_from(link_state_name(r->link.state)),
            .since = r->wall - (now - r->link.since),
            .retry_at = waits ? r->wall + (r->link.retry_at - now) : USEC_NEVER,
            .trouble = r->link.trouble,
            .nodes = r->link.nodes,
        };
    }
    add_changes(ret, "Machine", &r->verdict.machine);
    add_changes(ret, "Node", &r->verdict.node);
    if (r->has_host) {
        ret->host = r->host;
        ret->power_reason = str_from(r->power.reason);
        ret->power_message = r->power.message;
        add_changes(ret, "Machine", &r->power.machine);
        add_changes(ret, "BareMetalHost", &r->power.host);
    }
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void print_machine(struct json_writer *w, const struct machine_report_machine *m)
{
    jw_key(w, STR("machine"));
    jw_obj(w);
    jw_pair_bool(w, "enabled", m->enabled);
    jw_pair_bool(w, "paused", m->paused);
    jw_pair_bool(w, "controlPlane", m->control_plane);
    jw_pair_bool(w, "updating", m->updating);
    jw_pair_time(w, "deletedAt", m->deleted_at);
    jw_pair_time(w, "waitsSince", m->hooks_wait_since);
    if (m->hold_max > 0 && m->hold_max != USEC_NEVER) {
        jw_pair_i64(w, "holdSeconds", m->hold_max / SECONDS(1));
    }
    jw_pair_some(w, "maintenance", m->request);
    jw_pair_bool(w, "templated", m->templated);
    jw_pair_bool(w, "approved", m->approved);
    jw_pair_bool(w, "hook", m->hook);
    jw_pair_some(w, "released", m->released);
    jw_pair_some(w, "power", m->power);
    jw_obj_end(w);
}

static void print_cluster(struct json_writer *w, const struct machine_report_cluster *c)
{
    jw_key(w, STR("cluster"));
    jw_obj(w);
    jw_pair(w, "name", c->name);
    jw_pair_bool(w, "found", c->found);
    jw_pair_bool(w, "paused", c->paused);
    jw_pair_bool(w, "deleting", c->deleting);
    jw_pair_bool(w, "provisioned", c->provisioned);
    jw_obj_end(w);
}

static void print_link(struct json_writer *w, const struct machine_report_link *l)
{
    jw_key(w, STR("link"));
    jw_obj(w);
    jw_pair(w, "state", l->state);
    jw_pair_time(w, "since", l->since);
    jw_pair_time(w, "retryAt", l->retry_at);
    jw_pair_some(w, "trouble", l->trouble);
    jw_pair_i64(w, "nodes", l->nodes);
    jw_obj_end(w);
}

static void print_node(struct json_writer *w, const struct machine_report_node *n)
{
    const struct workload_node *o = &n->object;
    jw_key(w, STR("node"));
    jw_obj(w);
    jw_pair(w, "name", n->name);
    jw_pair(w, "sight", n->sight);
    jw_pair_bool(w, "managed", o->managed);
    jw_pair_bool(w, "operational", o->operational);
    jw_pair_bool(w, "deleting", o->deleting);
    jw_pair_bool(w, "machineDeleted", o->machine_deleted);
    jw_pair_bool(w, "machineMaintenance", o->machine_maintenance);
    jw_pair_bool(w, "approveDeletion", o->approve_deletion);
    jw_pair_bool(w, "approveMaintenance", o->approve_maintenance);
    jw_pair_some(w, "deletionRequest", o->deletion_request);
    jw_pair_some(w, "maintenanceRequest", o->maintenance_request);
    jw_pair_some(w, "deletionApprovedFor", o->deletion_approved_for);
    jw_pair_some(w, "maintenanceApprovedFor", o->maintenance_approved_for);
    jw_obj_end(w);
}

static void print_rules(struct json_writer *w, const struct machine_report_rules *r)
{
    jw_key(w, STR("drainRules"));
    jw_obj(w);
    jw_pair_bool(w, "known", r->known);
    jw_pair_i64(w, "count", r->n);
    jw_pair_some(w, "error", r->error);
    jw_obj_end(w);
}

static void print_changes(struct json_writer *w, const struct machine_report *p)
{
    jw_key(w, STR("changes"));
    jw_arr(w);
    for (uint32_t i = 0; i < p->change_n; i++) {
        const struct machine_report_change *c = &p->changes[i];
        jw_obj(w);
        jw_pair(w, "object", c->object);
        jw_pair(w, c->label ? "label" : "annotation", c->key);
        if (!c->remove) {
            jw_pair(w, "value", c->value);
        }
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

void machine_report_print_json(const struct machine_report *p, struct json_writer *w)
{
    jw_obj(w);
    jw_pair_time(w, "now", p->now);
    jw_pair(w, "namespace", p->namespace);
    jw_pair(w, "name", p->name);
    jw_pair_bool(w, "ours", p->ours);
    jw_pair_bool(w, "leading", p->leading);
    jw_pair_some(w, "leader", p->leader);
    jw_pair(w, "phase", p->phase);
    jw_pair(w, "reason", p->reason);
    jw_pair(w, "message", p->message);
    jw_pair_time(w, "next", p->next);
    jw_pair_some(w, "error", p->error);
    print_machine(w, &p->machine);
    print_cluster(w, &p->cluster);
    if (p->link.state.n > 0) {
        print_link(w, &p->link);
    }
    print_node(w, &p->node);
    if (p->rules.asked) {
        print_rules(w, &p->rules);
    }
    if (p->request.n > 0) {
        jw_key(w, STR("maintenanceRequest"));
        jw_obj(w);
        jw_pair(w, "name", p->request);
        jw_pair(w, "state", p->workload_request_state);
        jw_obj_end(w);
    }
    if (p->host.n > 0) {
        jw_key(w, STR("host"));
        jw_obj(w);
        jw_pair(w, "name", p->host);
        jw_pair(w, "reason", p->power_reason);
        jw_pair(w, "message", p->power_message);
        jw_obj_end(w);
    }
    print_changes(w, p);
    jw_obj_end(w);
}
