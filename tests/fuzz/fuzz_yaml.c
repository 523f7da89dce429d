/* Every value has a place, becomes JSON, and JSON means the same in both languages. */
#include "format/json_writer.h"
#include "format/yaml.h"
#include "tests/fuzz/target.h"

static void check_places(const struct ydoc *doc)
{
    uint32_t cells = jval_span(doc->root);
    for (uint32_t i = 0; i < cells; i++) {
        ASSERT(ydoc_pos(doc, doc->root + i).line > 0);
    }
}

static void check_json(const struct ydoc *doc, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    struct err err = { 0 };
    const struct jval *again;
    jw_val(&w, doc->root);
    /* !!binary may hold any bytes, which JSON writes as U+FFFD. */
    int r = json_parse(buf_str(&out), JSON_GO, a, &again, &err);
    ASSERT(r == 0);
    ASSERT(jval_kind(again) == jval_kind(doc->root));
}

/* Numbers too large for a double are text for YAML. */
static bool same(const struct jval *json, const struct jval *yaml)
{
    double ignored;
    if (jval_kind(json) == JNUM && !jval_f64(json, &ignored)) {
        return true;
    }
    if (jval_kind(json) != jval_kind(yaml)) {
        return false;
    }
    if (jval_kind(json) != JARR && jval_kind(json) != JOBJ) {
        return jval_eq(json, yaml);
    }
    const struct jval *other = jval_first(yaml);
    JVAL_EACH (json, item) {
        if (other == NULL || !same(item, other) ||
            (jval_kind(json) == JOBJ && !str_eq(jval_key(item), jval_key(other)))) {
            return false;
        }
        other = jval_next(yaml, other);
    }
    return other == NULL;
}

static bool is_ascii(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] >= 0x7f) {
            return false; /* YAML folds some of those as line breaks */
        }
    }
    return true;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ydoc *docs = NULL;
    uint32_t n = 0;
    int all = ydoc_parse_all(text, &a, &docs, &n, &err);
    ASSERT(all == 0 || err.msg[0] != '\0');
    struct ydoc first;
    int r = ydoc_parse(text, &a, &first, &err);
    ASSERT(all < 0 || r == 0);
    for (uint32_t i = 0; i < n && all == 0; i++) {
        check_places(&docs[i]);
        check_json(&docs[i], &a);
    }
    const struct jval *json = NULL;
    if (r == 0 && is_ascii(text) && json_parse(text, 0, &a, &json, &err) == 0) {
        ASSERT(same(json, first.root));
    }
}
