/* The report of a Machine as text, for `drydock explain machine`. */
#include "bridge/machine_report.h"

#include "base/humantime.h"
#include "base/textwrap.h"
#include "kinds/keys.h"
#include "bridge/link.h"

#define FIELD_COLUMN 11u

struct report_text {
    const struct machine_report *report;
    bool wide;
    struct textwrap line;
    struct arena tmp;
    bool field_filled; /* something stands behind the field's name */
};

static void field_begin(struct report_text *p, const char *name)
{
    p->line.hang = FIELD_COLUMN;
    p->field_filled = false;
    textwrap_add(&p->line, STR("  "));
    textwrap_add(&p->line, str_from(name));
    textwrap_tab(&p->line, FIELD_COLUMN);
}

/* One more fact of the field. */
static void field_add(struct report_text *p, struct str text)
{
    if (text.n > 0) {
        textwrap_add(&p->line, p->field_filled ? STR(", ") : STR_NONE);
        textwrap_add(&p->line, text);
        p->field_filled = true;
    }
}

static void field(struct report_text *p, const char *name, struct str text)
{
    if (text.n > 0) {
        field_begin(p, name);
        textwrap_add(&p->line, text);
        textwrap_end(&p->line);
    }
}

static struct str ago(struct report_text *p, usec_t since)
{
    return humantime_since(p->report->now, since, &p->tmp);
}

/* ── the management cluster ────────────────────────────────────────────────────────────────── */

static void report_text_machine(struct report_text *p)
{
    const struct machine_report_machine *m = &p->report->machine;
    field_begin(p, "machine");
    field_add(p, m->enabled ? STR("enabled") : STR("not enabled"));
    field_add(p, m->paused ? STR("paused") : STR_NONE);
    field_add(p, m->control_plane ? STR("of the control plane") : STR_NONE);
    field_add(p, m->updating ? STR("updated in place") : STR_NONE);
    if (m->deleted_at > 0) {
        field_add(p, arena_concat(&p->tmp, STR("being deleted for "), ago(p, m->deleted_at)));
    }
    if (m->hooks_wait_since > 0) {
        struct str length = ago(p, m->hooks_wait_since);
        field_add(
            p, arena_printf(&p->tmp, "Cluster API waits for hooks for " STR_FMT, STR_ARG(length)));
    }
    textwrap_end(&p->line);

    field_begin(p, "hook");
    field_add(p, m->hook ? STR("attached") : STR("not attached"));
    if (m->released.n > 0) {
        field_add(p, arena_concat(&p->tmp, STR("released: "), m->released));
    }
    if (m->hold_max >= SECONDS(1) && m->hold_max != USEC_NEVER) {
        struct str length = humantime_span(m->hold_max, &p->tmp);
        field_add(
            p, arena_printf(&p->tmp, "holds a deletion for " STR_FMT " at most", STR_ARG(length)));
    }
    textwrap_end(&p->line);
    if (m->request.n > 0 || m->approved) {
        field_begin(p, "wanted");
        textwrap_add(&p->line, STR("a maintenance: "));
        field_add(p, m->request);
        bool beside = m->approved && !str_eq(m->request, KEY_APPROVED);
        field_add(p, beside ? STR("approved beside the label") : STR_NONE);
        field_add(p, m->templated ? STR("by a template") : STR_NONE);
        textwrap_end(&p->line);
    }
}

static void report_text_cluster(struct report_text *p)
{
    const struct machine_report_cluster *c = &p->report->cluster;
    struct str name = c->name.n > 0 ? c->name : STR("none is named");
    field_begin(p, "cluster");
    textwrap_add(&p->line, name);
    textwrap_add(&p->line, STR(": "));
    if (!c->found) {
        field_add(p, STR("there is no such Cluster"));
    } else {
        field_add(p, c->provisioned ? STR("provisioned") : STR("not provisioned yet"));
        field_add(p, c->paused ? STR("paused") : STR_NONE);
        field_add(p, c->deleting ? STR("being deleted") : STR_NONE);
    }
    textwrap_end(&p->line);
}

