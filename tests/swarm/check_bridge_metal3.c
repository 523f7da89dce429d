/*
 * What is judged of Metal3 hosts (B-27 to B-30): when one is switched off and for whom, that it is
 * not switched on under a maintenance, and that nothing is left when there is no reason any more.
 *
 * A host's patch carries the version that it was decided on, so the host's own state, consumer and
 * pause are judged without slack. Its Machine and Cluster are other objects: what was true of them
 * counts for as long as everywhere in this judge. A Node that was found drained counts for
 * HOST_SURVEY more: it is read, not watched, and one host's turn comes after another's.
 */
#include "tests/swarm/check_bridge_internal.h"

#define HOST_SURVEY SECONDS(20)
#define HOST_HARD STR("{\"mode\":\"hard\"}")

static const struct str host_notes[] = {
    STR_INIT("reboot.metal3.io/runtime-extension-maintenance-controller"),
    STR_INIT(KEYS_OWN "reboot-owner"),
};

/* One write of a bridge to a host. */
struct act {
    struct treaty *t;
    struct str who;
    struct str space;
    struct str name;
    const struct jval *old;
    const struct jval *now;
};

/* ── whose ─────────────────────────────────────────────────────────────────────────────────── */

/* "metal3://namespace/host/machine", or "metal3://<UID>". */
static bool names(const struct treaty_machine *m, const struct jval *host)
{
    struct str rest;
    struct str space;
    struct str name;
    struct str machine;
    if (!str_cut_prefix(m->provider, STR("metal3://"), &rest)) {
        return false;
    }
    if (!str_cut(rest, STR("/"), &space, &name)) {
        return str_eq(rest, text_at(host, "metadata.uid"));
    }
    (void)str_cut(name, STR("/"), &name, &machine); /* what it is called there is no matter */
    return str_eq(space, text_at(host, "metadata.namespace")) &&
           str_eq(name, text_at(host, "metadata.name"));
}

static bool consumes(const struct treaty_machine *m, const struct jval *host)
{
    struct str space = text_at(host, "spec.consumerRef.namespace");
    space = space.n > 0 ? space : text_at(host, "metadata.namespace");
    return m->infra.n > 0 && str_eq(text_at(host, "spec.consumerRef.name"), m->infra) &&
           str_eq(text_at(host, "spec.consumerRef.kind"), STR("Metal3Machine")) &&
           str_eq(space, m->space);
}

/* The host is this Machine's, as far as anybody asks. */
static bool has(const struct treaty *t, const struct treaty_machine *m, const struct jval *host)
{
    return names(m, host) && (t->terms.any_machine || consumes(m, host));
}

static bool is_provisioned(const struct jval *host)
{
    return str_eq(text_at(host, "status.provisioning.state"), STR("provisioned"));
}

/* ── at each commit ────────────────────────────────────────────────────────────────────────── */

static void host_break(const struct act *a, const char *rule, const char *what,
                       const struct treaty_machine *m)
{
    promise_break(a->t->promise,
                  "%s: " STR_FMT " %s: host " STR_FMT "/" STR_FMT " of Machine " STR_FMT, rule,
                  STR_ARG(a->who), what, STR_ARG(a->space), STR_ARG(a->name),
                  STR_ARG(m != NULL ? m->name : STR("nobody")));
}

static const char *wrong_put(const struct act *a, const struct treaty_machine *m)
{
    const struct treaty *t = a->t;
    const struct treaty_cluster *c = &t->clusters[m->cluster];
    usec_t lag = treaty_lag(t, a->who, m->cluster);
    if (!names(m, a->old)) {
        return "switches off what the Machine does not name";
    }
    if (!t->terms.any_machine && !consumes(m, a->old)) {
        return "switches off what another one has";
    }
    if (!is_provisioned(a->old)) {
        return "switches off what is not provisioned";
    }
    if (!trait_was(&m->due, t->now - lag)) {
        return "switches off without an approved maintenance";
    }
    if (!t->terms.any_machine && trait_lasts(&c->going, t->now, lag)) {
        return "switches off although the Cluster is going";
    }
    /* A Secret that leads to another cluster cannot be told from a right one. And a Node of now may
     * be judged by drain rules of before: they come from another server. */
    usec_t from = t->now - lag - HOST_SURVEY;
    if (t->terms.drained && !has_note(a->old, KEY_REBOOT) && !trait_was(&m->drained, from) &&
        !trait_was(&c->astray, from) && c->rules_at <= from) {
        return "switches off under a Node that is not drained";
    }
    return NULL;
}

