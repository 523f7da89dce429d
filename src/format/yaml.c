#include "format/yaml.h"

#include <yaml.h>

#include "base/limits.h"
#include "base/map.h"
#include "format/json_tape.h"
#include "format/yaml_scalar.h"

#define NONE UINT32_MAX

struct anchor {
    uint32_t at;
    uint32_t height; /* levels it spans; 0 for a scalar */
    bool open;       /* its own content is being read */
    bool gone;       /* it was part of what "<<" brought in */
};

struct level {
    uint32_t at;     /* the container's cell */
    uint32_t merge;  /* the cell of the name "<<", or NONE */
    uint32_t height; /* of the highest value in it */
    bool object;
    bool has_key; /* a name stands before, its value comes next */
    struct anchor *anchor;
};

struct reader {
    yaml_parser_t parser;
    struct tape tape;
    struct ymark *marks;
    uint32_t marks_cap;
    struct level open[YAML_DEPTH_MAX];
    uint32_t depth;
    uint32_t values; /* of all documents */
    bool lenient;    /* a name may come twice */
    bool plain;      /* no anchors, aliases and merges */
    uint64_t merge_steps;
    struct map anchors;
    struct err *err;
};

static struct pos pos_of(yaml_mark_t mark)
{
    return (struct pos){ .line = (uint32_t)mark.line + 1, .column = (uint32_t)mark.column + 1 };
}

static int reader_fail(struct reader *r, struct pos pos)
{
    r->err->pos = pos;
    return err_wrap(r->err, "line %u, column %u", pos.line, pos.column);
}

static int reader_fail_depth(struct reader *r, struct pos pos)
{
    (void)err_set(r->err, ERR_LIMIT, "nested deeper than %u", YAML_DEPTH_MAX);
    return reader_fail(r, pos);
}

/* libyaml's words: what was wrong, and what it was reading. */
static int reader_fail_syntax(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem != NULL ? p->problem : "cannot be read";
    if (p->error == YAML_READER_ERROR) {
        (void)err_set(r->err, ERR_INVALID, "byte %zu: %s", p->problem_offset, problem);
        return -ERR_INVALID;
    }
    if (p->context != NULL) {
        (void)err_set(r->err, ERR_INVALID, "%s %s that begins in line %zu", problem, p->context,
                      p->context_mark.line + 1);
    } else {
        (void)err_set(r->err, ERR_INVALID, "%s", problem);
    }
    return reader_fail(r, pos_of(p->problem_mark));
}

static int reader_push(struct reader *r, enum jkind kind, struct pos pos, struct jval **ret)
{
    if (r->values == YAML_VALUES_MAX) {
        (void)err_set(r->err, ERR_LIMIT, "more than %u values", YAML_VALUES_MAX);
        return reader_fail(r, pos);
    }
    r->values++;
    if (r->tape.n == r->marks_cap) {
        ARENA_GROW(r->tape.out, r->marks, r->tape.n, r->marks_cap);
    }
    r->marks[r->tape.n] = (struct ymark){ .pos = pos };
    *ret = tape_push(&r->tape, kind);
    return 0;
}

/* A cell and all that is in it once more, at the end of the tape. */
static int reader_copy(struct reader *r, uint32_t from, uint32_t cells)
{
    for (uint32_t i = 0; i < cells; i++) {
        struct jval *v;
        struct ymark mark = r->marks[from + i];
        int result = reader_push(r, JNULL, mark.pos, &v);
        if (result < 0) {
            return result;
        }
        *v = r->tape.cells[from + i];
        r->marks[r->tape.n - 1] = mark;
    }
    return 0;
}

static struct level *reader_top(struct reader *r)
{
    return r->depth == 0 ? NULL : &r->open[r->depth - 1];
}

static bool reader_wants_key(struct reader *r)
{
    struct level *top = reader_top(r);
    return top != NULL && top->object && !top->has_key;
}

/* A whole value has come into the container around. */
static void reader_count(struct reader *r, uint32_t height)
{
    struct level *top = reader_top(r);
    if (top != NULL) {
        r->tape.cells[top->at].n++;
        top->has_key = false;
        top->height = MAX(top->height, height);
    }
}

static int reader_fail_plain(struct reader *r, struct pos pos, const char *what, const char *name)
{
    (void)err_set(r->err, ERR_INVALID,
                  "found %s '%s', want a text without anchors, aliases and merges", what, name);
    return reader_fail(r, pos);
}

/* The first of two anchors with one name is forgotten, as YAML has it. */
static struct anchor *reader_anchor(struct reader *r, const yaml_char_t *name)
{
    if (name == NULL) {
        return NULL;
    }
    struct anchor *anchor = ARENA_NEW(r->tape.out, struct anchor);
    anchor->at = r->tape.n;
    (void)map_put(&r->anchors, str_from((const char *)name), anchor);
    return anchor;
}

