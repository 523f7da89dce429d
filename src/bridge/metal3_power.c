#include "bridge/metal3_power.h"

#include "kinds/keys.h"
#include "bridge/rules.h"

#define VALUE_SOFT STR("") /* Metal3 asks the system to end, and cuts the power if it does not */
#define VALUE_HARD STR("{\"mode\":\"hard\"}")
#define MODE_HARD STR("hard")

/* ── which host ────────────────────────────────────────────────────────────────────────────── */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_uuid(struct str text)
{
    struct str form = STR("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
    if (text.n != form.n) {
        return false;
    }
    for (size_t i = 0; i < form.n; i++) {
        if (form.p[i] == '-' ? text.p[i] != '-' : !is_hex(text.p[i])) {
            return false;
        }
    }
    return true;
}

struct power_host power_host_of(struct str provider)
{
    struct power_host none = { .form = POWER_NONE };
    struct str rest;
    struct str space;
    struct str name;
    if (!str_cut_prefix(provider, STR("metal3://"), &rest)) {
        return none;
    }
    if (!str_cut(rest, STR("/"), &space, &rest)) {
        return is_uuid(space) ? (struct power_host){ .form = POWER_UID, .uid = space } : none;
    }
    (void)str_cut(rest, STR("/"), &name, &rest); /* what follows the host is the Machine's */
    if (space.n == 0 || name.n == 0) {
        return none;
    }
    return (struct power_host){ .form = POWER_NAMED, .space = space, .name = name };
}

static bool names_host(const struct machine *m, const struct bmhost *host)
{
    struct power_host named = power_host_of(m->provider);
    switch (named.form) {
    case POWER_NAMED:
        return str_eq(named.space, host->space) && str_eq(named.name, host->name);
    case POWER_UID:
        return str_eq(named.uid, host->uid);
    case POWER_NONE:
        break;
    }
    return false;
}

/* A reference without a namespace is to the host's own, never to a Machine of somebody else that
 * bears the same name. */
static bool is_consumer(const struct machine *m, const struct bmhost *host)
{
    struct str space = host->consumer_space.n > 0 ? host->consumer_space : host->space;
    return m->infra_name.n > 0 && str_eq(host->consumer_name, m->infra_name) &&
           str_eq(host->consumer_kind, m->infra_kind) && str_eq(space, m->space);
}

static bool is_owner(const struct machine *m, const struct bmhost *host)
{
    return host->owner.n > 0 && str_eq(host->owner, m->uid);
}

enum power_claim power_claim(const struct machine *m, const struct bmhost *host)
{
    if (is_owner(m, host)) {
        return POWER_CLAIM_OWNER;
    }
    if (!names_host(m, host)) {
        return POWER_CLAIM_NONE;
    }
    return is_consumer(m, host) ? POWER_CLAIM_CONSUMER : POWER_CLAIM_PROVIDER;
}

/* ── on or off ─────────────────────────────────────────────────────────────────────────────── */

enum power_state {
    STATE_OFF, /* it is switched off, or is to be */
    STATE_PAUSED,
    STATE_OWNER_GONE,
    STATE_OTHER_OWNER,
    STATE_DELETING,
    STATE_NOT_APPROVED,
    STATE_NOT_ENABLED,
    STATE_NO_CLUSTER,
    STATE_NO_HOST,
    STATE_OTHER_HOST,
    STATE_OTHER_CONSUMER,
    STATE_NOT_PROVISIONED,
    STATE_NOT_DRAINED,
};

static const char *const reasons[] = {
    [STATE_OFF] = "Off",
    [STATE_PAUSED] = "Paused",
    [STATE_OWNER_GONE] = "OwnerGone",
    [STATE_OTHER_OWNER] = "OtherOwner",
    [STATE_DELETING] = "Deleting",
    [STATE_NOT_APPROVED] = "NotApproved",
    [STATE_NOT_ENABLED] = "NotEnabled",
    [STATE_NO_CLUSTER] = "NoCluster",
    [STATE_NO_HOST] = "NoHost",
    [STATE_OTHER_HOST] = "OtherHost",
    [STATE_OTHER_CONSUMER] = "OtherConsumer",
    [STATE_NOT_PROVISIONED] = "NotProvisioned",
    [STATE_NOT_DRAINED] = "NotDrained",
};

static bool is_paused(const struct power_facts *f)
{
    return (f->host != NULL && f->host->paused) || (f->machine != NULL && f->machine->paused) ||
           (f->cluster != NULL && f->cluster->paused);
}

/* The annotation is there for another Machine. A note of an owner without it says nothing. */
static bool is_others(const struct machine *m, const struct bmhost *host)
{
    return host->reboot && host->owner.n > 0 && !is_owner(m, host);
}

/* Whether the machine may have its host switched off, whatever state that is in. */
static enum power_state state_of_machine(const struct power_options *options,
                                         const struct power_facts *f)
{
    const struct machine *m = f->machine;
    if (m->deleting) {
        return STATE_DELETING;
    }
    if (!rules_approved(m)) {
        return STATE_NOT_APPROVED;
    }
    if (f->host == NULL) {
        return STATE_NO_HOST;
    }
    if (!names_host(m, f->host)) {
        return STATE_OTHER_HOST; /* whatever the host says of its owner */
    }
    if (options->any_machine) {
        return STATE_OFF;
    }
    if (!m->enabled) {
        return STATE_NOT_ENABLED;
    }
    if (f->cluster == NULL || f->cluster->deleting) {
        return STATE_NO_CLUSTER;
    }
    return is_consumer(m, f->host) ? STATE_OFF : STATE_OTHER_CONSUMER;
}

static enum power_state power_state(const struct power_options *options,
                                    const struct power_facts *f)
{
    if (is_paused(f)) {
        return STATE_PAUSED;
    }
    if (f->machine == NULL) {
        return STATE_OWNER_GONE;
    }
    if (f->host != NULL && is_others(f->machine, f->host)) {
        return STATE_OTHER_OWNER;
    }
    enum power_state state = state_of_machine(options, f);
    if (state != STATE_OFF) {
        return state;
    }
    if (!f->host->provisioned) {
        return STATE_NOT_PROVISIONED;
    }
    bool drained = f->drained || f->host->reboot; /* see power_facts */
    return options->require_drained && !drained ? STATE_NOT_DRAINED : STATE_OFF;
}

/* ── edits ─────────────────────────────────────────────────────────────────────────────────── */

static void host_put(const struct machine *m, const struct bmhost *host, struct edit *e)
{
    struct str value = str_eq(m->power_mode, MODE_HARD) ? VALUE_HARD : VALUE_SOFT;
    if (!host->reboot || !str_eq(host->reboot_value, value)) {
        edit_set(e, /* label= */ false, KEY_REBOOT, value);
    }
    if (!str_eq(host->owner, m->uid)) {
        edit_set(e, /* label= */ false, KEY_REBOOT_OWNER, m->uid);
    }
}

static void host_release(const struct bmhost *host, struct edit *e)
{
    if (host->reboot) {
        edit_remove(e, /* label= */ false, KEY_REBOOT);
    }
    if (host->owner.p != NULL) {
        edit_remove(e, /* label= */ false, KEY_REBOOT_OWNER);
    }
}

/* Tells the power for as long as a maintenance that may switch it goes on. */
static void machine_tell(const struct power_facts *f, bool tells, struct edit *e)
{
    if (!tells) {
        if (f->machine->power.p != NULL) {
            edit_remove(e, /* label= */ false, KEY_POWER);
        }
        return;
    }
    struct str power = f->host->powered_on ? STR("on") : STR("off");
    if (!str_eq(f->machine->power, power)) {
        edit_set(e, /* label= */ false, KEY_POWER, power);
    }
}

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

static struct str consumer_message(const struct power_facts *f, struct arena *out)
{
    const struct bmhost *h = f->host;
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
    case STATE_OFF:
        return f->host->powered_on
                   ? STR("The maintenance is approved; the host is being switched off.")
                   : STR("The maintenance is approved; the host is switched off.");
    case STATE_PAUSED:
        return paused_message(f);
    case STATE_OWNER_GONE:
        return STR("There is no Machine any more for which the host would be switched off.");
    case STATE_OTHER_OWNER:
        return arena_printf(out,
                            "The host is switched off for the Machine of UID " STR_FMT
                            ", which decides about it.",
                            STR_ARG(f->host->owner));
    case STATE_DELETING:
        return STR("The Machine is being deleted; its host is not kept off.");
    case STATE_NOT_APPROVED:
        return STR("No maintenance of the Machine is approved.");
    case STATE_NOT_ENABLED:
        return arena_printf(out, "The Machine has no label " STR_FMT "=true.",
                            STR_ARG(KEY_ENABLED));
    case STATE_NO_CLUSTER:
        return f->cluster == NULL ? STR("The Machine's Cluster is not there.")
                                  : STR("The Machine's Cluster is being deleted.");
    case STATE_NO_HOST:
        return STR("The BareMetalHost that the Machine's provider id names is not there.");
    case STATE_OTHER_HOST:
        return STR("The Machine's provider id names another host.");
    case STATE_OTHER_CONSUMER:
        return consumer_message(f, out);
    case STATE_NOT_PROVISIONED:
        return STR("The host is not in state 'provisioned', in which alone Metal3 switches it.");
    case STATE_NOT_DRAINED:
        return f->undrained.n == 0
                   ? STR("The Node is not cordoned and drained yet.")
                   : arena_printf(out, "The Node is not cordoned and drained yet: " STR_FMT ".",
                                  STR_ARG(f->undrained));
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
    if (state == STATE_PAUSED) {
        return;
    }
    if (state == STATE_OFF) {
        host_put(facts->machine, facts->host, &ret->host);
    } else if (facts->host != NULL && state != STATE_OTHER_OWNER) {
        host_release(facts->host, &ret->host);
    }
    if (facts->machine != NULL) {
        machine_tell(facts,
                     state == STATE_OFF || state == STATE_NOT_PROVISIONED ||
                         state == STATE_NOT_DRAINED,
                     &ret->machine);
    }
}
