#include "kube/store.h"

#include "base/buf.h"
#include "kube/node.h"
#include "tests/check.h"

struct fixture {
    struct node_keep keep; /* first: the store's context */
    struct intern labels;
    struct store store;
    struct arena a;
    int gone;
    int changes;
};

static const struct str kept[] = { STR_INIT("kept"), STR_INIT("also") };

static void on_gone(void *ctx, struct store_item *item)
{
    struct fixture *f = ctx;
    CHECK(item->name.n > 0);
    f->gone++;
}

static void fixture_begin(struct fixture *f)
{
    *f = (struct fixture){ .keep = { .annotations = kept, .annotation_count = 2 } };
    f->keep.labels = &f->labels;
    intern_init(&f->labels, 3, 4);
    store_init(&f->store, &node_kind, f, 9);
    f->store.on_gone = on_gone;
}

static void fixture_end(struct fixture *f)
{
    store_check(&f->store);
    store_done(&f->store);
    CHECK_EQ(f->labels.count, 0); /* every label was given back */
    intern_done(&f->labels);
    arena_done(&f->a);
}

static const struct jval *object(struct fixture *f, const char *name, unsigned version,
                                 const char *more)
{
    struct err err = { 0 };
    const struct jval *v = NULL;
    struct str text = arena_printf(
        &f->a, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"%u\"%s}}",
        name, name, version, more);
    CHECK_EQ(json_parse(text, 0, &f->a, &v, &err), 0);
    return v;
}

static void observe(struct fixture *f, const char *name, unsigned version, const char *more)
{
    struct err err = { 0 };
    CHECK_EQ(store_observe(&f->store, object(f, name, version, more), false, &err), 0);
    store_check(&f->store);
}

static struct str label(struct fixture *f, const char *name, const char *key)
{
    const struct store_item *item = store_find(&f->store, str_from(name));
    CHECK(item != NULL);
    return node_label(item->object, str_from(key));
}

TEST(store_marks_what_decisions_can_tell_apart)
{
    struct fixture f;
    fixture_begin(&f);
    observe(&f, "a", 1, ",\"labels\":{\"x\":\"1\"}");
    CHECK_EQ(f.store.dirty_count, 1);
    CHECK(store_take(&f.store) != NULL);
    CHECK(store_take(&f.store) == NULL);
    observe(&f, "a", 2, ",\"labels\":{\"x\":\"1\"},\"annotations\":{\"other\":\"y\"}");
    CHECK_EQ(f.store.dirty_count, 0); /* somebody else's annotation */
    CHECK_EQ(store_find(&f.store, STR("a"))->version, 2);
    observe(&f, "a", 3, ",\"labels\":{\"x\":\"1\"},\"annotations\":{\"kept\":\"\"}");
    CHECK_EQ(f.store.dirty_count, 1); /* an empty value is not an absent one */
    (void)store_take(&f.store);
    store_await(store_find(&f.store, STR("a")));
    observe(&f, "a", 4, ",\"labels\":{\"x\":\"1\"},\"annotations\":{\"kept\":\"\"}");
    CHECK_EQ(f.store.dirty_count, 1); /* any newer version was asked for */
    fixture_end(&f);
}

TEST(store_hands_out_what_was_postponed_when_nothing_else_is_left)
{
    struct fixture f;
    fixture_begin(&f);
    observe(&f, "a", 1, "");
    observe(&f, "b", 2, "");
    observe(&f, "c", 3, "");
    struct store_item *a = store_find(&f.store, STR("a"));
    struct store_item *b = store_find(&f.store, STR("b"));
    CHECK(store_take(&f.store) == a);
    store_postpone(&f.store, a);
    CHECK_EQ(f.store.dirty_count, 3);
    store_check(&f.store);
    CHECK(store_take(&f.store) == b);
    store_postpone(&f.store, b);
    CHECK(store_take(&f.store) == store_find(&f.store, STR("c")));
    observe(&f, "b", 4, ",\"labels\":{\"x\":\"1\"}"); /* marked: it is postponed no longer */
    CHECK(!b->later);
    CHECK_EQ(f.store.dirty_count, 2);
    CHECK(store_take(&f.store) == b);
    CHECK(store_take(&f.store) == a);
    CHECK(a->later);
    CHECK(store_take(&f.store) == NULL);
    CHECK_EQ(f.store.dirty_count, 0);
    fixture_end(&f);
}

