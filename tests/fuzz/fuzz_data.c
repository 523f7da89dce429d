/* What is read can be written, unless Go would refuse the time; what is written reads back the
 * same, and the engine, given any annotation, answers with one it then leaves alone. */
#include "profile/node_data.h"
#include "kinds/keys.h"
#include "profile/engine.h"
#include "tests/fuzz/target.h"

static struct str edited(const struct engine_effect *effect, enum node_edit_kind kind,
                         struct str key, struct str otherwise)
{
    for (uint32_t i = 0; i < effect->edit.edit_n; i++) {
        const struct node_edit_item *e = &effect->edit.edits[i];
        if (e->kind == kind && str_eq(e->key, key)) {
            return e->value;
        }
    }
    return otherwise;
}

static void fuzz_engine(struct str text, struct arena *a)
{
    struct err err = { 0 };
    struct engine_effect effect;
    struct config config;
    struct problems problems = { .out = a };
    struct intern names;
    intern_init(&names, 1, 2);
    int r = config_load(STR("intervals: {requeue: 30s}"), (struct ucfg_env){ 0 }, a, &config,
                        &problems);
    ASSERT(r == 0);
    struct node_annotation data = { .key = intern_take(&names, KEY_DATA), .value = text };
    struct node node = { .annotations = &data, .annotation_count = 1 };
    struct engine_input in = {
        .config = &config,
        .name = STR("n"),
        .node = &node,
        .wall = SECONDS(1767323045),
    };
    if (engine_decide(&in, a, &effect, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
    } else {
        struct node_label state = {
            .key = intern_take(&names, KEY_STATE),
            .value = intern_take(&names, edited(&effect, NODE_EDIT_LABEL, KEY_STATE, STR("none"))),
        };
        data.value = edited(&effect, NODE_EDIT_ANNOTATION, KEY_DATA, text);
        node.labels = &state;
        node.label_count = 1;
        in.wall = SECONDS(1767399999);
        r = engine_decide(&in, a, &effect, &err);
        ASSERT(r == 0 && effect.edit.edit_n == 0);
    }
    intern_done(&names);
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CLEANUP(buf_done)
    struct buf again = { 0 };
    struct err err = { 0 };
    struct node_data d;
    fuzz_engine(text, &a);
    if (node_data_parse(text, &a, &d, &err) < 0) {
        ASSERT(
            str_starts(str_from(err.msg), STR("failed to parse json value in data annotation: ")));
        return;
    }
    for (uint32_t i = 1; i < d.profile_count; i++) {
        ASSERT(str_cmp(d.profiles[i - 1].name, d.profiles[i].name) < 0);
    }
    if (node_data_print(&d, &out, &err) < 0) {
        return; /* an offset that Go reads and does not write */
    }
    int r = node_data_parse(buf_str(&out), &a, &d, &err);
    ASSERT(r == 0);
    r = node_data_print(&d, &again, &err);
    ASSERT(r == 0 && str_eq(buf_str(&out), buf_str(&again)));
}
