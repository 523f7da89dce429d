#include "kinds/node_series.h"

#include "format/glob.h"

static void range_read(const struct spec_node *at, const char *key, struct version_range *ret)
{
    struct spec_node m = spec_member(at, key);
    struct err err = { 0 };
    if (m.value != NULL && version_range_parse(jval_str(m.value), ret, &err) < 0) {
        spec_wrong(&m, "Invalid", "%s", err.msg);
    }
}

/* A list that is there and empty would mean anything. */
static struct spec_texts some_texts(const struct spec_node *at, const char *key, uint32_t max)
{
    struct spec_node m = spec_member(at, key);
    struct spec_texts list = spec_texts(at, key, max);
    if (m.value != NULL && list.n == 0) {
        spec_wrong(&m, "Invalid", "at least one");
    }
    return list;
}

bool series_facts_read(const struct spec_node *at, const char *key, struct series_facts *ret)
{
    struct spec_node m = spec_member(at, key);
    *ret = (struct series_facts){ 0 };
    if (m.value == NULL) {
        return false;
    }
    if (jval_kind(m.value) != JOBJ || m.value->n == 0) {
        spec_wrong(&m, "Invalid", "facts such as osId: [debian]");
        return false;
    }
    ret->os_id = some_texts(&m, "osId", SERIES_FACTS_MAX);
    ret->arch = some_texts(&m, "arch", SERIES_FACTS_MAX);
    ret->package_manager = some_texts(&m, "packageManager", SERIES_FACTS_MAX);
    range_read(&m, "osVersion", &ret->os_version);
    range_read(&m, "kernel", &ret->kernel);
    range_read(&m, "kubelet", &ret->kubelet);
    return true;
}

static bool term_given(const struct spec_node *at)
{
    return spec_has(at, "selector") || spec_has(at, "names") || spec_has(at, "globs") ||
           spec_has(at, "facts");
}

static void term_read(const struct spec_node *at, struct series_term *ret)
{
    if (!term_given(at)) {
        spec_wrong(at, "Invalid", "selector, names, globs or facts");
    }
    ret->has_selector = spec_selector(at, "selector", &ret->selector);
    ret->names = some_texts(at, "names", SERIES_NAMES_MAX);
    ret->globs = some_texts(at, "globs", SERIES_GLOBS_MAX);
    ret->has_facts = series_facts_read(at, "facts", &ret->facts);
    struct spec_node globs = spec_member(at, "globs");
    SPEC_EACH(&globs, SERIES_GLOBS_MAX, item)
    {
        struct err err = { 0 };
        if (glob_check(jval_str(item.value), &err) < 0) {
            spec_wrong(&item, "Invalid", "%s", err.msg);
        }
    }
}

static const struct series_term *terms_read(const struct spec_node *at, const char *key,
                                            uint32_t *ret_n)
{
    struct spec_node list = spec_member(at, key);
    struct series_term *terms =
        ARENA_ARRAY(at->reader->out, struct series_term, MIN(spec_count(&list), SERIES_TERMS_MAX));
    uint32_t n = 0;
    if (list.value != NULL && spec_count(&list) == 0) {
        spec_wrong(&list, "Invalid", "at least one term");
    }
    SPEC_EACH(&list, SERIES_TERMS_MAX, item)
    {
        term_read(&item, &terms[n++]);
    }
    *ret_n = n;
    return terms;
}

void series_spec_read(const struct spec_node *at, struct str seed, struct series_spec *ret)
{
    static const char *const scopes[] = { "Nodes", "External", "All" };
    static const char *const keys[] = { "ref",     "scope",   "selector", "names", "globs", "facts",
                                        "include", "exclude", "sample",   "seed",  "minAge" };
    spec_only(at, keys, ARRAY_LEN(keys));
    *ret = (struct series_spec){
        .given = at->value != NULL,
        .scope = (enum series_scope)SPEC_ENUM(at, "scope", scopes, SERIES_NODES),
        .sample = spec_share(at, "sample", 1),
        .seed = spec_text(at, "seed"),
        .min_age = spec_duration(at, "minAge", 0),
    };
    ret->seed = ret->seed.n > 0 ? ret->seed : seed;
    ret->include = terms_read(at, "include", &ret->include_n);
    ret->exclude = terms_read(at, "exclude", &ret->exclude_n);
    if (!term_given(at)) {
        return;
    }
    if (spec_has(at, "include")) {
        spec_wrong(at, "Invalid", "either selector, names, globs and facts, or include");
        return;
    }
    struct series_term *term = ARENA_NEW(at->reader->out, struct series_term);
    term_read(at, term);
    ret->include = term;
    ret->include_n = 1;
}

void node_series_read(const struct jval *object, struct arena *out, struct node_series *ret)
{
    struct spec_reader reader = { .out = out };
    struct spec_node spec = spec_root(&reader, object, "spec");
    *ret = (struct node_series){
        .meta = spec_read_meta(object, out),
        .status = spec_read_status(object, out),
    };
    series_spec_read(&spec, ret->meta.name, &ret->spec);
    if (jval_kind(spec.value) != JOBJ || spec.value->n == 0) {
        /* A spec that was emptied on the way must not mean all nodes. */
        spec_wrong(&spec, "Invalid", "a series; write scope: Nodes for all nodes");
    }
    ret->problem = reader.problem;
}

static int node_series_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                               void **ret, struct err *err UNUSED)
{
    struct node_series *s = ARENA_NEW(out, struct node_series);
    node_series_read(object, out, s);
    *ret = s;
    return 0;
}

/* Every version counts: the next write of its status is based on it. */
static bool node_series_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

const struct store_kind node_series_kind = {
    .name = "node series",
    .project = node_series_project,
    .same = node_series_same,
};
