/* The gate `resource`: every chosen object of any kind has a value. First the API server is asked
 * how the kind is called in paths, then for the objects. */
#include "format/jsonpath.h"
#include "operation/operations_internal.h"

#define OBJECTS_MAX 1000u /* of one gate: more is a selector with a mistake in it */
#define VALUE_SHOWN_MAX 64u

static struct str resource_field(const struct gate_question *q, const char *key)
{
    return jval_str(jval_get(q->fields, str_from(key)));
}

static void resource_add_version(struct gate_question *q)
{
    struct str group;
    struct str version;
    bool core = !str_cut(resource_field(q, "apiVersion"), STR("/"), &group, &version);
    buf_reset(&q->path);
    if (core) {
        buf_add(&q->path, STR("/api/"));
        client_add_segment(&q->path, group);
    } else {
        buf_add(&q->path, STR("/apis/"));
        client_add_segment(&q->path, group);
        buf_add_char(&q->path, '/');
        client_add_segment(&q->path, version);
    }
}

/* One object, too, is listed, by its name: so it need not be known whether the kind has namespaces,
 * and one right is enough. */
static void resource_ask_objects(struct gate_question *q)
{
    struct str namespace = resource_field(q, "namespace");
    struct str name = resource_field(q, "name");
    resource_add_version(q);
    if (namespace.n > 0) {
        buf_add(&q->path, STR("/namespaces/"));
        client_add_segment(&q->path, namespace);
    }
    buf_add_char(&q->path, '/');
    client_add_segment(&q->path, buf_str(&q->plural));
    buf_add(&q->path, STR("?limit=" GATE_PAGE));
    if (name.n > 0) {
        gate_question_add(q, "fieldSelector",
                          arena_printf(&q->o->tmp, "metadata.name=" STR_FMT, STR_ARG(name)));
    } else if (q->selector.n > 0) {
        gate_question_add(q, "labelSelector", q->selector);
    }
    if (q->page.n > 0) {
        gate_question_add(q, "continue", buf_str(&q->page));
    }
    gate_question_get(q);
}

void gate_resource_ask(struct gate_question *q)
{
    resource_add_version(q);
    gate_question_get(q);
}

static bool resource_find_plural(struct gate_question *q, const struct jval *resources)
{
    struct str kind = resource_field(q, "kind");
    JVAL_EACH (jval_get(resources, STR("resources")), resource) {
        struct str name = jval_str(jval_get(resource, STR("name")));
        bool whole = str_find_char(name, '/') == SIZE_MAX; /* no subresource */
        if (whole && str_eq(jval_str(jval_get(resource, STR("kind"))), kind)) {
            buf_add(&q->plural, name);
            return true;
        }
    }
    return false;
}

/* ── comparing ─────────────────────────────────────────────────────────────────────────────── */

/* What can be compared; empty: it is not there, or is a list or an object. */
static struct str value_text(const struct tree *value)
{
    switch (tree_kind(value)) {
    case JSTR:
    case JNUM:
        return value->text;
    case JBOOL:
        return tree_truth(value, false) ? STR("true") : STR("false");
    default:
        return STR_NONE;
    }
}

static bool value_equals(struct str found, struct str wanted)
{
    double a;
    double b;
    bool numbers = str_to_f64(found, &a) && str_to_f64(wanted, &b);
    return str_eq(found, wanted) || (numbers && !(a < b) && !(a > b));
}

static bool value_compares(struct str op, struct str found, struct str wanted)
{
    double a;
    double b;
    if (!str_to_f64(found, &a) || !str_to_f64(wanted, &b)) {
        return false;
    }
    return str_eq(op, STR("Gt"))   ? a > b
           : str_eq(op, STR("Ge")) ? a >= b
           : str_eq(op, STR("Lt")) ? a < b
                                   : a <= b;
}

/* A value that is not there satisfies nothing. */
static bool object_is_good(const struct gate_question *q, const struct tree *value)
{
    struct str op = resource_field(q, "op");
    struct str found = value_text(value);
    const struct jval *values = jval_get(q->fields, STR("values"));
    if (str_eq(op, STR("Exists"))) {
        return value != NULL && tree_kind(value) != JNULL;
    }
    if (found.p == NULL) {
        return false;
    }
    if (!str_eq(op, STR("In")) && !str_eq(op, STR("Equals")) && !str_eq(op, STR("NotEquals"))) {
        return value_compares(op, found, jval_str(jval_first(values)));
    }
    bool equal = false;
    JVAL_EACH (values, wanted) {
        equal = equal || value_equals(found, jval_str(wanted));
    }
    return str_eq(op, STR("NotEquals")) ? !equal : equal;
}

static void resource_count(struct gate_question *q, const struct jval *object)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str path = jsonpath_inner(resource_field(q, "path"));
    const struct tree *value = jsonpath_find(tree_from(&tmp, object), path);
    bool good = object_is_good(q, value);
    q->tally.seen++;
    q->tally.good += good ? 1 : 0;
    if (!good && q->tally.bad.n == 0) {
        struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
        struct str found = value_text(value);
        found = found.p == NULL ? STR("nothing that can be compared")
                                : str_sub(found, 0, MIN(found.n, (size_t)VALUE_SHOWN_MAX));
        buf_printf(&q->tally.bad, STR_FMT " " STR_FMT "%s" STR_FMT " has " STR_FMT " at " STR_FMT,
                   STR_ARG(resource_field(q, "kind")), STR_ARG(namespace),
                   namespace.n > 0 ? "/" : "", STR_ARG(jval_str(jval_at(object, "metadata.name"))),
                   STR_ARG(found), STR_ARG(path));
    }
}

static void resource_judge(struct gate_question *q)
{
    const struct gate_tally *t = &q->tally;
    if (t->seen == 0) {
        gate_question_answer(q, GATE_REFUSES, "no " STR_FMT " is chosen",
                             STR_ARG(resource_field(q, "kind")));
    } else if (t->good < t->seen) {
        gate_question_answer(q, GATE_REFUSES, "%u of %u objects are not as wanted: " STR_FMT,
                             t->seen - t->good, t->seen, STR_ARG(buf_str(&t->bad)));
    } else {
        gate_question_answer(q, GATE_PASSES, "%s", "");
    }
}

void gate_resource_read(struct gate_question *q, const struct jval *body)
{
    if (q->plural.n == 0) {
        if (resource_find_plural(q, body)) {
            resource_ask_objects(q);
        } else {
            gate_question_answer(q, GATE_REFUSES, "the API server has no " STR_FMT " of " STR_FMT,
                                 STR_ARG(resource_field(q, "kind")),
                                 STR_ARG(resource_field(q, "apiVersion")));
        }
        return;
    }
    JVAL_EACH (jval_get(body, STR("items")), object) {
        resource_count(q, object);
    }
    buf_reset(&q->page);
    buf_add(&q->page, jval_str(jval_at(body, "metadata.continue")));
    if (q->tally.seen > OBJECTS_MAX) {
        gate_question_answer(q, GATE_REFUSES, "more than %u objects are chosen", OBJECTS_MAX);
    } else if (q->page.n > 0) {
        resource_ask_objects(q);
    } else {
        resource_judge(q);
    }
}