static void on_change_count(void *ctx, struct store_item *item, const void *before)
{
    struct fixture *f = ctx;
    CHECK(item->object != before);
    f->changes++;
}

/* Volumes come and go with pods: whoever waits for them hears of it, and nothing is decided anew.
 */
TEST(store_tells_of_attached_volumes_and_marks_nothing)
{
    struct fixture f;
    fixture_begin(&f);
    f.store.on_change = on_change_count;
    observe(&f, "a", 1, "},\"status\":{\"volumesAttached\":[{\"name\":\"x\"},{\"name\":\"y\"}]");
    const struct store_item *item = store_find(&f.store, STR("a"));
    CHECK_EQ(((const struct node *)item->object)->volumes, 2);
    CHECK(store_take(&f.store) != NULL);
    CHECK_EQ(f.changes, 1);
    observe(&f, "a", 2, "},\"status\":{\"volumesAttached\":[{\"name\":\"x\"}]");
    CHECK_EQ(((const struct node *)item->object)->volumes, 1);
    CHECK_EQ(f.store.dirty_count, 0);
    CHECK_EQ(f.changes, 2);
    observe(&f, "a", 3, "},\"status\":{\"volumesAttached\":[{\"name\":\"z\"}]");
    CHECK_EQ(f.changes, 2);
    observe(&f, "a", 4, "},\"status\":{\"volumesAttached\":null");
    CHECK_EQ(((const struct node *)item->object)->volumes, 0);
    CHECK_EQ(f.changes, 3);
    CHECK_EQ(f.store.dirty_count, 0);
    fixture_end(&f);
}

TEST(store_does_not_let_an_older_event_undo_a_reply)
{
    struct fixture f;
    struct err err = { 0 };
    fixture_begin(&f);
    observe(&f, "a", 5, "");
    CHECK_EQ(store_learn(&f.store, object(&f, "a", 9, ",\"labels\":{\"x\":\"new\"}"), &err), 1);
    observe(&f, "a", 7, ",\"labels\":{\"x\":\"old\"}");
    CHECK_STR(label(&f, "a", "x"), "new");
    CHECK_EQ(store_observe(&f.store, object(&f, "a", 8, ""), true, &err), 0);
    CHECK(store_find(&f.store, STR("a")) != NULL); /* of an earlier life of that name */
    CHECK_EQ(store_learn(&f.store, object(&f, "a", 9, ""), &err), 0);
    CHECK_STR(label(&f, "a", "x"), "new");
    fixture_end(&f);
}

TEST(store_projects_a_known_version_anew_when_more_is_to_be_kept)
{
    struct fixture f;
    fixture_begin(&f);
    f.keep.annotation_count = 1;
    const char *more = ",\"annotations\":{\"also\":\"here\"}";
    observe(&f, "a", 5, more);
    (void)store_take(&f.store);
    CHECK(node_annotation(store_find(&f.store, STR("a"))->object, STR("also")).p == NULL);
    f.keep.annotation_count = 2;
    observe(&f, "a", 5, more);
    CHECK(node_annotation(store_find(&f.store, STR("a"))->object, STR("also")).p == NULL);
    store_reshape(&f.store);
    observe(&f, "a", 5, more);
    CHECK_STR(node_annotation(store_find(&f.store, STR("a"))->object, STR("also")), "here");
    CHECK_EQ(f.store.dirty_count, 1);
    (void)store_take(&f.store);
    observe(&f, "a", 5, more);
    CHECK_EQ(f.store.dirty_count, 0); /* once is enough */
    fixture_end(&f);
}

