#include "kinds/node_state.h"

#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define NOW SECONDS(1767323045)

static const struct node_state *read(struct arena *a, const char *status)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct node_state *s = ARENA_NEW(a, struct node_state);
    CHECK_EQ(json_parse(arena_printf(a,
                                     "{\"metadata\":{\"name\":\"n\",\"namespace\":\"d\"},\"spec\":{"
                                     "\"format\":1,\"target\":{\"kind\":\"Node\",\"name\":\"n\","
                                     "\"uid\":\"u\"},\"sequence\":7},\"status\":%s}",
                                     status),
                        0, a, &object, &err),
             0);
    node_state_read(object, a, s);
    return s;
}

TEST(node_state_reads_what_the_controller_has_noted)
{
    struct arena a = { 0 };
    const struct node_state *s = read(
        &a,
        "{\"operations\":[{\"maintenance\":\"m\",\"operation\":\"a\",\"phase\":\"Succeeded\","
        "\"attempt\":2,\"tick\":\"2026-01-02T03:04:05Z\",\"lastSuccess\":{\"revision\":\"r\"}}],"
        "\"visit\":{\"format\":1,\"id\":\"i\",\"nodeUID\":\"u\",\"request\":{\"name\":\"mr-1\","
        "\"uid\":\"q\",\"grant\":3},\"phase\":\"Draining\",\"deadline\":\"2026-01-02T03:04:05Z\","
        "\"runs\":[{\"maintenanceUID\":\"m\",\"operation\":\"a\",\"reboot\":\"Never\","
        "\"phase\":\"Pending\"}],\"cordon\":\"Ours\",\"expired\":true},"
        "\"rebootedAt\":\"2026-01-02T03:04:05Z\",\"sealKey\":\"k\"}");
    CHECK_STR(s->problem.reason, "");
    CHECK(s->format_known);
    CHECK_EQ(s->kind, MACHINE_NODE);
    CHECK_EQ(s->sequence, 7);
    const struct operation_state *o = node_state_find(s, STR("m"), STR("a"));
    CHECK(o != NULL && o->attempt == 2 && o->tick == NOW);
    CHECK_STR(o->success_revision, "r");
    CHECK(node_state_find(s, STR("m"), STR("b")) == NULL);
    CHECK_EQ(s->visit.phase, VISIT_DRAINING);
    CHECK_STR(s->visit.request_uid, "q");
    CHECK_EQ(s->visit.grant, 3);
    CHECK_EQ(s->visit.run_n, 1);
    CHECK_EQ(s->visit.cordon, VISIT_CORDON_OURS);
    CHECK_EQ(s->rebooted, NOW);
    CHECK(s->visit.expired);
    CHECK_STR(s->seal_key, "k");
    CHECK(!s->agent.given);
    arena_done(&a);
}

TEST(node_state_keeps_its_hands_off_a_visit_that_it_does_not_know)
{
#define RUNS                                                                                       \
    "\"runs\":[{\"maintenanceUID\":\"m\",\"operation\":\"a\",\"reboot\":\"Never\","                \
    "\"phase\":\"Pending\"}]"
    static const struct {
        const char *visit;
        enum visit_phase phase;
    } cases[] = {
        { "null", VISIT_NONE },
        { "{\"format\":1,\"id\":\"i\",\"phase\":\"Draining\",\"cordon\":\"Ours\"," RUNS "}",
          VISIT_DRAINING },
        { "{\"format\":2,\"id\":\"i\",\"phase\":\"Draining\",\"cordon\":\"Ours\"," RUNS "}",
          VISIT_UNKNOWN },
        { "{\"format\":1,\"phase\":\"Draining\",\"cordon\":\"Ours\"," RUNS "}", VISIT_UNKNOWN },
        { "{\"format\":1,\"id\":\"i\",\"cordon\":\"Ours\"," RUNS "}", VISIT_UNKNOWN },
        { "{\"format\":1,\"id\":\"i\",\"phase\":\"Draining\",\"cordon\":\"Theirs\"," RUNS "}",
          VISIT_UNKNOWN },
        { "7", VISIT_UNKNOWN },
    };
#undef RUNS
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct node_state *s = read(&a, arena_printf(&a, "{\"visit\":%s}", cases[i].visit).p);
        CHECK_EQ(s->visit.phase, cases[i].phase);
        CHECK_EQ(s->problem.reason.n > 0, cases[i].phase == VISIT_UNKNOWN);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(node_state_takes_words_of_the_agent_with_care)
{
    struct arena a = { 0 };
    const struct node_state *s = read(
        &a, "{\"agent\":{\"version\":\"1.0\\n\\u001b[31m\",\"bootID\":7,\"probe\":"
            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
            "\"facts\":{\"osId\":\"debian\",\"rebootRequired\":{\"value\":true}},"
            "\"lastReport\":\"2026-01-02T03:04:05Z\"}}");
    CHECK(s->agent.given && s->agent.reboot_known && s->agent.reboot_required);
    CHECK_STR(s->agent.version, "1.0??[31m");
    CHECK_STR(s->agent.boot_id, "");
    CHECK_EQ(s->agent.probe.n, NODE_STATE_WORD_MAX);
    CHECK_STR(s->agent.facts.os_id, "debian");
    CHECK_EQ(s->agent.last_report, NOW);
    CHECK_STR(s->problem.reason, "");
    arena_done(&a);
}
