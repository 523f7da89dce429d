#include "request/limits_report.h"

#include "tests/unit/request/requests_fixture.h"

#define NOW SECONDS(1794792706) /* 2026-11-16T01:31:46Z, a Monday */

static struct limits_report_holder holders[] = {
    { .target = STR_INIT("worker-1"),
      .uid = STR_INIT("u1"),
      .name = STR_INIT("mr-1"),
      .phase = STR_INIT("Approved"),
      .since = NOW - MINUTES(5),
      .deadline = USEC_NEVER },
    { .target = STR_INIT("worker-9"),
      .uid = STR_INIT("n9"),
      .name = STR_INIT("profile/os"),
      .phase = STR_INIT("InMaintenance"),
      .since = NOW - MINUTES(90),
      .deadline = USEC_NEVER },
};
static const struct str node_limit[] = { STR_INIT("node") };
static const struct str gpu_limit[] = { STR_INIT("gpu"), STR_INIT("node") };

static struct limits_report_limit limit_node(void)
{
    return (struct limits_report_limit){ .name = STR("node"),
                                         .type = STR("node"),
                                         .percent = 5,
                                         .minimum = 1,
                                         .most = UINT32_MAX,
                                         .computed = true,
                                         .population = 60,
                                         .allowed = 3,
                                         .held = 2,
                                         .unavailable = 1,
                                         .holders = holders,
                                         .holder_n = 2 };
}

static struct limits_report_claim waiting_claim(const char *name, const char *target, usec_t since)
{
    return (struct limits_report_claim){ .uid = str_from(name),
                                         .name = str_from(name),
                                         .type = STR("node"),
                                         .target = str_from(target),
                                         .phase = STR("Pending"),
                                         .waits = true,
                                         .since = since,
                                         .deadline = USEC_NEVER,
                                         .next = USEC_NEVER,
                                         .limits = node_limit,
                                         .limit_n = 1 };
}

/* Two limits; a request and a profile hold, three requests and a profile wait. */
static void sample_report(struct limits_report *b, struct arena *a)
{
    *b = (struct limits_report){ .now = NOW };
    struct limits_report_limit l = limit_node();
    limits_report_add_limit(b, &l, a);
    limits_report_add_limit(b,
                            &(struct limits_report_limit){ .name = STR("gpu"),
                                                           .type = STR("node"),
                                                           .selects = STR("pool=gpu"),
                                                           .exclusive = true,
                                                           .percent = 10,
                                                           .minimum = 1,
                                                           .most = 4,
                                                           .computed = true,
                                                           .population = 8,
                                                           .allowed = 1,
                                                           .room = 1,
                                                           .paused = true },
                            a);
    struct limits_report_claim c = waiting_claim("mr-4", "worker-4", NOW - MINUTES(3));
    c.client = STR("other");
    c.reason = STR("Paused");
    c.message = STR("limit gpu is paused");
    c.limit = STR("gpu");
    c.blocker_uid = STR("u1"); /* is told, and does not matter */
    c.limits = gpu_limit;
    c.limit_n = 2;
    c.position = 1;
    limits_report_add_claim(b, &c, a);
    c = waiting_claim("mr-3", "worker-3", NOW - MINUTES(1));
    c.reason = STR("LimitReached");
    c.message = STR("limit node: 2 granted and 1 unavailable of 3 allowed (5 % of 60)");
    c.limit = STR("node");
    c.blocker_uid = STR("n9");
    c.priority = 7;
    c.position = 1;
    limits_report_add_claim(b, &c, a);
    c = waiting_claim("mr-2", "worker-1", NOW - HOURS(2));
    c.client = STR("rebooter");
    c.reason = STR("TargetBusy");
    c.message = STR("node worker-1 is held by mr-1");
    c.blocker_uid = STR("u1");
    limits_report_add_claim(b, &c, a);
    c = waiting_claim("profile/os", "worker-7", NOW - MINUTES(2));
    c.uid = STR("n7");
    c.reason = STR("LimitReached");
    c.message = STR("limit node: 2 granted and 1 unavailable of 3 allowed (5 % of 60)");
    limits_report_add_claim(b, &c, a);
    limits_report_add_claim(b,
                            &(struct limits_report_claim){ .uid = STR("u1"),
                                                           .name = STR("mr-1"),
                                                           .client = STR("kured"),
                                                           .type = STR("node"),
                                                           .target = STR("worker-1"),
                                                           .phase = STR("InProgress"),
                                                           .since = NOW - MINUTES(4),
                                                           .deadline = NOW + MINUTES(6),
                                                           .next = USEC_NEVER,
                                                           .limits = node_limit,
                                                           .limit_n = 1 },
                            a);
    limits_report_finish(b, a);
}

