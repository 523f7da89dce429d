/* user: an account of /etc/passwd, changed by the machine's own useradd, usermod and userdel, which
 * know its locks, shadow and ranges of numbers. */
#include "agent/accounts.h"
#include "agent/type/path.h"
#include "agent/type/tool.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

static const struct field fields[] = {
    { "user", FIELD_TEXT, .required = true, .help = "the name of the account" },
    { "uid", FIELD_SCALAR, .help = "its number; nothing: whichever it has" },
    { "group", FIELD_SCALAR,
      .help = "its group, by name or number; nothing: for a new one the group of its own name" },
    { "groups", FIELD_TEXTS, .help = "further groups that it is in" },
    { "exclusive", FIELD_BOOL, .initial = "false", .help = "it is in no groups but `groups`" },
    { "home", FIELD_PATH,
      .help = "its folder; made with a new account, unless that is the system's" },
    { "shell", FIELD_PATH, .help = "the program that a login starts" },
    { "comment", FIELD_TEXT, .help = "who that is" },
    { "system", FIELD_BOOL, .initial = "false",
      .help = "a new one gets a number of the system's range and no folder" },
    { "locked", FIELD_BOOL,
      .help = "whether its password opens nothing; a new account has none and counts as locked" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there; the folder of one that is removed stays" },
};

/* What useradd and usermod set by an option of the same name. */
enum part { PART_UID, PART_GROUP, PART_HOME, PART_SHELL, PART_COMMENT, PARTS };
static const char *const part_fields[PARTS] = { "uid", "group", "home", "shell", "comment" };
static const char *const part_options[PARTS] = { "-u", "-g", "-d", "-s", "-c" };

/* What is to be: of the resource, or of what was there before it. */
struct wanted {
    bool absent;
    bool given[PARTS];
    struct str parts[PARTS];
    const struct str *join; /* groups that it must be in */
    uint32_t join_n;
    bool only; /* and in no others */
    const struct str *leave;
    uint32_t leave_n;
    bool locked_given;
    bool locked;
    struct str hash; /* empty = nothing is said */
};

static int check_words(const struct resource *r, struct err *err)
{
    static const char *const texts[] = { "home", "shell", "comment" };
    struct str uid = resource_value(r, "uid")->text;
    struct str group = resource_value(r, "group")->text;
    uint32_t number;
    if (uid.n > 0 && (!str_to_u32(uid, &number) || !account_number_is_good(number))) {
        return err_set(err, ERR_INVALID, "field 'uid': found '" STR_FMT "', want %s",
                       STR_ARG(str_sub(uid, 0, 64)), ACCOUNT_NUMBER_WANTED);
    }
    if (group.n > 0 && !account_name_is_good(group) && !str_to_u32(group, &number)) {
        return err_set(err, ERR_INVALID, "field 'group': found '" STR_FMT "', want %s, or a number",
                       STR_ARG(str_sub(group, 0, 64)), ACCOUNT_NAME_WANTED);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!account_text_is_good(resource_value(r, texts[i])->text)) {
            return err_set(err, ERR_INVALID, "field '%s': want it on one line and without ':'",
                           texts[i]);
        }
    }
    return 0;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str name = resource_value(r, "user")->text;
    const struct field_value *groups = resource_value(r, "groups");
    struct wanted *w = ARENA_NEW(p->out, struct wanted);
    if (!account_name_is_good(name)) {
        return err_set(err, ERR_INVALID, "field 'user': found '" STR_FMT "', want %s",
                       STR_ARG(str_sub(name, 0, 64)), ACCOUNT_NAME_WANTED);
    }
    int result = check_words(r, err);
    if (result < 0) {
        return result;
    }
    *w = (struct wanted){ .absent = resource_is_absent(r),
                          .join = groups->items,
                          .join_n = groups->item_n,
                          .only = resource_value(r, "exclusive")->truth,
                          .locked_given = resource_value(r, "locked")->given,
                          .locked = resource_value(r, "locked")->truth };
    for (enum part i = 0; i < PARTS; i++) {
        w->given[i] = resource_value(r, part_fields[i])->given;
        w->parts[i] = resource_value(r, part_fields[i])->text;
        if (w->absent && w->given[i]) {
            return err_set(err, ERR_INVALID, "field 'state': found 'absent' beside '%s'",
                           part_fields[i]);
        }
    }
    for (uint32_t i = 0; i < groups->item_n; i++) {
        if (!account_name_is_good(groups->items[i])) {
            return err_set(err, ERR_INVALID, "field 'groups': found '" STR_FMT "', want %s",
                           STR_ARG(str_sub(groups->items[i], 0, 64)), ACCOUNT_NAME_WANTED);
        }
        resource_uses(p, "group", groups->items[i]);
    }
    if (w->given[PART_GROUP]) {
        resource_uses(p, "group", w->parts[PART_GROUP]);
    }
    p->resource->prepared = w;
    p->resource->provides = arena_printf(p->out, "user:" STR_FMT, STR_ARG(name));
    return 0;
}

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