TEST(store_does_not_bring_back_what_was_deleted)
{
    struct fixture f;
    struct err err = { 0 };
    fixture_begin(&f);
    observe(&f, "a", 5, "");
    CHECK_EQ(store_observe(&f.store, object(&f, "a", 8, ""), true, &err), 0);
    CHECK_EQ(f.gone, 1);
    CHECK_EQ(store_learn(&f.store, object(&f, "a", 7, ""), &err), 0); /* the late reply */
    CHECK_EQ(store_count(&f.store), 0);
    CHECK_EQ(f.store.dirty_count, 0);
    fixture_end(&f);
}

TEST(store_list_drops_what_it_did_not_bring)
{
    struct fixture f;
    struct err err = { 0 };
    fixture_begin(&f);
    store_list_begin(&f.store);
    observe(&f, "a", 5, "");
    observe(&f, "b", 6, "");
    observe(&f, "c", 7, "");
    CHECK(store_list_end(&f.store, 10));
    CHECK_EQ(store_count(&f.store), 3);
    store_list_begin(&f.store);
    observe(&f, "b", 6, "");
    CHECK_EQ(store_learn(&f.store, object(&f, "c", 30, ""), &err), 1);
    CHECK_EQ(store_count(&f.store), 3); /* not before its end */
    CHECK(store_list_end(&f.store, 20));
    CHECK(store_find(&f.store, STR("a")) == NULL);
    CHECK(store_find(&f.store, STR("b")) != NULL);
    CHECK(store_find(&f.store, STR("c")) != NULL); /* known to be newer than the list */
    CHECK_EQ(f.gone, 1);
    fixture_end(&f);
}

TEST(store_starts_anew_when_the_servers_time_went_back)
{
    struct fixture f;
    fixture_begin(&f);
    store_list_begin(&f.store);
    observe(&f, "a", 500, "");
    CHECK(store_list_end(&f.store, 500));
    store_list_begin(&f.store);
    observe(&f, "a", 300, ",\"labels\":{\"x\":\"restored\"}");
    CHECK(!store_list_end(&f.store, 310));
    CHECK_EQ(store_count(&f.store), 0);
    store_list_begin(&f.store);
    observe(&f, "a", 300, ",\"labels\":{\"x\":\"restored\"}");
    CHECK(store_list_end(&f.store, 310));
    CHECK_STR(label(&f, "a", "x"), "restored");
    fixture_end(&f);
}

TEST(store_names_what_is_wrong_with_an_object)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { "{}", "a node without a name" },
        { "[]", "a node without a name" },
        { "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1a\"}}",
          "node 'n': resourceVersion '1a', want a number" },
        { "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":7}}",
          "node 'n': resourceVersion '', want a number" },
    };
    struct fixture f;
    fixture_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        const struct jval *v = NULL;
        CHECK_EQ(json_parse(str_from(cases[i].text), 0, &f.a, &v, &err), 0);
        CHECK_EQ(store_observe(&f.store, v, false, &err), -ERR_PROTO);
        CHECK_STR(err.msg, cases[i].message);
    }
    fixture_end(&f);
}

