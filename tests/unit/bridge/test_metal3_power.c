#include "bridge/metal3_power.h"

#include "kinds/keys.h"
#include "bridge/rules.h"
#include "tests/check.h"

#define UID_1 "0f9b1a52-3c6e-4d7a-9f10-aabbccddee01"
#define UID_2 "0f9b1a52-3c6e-4d7a-9f10-aabbccddee02"
#define HARD "{\"mode\":\"hard\"}"

/* An approved Machine, its Cluster, and its host that runs. */
struct world {
    struct machine machine;
    struct cluster cluster;
    struct metal3_host host;
    struct power_options options;
    struct power_facts facts;
    struct power_verdict verdict;
    struct arena a;
};

static void world_begin(struct world *w)
{
    *w = (struct world){
        .machine = { .namespace = STR("metal"),
                     .name = STR("m1"),
                     .uid = STR(UID_1),
                     .cluster = STR("c1"),
                     .provider_id = STR("metal3://metal/h1/m1"),
                     .infra_kind = STR("Metal3Machine"),
                     .infra_name = STR("infra-1"),
                     .enabled = true,
                     .request = MACHINE_REQUEST_APPROVED },
        .cluster = { .uid = STR("c"), .provisioned = true },
        .host = { .uid = STR("h"),
                  .namespace = STR("metal"),
                  .name = STR("h1"),
                  .provisioned = true,
                  .powered_on = true,
                  .consumer_kind = STR("Metal3Machine"),
                  .consumer_namespace = STR("metal"),
                  .consumer_name = STR("infra-1") },
    };
    w->facts =
        (struct power_facts){ .machine = &w->machine, .cluster = &w->cluster, .host = &w->host };
}

static void world_end(struct world *w)
{
    arena_done(&w->a);
}

/* As the API server would take the patches. */
static void apply(struct world *w)
{
    for (uint32_t i = 0; i < w->verdict.host.n; i++) {
        const struct meta_patch_key *k = &w->verdict.host.keys[i];
        bool reboot = str_eq(k->key, KEY_REBOOT);
        CHECK(!k->label);
        CHECK(reboot || str_eq(k->key, KEY_REBOOT_OWNER));
        *(reboot ? &w->host.reboot_value : &w->host.owner) = k->remove ? STR_NONE : k->value;
        if (reboot) {
            w->host.reboot = !k->remove;
        }
    }
    for (uint32_t i = 0; i < w->verdict.machine.n; i++) {
        const struct meta_patch_key *k = &w->verdict.machine.keys[i];
        CHECK(!k->label);
        CHECK_STR(k->key, KEY_POWER);
        w->machine.power = k->remove ? STR_NONE : k->value;
    }
}

static const char *decide(struct world *w)
{
    power_decide(&w->options, &w->facts, &w->a, &w->verdict);
    CHECK(w->verdict.message.n > 10);
    CHECK_EQ(w->verdict.message.p[w->verdict.message.n - 1], '.');
    return w->verdict.reason;
}

/* Decides, applies, and sees that this was all. */
static const char *settle(struct world *w)
{
    const char *reason = decide(w);
    apply(w);
    (void)decide(w);
    CHECK_EQ(w->verdict.host.n + w->verdict.machine.n, 0);
    return reason;
}

static bool is_off(const struct world *w)
{
    return w->host.reboot;
}

/* ── provider ids ──────────────────────────────────────────────────────────────────────────── */