TEST(limits_report_brings_holders_claims_and_limits_together)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b;
    sample_report(&b, &a);
    CHECK_EQ(b.limit_n, 2);
    CHECK_STR(b.limits[0].name, "gpu");
    CHECK_STR(limits_report_limit_state(&b.limits[0]), "paused");
    CHECK_STR(limits_report_limit_state(&b.limits[1]), "full");
    CHECK_EQ(b.limits[0].waiting, 1);
    CHECK_EQ(b.limits[1].waiting, 4);
    /* What the request says of itself is newer than what its reservation has. */
    CHECK_STR(b.limits[1].holders[0].phase, "InProgress");
    CHECK_STR(b.limits[1].holders[0].client, "kured");
    CHECK_EQ(b.limits[1].holders[0].deadline, NOW + MINUTES(6));
    static const char *const order[] = {
        "mr-3", "mr-2", "mr-4", "profile/os", "mr-1", "profile/os"
    };
    CHECK_EQ(b.claim_n, ARRAY_LEN(order));
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        CHECK_STR(b.claims[i].name, order[i]);
    }
    /* The profile's node that holds speaks through its reservation alone. */
    CHECK_STR(b.claims[5].target, "worker-9");
    CHECK_EQ(b.claims[5].limit_n, 1);
    CHECK_STR(b.claims[0].blocker->target, "worker-9");
    CHECK_STR(b.claims[1].blocker->name, "mr-1");
    CHECK(b.claims[2].blocker == NULL);
    /* Nobody told which limit is full: there is one that can be meant. */
    CHECK_STR(b.claims[3].limit, "node");
    CHECK_STR(b.claims[3].blocker->target, "worker-9");
}

TEST(limits_report_says_what_would_help)
{
    static const struct {
        const char *reason;
        const char *limit;
        const char *until;
    } cases[] = {
        { "LimitReached", "node",
          "1 of the 2 held under limit node ends, or the one unavailable "
          "is back" },
        { "TargetBusy", "", "node worker-1 is released" },
        { "Paused", "node", "spec.paused of limit node is false" },
        { "Gap", "node", "the gap between two operations is over" },
        { "NotComputed", "node", "limit node can be evaluated" },
        { "NotComputed", "", "a controller leads and knows the cluster" },
        { "TargetNotFound", "", "there is a node worker-1, or it is withdrawn" },
        { "NoLimitConfigured", "", "a MaintenanceLimit selects it" },
        { "InvalidSpec", "", "it is withdrawn: like this it is never granted" },
        { "CheckFailed", "", "it is tried again, by itself" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct limits_report b = { .now = NOW };
        struct limits_report_limit l = limit_node();
        struct limits_report_claim c = waiting_claim("mr-2", "worker-1", NOW);
        c.reason = str_from(cases[i].reason);
        c.limit = str_from(cases[i].limit);
        limits_report_add_limit(&b, &l, &a);
        limits_report_add_claim(&b, &c, &a);
        holders[0].client = STR_NONE;
        limits_report_finish(&b, &a);
        CHECK_STR(b.claims[0].until, cases[i].until);
    }
}

TEST(limits_report_says_how_many_must_end_where_too_many_are_held)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b = { .now = NOW };
    struct limits_report_limit l = limit_node();
    l.allowed = 1;
    l.unavailable = 0;
    l.over = true;
    struct limits_report_claim c = waiting_claim("mr-2", "worker-2", NOW);
    c.reason = STR("LimitReached");
    c.limit = STR("node");
    limits_report_add_limit(&b, &l, &a);
    limits_report_add_claim(&b, &c, &a);
    limits_report_finish(&b, &a);
    CHECK_STR(b.claims[0].until, "all 2 held under limit node end");
    CHECK_STR(limits_report_limit_state(&b.limits[0]), "over-committed");
    l.allowed = 0;
    CHECK_STR(limits_report_limit_state(&l), "over-committed");
    l.paused = true;
    CHECK_STR(limits_report_limit_state(&l), "paused, over-committed");
}

static struct str node_report_text(const struct limits_report *b, bool wide, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    limits_report_print_text(b, wide, &out);
    return arena_str(a, buf_str(&out));
}

