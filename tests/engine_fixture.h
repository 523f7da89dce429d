/*
 * engine_fixture: a fleet of nodes without a server, for tests of the engine: nodes are JSON,
 * decisions are made by engine_decide, and the patch that comes of one is applied to the node.
 */
#pragma once

#include "base/map.h"
#include "format/mergepatch.h"
#include "kinds/keys.h"
#include "profile/engine.h"
#include "tests/check.h"

/* 2026-01-02T03:04:05Z, a Friday */
#define ENGINE_FIXTURE_WALL SECONDS(1767323045)

struct engine_fixture {
    struct node_keep keep; /* first: the store's context */
    struct intern labels;
    struct store store;
    struct fleet *fleet;
    struct facts *facts;
    struct config config;
    struct arena a;
    usec_t wall;
    unsigned version;
};

static inline void engine_fixture_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct engine_fixture *d = ctx;
    fleet_on_change(d->fleet, item, before);
}

static inline void engine_fixture_on_gone(void *ctx, struct store_item *item)
{
    struct engine_fixture *d = ctx;
    fleet_on_gone(d->fleet, item);
}

/* `annotations`: those that are kept; the last is NULL. */
static inline void engine_fixture_begin(struct engine_fixture *d, const char *config,
                                        const char *const *annotations)
{
    *d = (struct engine_fixture){ .wall = ENGINE_FIXTURE_WALL, .version = 1 };
    struct problems problems = { .out = &d->a };
    CHECK_EQ(config_load(str_from(config), (struct ucfg_env){ 0 }, &d->a, &d->config, &problems),
             0);
    uint32_t n = 2;
    for (uint32_t i = 0; annotations != NULL && annotations[i] != NULL; i++) {
        n++;
    }
    struct str *keys = ARENA_ARRAY(&d->a, struct str, n);
    keys[0] = KEY_DATA;
    keys[1] = KEY_PROFILE_CORDON;
    for (uint32_t i = 2; i < n; i++) {
        keys[i] = str_from(annotations[i - 2]);
    }
    d->keep =
        (struct node_keep){ .labels = &d->labels, .annotations = keys, .annotation_count = n };
    intern_init(&d->labels, 3, 4);
    store_init(&d->store, &node_kind, d, 9);
    d->store.on_change = engine_fixture_on_change;
    d->store.on_gone = engine_fixture_on_gone;
    d->fleet = fleet_new(&d->store);
    d->facts = facts_new();
    fleet_configure(d->fleet, &d->config);
}

static inline void engine_fixture_end(struct engine_fixture *d)
{
    fleet_check(d->fleet);
    store_done(&d->store);
    fleet_free(d->fleet);
    facts_free(d->facts);
    CHECK_EQ(d->labels.count, 0); /* every text was given back */
    intern_done(&d->labels);
    arena_done(&d->a);
}

static inline void engine_fixture_observe(struct engine_fixture *d, struct str text)
{
    struct err err = { 0 };
    const struct jval *v = NULL;
    CHECK_EQ(json_parse(text, 0, &d->a, &v, &err), 0);
    CHECK_EQ(store_observe(&d->store, v, false, &err), 0);
}

/* `more` is what its metadata has besides, and `rest` what follows the metadata. */
static inline void engine_fixture_node(struct engine_fixture *d, const char *name, const char *more,
                                       const char *rest)
{
    engine_fixture_observe(d, arena_printf(&d->a,
                                           "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\","
                                           "\"resourceVersion\":\"%u\"%s}%s}",
                                           name, name, ++d->version, more, rest));
}

static inline const struct node *engine_fixture_find(const struct engine_fixture *d,
                                                     const char *name)
{
    const struct store_item *item = store_find(&d->store, str_from(name));
    ASSERT(item != NULL);
    return item->object;
}

static inline struct engine_input engine_fixture_input(const struct engine_fixture *d,
                                                       const char *name)
{
    return (struct engine_input){
        .config = &d->config,
        .name = store_find(&d->store, str_from(name))->name,
        .node = engine_fixture_find(d, name),
        .fleet = d->fleet,
        .facts = d->facts,
        .wall = d->wall,
    };
}

/* The node as it is after the patch. */
static inline void engine_fixture_patch(struct engine_fixture *d, const char *name,
                                        const struct engine_effect *effect)
{
    const struct node *n = engine_fixture_find(d, name);
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", str_from(name));
    jw_pair(&w, "uid", n->uid);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    for (uint32_t i = 0; i < n->label_count; i++) {
        jw_key(&w, intern_str(n->labels[i].key));
        jw_str(&w, intern_str(n->labels[i].value));
    }
    jw_obj_end(&w);
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    for (uint32_t i = 0; i < n->annotation_count; i++) {
        jw_key(&w, intern_str(n->annotations[i].key));
        jw_str(&w, n->annotations[i].value);
    }
    jw_obj_end(&w);
    jw_key(&w, STR("finalizers"));
    jw_arr(&w);
    for (uint32_t i = 0; i < n->finalizer_count; i++) {
        jw_str(&w, intern_str(n->finalizers[i]));
    }
    jw_arr_end(&w);
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_key(&w, STR("unschedulable"));
    jw_bool(&w, n->unschedulable);
    jw_obj_end(&w);
    jw_obj_end(&w);
    struct tree *doc = NULL;
    struct tree *patch = NULL;
    struct tree *after = NULL;
    struct err err = { 0 };
    CHECK_EQ(tree_parse(arena_str(&d->a, buf_str(&text)), &d->a, &doc, &err), 0);
    buf_reset(&text);
    node_edit_print_patch(&effect->edit, ++d->version, &text);
    CHECK_EQ(tree_parse(arena_str(&d->a, buf_str(&text)), &d->a, &patch, &err), 0);
    CHECK_EQ(mergepatch_apply(doc, patch, &d->a, &after, &err), 0);
    buf_reset(&text);
    tree_print(after, &text);
    engine_fixture_observe(d, arena_str(&d->a, buf_str(&text)));
}

/* Somebody sets a label, or removes it (NULL). */
static inline void engine_fixture_set_label(struct engine_fixture *d, const char *name,
                                            const char *key, const char *value)
{
    struct engine_effect by_hand = {
        .edit = { .name = str_from(name), .node = engine_fixture_find(d, name), .out = &d->a },
    };
    if (value != NULL) {
        node_edit_set_label(&by_hand.edit, str_from(key), str_from(value));
    } else {
        node_edit_remove_label(&by_hand.edit, str_from(key));
    }
    engine_fixture_patch(d, name, &by_hand);
}

/* Decides and applies until nothing changes; answers the number of patches. */
static inline uint32_t engine_fixture_settle(struct engine_fixture *d, const char *name,
                                             struct engine_progress progress,
                                             struct engine_effect *ret)
{
    for (uint32_t patches = 0;; patches++) {
        struct err err = { 0 };
        struct engine_input in = engine_fixture_input(d, name);
        in.progress = progress;
        CHECK_EQ(engine_decide(&in, &d->a, ret, &err), 0);
        if (ret->edit.edit_n == 0) {
            return patches;
        }
        ASSERT(patches < 20);
        engine_fixture_patch(d, name, ret);
    }
}