/* ── the workload cluster ──────────────────────────────────────────────────────────────────── */

static void report_text_link(struct report_text *p)
{
    const struct machine_report_link *l = &p->report->link;
    field_begin(p, "link");
    if (l->state.n == 0) {
        field_add(p, STR("none"));
        textwrap_end(&p->line);
        return;
    }
    struct str length = ago(p, l->since);
    struct str when = humantime_at(p->report->now, l->retry_at, &p->tmp);
    field_add(p,
              arena_printf(&p->tmp, STR_FMT " for " STR_FMT, STR_ARG(l->state), STR_ARG(length)));
    if (str_eq(l->state, str_from(link_state_name(LINK_WATCHING)))) {
        field_add(p, arena_printf(&p->tmp, "%u node%s", l->nodes, l->nodes == 1 ? "" : "s"));
    }
    if (when.n > 0) {
        field_add(p, arena_concat(&p->tmp, STR("tries again "), when));
    }
    textwrap_add(&p->line, l->trouble.n > 0 ? STR(": ") : STR_NONE);
    textwrap_add(&p->line, l->trouble);
    textwrap_end(&p->line);
}

static struct str node_sight_text(const struct machine_report_node *n)
{
    if (str_eq(n->sight, STR("seen"))) {
        return n->object.deleting ? STR("being deleted") : STR_NONE;
    }
    if (str_eq(n->sight, STR("missed"))) {
        return STR("not in its cluster, as far as the watch tells");
    }
    return str_eq(n->sight, STR("absent")) ? STR("not in its cluster: two reads have said so")
                                           : STR("its cluster cannot be asked at the moment");
}

static void report_text_mark(struct report_text *p, const char *label, bool there, struct str named)
{
    if (!there) {
        return;
    }
    bool named_too = p->wide && named.n > 0;
    field_add(p, named_too ? arena_printf(&p->tmp, "%s (" STR_FMT ")", label, STR_ARG(named))
                           : str_from(label));
}

static void report_text_node(struct report_text *p)
{
    const struct machine_report_node *n = &p->report->node;
    const struct workload_node *o = &n->object;
    field_begin(p, "node");
    if (n->name.n == 0) {
        field_add(p, STR("none yet"));
        textwrap_end(&p->line);
        return;
    }
    textwrap_add(&p->line, n->name);
    textwrap_add(&p->line, STR(": "));
    field_add(p, node_sight_text(n));
    bool seen = str_eq(n->sight, STR("seen"));
    if (seen) {
        field_add(p, o->operational ? STR("in service")
                     : o->managed   ? STR("not in service")
                                    : STR("its engine has not labelled it"));
    }
    textwrap_end(&p->line);
    if (!seen) {
        return;
    }
    field_begin(p, "asked");
    report_text_mark(p, "machine-deleted", o->machine_deleted, o->deletion_request);
    report_text_mark(p, "machine-maintenance", o->machine_maintenance, o->maintenance_request);
    field_add(p, p->field_filled ? STR_NONE : STR("nothing"));
    textwrap_end(&p->line);
    field_begin(p, "answer");
    report_text_mark(p, "approve-deletion", o->approve_deletion, o->deletion_approved_for);
    report_text_mark(p, "approve-maintenance", o->approve_maintenance, o->maintenance_approved_for);
    field_add(p, p->field_filled ? STR_NONE : STR("none"));
    textwrap_end(&p->line);
}