TEST(power_reads_provider_ids)
{
    static const struct {
        const char *provider_id;
        enum metal3_id_form form;
        const char *namespace;
        const char *name;
        const char *uid;
    } cases[] = {
        { "metal3://default/the-host/the-machine", METAL3_ID_NAMED, "default", "the-host", "" },
        { "metal3://default/the-host", METAL3_ID_NAMED, "default", "the-host", "" },
        { "metal3://default/the-host/", METAL3_ID_NAMED, "default", "the-host", "" },
        { "metal3://a/b/c/d", METAL3_ID_NAMED, "a", "b", "" },
        { "metal3://" UID_1, METAL3_ID_UID, "", "", UID_1 },
        { "metal3://" UID_1 "/x", METAL3_ID_NAMED, UID_1, "x", "" },
        { "", METAL3_ID_NONE, "", "", "" },
        { "metal3", METAL3_ID_NONE, "", "", "" },
        { "metal3:", METAL3_ID_NONE, "", "", "" },
        { "metal3://", METAL3_ID_NONE, "", "", "" },
        { "metal3:///", METAL3_ID_NONE, "", "", "" },
        { "metal3:////", METAL3_ID_NONE, "", "", "" },
        { "metal3:///host/machine", METAL3_ID_NONE, "", "", "" },
        { "metal3://default//machine", METAL3_ID_NONE, "", "", "" },
        { "metal3://default/", METAL3_ID_NONE, "", "", "" },
        { "metal3://default", METAL3_ID_NONE, "", "", "" },
        { "metal3://" UID_1 "0", METAL3_ID_NONE, "", "", "" },
        { "metal3://0f9b1a52-3c6e-4d7a-9f10-aabbccddee0g", METAL3_ID_NONE, "", "", "" },
        { "metal3://0f9b1a52-3c6e-4d7a-9f100aabbccddee01", METAL3_ID_NONE, "", "", "" },
        { "metal3:/default/the-host/the-machine", METAL3_ID_NONE, "", "", "" },
        { "metal3:x/default/the-host", METAL3_ID_NONE, "", "", "" },
        { "metal3:/x/default/the-host", METAL3_ID_NONE, "", "", "" },
        { "Metal3://default/the-host/the-machine", METAL3_ID_NONE, "", "", "" },
        { " metal3://default/the-host", METAL3_ID_NONE, "", "", "" },
        { "aws:///eu-central-1a/i-0123456789", METAL3_ID_NONE, "", "", "" },
        { "openstack:///" UID_1, METAL3_ID_NONE, "", "", "" },
        { "docker:////c1-md-0-x", METAL3_ID_NONE, "", "", "" },
        { UID_1, METAL3_ID_NONE, "", "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct metal3_id h = metal3_id_parse(str_from(cases[i].provider_id));
        CHECK_EQ(h.form, cases[i].form);
        CHECK_STR(h.namespace, cases[i].namespace);
        CHECK_STR(h.name, cases[i].name);
        CHECK_STR(h.uid, cases[i].uid);
    }
    check_case(-1);
    CHECK_EQ(metal3_id_parse(STR_NONE).form, METAL3_ID_NONE);
}

TEST(power_rank_says_who_is_asked_about_a_host)
{
    struct world w;
    world_begin(&w);
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_CONSUMER);
    w.host.consumer_name = STR("infra-2");
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_PROVIDER);
    w.host.name = STR("h2");
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_NONE);
    w.host.consumer_name = STR("infra-1");
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_NONE);
    w.host.owner = STR(UID_1);
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_OWNER);
    w.host.owner = STR(UID_2);
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_NONE);
    w.machine.provider_id = STR("metal3://" UID_2);
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_NONE);
    w.host.uid = STR(UID_2);
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_CONSUMER);
    w.host.uid = STR_NONE;
    w.machine.provider_id = STR("aws:///x/y");
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_NONE);
    world_end(&w);
}

/* ── the table ─────────────────────────────────────────────────────────────────────────────── */

enum change {
    NOTHING,
    NO_REQUEST,
    REQUESTED,
    ASIDE,
    ASIDE_ALONE,
    DELETING,
    DISABLED,
    NO_CLUSTER,
    CLUSTER_DELETING,
    NOT_PROVISIONED,
    CONSUMER_NONE,
    CONSUMER_NAME,
    CONSUMER_KIND,
    CONSUMER_NAMESPACE,
    CONSUMER_HERE,
    CONSUMER_ELSEWHERE,
    NO_INFRA,
    UNDRAINED,
    DRAINED,
    MACHINE_PAUSED,
    CLUSTER_PAUSED,
    HOST_PAUSED,
};

