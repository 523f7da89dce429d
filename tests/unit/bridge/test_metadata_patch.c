#include "bridge/metadata_patch.h"

#include "format/json.h"
#include "tests/check.h"

static void check_print(const struct meta_patch *e, uint64_t version, const char *wanted)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    meta_patch_print(e, version, &out);
    CHECK_STR(buf_str(&out), wanted);
}

TEST(meta_patch_names_exactly_the_keys_that_change)
{
    struct meta_patch e = { 0 };
    check_print(&e, 7, "{\"metadata\":{\"resourceVersion\":\"7\"}}");
    meta_patch_set(&e, false, STR("drydock.dev/a"), STR("x \"y\""));
    check_print(&e, 7,
                "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"drydock.dev/a\":\"x "
                "\\\"y\\\"\"}}}");
    meta_patch_remove(&e, true, STR("l"));
    meta_patch_set(&e, true, STR("m"), STR(""));
    check_print(&e, 0,
                "{\"metadata\":{\"labels\":{\"l\":null,\"m\":\"\"},\"annotations\":{\"drydock.dev/"
                "a\":\"x \\\"y\\\"\"}}}");
}

TEST(meta_patch_carries_the_largest_version_there_is)
{
    struct meta_patch e = { 0 };
    meta_patch_remove(&e, true, STR("l"));
    check_print(&e, UINT64_MAX,
                "{\"metadata\":{\"resourceVersion\":\"18446744073709551615\",\"labels\":{\"l\":"
                "null}}}");
}

TEST(meta_patch_keeps_the_newer_value_of_a_key)
{
    struct meta_patch e = { 0 };
    meta_patch_set(&e, true, STR("k"), STR("1"));
    meta_patch_set(&e, false, STR("k"), STR("2")); /* an annotation is another key */
    meta_patch_set(&e, true, STR("k"), STR("3"));
    CHECK_EQ(e.n, 2);
    CHECK_STR(meta_patch_find(&e, true, STR("k"))->value, "3");
    CHECK_STR(meta_patch_find(&e, false, STR("k"))->value, "2");
    meta_patch_remove(&e, true, STR("k"));
    CHECK_EQ(e.n, 2);
    CHECK(meta_patch_find(&e, true, STR("k"))->remove);
    meta_patch_set(&e, true, STR("k"), STR("4"));
    CHECK(!meta_patch_find(&e, true, STR("k"))->remove);
    CHECK(meta_patch_find(&e, true, STR("other")) == NULL);
}

/* Whatever the values hold, the patch is JSON that says what the edit says. */
PROPERTY(meta_patch_prints_what_it_was_told)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct meta_patch e = { 0 };
    for (uint32_t i = 0; i < META_PATCH_MAX; i++) {
        char bytes[4];
        for (size_t b = 0; b < sizeof(bytes); b++) {
            bytes[b] = (char)rng_below(rng, 128);
        }
        struct str value = arena_str(&a, (struct str){ .p = bytes, .n = rng_below(rng, 5) });
        struct str key = arena_printf(&a, "k%u", rng_below(rng, 12));
        if (rng_chance(rng, 300)) {
            meta_patch_remove(&e, rng_chance(rng, 500), key);
        } else {
            meta_patch_set(&e, rng_chance(rng, 500), key, value);
        }
    }
    meta_patch_print(&e, 1, &out);
    const struct jval *patch = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(buf_str(&out), 0, &a, &patch, &err), 0);
    uint32_t members = 0;
    for (int label = 0; label < 2; label++) {
        const struct jval *map =
            jval_at(patch, label == 1 ? "metadata.labels" : "metadata.annotations");
        JVAL_EACH (map, v) {
            const struct meta_patch_key *k = meta_patch_find(&e, label == 1, jval_key(v));
            CHECK(k != NULL);
            CHECK_EQ(k->remove, jval_kind(v) == JNULL);
            CHECK(k->remove || str_eq(k->value, jval_str(v)));
            members++;
        }
    }
    CHECK_EQ(members, e.n);
}
