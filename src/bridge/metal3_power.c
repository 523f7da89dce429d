#include "bridge/metal3_power.h"

#include "base/hex.h"
#include "kinds/keys.h"
#include "bridge/rules.h"

#define VALUE_SOFT STR("") /* Metal3 asks the system to end, and cuts the power if it does not */
#define VALUE_HARD STR("{\"mode\":\"hard\"}")
#define MODE_HARD STR("hard")

/* ── which host ────────────────────────────────────────────────────────────────────────────── */

static bool is_uuid(struct str text)
{
    struct str form = STR("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
    if (text.n != form.n) {
        return false;
    }
    for (size_t i = 0; i < form.n; i++) {
        if (form.p[i] == '-' ? text.p[i] != '-' : hex_digit(text.p[i]) < 0) {
            return false;
        }
    }
    return true;
}

struct metal3_id metal3_id_parse(struct str provider_id)
{
    struct metal3_id none = { .form = METAL3_ID_NONE };
    struct str rest;
    struct str namespace;
    struct str name;
    if (!str_cut_prefix(provider_id, STR("metal3://"), &rest)) {
        return none;
    }
    if (!str_cut(rest, STR("/"), &namespace, &rest)) {
        return is_uuid(namespace) ? (struct metal3_id){ .form = METAL3_ID_UID, .uid = namespace }
                                  : none;
    }
    (void)str_cut(rest, STR("/"), &name, &rest); /* what follows the host is the Machine's */
    if (namespace.n == 0 || name.n == 0) {
        return none;
    }
    return (struct metal3_id){ .form = METAL3_ID_NAMED, .namespace = namespace, .name = name };
}

static bool names_host(const struct machine *m, const struct metal3_host *host)
{
    struct metal3_id named = metal3_id_parse(m->provider_id);
    switch (named.form) {
    case METAL3_ID_NAMED:
        return str_eq(named.namespace, host->namespace) && str_eq(named.name, host->name);
    case METAL3_ID_UID:
        return str_eq(named.uid, host->uid);
    case METAL3_ID_NONE:
        break;
    }
    return false;
}

/* A consumerRef without a namespace means the host's own namespace. */
static bool is_consumer(const struct machine *m, const struct metal3_host *host)
{
    struct str namespace =
        host->consumer_namespace.n > 0 ? host->consumer_namespace : host->namespace;
    return m->infra_name.n > 0 && str_eq(host->consumer_name, m->infra_name) &&
           str_eq(host->consumer_kind, m->infra_kind) && str_eq(namespace, m->namespace);
}

static bool is_owner(const struct machine *m, const struct metal3_host *host)
{
    return host->owner.n > 0 && str_eq(host->owner, m->uid);
}

enum power_rank power_rank(const struct machine *m, const struct metal3_host *host)
{
    if (is_owner(m, host)) {
        return POWER_RANK_OWNER;
    }
    if (!names_host(m, host)) {
        return POWER_RANK_NONE;
    }
    return is_consumer(m, host) ? POWER_RANK_CONSUMER : POWER_RANK_PROVIDER;
}

/* ── on or off ─────────────────────────────────────────────────────────────────────────────── */

enum power_state {
    POWER_OFF, /* it is switched off, or is to be */
    POWER_PAUSED,
    POWER_OWNER_GONE,
    POWER_OTHER_OWNER,
    POWER_DELETING,
    POWER_NOT_APPROVED,
    POWER_NOT_ENABLED,
    POWER_NO_CLUSTER,
    POWER_NO_HOST,
    POWER_OTHER_HOST,
    POWER_OTHER_CONSUMER,
    POWER_NOT_PROVISIONED,
    POWER_NOT_DRAINED,
};

static const char *const reasons[] = {
    [POWER_OFF] = "Off",
    [POWER_PAUSED] = "Paused",
    [POWER_OWNER_GONE] = "OwnerGone",
    [POWER_OTHER_OWNER] = "OtherOwner",
    [POWER_DELETING] = "Deleting",
    [POWER_NOT_APPROVED] = "NotApproved",
    [POWER_NOT_ENABLED] = "NotEnabled",
    [POWER_NO_CLUSTER] = "NoCluster",
    [POWER_NO_HOST] = "NoHost",
    [POWER_OTHER_HOST] = "OtherHost",
    [POWER_OTHER_CONSUMER] = "OtherConsumer",
    [POWER_NOT_PROVISIONED] = "NotProvisioned",
    [POWER_NOT_DRAINED] = "NotDrained",
};

static bool is_paused(const struct power_facts *f)
{
    return (f->host != NULL && f->host->paused) || (f->machine != NULL && f->machine->paused) ||
           (f->cluster != NULL && f->cluster->paused);
}

/* The host is switched off for another Machine. KEY_REBOOT_OWNER alone says nothing. */
static bool is_of_other_machine(const struct machine *m, const struct metal3_host *host)
{
    return host->reboot && host->owner.n > 0 && !is_owner(m, host);
}

/* Whether the machine may have its host switched off, whatever state that is in. */
static enum power_state state_of_machine(const struct power_options *options,
                                         const struct power_facts *f)
{
    const struct machine *m = f->machine;
    if (m->deleting) {
        return POWER_DELETING;
    }
    if (!rules_approved(m)) {
        return POWER_NOT_APPROVED;
    }
    if (f->host == NULL) {
        return POWER_NO_HOST;
    }
    if (!names_host(m, f->host)) {
        return POWER_OTHER_HOST; /* whatever the host says of its owner */
    }
    if (options->any_machine) {
        return POWER_OFF;
    }
    if (!m->enabled) {
        return POWER_NOT_ENABLED;
    }
    if (f->cluster == NULL || f->cluster->deleting) {
        return POWER_NO_CLUSTER;
    }
    return is_consumer(m, f->host) ? POWER_OFF : POWER_OTHER_CONSUMER;
}

static enum power_state power_state(const struct power_options *options,
                                    const struct power_facts *f)
{
    if (is_paused(f)) {
        return POWER_PAUSED;
    }
    if (f->machine == NULL) {
        return POWER_OWNER_GONE;
    }
    if (f->host != NULL && is_of_other_machine(f->machine, f->host)) {
        return POWER_OTHER_OWNER;
    }
    enum power_state state = state_of_machine(options, f);
    if (state != POWER_OFF) {
        return state;
    }
    if (!f->host->provisioned) {
        return POWER_NOT_PROVISIONED;
    }
    bool drained = f->drained || f->host->reboot; /* see power_facts */
    return options->require_drained && !drained ? POWER_NOT_DRAINED : POWER_OFF;
}

/* ── patches ───────────────────────────────────────────────────────────────────────────────── */

static void host_switch_off(const struct machine *m, const struct metal3_host *host,
                            struct meta_patch *e)
{
    struct str value = str_eq(m->power_mode, MODE_HARD) ? VALUE_HARD : VALUE_SOFT;
    if (!host->reboot || !str_eq(host->reboot_value, value)) {
        meta_patch_set(e, /* label= */ false, KEY_REBOOT, value);
    }
    if (!str_eq(host->owner, m->uid)) {
        meta_patch_set(e, /* label= */ false, KEY_REBOOT_OWNER, m->uid);
    }
}

static void host_switch_on(const struct metal3_host *host, struct meta_patch *e)
{
    if (host->reboot) {
        meta_patch_remove(e, /* label= */ false, KEY_REBOOT);
    }
    if (host->owner.p != NULL) {
        meta_patch_remove(e, /* label= */ false, KEY_REBOOT_OWNER);
    }
}

/* KEY_POWER is there during a maintenance that may switch the host. */
static void machine_set_power(const struct power_facts *f, bool tells, struct meta_patch *e)
{
    if (!tells) {
        if (f->machine->power.p != NULL) {
            meta_patch_remove(e, /* label= */ false, KEY_POWER);
        }
        return;
    }
    struct str power = f->host->powered_on ? STR("on") : STR("off");
    if (!str_eq(f->machine->power, power)) {
        meta_patch_set(e, /* label= */ false, KEY_POWER, power);
    }
}

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

static struct str consumer_message(const struct power_facts *f, struct arena *out)
{
    const struct metal3_host *h = f->host;
    if (h->consumer_name.n == 0) {
        return arena_printf(out,
                            "The host has no consumerRef; it stays on until that names " STR_FMT
                            " '" STR_FMT "'.",
                            STR_ARG(f->machine->infra_kind), STR_ARG(f->machine->infra_name));
    }
    return arena_printf(out,
                        "The host's consumerRef names " STR_FMT " '" STR_FMT
                        "', not this Machine's " STR_FMT " '" STR_FMT "'.",
                        STR_ARG(h->consumer_kind), STR_ARG(h->consumer_name),
                        STR_ARG(f->machine->infra_kind), STR_ARG(f->machine->infra_name));
}

static struct str paused_message(const struct power_facts *f)
{
    if (f->host != NULL && f->host->paused) {
        return STR("The host is paused; it is left as it is.");
    }
    if (f->machine != NULL && f->machine->paused) {
        return STR("The Machine is paused; its host is left as it is.");
    }
    return STR("The Cluster is paused; the host is left as it is.");
}

static struct str message_of(enum power_state state, const struct power_facts *f, struct arena *out)
{
    switch (state) {
    case POWER_OFF:
        return f->host->powered_on
                   ? STR("The maintenance is approved; the host is being switched off.")
                   : STR("The maintenance is approved; the host is switched off.");
    case POWER_PAUSED:
        return paused_message(f);
    case POWER_OWNER_GONE:
        return STR("There is no Machine any more for which the host would be switched off.");
    case POWER_OTHER_OWNER:
        return arena_printf(out,
                            "The host is switched off for the Machine of UID " STR_FMT
                            ", which decides about it.",
                            STR_ARG(f->host->owner));
    case POWER_DELETING:
        return STR("The Machine is being deleted; its host is not kept off.");
    case POWER_NOT_APPROVED:
        return STR("No maintenance of the Machine is approved.");
    case POWER_NOT_ENABLED:
        return arena_printf(out, "The Machine has no label " STR_FMT "=true.",
                            STR_ARG(KEY_ENABLED));
    case POWER_NO_CLUSTER:
        return f->cluster == NULL ? STR("The Machine's Cluster is not there.")
                                  : STR("The Machine's Cluster is being deleted.");
    case POWER_NO_HOST:
        return STR("The BareMetalHost that the Machine's provider id names is not there.");
    case POWER_OTHER_HOST:
        return STR("The Machine's provider id names another host.");
    case POWER_OTHER_CONSUMER:
        return consumer_message(f, out);
    case POWER_NOT_PROVISIONED:
        return STR("The host is not in state 'provisioned', in which alone Metal3 switches it.");
    case POWER_NOT_DRAINED:
        return f->not_drained_why.n == 0
                   ? STR("The Node is not cordoned and drained yet.")
                   : arena_printf(out, "The Node is not cordoned and drained yet: " STR_FMT ".",
                                  STR_ARG(f->not_drained_why));
    }
    ASSERT(false);
    return STR_NONE;
}

void power_decide(const struct power_options *options, const struct power_facts *facts,
                  struct arena *out, struct power_verdict *ret)
{
    ASSERT(facts->machine != NULL || facts->host != NULL);
    enum power_state state = power_state(options, facts);
    *ret = (struct power_verdict){
        .reason = reasons[state],
        .message = message_of(state, facts, out),
    };
    if (state == POWER_PAUSED) {
        return;
    }
    if (state == POWER_OFF) {
        host_switch_off(facts->machine, facts->host, &ret->host);
    } else if (facts->host != NULL && state != POWER_OTHER_OWNER) {
        host_switch_on(facts->host, &ret->host);
    }
    if (facts->machine != NULL) {
        machine_set_power(facts,
                          state == POWER_OFF || state == POWER_NOT_PROVISIONED ||
                              state == POWER_NOT_DRAINED,
                          &ret->machine);
    }
}
