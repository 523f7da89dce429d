#include "bridge/machine_report.h"

#include "bridge/bridge.h"
#include "kinds/keys.h"
#include "format/json_fields.h"

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
    const struct workload_node *node = r->node;
    if (node != NULL) {
        n.managed = node->managed;
        n.operational = node->operational;
        n.deleting = node->deleting;
        n.machine_deleted = node->machine_deleted;
        n.machine_maintenance = node->machine_maintenance;
        n.approve_deletion = node->approve_deletion;
        n.approve_maintenance = node->approve_maintenance;
        n.deletion_request = node->deletion_request;
        n.maintenance_request = node->maintenance_request;
        n.deletion_approved_for = node->deletion_approved_for;
        n.maintenance_approved_for = node->maintenance_approved_for;
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
    jw_key(w, STR("node"));
    jw_obj(w);
    jw_pair(w, "name", n->name);
    jw_pair(w, "sight", n->sight);
    jw_pair_bool(w, "managed", n->managed);
    jw_pair_bool(w, "operational", n->operational);
    jw_pair_bool(w, "deleting", n->deleting);
    jw_pair_bool(w, "machineDeleted", n->machine_deleted);
    jw_pair_bool(w, "machineMaintenance", n->machine_maintenance);
    jw_pair_bool(w, "approveDeletion", n->approve_deletion);
    jw_pair_bool(w, "approveMaintenance", n->approve_maintenance);
    jw_pair_some(w, "deletionRequest", n->deletion_request);
    jw_pair_some(w, "maintenanceRequest", n->maintenance_request);
    jw_pair_some(w, "deletionApprovedFor", n->deletion_approved_for);
    jw_pair_some(w, "maintenanceApprovedFor", n->maintenance_approved_for);
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

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static int read_machine(const struct json_fields *in, const struct jval *v,
                        struct machine_report_machine *ret)
{
    *ret = (struct machine_report_machine){
        .enabled = jr_bool(v, "enabled"),
        .paused = jr_bool(v, "paused"),
        .control_plane = jr_bool(v, "controlPlane"),
        .updating = jr_bool(v, "updating"),
        .hold_max = SECONDS(jr_u32(v, "holdSeconds", 0)),
        .request = jr_text(in, v, "maintenance"),
        .templated = jr_bool(v, "templated"),
        .approved = jr_bool(v, "approved"),
        .hook = jr_bool(v, "hook"),
        .released = jr_text(in, v, "released"),
        .power = jr_text(in, v, "power"),
    };
    int r = jr_time(in, v, "deletedAt", 0, &ret->deleted_at);
    return r < 0 ? r : jr_time(in, v, "waitsSince", 0, &ret->hooks_wait_since);
}

static int read_link(const struct json_fields *in, const struct jval *v,
                     struct machine_report_link *ret)
{
    *ret = (struct machine_report_link){
        .state = jr_text(in, v, "state"),
        .trouble = jr_text(in, v, "trouble"),
        .nodes = jr_u32(v, "nodes", 0),
    };
    int r = jr_time(in, v, "since", 0, &ret->since);
    return r < 0 ? r : jr_time(in, v, "retryAt", USEC_NEVER, &ret->retry_at);
}

static struct machine_report_node read_node(const struct json_fields *in, const struct jval *v)
{
    return (struct machine_report_node){
        .name = jr_text(in, v, "name"),
        .sight = jr_text(in, v, "sight"),
        .managed = jr_bool(v, "managed"),
        .operational = jr_bool(v, "operational"),
        .deleting = jr_bool(v, "deleting"),
        .machine_deleted = jr_bool(v, "machineDeleted"),
        .machine_maintenance = jr_bool(v, "machineMaintenance"),
        .approve_deletion = jr_bool(v, "approveDeletion"),
        .approve_maintenance = jr_bool(v, "approveMaintenance"),
        .deletion_request = jr_text(in, v, "deletionRequest"),
        .maintenance_request = jr_text(in, v, "maintenanceRequest"),
        .deletion_approved_for = jr_text(in, v, "deletionApprovedFor"),
        .maintenance_approved_for = jr_text(in, v, "maintenanceApprovedFor"),
    };
}

static struct machine_report_rules read_rules(const struct json_fields *in, const struct jval *v)
{
    return (struct machine_report_rules){
        .asked = v != NULL,
        .known = jr_bool(v, "known"),
        .n = jr_u32(v, "count", 0),
        .error = jr_text(in, v, "error"),
    };
}

static int read_changes(const struct json_fields *in, const struct jval *list,
                        struct machine_report *ret)
{
    JVAL_EACH (jval_kind(list) == JARR ? list : NULL, v) {
        if (ret->change_n == MACHINE_REPORT_CHANGES_MAX) {
            return err_set(in->err, ERR_LIMIT, "'changes': at most %u are read",
                           MACHINE_REPORT_CHANGES_MAX);
        }
        bool label = jval_get(v, STR("label")) != NULL;
        ret->changes[ret->change_n++] = (struct machine_report_change){
            .object = jr_text(in, v, "object"),
            .key = jr_text(in, v, label ? "label" : "annotation"),
            .value = jr_text(in, v, "value"),
            .label = label,
            .remove = jval_get(v, STR("value")) == NULL,
        };
    }
    return 0;
}

int machine_report_parse(struct str text, struct arena *out, struct machine_report *ret,
                         struct err *err)
{
    const struct json_fields in = { .out = out, .err = err };
    const struct jval *v;
    int r = json_parse(text, 0, out, &v, err);
    if (r < 0) {
        return r;
    }
    const struct jval *cluster = jval_get(v, STR("cluster"));
    const struct jval *host = jval_get(v, STR("host"));
    const struct jval *request = jval_get(v, STR("maintenanceRequest"));
    *ret = (struct machine_report){
        .namespace = jr_text(&in, v, "namespace"),
        .name = jr_text(&in, v, "name"),
        .ours = jr_bool(v, "ours"),
        .leading = jr_bool(v, "leading"),
        .leader = jr_text(&in, v, "leader"),
        .phase = jr_text(&in, v, "phase"),
        .reason = jr_text(&in, v, "reason"),
        .message = jr_text(&in, v, "message"),
        .error = jr_text(&in, v, "error"),
        .cluster = { .name = jr_text(&in, cluster, "name"),
                     .found = jr_bool(cluster, "found"),
                     .paused = jr_bool(cluster, "paused"),
                     .deleting = jr_bool(cluster, "deleting"),
                     .provisioned = jr_bool(cluster, "provisioned") },
        .node = read_node(&in, jval_get(v, STR("node"))),
        .rules = read_rules(&in, jval_get(v, STR("drainRules"))),
        .request = jr_text(&in, request, "name"),
        .workload_request_state = jr_text(&in, request, "state"),
        .host = jr_text(&in, host, "name"),
        .power_reason = jr_text(&in, host, "reason"),
        .power_message = jr_text(&in, host, "message"),
    };
    if (ret->name.n == 0) {
        return err_set(err, ERR_PROTO, "this is no document about a Machine");
    }
    r = jr_time(&in, v, "now", 0, &ret->now);
    r = r < 0 ? r : jr_time(&in, v, "next", USEC_NEVER, &ret->next);
    r = r < 0 ? r : read_machine(&in, jval_get(v, STR("machine")), &ret->machine);
    r = r < 0 ? r : read_link(&in, jval_get(v, STR("link")), &ret->link);
    return r < 0 ? r : read_changes(&in, jval_get(v, STR("changes")), ret);
}