struct found {
    bool exists;
    struct str parts[PARTS]; /* the group as its number */
    struct str groups;       /* the text of /etc/group */
    struct str hash;
};

static struct str name_of(const struct resource_call *call)
{
    return resource_value(call->resource, "user")->text;
}

static int read_text(struct resource_call *call, const char *path, struct str *ret, struct err *err)
{
    bool exists;
    int r = root_slurp(call->root, str_from(path), 0, call->tmp, ret, &exists, err);
    *ret = r == 0 && exists ? *ret : STR("");
    return r;
}

static int look(struct resource_call *call, struct found *ret, struct err *err)
{
    struct str passwd = STR("");
    struct str shadow = STR("");
    struct account account = { 0 };
    struct account_shadow secret = { 0 };
    *ret = (struct found){ 0 };
    int r = read_text(call, "/etc/passwd", &passwd, err);
    r = r < 0 ? r : read_text(call, "/etc/group", &ret->groups, err);
    r = r < 0 ? r : read_text(call, "/etc/shadow", &shadow, err);
    ret->exists = r == 0 && account_find(passwd, name_of(call), &account);
    if (ret->exists) {
        ret->parts[PART_UID] = arena_printf(call->tmp, "%u", account.uid);
        ret->parts[PART_GROUP] = arena_printf(call->tmp, "%u", account.gid);
        ret->parts[PART_HOME] = account.home;
        ret->parts[PART_SHELL] = account.shell;
        ret->parts[PART_COMMENT] = account.comment;
        ret->hash = account_shadow_find(shadow, name_of(call), &secret) ? secret.hash : STR("");
    }
    return r;
}

static bool is_locked(const struct found *found)
{
    return str_starts(found->hash, STR("!")) || str_starts(found->hash, STR("*"));
}

static bool is_in(const struct found *found, struct str group, struct str user)
{
    struct account_group g;
    return account_group_find(found->groups, group, &g) && account_group_has(&g, user);
}

static bool list_has(const struct str *list, uint32_t n, struct str name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(list[i], name)) {
            return true;
        }
    }
    return false;
}

/* A group that it is in and should not be; empty when there is none. */
static struct str find_extra(const struct wanted *w, const struct found *found, struct str user)
{
    struct str rest = found->groups;
    struct account_group g;
    while (account_group_next(&rest, &g)) {
        if (account_group_has(&g, user) && !list_has(w->join, w->join_n, g.name) &&
            (w->only || list_has(w->leave, w->leave_n, g.name))) {
            return g.name;
        }
    }
    return STR("");
}

/* The part as /etc/passwd has it: the group's number. */
static int wanted_part(const struct wanted *w, enum part part, const struct found *found,
                       struct arena *tmp, struct str *ret, struct err *err)
{
    struct account_group g;
    uint32_t number;
    *ret = w->parts[part];
    if (part != PART_GROUP || str_to_u32(*ret, &number)) {
        return 0;
    }
    if (!account_group_find(found->groups, *ret, &g)) {
        return err_set(err, ERR_NOTFOUND, "field 'group': there is no '" STR_FMT "' in /etc/group",
                       STR_ARG(*ret));
    }
    *ret = arena_printf(tmp, "%u", g.gid);
    return 0;
}

/* ── check ─────────────────────────────────────────────────────────────────────────────────── */

static int check_parts(struct resource_call *call, const struct wanted *w,
                       const struct found *found, struct err *err)
{
    for (enum part i = 0; i < PARTS; i++) {
        struct str want;
        int r = w->given[i] ? wanted_part(w, i, found, call->tmp, &want, err) : 0;
        if (r < 0) {
            return r;
        }
        if (w->given[i] && !str_eq(found->parts[i], want)) {
            resource_differs(call, part_fields[i], found->parts[i], want);
        }
    }
    return 0;
}

