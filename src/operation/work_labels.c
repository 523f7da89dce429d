/* Labels that a visit gives its node: those that tell operators of stateful systems, and the one
 * that takes it out of external load balancers. They stand in the visit's record with what was
 * there before, so whoever leads at the end can take them back. */
#include "operation/operations_internal.h"

/* ── what the visit wants ──────────────────────────────────────────────────────────────────── */

/* The record may be the store's. */
static void visit_copy_labels(struct visit_record *v, uint32_t room, struct arena *out)
{
    struct visit_label *labels = ARENA_ARRAY(out, struct visit_label, room);
    for (uint32_t i = 0; i < v->label_n; i++) {
        labels[i] = v->labels[i];
    }
    v->labels = labels;
}

static struct visit_label *visit_label_of(struct visit_record *v, struct str key, struct arena *out)
{
    for (uint32_t i = 0; i < v->label_n; i++) {
        if (str_eq(v->labels[i].key, key)) {
            return &v->labels[i];
        }
    }
    visit_copy_labels(v, v->label_n + 1, out);
    v->labels[v->label_n] = (struct visit_label){ .key = arena_str(out, key) };
    return &v->labels[v->label_n++];
}

/* The object of the higher priority joins first: what it says of a label counts. */
static void visit_join_labels(struct visit_record *v, struct str json, bool after,
                              struct arena *out)
{
    const struct jval *labels = NULL;
    struct err err = { 0 };
    if (json_parse(json, JSON_GO, out, &labels, &err) < 0) {
        return; /* the reader of the kind has printed it: it can be read */
    }
    JVAL_EACH (labels, label) {
        struct visit_label *l = visit_label_of(v, jval_key(label), out);
        struct str *value = after ? &l->after : &l->value;
        if (value->p == NULL) {
            *value = arena_str(out, jval_str(label));
        }
    }
}

void visit_labels_join(struct visit_record *v, const struct campaign *c)
{
    const struct maintenance_disruption *d = &c->m->disruption;
    struct arena *out = &c->o->tmp;
    visit_copy_labels(v, v->label_n, out);
    visit_join_labels(v, d->labels_before, /* after= */ false, out);
    visit_join_labels(v, d->labels_after, /* after= */ true, out);
    if (d->leave_load_balancers) {
        visit_label_of(v, KEY_NO_LOAD_BALANCER, out)->value = KEYS_TRUE;
        v->leave_wait = MAX(v->leave_wait, d->load_balancer_wait);
    }
}

bool visit_labels_fit(const struct visit_record *v, const struct campaign *c)
{
    struct visit_record joined = *v;
    visit_labels_join(&joined, c);
    return joined.label_n <= VISIT_LABELS_MAX;
}

/* ── what the node has ─────────────────────────────────────────────────────────────────────── */

void work_label_facts(const struct work *w, const struct node *node, const struct visit_record *v,
                      struct visit_facts *f)
{
    struct str *values = ARENA_ARRAY(&w->o->tmp, struct str, v->label_n);
    f->labels_mark = node_annotation(node, KEY_VISIT_LABELS);
    f->labels_set = str_eq(f->labels_mark, v->id);
    for (uint32_t i = 0; i < v->label_n; i++) {
        const struct visit_label *l = &v->labels[i];
        values[i] = node_label(node, l->key);
        f->labels_set = f->labels_set && (l->value.p == NULL ||
                                          (values[i].p != NULL && str_eq(values[i], l->value)));
    }
    f->labels = values;
}

/* ── doing it ──────────────────────────────────────────────────────────────────────────────── */

/* A label that somebody has changed in the meantime is theirs. */
static void wish_restore(struct node_write_wish *wish, const struct visit_label *l,
                         struct str current, bool after)
{
    bool ours = l->value.p != NULL && current.p != NULL && str_eq(current, l->value);
    if (after && l->after.p != NULL) {
        node_write_label(wish, l->key, l->after);
    } else if (ours) {
        node_write_label(wish, l->key, l->old); /* none: it goes */
    }
}

void work_act_labels(struct work *w, const struct visit_record *v, const struct visit_plan *plan)
{
    struct operations *o = w->o;
    const struct store_item *item = store_find(&o->core->nodes.store, w->name);
    struct node_write_wish wish = { 0 };
    bool restore = plan->labels == VISIT_LABELS_RESTORE;
    if (plan->labels == VISIT_LABELS_KEEP || item == NULL || !operations_may_send(o)) {
        return;
    }
    for (uint32_t i = 0; i < v->label_n; i++) {
        const struct visit_label *l = &v->labels[i];
        if (restore) {
            wish_restore(&wish, l, node_label(item->object, l->key), plan->labels_after);
        } else if (l->value.p != NULL) {
            node_write_label(&wish, l->key, l->value);
        }
    }
    node_write_annotation(&wish, KEY_VISIT_LABELS, restore ? STR_NONE : v->id);
    if (node_write_step(&w->labels, item, &wish) == NODE_WRITE_WAITS) {
        loop_timer_pull(&o->turn, w->labels.retry_at);
        buf_reset(&w->waits);
        buf_printf(&w->waits, "the labels of its node to be written: %s", w->labels.err.msg);
    }
}
