#include "drain/pdb.h"

#include "format/label_pack.h"

static int64_t pdb_number(const struct jval *object, const char *path)
{
    int64_t n = 0;
    (void)jval_i64(jval_at(object, path), &n); /* absent: 0 */
    return n;
}

static void pdb_read_disrupted(const struct jval *object, struct arena *out, struct pdb *b)
{
    const struct jval *disrupted = jval_at(object, "status.disruptedPods");
    if (jval_kind(disrupted) != JOBJ) {
        return;
    }
    struct str *names = ARENA_ARRAY(out, struct str, disrupted->n);
    JVAL_EACH (disrupted, entry) {
        names[b->disrupted_count++] = arena_str(out, jval_key(entry));
    }
    b->disrupted = names;
}

static int pdb_project(void *ctx UNUSED, const struct jval *object, struct arena *out, void **ret,
                       struct err *err UNUSED)
{
    struct pdb *b = ARENA_NEW(out, struct pdb);
    struct err unreadable = { 0 };
    b->namespace = arena_str(out, jval_str(jval_at(object, "metadata.namespace")));
    /* The server passes over a selector that it cannot read, and so do we. */
    if (selector_from_jval(jval_at(object, "spec.selector"), out, &b->selector, &unreadable) < 0) {
        b->selector = (struct selector){ .nothing = true };
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    selector_print(&b->selector, &text);
    b->selector_text = arena_str(out, buf_str(&text));
    b->allowed = pdb_number(object, "status.disruptionsAllowed");
    b->healthy = pdb_number(object, "status.currentHealthy");
    b->desired = pdb_number(object, "status.desiredHealthy");
    b->expected = pdb_number(object, "status.expectedPods");
    b->status_current = pdb_number(object, "status.observedGeneration") >=
                        pdb_number(object, "metadata.generation");
    b->unhealthy_may_go =
        str_eq(jval_str(jval_at(object, "spec.unhealthyPodEvictionPolicy")), STR("AlwaysAllow"));
    pdb_read_disrupted(object, out, b);
    *ret = b;
    return 0;
}

bool pdb_same_selector(const struct pdb *a, const struct pdb *b)
{
    return a->selector.nothing == b->selector.nothing && str_eq(a->selector_text, b->selector_text);
}

static bool pdb_same(const void *left, const void *right)
{
    const struct pdb *a = left;
    const struct pdb *b = right;
    if (!pdb_same_selector(a, b) || a->allowed != b->allowed || a->healthy != b->healthy ||
        a->desired != b->desired || a->status_current != b->status_current ||
        a->unhealthy_may_go != b->unhealthy_may_go || a->disrupted_count != b->disrupted_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->disrupted_count; i++) {
        if (!str_eq(a->disrupted[i], b->disrupted[i])) {
            return false;
        }
    }
    return true;
}

const struct store_kind pdb_kind = {
    .name = "budget",
    .namespaced = true,
    .project = pdb_project,
    .same = pdb_same,
};

bool pdb_covers(const struct pdb *b, struct str namespace, const struct drain_pod *pod)
{
    struct str labels = pod->labels; /* a lookup's context is not const */
    return str_eq(b->namespace, namespace) &&
           selector_match(&b->selector, label_pack_find, &labels);
}

/* As the eviction subresource decides: registry/core/pod/storage/eviction.go. */
bool pdb_exempts(const struct pdb *b, const struct drain_pod *pod)
{
    return pod->pending ||
           (!pod->ready && (b->unhealthy_may_go || (b->healthy >= b->desired && b->desired > 0)));
}

bool pdb_has_disrupted(const struct pdb *b, struct str pod)
{
    for (uint32_t i = 0; i < b->disrupted_count; i++) {
        if (str_eq(b->disrupted[i], pod)) {
            return true;
        }
    }
    return false;
}
