/* Which pods a drain takes, leaves, waits for, or is barred by. */
#include "drain/pod_policy.h"
#include "tests/unit/drain/drain_fixture.h"

#define EVERYTHING                                                                                 \
    (DRAIN_EVICT_FINISHED | DRAIN_USE_POD_LABEL | DRAIN_FORBID_UNMANAGED | DRAIN_FORBID_EMPTYDIR | \
     DRAIN_FORBID_DAEMONSET)

#define OWNED(kind)                                                                                \
    "\"ownerReferences\":[{\"kind\":\"" kind "\",\"name\":\"o\",\"uid\":\"1\",\"controller\":"     \
    "true}]"
#define WISH(text) "\"labels\":{\"cluster.x-k8s.io/drain\":\"" text "\"}"
#define MIRROR "\"annotations\":{\"kubernetes.io/config.mirror\":\"x\"}"
#define SCRATCH "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]"

static const struct pod_fate_case {
    const char *meta;
    const char *spec;
    const char *phase;
    uint32_t rules;
    const char *selector; /* "" = none */
    bool forcing;
    enum pod_fate fate;
    enum drain_wait wait;
} pod_fate_cases[] = {
    /* Without rules: as a profile's drain. */
    { OWNED("ReplicaSet"), "", "Running", 0, "", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { "", "", "Running", 0, "", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { "", SCRATCH, "Running", 0, "", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { OWNED("DaemonSet"), "", "Running", 0, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { MIRROR, "", "Running", 0, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { "", "", "Succeeded", 0, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { "", "", "Failed", 0, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { WISH("skip"), "", "Running", 0, "", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { WISH("wait-completed"), "", "Running", 0, "", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    /* With all of them. */
    { OWNED("ReplicaSet"), "", "Running", EVERYTHING, "", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { "", "", "Running", EVERYTHING, "", false, POD_FATE_FORBIDDEN, DRAIN_WAIT_UNMANAGED },
    { OWNED("ReplicaSet"), SCRATCH, "Running", EVERYTHING, "", false, POD_FATE_FORBIDDEN,
      DRAIN_WAIT_EMPTYDIR },
    { OWNED("DaemonSet"), "", "Running", EVERYTHING, "", false, POD_FATE_FORBIDDEN,
      DRAIN_WAIT_DAEMONSET },
    { MIRROR, "", "Running", EVERYTHING, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { "", SCRATCH, "Succeeded", EVERYTHING, "", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { OWNED("DaemonSet"), "", "Failed", EVERYTHING, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { WISH("skip"), "", "Running", EVERYTHING, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { WISH("SKIP"), "", "Running", EVERYTHING, "", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { WISH("other"), "", "Running", DRAIN_USE_POD_LABEL, "", false, POD_FATE_GOES,
      DRAIN_WAIT_NONE },
    { WISH("wait-completed"), "", "Running", EVERYTHING, "", false, POD_FATE_WAITED,
      DRAIN_WAIT_COMPLETION },
    { WISH("wait-completed"), "", "Succeeded", EVERYTHING, "", false, POD_FATE_STAYS,
      DRAIN_WAIT_NONE },
    /* Who is not meant is left alone, whatever it is. */
    { OWNED("DaemonSet"), "", "Running", EVERYTHING, "a=b", false, POD_FATE_STAYS,
      DRAIN_WAIT_NONE },
    { "", "", "Running", EVERYTHING, "a=b", false, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { "\"labels\":{\"a\":\"b\"}", "", "Running", 0, "a=b", false, POD_FATE_GOES, DRAIN_WAIT_NONE },
    /* By force nothing bars, and a DaemonSet would only make its pod again. */
    { "", SCRATCH, "Running", EVERYTHING, "", true, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { WISH("wait-completed"), "", "Running", EVERYTHING, "", true, POD_FATE_GOES, DRAIN_WAIT_NONE },
    { WISH("skip"), "", "Running", EVERYTHING, "", true, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    { OWNED("DaemonSet"), "", "Running", EVERYTHING, "", true, POD_FATE_STAYS, DRAIN_WAIT_NONE },
    /* Cluster API removes the first hyphen, wherever it is. */
    { WISH("WaitCompleted"), "", "Running", DRAIN_USE_POD_LABEL, "", false, POD_FATE_WAITED,
      DRAIN_WAIT_COMPLETION },
    { WISH("wa-itcompleted"), "", "Running", DRAIN_USE_POD_LABEL, "", false, POD_FATE_WAITED,
      DRAIN_WAIT_COMPLETION },
    { WISH("wait-comp-leted"), "", "Running", DRAIN_USE_POD_LABEL, "", false, POD_FATE_GOES,
      DRAIN_WAIT_NONE },
    { WISH("sk-ip"), "", "Running", DRAIN_USE_POD_LABEL, "", false, POD_FATE_GOES,
      DRAIN_WAIT_NONE },
};

/* The first of: app=a is skipped, app=b waited for, app=c of order 3, app=d by its namespace. */
#define BOOK                                                                                       \
    "[{\"name\":\"1\",\"behavior\":\"Skip\",\"pods\":[{\"selector\":\"app=a\"}]},"                 \
    "{\"name\":\"2\",\"behavior\":\"WaitCompleted\",\"pods\":[{\"selector\":\"app=b\"}]},"         \
    "{\"name\":\"3\",\"behavior\":\"Drain\",\"order\":3,\"pods\":[{\"selector\":\"app in (b,c)"    \
    "\"}]},"                                                                                       \
    "{\"name\":\"4\",\"behavior\":\"Skip\",\"pods\":[{\"selector\":\"app=d\","                     \
    "\"namespaceSelector\""                                                                        \
    ":\"team=x\"}]}]"
#define APP(name) "\"labels\":{\"app\":\"" name "\"}"
#define APP_WISH(name, drain_label)                                                                \
    "\"labels\":{\"app\":\"" name "\",\"cluster.x-k8s.io/drain\":\"" drain_label "\"}"
#define BROKEN "{\"error\":\"it is broken\"}"

static const struct rules_case {
    const char *meta;
    const char *phase;
    uint32_t rules;
    const char *drain_rules;
    bool forcing;
    enum pod_fate fate;
    enum drain_wait wait;
    int32_t order;
} rules_cases[] = {
    { APP("a"), "Running", 0, BOOK, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { APP("a"), "Succeeded", 0, BOOK, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { APP("b"), "Running", 0, BOOK, false, POD_FATE_WAITED, DRAIN_WAIT_COMPLETION, 0 },
    { APP("b"), "Failed", 0, BOOK, false, POD_FATE_WAITED, DRAIN_WAIT_COMPLETION, 0 },
    { APP("c"), "Running", 0, BOOK, false, POD_FATE_GOES, DRAIN_WAIT_NONE, 3 },
    { APP("c"), "Succeeded", 0, BOOK, false, POD_FATE_GOES, DRAIN_WAIT_NONE, 3 },
    { APP("d"), "Running", 0, BOOK, false, POD_FATE_FORBIDDEN, DRAIN_WAIT_RULES, 0 },
    { APP("e"), "Running", 0, BOOK, false, POD_FATE_GOES, DRAIN_WAIT_NONE, 0 },
    /* The pod's own wish comes first, whether others' drains would heed it or not. */
    { APP_WISH("c", "skip"), "Running", 0, BOOK, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { APP_WISH("a", "wait-completed"), "Running", 0, BOOK, false, POD_FATE_WAITED,
      DRAIN_WAIT_COMPLETION, 0 },
    { APP_WISH("c", "WAITCOMPLETED"), "Succeeded", 0, BOOK, false, POD_FATE_WAITED,
      DRAIN_WAIT_COMPLETION, 0 },
    { APP_WISH("d", "skip"), "Running", 0, BOOK, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { APP_WISH("c", "other"), "Running", 0, BOOK, false, POD_FATE_GOES, DRAIN_WAIT_NONE, 3 },
    /* What is the node's own stays, but a finished pod of a DaemonSet is nobody's. */
    { MIRROR "," APP("c"), "Running", 0, BOOK, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 3 },
    { OWNED("DaemonSet") "," APP("c"), "Running", 0, BOOK, false, POD_FATE_STAYS, DRAIN_WAIT_NONE,
      3 },
    { OWNED("DaemonSet") "," APP("c"), "Failed", 0, BOOK, false, POD_FATE_GOES, DRAIN_WAIT_NONE,
      3 },
    /* What else bars a pod still does. */
    { APP("c"), "Running", EVERYTHING, BOOK, false, POD_FATE_FORBIDDEN, DRAIN_WAIT_UNMANAGED, 3 },
    { APP("a"), "Running", EVERYTHING, BOOK, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { APP("b"), "Running", EVERYTHING, BOOK, false, POD_FATE_WAITED, DRAIN_WAIT_COMPLETION, 0 },
    /* Rules that cannot be used hold whoever they could be about. */
    { APP("e"), "Running", 0, BROKEN, false, POD_FATE_FORBIDDEN, DRAIN_WAIT_RULES, 0 },
    { APP("e"), "Succeeded", 0, "nonsense", false, POD_FATE_FORBIDDEN, DRAIN_WAIT_RULES, 0 },
    { APP_WISH("e", "skip"), "Running", 0, BROKEN, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { OWNED("DaemonSet"), "Running", 0, BROKEN, false, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    /* Force, and whom it spares. */
    { APP("a"), "Running", 0, BOOK, true, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { APP("b"), "Running", 0, BOOK, true, POD_FATE_GOES, DRAIN_WAIT_NONE, 0 },
    { APP("d"), "Running", 0, BOOK, true, POD_FATE_GOES, DRAIN_WAIT_NONE, 0 },
    { APP_WISH("b", "skip"), "Running", 0, BOOK, true, POD_FATE_STAYS, DRAIN_WAIT_NONE, 0 },
    { APP("e"), "Running", 0, BROKEN, true, POD_FATE_GOES, DRAIN_WAIT_NONE, 0 },
};

static void *pod_fate_pod(struct arena *a, const char *meta, const char *spec, const char *phase)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *pod = NULL;
    struct str text = arena_printf(
        a, "{\"metadata\":{\"name\":\"p\"%s%s},\"spec\":{%s},\"status\":{\"phase\":\"%s\"}}",
        meta[0] != '\0' ? "," : "", meta, spec, phase);
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    CHECK_EQ(drain_pod_kind.project(NULL, object, a, &pod, &err), 0);
    return pod;
}

/* The labels of namespaces are not known here. */
TEST(pod_policy_follows_the_rules_of_the_node)
{
    for (uint32_t i = 0; i < ARRAY_LEN(rules_cases); i++) {
        const struct rules_case *c = &rules_cases[i];
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct drain_rules rules = { 0 };
        check_case(i);
        const struct pod_policy policy = {
            .flags = c->rules,
            .forcing = c->forcing,
            .rules = &rules,
            .rules_unreadable = drain_rules_parse(str_from(c->drain_rules), &a, &rules, &err) < 0,
        };
        struct pod_verdict v =
            pod_policy_decide(&policy, pod_fate_pod(&a, c->meta, "", c->phase), NULL);
        CHECK_EQ(v.fate, c->fate);
        CHECK_EQ(v.wait, c->wait);
        CHECK_EQ(v.rule != NULL ? v.rule->order : 0, c->order);
    }
    check_case(-1);
}

TEST(pod_policy_follows_the_flags)
{
    for (uint32_t i = 0; i < ARRAY_LEN(pod_fate_cases); i++) {
        const struct pod_fate_case *c = &pod_fate_cases[i];
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct selector selector;
        check_case(i);
        CHECK_EQ(selector_parse(str_from(c->selector), &a, &selector, &err), 0);
        const struct pod_policy policy = {
            .flags = c->rules,
            .forcing = c->forcing,
            .pods = c->selector[0] != '\0' ? &selector : NULL,
        };
        struct pod_verdict v =
            pod_policy_decide(&policy, pod_fate_pod(&a, c->meta, c->spec, c->phase), NULL);
        CHECK_EQ(v.fate, c->fate);
        CHECK_EQ(v.wait, c->wait);
    }
    check_case(-1);
}

/* app=d is skipped in namespaces of team x. Force waits for labels that may still come. */
TEST(pod_policy_asks_for_the_labels_of_the_namespace)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct drain_rules rules = { 0 };
    CHECK_EQ(drain_rules_parse(STR(BOOK), &a, &rules, &err), 0);
    const struct drain_pod *pod = pod_fate_pod(&a, APP("d"), "", "Running");
    const struct str of_x = STR("team=x\n");
    const struct str of_y = STR("team=y\n");
    struct pod_policy policy = { .rules = &rules };
    CHECK_EQ(pod_policy_decide(&policy, pod, &of_x).fate, POD_FATE_STAYS);
    CHECK(pod_policy_decide(&policy, pod, &of_x).keeps_volumes);
    CHECK_EQ(pod_policy_decide(&policy, pod, &of_y).fate, POD_FATE_GOES);
    CHECK(!pod_policy_decide(&policy, pod, &of_y).keeps_volumes);
    CHECK_EQ(pod_policy_decide(&policy, pod, NULL).fate, POD_FATE_FORBIDDEN);
    policy.forcing = true;
    CHECK_EQ(pod_policy_decide(&policy, pod, NULL).fate, POD_FATE_GOES);
    policy.namespaces_awaited = true;
    CHECK_EQ(pod_policy_decide(&policy, pod, NULL).wait, DRAIN_WAIT_RULES);
}

/* Volumes stay with pods that stay on purpose: not with finished ones, and whatever is meant. */
TEST(pod_policy_tells_whose_volumes_stay)
{
    static const struct {
        const char *meta;
        const char *phase;
        uint32_t flags;
        bool keeps;
    } cases[] = {
        { MIRROR, "Running", 0, true },
        { OWNED("DaemonSet"), "Running", 0, true },
        { OWNED("DaemonSet"), "Running", EVERYTHING, true },
        { WISH("skip"), "Running", DRAIN_USE_POD_LABEL, true },
        { WISH("skip"), "Running", 0, false },
        { WISH("wait-completed"), "Running", DRAIN_USE_POD_LABEL, false },
        { "", "Succeeded", 0, false },
        { "", "Running", 0, false },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct selector other;
        check_case(i);
        CHECK_EQ(selector_parse(STR("no=pod"), &a, &other, &err), 0);
        struct pod_policy policy = { .flags = cases[i].flags };
        const struct drain_pod *pod = pod_fate_pod(&a, cases[i].meta, "", cases[i].phase);
        CHECK_EQ(pod_policy_decide(&policy, pod, NULL).keeps_volumes, cases[i].keeps);
        policy.pods = &other;
        CHECK_EQ(pod_policy_decide(&policy, pod, NULL).keeps_volumes, cases[i].keeps);
        CHECK_EQ(pod_policy_decide(&policy, pod, NULL).fate, POD_FATE_STAYS);
    }
    check_case(-1);
}

/* The budget lets one go at a time; then somebody decides that there was time enough. */
TEST(pod_policy_changes_when_a_drain_is_forced_and_when_it_only_looks)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 4}]\n"
                        "budgets: [{name: web, minAvailable: 4}]\n");
    struct drain_spec spec = drain_fixture_spec;
    spec.flags = DRAIN_NOTIFY_ALL;
    spec.eviction_timeout = USEC_NEVER;
    struct drain *d = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, SECONDS(30));
    struct arena out = { 0 };
    struct drain_waiting_pod waiters[3];
    CHECK_EQ(drain_waiting_pods(d, &out, waiters, 3), 4);
    CHECK_STR(waiters[0].pod, drain_fixture_pod(&s, "node-001"));
    CHECK_EQ(waiters[2].wait, DRAIN_WAIT_PDB);
    CHECK_STR(waiters[2].reason,
              "budget web allows no disruption: 4 of 4 wanted pods are healthy; it can never allow "
              "one, because it wants all 4: more replicas would help, or a budget that spares one");
    CHECK_EQ(drain_fixture_status(d).wait, DRAIN_WAIT_PDB);
    drain_observe_only(d);
    drain_fixture_run(&s, SECONDS(5));
    CHECK_EQ(drain_waiting_pods(d, &out, waiters, 3), 0);
    CHECK_EQ(drain_fixture_status(d).left, 4);
    CHECK(!drain_fixture_status(d).blocked);
    drain_fixture_api(&s, 200, "DELETE",
                      "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web", "");
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(s.evicting, 0); /* it could, and only looks */
    drain_stop(d);
    uint32_t changes = s.drain[0].changes;
    d = drain_fixture_drain(&s, 0, &spec);
    drain_force(d);
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK_EQ(drain_fixture_status(d).forced, 4);
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 0);
    CHECK(s.drain[0].changes >= changes + 2); /* that many are left, and none any more */
    arena_done(&out);
    drain_fixture_end(&s);
}