/* A reference without a namespace is to the host's: here to one of the same name elsewhere. */
static void move_host(struct world *w)
{
    w->host.namespace = STR("elsewhere");
    w->machine.provider_id = STR("metal3://elsewhere/h1/m1");
    w->host.consumer_namespace = STR_NONE;
}

static void change_machine(struct world *w, enum change change)
{
    switch ((int)change) {
    case NO_REQUEST:
        w->machine.request = MACHINE_REQUEST_NONE;
        break;
    case REQUESTED:
    case ASIDE:
        w->machine.request = MACHINE_REQUEST_REQUESTED;
        w->machine.approved_by_annotation = change == ASIDE;
        break;
    case ASIDE_ALONE:
        w->machine.request = MACHINE_REQUEST_NONE;
        w->machine.approved_by_annotation = true;
        break;
    case DELETING:
        w->machine.deleting = true;
        break;
    case DISABLED:
        w->machine.enabled = false;
        break;
    case MACHINE_PAUSED:
        w->machine.paused = true;
        break;
    case NO_INFRA:
        w->machine.infra_name = STR_NONE;
        w->machine.infra_kind = STR_NONE;
        break;
    default:
        break;
    }
}

static void change_cluster(struct world *w, enum change change)
{
    w->facts.cluster = change == NO_CLUSTER ? NULL : &w->cluster;
    w->cluster.deleting = change == CLUSTER_DELETING;
    w->cluster.paused = change == CLUSTER_PAUSED;
    w->options.require_drained = change == UNDRAINED || change == DRAINED;
    w->facts.drained = change == DRAINED;
}

static void change_host(struct world *w, enum change change)
{
    switch ((int)change) {
    case NOT_PROVISIONED:
        w->host.provisioned = false;
        break;
    case NO_INFRA:
    case CONSUMER_NONE:
        w->host.consumer_kind = STR_NONE;
        w->host.consumer_namespace = STR_NONE;
        w->host.consumer_name = STR_NONE;
        break;
    case CONSUMER_NAME:
        w->host.consumer_name = STR("infra-2");
        break;
    case CONSUMER_KIND:
        w->host.consumer_kind = STR("Other");
        break;
    case CONSUMER_NAMESPACE:
        w->host.consumer_namespace = STR("elsewhere");
        break;
    case CONSUMER_HERE:
        w->host.consumer_namespace = STR_NONE;
        break;
    case CONSUMER_ELSEWHERE:
        move_host(w);
        break;
    case HOST_PAUSED:
        w->host.paused = true;
        break;
    default:
        break;
    }
}

static void change_all(struct world *w, enum change change)
{
    change_machine(w, change);
    change_cluster(w, change);
    change_host(w, change);
}

static const struct {
    enum change change;
    const char *reason; /* unless any_machine */
    const char *any;    /* with it */
} table[] = {
    { NOTHING, "Off", "Off" },
    { NO_REQUEST, "NotApproved", "NotApproved" },
    { REQUESTED, "NotApproved", "NotApproved" },
    { ASIDE, "Off", "Off" },
    { ASIDE_ALONE, "NotApproved", "NotApproved" },
    { DELETING, "Deleting", "Deleting" },
    { DISABLED, "NotEnabled", "Off" },
    { NO_CLUSTER, "NoCluster", "Off" },
    { CLUSTER_DELETING, "NoCluster", "Off" },
    { NOT_PROVISIONED, "NotProvisioned", "NotProvisioned" },
    { CONSUMER_NONE, "OtherConsumer", "Off" },
    { CONSUMER_NAME, "OtherConsumer", "Off" },
    { CONSUMER_KIND, "OtherConsumer", "Off" },
    { CONSUMER_NAMESPACE, "OtherConsumer", "Off" },
    { CONSUMER_HERE, "Off", "Off" },
    { CONSUMER_ELSEWHERE, "OtherConsumer", "Off" },
    { NO_INFRA, "OtherConsumer", "Off" },
    { UNDRAINED, "NotDrained", "NotDrained" },
    { DRAINED, "Off", "Off" },
    { MACHINE_PAUSED, "Paused", "Paused" },
    { CLUSTER_PAUSED, "Paused", "Paused" },
    { HOST_PAUSED, "Paused", "Paused" },
};

