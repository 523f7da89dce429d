/*
 * What is judged of Metal3 hosts (B31 to B34): when one is switched off and for whom, that it is
 * not switched on under a maintenance, and that nothing is left when there is no reason any more.
 *
 * A host's patch carries the version that it was decided on, so the host's own state, consumer and
 * pause are judged without slack. Its Machine and Cluster are other objects: what was true of them
 * counts for as long as everywhere in this judge. A Node that was found drained counts for
 * DRAINED_CHECK_MAX more: it is read, not watched, and one host's turn comes after another's.
 */
#include "tests/swarm/check_bridge_internal.h"

#include "kinds/keys.h"

#define DRAINED_CHECK_MAX SECONDS(20)
#define POWER_OFF_HARD STR("{\"mode\":\"hard\"}")

static const struct str host_annotations[] = {
    STR_INIT("reboot.metal3.io/runtime-extension-maintenance-controller"),
    STR_INIT(KEYS_OWN "reboot-owner"),
};

/* One write of a bridge to a host. */
struct host_write {
    struct check_bridge *t;
    struct str who;
    struct str namespace;
    struct str name;
    const struct jval *old;
    const struct jval *now;
};

/* ── whose ─────────────────────────────────────────────────────────────────────────────────── */

/* "metal3://namespace/host/machine", or "metal3://<UID>". */
static bool names_host(const struct check_bridge_machine *m, const struct jval *host)
{
    struct str rest;
    struct str namespace;
    struct str name;
    struct str machine;
    if (!str_cut_prefix(m->provider, STR("metal3://"), &rest)) {
        return false;
    }
    if (!str_cut(rest, STR("/"), &namespace, &name)) {
        return str_eq(rest, text_at(host, "metadata.uid"));
    }
    (void)str_cut(name, STR("/"), &name, &machine); /* what it is called there is no matter */
    return str_eq(namespace, text_at(host, "metadata.namespace")) &&
           str_eq(name, text_at(host, "metadata.name"));
}

static bool consumes(const struct check_bridge_machine *m, const struct jval *host)
{
    struct str namespace = text_at(host, "spec.consumerRef.namespace");
    namespace = namespace.n > 0 ? namespace : text_at(host, "metadata.namespace");
    return m->infra_name.n > 0 && str_eq(text_at(host, "spec.consumerRef.name"), m->infra_name) &&
           str_eq(text_at(host, "spec.consumerRef.kind"), STR("Metal3Machine")) &&
           str_eq(namespace, m->namespace);
}

/* The host is this Machine's, as far as anybody asks. */
static bool owns_host(const struct check_bridge *t, const struct check_bridge_machine *m,
                      const struct jval *host)
{
    return names_host(m, host) && (t->options.any_machine || consumes(m, host));
}

static bool is_provisioned(const struct jval *host)
{
    return str_eq(text_at(host, "status.provisioning.state"), STR("provisioned"));
}

/* ── at each commit ────────────────────────────────────────────────────────────────────────── */

static void host_violation(const struct host_write *a, const char *rule, const char *what,
                           const struct check_bridge_machine *m)
{
    check_violation(a->t->basic,
                    "%s: " STR_FMT " %s: host " STR_FMT "/" STR_FMT " of Machine " STR_FMT, rule,
                    STR_ARG(a->who), what, STR_ARG(a->namespace), STR_ARG(a->name),
                    STR_ARG(m != NULL ? m->name : STR("nobody")));
}

static const char *power_off_error(const struct host_write *a, const struct check_bridge_machine *m)
{
    const struct check_bridge *t = a->t;
    const struct check_bridge_cluster *c = &t->clusters[m->cluster];
    usec_t lag = check_bridge_lag(t, a->who, m->cluster);
    if (!names_host(m, a->old)) {
        return "switches off what the Machine does not name";
    }
    if (!t->options.any_machine && !consumes(m, a->old)) {
        return "switches off what another one has";
    }
    if (!is_provisioned(a->old)) {
        return "switches off what is not provisioned";
    }
    if (!timed_flag_was_set(&m->power_off_due, t->now - lag)) {
        return "switches off without an approved maintenance";
    }
    if (!t->options.any_machine && timed_flag_set_for(&c->deleting, t->now, lag)) {
        return "switches off although the Cluster is going";
    }
    /* A Secret that leads to another cluster cannot be told from a right one. And a Node of now may
     * be judged by drain rules of before: they come from another server. */
    usec_t from = t->now - lag - DRAINED_CHECK_MAX;
    if (t->options.drained && !has_annotation(a->old, KEY_REBOOT) &&
        !timed_flag_was_set(&m->drained, from) && !timed_flag_was_set(&c->wrong_secret, from) &&
        c->rules_at <= from) {
        return "switches off under a Node that is not drained";
    }
    return NULL;
}