/* B-27: what is switched off is so for one Machine, and everything speaks for it. */
static void check_put(const struct act *a)
{
    struct str value = note_of(a->now, KEY_REBOOT);
    const struct treaty_machine *m = map_find(&a->t->machines, note_of(a->now, KEY_REBOOT_OWNER));
    if (m == NULL) {
        host_break(a, "B-29", "switches off without saying for whom", NULL);
        return;
    }
    const char *wrong = wrong_put(a, m);
    if (wrong != NULL) {
        host_break(a, "B-27", wrong, m);
    } else if (value.n > 0 && !str_eq(value, HOST_HARD)) {
        host_break(a, "B-30", "switches off in a way that there is not", m);
    }
}

/* B-28: to take it away is to start a host under the hands of whoever works on it. */
static void check_taken(const struct act *a)
{
    const struct treaty *t = a->t;
    const struct treaty_machine *m = map_find(&t->machines, note_of(a->old, KEY_REBOOT_OWNER));
    if (m == NULL) {
        return;
    }
    usec_t lag = treaty_lag(t, a->who, m->cluster);
    bool going = !t->terms.any_machine && trait_was(&t->clusters[m->cluster].going, t->now - lag);
    if (trait_lasts(&m->due, t->now, lag) && has(t, m, a->old) && is_provisioned(a->old) &&
        !going) {
        host_break(a, "B-28", "switches on although the maintenance goes on", m);
    }
}

/* INV-6. */
static void check_pause(const struct act *a, const struct jval *object)
{
    const struct treaty *t = a->t;
    const struct treaty_machine *m = map_find(&t->machines, note_of(object, KEY_REBOOT_OWNER));
    if (has_note(a->old, KEY_HOST_PAUSED) || has_note(a->old, KEY_PAUSED)) {
        host_break(a, "INV-6", "writes to a host that is paused", m);
        return;
    }
    usec_t lag = m == NULL ? 0 : treaty_lag(t, a->who, m->cluster);
    if (m != NULL && !m->gone &&
        (trait_lasts(&m->paused, t->now, lag) ||
         trait_lasts(&t->clusters[m->cluster].paused, t->now, lag))) {
        host_break(a, "INV-6", "writes to the host of what is paused", m);
    }
}

void treaty_on_host(struct treaty *t, const struct apiserver_commit *commit)
{
    static const struct treaty_span span = { NULL, 0, host_notes, ARRAY_LEN(host_notes) };
    const struct act act = {
        .t = t,
        .who = commit->user_agent,
        .space = commit->namespace,
        .name = commit->name,
        .old = commit->old,
        .now = commit->now,
    };
    if (!is_bridge(commit->user_agent)) {
        return;
    }
    if (commit->old == NULL || commit->now == NULL) {
        host_break(&act, "INV-7", "makes or removes", NULL);
        return;
    }
    if (!treaty_same_but(commit->old, commit->now, &span)) {
        host_break(&act, "INV-7", "changes more than is its business", NULL);
        return;
    }
    bool same =
        str_eq(note_of(commit->old, KEY_REBOOT_OWNER), note_of(commit->now, KEY_REBOOT_OWNER));
    bool was = has_note(commit->old, KEY_REBOOT);
    bool is = has_note(commit->now, KEY_REBOOT);
    check_pause(&act, is ? commit->now : commit->old);
    if (is && (!was || !same ||
               !str_eq(note_of(commit->old, KEY_REBOOT), note_of(commit->now, KEY_REBOOT)))) {
        check_put(&act);
    }
    if (was && (!is || !same)) {
        check_taken(&act);
    }
}

/* ── what is so from now on ────────────────────────────────────────────────────────────────── */

void treaty_note_due(struct treaty *t, struct treaty_machine *m, const struct jval *machine)
{
    if (!t->terms.metal3) {
        return;
    }
    struct str provider = text_at(machine, "spec.providerID");
    struct str infra = text_at(machine, "spec.infrastructureRef.name");
    if (!str_eq(provider, m->provider) && provider.n > 0) {
        m->provider = arena_str(&t->memory, provider);
    }
    if (m->infra.n == 0 && infra.n > 0) {
        m->infra = arena_str(&t->memory, infra);
    }
    trait_note(&m->due,
               machine != NULL && is_approved(machine) && !is_deleting(machine) &&
                   (t->terms.any_machine || is_true(machine, KEY_ENABLED)),
               t->now);
    if (machine != NULL && t->terms.drained) {
        trait_note(&m->drained, treaty_is_drained(t, m), t->now);
    }
}

void treaty_note_drained(struct treaty *t, uint32_t cluster)
{
    if (!t->terms.drained) {
        return;
    }
    MAP_EACH (&t->machines, item) {
        struct treaty_machine *m = map_item_value(item);
        if (m->cluster == cluster && !m->gone) {
            trait_note(&m->drained, treaty_is_drained(t, m), t->now);
        }
    }
}