static int check(struct resource_call *call, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    struct found found;
    int r = look(call, &found, err);
    if (r < 0) {
        return r;
    }
    if (found.exists == w->absent) {
        resource_differs_in_state(call, found.exists);
    }
    if (!found.exists || w->absent) {
        return 0;
    }
    for (uint32_t i = 0; i < w->join_n; i++) {
        if (!is_in(&found, w->join[i], name_of(call))) {
            resource_differs(call, "groups", STR("(none)"), w->join[i]);
        }
    }
    struct str extra = find_extra(w, &found, name_of(call));
    if (extra.n > 0) {
        resource_differs(call, "groups", extra, STR("(none)"));
    }
    if (w->locked_given && w->locked != is_locked(&found)) {
        resource_differs(call, "locked", w->locked ? STR("false") : STR("true"),
                         w->locked ? STR("true") : STR("false"));
    }
    return check_parts(call, w, &found, err);
}

/* ── apply ─────────────────────────────────────────────────────────────────────────────────── */

static struct str missing_groups(struct resource_call *call, const struct wanted *w,
                                 const struct found *found)
{
    struct str list = STR("");
    for (uint32_t i = 0; i < w->join_n; i++) {
        if (!is_in(found, w->join[i], name_of(call))) {
            list = arena_printf(call->tmp, STR_FMT "%s" STR_FMT, STR_ARG(list),
                                list.n > 0 ? "," : "", STR_ARG(w->join[i]));
        }
    }
    return list;
}

static void ask_new(struct resource_call *call, const struct wanted *w, const struct found *found,
                    struct tool *ret)
{
    bool of_system = resource_value(call->resource, "system")->truth;
    struct str groups = missing_groups(call, w, found);
    struct account_group own;
    tool_add(ret, STR("/usr/sbin/useradd"));
    if (of_system) {
        tool_add(ret, STR("-r"));
    }
    tool_add(ret, of_system ? STR("-M") : STR("-m"));
    for (enum part i = 0; i < PARTS; i++) {
        if (w->given[i]) {
            tool_add_option(ret, str_from(part_options[i]), w->parts[i]);
        }
    }
    if (!w->given[PART_GROUP] && account_group_find(found->groups, name_of(call), &own)) {
        tool_add_option(ret, STR("-g"), name_of(call)); /* useradd would refuse to make it */
    }
    if (groups.n > 0) {
        tool_add_option(ret, STR("-G"), groups);
    }
    tool_add(ret, name_of(call));
}

/* One usermod for all that differs; nothing when nothing does. */
static int ask_change(struct resource_call *call, const struct wanted *w, const struct found *found,
                      struct tool *ret, struct err *err)
{
    struct str groups = missing_groups(call, w, found);
    tool_add(ret, STR("/usr/sbin/usermod"));
    for (enum part i = 0; i < PARTS; i++) {
        struct str want;
        int r = w->given[i] ? wanted_part(w, i, found, call->tmp, &want, err) : 0;
        if (r < 0) {
            return r;
        }
        if (w->given[i] && !str_eq(found->parts[i], want)) {
            tool_add_option(ret, str_from(part_options[i]), want);
        }
    }
    if (groups.n > 0) {
        tool_add(ret, STR("-a"));
        tool_add_option(ret, STR("-G"), groups);
    }
    if (w->locked_given && w->locked != is_locked(found)) {
        tool_add(ret, w->locked ? STR("-L") : STR("-U"));
    }
    if (ret->n == 1) {
        ret->n = 0;
    } else {
        tool_add(ret, name_of(call));
    }
    return 0;
}

static int ask_rest(struct resource_call *call, const struct wanted *w, const struct found *found,
                    struct tool *ret)
{
    struct str extra = find_extra(w, found, name_of(call));
    if (extra.n > 0) {
        tool_add(ret, STR("/usr/bin/gpasswd"));
        tool_add_option(ret, STR("-d"), name_of(call));
        tool_add(ret, extra);
    } else if (w->hash.n > 0 && !str_eq(w->hash, found->hash)) {
        tool_add(ret, STR("/usr/sbin/chpasswd"));
        tool_add(ret, STR("-e"));
        ret->input = arena_printf(call->tmp, STR_FMT ":" STR_FMT "\n", STR_ARG(name_of(call)),
                                  STR_ARG(w->hash)); /* arguments can be seen by everybody */
    }
    return 0;
}

