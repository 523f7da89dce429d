#include "profile/node_labels.h"

static const struct str state_names[LABEL_STATE_COUNT] = {
    [LABEL_STATE_OPERATIONAL] = STR_INIT("operational"),
    [LABEL_STATE_REQUIRED] = STR_INIT("maintenance-required"),
    [LABEL_STATE_MAINTENANCE] = STR_INIT("in-maintenance"),
};

struct str label_state_name(enum label_state state)
{
    ASSERT(state < LABEL_STATE_COUNT);
    return state_names[state];
}

bool label_state_parse(struct str name, enum label_state *ret)
{
    for (int i = 0; i < LABEL_STATE_COUNT; i++) {
        if (str_eq(name, state_names[i])) {
            *ret = (enum label_state)i;
            return true;
        }
    }
    return false;
}

bool label_profile_next(struct str value, size_t *at, struct str *ret)
{
    if (value.n == 0) {
        value = LABEL_DEFAULT_PROFILE;
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

bool label_profile_has(struct str value, struct str name)
{
    size_t at = 0;
    struct str piece;
    while (label_profile_next(value, &at, &piece)) {
        if (str_eq(piece, name)) {
            return true;
        }
    }
    return false;
}

enum label_state label_state_worse(enum label_state a, enum label_state b)
{
    return MAX(a, b);
}