/* B31: what is switched off is so for one Machine, and everything speaks for it. */
static void check_power_off(const struct host_write *a)
{
    struct str value = annotation_of(a->now, KEY_REBOOT);
    const struct check_bridge_machine *m =
        map_find(&a->t->machines, annotation_of(a->now, KEY_REBOOT_OWNER));
    if (m == NULL) {
        host_violation(a, "B33", "switches off without saying for whom", NULL);
        return;
    }
    const char *error = power_off_error(a, m);
    if (error != NULL) {
        host_violation(a, "B31", error, m);
    } else if (value.n > 0 && !str_eq(value, POWER_OFF_HARD)) {
        host_violation(a, "B34", "switches off in a way that there is not", m);
    }
}

/* B32: to take it away is to start a host under the hands of whoever works on it. */
static void check_power_on(const struct host_write *a)
{
    const struct check_bridge *t = a->t;
    const struct check_bridge_machine *m =
        map_find(&t->machines, annotation_of(a->old, KEY_REBOOT_OWNER));
    if (m == NULL) {
        return;
    }
    usec_t lag = check_bridge_lag(t, a->who, m->cluster);
    bool deleting = !t->options.any_machine &&
                    timed_flag_was_set(&t->clusters[m->cluster].deleting, t->now - lag);
    if (timed_flag_set_for(&m->power_off_due, t->now, lag) && owns_host(t, m, a->old) &&
        is_provisioned(a->old) && !deleting) {
        host_violation(a, "B32", "switches on although the maintenance goes on", m);
    }
}

/* B6. */
static void check_pause(const struct host_write *a, const struct jval *object)
{
    const struct check_bridge *t = a->t;
    const struct check_bridge_machine *m =
        map_find(&t->machines, annotation_of(object, KEY_REBOOT_OWNER));
    if (has_annotation(a->old, KEY_HOST_PAUSED) || has_annotation(a->old, KEY_PAUSED)) {
        host_violation(a, "B6", "writes to a host that is paused", m);
        return;
    }
    usec_t lag = m == NULL ? 0 : check_bridge_lag(t, a->who, m->cluster);
    if (m != NULL && !m->gone &&
        (timed_flag_set_for(&m->paused, t->now, lag) ||
         timed_flag_set_for(&t->clusters[m->cluster].paused, t->now, lag))) {
        host_violation(a, "B6", "writes to the host of what is paused", m);
    }
}

void check_bridge_on_host(struct check_bridge *t, const struct apiserver_commit *commit)
{
    static const struct check_bridge_allowed span = { NULL, 0, host_annotations,
                                                      ARRAY_LEN(host_annotations) };
    const struct host_write act = {
        .t = t,
        .who = commit->user_agent,
        .namespace = commit->namespace,
        .name = commit->name,
        .old = commit->old,
        .now = commit->now,
    };
    if (!is_bridge(commit->user_agent)) {
        return;
    }
    if (commit->old == NULL || commit->now == NULL) {
        host_violation(&act, "B7", "makes or removes", NULL);
        return;
    }
    if (!check_bridge_only_changed(commit->old, commit->now, &span)) {
        host_violation(&act, "B7", "changes more than is its business", NULL);
        return;
    }
    bool same_owner = str_eq(annotation_of(commit->old, KEY_REBOOT_OWNER),
                             annotation_of(commit->now, KEY_REBOOT_OWNER));
    bool was = has_annotation(commit->old, KEY_REBOOT);
    bool is = has_annotation(commit->now, KEY_REBOOT);
    check_pause(&act, is ? commit->now : commit->old);
    if (is &&
        (!was || !same_owner ||
         !str_eq(annotation_of(commit->old, KEY_REBOOT), annotation_of(commit->now, KEY_REBOOT)))) {
        check_power_off(&act);
    }
    if (was && (!is || !same_owner)) {
        check_power_on(&act);
    }
}

/* ── what is so from now on ────────────────────────────────────────────────────────────────── */

void check_bridge_update_power(struct check_bridge *t, struct check_bridge_machine *m,
                               const struct jval *machine)
{
    if (!t->options.metal3) {
        return;
    }
    struct str provider = text_at(machine, "spec.providerID");
    struct str infra_name = text_at(machine, "spec.infrastructureRef.name");
    if (!str_eq(provider, m->provider) && provider.n > 0) {
        m->provider = arena_str(&t->memory, provider);
    }
    if (m->infra_name.n == 0 && infra_name.n > 0) {
        m->infra_name = arena_str(&t->memory, infra_name);
    }
    timed_flag_set(&m->power_off_due,
                   machine != NULL && is_approved(machine) && !is_deleting(machine) &&
                       (t->options.any_machine || label_is_true(machine, KEY_ENABLED)),
                   t->now);
    if (machine != NULL && t->options.drained) {
        timed_flag_set(&m->drained, check_bridge_is_drained(t, m), t->now);
    }
}

void check_bridge_update_drained(struct check_bridge *t, uint32_t cluster)
{
    if (!t->options.drained) {
        return;
    }
    MAP_EACH (&t->machines, item) {
        struct check_bridge_machine *m = map_item_value(item);
        if (m->cluster == cluster && !m->gone) {
            timed_flag_set(&m->drained, check_bridge_is_drained(t, m), t->now);
        }
    }
}