static int next(struct resource_call *call, const void *ctx, struct tool *ret, struct err *err)
{
    const struct wanted *w = ctx;
    struct found found;
    int r = look(call, &found, err);
    if (r < 0 || (w->absent && !found.exists)) {
        return r;
    }
    if (w->absent) {
        tool_add(ret, STR("/usr/sbin/userdel"));
        tool_add(ret, name_of(call));
        return 0;
    }
    if (!found.exists) {
        ask_new(call, w, &found, ret);
        return 0;
    }
    r = ask_change(call, w, &found, ret, err);
    return r < 0 || ret->n > 0 ? r : ask_rest(call, w, &found, ret);
}

static int apply(struct resource_call *call, struct err *err)
{
    return tool_run_all(call, next, call->resource->prepared, err);
}

/* ── originals ─────────────────────────────────────────────────────────────────────────────── */

static void write_groups(const struct resource_call *call, const struct found *found,
                         struct json_writer *w)
{
    struct str rest = found->groups;
    struct account_group g;
    jw_key(w, STR("groups"));
    jw_arr(w);
    while (account_group_next(&rest, &g)) {
        if (account_group_has(&g, name_of(call))) {
            jw_str(w, g.name);
        }
    }
    jw_arr_end(w);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    struct found found;
    int r = look(call, &found, err);
    jw_obj(&w);
    jw_pair_bool(&w, "exists", found.exists);
    for (enum part i = 0; i < PARTS && found.exists; i++) {
        jw_pair(&w, part_fields[i], found.parts[i]);
    }
    jw_pair_bool(&w, "locked", is_locked(&found));
    write_groups(call, &found, &w);
    jw_pair(&w, "hash", found.hash);
    jw_obj_end(&w);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return r;
}

/* Groups that it was in come back if we took it out of them; those that we put it in go. */
static void want_groups(struct resource_call *call, const struct jval *groups, struct wanted *w)
{
    const struct wanted *own = call->resource->prepared;
    struct str *join = ARENA_ARRAY(call->tmp, struct str, groups != NULL ? groups->n + 1 : 1);
    struct str *leave = ARENA_ARRAY(call->tmp, struct str, own->join_n + 1);
    uint32_t n = 0;
    JVAL_EACH (groups, name) {
        join[n++] = jval_str(name);
    }
    for (uint32_t i = 0; i < own->join_n; i++) {
        if (!list_has(join, n, own->join[i])) {
            leave[w->leave_n++] = own->join[i];
        }
    }
    w->join = join;
    w->join_n = own->only || own->absent ? n : 0;
    w->leave = leave;
}

static void want_original(struct resource_call *call, const struct jval *was, struct wanted *w)
{
    const struct wanted *own = call->resource->prepared;
    w->absent = false;
    for (enum part i = 0; i < PARTS; i++) {
        w->given[i] = own->given[i] || own->absent;
        w->parts[i] = jval_str(jval_get(was, str_from(part_fields[i])));
    }
    w->locked_given = own->locked_given && !own->absent;
    w->locked = jval_bool(jval_get(was, STR("locked")), false);
    w->hash = own->absent ? jval_str(jval_get(was, STR("hash"))) : STR("");
    want_groups(call, jval_get(was, STR("groups")), w);
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct wanted *own = call->resource->prepared;
    const struct jval *was = NULL;
    struct wanted w = { .absent = true };
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    if (r < 0 || (original == NULL && own->absent)) {
        return r; /* what should not be is not brought back by being removed */
    }
    if (jval_bool(jval_get(was, STR("exists")), false)) {
        want_original(call, was, &w);
    }
    return tool_run_all(call, next, &w, err);
}

const struct resource_type resource_type_user = {
    .name = "user",
    .fields = FIELD_TABLE(fields),
    .identity = { "user" },
    .help = "an account of the machine",
    .example = "user: backup, uid: 2001, groups: [storage], shell: /usr/sbin/nologin",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .path = "/etc/passwd" },
               { WATCH_PATH, .path = "/etc/group" },
               { WATCH_PATH, .path = "/etc/shadow" } },
};
