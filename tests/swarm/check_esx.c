#include "tests/swarm/check_esx.h"

#include "kinds/keys.h"

/* What is known of a vCenter counts for three periods of 10 s and some, and a call has its time. */
#define INVENTORY_AGE_MAX MINUTES(2)
#define WATCH_LAG_MAX MINUTES(6) /* no watch is behind for so long */

/* What a Node says about its host and its machine; texts are borrowed from it. */
struct esx_words {
    struct str name;
    struct str host;
    struct str mode;
    bool approved;
    bool initiated;
    bool noted; /* that its machine is told to end */
    bool others_cordon;
    bool cordoned;
};

static struct esx_words words_read(const struct jval *node)
{
    const struct jval *labels = jval_at(node, "metadata.labels");
    const struct jval *annotations = jval_at(node, "metadata.annotations");
    return (struct esx_words){
        .name = jval_str(jval_at(node, "metadata.name")),
        .host = jval_str(jval_get(labels, KEY_ESX_HOST)),
        .mode = jval_str(jval_get(labels, KEY_ESX_MODE)),
        .approved = str_eq(jval_str(jval_get(labels, KEY_ESX_REBOOT_OK)), STR("true")),
        .initiated = str_eq(jval_str(jval_get(annotations, KEY_ESX_INITIATED)), STR("true")),
        .noted = jval_get(annotations, KEY_ESX_SHUTDOWN) != NULL,
        .others_cordon = str_eq(jval_str(jval_get(annotations, KEY_ESX_CORDON)), STR("others")),
        .cordoned = jval_bool(jval_at(node, "spec.unschedulable"), false),
    };
}

/* "node-007" is the machine 6. */
static uint32_t words_vm(const struct check_esx *c, const struct esx_words *w)
{
    uint32_t number = 0;
    bool named = str_to_u32(str_sub(w->name, STR("node-").n, SIZE_MAX), &number);
    ASSERT(named && number > 0 && number <= c->vcenter->vm_n);
    return number - 1;
}

static const struct sim_vcenter_host *words_host(const struct check_esx *c,
                                                 const struct esx_words *w)
{
    uint32_t host = 0;
    bool named = str_to_u32(str_sub(w->host, STR("esx-").n, SIZE_MAX), &host);
    ASSERT(named && host < SIM_VCENTER_HOSTS);
    return &c->vcenter->hosts[host];
}

/* Whether a reading that still counts may have said so. */
static bool host_may_be(const struct check_esx *c, const struct esx_words *w, bool maintenance)
{
    const struct sim_vcenter_host *host = words_host(c, w);
    return host->maintenance == maintenance || c->now - host->since <= INVENTORY_AGE_MAX;
}

static bool lately(const struct check_esx *c, usec_t at, usec_t span)
{
    return at > 0 && c->now - at <= span;
}

struct pod_count {
    struct str node;
    uint32_t n;
};

static void pod_count_visit(void *ctx, const struct jval *pod)
{
    struct pod_count *count = ctx;
    count->n += str_eq(jval_str(jval_at(pod, "spec.nodeName")), count->node) ? 1 : 0;
}

static bool is_empty(const struct check_esx *c, struct str node)
{
    struct pod_count count = { .node = node };
    apiserver_each(c->server, STR(""), STR("pods"), STR(""), pod_count_visit, &count);
    return count.n == 0;
}

/* ── what is written on Nodes ──────────────────────────────────────────────────────────────── */

/* All nodes, and those of one host that are not approved for long. */
struct fleet {
    const struct check_esx *check;
    struct str host;
    uint32_t initiated;
    uint32_t unapproved;
};

static void fleet_visit(void *ctx, const struct jval *node)
{
    struct fleet *fleet = ctx;
    const struct check_esx *c = fleet->check;
    struct esx_words w = words_read(node);
    usec_t unapproved_at = c->nodes[words_vm(c, &w)].unapproved_at;
    fleet->initiated += w.initiated ? 1 : 0;
    fleet->unapproved +=
        str_eq(w.host, fleet->host) && !w.approved && !lately(c, unapproved_at, WATCH_LAG_MAX) ? 1
                                                                                               : 0;
}