TEST(limits_report_prints_limits_holders_and_the_queue)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b;
    sample_report(&b, &a);
    CHECK_STR(node_report_text(&b, /* wide= */ false, &a),
              "limit  type  allowed  held  unavailable  waiting\n"
              "gpu    node  1 of 8   0     0            1        paused\n"
              "node   node  3 of 60  2     1            4        full\n"
              "\n"
              "held (2)\n"
              "  worker-1  mr-1 of kured, InProgress for 4m, deadline in 6m (Mon 01:37:46 UTC);\n"
              "            under node\n"
              "  worker-9  profile os, InMaintenance for 1h30m; under node\n"
              "\n"
              "queue (4)\n"
              "  worker-3  1. mr-3 for 1m: limit node: 2 granted and 1 unavailable of 3 allowed\n"
              "            (5 % of 60)\n"
              "            until 1 of the 2 held under limit node ends, or the one unavailable\n"
              "            is back; longest held: worker-9 by profile os for 1h30m,\n"
              "            InMaintenance\n"
              "  worker-1  mr-2 of rebooter for 2h: node worker-1 is held by mr-1\n"
              "            until node worker-1 is released; held by mr-1 of kured for 5m,\n"
              "            InProgress, deadline in 6m (Mon 01:37:46 UTC)\n"
              "  worker-4  1. mr-4 of other for 3m: limit gpu is paused\n"
              "            until spec.paused of limit gpu is false\n"
              "  worker-7  profile os for 2m: limit node: 2 granted and 1 unavailable of 3\n"
              "            allowed (5 % of 60)\n"
              "            until 1 of the 2 held under limit node ends, or the one unavailable\n"
              "            is back; longest held: worker-9 by profile os for 1h30m,\n"
              "            InMaintenance\n");
}

/* The page in docs/ shows what is really printed. */
TEST(limits_report_page_shows_the_real_output)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b;
    sample_report(&b, &a);
    CHECK(str_contains(check_data("../../docs/requests.md"),
                       node_report_text(&b, /* wide= */ false, &a)));
}

TEST(limits_report_tells_of_one_request_who_comes_before_it)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b;
    sample_report(&b, &a);
    CHECK(!limits_report_only_request(&b, STR("nobody"), &a));
    CHECK(!limits_report_only_request(&b, STR("worker-9"), &a)); /* that is no request */
    CHECK(limits_report_only_request(&b, STR("mr-4"), &a));
    CHECK_EQ(b.claim_n, 1); /* nobody else waits for the limit that refuses it */
    CHECK_STR(node_report_text(&b, /* wide= */ false, &a),
              "request mr-4: Pending for 3m, place 1 in the queue\n"
              "  target   node worker-4\n"
              "  client   other\n"
              "  waits    Paused: limit gpu is paused\n"
              "  until    spec.paused of limit gpu is false\n"
              "  limits   gpu, node\n"
              "\n"
              "limit  type  allowed  held  unavailable  waiting\n"
              "gpu    node  1 of 8   0     0            1        paused\n"
              "node   node  3 of 60  2     1            4        full\n");

    sample_report(&b, &a);
    /* By its target: who has it comes before who waits for it. */
    CHECK(limits_report_only_request(&b, STR("worker-1"), &a));
    CHECK_STR(b.claims[0].name, "mr-1");
    CHECK_EQ(b.claim_n, 1);

    sample_report(&b, &a);
    CHECK(limits_report_only_request(&b, STR("worker-7"), &a) == false);
    sample_report(&b, &a);
    b.claims[3].name = STR("mr-7"); /* as if it were a request: the last in the queue */
    CHECK(limits_report_only_request(&b, STR("mr-7"), &a));
    CHECK_EQ(b.claim_n, 4);
    CHECK(str_contains(node_report_text(&b, /* wide= */ true, &a),
                       STR("\nbefore it in the queue (3)\n")));
}

TEST(limits_report_tells_of_one_limit_whom_it_concerns)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b;
    sample_report(&b, &a);
    CHECK(!limits_report_only_limit(&b, STR("nobody")));
    CHECK(limits_report_only_limit(&b, STR("gpu")));
    CHECK_STR(node_report_text(&b, /* wide= */ false, &a),
              "limit gpu: paused\n"
              "  selects  node: pool=gpu; no other limit concerns them\n"
              "  allows   1 of 8: 10 %, at least 1, at most 4\n"
              "  held     0\n"
              "  out      0 unavailable and not held\n"
              "  free     for 0 more\n"
              "  waiting  1\n"
              "\n"
              "queue (1)\n"
              "  worker-4  1. mr-4 of other for 3m: limit gpu is paused\n"
              "            until spec.paused of limit gpu is false\n");
}

