/* converge: what was done and what is not right, as text and as JSON. */
#include "agent/converge.h"
#include "format/json_writer.h"

static const char *const on_remove_verbs[] = {
    [ON_REMOVE_KEEP] = "forgotten",
    [ON_REMOVE_RESTORE] = "restored",
    [ON_REMOVE_REMOVE] = "removed",
};

/* In quotes, on one line, whatever it holds. */
static void add_quoted(struct str text, struct buf *out)
{
    buf_add_char(out, '\'');
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '\n' || c == '\t') {
            buf_add(out, c == '\n' ? STR("\\n") : STR("\\t"));
        } else if (c < 0x20 || c == 0x7f) {
            buf_printf(out, "\\x%02x", c);
        } else {
            buf_add_char(out, text.p[i]);
        }
    }
    buf_add_char(out, '\'');
}

static void add_difference(const struct resource *r, const struct difference *d, struct buf *out)
{
    if (r->meta.sensitive) {
        buf_printf(out, "    %s differs\n", d->property);
    } else {
        buf_printf(out, "    %s: ", d->property);
        add_quoted(d->was, out);
        buf_add(out, STR(" → "));
        add_quoted(d->want, out);
        buf_add_char(out, '\n');
    }
}

/* One word for what has become of it; NULL: it was right already. */
static const char *word_of(const struct vertex *x)
{
    switch (x->state) {
    case VERTEX_OK:
        return x->changed ? "changed" : x->refreshed ? "refreshed" : NULL;
    case VERTEX_NOOP:
        return "would change";
    case VERTEX_DEFERRED:
        return "deferred";
    case VERTEX_BLOCKED:
        return "blocked";
    case VERTEX_CONTESTED:
        return "contested";
    case VERTEX_VETOED:
        return "vetoed";
    default:
        return "failed";
    }
}

static void add_vertex(const struct converge *c, uint32_t v, struct buf *out)
{
    const struct vertex *x = &c->engine.vertices[v];
    const struct resource *r = &c->spec.graph->resources->items[v];
    const char *word = word_of(x);
    if (word == NULL) {
        return;
    }
    buf_printf(out, "%s: " STR_FMT " (" STR_FMT ")", word, STR_ARG(r->name), STR_ARG(r->id));
    if (x->reason != NULL) {
        buf_printf(out, ": %s: %s", x->reason, vertex_message(x));
    } else if (x->refreshed && x->changed) {
        buf_add(out, STR(", refreshed"));
    } else if (x->state == VERTEX_NOOP && c->vertices[v].difference_n == 0) {
        buf_add(out, STR(", by a refresh"));
    }
    buf_add_char(out, '\n');
    for (uint32_t i = 0; i < c->vertices[v].difference_n; i++) {
        add_difference(r, &c->vertices[v].differences[i], out);
    }
}

static void add_summary(const struct converge *c, struct buf *out)
{
    static const enum vertex_state told[] = { VERTEX_NOOP,    VERTEX_DEFERRED,  VERTEX_FAILED,
                                              VERTEX_BLOCKED, VERTEX_CONTESTED, VERTEX_VETOED };
    static const char *const words[] = { "would change", "deferred",  "failed",
                                         "blocked",      "contested", "vetoed" };
    struct engine_counts counts = engine_count(&c->engine);
    buf_printf(out, "%u of %u right, %u changed", counts.states[VERTEX_OK], counts.total,
               counts.changed);
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        if (counts.states[told[i]] > 0) {
            buf_printf(out, ", %u %s", counts.states[told[i]], words[i]);
        }
    }
    buf_add_char(out, '\n');
}

void converge_print_text(const struct converge *c, struct buf *out)
{
    for (uint32_t i = 0; i < c->spec.graph->resources->n; i++) {
        add_vertex(c, c->spec.graph->order[i], out);
    }
    for (uint32_t i = 0; i < c->removal_n; i++) {
        const struct converge_removal *removal = &c->removals[i];
        if (removal->message.n > 0) {
            buf_printf(out, "failed: " STR_FMT ", which is not listed any more: " STR_FMT "\n",
                       STR_ARG(removal->id), STR_ARG(removal->message));
        } else {
            buf_printf(out, "%s%s: " STR_FMT ", which is not listed any more\n",
                       removal->done ? "" : "would be ", on_remove_verbs[removal->how],
                       STR_ARG(removal->id));
        }
    }
    add_summary(c, out);
}

/* ── JSON ──────────────────────────────────────────────────────────────────────────────────── */

static void write_vertex(const struct converge *c, uint32_t v, struct json_writer *w)
{
    const struct vertex *x = &c->engine.vertices[v];
    const struct resource *r = &c->spec.graph->resources->items[v];
    jw_obj(w);
    jw_pair(w, "name", r->name);
    jw_pair(w, "id", r->id);
    jw_pair(w, "state", str_from(vertex_state_names[x->state]));
    jw_pair_bool(w, "changed", x->changed);
    jw_pair_bool(w, "refreshed", x->refreshed);
    if (x->reason != NULL) {
        jw_pair(w, "reason", str_from(x->reason));
        jw_pair(w, "message", str_from(vertex_message(x)));
        jw_pair_i64(w, "tries", x->tries);
    }
    jw_key(w, STR("differences"));
    jw_arr(w);
    for (uint32_t i = 0; i < c->vertices[v].difference_n; i++) {
        const struct difference *d = &c->vertices[v].differences[i];
        jw_obj(w);
        jw_pair(w, "property", str_from(d->property));
        if (!r->meta.sensitive) {
            jw_pair(w, "was", d->was);
            jw_pair(w, "want", d->want);
        }
        jw_obj_end(w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

static void write_counts(const struct converge *c, struct json_writer *w)
{
    struct engine_counts counts = engine_count(&c->engine);
    jw_key(w, STR("counts"));
    jw_obj(w);
    jw_pair_i64(w, "total", counts.total);
    jw_pair_i64(w, "ok", counts.states[VERTEX_OK]);
    jw_pair_i64(w, "noop", counts.states[VERTEX_NOOP]);
    jw_pair_i64(w, "failed", counts.states[VERTEX_FAILED]);
    jw_pair_i64(w, "blocked", counts.states[VERTEX_BLOCKED]);
    jw_pair_i64(w, "deferred", counts.states[VERTEX_DEFERRED]);
    jw_pair_i64(w, "contested", counts.states[VERTEX_CONTESTED]);
    jw_pair_i64(w, "vetoed", counts.states[VERTEX_VETOED]);
    jw_pair_i64(w, "changed", counts.changed);
    jw_obj_end(w);
}

void converge_print_json(const struct converge *c, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    write_counts(c, &w);
    jw_key(&w, STR("resources"));
    jw_arr(&w);
    for (uint32_t i = 0; i < c->spec.graph->resources->n; i++) {
        write_vertex(c, c->spec.graph->order[i], &w);
    }
    jw_arr_end(&w);
    jw_key(&w, STR("removed"));
    jw_arr(&w);
    for (uint32_t i = 0; i < c->removal_n; i++) {
        jw_obj(&w);
        jw_pair(&w, "id", c->removals[i].id);
        jw_pair(&w, "how", str_from(on_remove_verbs[c->removals[i].how]));
        jw_pair_bool(&w, "done", c->removals[i].done);
        jw_pair_some(&w, "message", c->removals[i].message);
        jw_obj_end(&w);
    }
    jw_arr_end(&w);
    jw_obj_end(&w);
    buf_add_char(out, '\n');
}