static void scalar_put(struct jval *v, const struct yscalar *s)
{
    v->p = s->text.n > 0 ? s->text.p : "";
    v->n = s->kind == JBOOL ? s->truth : (uint32_t)s->text.n;
}

static int scalar_resolve(struct reader *r, const yaml_event_t *event, struct yscalar *ret)
{
    struct str text = { .p = (const char *)event->data.scalar.value,
                        .n = event->data.scalar.length };
    struct str tag = str_from((const char *)event->data.scalar.tag);
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (str_eq(tag, STR("!")) || (tag.n == 0 && quoted)) {
        tag = STR("!!str");
    }
    if (yscalar_resolve(text, tag, r->tape.out, ret, r->err) < 0) {
        return reader_fail(r, pos_of(event->start_mark));
    }
    return 0;
}

/* A name; what it was before it became a string is kept with its mark. */
static int key_put(struct reader *r, const struct yscalar *s, struct pos pos, bool merge)
{
    struct yscalar name = *s;
    if (s->kind == JNULL) {
        (void)err_set(r->err, ERR_INVALID, "found null, want a name");
        return reader_fail(r, pos);
    }
    if (s->kind == JBOOL) {
        name.text = s->truth ? STR("true") : STR("false");
    }
    name.kind = JSTR;
    struct jval *v;
    int result = reader_push(r, JSTR, pos, &v);
    if (result < 0) {
        return result;
    }
    scalar_put(v, &name);
    r->marks[r->tape.n - 1].key_kind = s->kind;
    struct level *top = reader_top(r);
    top->has_key = true;
    if (merge && top->merge == NONE) {
        top->merge = r->tape.n - 1;
    }
    return 0;
}

static int on_scalar(struct reader *r, const yaml_event_t *event)
{
    struct pos pos = pos_of(event->start_mark);
    struct yscalar s;
    int result = scalar_resolve(r, event, &s);
    if (result < 0) {
        return result;
    }
    (void)reader_anchor(r, event->data.scalar.anchor); /* complete at once */
    if (reader_wants_key(r)) {
        bool merge =
            event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && str_eq(s.text, STR("<<"));
        return merge && r->plain ? reader_fail_plain(r, pos, "merge", "<<")
                                 : key_put(r, &s, pos, merge);
    }
    struct jval *v;
    result = reader_push(r, s.kind, pos, &v);
    if (result == 0) {
        scalar_put(v, &s);
        reader_count(r, 0);
    }
    return result;
}

static int on_alias(struct reader *r, const yaml_event_t *event)
{
    struct pos pos = pos_of(event->start_mark);
    const char *name = (const char *)event->data.alias.anchor;
    if (r->plain) {
        return reader_fail_plain(r, pos, "alias", name);
    }
    struct anchor *anchor = map_find(&r->anchors, str_from(name));
    if (anchor == NULL || anchor->gone || anchor->open) {
        (void)err_set(r->err, ERR_INVALID,
                      anchor != NULL && anchor->open
                          ? "alias '%s' stands inside its own anchor"
                          : "found alias '%s', want one whose anchor stands before",
                      name);
        return reader_fail(r, pos);
    }
    if (r->depth + anchor->height > YAML_DEPTH_MAX) {
        return reader_fail_depth(r, pos);
    }
    const struct jval *v = &r->tape.cells[anchor->at];
    if (reader_wants_key(r)) {
        if (jval_kind(v) == JARR || jval_kind(v) == JOBJ) {
            (void)err_set(r->err, ERR_INVALID, "found %s, want a name", jkind_name(jval_kind(v)));
            return reader_fail(r, pos);
        }
        struct yscalar s = { .kind = jval_kind(v),
                             .truth = jval_bool(v, false),
                             .text = { .p = v->p, .n = jval_kind(v) == JBOOL ? 0 : v->n } };
        return key_put(r, &s, pos, /* merge= */ false);
    }
    uint32_t at = r->tape.n;
    int result = reader_copy(r, anchor->at, jval_span(v));
    if (result == 0) {
        r->marks[at].pos = pos;
        reader_count(r, anchor->height);
    }
    return result;
}

