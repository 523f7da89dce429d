/* symlink: a symbolic link and where it leads. */
#include "agent/type/path.h"
#include "agent/type/type.h"

#define TARGET_MAX 4095u /* PATH_MAX of Linux without its NUL */

static const struct field fields[] = {
    { "path", FIELD_PATH, .required = true, .help = "where the link is" },
    { "target", FIELD_TEXT, .required = true, .help = "where it leads; need not exist" },
    { "force", FIELD_BOOL, .initial = "false", .help = "take the place of a file that is there" },
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    struct str path = resource_value(p->resource, "path")->text;
    struct str target = resource_value(p->resource, "target")->text;
    if (target.n == 0 || target.n > TARGET_MAX || str_find_char(target, '\0') != SIZE_MAX) {
        return err_set(err, ERR_INVALID, "field 'target': found %zu bytes, want a path", target.n);
    }
    return path_prepare(p, path, err);
}

static int check_type(const struct resource *r, const struct path_state *state, struct err *err)
{
    bool good = !state->exists || S_ISLNK(state->st.st_mode) ||
                (S_ISREG(state->st.st_mode) && resource_value(r, "force")->truth);
    return good
               ? 0
               : err_set(err, ERR_INVALID, "'" STR_FMT "' is a %s; want nothing there%s",
                         STR_ARG(state->place.path), S_ISDIR(state->st.st_mode) ? "folder" : "file",
                         S_ISREG(state->st.st_mode) ? ", or 'force: true'" : "");
}

static int check(struct resource_call *call, struct err *err)
{
    struct path_state state;
    struct str was = STR("a file");
    struct str want = resource_value(call->resource, "target")->text;
    int r = path_look(call, resource_value(call->resource, "path")->text, 0, &state, err);
    if (r < 0) {
        return r;
    }
    r = check_type(call->resource, &state, err);
    if (r == 0 && state.exists && S_ISLNK(state.st.st_mode)) {
        r = root_readlink(&state.place, call->tmp, &was, err);
    }
    if (r == 0 && !state.exists) {
        resource_differs_in_state(call, /* exists= */ false);
    } else if (r == 0 && (!S_ISLNK(state.st.st_mode) || !str_eq(was, want))) {
        resource_differs(call, "target", was, want);
    }
    root_place_done(&state.place);
    return r;
}

static int apply(struct resource_call *call, struct err *err)
{
    struct path_state state;
    struct str path = resource_value(call->resource, "path")->text;
    int r = path_look(call, path, 0, &state, err);
    if (r < 0) {
        return r;
    }
    r = check_type(call->resource, &state, err);
    if (r == 0 && state.place.dir < 0) {
        r = err_set(err, ERR_NOTFOUND, "there is no folder for '" STR_FMT "'", STR_ARG(path));
    } else if (r == 0) {
        r = root_symlink(call->root, &state.place, resource_value(call->resource, "target")->text,
                         err);
    }
    root_place_done(&state.place);
    return r;
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    return path_save(call, resource_value(call->resource, "path")->text, 0, ret, err);
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    return path_restore(call, resource_value(call->resource, "path")->text, 0, original, err);
}

const struct resource_type resource_type_symlink = {
    .name = "symlink",
    .fields = FIELD_TABLE(fields),
    .identity = { "path" },
    .help = "a symbolic link",
    .example = "path: /etc/localtime, target: /usr/share/zoneinfo/UTC",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_LINK, .field = "path" } },
};
