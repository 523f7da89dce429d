#include "agent/type/reboot_mark.h"

#include "agent/type/path.h"

#define MARK_PATH STR("/run/reboot-required")
#define MARK_TEXT STR("*** System restart required ***\n") /* which motd shows */

int reboot_mark_look(struct resource_call *call, bool *ret, struct err *err)
{
    struct path_state state;
    int r = path_look(call, MARK_PATH, 0, &state, err);
    if (r == 0) {
        *ret = state.exists;
        root_place_done(&state.place);
    }
    return r;
}

int reboot_mark_set(struct resource_call *call, struct err *err)
{
    struct path_owner owner = { .uid = UINT32_MAX, .gid = UINT32_MAX };
    struct path_state state;
    int r = path_look(call, MARK_PATH, ROOT_WALK_MAKE, &state, err);
    if (r < 0) {
        return r;
    }
    struct root_file file = path_file(call, &owner, &state, MARK_TEXT);
    r = state.exists ? 0 : root_replace(call->root, &state.place, &file, err);
    root_place_done(&state.place);
    return r;
}