static int on_open(struct reader *r, enum jkind kind, struct pos pos, const yaml_char_t *anchor)
{
    if (reader_wants_key(r)) {
        (void)err_set(r->err, ERR_INVALID, "found %s, want a name", jkind_name(kind));
        return reader_fail(r, pos);
    }
    if (r->depth == YAML_DEPTH_MAX) {
        return reader_fail_depth(r, pos);
    }
    struct level level = { .at = r->tape.n, .merge = NONE, .object = kind == JOBJ };
    level.anchor = reader_anchor(r, anchor);
    if (level.anchor != NULL) {
        level.anchor->open = true;
    }
    struct jval *v;
    int result = reader_push(r, kind, pos, &v);
    if (result == 0) {
        v->p = "";
        r->open[r->depth++] = level;
    }
    return result;
}

/* No name twice. `names` holds each with its cell's number, from 1. */
static int check_names(struct reader *r, uint32_t at, struct map *names)
{
    uint32_t key = at + 1;
    while (key < r->tape.n) {
        struct str name = jval_str(&r->tape.cells[key]);
        uintptr_t before = (uintptr_t)map_put(names, name, (void *)((uintptr_t)key + 1));
        if (before != 0 && !r->lenient) {
            (void)err_set(r->err, ERR_INVALID, "key '" STR_FMT "' is here again, it is in line %u",
                          STR_ARG(name), r->marks[before - 1].pos.line);
            return reader_fail(r, r->marks[key].pos);
        }
        key += 1 + jval_span(&r->tape.cells[key + 1]);
    }
    return 0;
}

/* The members of a mapping that have not been named before. */
static int merge_members(struct reader *r, uint32_t target, uint32_t from, struct map *names)
{
    uint32_t end = from + jval_span(&r->tape.cells[from]);
    uint32_t key = from + 1;
    while (key < end) {
        uint32_t cells = 1 + jval_span(&r->tape.cells[key + 1]);
        struct str name = jval_str(&r->tape.cells[key]);
        if (map_find(names, name) == NULL) {
            (void)map_put(names, name, r); /* any pointer says "is there" */
            int result = reader_copy(r, key, cells);
            if (result < 0) {
                return result;
            }
            r->tape.cells[target].n++;
        }
        key += cells;
    }
    return 0;
}

/* The value of "<<": a mapping, or a list of mappings of which the first wins. */
static int merge_value(struct reader *r, uint32_t target, uint32_t value, struct map *names)
{
    enum jkind kind = jval_kind(&r->tape.cells[value]);
    if (kind == JOBJ) {
        return merge_members(r, target, value, names);
    }
    uint32_t end = value + jval_span(&r->tape.cells[value]);
    for (uint32_t item = value + 1; kind == JARR && item < end;
         item += jval_span(&r->tape.cells[item])) {
        if (jval_kind(&r->tape.cells[item]) != JOBJ) {
            kind = JNULL;
            break;
        }
        int result = merge_members(r, target, item, names);
        if (result < 0) {
            return result;
        }
    }
    if (kind != JARR) {
        (void)err_set(r->err, ERR_INVALID, "'<<': want a mapping or a list of mappings");
        return reader_fail(r, r->marks[value].pos);
    }
    return 0;
}

/* Appends what "<<" brings, then closes the gap that the name and its value leave. */
static int merge_apply(struct reader *r, const struct level *level, struct map *names)
{
    uint32_t gap = level->merge;
    int result = merge_value(r, level->at, gap + 1, names);
    if (result < 0) {
        return result;
    }
    uint32_t cells = 1 + jval_span(&r->tape.cells[gap + 1]);
    uint32_t behind = r->tape.n - gap - cells;
    r->merge_steps += map_count(&r->anchors) + behind;
    if (r->merge_steps > YAML_MERGE_STEPS_MAX) {
        (void)err_set(r->err, ERR_LIMIT, "'<<': merges take more than %u steps",
                      YAML_MERGE_STEPS_MAX);
        return reader_fail(r, r->marks[gap].pos);
    }
    memmove(&r->tape.cells[gap], &r->tape.cells[gap + cells], behind * sizeof(*r->tape.cells));
    memmove(&r->marks[gap], &r->marks[gap + cells], behind * sizeof(*r->marks));
    r->tape.n -= cells;
    r->tape.cells[level->at].n--;
    MAP_EACH (&r->anchors, item) {
        struct anchor *anchor = map_item_value(item);
        anchor->gone = anchor->gone || (anchor->at >= gap && anchor->at < gap + cells);
        anchor->at -= anchor->at >= gap + cells ? cells : 0;
    }
    return 0;
}

static int on_close(struct reader *r)
{
    struct level level = r->open[--r->depth];
    if (level.object) {
        CLEANUP(map_done)
        struct map names = { 0 };
        int result = check_names(r, level.at, &names);
        if (result == 0 && level.merge != NONE) {
            result = merge_apply(r, &level, &names);
        }
        if (result < 0) {
            return result;
        }
    }
    tape_close(&r->tape, level.at);
    if (level.anchor != NULL) {
        level.anchor->open = false;
        level.anchor->height = level.height + 1;
    }
    reader_count(r, level.height + 1);
    return 0;
}

