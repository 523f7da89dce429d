#include "kinds/reservation.h"

#include "tests/check.h"

static const char two[] =
    "[{\"requestUID\":\"u2\",\"requestName\":\"mr-b\",\"target\":\"n2\","
    "\"grantedTime\":\"2026-01-02T03:04:05Z\",\"state\":\"Approved\"},"
    "{\"requestName\":\"nobody\"},"
    "{\"requestUID\":\"u1\",\"requestName\":\"profile/os\",\"target\":\"n1\"}]";

static void read(struct arena *a, const char *json, struct reservations *ret)
{
    const struct jval *list = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(str_from(json), 0, a, &list, &err), 0);
    reservations_parse(list, a, ret);
}

TEST(reservations_read_back_what_they_wrote)
{
    struct arena a = { 0 };
    struct reservations r;
    struct reservations again;
    read(&a, two, &r);
    CHECK_EQ(r.n, 2);
    CHECK_EQ(r.targets, 2);
    struct str text = tree_json(&a, reservations_tree(&r, &a));
    CHECK_STR(text, "[{\"requestUID\":\"u2\",\"requestName\":\"mr-b\",\"target\":\"n2\","
                    "\"grantedTime\":\"2026-01-02T03:04:05Z\",\"state\":\"Approved\"},"
                    "{\"requestUID\":\"u1\",\"requestName\":\"profile/os\",\"target\":\"n1\"}]");
    read(&a, text.p, &again);
    CHECK_STR(tree_json(&a, reservations_tree(&again, &a)), text);
    arena_done(&a);
}

TEST(reservations_are_found_by_uid_and_by_target)
{
    struct arena a = { 0 };
    struct reservations r;
    read(&a, two, &r);
    CHECK_STR(reservations_find(&r, STR("u1"))->name, "profile/os");
    CHECK_STR(reservations_find(&r, STR("u2"))->target, "n2");
    CHECK_EQ(reservations_find(&r, STR("u1"))->granted, USEC_NEVER);
    CHECK(reservations_find(&r, STR("u3")) == NULL);
    CHECK(reservations_find(&r, STR("")) == NULL);
    CHECK(reservations_has_target(&r, STR("n1")) && reservations_has_target(&r, STR("n2")));
    CHECK(!reservations_has_target(&r, STR("n3")));
    read(&a, "null", &r);
    CHECK_EQ(r.n, 0);
    CHECK(reservations_find(&r, STR("u1")) == NULL && !reservations_has_target(&r, STR("n1")));
    CHECK_STR(tree_json(&a, reservations_tree(&r, &a)), "[]");
    arena_done(&a);
}

/* Whatever is in it: each is found, and nothing else, and targets count once. */
PROPERTY(reservations_find_each_of_many)
{
    struct arena a = { 0 };
    uint32_t n = rng_below(rng, 40);
    struct reservation *items = ARENA_ARRAY(&a, struct reservation, n + 1);
    bool seen[8] = { false };
    uint32_t targets = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t target = rng_below(rng, 8);
        items[i] = (struct reservation){ .uid = arena_printf(&a, "u%u", i * 7919 % 1000),
                                         .target = arena_printf(&a, "t%u", target),
                                         .granted = USEC_NEVER };
        targets += seen[target] ? 0 : 1;
        seen[target] = true;
    }
    struct reservations r;
    reservations_index(&r, items, n, &a);
    CHECK_EQ(r.targets, targets);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(reservations_find(&r, items[i].uid) == &items[i]);
    }
    for (uint32_t i = 0; i < 8; i++) {
        CHECK(reservations_has_target(&r, arena_printf(&a, "t%u", i)) == seen[i]);
    }
    CHECK(reservations_find(&r, STR("u")) == NULL);
    arena_done(&a);
}