/* A node begins to leave. */
static void check_begin(struct check_esx *c, const struct esx_words *old,
                        const struct esx_words *new)
{
    struct fleet fleet = { .check = c, .host = old->host };
    apiserver_each(c->server, STR(""), STR("nodes"), STR(""), fleet_visit, &fleet);
    if (!old->approved) {
        check_violation(c->basic, "X1: " STR_FMT " leaves without approval", STR_ARG(old->name));
    } else if (c->whole_host && fleet.unapproved > 0) {
        check_violation(c->basic, "X1: " STR_FMT " leaves, and others of its host may not",
                        STR_ARG(old->name));
    } else if (!host_may_be(c, old, /* maintenance= */ true)) {
        check_violation(c->basic, "X1: " STR_FMT " leaves though its host stays",
                        STR_ARG(old->name));
    } else if (!new->cordoned) {
        check_violation(c->basic, "X2: " STR_FMT " leaves and is not cordoned", STR_ARG(old->name));
    } else if (old->cordoned != new->others_cordon) {
        check_violation(c->basic, "I4: " STR_FMT " leaves and says of its cordon that it is %s",
                        STR_ARG(old->name), new->others_cordon ? "another's" : "ours");
    } else if (c->limit > 0 && fleet.initiated > c->limit) {
        check_violation(c->basic, "I1: %u nodes are away with their hosts, the limit is %u",
                        fleet.initiated, c->limit);
    }
}

/* Its machine will be told to end. */
static void check_note(struct check_esx *c, const struct esx_words *old)
{
    bool lifted = lately(c, c->nodes[words_vm(c, old)].uncordoned_at, WATCH_LAG_MAX);
    if (!old->initiated || !old->cordoned || !old->approved) {
        check_violation(c->basic, "X2: the machine of " STR_FMT " is to end%s%s%s",
                        STR_ARG(old->name), old->initiated ? "" : ", which the node does not say",
                        old->cordoned ? "" : ", which is not cordoned",
                        old->approved ? "" : ", which is not approved");
    } else if (!lifted && !is_empty(c, old->name)) {
        check_violation(c->basic, "X2: the machine of " STR_FMT " is to end with pods on it",
                        STR_ARG(old->name));
    }
}

/* A node is back. */
static void check_release(struct check_esx *c, const struct esx_words *old,
                          const struct esx_words *new)
{
    const struct sim_vcenter_vm *vm = &c->vcenter->vms[words_vm(c, old)];
    sim_vcenter_settle(c->vcenter);
    if (!vm->on || vm->ends > 0) {
        check_violation(c->basic, "X3: " STR_FMT " is let go, and its machine %s",
                        STR_ARG(old->name), vm->on ? "is about to end" : "is off");
    } else if (old->others_cordon && old->cordoned != new->cordoned) {
        check_violation(c->basic, "I4: " STR_FMT " is let go, and the cordon of others with it",
                        STR_ARG(old->name));
    }
}

static void check_mode(struct check_esx *c, const struct esx_words *old,
                       const struct esx_words *new)
{
    bool knows = str_eq(new->mode, STR("true")) || str_eq(new->mode, STR("false"));
    if (knows && !str_eq(old->mode, new->mode) &&
        !host_may_be(c, new, str_eq(new->mode, STR("true")))) {
        check_violation(c->basic, "X5: " STR_FMT " says '" STR_FMT "' of its host, which is not so",
                        STR_ARG(new->name), STR_ARG(new->mode));
    }
}

void check_esx_on_commit(struct check_esx *c, bool controller,
                         const struct apiserver_commit *commit, usec_t now)
{
    if (commit->old == NULL || commit->now == NULL) {
        return; /* nodes are there from the beginning to the end */
    }
    struct esx_words old = words_read(commit->old);
    struct esx_words new = words_read(commit->now);
    c->now = now;
    if (!controller) {
        struct check_esx_node *node = &c->nodes[words_vm(c, &new)];
        node->unapproved_at = old.approved && !new.approved ? now : node->unapproved_at;
        node->uncordoned_at = old.cordoned && !new.cordoned ? now : node->uncordoned_at;
        return;
    }
    check_mode(c, &old, &new);
    if (!old.initiated && new.initiated) {
        check_begin(c, &old, &new);
    } else if (old.initiated && !new.initiated) {
        check_release(c, &old, &new);
    } else if (old.cordoned && !new.cordoned) {
        check_violation(c->basic, "I4: " STR_FMT " is uncordoned and did not come back",
                        STR_ARG(new.name));
    }
    if (!old.noted && new.noted) {
        check_note(c, &old);
    }
}

/* ── what is asked of machines ─────────────────────────────────────────────────────────────── */