TEST(limits_report_json_has_everything)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct limits_report b;
    sample_report(&b, &a);
    CHECK(limits_report_only_request(&b, STR("mr-2"), &a));
    struct json_writer w = json_writer_on(&json);
    limits_report_print_json(&b, 0, &w);
    CHECK_STR(buf_str(&json),
              "{\"now\":\"2026-11-16T01:31:46Z\",\"about\":\"request\",\"limits\":[{\"name\":\"node"
              "\",\"type\":\"node\",\"standing\":\"full\",\"selects\":\"\",\"exclusive\":false,\"pe"
              "rcent\":5,\"minimum\":1,\"computed\":true,\"population\":60,\"allowed\":3,\"held\":2"
              ",\"unavailable\":1,\"room\":0,\"waiting\":4,\"paused\":false,\"overCommitted\":false"
              ",\"problem\":\"\",\"holders\":[{\"target\":\"worker-1\",\"uid\":\"u1\",\"name\":\"mr"
              "-1\",\"client\":\"kured\",\"phase\":\"InProgress\",\"since\":\"2026-11-16T01:26:46Z"
              "\",\"deadline\":\"2026-11-16T01:37:46Z\"},{\"target\":\"worker-9\",\"uid\":\"n9\",\""
              "name\":\"profile/os\",\"client\":\"\",\"phase\":\"InMaintenance\",\"since\":\"2026-1"
              "1-16T00:01:46Z\"}]}],\"waiting\":1,\"holding\":0,\"claims\":[{\"name\":\"mr-2\",\"ui"
              "d\":\"mr-2\",\"client\":\"rebooter\",\"type\":\"node\",\"target\":\"worker-1\",\"pha"
              "se\":\"Pending\",\"step\":\"\",\"reason\":\"TargetBusy\",\"message\":\"node worker-1"
              " is held by mr-1\",\"until\":\"node worker-1 is released\",\"waits\":true,\"ended\":"
              "false,\"priority\":0,\"position\":0,\"since\":\"2026-11-15T23:31:46Z\",\"limit\":\""
              "\",\"limits\":[\"node\"],\"blocker\":{\"target\":\"worker-1\",\"uid\":\"u1\",\"name"
              "\":\"mr-1\",\"client\":\"kured\",\"phase\":\"InProgress\",\"since\":\"2026-11-16T01:"
              "26:46Z\",\"deadline\":\"2026-11-16T01:37:46Z\"}}]}");
}

TEST(limits_report_may_be_told_in_part_but_counts_all)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    const struct jval *root;
    struct limits_report b;
    struct err err = { 0 };
    int64_t n = 0;
    sample_report(&b, &a);
    struct json_writer w = json_writer_on(&json);
    limits_report_print_json(&b, 1, &w);
    CHECK_EQ(json_parse(buf_str(&json), 0, &a, &root, &err), 0);
    CHECK_EQ(jval_get(root, STR("claims"))->n, 2); /* the first of each kind */
    CHECK(jval_i64(jval_get(root, STR("waiting")), &n));
    CHECK_EQ(n, 4);
    CHECK(jval_i64(jval_get(root, STR("holding")), &n));
    CHECK_EQ(n, 2);
}

TEST(limits_report_says_where_a_limit_stands)
{
    struct limits_report_limit l = { .most = UINT32_MAX };
    CHECK_STR(limits_report_limit_state(&l), "not computed");
    l.computed = true;
    CHECK_STR(limits_report_limit_state(&l), "selects nothing");
    l.population = 3;
    CHECK_STR(limits_report_limit_state(&l), "full");
    l.room = 1;
    CHECK_STR(limits_report_limit_state(&l), "open");
}

TEST(limits_report_without_limits_says_so)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b = { .now = NOW };
    limits_report_finish(&b, &a);
    CHECK_STR(node_report_text(&b, false, &a), "There are no limits: every request is granted.\n");
}

static void fixture_done(struct requests_fixture *q)
{
    fixture_end(q);
}

static const struct limits_report_claim *find_claim(const struct limits_report *b, const char *name)
{
    for (uint32_t i = 0; i < b->claim_n; i++) {
        if (str_eq(b->claims[i].name, str_from(name))) {
            return &b->claims[i];
        }
    }
    check_fail(__FILE__, __LINE__, "there is no claim %s", name);
    return NULL;
}

static void collect_report(struct requests_fixture *q, bool ended, struct arena *a,
                           struct limits_report *ret)
{
    *ret = (struct limits_report){ .now = fixture_wall(q) };
    limits_report_collect(ret, q->arbiter, q->requests, ended, a);
    limits_report_finish(ret, a);
}