TEST(power_is_switched_off_only_when_everything_speaks_for_it)
{
    for (size_t i = 0; i < 2 * ARRAY_LEN(table); i++) {
        struct world w;
        check_case((int64_t)i);
        world_begin(&w);
        change_all(&w, table[i / 2].change);
        w.options.any_machine = i % 2 == 1;
        const char *want = i % 2 == 1 ? table[i / 2].any : table[i / 2].reason;
        CHECK_STR(settle(&w), want);
        CHECK_EQ(is_off(&w), str_eq(str_from(want), STR("Off")));
        CHECK_STR(w.host.owner, is_off(&w) ? UID_1 : "");
        CHECK_STR(w.host.reboot_value, "");
        world_end(&w);
    }
    check_case(-1);
}

/* The same changes while the host is off: it is switched on, but for a pause, and but for what is
 * asked only before. */
TEST(power_is_switched_on_again_when_something_speaks_against_it)
{
    for (size_t i = 0; i < 2 * ARRAY_LEN(table); i++) {
        struct world w;
        check_case((int64_t)i);
        world_begin(&w);
        w.options.any_machine = i % 2 == 1;
        CHECK_STR(settle(&w), "Off");
        w.host.powered_on = false;
        change_all(&w, table[i / 2].change);
        struct str want = str_from(i % 2 == 1 ? table[i / 2].any : table[i / 2].reason);
        bool drain = str_eq(want, STR("NotDrained"));
        CHECK_STR(settle(&w), drain ? STR("Off") : want);
        bool stays = drain || str_eq(want, STR("Off")) || str_eq(want, STR("Paused"));
        CHECK_EQ(is_off(&w), stays);
        CHECK_STR(w.host.owner, stays ? UID_1 : "");
        CHECK_EQ(w.host.owner.p != NULL, stays);
        world_end(&w);
    }
    check_case(-1);
}

TEST(power_says_why_in_a_sentence)
{
    struct world w;
    world_begin(&w);
    (void)decide(&w);
    CHECK_STR(w.verdict.message, "The maintenance is approved; the host is being switched off.");
    w.host.powered_on = false;
    (void)decide(&w);
    CHECK_STR(w.verdict.message, "The maintenance is approved; the host is switched off.");
    w.host.consumer_name = STR("infra-2");
    (void)decide(&w);
    CHECK_STR(w.verdict.message, "The host's consumerRef names Metal3Machine 'infra-2', not this "
                                 "Machine's Metal3Machine 'infra-1'.");
    w.host.consumer_name = STR_NONE;
    (void)decide(&w);
    CHECK_STR(w.verdict.message, "The host has no consumerRef; it stays on until that names "
                                 "Metal3Machine 'infra-1'.");
    w.cluster.deleting = true;
    (void)decide(&w);
    CHECK_STR(w.verdict.message, "The Machine's Cluster is being deleted.");
    w.facts.cluster = NULL;
    (void)decide(&w);
    CHECK_STR(w.verdict.message, "The Machine's Cluster is not there.");
    w.machine.enabled = false;
    (void)decide(&w);
    CHECK_STR(w.verdict.message,
              "The Machine has no label "
              "runtime-extension-maintenance-controller.cloud.sap/enabled=true.");
    world_end(&w);
}

/* ── stories ───────────────────────────────────────────────────────────────────────────────── */

TEST(power_follows_the_label_through_a_maintenance)
{
    struct world w;
    world_begin(&w);
    w.machine.request = MACHINE_REQUEST_REQUESTED;
    CHECK_STR(settle(&w), "NotApproved");
    CHECK(!is_off(&w));
    CHECK(w.machine.power.p == NULL);

    w.machine.request = MACHINE_REQUEST_APPROVED;
    CHECK_STR(settle(&w), "Off");
    CHECK(is_off(&w));
    CHECK_STR(w.machine.power, "on"); /* still */

    w.host.powered_on = false;
    CHECK_STR(settle(&w), "Off");
    CHECK_STR(w.machine.power, "off");

    w.machine.request = MACHINE_REQUEST_NONE;
    CHECK_STR(settle(&w), "NotApproved");
    CHECK(!is_off(&w));
    CHECK(w.host.owner.p == NULL);
    CHECK(w.machine.power.p == NULL);
    world_end(&w);
}

