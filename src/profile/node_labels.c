/* The profile label and the state label: parsing and names. */
#include "profile/node_labels.h"

static const struct str state_names[PROFILE_STATE_COUNT] = {
    [PROFILE_STATE_OPERATIONAL] = STR_INIT("operational"),
    [PROFILE_STATE_REQUIRED] = STR_INIT("maintenance-required"),
    [PROFILE_STATE_MAINTENANCE] = STR_INIT("in-maintenance"),
};

struct str profile_state_name(enum profile_state state)
{
    ASSERT(state < PROFILE_STATE_COUNT);
    return state_names[state];
}

bool profile_state_parse(struct str name, enum profile_state *ret)
{
    for (int i = 0; i < PROFILE_STATE_COUNT; i++) {
        if (str_eq(name, state_names[i])) {
            *ret = (enum profile_state)i;
            return true;
        }
    }
    return false;
}

bool profile_label_next(struct str value, size_t *at, struct str *ret)
{
    if (value.n == 0) {
        value = NODE_LABEL_DEFAULT_PROFILE;
    }
    if (*at > value.n) {
        return false;
    }
    struct str rest = str_sub(value, *at, SIZE_MAX);
    size_t end = str_find(rest, STR("--"));
    if (end == SIZE_MAX) {
        *ret = rest;
        *at = value.n + 1;
    } else {
        *ret = str_sub(rest, 0, end);
        *at += end + 2;
    }
    return true;
}

bool profile_label_has(struct str value, struct str name)
{
    size_t at = 0;
    struct str piece;
    while (profile_label_next(value, &at, &piece)) {
        if (str_eq(piece, name)) {
            return true;
        }
    }
    return false;
}

enum profile_state profile_state_worse(enum profile_state a, enum profile_state b)
{
    return MAX(a, b);
}
