#include "ledger/limit.h"

#include "tests/check.h"

static const struct limit *read(struct arena *a, const char *name, const char *spec)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct str text =
        arena_printf(a, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"generation\":3}%s%s}", name,
                     spec[0] == '\0' ? "" : ",\"spec\":", spec);
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    struct limit *l = ARENA_NEW(a, struct limit);
    limit_parse(object, a, l);
    return l;
}

TEST(limit_gives_the_worked_values_of_the_original)
{
    static const struct {
        uint32_t nodes;
        uint32_t percent;
        uint32_t count;
    } cases[] = {
        { 0, 50, 0 },  { 1, 50, 1 },  { 2, 50, 1 },  { 4, 50, 2 },     { 10, 50, 5 }, { 1, 10, 1 },
        { 2, 10, 1 },  { 19, 5, 1 },  { 39, 5, 1 },  { 40, 5, 2 },     { 100, 0, 1 }, { 0, 0, 0 },
        { 3, 100, 3 }, { 199, 1, 1 }, { 200, 1, 2 }, { 5000, 5, 250 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct limit *l =
            read(&a, "node", arena_printf(&a, "{\"limit\":%u}", cases[i].percent).p);
        CHECK_STR(l->reason, "");
        CHECK_EQ(l->type, TARGET_NODE);
        struct limit_counts t = { .population = cases[i].nodes };
        CHECK_EQ(limit_nominal(l, cases[i].nodes), cases[i].count);
        CHECK_EQ(limit_effective(l, &t), cases[i].count);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(limit_counts_what_its_policies_hit)
{
    struct arena a = { 0 };
    const struct limit *l = read(&a, "node", "{\"limit\":50,\"policies\":[\"Unschedulable\"]}");
    /* Two nodes, one of them cordoned. */
    CHECK_STR(limit_match_policy(l, TRAIT_UNSCHEDULABLE)->name, "Unschedulable");
    CHECK_EQ(limit_effective(l, &(struct limit_counts){ .population = 2, .unavailable = 1 }), 0);
    l = read(&a, "node", "{\"limit\":50,\"policies\":[\"NotReady\"]}");
    CHECK(limit_match_policy(l, TRAIT_UNSCHEDULABLE) == NULL);
    CHECK_EQ(limit_effective(l, &(struct limit_counts){ .population = 2 }), 1);
    arena_done(&a);
}

TEST(limit_names_the_first_policy_that_hits)
{
    static const struct {
        const char *policies;
        uint32_t traits;
        const char *hit; /* NULL: none */
        const char *unknown;
    } cases[] = {
        { "[]", TRAIT_UNSCHEDULABLE, NULL, "" },
        { "[\"None\"]", TRAIT_UNSCHEDULABLE | TRAIT_NOT_READY, NULL, "" },
        { "[\"Unschedulable\"]", TRAIT_UNSCHEDULABLE, "Unschedulable", "" },
        { "[\"NotReady\"]", TRAIT_NOT_READY, "NotReady", "" },
        { "[\"NotReady\"]", TRAIT_UNKNOWN, "NotReady", "" },
        { "[\"NotReady\"]", 0, NULL, "" },
        { "[\"NotReady\",\"Unschedulable\"]", TRAIT_NOT_READY | TRAIT_UNSCHEDULABLE, "NotReady",
          "" },
        { "[\"Unschedulable\",\"NotReady\"]", TRAIT_NOT_READY | TRAIT_UNSCHEDULABLE,
          "Unschedulable", "" },
        { "[\"Strange\",\"NotReady\",\"notready\"]", TRAIT_NOT_READY, "NotReady",
          "Strange, notready" },
        { "[\"RespectNotReadyNodes\"]", TRAIT_NOT_READY, "RespectNotReadyNodes", "" },
        { "[\"RespectUnschedulableNodes\"]", TRAIT_UNSCHEDULABLE, "RespectUnschedulableNodes", "" },
        { "[\"Deleting\"]", TRAIT_DELETING, "Deleting", "" },
        { "[\"MaintenanceRunning\"]", TRAIT_IN_MAINTENANCE, "MaintenanceRunning", "" },
        { "[\"Unavailable\"]", TRAIT_UNAVAILABLE, NULL, "Unavailable" }, /* is for workloads */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct limit *l =
            read(&a, "Node", arena_printf(&a, "{\"policies\":%s}", cases[i].policies).p);
        const struct limit_policy *hit = limit_match_policy(l, cases[i].traits);
        CHECK((hit == NULL) == (cases[i].hit == NULL));
        if (hit != NULL) {
            CHECK_STR(hit->name, cases[i].hit);
        }
        CHECK_STR(l->unknown, cases[i].unknown);
        CHECK_STR(l->reason, "");
        arena_done(&a);
    }
    check_case(-1);
}

TEST(limit_without_a_spec_allows_one_node)
{
    struct arena a = { 0 };
    const struct limit *l = read(&a, "node", "");
    CHECK_EQ(limit_nominal(l, 100), 1);
    CHECK_STR(l->status, "{}");
    CHECK_EQ(l->ledger_init_time, USEC_NEVER);
    CHECK_EQ(l->generation, 3);
    arena_done(&a);
}

static bool room(const struct limit *l, uint32_t population, uint32_t granted, uint32_t unavailable,
                 bool target_unavailable)
{
    struct limit_counts t = { population, granted, unavailable };
    return limit_allows_one_more(l, &t, (struct limit_target){ .unavailable = target_unavailable });
}

TEST(limit_repairs_what_is_broken_within_its_nominal)
{
    struct arena a = { 0 };
    /* One broken node of ten, nominal 1: it may be repaired, a healthy one must wait. */
    const struct limit *l = read(&a, "node", "{\"limit\":10,\"policies\":[\"NotReady\"]}");
    CHECK(room(l, 10, 0, 1, true));
    CHECK(!room(l, 10, 0, 1, false));
    CHECK(!room(l, 10, 1, 0, false)); /* while it is repaired */
    CHECK(!room(l, 10, 1, 1, true));  /* and not two at once */
    CHECK(room(l, 10, 0, 0, false));
    l = read(&a, "node", "{\"limit\":10,\"policies\":[\"NotReady\"],\"repairUnavailable\":false}");
    CHECK(room(l, 10, 0, 1, true)); /* one in all is one in all */
    CHECK(!room(l, 10, 0, 2, true));
    arena_done(&a);
}

/* Somebody's entry is there for the same target already: that takes no second place, but nothing
 * begins above a limit that was lowered. */
TEST(limit_begins_nothing_new_above_itself)
{
    struct arena a = { 0 };
    const struct limit *l = read(&a, "node", "{\"limit\":20,\"minimum\":0}");
    const struct limit_target exists = { .granted = true };
    CHECK(limit_allows_one_more(l, &(struct limit_counts){ 10, 2, 0 }, exists));
    CHECK(!limit_allows_one_more(l, &(struct limit_counts){ 10, 3, 0 }, exists));
    CHECK(!limit_allows_one_more(l, &(struct limit_counts){ 10, 2, 1 }, exists));
    l = read(&a, "node", "{\"limit\":0,\"minimum\":0}");
    CHECK(!limit_allows_one_more(l, &(struct limit_counts){ 10, 1, 0 }, exists));
    arena_done(&a);
}

TEST(limit_zero_is_one_unless_the_minimum_is_zero)
{
    struct arena a = { 0 };
    const struct limit *l = read(&a, "node", "{\"limit\":0}");
    CHECK(room(l, 10, 0, 0, false) && !room(l, 10, 1, 0, false));
    l = read(&a, "node", "{\"limit\":0,\"minimum\":0}");
    CHECK(!room(l, 10, 0, 0, false) && !room(l, 10, 0, 0, true));
    l = read(&a, "node", "{\"limit\":50,\"maxCount\":2}");
    CHECK_EQ(limit_nominal(l, 10), 2);
    l = read(&a, "node", "{\"limit\":5,\"minimum\":3}");
    CHECK_EQ(limit_nominal(l, 10), 3);
    arena_done(&a);
}

/* Half of four, one of them unavailable: one healthy one, the broken one besides, never a second
 * healthy one. */
TEST(limit_of_workloads_grants_one_healthy_and_the_broken_one)
{
    struct arena a = { 0 };
    const struct limit *l = read(&a, "deployment", "{\"limit\":50,\"policies\":[\"Unavailable\"]}");
    CHECK_EQ(l->type, TARGET_DEPLOYMENT);
    CHECK_STR(limit_match_policy(l, TRAIT_UNAVAILABLE)->name, "Unavailable");
    CHECK(room(l, 4, 0, 1, false));
    CHECK(!room(l, 4, 1, 1, false));
    CHECK(room(l, 4, 1, 1, true));
    CHECK(!room(l, 4, 2, 0, false));
    arena_done(&a);
}

TEST(limit_is_over_when_its_holders_or_the_world_say_so)
{
    struct arena a = { 0 };
    const struct limit *l = read(&a, "node", "{\"limit\":20}");
    CHECK(!limit_is_overcommitted(l, &(struct limit_counts){ 10, 2, 0 }));
    CHECK(limit_is_overcommitted(l, &(struct limit_counts){ 10, 3, 0 }));
    CHECK(limit_is_overcommitted(l, &(struct limit_counts){ 10, 2, 1 }));
    CHECK(!limit_is_overcommitted(l, &(struct limit_counts){ 10, 0, 5 })); /* nobody granted that */
    arena_done(&a);
}

TEST(limit_gap_ends_after_the_later_of_grant_and_release)
{
    struct arena a = { 0 };
    struct limit l = *read(&a, "node", "{\"timeouts\":{\"betweenOperationsSeconds\":60}}");
    CHECK_EQ(limit_gap_end(&l), 0);
    l.last_grant = SECONDS(100);
    CHECK_EQ(limit_gap_end(&l), SECONDS(161));
    l.last_release = SECONDS(130);
    CHECK_EQ(limit_gap_end(&l), SECONDS(191));
    l.last_grant = SECONDS(150);
    CHECK_EQ(limit_gap_end(&l), SECONDS(211));
    l.last_grant = USEC_NEVER;
    CHECK_EQ(limit_gap_end(&l), SECONDS(191));
    l.gap = 0;
    CHECK_EQ(limit_gap_end(&l), 0);
    arena_done(&a);
}

TEST(limit_options_merge_to_the_strictest)
{
    struct arena a = { 0 };
    struct limit_options o;
    const struct limit *first =
        read(&a, "a",
             "{\"type\":\"node\",\"timeouts\":{\"approvedSeconds\":600,"
             "\"onApprovedTimeout\":\"Close\",\"inProgressSeconds\":0,\"maxRejections\":5},"
             "\"safetyChecks\":[\"PodDisruptionBudgets\"]}");
    const struct limit *second =
        read(&a, "b",
             "{\"type\":\"node\",\"timeouts\":{\"approvedSeconds\":900,\"inProgressSeconds\":60,"
             "\"onInProgressTimeout\":\"Hold\",\"rejectionBackoffSeconds\":10},"
             "\"drain\":{\"podGracePeriodSeconds\":7,\"onTimeout\":\"Force\",\"cordon\":false,"
             "\"podSelector\":{\"matchLabels\":{\"app\":\"web\"}}},"
             "\"safetyChecks\":[\"ControlPlaneQuorum\",\"WorkloadLimits\"]}");
    const struct limit *third =
        read(&a, "c",
             "{\"type\":\"node\",\"drain\":{\"enabled\":false},\"infraDrain\":"
             "{\"ignoreDrivers\":[\"csi.a\"],\"onTimeout\":\"Proceed\",\"postGraceSeconds\":3}}");
    const struct limit *all[] = { first, second, third };
    limit_merge_options(all, 3, &o);
    CHECK_EQ(o.approved_s, 600);
    CHECK_EQ(o.on_approved, ON_APPROVED_CLOSE);
    CHECK_EQ(o.in_progress_s, 60);
    CHECK_EQ(o.on_in_progress, ON_PROGRESS_HOLD);
    CHECK_EQ(o.max_rejections, 5);
    CHECK_EQ(o.rejection_backoff_s, 300);
    CHECK_EQ(o.safety, SAFETY_BUDGETS | SAFETY_QUORUM | SAFETY_WORKLOADS);
    CHECK_EQ(o.ledger_init_time, USEC_NEVER);
    CHECK(o.drain.enabled && !o.drain.cordon && o.drain.uncordon_after);
    CHECK_EQ(o.drain.grace_s, 7);
    CHECK_EQ(o.drain.timeout_s, 3600);
    CHECK_EQ(o.drain.retry_s, 5);
    CHECK_EQ(o.drain.on_timeout, ON_TIMEOUT_FORCE);
    CHECK_STR(o.drain.pod_selector, "app=web");
    CHECK(o.detach.enabled);
    CHECK_EQ(o.detach.timeout_s, 1800);
    CHECK_EQ(o.detach.on_timeout, ON_TIMEOUT_PROCEED);
    CHECK_EQ(o.detach.post_grace_s, 3);
    CHECK_EQ(o.detach.ignore_n, 1);
    CHECK_STR(o.detach.ignore_drivers[0], "csi.a");
    limit_merge_options(NULL, 0, &o);
    CHECK(!o.drain.enabled && !o.detach.enabled);
    CHECK_EQ(o.approved_s + o.in_progress_s, 0);
    CHECK_EQ(o.rejection_backoff_s, 300);
    arena_done(&a);
}

/* However grants come and go, G never passes nominal, and G with U only by repairs. */
PROPERTY(limit_never_grants_beyond_its_nominal)
{
    struct arena a = { 0 };
    const struct limit *l = read(
        &a, "node",
        arena_printf(&a, "{\"limit\":%u,\"minimum\":%u,\"repairUnavailable\":%s}",
                     rng_below(rng, 101), rng_below(rng, 4), rng_below(rng, 2) ? "true" : "false")
            .p);
    bool granted[30] = { false };
    bool broken[30] = { false };
    uint32_t n = 1 + rng_below(rng, 30);
    for (uint32_t step = 0; step < 200; step++) {
        uint32_t i = rng_below(rng, n);
        uint32_t g = 0;
        uint32_t u = 0;
        for (uint32_t k = 0; k < n; k++) {
            g += granted[k] ? 1 : 0;
            u += broken[k] && !granted[k] ? 1 : 0;
        }
        struct limit_counts t = { n, g, u };
        switch (rng_below(rng, 3)) {
        case 0:
            broken[i] = !broken[i];
            break;
        case 1:
            granted[i] = false;
            break;
        default:
            if (!granted[i] &&
                limit_allows_one_more(l, &t, (struct limit_target){ .unavailable = broken[i] })) {
                granted[i] = true;
                CHECK(g + 1 <= limit_nominal(l, n));
                CHECK((broken[i] && l->repair_unavailable) ||
                      g + u + (broken[i] ? 0 : 1) <= limit_nominal(l, n));
            }
        }
    }
    arena_done(&a);
}