TEST(power_puts_the_annotation_back_when_somebody_takes_it_away)
{
    struct world w;
    world_begin(&w);
    CHECK_STR(settle(&w), "Off");
    w.host.reboot = false;
    w.host.reboot_value = STR_NONE;
    CHECK_STR(decide(&w), "Off");
    CHECK_EQ(w.verdict.host.n, 1);
    CHECK_STR(settle(&w), "Off");
    CHECK(is_off(&w));
    world_end(&w);
}

TEST(power_corrects_the_mode_while_the_host_is_off)
{
    static const struct {
        const char *mode;
        const char *value;
    } cases[] = {
        { "hard", HARD }, { "soft", "" }, { "hard", HARD }, { NULL, "" }, { "Hard", "" },
    };
    struct world w;
    world_begin(&w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        w.machine.power_mode = str_from(cases[i].mode);
        CHECK_STR(settle(&w), "Off");
        CHECK_STR(w.host.reboot_value, cases[i].value);
    }
    check_case(-1);
    world_end(&w);
}

TEST(power_comes_back_when_the_machine_is_deleted_or_gone)
{
    struct world w;
    world_begin(&w);
    CHECK_STR(settle(&w), "Off");
    w.machine.deleting = true;
    CHECK_STR(settle(&w), "Deleting");
    CHECK(!is_off(&w));

    w.machine.deleting = false;
    CHECK_STR(settle(&w), "Off");
    CHECK(is_off(&w));
    w.facts.machine = NULL;
    w.facts.cluster = NULL;
    CHECK_STR(decide(&w), "OwnerGone");
    CHECK_EQ(w.verdict.machine.n, 0);
    CHECK_STR(settle(&w), "OwnerGone");
    CHECK(!is_off(&w));
    CHECK(w.host.owner.p == NULL);
    world_end(&w);
}

TEST(power_leaves_a_paused_host_as_it_is_even_without_its_machine)
{
    struct world w;
    world_begin(&w);
    CHECK_STR(settle(&w), "Off");
    w.host.paused = true;
    w.facts.machine = NULL;
    CHECK_STR(settle(&w), "Paused");
    CHECK(is_off(&w));
    world_end(&w);
}

TEST(power_takes_over_an_annotation_that_names_no_owner)
{
    static const struct str owners[] = { { .p = NULL, .n = 0 }, STR_INIT("") };
    for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
        struct world w;
        check_case((int64_t)i);
        world_begin(&w);
        w.host.reboot = true;
        w.host.reboot_value = STR("");
        w.host.owner = owners[i];
        CHECK_STR(settle(&w), "Off");
        CHECK_STR(w.host.owner, UID_1);

        w.host.owner = owners[i];
        w.machine.request = MACHINE_REQUEST_NONE;
        CHECK_STR(settle(&w), "NotApproved");
        CHECK(!is_off(&w));
        CHECK(w.host.owner.p == NULL);
        world_end(&w);
    }
    check_case(-1);
}

/* Whatever a Machine wants, the annotation of another stays; a mere note of one does not. */
TEST(power_does_not_touch_what_another_machine_has_switched_off)
{
    for (size_t i = 0; i < 2 * ARRAY_LEN(table); i++) {
        struct world w;
        check_case((int64_t)i);
        world_begin(&w);
        change_all(&w, table[i / 2].change);
        w.options.any_machine = i % 2 == 1;
        w.host.reboot = true;
        w.host.reboot_value = STR(HARD);
        w.host.owner = STR(UID_2);
        bool paused = str_eq(str_from(table[i / 2].any), STR("Paused"));
        CHECK_STR(settle(&w), paused ? "Paused" : "OtherOwner");
        CHECK_STR(w.host.reboot_value, HARD);
        CHECK_STR(w.host.owner, UID_2);
        world_end(&w);
    }
    check_case(-1);
    struct world w;
    world_begin(&w);
    w.host.owner = STR(UID_2);
    CHECK_STR(settle(&w), "Off");
    CHECK_STR(w.host.owner, UID_1);
    world_end(&w);
}