static void check_down(struct check_esx *c, uint32_t i, const struct esx_words *w)
{
    const struct sim_vcenter_vm *vm = &c->vcenter->vms[i];
    const struct check_esx_node *node = &c->nodes[i];
    bool lifted = lately(c, node->uncordoned_at, WATCH_LAG_MAX);
    bool host_leaves = !str_eq(w->mode, STR("false"));
    bool elsewhere = words_host(c, w) != &c->vcenter->hosts[vm->host];
    if (!w->initiated || !w->noted) {
        check_violation(c->basic, "X3: the machine of " STR_FMT " is told to end before it says so",
                        STR_ARG(w->name));
    } else if (host_leaves && !w->approved && !lately(c, node->unapproved_at, WATCH_LAG_MAX)) {
        check_violation(c->basic, "X1: the machine of " STR_FMT " goes without approval",
                        STR_ARG(w->name));
    } else if (!lifted && (!w->cordoned || !is_empty(c, w->name))) {
        check_violation(c->basic, "X2: the machine of " STR_FMT " goes, and its node %s",
                        STR_ARG(w->name), w->cordoned ? "has pods" : "is not cordoned");
    } else if (host_leaves && elsewhere && !lately(c, vm->moved_at, INVENTORY_AGE_MAX)) {
        check_violation(c->basic, "X2: the machine of " STR_FMT " goes, and runs on another host",
                        STR_ARG(w->name));
    }
}

void check_esx_on_power(struct check_esx *c, uint32_t vm, enum sim_vcenter_power what, usec_t now)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str name = arena_printf(&tmp, "node-%03u", vm + 1);
    const struct jval *node = apiserver_find(c->server, STR(""), STR("nodes"), STR(""), name);
    struct esx_words w = words_read(node);
    c->now = now;
    if (what != SIM_VCENTER_ON) {
        check_down(c, vm, &w);
    } else if (!w.initiated || !host_may_be(c, &w, /* maintenance= */ false)) {
        check_violation(c->basic, "X4: the machine of " STR_FMT " is switched on%s",
                        STR_ARG(w.name),
                        w.initiated ? " though its host is away" : ", and nobody had ended it");
    }
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

struct free_host {
    struct check_esx *check;
    const struct sim_vcenter_host *host;
    uint32_t nodes;
    uint32_t off;
};

static void free_host_visit(void *ctx, const struct jval *node)
{
    struct free_host *f = ctx;
    struct esx_words w = words_read(node);
    if (words_host(f->check, &w) == f->host) {
        f->nodes++;
        f->off += f->check->vcenter->vms[words_vm(f->check, &w)].on ? 0 : 1;
    }
}

void check_esx_host_is_free(struct check_esx *c, uint32_t host)
{
    struct free_host f = { .check = c, .host = &c->vcenter->hosts[host] };
    sim_vcenter_settle(c->vcenter);
    apiserver_each(c->server, STR(""), STR("nodes"), STR(""), free_host_visit, &f);
    uint32_t want = c->limit > 0 ? MIN(c->limit, f.nodes) : f.nodes;
    if (f.off < want) {
        check_violation(c->basic, "I9: %u of %u machines of a host in maintenance are off, not %u",
                        f.off, f.nodes, want);
    }
}

static void check_back_visit(void *ctx, const struct jval *node)
{
    struct check_esx *c = ctx;
    struct esx_words w = words_read(node);
    const struct sim_vcenter_vm *vm = &c->vcenter->vms[words_vm(c, &w)];
    if (!vm->on || vm->ends > 0) {
        check_violation(c->basic, "X4: the host of " STR_FMT " is back, and its machine is off",
                        STR_ARG(w.name));
    } else if (w.initiated || w.noted || w.others_cordon || w.cordoned) {
        check_violation(c->basic, "X4: the host of " STR_FMT " is back, and the node is %s",
                        STR_ARG(w.name), w.cordoned ? "cordoned" : "marked");
    } else if (!str_eq(w.mode, STR("false"))) {
        check_violation(c->basic,
                        "X5: the host of " STR_FMT " is back, and its label '" STR_FMT "'",
                        STR_ARG(w.name), STR_ARG(w.mode));
    }
}

void check_esx_at_end(struct check_esx *c)
{
    sim_vcenter_settle(c->vcenter);
    apiserver_each(c->server, STR(""), STR("nodes"), STR(""), check_back_visit, c);
}
