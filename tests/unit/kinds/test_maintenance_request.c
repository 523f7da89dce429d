#include "kinds/maintenance_request.h"

#include "tests/check.h"

static const struct maintenance_request *read_request(struct arena *out, const char *text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *ret = NULL;
    CHECK_EQ(json_parse(str_from(text), 0, out, &object, &err), 0);
    CHECK_EQ(mrequest_kind.project(NULL, object, out, &ret, &err), 0);
    return ret;
}

TEST(mrequest_takes_an_object_without_a_spec)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct maintenance_request *m =
        read_request(&a, "{\"metadata\":{\"name\":\"foo\",\"uid\":\"u\"}}");
    struct str reason;
    CHECK(!m->has_spec);
    CHECK_EQ(m->state, MR_STATE_ABSENT);
    CHECK_EQ(m->status.phase, MR_PHASE_ABSENT);
    CHECK_STR(mrequest_invalid(m, &reason), "there is no spec: it asks for nothing");
    CHECK_STR(reason, "InvalidSpec");
}

TEST(mrequest_knows_work_that_has_failed)
{
    static const struct {
        const char *annotations;
        bool failed;
    } cases[] = {
        { "{}", false },
        { "null", false },
        { "{\"drydock.dev/exit-code\":\"0\"}", false },
        { "{\"drydock.dev/exit-code\":\"\"}", false },
        { "{\"drydock.dev/exit-code\":\"3\"}", true },
        { "{\"drydock.dev/exit-code\":\"143\"}", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct maintenance_request *m = read_request(
            &a, arena_printf(&a, "{\"metadata\":{\"annotations\":%s}}", cases[i].annotations).p);
        CHECK_EQ(m->failed, cases[i].failed);
    }
    check_case(-1);
}

TEST(mrequest_takes_every_oddity_of_the_schema_and_beyond)
{
    static const struct {
        const char *spec;
        const char *reason;
        enum mrequest_state state;
    } cases[] = {
        { "{}", "InvalidSpec", MR_STATE_ABSENT },
        { "null", "InvalidSpec", MR_STATE_ABSENT },
        { "[]", "InvalidSpec", MR_STATE_ABSENT },
        { "{\"type\":\"node\"}", "InvalidSpec", MR_STATE_ABSENT },
        { "{\"name\":\"n\"}", "InvalidSpec", MR_STATE_ABSENT },
        { "{\"name\":\"n\",\"type\":\"pod\"}", "UnsupportedType", MR_STATE_ABSENT },
        { "{\"name\":\"n\",\"type\":\"node\"}", "", MR_STATE_ABSENT },
        { "{\"name\":\"n\",\"type\":\"Node\",\"state\":\"Pending\"}", "", MR_STATE_PENDING },
        { "{\"name\":\"n\",\"type\":\"node\",\"state\":\"Approved\"}", "", MR_STATE_APPROVED },
        { "{\"name\":\"n\",\"type\":\"node\",\"state\":\"InProgress\"}", "", MR_STATE_IN_PROGRESS },
        { "{\"name\":\"n\",\"type\":\"node\",\"state\":\"Completed\"}", "", MR_STATE_COMPLETED },
        { "{\"name\":\"n\",\"type\":\"node\",\"state\":\"\"}", "", MR_STATE_OTHER },
        { "{\"name\":\"n\",\"type\":\"node\",\"state\":\"Done\"}", "", MR_STATE_OTHER },
        { "{\"name\":\"n\",\"type\":\"node\",\"state\":7}", "", MR_STATE_OTHER },
        { "{\"name\":\"d\",\"type\":\"deployment\"}", "InvalidSpec", MR_STATE_ABSENT },
        { "{\"name\":\"d\",\"namespace\":\"s\",\"type\":\"deployment\"}", "", MR_STATE_ABSENT },
        { "{\"name\":7,\"type\":[\"node\"],\"priority\":\"high\"}", "InvalidSpec",
          MR_STATE_ABSENT },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct maintenance_request *m =
            read_request(&a, arena_printf(&a, "{\"spec\":%s}", cases[i].spec).p);
        struct str reason;
        (void)mrequest_invalid(m, &reason);
        CHECK_STR(reason, cases[i].reason);
        CHECK_EQ(m->state, cases[i].state);
    }
    check_case(-1);
}

TEST(mrequest_reads_what_decisions_use)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct maintenance_request *m = read_request(
        &a, "{\"metadata\":{\"uid\":\"u-1\",\"generation\":4,"
            "\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
            "\"deletionTimestamp\":\"2026-01-02T03:04:06Z\","
            "\"labels\":{\"maintenancerequests.repairman.k8s.io/clientname\":\"me\"}},"
            "\"spec\":{\"name\":\"n1\",\"namespace\":\"x\",\"type\":\"node\",\"priority\":-5,"
            "\"preparation\":\"None\",\"ttlSecondsAfterFinished\":0}}");
    CHECK_STR(m->uid, "u-1");
    CHECK_STR(m->client, "me");
    CHECK_EQ(m->created, SECONDS(1767323045));
    CHECK_EQ(m->generation, 4);
    CHECK(m->deleting);
    CHECK_STR(m->namespace, ""); /* nodes live in none */
    CHECK_EQ(m->priority, -5);
    CHECK(m->unprepared);
    CHECK(m->has_ttl);
    CHECK_EQ(m->ttl_s, 0);
}