/* Two Machines name one host, and what each wants changes. Whoever the consumerRef names gets it
 * as soon as the other has let go; in no order of asking do they undo each other for ever. */
TEST(power_goes_to_the_machine_that_the_consumer_names)
{
    struct world w;
    world_begin(&w);
    struct machine one = w.machine;
    struct machine two = w.machine;
    two.name = STR("m2");
    two.uid = STR(UID_2);
    two.infra_name = STR("infra-2");

    CHECK_STR(settle(&w), "Off");
    CHECK_STR(w.host.owner, UID_1);
    w.host.consumer_name = STR("infra-2");
    w.machine = two;
    CHECK_EQ(power_rank(&two, &w.host), POWER_RANK_CONSUMER);
    CHECK_EQ(power_rank(&one, &w.host), POWER_RANK_OWNER); /* so it is asked first, */
    CHECK_STR(settle(&w), "OtherOwner");
    w.machine = one;
    CHECK_STR(settle(&w), "OtherConsumer"); /* and lets go. */
    CHECK(!is_off(&w));
    w.machine = two;
    CHECK_STR(settle(&w), "Off");
    CHECK_STR(w.host.owner, UID_2);
    w.machine = one;
    CHECK_STR(settle(&w), "OtherOwner");
    CHECK_STR(w.host.owner, UID_2);
    world_end(&w);
}

/* Anybody who may write to hosts can name an owner. */
TEST(power_lets_a_host_go_that_its_owner_does_not_name)
{
    struct world w;
    world_begin(&w);
    w.options.any_machine = true;
    CHECK_STR(settle(&w), "Off");
    w.machine.provider_id = STR("metal3://metal/h2/m1");
    CHECK_EQ(power_rank(&w.machine, &w.host), POWER_RANK_OWNER);
    CHECK_STR(settle(&w), "OtherHost");
    CHECK_STR(w.verdict.message, "The Machine's provider id names another host.");
    CHECK(!is_off(&w));
    CHECK(w.host.owner.p == NULL);
    world_end(&w);
}

TEST(power_takes_its_report_back_when_the_host_is_not_there)
{
    struct world w;
    world_begin(&w);
    CHECK_STR(settle(&w), "Off");
    CHECK_STR(w.machine.power, "on");
    w.facts.host = NULL;
    CHECK_STR(settle(&w), "NoHost");
    CHECK(w.machine.power.p == NULL);
    w.machine.request = MACHINE_REQUEST_NONE;
    CHECK_STR(settle(&w), "NotApproved");
    w.machine.power = STR("on");
    w.machine.paused = true;
    CHECK_STR(settle(&w), "Paused");
    CHECK_STR(w.machine.power, "on");
    world_end(&w);
}

TEST(power_is_reported_while_the_host_waits_to_be_switched_off)
{
    struct world w;
    world_begin(&w);
    w.options.require_drained = true;
    CHECK_STR(settle(&w), "NotDrained");
    CHECK_STR(w.machine.power, "on");
    w.host.provisioned = false;
    CHECK_STR(settle(&w), "NotProvisioned");
    CHECK_STR(w.machine.power, "on");
    w.machine.enabled = false;
    CHECK_STR(settle(&w), "NotEnabled");
    CHECK(w.machine.power.p == NULL);
    world_end(&w);
}

/* ── property ──────────────────────────────────────────────────────────────────────────────── */

static bool coin(struct rng *rng)
{
    return rng_chance(rng, 500);
}

static struct str pick(struct rng *rng, const struct str *texts, uint32_t n)
{
    return texts[rng_below(rng, n)];
}

