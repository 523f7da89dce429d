#include "kinds/maintenance_selector.h"

#include "kinds/spec_read.h"

#include <stdlib.h>

static int name_cmp(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void maintenance_selector_reject(struct maintenance_selector *p, struct str reason,
                                        struct str problem)
{
    if (p->reason.n == 0) {
        p->reason = reason;
        p->problem = problem;
    }
}

static bool maintenance_selector_read_selector(struct maintenance_selector *p,
                                               const struct jval *object, struct arena *out,
                                               struct selector *ret)
{
    struct str problem = STR_NONE;
    bool found = spec_read_selector(object, out, ret, &problem);
    if (problem.n > 0) {
        maintenance_selector_reject(p, STR("InvalidSelector"), problem);
    }
    return found;
}

static void maintenance_selector_read_names(struct maintenance_selector *p, const struct jval *list,
                                            struct arena *out)
{
    if (jval_kind(list) != JARR || list->n == 0) {
        return;
    }
    if (list->n > MAINTENANCE_SELECTOR_NAMES_MAX) {
        maintenance_selector_reject(
            p, STR("InvalidSpec"),
            arena_printf(out, "names: %u, at most %u", list->n, MAINTENANCE_SELECTOR_NAMES_MAX));
        return;
    }
    struct str *names = ARENA_ARRAY(out, struct str, list->n);
    JVAL_EACH (list, item) {
        names[p->name_n++] = arena_str(out, jval_str(item));
    }
    qsort(names, p->name_n, sizeof(*names), name_cmp);
    p->names = names;
}

void maintenance_selector_parse(const struct jval *object, struct arena *out,
                                struct maintenance_selector *ret)
{
    const struct jval *spec = jval_get(object, STR("spec"));
    struct str type = jval_str(jval_get(spec, STR("type")));
    *ret = (struct maintenance_selector){
        .name = arena_printf(out, STR_FMT "/" STR_FMT,
                             STR_ARG(jval_str(jval_at(object, "metadata.namespace"))),
                             STR_ARG(jval_str(jval_at(object, "metadata.name")))),
        .uid = arena_str(out, jval_str(jval_at(object, "metadata.uid"))),
        .status = spec_read_status(object, out),
    };
    (void)jval_i64(jval_at(object, "metadata.generation"), &ret->generation); /* absent: 0 */
    if (type.n > 0 && !target_type_find(type, &ret->type)) {
        maintenance_selector_reject(ret, STR("UnsupportedType"),
                                    STR("unsupported maintenance type"));
    }
    ret->has_selector = maintenance_selector_read_selector(ret, jval_get(spec, STR("selector")),
                                                           out, &ret->selector);
    ret->namespaced = maintenance_selector_read_selector(
        ret, jval_get(spec, STR("namespaceSelector")), out, &ret->namespaces);
    maintenance_selector_read_names(ret, jval_get(spec, STR("names")), out);
    if (!ret->has_selector && ret->name_n == 0) {
        maintenance_selector_reject(ret, STR("EmptySpec"),
                                    STR("neither a selector nor names: it means nothing"));
    }
}

static int maintenance_selector_project(void *ctx UNUSED, const struct jval *object,
                                        struct arena *out, void **ret, struct err *err UNUSED)
{
    struct maintenance_selector *p = ARENA_NEW(out, struct maintenance_selector);
    maintenance_selector_parse(object, out, p);
    *ret = p;
    return 0;
}

/* Every version counts: the next write is based on it. */
static bool maintenance_selector_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

const struct store_kind maintenance_selector_kind = {
    .name = "selector",
    .namespaced = true,
    .project = maintenance_selector_project,
    .same = maintenance_selector_same,
};

static bool maintenance_selector_lists(const struct maintenance_selector *p, struct str name)
{
    return p->name_n > 0 &&
           bsearch(&name, p->names, p->name_n, sizeof(*p->names), name_cmp) != NULL;
}

bool maintenance_selector_has_name(const struct maintenance_selector *p, struct str name,
                                   struct str bare_name)
{
    return maintenance_selector_lists(p, name) || maintenance_selector_lists(p, bare_name);
}