#define FULL                                                                                       \
    "{\"phase\":\"Preparing\",\"step\":\"Drain\",\"result\":\"Failed\",\"reason\":\"r\","          \
    "\"message\":\"m\",\"observedGeneration\":3,\"queuedTime\":\"2026-01-02T03:04:05Z\","          \
    "\"reservedTime\":\"2026-01-02T03:04:06Z\",\"stepTime\":\"2026-01-02T03:04:07Z\","             \
    "\"approvedTime\":\"2026-01-02T03:04:08Z\",\"inProgressTime\":\"2026-01-02T03:04:09Z\","       \
    "\"finishedTime\":\"2026-01-02T03:04:10Z\",\"deadline\":\"2026-01-02T03:04:11Z\","             \
    "\"grant\":4,\"limits\":[\"a\",\"b\"],\"queuePosition\":7,\"rejections\":2,"                   \
    "\"lastRejection\":{\"reason\":\"x\",\"time\":\"2026-01-02T03:04:12Z\"},"                      \
    "\"preparation\":{\"cordoned\":true,\"podsLeft\":3,\"volumesLeft\":0,"                         \
    "\"blockedBy\":[\"pod a/b\"]},\"conditions\":["                                                \
    "{\"lastTransitionTime\":\"2026-01-02T03:04:13Z\",\"message\":\"\",\"observedGeneration\":3,"  \
    "\"reason\":\"Draining\",\"status\":\"False\",\"type\":\"Prepared\"}]}"

TEST(mrequest_prints_the_status_that_it_reads)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct maintenance_request *m = read_request(&a, "{\"status\":" FULL "}");
    mrequest_print_status(&m->status, STR("7"), &out);
    CHECK_STR(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"7\"},\"status\":" FULL "}");
}

TEST(mrequest_empties_what_is_not_said)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    mrequest_print_status(&(struct mrequest_status){ .phase = MR_PHASE_PENDING }, STR_NONE, &out);
    CHECK_STR(buf_str(&out),
              "{\"metadata\":{},\"status\":{\"phase\":\"Pending\",\"step\":null,\"result\":null,"
              "\"reason\":null,"
              "\"message\":null,\"observedGeneration\":null,\"queuedTime\":null,"
              "\"reservedTime\":null,\"stepTime\":null,\"approvedTime\":null,"
              "\"inProgressTime\":null,\"finishedTime\":null,\"deadline\":null,\"grant\":null,"
              "\"limits\":null,"
              "\"queuePosition\":null,\"rejections\":null,\"lastRejection\":null,"
              "\"preparation\":null,\"conditions\":[]}}");
}

TEST(mrequest_ignores_a_status_of_another_hand)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct maintenance_request *m = read_request(
        &a, "{\"status\":{\"phase\":\"Dreaming\",\"queuedTime\":\"yesterday\",\"limits\":{\"a\":1},"
            "\"queuePosition\":-3,\"preparation\":[],\"conditions\":[{\"type\":\"Mine\"},7,"
            "{\"type\":\"Accepted\",\"status\":\"Perhaps\"}]}}");
    CHECK_EQ(m->status.phase, MR_PHASE_ABSENT);
    CHECK_EQ(m->status.queued, 0);
    CHECK_EQ(m->status.limit_n, 0);
    CHECK_EQ(m->status.position, 0);
    CHECK(!m->status.prepared);
    CHECK_EQ(m->status.conditions[COND_ACCEPTED].status, COND_ABSENT);
}

TEST(mrequest_condition_keeps_its_time_while_its_truth_stays)
{
    struct mrequest_status s = { 0 };
    mrequest_condition_set(
        &s, COND_SAFE,
        &(struct mrequest_condition){ .status = COND_FALSE, .since = 5, .reason = STR("a") });
    mrequest_condition_set(
        &s, COND_SAFE,
        &(struct mrequest_condition){ .status = COND_FALSE, .since = 9, .reason = STR("b") });
    CHECK_EQ(s.conditions[COND_SAFE].since, 5);
    CHECK_STR(s.conditions[COND_SAFE].reason, "b");
    mrequest_condition_set(
        &s, COND_SAFE,
        &(struct mrequest_condition){ .status = COND_TRUE, .since = 11, .reason = STR("c") });
    CHECK_EQ(s.conditions[COND_SAFE].since, 11);
}

