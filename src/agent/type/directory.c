/* directory: a folder with its owner and mode. What is in it is nobody's business here. */
#include <errno.h>

#include "agent/type/path.h"
#include "agent/type/type.h"

static const struct field fields[] = {
    { "path", FIELD_PATH, .required = true, .help = "where it is" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there; only an empty one is removed" },
    PATH_OWNER_FIELDS,
    { "parents", FIELD_BOOL, .initial = "true",
      .help = "make the folders above it, too, with mode 0755" },
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    struct str path = resource_value(p->resource, "path")->text;
    int r = path_prepare(p, path, err);
    if (r == 0) {
        path_uses_owner(p);
    }
    return r;
}

static int check_type(const struct path_state *state, struct err *err)
{
    return !state->exists || S_ISDIR(state->st.st_mode)
               ? 0
               : err_set(err, ERR_INVALID, "'" STR_FMT "' is there and is no folder",
                         STR_ARG(state->place.path));
}

static int check(struct resource_call *call, struct err *err)
{
    struct path_state state;
    struct path_owner owner;
    int r = path_look(call, resource_value(call->resource, "path")->text, 0, &state, err);
    if (r < 0) {
        return r;
    }
    r = check_type(&state, err);
    r = r < 0 ? r : path_owner(call, &owner, err);
    if (r == 0 && state.exists == resource_is_absent(call->resource)) {
        resource_differs_in_state(call, state.exists);
    } else if (r == 0 && state.exists) {
        path_compare_owner(call, &owner, &state.st);
    }
    root_place_done(&state.place);
    return r;
}

static int apply_present(struct resource_call *call, struct path_state *state, struct err *err)
{
    struct path_owner owner;
    int r = path_owner(call, &owner, err);
    if (r == 0 && !state->exists) {
        /* Closed until it has its owner, if a mode is given: after a crash the check sees that. */
        r = root_mkdir(call->root, &state->place, owner.mode_given ? 0700 : 0755, err);
    }
    if (r == 0 && (owner.uid != UINT32_MAX || owner.gid != UINT32_MAX)) {
        r = root_set_owner(call->root, &state->place, owner.uid, owner.gid, err);
    }
    return r == 0 && owner.mode_given ? root_set_mode(call->root, &state->place, owner.mode, err)
                                      : r;
}

static int apply(struct resource_call *call, struct err *err)
{
    struct path_state state;
    struct str path = resource_value(call->resource, "path")->text;
    bool make =
        !resource_is_absent(call->resource) && resource_value(call->resource, "parents")->truth;
    int r = path_look(call, path, make ? ROOT_WALK_MAKE : 0, &state, err);
    if (r < 0) {
        return r;
    }
    r = check_type(&state, err);
    if (r == 0 && resource_is_absent(call->resource)) {
        r = state.exists ? root_remove(call->root, &state.place, true, err) : 0;
    } else if (r == 0 && state.place.dir < 0) {
        r = err_set(err, ERR_NOTFOUND, "there is no folder for '" STR_FMT "'", STR_ARG(path));
    } else if (r == 0) {
        r = apply_present(call, &state, err);
    }
    root_place_done(&state.place);
    return r;
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    return path_save(call, resource_value(call->resource, "path")->text, 0, ret, err);
}

/* A folder that was there stays; one that we made goes if nobody has put anything into it. */
static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct jval *was = NULL;
    struct path_state state;
    struct str path = resource_value(call->resource, "path")->text;
    int64_t uid = 0;
    int64_t gid = 0;
    int64_t mode = 0;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    r = r < 0 ? r : path_look(call, path, 0, &state, err);
    if (r < 0) {
        return r;
    }
    bool folder = str_eq(jval_str(jval_get(was, STR("state"))), STR("folder"));
    if (!folder && state.exists) {
        r = root_remove(call->root, &state.place, true, err);
        r = r < 0 && err->os == ENOTEMPTY ? 0 : r; /* somebody uses it now: it stays */
    } else if (folder && jval_i64(jval_get(was, STR("uid")), &uid) &&
               jval_i64(jval_get(was, STR("gid")), &gid) &&
               jval_i64(jval_get(was, STR("mode")), &mode)) {
        r = state.place.dir < 0
                ? err_set(err, ERR_NOTFOUND, "the folder of '" STR_FMT "' is gone", STR_ARG(path))
                : 0;
        r = r == 0 && !state.exists ? root_mkdir(call->root, &state.place, 0700, err) : r;
        r = r < 0 ? r : root_set_owner(call->root, &state.place, (uint32_t)uid, (uint32_t)gid, err);
        r = r < 0 ? r : root_set_mode(call->root, &state.place, (uint32_t)mode, err);
    }
    root_place_done(&state.place);
    return r;
}

const struct resource_type resource_type_directory = {
    .name = "directory",
    .fields = FIELD_TABLE(fields),
    .identity = { "path" },
    .help = "a folder: whose it is and who may enter",
    .example = "path: /srv/data, owner: root, mode: '0750'",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .field = "path" } },
};