static void report_text_rules(struct report_text *p)
{
    const struct machine_report_rules *r = &p->report->rules;
    if (!r->asked) {
        return;
    }
    field_begin(p, "rules");
    if (r->error.n > 0) {
        textwrap_add(&p->line, r->known ? STR("nothing is drained: ") : STR("not known: "));
        textwrap_add(&p->line, r->error);
    } else if (r->n == 0) {
        textwrap_add(&p->line, STR("no MachineDrainRule applies"));
    } else {
        textwrap_printf(&p->line, "%u MachineDrainRule%s", r->n,
                        r->n == 1 ? " applies" : "s apply");
    }
    textwrap_end(&p->line);
}

static void report_text_request(struct report_text *p)
{
    const struct machine_report *a = p->report;
    if (a->request.n > 0) {
        field_begin(p, "limits");
        textwrap_printf(&p->line, "MaintenanceRequest " STR_FMT " is " STR_FMT, STR_ARG(a->request),
                        STR_ARG(a->workload_request_state));
        textwrap_end(&p->line);
    }
}

static void report_text_host(struct report_text *p)
{
    const struct machine_report *a = p->report;
    if (a->host.n == 0) {
        return;
    }
    field_begin(p, "host");
    textwrap_add(&p->line, a->host);
    textwrap_add(&p->line, STR(": "));
    if (a->machine.power.n > 0) {
        field_add(p, arena_concat(&p->tmp, STR("power is "), a->machine.power));
    }
    field_add(p, a->power_reason);
    textwrap_add(&p->line, a->power_message.n > 0 ? STR(": ") : STR_NONE);
    textwrap_add(&p->line, a->power_message);
    textwrap_end(&p->line);
}

/* ── what comes next ───────────────────────────────────────────────────────────────────────── */

static void report_text_changes(struct report_text *p)
{
    const struct machine_report *a = p->report;
    if (a->change_n == 0) {
        field(p, "writes", STR("nothing"));
        return;
    }
    for (uint32_t i = 0; i < a->change_n; i++) {
        const struct machine_report_change *c = &a->changes[i];
        const char *kind = c->label ? "label" : "annotation";
        field_begin(p, i == 0 ? "writes" : "");
        textwrap_printf(&p->line, STR_FMT ": %s %s " STR_FMT, STR_ARG(c->object),
                        c->remove ? "removes" : "sets", kind, STR_ARG(c->key));
        if (!c->remove) {
            textwrap_printf(&p->line, "=" STR_FMT, STR_ARG(c->value));
        }
        textwrap_end(&p->line);
    }
}

static void report_text_replica(struct report_text *p)
{
    const struct machine_report *a = p->report;
    if (!a->ours) {
        field(p, "replica", STR("another shard looks after its Cluster"));
    } else if (!a->leading) {
        field(p, "replica",
              a->leader.n > 0
                  ? arena_concat(&p->tmp, STR("writes nothing, for it does not lead: "), a->leader)
                  : STR("writes nothing, for it does not lead"));
    }
}

void machine_report_print_text(const struct machine_report *a, bool wide, struct buf *out)
{
    struct report_text p = {
        .report = a,
        .wide = wide,
        .line = { .out = out,
                  .columns = wide             ? 0
                             : a->columns > 0 ? a->columns
                                              : MACHINE_REPORT_COLUMNS,
                  .hang = 2 },
    };
    textwrap_printf(&p.line, "machine " STR_FMT "/" STR_FMT ": " STR_FMT, STR_ARG(a->namespace),
                    STR_ARG(a->name), STR_ARG(a->phase));
    if (a->reason.n > 0) {
        textwrap_printf(&p.line, " (" STR_FMT ")", STR_ARG(a->reason));
    }
    textwrap_end(&p.line);
    field(&p, "says", a->message);
    struct str when = humantime_at(a->now, a->next, &p.tmp);
    field(&p, "changes", when);
    field(&p, "error", a->error);
    report_text_replica(&p);
    report_text_machine(&p);
    report_text_cluster(&p);
    report_text_link(&p);
    report_text_node(&p);
    report_text_rules(&p);
    report_text_request(&p);
    report_text_host(&p);
    report_text_changes(&p);
    arena_done(&p.tmp);
}