static const yaml_char_t *event_anchor(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

static int on_event(struct reader *r, const yaml_event_t *event)
{
    struct pos pos = pos_of(event->start_mark);
    const yaml_char_t *anchor = event_anchor(event);
    if (r->plain && anchor != NULL) {
        return reader_fail_plain(r, pos, "anchor", (const char *)anchor);
    }
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_ALIAS_EVENT:
        return on_alias(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(r, JARR, pos, anchor);
    case YAML_MAPPING_START_EVENT:
        return on_open(r, JOBJ, pos, anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(r);
    default:
        return 0; /* the stream and its documents begin */
    }
}

/* 1 and a document, or 0 at the end of the stream. */
static int reader_next(struct reader *r, struct ydoc *ret)
{
    struct arena *out = r->tape.out;
    r->tape = (struct tape){ .out = out };
    r->marks = NULL;
    r->marks_cap = 0;
    map_done(&r->anchors);
    for (;;) {
        CLEANUP(yaml_event_delete)
        yaml_event_t event = { .type = YAML_NO_EVENT };
        if (yaml_parser_parse(&r->parser, &event) == 0) {
            return reader_fail_syntax(r);
        }
        if (event.type == YAML_STREAM_END_EVENT) {
            return 0;
        }
        if (event.type == YAML_DOCUMENT_END_EVENT) {
            *ret = (struct ydoc){ .root = r->tape.cells, .marks = r->marks };
            return 1;
        }
        int result = on_event(r, &event);
        if (result < 0) {
            return result;
        }
    }
}

static void reader_init(struct reader *r, struct str text, struct arena *out, struct err *err)
{
    *r = (struct reader){ .tape = { .out = out }, .err = err };
    if (yaml_parser_initialize(&r->parser) == 0) {
        out_of_memory(sizeof(r->parser));
    }
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)(text.n > 0 ? text.p : ""),
                                 text.n);
}

static void reader_done(struct reader *r)
{
    yaml_parser_delete(&r->parser);
    map_done(&r->anchors);
}

static int parse_first(struct reader *r, struct ydoc *ret)
{
    struct ydoc doc;
    int result = reader_next(r, &doc);
    if (result < 0) {
        return result;
    }
    if (result == 0) {
        struct jval *v;
        result = reader_push(r, JNULL, (struct pos){ .line = 1, .column = 1 }, &v);
        ASSERT(result == 0);
        doc = (struct ydoc){ .root = r->tape.cells, .marks = r->marks };
    }
    *ret = doc;
    return 0;
}

int ydoc_parse(struct str text, struct arena *out, struct ydoc *ret, struct err *err)
{
    CLEANUP(reader_done)
    struct reader r;
    reader_init(&r, text, out, err);
    return parse_first(&r, ret);
}

int ydoc_parse_lenient(struct str text, struct arena *out, struct ydoc *ret, struct err *err)
{
    CLEANUP(reader_done)
    struct reader r;
    reader_init(&r, text, out, err);
    r.lenient = true;
    return parse_first(&r, ret);
}

int ydoc_parse_plain(struct str text, struct arena *out, struct ydoc *ret, struct err *err)
{
    CLEANUP(reader_done)
    struct reader r;
    reader_init(&r, text, out, err);
    r.plain = true;
    return parse_first(&r, ret);
}

int ydoc_parse_all(struct str text, struct arena *out, struct ydoc **ret, uint32_t *ret_n,
                   struct err *err)
{
    CLEANUP(reader_done)
    struct reader r;
    reader_init(&r, text, out, err);
    struct ydoc *docs = NULL;
    uint32_t n = 0;
    uint32_t cap = 0;
    for (;;) {
        struct ydoc doc;
        int result = reader_next(&r, &doc);
        if (result < 0) {
            return result;
        }
        if (result == 0) {
            break;
        }
        ARENA_GROW(out, docs, n, cap);
        docs[n++] = doc;
    }
    *ret = docs;
    *ret_n = n;
    return 0;
}

struct pos ydoc_pos(const struct ydoc *doc, const struct jval *v)
{
    return v == NULL ? (struct pos){ .line = 0 } : doc->marks[v - doc->root].pos;
}

struct pos ydoc_key_pos(const struct ydoc *doc, const struct jval *member)
{
    return ydoc_pos(doc, member == NULL ? NULL : member - 1);
}

enum jkind ydoc_key_kind(const struct ydoc *doc, const struct jval *member)
{
    return doc->marks[member - doc->root - 1].key_kind;
}
