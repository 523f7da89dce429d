#include "tests/lib/check_fixture.h"

#include "kinds/keys.h"
#include "tests/check.h"

static void on_change(void *ctx, struct store_item *item, const void *before)
{
    struct check_fixture *b = ctx;
    fleet_on_change(b->fleet, item, before);
}

static void on_gone(void *ctx, struct store_item *item)
{
    struct check_fixture *b = ctx;
    fleet_on_gone(b->fleet, item);
}

static int find_zone(void *ctx, struct str name, struct arena *out, struct str *ret,
                     struct err *err)
{
    (void)ctx; /* the test data are everybody's */
    if (!str_eq(name, STR("Europe/Berlin"))) {
        return err_set(err, ERR_NOTFOUND, "there is no such zone");
    }
    *ret = arena_str(out, check_data("zone/Berlin"));
    return 0;
}

void check_fixture_configure(struct check_fixture *b, const char *checks)
{
    struct problems problems = { .out = &b->memory };
    struct str yaml = arena_printf(&b->memory,
                                   "intervals: {requeue: 30s}\ninstances:\n  check:\n%s\n"
                                   "profiles:\n- name: p\n- name: q\n",
                                   checks);
    if (config_load(yaml, (struct ucfg_env){ .zone = find_zone }, &b->memory, &b->config,
                    &problems) < 0) {
        check_fail(__FILE__, __LINE__, STR_FMT, STR_ARG(problems.items[0].text));
    }
    fleet_configure(b->fleet, &b->config);
}

void check_fixture_begin(struct check_fixture *b, const char *checks)
{
    *b = (struct check_fixture){
        .annotations = { KEY_DATA, STR("a"), STR("b"), STR("c") },
        .profile = STR("p"),
        .transition = "2022-03-01T12:00:00Z",
        .now = "2022-03-01T13:00:00Z",
    };
    b->keep = (struct node_keep){
        .labels = &b->labels,
        .annotations = b->annotations,
        .annotation_count = ARRAY_LEN(b->annotations),
    };
    intern_init(&b->labels, 1, 2);
    store_init(&b->store, &node_kind, b, 3);
    b->facts = facts_new();
    b->fleet = fleet_new(&b->store);
    b->store.on_change = on_change;
    b->store.on_gone = on_gone;
    check_fixture_configure(b, checks);
}

void check_fixture_end(struct check_fixture *b)
{
    fleet_check(b->fleet);
    store_done(&b->store);
    CHECK_EQ(fleet_count(b->fleet), 0);
    fleet_free(b->fleet);
    facts_free(b->facts);
    CHECK_EQ(b->labels.count, 0);
    intern_done(&b->labels);
    arena_done(&b->memory);
}

static void write_pairs(struct json_writer *w, struct str text)
{
    struct str pair;
    jw_obj(w);
    while (text.n > 0) {
        struct str key;
        struct str value;
        if (str_cut_prefix(text, STR("data="), &value)) {
            jw_key(w, KEY_DATA);
            jw_str(w, value);
            break;
        }
        CHECK(str_split_next(&text, ' ', &pair));
        (void)str_cut(pair, STR("="), &key, &value); /* without one it has no value */
        jw_key(w, key);
        jw_str(w, value);
    }
    jw_obj_end(w);
}

static void observe(struct check_fixture *b, const char *name, const char *labels,
                    const char *annotations, const char *conditions)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", str_from(name));
    jw_pair(&w, "uid", arena_printf(&tmp, "u-%s", name));
    jw_pair(&w, "resourceVersion", arena_printf(&tmp, "%u", (unsigned)++b->version));
    jw_key(&w, STR("labels"));
    write_pairs(&w, str_from(labels));
    jw_key(&w, STR("annotations"));
    write_pairs(&w, str_from(annotations));
    jw_obj_end(&w);
    jw_key(&w, STR("status"));
    jw_obj(&w);
    jw_key(&w, STR("conditions"));
    jw_raw(&w, str_from(conditions != NULL ? conditions : "[]"));
    jw_obj_end(&w);
    jw_obj_end(&w);
    CHECK_EQ(json_parse(buf_str(&text), 0, &tmp, &object, &err), 0);
    CHECK_EQ(store_observe(&b->store, object, /* deleted= */ false, &err), 0);
}

void check_fixture_node(struct check_fixture *b, const char *name, const char *labels,
                        const char *annotations)
{
    observe(b, name, labels, annotations, NULL);
}

void check_fixture_node_conditions(struct check_fixture *b, const char *name,
                                   const char *conditions)
{
    observe(b, name, NULL, NULL, conditions);
}

void check_fixture_remove_node(struct check_fixture *b, const char *name)
{
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct str text =
        arena_printf(&tmp, "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"%u\"}}", name,
                     (unsigned)++b->version);
    CHECK_EQ(json_parse(text, 0, &tmp, &object, &err), 0);
    CHECK_EQ(store_observe(&b->store, object, /* deleted= */ true, &err), 0);
    arena_done(&tmp);
}

uint32_t check_fixture_index(const struct check_fixture *b, const char *instance)
{
    const struct config_instances *list = &b->config.instances[PLUGIN_CHECK];
    uint32_t i = 0;
    while (i < list->n && !str_eq(list->items[i].name, str_from(instance))) {
        i++;
    }
    CHECK(i < list->n);
    return i;
}

static struct timestamp stamp_of(const char *text)
{
    struct timestamp s;
    struct err err = { 0 };
    CHECK_EQ(timestamp_parse(str_from(text), &s, &err), 0);
    return s;
}

usec_t check_fixture_wall(const char *text)
{
    return timestamp_to_usec(stamp_of(text));
}

struct check_verdict check_fixture_run(struct check_fixture *b, const char *instance,
                                       const char *node)
{
    const struct store_item *item = store_find(&b->store, str_from(node));
    CHECK(item != NULL);
    const struct node_edit edit = { .name = item->name, .node = item->object };
    struct check_input in = {
        .config = &b->config,
        .edit = &edit,
        .fleet = b->fleet,
        .facts = b->facts,
        .profile = b->profile,
        .state = b->state,
        .transition = stamp_of(b->transition),
        .now = stamp_of(b->now),
        .granted = b->granted,
        .out = &b->memory,
    };
    struct check_verdict brief;
    struct check_verdict verdict;
    check_run(&in, check_fixture_index(b, instance), &brief);
    in.explain = true;
    check_run(&in, check_fixture_index(b, instance), &verdict);
    /* Words change nothing. */
    CHECK_EQ(brief.answer, verdict.answer);
    CHECK_EQ(brief.next, verdict.next);
    CHECK_EQ(brief.want_n, verdict.want_n);
    CHECK(brief.limit_group == verdict.limit_group);
    CHECK_EQ(brief.info.n + brief.reason.n, 0);
    CHECK_STR(brief.error, verdict.error);
    struct err err = { 0 };
    const struct jval *info = NULL;
    if (verdict.info.n > 0) {
        CHECK_EQ(json_parse(verdict.info, 0, &b->memory, &info, &err), 0);
        CHECK_EQ(jval_kind(info), JOBJ);
    }
    return verdict;
}