/* ── in the end ────────────────────────────────────────────────────────────────────────────── */

static const struct jval *machine_find(const struct treaty *t, const struct treaty_machine *m)
{
    return apiserver_find(t->home, TREATY_GROUP, STR("machines"), m->space, m->name);
}

static bool cluster_stays(const struct treaty *t, const struct treaty_machine *m)
{
    return t->terms.any_machine || !t->clusters[m->cluster].going.is;
}

/* How many Machines the host is to be off for, and one of them. As the original has it two that
 * name one host both have it: then nobody can say for which it is. */
static uint32_t count_due(struct treaty *t, const struct jval *host,
                          const struct treaty_machine **ret)
{
    uint32_t n = 0;
    MAP_EACH (&t->machines, item) {
        const struct treaty_machine *m = map_item_value(item);
        if (!m->gone && m->due.is && has(t, m, host) && cluster_stays(t, m)) {
            *ret = m;
            n++;
        }
    }
    return is_provisioned(host) ? n : 0;
}

static const char *wrong_rest(struct treaty *t, const struct jval *host,
                              const struct treaty_machine *m, uint32_t n)
{
    bool off = has_note(host, KEY_REBOOT);
    if (n == 0) {
        return off                                ? "is kept off for no reason"
               : has_note(host, KEY_REBOOT_OWNER) ? "carries the name of an owner for no reason"
                                                  : NULL;
    }
    if (n > 1) {
        return NULL;
    }
    if (!off) {
        return (t->terms.any_machine && !consumes(m, host)) ||
                       (t->terms.drained && !treaty_is_drained(t, m))
                   ? NULL
                   : "is not switched off";
    }
    struct str mode = note_of(machine_find(t, m), KEY_POWER_MODE);
    struct str value = str_eq(mode, STR("hard")) ? HOST_HARD : STR("");
    if (!str_eq(note_of(host, KEY_REBOOT_OWNER), m->uid)) {
        return "is kept off for somebody else";
    }
    return str_eq(note_of(host, KEY_REBOOT), value) ? NULL : "is kept off in another way";
}

static void rest_host(void *ctx, const struct jval *host)
{
    struct treaty *t = ctx;
    const struct treaty_machine *m = NULL;
    uint32_t n = count_due(t, host, &m);
    const char *wrong = wrong_rest(t, host, m, n);
    if (wrong != NULL) {
        promise_break(t->promise, "%s: host " STR_FMT "/" STR_FMT " %s in the end (" STR_FMT ")",
                      n == 0 ? "B-29" : "B-28", STR_ARG(text_at(host, "metadata.namespace")),
                      STR_ARG(text_at(host, "metadata.name")), wrong,
                      STR_ARG(n == 0 ? note_of(host, KEY_REBOOT_OWNER) : m->name));
    }
}

struct search {
    const struct treaty *t;
    const struct treaty_machine *m;
    const struct jval *host;
};

static void search_visit(void *ctx, const struct jval *host)
{
    struct search *search = ctx;
    if (names(search->m, host)) {
        search->host = host;
    }
}

/* B-28: what a Machine says of its host's power is so, and it says so during a maintenance. */
static void rest_power(struct treaty *t, const struct treaty_machine *m)
{
    struct search search = { .t = t, .m = m };
    apiserver_each(t->home, TREATY_METAL3, STR("baremetalhosts"), STR(""), search_visit, &search);
    struct str power = note_of(machine_find(t, m), KEY_POWER);
    bool on = jval_bool(jval_at(search.host, "status.poweredOn"), false);
    bool says = m->due.is && search.host != NULL && consumes(m, search.host) && cluster_stays(t, m);
    const char *wrong = NULL;
    if (power.p == NULL) {
        wrong = says ? "does not say whether its host is on" : NULL;
    } else if (search.host == NULL) {
        wrong = "speaks of a host that is not there";
    } else if (!str_eq(power, on ? STR("on") : STR("off"))) {
        wrong = "does not know whether its host is on";
    }
    if (wrong != NULL) {
        promise_break(t->promise,
                      "B-28: Machine " STR_FMT "/" STR_FMT " %s in the end: '" STR_FMT "'",
                      STR_ARG(m->space), STR_ARG(m->name), wrong, STR_ARG(power));
    }
}

void treaty_host_at_rest(struct treaty *t)
{
    apiserver_each(t->home, TREATY_METAL3, STR("baremetalhosts"), STR(""), rest_host, t);
    MAP_EACH (&t->machines, item) {
        const struct treaty_machine *m = map_item_value(item);
        if (!m->gone) {
            rest_power(t, m);
        }
    }
}