static void stir(struct world *w, struct rng *rng)
{
    static const struct str names[] = { STR_INIT("infra-1"), STR_INIT("infra-2"), STR_INIT("") };
    static const struct str namespaces[] = { STR_INIT("metal"), STR_INIT("other"), { NULL, 0 } };
    static const struct str modes[] = { STR_INIT("hard"), STR_INIT("soft"), { NULL, 0 } };
    static const struct str powers[] = { STR_INIT("on"), STR_INIT("off"), { NULL, 0 } };
    static const struct str owners[] = {
        STR_INIT(UID_1), STR_INIT(UID_2), STR_INIT(""), { NULL, 0 }
    };
    static const struct str values[] = { STR_INIT(""), STR_INIT(HARD), STR_INIT("{}") };
    struct machine *m = &w->machine;
    struct metal3_host *h = &w->host;
    m->request = (enum machine_request)rng_below(rng, 3);
    m->approved_by_annotation = coin(rng);
    m->deleting = rng_chance(rng, 100);
    m->enabled = rng_chance(rng, 800);
    m->paused = rng_chance(rng, 100);
    m->power = pick(rng, powers, 3);
    m->power_mode = pick(rng, modes, 3);
    m->infra_name = pick(rng, names, 3);
    w->cluster.paused = rng_chance(rng, 100);
    w->cluster.deleting = rng_chance(rng, 100);
    h->provisioned = rng_chance(rng, 800);
    h->powered_on = coin(rng);
    h->paused = rng_chance(rng, 100);
    h->consumer_namespace = pick(rng, namespaces, 3);
    h->consumer_name = pick(rng, names, 3);
    h->owner = pick(rng, owners, 4);
    h->reboot = coin(rng);
    h->reboot_value = h->reboot ? pick(rng, values, 3) : STR_NONE;
    w->options.any_machine = coin(rng);
    w->options.require_drained = coin(rng);
    w->facts.drained = coin(rng);
    w->facts.machine = rng_chance(rng, 900) ? m : NULL;
    w->facts.cluster = rng_chance(rng, 900) ? &w->cluster : NULL;
}

/* Written down a second time, in another order, from B31. */
static bool may_be_off(const struct world *w, bool was_off)
{
    const struct machine *m = w->facts.machine;
    const struct metal3_host *h = &w->host;
    bool approved =
        m != NULL && (m->request == MACHINE_REQUEST_APPROVED ||
                      (m->request == MACHINE_REQUEST_REQUESTED && m->approved_by_annotation));
    if (!approved || m->deleting || !h->provisioned ||
        (w->options.require_drained && !w->facts.drained && !was_off)) {
        return false;
    }
    bool consumer = m->infra_name.n > 0 && str_eq(h->consumer_name, m->infra_name) &&
                    (h->consumer_namespace.n == 0 || str_eq(h->consumer_namespace, m->namespace));
    return w->options.any_machine ||
           (m->enabled && w->facts.cluster != NULL && !w->cluster.deleting && consumer);
}

/* A verdict is complete, and leaves the host off only if all speaks for it, unless a pause forbids
 * to write or another Machine has to say. */
PROPERTY(power_verdicts_are_complete_and_never_leave_a_host_off_without_reason)
{
    struct world w;
    world_begin(&w);
    for (int step = 0; step < 50; step++) {
        stir(&w, rng);
        struct metal3_host before = w.host;
        bool paused = w.host.paused || (w.facts.machine != NULL && w.machine.paused) ||
                      (w.facts.cluster != NULL && w.cluster.paused);
        bool others =
            w.facts.machine != NULL && before.reboot && (str_eq(before.owner, STR(UID_2)));
        const char *reason = decide(&w);
        bool writes = w.verdict.host.n + w.verdict.machine.n > 0;
        (void)settle(&w);
        if (paused) {
            CHECK_STR(reason, "Paused");
            CHECK(!writes);
        } else if (others) {
            CHECK_STR(reason, "OtherOwner");
            CHECK_STR(w.host.owner, before.owner);
            CHECK_STR(w.host.reboot_value, before.reboot_value);
        } else {
            CHECK_EQ(is_off(&w), may_be_off(&w, before.reboot));
            CHECK_EQ(is_off(&w), str_eq(str_from(reason), STR("Off")));
            CHECK_STR(w.host.owner, is_off(&w) ? UID_1 : "");
            CHECK_EQ(w.host.owner.p != NULL, is_off(&w));
        }
    }
    world_end(&w);
}