TEST(mrequest_numbers_for_people_make_no_other_status)
{
    const struct mrequest_status base = { .phase = MR_PHASE_PENDING,
                                          .position = 3,
                                          .reason = STR("LimitReached"),
                                          .message = STR("5 of 5") };
    struct mrequest_status other = base;
    other.position = 4;
    other.message = STR("6 of 6");
    CHECK(mrequest_status_same(&base, &base));
    CHECK(!mrequest_status_same(&base, &other));
    CHECK(mrequest_status_same_but_info(&base, &other));
    other.rejections = 1;
    CHECK(!mrequest_status_same_but_info(&base, &other));
    other = base;
    other.conditions[COND_ACCEPTED].status = COND_FALSE;
    CHECK(!mrequest_status_same_but_info(&base, &other));
}

/* ── actors ────────────────────────────────────────────────────────────────────────────────── */

TEST(mrequest_for_an_actor_has_a_name_and_a_state_that_is_known)
{
    static const struct {
        const char *text;
        int code;
        enum mrequest_state state;
    } rows[] = {
        { "[]", -ERR_PROTO, 0 },
        { "{\"metadata\":{\"name\":\"a\"}}", -ERR_PROTO, 0 },
        { "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}", 0, MR_STATE_PENDING },
        /* A word that nobody knows grants nothing. */
        { "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},"
          "\"spec\":{\"state\":\"approved\"}}",
          0, MR_STATE_PENDING },
        { "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},"
          "\"spec\":{\"state\":\"Approved\"}}",
          0, MR_STATE_APPROVED },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        const struct jval *object = NULL;
        struct maintenance_request m = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(json_parse(str_from(rows[i].text), 0, &a, &object, &err), 0);
        CHECK_EQ(mrequest_read_for_actor(object, &a, &m, &err), rows[i].code);
        CHECK_EQ(m.state, rows[i].state);
        CHECK_STR(m.version, rows[i].code == 0 ? "7" : "");
    }
    check_case(-1);
}

TEST(mrequest_is_for_a_target_in_any_case)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct maintenance_request *node =
        read_request(&a, "{\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"namespace\":\"lost\"}}");
    const struct maintenance_request *web = read_request(
        &a, "{\"spec\":{\"type\":\"deployment\",\"name\":\"web\",\"namespace\":\"shop\"}}");
    CHECK(mrequest_is_for(node, &(struct request_target){ STR("Node"), STR_NONE, STR("N1") }));
    CHECK(mrequest_is_for(node, &(struct request_target){ STR("node"), STR("x"), STR("n1") }));
    CHECK(!mrequest_is_for(node, &(struct request_target){ STR("node"), STR_NONE, STR("n2") }));
    CHECK(mrequest_is_for(web,
                          &(struct request_target){ STR("deployment"), STR("shop"), STR("web") }));
    CHECK(!mrequest_is_for(
        web, &(struct request_target){ STR("deployment"), STR("other"), STR("web") }));
}

TEST(mrequest_reads_the_new_request_that_it_prints)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct mrequest_new new = {
        .name = STR("mr-1-1"),
        .client = STR("rebooter"),
        .target = { STR("deployment"), STR("shop"), STR("w\"eb") },
        .reason = STR("why not"),
        .priority = -3,
        .unprepared = true,
        .bridge_request = STR("u-1/3"),
    };
    mrequest_print_new(&new, &out);
    buf_add_char(&out, '\0');
    const struct maintenance_request *m = read_request(&a, out.p);
    CHECK_STR(m->name, new.name);
    CHECK_STR(m->client, new.client);
    CHECK(mrequest_is_for(m, &new.target));
    CHECK_EQ(m->state, MR_STATE_PENDING);
    CHECK_EQ(m->priority, -3);
    CHECK(m->unprepared);
    CHECK_STR(m->machine_request, new.bridge_request);
    buf_reset(&out);
    mrequest_print_new(&(struct mrequest_new){ .name = STR("a"),
                                               .client = STR("c"),
                                               .target = { STR("node"), STR_NONE, STR("n1") } },
                       &out);
    CHECK_STR(buf_str(&out),
              "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\","
              "\"metadata\":{\"name\":\"a\",\"labels\":"
              "{\"maintenancerequests.repairman.k8s.io/clientname\":\"c\"}},"
              "\"spec\":{\"name\":\"n1\",\"type\":\"node\",\"state\":\"Pending\"}}");
}

TEST(mrequest_changes_carry_version_and_uid)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct mrequest_change change = {
        .version = STR("7"),
        .uid = STR("u"),
        .state = MR_STATE_COMPLETED,
    };
    mrequest_print_change(&change, &out);
    CHECK_STR(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\"},"
                             "\"spec\":{\"state\":\"Completed\"}}");
    buf_reset(&out);
    change.exit_code = STR("3");
    mrequest_print_change(&change, &out);
    CHECK_STR(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\","
                             "\"annotations\":{\"drydock.dev/exit-code\":\"3\"}},"
                             "\"spec\":{\"state\":\"Completed\"}}");
}
