#include "sandbox/apiserver/storage.h"

#include "sandbox/apiserver/continue_token.h"
#include "tests/check.h"

/* A version of an object of store 0. */
static struct object *make(struct storage *st, struct arena *a, const char *namespace,
                           const char *name, const char *value)
{
    struct tree *t = tree_obj(a);
    tree_set(a, t, STR("kind"), tree_str(a, STR("ConfigMap")));
    tree_set(a, t, STR("apiVersion"), tree_str(a, STR("v1")));
    tree_set_at(a, t, "metadata.name", tree_str(a, str_from(name)));
    if (namespace[0] != '\0') {
        tree_set_at(a, t, "metadata.namespace", tree_str(a, str_from(namespace)));
    }
    tree_set_at(a, t, "data.value", tree_str(a, str_from(value)));
    return object_new(0, t, storage_next_rv(st), STR("test"), a);
}

TEST(object_shares_its_text_and_knows_its_parts)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(storage_done)
    struct storage st;
    storage_init(&st, 41, NULL, NULL);
    struct object *o = make(&st, &a, "ns", "a", "line\n\"quoted\"");
    CHECK_STR(o->key, "ns/a");
    CHECK_STR(o->name, "a");
    CHECK_STR(str_sub(o->json, o->rv_at, o->rv_n), "42");
    CHECK(str_starts(str_sub(o->json, o->head, o->json.n), STR("\"metadata\":{")));
    CHECK_STR(jval_str(jval_at(o->root, "data.value")), "line\n\"quoted\"");
    struct object *next = object_with_rv(o, 1234, &a);
    CHECK_STR(jval_str(jval_at(next->root, "metadata.resourceVersion")), "1234");
    CHECK_STR(jval_str(jval_at(next->root, "data.value")), "line\n\"quoted\"");
    object_unref(next);
    object_unref(o);
}

TEST(storage_orders_keys_as_etcd_does)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(storage_done)
    struct storage st;
    storage_init(&st, 0, NULL, NULL);
    static const char *const names[][2] = {
        { "a", "z" }, { "a-b", "c" }, { "a", "b" }, { "b", "a" }
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        storage_put(&st, make(&st, &a, names[i][0], names[i][1], ""));
    }
    const struct object_store *s = storage_get_store(&st, 0);
    static const char *const want[] = { "a-b/c", "a/b", "a/z", "b/a" };
    CHECK_EQ(s->n, 4);
    for (uint32_t i = 0; i < s->n; i++) {
        CHECK_STR(s->items[i]->key, want[i]);
    }
    CHECK_STR(storage_find(&st, 0, STR("a"), STR("z"))->key, "a/z");
    CHECK(storage_find(&st, 0, STR("a"), STR("c")) == NULL);
    storage_check(&st);
}

/* Whatever happened since, a list at an older version is what it was. */
PROPERTY(storage_lists_older_versions_as_they_were)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(storage_done)
    struct storage st;
    storage_init(&st, 10, NULL, NULL);
    struct object_store *s = storage_get_store(&st, 0);
    uint64_t versions[40];
    struct str contents[40];
    for (uint32_t step = 0; step < ARRAY_LEN(versions); step++) {
        char name[2] = { (char)('a' + (char)rng_below(rng, 6)), '\0' };
        struct object *have = storage_find(&st, 0, STR(""), str_from(name));
        if (have != NULL && rng_chance(rng, 400)) {
            storage_delete(&st, object_with_rv(have, storage_next_rv(&st), &a));
        } else {
            storage_put(&st, make(&st, &a, "", name, "x"));
        }
        CLEANUP(buf_done)
        struct buf text = { 0 };
        for (uint32_t i = 0; i < s->n; i++) {
            buf_add(&text, s->items[i]->json);
        }
        versions[step] = st.rv;
        contents[step] = arena_str(&a, buf_str(&text));
    }
    for (uint32_t step = 0; step < ARRAY_LEN(versions); step++) {
        uint32_t n;
        struct object **items = object_store_at(s, versions[step], &a, &n);
        CLEANUP(buf_done)
        struct buf text = { 0 };
        for (uint32_t i = 0; i < n; i++) {
            buf_add(&text, items[i]->json);
        }
        CHECK_STR(buf_str(&text), contents[step]);
    }
    storage_check(&st);
}

TEST(storage_forgets_what_the_ring_cannot_hold)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(storage_done)
    struct storage st;
    storage_init(&st, 0, NULL, NULL);
    struct object_store *s = storage_get_store(&st, 0);
    for (uint32_t i = 0; i < STORAGE_HISTORY_MAX + 1; i++) {
        storage_put(&st, make(&st, &a, "", "one", ""));
        arena_reset(&a);
    }
    CHECK_EQ(s->compacted, STORAGE_HISTORY_MAX / 8);
    CHECK_EQ(object_store_change(s, object_store_first_after(s, s->compacted))->now->rv,
             s->compacted + 1);
    storage_compact(&st);
    CHECK_EQ(s->compacted, st.rv);
    CHECK_EQ(object_store_first_after(s, st.rv), s->end);
    storage_check(&st);
}

TEST(page_tokens_read_back_what_they_were_written_from)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct continue_token page = { .rv = 77, .start = { .p = "ns/n1\0", .n = 6 } };
    struct continue_token back;
    struct err err = { 0 };
    CHECK_EQ(continue_token_parse(continue_token_print(&page, &a), &a, &back, &err), 0);
    CHECK_EQ(back.rv, 77);
    CHECK_STR(back.start, page.start);
    CHECK_EQ(continue_token_parse(STR("abc"), &a, &back, &err), -ERR_INVALID);
    CHECK_EQ(continue_token_parse(STR("a b"), &a, &back, &err), -ERR_INVALID);
    CHECK_EQ(continue_token_parse(STR(""), &a, &back, &err), -ERR_INVALID);
}
