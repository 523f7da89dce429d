#include "profile/facts.h"

#include <math.h>

#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

TEST(facts_that_nobody_told_are_unknown)
{
    struct facts *f = facts_new();
    CHECK(!facts_prometheus(f, 3).known);
    CHECK_EQ(facts_asked(f, 3), INT64_MIN);
    CHECK(!facts_stagger(f, 0, 7).known);
    CHECK(!facts_affinity(f, STR("a")).known);
    facts_free(f);
    facts_free(NULL);
}

TEST(facts_tell_a_new_value_from_a_new_time)
{
    struct facts *f = facts_new();
    const struct str warnings[] = { STR_INIT("slow"), STR_INIT("old") };
    struct facts_prometheus p = { .known = true, .value = NAN, .asked = 1 };
    CHECK(facts_put_prometheus(f, 2, &p));
    p.asked = 2;
    CHECK(!facts_put_prometheus(f, 2, &p));
    CHECK_EQ(facts_prometheus(f, 2).asked, 2);
    CHECK(isnan(facts_prometheus(f, 2).value));
    p.value = 0.0;
    CHECK(facts_put_prometheus(f, 2, &p));
    p.warnings = warnings;
    p.warning_n = 2;
    CHECK(facts_put_prometheus(f, 2, &p));
    CHECK(!facts_put_prometheus(f, 2, &p));
    CHECK_STR(facts_prometheus(f, 2).warnings[1], "old");
    CHECK(facts_prometheus(f, 2).warnings != warnings);
    p.warnings = &warnings[1];
    p.warning_n = 1;
    CHECK(facts_put_prometheus(f, 2, &p));
    p = (struct facts_prometheus){ .known = true, .error = STR("down") };
    CHECK(facts_put_prometheus(f, 2, &p));
    CHECK_STR(facts_prometheus(f, 2).error, "down");
    CHECK_EQ(facts_prometheus(f, 2).warning_n, 0);
    CHECK(!facts_prometheus(f, 1).known);

    struct facts_affinity a = { .known = true };
    CHECK(facts_put_affinity(f, STR("n"), &a));
    CHECK(!facts_put_affinity(f, STR("n"), &a));
    a.has = true;
    CHECK(facts_put_affinity(f, STR("n"), &a));
    CHECK(facts_affinity(f, STR("n")).has);
    facts_forget_node(f, STR("n"));
    facts_forget_node(f, STR("n"));
    CHECK(!facts_affinity(f, STR("n")).known);
    facts_free(f);
}

TEST(facts_keep_each_lease_of_a_stagger)
{
    struct facts *f = facts_new();
    struct facts_lease l = {
        .known = true,
        .complete = true,
        .holder = STR("n1"),
        .renewed = timestamp_from_usec(WALL),
        .duration_s = 60,
    };
    CHECK(facts_put_lease(f, 1, 2, &l));
    CHECK(!facts_put_lease(f, 1, 2, &l));
    CHECK(!facts_stagger(f, 1, 0).known && !facts_stagger(f, 1, 1).known);
    CHECK_STR(facts_stagger(f, 1, 2).holder, "n1");
    l.holder = STR("n2");
    CHECK(facts_put_lease(f, 1, 2, &l));
    CHECK_STR(facts_stagger(f, 1, 2).holder, "n2");
    facts_free(f);
}

TEST(facts_a_lease_is_free_a_moment_after_its_time)
{
    struct facts_lease l = {
        .known = true,
        .complete = true,
        .renewed = timestamp_from_usec(WALL),
        .duration_s = 60,
    };
    CHECK(!facts_lease_is_free(&l, WALL + SECONDS(60)));
    CHECK_EQ(facts_lease_free_at(&l, WALL), WALL + SECONDS(60) + 1);
    CHECK(facts_lease_is_free(&l, facts_lease_free_at(&l, WALL)));
    CHECK_EQ(facts_lease_free_at(&l, WALL + SECONDS(61)), USEC_NEVER);
    l.duration_s = INT64_MAX; /* nonsense is answered, too */
    CHECK(!facts_lease_is_free(&l, WALL + DAYS(1000)));
    l.complete = false;
    CHECK(!facts_lease_is_free(&l, WALL + DAYS(1000)));
    CHECK_EQ(facts_lease_free_at(&l, WALL), USEC_NEVER);
    l.complete = true;
    l.duration_s = 0;
    CHECK(facts_lease_is_free(&l, WALL + 1));
    l.error = STR("forbidden");
    CHECK(!facts_lease_is_free(&l, WALL));
    CHECK_EQ(facts_lease_free_at(&l, WALL), USEC_NEVER);
    l = (struct facts_lease){ .known = true, .absent = true };
    CHECK(facts_lease_is_free(&l, WALL));
    l.known = false;
    CHECK(!facts_lease_is_free(&l, WALL));
}

TEST(facts_follow_their_instance_into_a_new_configuration)
{
    struct facts *f = facts_new();
    for (uint32_t i = 0; i < 4; i++) {
        struct facts_prometheus p = { .known = true, .value = i };
        CHECK(facts_put_prometheus(f, i, &p));
    }
    struct facts_lease l = { .known = true, .absent = true };
    CHECK(facts_put_lease(f, 3, 1, &l));
    const uint32_t from[] = { 3, UINT32_MAX, 0 };
    facts_reindex(f, from, 3);
    CHECK_EQ((int)facts_prometheus(f, 0).value, 3);
    CHECK(facts_stagger(f, 0, 1).absent);
    CHECK(!facts_prometheus(f, 1).known);
    CHECK(facts_prometheus(f, 2).known);
    CHECK_EQ((int)facts_prometheus(f, 2).value, 0);
    CHECK(!facts_prometheus(f, 3).known);
    facts_reindex(f, NULL, 0);
    CHECK(!facts_prometheus(f, 0).known);
    facts_free(f);
}
