/* timezone: whose clocks the machine follows: the link /etc/localtime, and Debian's /etc/timezone
 * where it is. */
#include "agent/type/path.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

#define LINK_PATH STR("/etc/localtime")
#define NAME_PATH STR("/etc/timezone")
#define ZONES "/usr/share/zoneinfo/"

static const struct field fields[] = {
    { "zone", FIELD_TEXT, .required = true, .help = "its IANA name, such as Europe/Berlin" },
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    struct str zone = resource_value(p->resource, "zone")->text;
    struct err ignored = { 0 };
    struct str path = arena_printf(p->out, ZONES STR_FMT, STR_ARG(zone));
    if (zone.n == 0 || zone.n > 64 || field_check_path(path, &ignored) < 0) {
        return err_set(err, ERR_INVALID,
                       "field 'zone': found '" STR_FMT "', want a name such as Europe/Berlin",
                       STR_ARG(str_sub(zone, 0, 80)));
    }
    p->resource->prepared = arena_str(p->out, path).p;
    p->resource->id = STR("timezone:"); /* a machine has one */
    return 0;
}

struct zone_state {
    struct str link; /* where it leads; empty = it is no link */
    bool file;       /* something is there that is no link */
    struct str name; /* of /etc/timezone */
    bool name_exists;
};

static int look(struct resource_call *call, struct zone_state *ret, struct err *err)
{
    struct path_state state;
    *ret = (struct zone_state){ .link = STR("") };
    int r = path_look(call, LINK_PATH, 0, &state, err);
    if (r < 0) {
        return r;
    }
    if (state.exists && S_ISLNK(state.st.st_mode)) {
        r = root_readlink(&state.place, call->tmp, &ret->link, err);
    }
    ret->file = state.exists && !S_ISLNK(state.st.st_mode);
    root_place_done(&state.place);
    r = r < 0 ? r
              : root_slurp(call->root, NAME_PATH, path_flags(call->resource), call->tmp, &ret->name,
                           &ret->name_exists, err);
    ret->name = ret->name_exists ? str_trim(ret->name) : STR("");
    return r;
}

static int zone_exists(struct resource_call *call, struct err *err)
{
    struct str text;
    bool exists;
    int r =
        root_slurp(call->root, str_from(call->resource->prepared),
                   path_flags(call->resource) | ROOT_WALK_FOLLOW, call->tmp, &text, &exists, err);
    return r < 0 || exists ? r
                           : err_set(err, ERR_NOTFOUND, "this machine knows no zone '" STR_FMT "'",
                                     STR_ARG(resource_value(call->resource, "zone")->text));
}

static int check(struct resource_call *call, struct err *err)
{
    struct str zone = resource_value(call->resource, "zone")->text;
    struct zone_state state;
    int r = zone_exists(call, err);
    r = r < 0 ? r : look(call, &state, err);
    if (r < 0) {
        return r;
    }
    struct str was = state.link;
    bool known =
        str_cut_prefix(was, STR(ZONES), &was) || str_cut_prefix(was, STR(".." ZONES), &was);
    if (!known || !str_eq(was, zone)) {
        resource_differs(call, "link", state.file ? STR("(a file)") : was, zone);
    }
    if (state.name_exists && !str_eq(state.name, zone)) {
        resource_differs(call, "name", state.name, zone);
    }
    return 0;
}

static int set_zone(struct resource_call *call, struct str target, struct str name, struct err *err)
{
    struct path_state state;
    struct path_owner owner = { .uid = UINT32_MAX, .gid = UINT32_MAX };
    int r = path_look(call, LINK_PATH, 0, &state, err);
    if (r < 0) {
        return r;
    }
    r = state.place.dir < 0 ? err_set(err, ERR_NOTFOUND, "there is no folder /etc")
                            : root_symlink(call->root, &state.place, target, err);
    root_place_done(&state.place);
    r = r < 0 ? r : path_look(call, NAME_PATH, 0, &state, err);
    if (r < 0) {
        return r;
    }
    if (state.exists && name.n > 0) {
        struct root_file file =
            path_file(call, &owner, &state, arena_printf(call->tmp, STR_FMT "\n", STR_ARG(name)));
        r = root_replace(call->root, &state.place, &file, err);
    }
    root_place_done(&state.place);
    return r;
}

static int apply(struct resource_call *call, struct err *err)
{
    int r = zone_exists(call, err);
    return r < 0 ? r
                 : set_zone(call, str_from(call->resource->prepared),
                            resource_value(call->resource, "zone")->text, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    struct zone_state state;
    int r = look(call, &state, err);
    if (r < 0) {
        return r;
    }
    jw_obj(&w);
    jw_pair(&w, "link", state.link);
    jw_pair(&w, "name", state.name);
    jw_obj_end(&w);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return 0;
}

/* Without a link there was UTC, or a file that nobody has kept: the zone stays. */
static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct jval *was = NULL;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    struct str link = jval_str(jval_get(was, STR("link")));
    return r < 0 || link.n == 0 ? r
                                : set_zone(call, link, jval_str(jval_get(was, STR("name"))), err);
}

const struct resource_type resource_type_timezone = {
    .name = "timezone",
    .fields = FIELD_TABLE(fields),
    .help = "the time zone of the machine",
    .example = "zone: Europe/Berlin",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_LINK, .path = "/etc/localtime" }, { WATCH_PATH, .path = "/etc/timezone" } },
};
