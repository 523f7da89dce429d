#include "drain/pdb.h"

static int64_t budget_number(const struct jval *object, const char *path)
{
    int64_t n = 0;
    (void)jval_i64(jval_at(object, path), &n); /* absent: 0 */
    return n;
}

static void budget_read_spent(const struct jval *object, struct arena *out, struct drain_budget *b)
{
    const struct jval *spent = jval_at(object, "status.disruptedPods");
    if (jval_kind(spent) != JOBJ) {
        return;
    }
    struct str *names = ARENA_ARRAY(out, struct str, spent->n);
    JVAL_EACH (spent, entry) {
        names[b->spent_count++] = arena_str(out, jval_key(entry));
    }
    b->spent = names;
}

static int budget_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                          void **ret, struct err *err UNUSED)
{
    struct drain_budget *b = ARENA_NEW(out, struct drain_budget);
    struct err unreadable = { 0 };
    b->space = arena_str(out, jval_str(jval_at(object, "metadata.namespace")));
    /* The server passes over a selector that it cannot read, and so do we. */
    if (selector_from_jval(jval_at(object, "spec.selector"), out, &b->selector, &unreadable) < 0) {
        b->selector = (struct selector){ .nothing = true };
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    selector_print(&b->selector, &text);
    b->selector_text = arena_str(out, buf_str(&text));
    b->allowed = budget_number(object, "status.disruptionsAllowed");
    b->healthy = budget_number(object, "status.currentHealthy");
    b->desired = budget_number(object, "status.desiredHealthy");
    b->counted = budget_number(object, "status.observedGeneration") >=
                 budget_number(object, "metadata.generation");
    b->unhealthy_may_go =
        str_eq(jval_str(jval_at(object, "spec.unhealthyPodEvictionPolicy")), STR("AlwaysAllow"));
    budget_read_spent(object, out, b);
    *ret = b;
    return 0;
}

bool drain_budget_same_cover(const struct drain_budget *a, const struct drain_budget *b)
{
    return a->selector.nothing == b->selector.nothing && str_eq(a->selector_text, b->selector_text);
}

static bool budget_same(const void *left, const void *right)
{
    const struct drain_budget *a = left;
    const struct drain_budget *b = right;
    if (!drain_budget_same_cover(a, b) || a->allowed != b->allowed || a->healthy != b->healthy ||
        a->desired != b->desired || a->counted != b->counted ||
        a->unhealthy_may_go != b->unhealthy_may_go || a->spent_count != b->spent_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->spent_count; i++) {
        if (!str_eq(a->spent[i], b->spent[i])) {
            return false;
        }
    }
    return true;
}

const struct store_kind drain_budget_kind = {
    .name = "budget",
    .spaced = true,
    .project = budget_project,
    .same = budget_same,
};

bool drain_budget_covers(const struct drain_budget *b, struct str space,
                         const struct drain_pod *pod)
{
    struct drain_pod view = *pod; /* a lookup's context is not const */
    return str_eq(b->space, space) && selector_match(&b->selector, drain_pod_lookup, &view);
}

/* As the eviction subresource decides: registry/core/pod/storage/eviction.go. */
bool drain_budget_exempts(const struct drain_budget *b, const struct drain_pod *pod)
{
    return pod->pending ||
           (!pod->ready && (b->unhealthy_may_go || (b->healthy >= b->desired && b->desired > 0)));
}

bool drain_budget_has_spent(const struct drain_budget *b, struct str pod)
{
    for (uint32_t i = 0; i < b->spent_count; i++) {
        if (str_eq(b->spent[i], pod)) {
            return true;
        }
    }
    return false;
}