TEST(store_refuses_names_that_kubernetes_does_not_allow)
{
    struct fixture f;
    fixture_begin(&f);
    struct err err = { 0 };
    struct str name = arena_printf(&f.a, "%0253d", 0);
    observe(&f, name.p, 1, "");
    name = arena_printf(&f.a, "%0254d", 0);
    CHECK_EQ(store_observe(&f.store, object(&f, name.p, 2, ""), false, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "a node with a name of 254 bytes, at most 253");
    CHECK_EQ(store_learn(&f.store, object(&f, name.p, 2, ""), &err), -ERR_LIMIT);
    CHECK_EQ(store_count(&f.store), 1);
    fixture_end(&f);
}

TEST(store_counts_what_its_items_take_and_refuses_more)
{
    struct fixture f;
    fixture_begin(&f);
    struct err err = { 0 };
    observe(&f, "a", 1, "");
    size_t one = f.store.bytes;
    CHECK(one > sizeof(struct store_item));
    observe(&f, "a", 2, ",\"annotations\":{\"kept\":\"0123456789012345678901234567890123456789\"}");
    size_t more = f.store.bytes;
    CHECK(more > one);
    f.store.bytes_max = more + one - 1;
    CHECK_EQ(store_observe(&f.store, object(&f, "b", 3, ""), false, &err), -ERR_LIMIT);
    CHECK_STR(err.msg,
              arena_printf(&f.a, "the objects of kind node take more than %zu bytes of memory",
                           f.store.bytes_max));
    CHECK_EQ(store_observe(&f.store, object(&f, "b", 4, ""), true, &err), 0); /* it may go */
    CHECK_EQ(f.store.bytes, more);
    observe(&f, "a", 5, ""); /* and shrink */
    CHECK_EQ(f.store.bytes, one);
    observe(&f, "b", 6, "");
    fixture_end(&f);
}

TEST(store_takes_nothing_without_a_uid_of_its_own)
{
    static const struct {
        const char *json;
        const char *message;
    } cases[] = {
        { "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"5\"}}", "node 'b' has no uid" },
        { "{\"metadata\":{\"name\":\"b\",\"uid\":7,\"resourceVersion\":\"5\"}}",
          "node 'b' has no uid" },
        { "{\"metadata\":{\"name\":\"b\",\"uid\":\"u-a\",\"resourceVersion\":\"5\"}}",
          "node 'b' has the uid of 'a'" },
        { "{\"metadata\":{\"name\":\"..\",\"uid\":\"x\",\"resourceVersion\":\"5\"}}",
          "a node with a name that none can have: '..'" },
    };
    struct fixture f;
    fixture_begin(&f);
    observe(&f, "a", 1, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct err err = { 0 };
        const struct jval *v = NULL;
        CHECK_EQ(json_parse(str_from(cases[i].json), 0, &f.a, &v, &err), 0);
        CHECK_EQ(store_observe(&f.store, v, false, &err), -ERR_PROTO);
        CHECK_STR(err.msg, cases[i].message);
        CHECK_EQ(store_count(&f.store), 1);
    }
    check_case(-1);
    /* One that was deleted and made anew has another; then the old one is free. */
    observe(&f, "a", 2, ",\"uid\":\"u-new\"");
    observe(&f, "b", 3, ",\"uid\":\"u-a\"");
    CHECK_EQ(store_count(&f.store), 2);
    fixture_end(&f);
}

TEST(node_keeps_what_decisions_use)
{
    struct fixture f;
    struct err err = { 0 };
    const struct jval *v = NULL;
    fixture_begin(&f);
    CHECK_EQ(
        json_parse(STR("{\"metadata\":{\"name\":\"n\",\"uid\":\"u1\",\"resourceVersion\":\"3\","
                       "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"e\":\"\"},"
                       "\"annotations\":{\"also\":\"2\",\"z\":\"3\"}},"
                       "\"spec\":{\"unschedulable\":true},\"status\":{\"conditions\":["
                       "{\"type\":\"DiskPressure\",\"status\":\"False\"},"
                       "{\"type\":\"Ready\",\"status\":\"True\"}]}}"),
                   0, &f.a, &v, &err),
        0);
    CHECK_EQ(store_observe(&f.store, v, false, &err), 0);
    const struct store_item *item = store_find(&f.store, STR("n"));
    const struct node *n = item->object;
    CHECK(n->ready && n->unschedulable && n->deleting);
    CHECK_STR(n->uid, "u1");
    CHECK(node_annotation(n, STR("z")).p == NULL);
    CHECK_STR(node_annotation(n, STR("also")), "2");
    CHECK_STR(node_condition(n, STR("DiskPressure")), "False");
    CHECK(node_condition(n, STR("PIDPressure")).p == NULL);
    CHECK(node_label(n, STR("e")).p != NULL);
    CHECK(node_label(n, STR("f")).p == NULL);
    CHECK(item->memory.total < 512); /* one block of just its size */
    fixture_end(&f);
}

TEST(node_refuses_what_no_server_would_store)
{
    struct fixture f;
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    fixture_begin(&f);
    for (unsigned i = 0; i <= NODE_LABELS_MAX; i++) {
        buf_printf(&text, "%s\"l%u\":\"\"", i == 0 ? ",\"labels\":{" : ",", i);
    }
    buf_add_char(&text, '}');
    buf_add_char(&text, '\0');
    CHECK_EQ(store_observe(&f.store, object(&f, "n", 1, text.p), false, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "node 'n': 1025 labels, at most 1024 are read");
    CHECK_EQ(store_count(&f.store), 0);
    fixture_end(&f);
}

/* A server with a history, a store that hears of it late, twice and through replies: in the end it
 * knows what the server has. */
PROPERTY(store_agrees_with_the_server_in_the_end)
{
    struct fixture f;
    struct err err = { 0 };
    unsigned server[4] = { 0 }; /* version of each object; 0 = not there */
    unsigned version = 1;
    fixture_begin(&f);
    store_list_begin(&f.store);
    CHECK(store_list_end(&f.store, version));
    for (int step = 0; step < 60; step++) {
        unsigned i = rng_below(rng, 4);
        const char name[] = { (char)('a' + i), '\0' };
        unsigned before = server[i];
        bool delete = before > 0 && rng_chance(rng, 300);
        server[i] = delete ? 0 : ++version;
        const struct jval *v = object(&f, name, delete ? ++version : version, "");
        if (!delete &&before > 0 && rng_chance(rng, 300)) {
            CHECK(store_learn(&f.store, v, &err) >= 0); /* our own write, known before its event */
        }
        CHECK_EQ(store_observe(&f.store, v, delete, &err), 0);
        if (before > 0 && rng_chance(rng, 300)) {
            CHECK(store_learn(&f.store, object(&f, name, before, ""), &err) == 0); /* late */
        }
        store_check(&f.store);
    }
    for (unsigned i = 0; i < 4; i++) {
        const char name[] = { (char)('a' + i), '\0' };
        const struct store_item *item = store_find(&f.store, str_from(name));
        CHECK_EQ(item == NULL ? 0 : item->version, server[i]);
    }
    fixture_end(&f);
}

static int namespaced_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                              void **ret, struct err *err UNUSED)
{
    struct str *uid = ARENA_NEW(out, struct str);
    *uid = arena_str(out, jval_str(jval_at(object, "metadata.uid")));
    *ret = uid;
    return 0;
}

static bool namespaced_same(const void *a, const void *b)
{
    return str_eq(*(const struct str *)a, *(const struct str *)b);
}

TEST(store_names_namespaced_objects_by_namespace_and_name)
{
    static const struct store_kind kind = {
        .name = "pod", .namespaced = true, .project = namespaced_project, .same = namespaced_same
    };
    struct fixture f = { 0 };
    struct err err = { 0 };
    store_init(&f.store, &kind, &f, 9);
    observe(&f, "a", 1, ",\"namespace\":\"x\"");
    observe(&f, "a", 2, ",\"namespace\":\"y\"");
    observe(&f, "a", 3, ",\"namespace\":\"x\"");
    CHECK_EQ(store_count(&f.store), 2);
    CHECK_EQ(store_find(&f.store, STR("x/a"))->version, 3);
    CHECK_STR(store_find(&f.store, STR("y/a"))->name, "y/a");
    CHECK(store_find(&f.store, STR("a")) == NULL);
    const struct jval *gone = object(&f, "a", 4, ",\"namespace\":\"y\"");
    CHECK_EQ(store_observe(&f.store, gone, true, &err), 0);
    CHECK_EQ(store_count(&f.store), 1);
    store_done(&f.store);
    arena_done(&f.a);
}
