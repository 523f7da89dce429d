/* unit: a file of systemd below /etc/systemd/system, a unit of its own or a drop-in, and that the
 * manager has read it. */
#include "agent/type/path.h"
#include "agent/type/type.h"
#include "agent/type/unit_ask.h"

#define FOLDER "/etc/systemd/system/"
#define RELOAD_TIME SECONDS(90)

static const struct field fields[] = {
    { "unit", FIELD_TEXT, .required = true, .help = "its name; .service need not be written" },
    { "content", FIELD_TEXT, .help = "the whole unit" },
    { "dropin", FIELD_OBJECT,
      .help = "or a part that is added to a unit: its `name`, and its `content`" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
};

struct unit {
    struct str name;
    struct str path;
    struct str content;
    bool absent;
};

static bool name_is_good(struct str name)
{
    bool good = name.n > 0 && name.n <= 128 && name.p[0] != '.';
    for (size_t i = 0; i < name.n && good; i++) {
        good = name.p[i] > ' ' && name.p[i] != '/' && name.p[i] != 0x7f;
    }
    return good;
}

static int read_dropin(struct resource_prepare *p, struct unit *u, bool *ret_given, struct err *err)
{
    const struct field_value *dropin = resource_value(p->resource, "dropin");
    const struct jval *object;
    int r = json_parse(dropin->text, 0, p->out, &object, err);
    if (r < 0) {
        return r;
    }
    JVAL_EACH (object, v) {
        if (!str_eq(jval_key(v), STR("name")) && !str_eq(jval_key(v), STR("content"))) {
            return err_set(err, ERR_INVALID, "field 'dropin': unknown field '" STR_FMT "'",
                           STR_ARG(str_sub(jval_key(v), 0, 64)));
        }
    }
    struct str name = jval_str(jval_get(object, STR("name")));
    (void)str_cut_suffix(name, STR(".conf"), &name); /* need not be written */
    if (!name_is_good(name)) {
        return err_set(err, ERR_INVALID, "field 'dropin': field 'name': want the name of a file");
    }
    *ret_given = jval_kind(jval_get(object, STR("content"))) == JSTR;
    u->content = jval_str(jval_get(object, STR("content")));
    u->path =
        arena_printf(p->out, FOLDER STR_FMT ".d/" STR_FMT ".conf", STR_ARG(u->name), STR_ARG(name));
    return 0;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct unit *u = ARENA_NEW(p->out, struct unit);
    struct str name = resource_value(r, "unit")->text;
    bool dropin = resource_value(r, "dropin")->given;
    bool given = resource_value(r, "content")->given;
    if (!unit_full_name(name, p->out, &u->name)) {
        return err_set(err, ERR_INVALID,
                       "field 'unit': found '" STR_FMT "', want a name such as backup.timer",
                       STR_ARG(str_sub(name, 0, 64)));
    }
    if (dropin && given) {
        return err_set(err, ERR_INVALID, "fields 'content' and 'dropin': want one of them");
    }
    u->content = resource_value(r, "content")->text;
    u->path = arena_printf(p->out, FOLDER STR_FMT, STR_ARG(u->name));
    u->absent = resource_is_absent(r);
    int result = dropin ? read_dropin(p, u, &given, err) : 0;
    if (result < 0) {
        return result;
    }
    if (given == u->absent) {
        return err_set(err, ERR_INVALID,
                       "field 'content': want it, and with 'state: absent' want it not");
    }
    p->resource->prepared = u;
    p->resource->id =
        arena_printf(p->out, "unit:" STR_FMT, STR_ARG(str_sub(u->path, strlen(FOLDER), SIZE_MAX)));
    p->resource->provides = arena_printf(p->out, "path:" STR_FMT, STR_ARG(u->path));
    resource_uses_parent(p, u->path);
    return 0;
}

static int check_file(struct resource_call *call, const struct unit *u, struct err *err)
{
    struct str text = STR("");
    bool exists;
    int r =
        root_slurp(call->root, u->path, path_flags(call->resource), call->tmp, &text, &exists, err);
    if (r == 0 && exists == u->absent) {
        resource_differs_in_state(call, exists);
    } else if (r == 0 && exists) {
        path_compare_content(call, text, u->content);
    }
    return r;
}

/* A crash between the file and the reload leaves a manager that has not read it: it says so. */
static int check(struct resource_call *call, struct err *err)
{
    const struct unit *u = call->resource->prepared;
    const struct unit_reply *found;
    int r = unit_look(call, u->name, &found, err);
    if (r != 0) {
        return r;
    }
    if (found->need_reload) {
        resource_differs(call, "files", STR("changed"), STR("read"));
    }
    return check_file(call, u, err);
}

static enum unit_verb next(struct resource_call *call, const struct unit_reply *found,
                           const void *ctx)
{
    (void)call; /* each order is given once */
    (void)found;
    (void)ctx;
    return UNIT_RELOAD_MANAGER;
}

static int write_file(struct resource_call *call, const struct unit *u, struct err *err)
{
    struct path_owner owner = { .uid = UINT32_MAX, .gid = UINT32_MAX };
    return path_put(call, u->path, &owner, u->absent ? STR("") : u->content, !u->absent, err);
}

static int apply(struct resource_call *call, struct err *err)
{
    const struct unit *u = call->resource->prepared;
    int r = call->step == 0 ? write_file(call, u, err) : 0;
    return r < 0 ? r : unit_run_all(call, u->name, RELOAD_TIME, next, u, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct unit *u = call->resource->prepared;
    return path_save(call, u->path, 0, ret, err);
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct unit *u = call->resource->prepared;
    int r = call->step == 0 ? path_restore(call, u->path, 0, original, err) : 0;
    return r < 0 ? r : unit_run_all(call, u->name, RELOAD_TIME, next, u, err);
}

static void watch_more(const struct resource *r, watch_add_fn add, void *ctx)
{
    const struct unit *u = r->prepared;
    add(ctx, WATCH_PATH, u->path);
}

const struct resource_type resource_type_unit = {
    .name = "unit",
    .fields = FIELD_TABLE(fields),
    .help = "a unit of systemd below /etc/systemd/system, or a drop-in for one; the manager reads "
            "it, and a `service` of that name comes after it",
    .example =
        "unit: kubelet, dropin: {name: 20-limits, content: \"[Service]\\nLimitNOFILE=65536\\n\"}",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch_more = watch_more,
};
