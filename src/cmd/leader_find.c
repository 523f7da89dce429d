#include "cmd/leader_find.h"

#include "bridge/bridge.h"
#include "kinds/keys.h"
#include "kube/client.h"
#include "core/core.h"

static struct str leader_lease_name(enum leader_kind kind)
{
    return kind == LEADER_BRIDGE ? BRIDGE_LEASE_NAME : CORE_LEASE_NAME;
}

const char *leader_kind_name(enum leader_kind kind)
{
    return kind == LEADER_BRIDGE ? "bridge" : "controller";
}

void leader_lease_path(enum leader_kind kind, struct str ns, struct buf *out)
{
    buf_add(out, STR("/apis/coordination.k8s.io/v1/"));
    if (ns.n > 0) {
        buf_add(out, STR("namespaces/"));
        client_add_segment(out, ns);
        buf_add(out, STR("/leases"));
    } else {
        buf_add(out, STR("leases"));
    }
    /* The number of shards is not known here, so their Leases cannot be read by name. */
    if (kind == LEADER_CONTROLLER) {
        buf_add(out, ns.n > 0 ? STR("/") : STR("?fieldSelector=metadata.name%3D"));
        buf_add(out, leader_lease_name(kind));
    }
}

static bool leader_owns_lease(enum leader_kind kind, struct str name)
{
    struct str rest;
    uint32_t shard;
    return str_eq(name, leader_lease_name(kind)) ||
           (kind == LEADER_BRIDGE && str_cut_prefix(name, leader_lease_name(kind), &rest) &&
            str_cut_prefix(rest, STR("-shard-"), &rest) && str_to_u32(rest, &shard));
}

/* What one pass over the Leases finds. */
struct leader_search {
    enum leader_kind kind;
    struct leaders leaders;
    struct str first; /* the namespace of the first of them */
    struct str last;
    uint32_t namespaces; /* Leases come sorted by it */
};

static void leader_check_lease(struct leader_search *s, const struct jval *lease)
{
    struct str ns = jval_str(jval_at(lease, "metadata.namespace"));
    struct str pod;
    struct str rest;
    if (!leader_owns_lease(s->kind, jval_str(jval_at(lease, "metadata.name")))) {
        return;
    }
    if (s->namespaces == 0 || !str_eq(ns, s->last)) {
        s->first = s->namespaces == 0 ? ns : s->first;
        s->last = ns;
        s->namespaces++;
    }
    (void)str_cut(jval_str(jval_at(lease, "spec.holderIdentity")), STR("_"), &pod, &rest);
    if (pod.n > 0 && s->leaders.n < LEADERS_MAX) {
        s->leaders.pods[s->leaders.n++] = pod;
    }
}

int leader_find_pods(enum leader_kind kind, const struct jval *root, struct arena *out,
                     struct leaders *ret, struct err *err)
{
    struct leader_search s = { .kind = kind };
    struct str name = leader_lease_name(kind);
    const struct jval *items = jval_get(root, STR("items"));
    if (jval_kind(items) == JARR) {
        JVAL_EACH (items, lease) {
            leader_check_lease(&s, lease);
        }
    } else {
        leader_check_lease(&s, root);
    }
    if (s.namespaces == 0) {
        return err_set(err, ERR_NOTFOUND,
                       "no %s is known to this cluster: there is no Lease '" STR_FMT
                       "'; --address asks one that runs without election",
                       leader_kind_name(kind), STR_ARG(name));
    }
    if (s.namespaces > 1) {
        return err_set(err, ERR_INVALID,
                       "%u namespaces have a %s's Lease, '" STR_FMT
                       "' among them: choose one with --namespace",
                       s.namespaces, leader_kind_name(kind), STR_ARG(s.first));
    }
    if (s.leaders.n == 0) {
        return err_set(err, ERR_NOTFOUND, "no %s is leading",
                       kind == LEADER_BRIDGE ? "bridge" : "maintenance-controller");
    }
    *ret = s.leaders;
    ret->ns = arena_str(out, s.first);
    for (uint32_t i = 0; i < ret->n; i++) {
        ret->pods[i] = arena_str(out, ret->pods[i]);
    }
    return 0;
}