/* ── in the end ────────────────────────────────────────────────────────────────────────────── */

static const struct jval *machine_find(const struct check_bridge *t,
                                       const struct check_bridge_machine *m)
{
    return apiserver_find(t->management, CHECK_CAPI_GROUP, STR("machines"), m->namespace, m->name);
}

static bool cluster_remains(const struct check_bridge *t, const struct check_bridge_machine *m)
{
    return t->options.any_machine || !t->clusters[m->cluster].deleting.is;
}

/* How many Machines the host is to be off for, and one of them. As the original has it two that
 * name one host both have it: then nobody can say for which it is. */
static uint32_t count_power_off_due(struct check_bridge *t, const struct jval *host,
                                    const struct check_bridge_machine **ret)
{
    uint32_t n = 0;
    MAP_EACH (&t->machines, item) {
        const struct check_bridge_machine *m = map_item_value(item);
        if (!m->gone && m->power_off_due.is && owns_host(t, m, host) && cluster_remains(t, m)) {
            *ret = m;
            n++;
        }
    }
    return is_provisioned(host) ? n : 0;
}

static const char *end_error(struct check_bridge *t, const struct jval *host,
                             const struct check_bridge_machine *m, uint32_t n)
{
    bool is_off = has_annotation(host, KEY_REBOOT);
    if (n == 0) {
        return is_off ? "is kept off for no reason"
               : has_annotation(host, KEY_REBOOT_OWNER)
                   ? "carries the name of an owner for no reason"
                   : NULL;
    }
    if (n > 1) {
        return NULL;
    }
    if (!is_off) {
        return (t->options.any_machine && !consumes(m, host)) ||
                       (t->options.drained && !check_bridge_is_drained(t, m))
                   ? NULL
                   : "is not switched off";
    }
    struct str mode = annotation_of(machine_find(t, m), KEY_POWER_MODE);
    struct str value = str_eq(mode, STR("hard")) ? POWER_OFF_HARD : STR("");
    if (!str_eq(annotation_of(host, KEY_REBOOT_OWNER), m->uid)) {
        return "is kept off for somebody else";
    }
    return str_eq(annotation_of(host, KEY_REBOOT), value) ? NULL : "is kept off in another way";
}

static void end_host(void *ctx, const struct jval *host)
{
    struct check_bridge *t = ctx;
    const struct check_bridge_machine *m = NULL;
    uint32_t n = count_power_off_due(t, host, &m);
    const char *error = end_error(t, host, m, n);
    if (error != NULL) {
        check_violation(t->basic, "%s: host " STR_FMT "/" STR_FMT " %s in the end (" STR_FMT ")",
                        n == 0 ? "B33" : "B32", STR_ARG(text_at(host, "metadata.namespace")),
                        STR_ARG(text_at(host, "metadata.name")), error,
                        STR_ARG(n == 0 ? annotation_of(host, KEY_REBOOT_OWNER) : m->name));
    }
}

struct host_search {
    const struct check_bridge *t;
    const struct check_bridge_machine *m;
    const struct jval *host;
};

static void host_search_visit(void *ctx, const struct jval *host)
{
    struct host_search *search = ctx;
    if (names_host(search->m, host)) {
        search->host = host;
    }
}

/* B32: what a Machine says of its host's power is so, and it says so during a maintenance. */
static void end_power(struct check_bridge *t, const struct check_bridge_machine *m)
{
    struct host_search search = { .t = t, .m = m };
    apiserver_each(t->management, CHECK_METAL3_GROUP, STR("baremetalhosts"), STR(""),
                   host_search_visit, &search);
    struct str power = annotation_of(machine_find(t, m), KEY_POWER);
    bool on = jval_bool(jval_at(search.host, "status.poweredOn"), false);
    bool must_say = m->power_off_due.is && search.host != NULL && consumes(m, search.host) &&
                    cluster_remains(t, m);
    const char *error = NULL;
    if (power.p == NULL) {
        error = must_say ? "does not say whether its host is on" : NULL;
    } else if (search.host == NULL) {
        error = "speaks of a host that is not there";
    } else if (!str_eq(power, on ? STR("on") : STR("off"))) {
        error = "does not know whether its host is on";
    }
    if (error != NULL) {
        check_violation(t->basic,
                        "B32: Machine " STR_FMT "/" STR_FMT " %s in the end: '" STR_FMT "'",
                        STR_ARG(m->namespace), STR_ARG(m->name), error, STR_ARG(power));
    }
}

void check_bridge_hosts_at_end(struct check_bridge *t)
{
    apiserver_each(t->management, CHECK_METAL3_GROUP, STR("baremetalhosts"), STR(""), end_host, t);
    MAP_EACH (&t->machines, item) {
        const struct check_bridge_machine *m = map_item_value(item);
        if (!m->gone) {
            end_power(t, m);
        }
    }
}
