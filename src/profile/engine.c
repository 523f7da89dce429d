#include "profile/engine.h"

static const struct engine_profile default_profile = { .name = STR_INIT("default") };

const struct engine_config engine_default = {
    .profiles = &default_profile,
    .profile_count = 1,
};

static bool engine_knows(const struct engine_config *config, struct str name)
{
    for (uint32_t i = 0; i < config->profile_count; i++) {
        if (str_eq(config->profiles[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* Drops entries of profiles that the label names no more, whatever the configuration says: one that
 * is only missing there resumes when it returns. Makes entries for those that are new. */
static void engine_tend_profiles(const struct engine_config *config, struct str label, usec_t wall,
                                 struct arena *out, struct data *data)
{
    for (uint32_t i = data->profile_count; i > 0; i--) {
        if (!label_profile_has(label, data->profiles[i - 1].name)) {
            data_remove(data, &data->profiles[i - 1]);
        }
    }
    size_t at = 0;
    struct str name;
    while (label_profile_next(label, &at, &name)) {
        if (engine_knows(config, name) && data_find(data, name) == NULL) {
            struct data_profile *p = data_make(data, out, name);
            p->transition = stamp_from_usec(wall);
            p->current = label_state_name(LABEL_STATE_OPERATIONAL);
            p->previous = p->current;
        }
    }
}

/* A profile with empty states has nothing to enter, check or notify: it stays where it is, and has
 * thereby been in its state once. */
static int engine_apply(struct data_profile *p, enum label_state *node_state, struct err *err)
{
    if (p->null) {
        return err_set(err, ERR_INVALID, "could not find profile '" STR_FMT "' in state data",
                       STR_ARG(p->name));
    }
    enum label_state state;
    if (!label_state_parse(p->current, &state)) {
        return err_set(err, ERR_INVALID,
                       "failed to create internal state from unknown label value: node state "
                       "\"" STR_FMT "\" is not known",
                       STR_ARG(str_sub(p->current, 0, 64)));
    }
    p->previous = p->current;
    *node_state = label_state_worse(*node_state, state);
    return 0;
}

int engine_decide(const struct engine_config *config, const struct engine_node *node, usec_t wall,
                  struct arena *out, struct engine_effect *ret, struct err *err)
{
    struct data data;
    int r = data_parse(node->data, out, &data, err);
    if (r < 0) {
        return r;
    }
    engine_tend_profiles(config, node->profile_label, wall, out, &data);
    enum label_state state = LABEL_STATE_OPERATIONAL;
    size_t at = 0;
    struct str name;
    while (label_profile_next(node->profile_label, &at, &name)) {
        if (engine_knows(config, name)) {
            struct data_profile *p = data_find(&data, name);
            ASSERT(p != NULL);
            r = engine_apply(p, &state, err);
            if (r < 0) {
                return r;
            }
        }
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    r = data_print(&data, &text, err);
    if (r < 0) {
        return r;
    }
    struct engine_effect effect = { .state = label_state_name(state), .again = USEC_NEVER };
    effect.set_state = node->state_label.p == NULL || !str_eq(node->state_label, effect.state);
    effect.set_data = node->data.p == NULL || !str_eq(node->data, buf_str(&text));
    if (effect.set_data) {
        effect.data = arena_str(out, buf_str(&text));
    }
    *ret = effect;
    return 0;
}
