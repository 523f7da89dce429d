/* What is read can be written, unless Go would refuse the time; what is written reads back the
 * same, and the engine, given any annotation, answers with one it then leaves alone. */
#include "profile/data.h"
#include "profile/engine.h"
#include "tests/fuzz/target.h"

static void fuzz_engine(struct str text, struct arena *a)
{
    struct err err = { 0 };
    struct engine_effect effect;
    const struct engine_node node = { .data = text };
    if (engine_decide(&engine_default, &node, SECONDS(1767323045), a, &effect, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    const struct engine_node after = {
        .state_label = effect.state,
        .data = effect.set_data ? effect.data : text,
    };
    struct engine_effect again;
    int r = engine_decide(&engine_default, &after, SECONDS(1767399999), a, &again, &err);
    ASSERT(r == 0 && !again.set_state && !again.set_data);
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
    struct data d;
    fuzz_engine(text, &a);
    if (data_parse(text, &a, &d, &err) < 0) {
        ASSERT(
            str_starts(str_from(err.msg), STR("failed to parse json value in data annotation: ")));
        return;
    }
    for (uint32_t i = 1; i < d.profile_count; i++) {
        ASSERT(str_cmp(d.profiles[i - 1].name, d.profiles[i].name) < 0);
    }
    if (data_print(&d, &out, &err) < 0) {
        return; /* an offset that Go reads and does not write */
    }
    int r = data_parse(buf_str(&out), &a, &d, &err);
    ASSERT(r == 0);
    r = data_print(&d, &again, &err);
    ASSERT(r == 0 && str_eq(buf_str(&out), buf_str(&again)));
}
