/* group: a group of /etc/group, changed by the machine's own groupadd, groupmod and gpasswd, which
 * know its locks and gshadow. */
#include "agent/accounts.h"
#include "agent/type/path.h"
#include "agent/type/tool.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

static const struct field fields[] = {
    { "group", FIELD_TEXT, .required = true, .help = "its name" },
    { "gid", FIELD_INT, .help = "its number; nothing: whichever it has" },
    { "members", FIELD_TEXTS, .help = "users that are in it; others may be, too" },
    { "system", FIELD_BOOL, .initial = "false",
      .help = "a new one gets a number of the system's range" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
};

/* What is to be: of the resource, or of what was there before it. */
struct wanted {
    bool absent;
    bool gid_given;
    uint32_t gid;
    const struct str *join; /* must be in it */
    uint32_t join_n;
    const struct str *leave; /* must not */
    uint32_t leave_n;
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str name = resource_value(r, "group")->text;
    const struct field_value *gid = resource_value(r, "gid");
    const struct field_value *members = resource_value(r, "members");
    if (!account_name_is_good(name)) {
        return err_set(err, ERR_INVALID, "field 'group': found '" STR_FMT "', want %s",
                       STR_ARG(str_sub(name, 0, 64)), ACCOUNT_NAME_WANTED);
    }
    if (gid->given && !account_number_is_good(gid->number)) {
        return err_set(err, ERR_INVALID, "field 'gid': found %lld, want %s", (long long)gid->number,
                       ACCOUNT_NUMBER_WANTED);
    }
    struct wanted *w = ARENA_NEW(p->out, struct wanted);
    *w = (struct wanted){ .absent = resource_is_absent(r),
                          .gid_given = gid->given,
                          .gid = (uint32_t)gid->number,
                          .join = members->items,
                          .join_n = members->item_n };
    if (w->absent && (gid->given || members->given)) {
        return err_set(err, ERR_INVALID, "field 'state': found 'absent' beside 'gid' or 'members'");
    }
    for (uint32_t i = 0; i < members->item_n; i++) {
        if (!account_name_is_good(members->items[i])) {
            return err_set(err, ERR_INVALID, "field 'members': found '" STR_FMT "', want %s",
                           STR_ARG(str_sub(members->items[i], 0, 64)), ACCOUNT_NAME_WANTED);
        }
        resource_uses(p, "user", members->items[i]);
    }
    p->resource->prepared = w;
    p->resource->provides = arena_printf(p->out, "group:" STR_FMT, STR_ARG(name));
    return 0;
}

static struct str name_of(const struct resource_call *call)
{
    return resource_value(call->resource, "group")->text;
}

static int look(struct resource_call *call, struct account_group *ret, bool *ret_exists,
                struct err *err)
{
    struct str text = STR("");
    bool exists;
    *ret = (struct account_group){ 0 };
    int r = root_slurp(call->root, STR("/etc/group"), 0, call->tmp, &text, &exists, err);
    *ret_exists = r == 0 && exists && account_group_find(text, name_of(call), ret);
    return r;
}

static int check(struct resource_call *call, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    struct account_group group;
    bool exists;
    int r = look(call, &group, &exists, err);
    if (r < 0) {
        return r;
    }
    if (exists == w->absent) {
        resource_differs_in_state(call, exists);
        return 0;
    }
    if (w->gid_given && w->gid != group.gid) {
        resource_differs(call, "gid", arena_printf(call->tmp, "%u", group.gid),
                         arena_printf(call->tmp, "%u", w->gid));
    }
    for (uint32_t i = 0; i < w->join_n; i++) {
        if (!account_group_has(&group, w->join[i])) {
            resource_differs(call, "members", group.members, w->join[i]);
        }
    }
    return 0;
}

static void ask_new(struct resource_call *call, const struct wanted *w, struct tool *ret)
{
    tool_add(ret, STR("/usr/sbin/groupadd"));
    if (resource_value(call->resource, "system")->truth) {
        tool_add(ret, STR("-r"));
    }
    if (w->gid_given) {
        tool_add_option(ret, STR("-g"), arena_printf(call->tmp, "%u", w->gid));
    }
    tool_add(ret, name_of(call));
}

/* The first of `names` that is in the group, or is not; NULL when there is none. */
static const struct str *find_member(const struct account_group *group, const struct str *names,
                                     uint32_t n, bool in)
{
    for (uint32_t i = 0; i < n; i++) {
        if (account_group_has(group, names[i]) == in) {
            return &names[i];
        }
    }
    return NULL;
}

static int next(struct resource_call *call, const void *ctx, struct tool *ret, struct err *err)
{
    const struct wanted *w = ctx;
    struct account_group group;
    bool exists;
    int r = look(call, &group, &exists, err);
    if (r < 0 || (w->absent && !exists)) {
        return r;
    }
    const struct str *join = find_member(&group, w->join, w->join_n, /* in= */ false);
    const struct str *leave = find_member(&group, w->leave, w->leave_n, /* in= */ true);
    if (w->absent) {
        tool_add(ret, STR("/usr/sbin/groupdel"));
        tool_add(ret, name_of(call));
    } else if (!exists) {
        ask_new(call, w, ret);
    } else if (w->gid_given && w->gid != group.gid) {
        tool_add(ret, STR("/usr/sbin/groupmod"));
        tool_add_option(ret, STR("-g"), arena_printf(call->tmp, "%u", w->gid));
        tool_add(ret, name_of(call));
    } else if (join != NULL || leave != NULL) {
        tool_add(ret, STR("/usr/bin/gpasswd"));
        tool_add_option(ret, join != NULL ? STR("-a") : STR("-d"), join != NULL ? *join : *leave);
        tool_add(ret, name_of(call));
    }
    return 0;
}

static int apply(struct resource_call *call, struct err *err)
{
    return tool_run_all(call, next, call->resource->prepared, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    struct account_group group;
    bool exists;
    int r = look(call, &group, &exists, err);
    jw_obj(&w);
    jw_pair_bool(&w, "exists", exists);
    jw_pair_i64(&w, "gid", group.gid);
    jw_pair(&w, "members", group.members);
    jw_obj_end(&w);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return r;
}

/* The members that were in it before: of a group that is gone all of them, otherwise only those
 * that we took part in. */
static void want_members(struct resource_call *call, struct str members, struct wanted *w)
{
    const struct wanted *own = call->resource->prepared;
    struct account_group before = { .members = members };
    struct str *join = ARENA_ARRAY(call->tmp, struct str, members.n + 1);
    struct str *leave = ARENA_ARRAY(call->tmp, struct str, own->join_n + 1);
    struct str name;
    while (own->absent && str_split_next(&members, ',', &name)) {
        if (name.n > 0) {
            join[w->join_n++] = name;
        }
    }
    for (uint32_t i = 0; i < own->join_n; i++) {
        if (!account_group_has(&before, own->join[i])) {
            leave[w->leave_n++] = own->join[i];
        }
    }
    w->join = join;
    w->leave = leave;
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct wanted *own = call->resource->prepared;
    const struct jval *was = NULL;
    struct wanted w = { .absent = true };
    int64_t gid = 0;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    if (r < 0 || (original == NULL && own->absent)) {
        return r; /* what should not be is not brought back by being removed */
    }
    if (jval_bool(jval_get(was, STR("exists")), false)) {
        w.absent = false;
        w.gid_given = (own->gid_given || own->absent) && jval_i64(jval_get(was, STR("gid")), &gid);
        w.gid = (uint32_t)gid;
        want_members(call, jval_str(jval_get(was, STR("members"))), &w);
    }
    return tool_run_all(call, next, &w, err);
}

const struct resource_type resource_type_group = {
    .name = "group",
    .fields = FIELD_TABLE(fields),
    .identity = { "group" },
    .help = "a group of users",
    .example = "group: storage, gid: 2000, members: [backup]",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .path = "/etc/passwd" }, { WATCH_PATH, .path = "/etc/group" } },
};