TEST(limits_report_looks_at_what_runs)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct limits_report b;
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", "{\"limit\":10,\"timeouts\":{\"inProgressSeconds\":600}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_set_state(&q, "mr-1", "InProgress");
    fixture_run_until_phase(&q, "mr-1", "InProgress");
    fixture_create_request(&q, "mr-2", "node-002", "");
    fixture_run_until_phase(&q, "mr-2", "Pending");
    fixture_create_request(&q, "mr-3", "node-001", "");
    fixture_run_until_phase(&q, "mr-3", "Pending");
    uint64_t turns = arbiter_turn_count(q.arbiter) + requests_turns(q.requests);
    collect_report(&q, /* ended= */ false, &a, &b);
    CHECK_EQ(b.limit_n, 1);
    CHECK_STR(limits_report_limit_state(&b.limits[0]), "full");
    CHECK_EQ(b.limits[0].held, 1);
    CHECK_EQ(b.limits[0].waiting, 2);
    CHECK_STR(b.limits[0].holders[0].phase, "InProgress");
    CHECK(b.limits[0].holders[0].deadline < USEC_NEVER);
    CHECK_EQ(b.claim_n, 3);
    const struct limits_report_claim *c = find_claim(&b, "mr-2");
    CHECK_STR(c->reason, "LimitReached");
    CHECK_STR(c->limit, "node");
    CHECK_EQ(c->position, 1);
    CHECK_STR(c->blocker->name, "mr-1");
    CHECK_STR(c->until, "the one held under limit node ends");
    c = find_claim(&b, "mr-3");
    CHECK_STR(c->reason, "TargetBusy");
    CHECK_STR(c->blocker->name, "mr-1");

    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-2", "Approved");
    CHECK(arbiter_turn_count(q.arbiter) + requests_turns(q.requests) > turns);
    collect_report(&q, /* ended= */ false, &a, &b);
    CHECK_EQ(b.claim_n, 2);
    collect_report(&q, /* ended= */ true, &a, &b);
    CHECK_EQ(b.claim_n, 3);
    CHECK(limits_report_only_request(&b, STR("mr-1"), &a));
    CHECK_STR(b.claims[0].phase, "Completed");
    CHECK_STR(b.claims[0].until, "");
}

TEST(limits_report_says_what_happens_at_a_deadline)
{
    static const struct {
        enum mrequest_phase phase;
        enum mrequest_step step;
        struct limit_options options;
        const char *text;
    } cases[] = {
        { MR_PHASE_PREPARING,
          MR_STEP_DRAIN,
          { .drain = { .on_timeout = ON_TIMEOUT_REJECT } },
          "it goes back to the queue" },
        { MR_PHASE_PREPARING,
          MR_STEP_DRAIN,
          { .drain = { .on_timeout = ON_TIMEOUT_FORCE } },
          "the pods that are left are deleted" },
        { MR_PHASE_PREPARING,
          MR_STEP_DETACH,
          { .detach = { .on_timeout = ON_TIMEOUT_PROCEED } },
          "it goes on to the next step" },
        { MR_PHASE_APPROVED,
          MR_STEP_ABSENT,
          { .on_approved = ON_APPROVED_REQUEUE },
          "it goes back to the queue" },
        { MR_PHASE_APPROVED, MR_STEP_ABSENT, { .on_approved = ON_APPROVED_CLOSE }, "it is closed" },
        { MR_PHASE_IN_PROGRESS,
          MR_STEP_ABSENT,
          { .on_in_progress = ON_PROGRESS_RELEASE },
          "it expires: its place is given to others, the cordon stays" },
        { MR_PHASE_IN_PROGRESS,
          MR_STEP_ABSENT,
          { .on_in_progress = ON_PROGRESS_REQUEUE },
          "it goes back to the queue" },
        { MR_PHASE_IN_PROGRESS,
          MR_STEP_ABSENT,
          { .on_in_progress = ON_PROGRESS_CLOSE },
          "it is closed" },
        { MR_PHASE_IN_PROGRESS,
          MR_STEP_ABSENT,
          { .on_in_progress = ON_PROGRESS_HOLD },
          "it is marked as late and keeps its place" },
        { MR_PHASE_PENDING, MR_STEP_ABSENT, { .approved_s = 1 }, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_STR(limits_report_at_deadline(cases[i].phase, cases[i].step, &cases[i].options),
                  cases[i].text);
    }
    check_case(-1);
}
