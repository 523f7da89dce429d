#include "agent/type/path.h"

#include "agent/accounts.h"
#include "base/buf.h"
#include "format/json_writer.h"

bool path_is_kernels(struct str path)
{
    static const struct str tops[] = { STR_INIT("/proc"), STR_INIT("/sys"), STR_INIT("/dev") };
    for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
        if (str_starts(path, tops[i]) && (path.n == tops[i].n || path.p[tops[i].n] == '/')) {
            return true;
        }
    }
    return false;
}

int path_prepare(struct resource_prepare *p, struct str path, struct err *err)
{
    if (path_is_kernels(path)) {
        return err_set(err, ERR_INVALID,
                       "field 'path': '" STR_FMT "' is the kernel's; want the resource that is "
                       "made for it, such as sysctl",
                       STR_ARG(path));
    }
    p->resource->provides = arena_printf(p->out, "path:" STR_FMT, STR_ARG(path));
    resource_uses_parent(p, path);
    return 0;
}

unsigned path_flags(const struct resource *r)
{
    return r->meta.unsafe_path ? ROOT_WALK_UNSAFE : 0;
}

int path_look(struct resource_call *call, struct str path, unsigned flags, struct path_state *ret,
              struct err *err)
{
    struct err local = { 0 };
    *ret = (struct path_state){ .place = ROOT_PLACE_NONE };
    int r = root_walk(call->root, path, flags | path_flags(call->resource), &ret->place, &local);
    if (r == -ERR_NOTFOUND) {
        return 0;
    }
    if (r < 0) {
        *err = local;
        return r;
    }
    r = root_stat(&ret->place, &ret->st, &ret->exists, err);
    if (r < 0) {
        root_place_done(&ret->place);
    }
    return r;
}

int path_is_same(struct resource_call *call, struct str a, struct str b, bool *ret, struct err *err)
{
    struct path_state first;
    struct path_state second;
    *ret = str_eq(a, b);
    if (*ret) {
        return 0;
    }
    int r = path_look(call, a, ROOT_WALK_FOLLOW | ROOT_WALK_KERNEL, &first, err);
    if (r < 0) {
        return r;
    }
    root_place_done(&first.place);
    r = path_look(call, b, ROOT_WALK_FOLLOW | ROOT_WALK_KERNEL, &second, err);
    if (r < 0) {
        return r;
    }
    root_place_done(&second.place);
    bool devices =
        first.exists && second.exists && S_ISBLK(first.st.st_mode) && S_ISBLK(second.st.st_mode);
    *ret = devices ? first.st.st_rdev == second.st.st_rdev
                   : first.exists && second.exists && first.st.st_dev == second.st.st_dev &&
                         first.st.st_ino == second.st.st_ino;
    return 0;
}

/* ── owner and mode ────────────────────────────────────────────────────────────────────────── */

void path_uses_owner(struct resource_prepare *p)
{
    const struct field_value *owner = resource_value(p->resource, "owner");
    const struct field_value *group = resource_value(p->resource, "group");
    if (owner->given) {
        resource_uses(p, "user", owner->text);
    }
    if (group->given) {
        resource_uses(p, "group", group->text);
    }
}

static bool find_user(struct str text, struct str name, uint32_t *ret)
{
    struct account account;
    bool found = account_find(text, name, &account);
    *ret = found ? account.uid : *ret;
    return found;
}

static bool find_group(struct str text, struct str name, uint32_t *ret)
{
    struct account_group group;
    bool found = account_group_find(text, name, &group);
    *ret = found ? group.gid : *ret;
    return found;
}

static int find_id(struct resource_call *call, const char *field, const char *file,
                   bool (*find)(struct str text, struct str name, uint32_t *ret), uint32_t *ret,
                   struct err *err)
{
    const struct field_value *value = resource_value(call->resource, field);
    struct str text = STR_NONE;
    bool exists;
    *ret = UINT32_MAX;
    if (!value->given || (str_to_u32(value->text, ret) && *ret != UINT32_MAX)) {
        return 0;
    }
    int r = root_slurp(call->root, str_from(file), 0, call->tmp, &text, &exists, err);
    if (r == 0 && (!exists || !find(text, value->text, ret))) {
        r = err_set(err, ERR_NOTFOUND, "field '%s': there is no '" STR_FMT "' in %s", field,
                    STR_ARG(str_sub(value->text, 0, 64)), file);
    }
    return r;
}

int path_owner(struct resource_call *call, struct path_owner *ret, struct err *err)
{
    const struct field_value *mode = resource_value(call->resource, "mode");
    struct path_owner owner = { .mode_given = mode->given, .mode = (uint32_t)mode->number };
    int r = find_id(call, "owner", "/etc/passwd", find_user, &owner.uid, err);
    r = r < 0 ? r : find_id(call, "group", "/etc/group", find_group, &owner.gid, err);
    if (r == 0) {
        *ret = owner;
    }
    return r;
}

void path_compare_owner(struct resource_call *call, const struct path_owner *want,
                        const struct stat *st)
{
    if (want->uid != UINT32_MAX && want->uid != st->st_uid) {
        resource_differs(call, "owner", arena_printf(call->tmp, "%u", st->st_uid),
                         arena_printf(call->tmp, "%u", want->uid));
    }
    if (want->gid != UINT32_MAX && want->gid != st->st_gid) {
        resource_differs(call, "group", arena_printf(call->tmp, "%u", st->st_gid),
                         arena_printf(call->tmp, "%u", want->gid));
    }
    if (want->mode_given && want->mode != (st->st_mode & 07777)) {
        resource_differs(call, "mode", arena_printf(call->tmp, "%04o", st->st_mode & 07777),
                         arena_printf(call->tmp, "%04o", want->mode));
    }
}

struct root_file path_file(const struct resource_call *call, const struct path_owner *want,
                           const struct path_state *old, struct str content)
{
    bool keep = old->exists && S_ISREG(old->st.st_mode);
    return (struct root_file){
        .content = content,
        .uid = want->uid != UINT32_MAX ? want->uid
               : keep                  ? old->st.st_uid
                                       : call->root->uid,
        .gid = want->gid != UINT32_MAX ? want->gid
               : keep                  ? old->st.st_gid
                                       : UINT32_MAX,
        .mode = want->mode_given ? want->mode
                : keep           ? old->st.st_mode & 07777
                                 : 0644,
        .keep_xattrs = keep,
    };
}

int path_put(struct resource_call *call, struct str path, const struct path_owner *owner,
             struct str content, bool present, struct err *err)
{
    struct path_state state;
    int r = path_look(call, path, present ? ROOT_WALK_MAKE : 0, &state, err);
    if (r < 0) {
        return r;
    }
    if (!present) {
        r = state.exists ? root_remove(call->root, &state.place, false, err) : 0;
    } else {
        struct root_file file = path_file(call, owner, &state, content);
        r = root_replace(call->root, &state.place, &file, err);
    }
    root_place_done(&state.place);
    return r;
}

/* ── content ───────────────────────────────────────────────────────────────────────────────── */

static struct str line_at(struct resource_call *call, struct str text, size_t start, uint32_t line)
{
    struct str rest = str_sub(text, start, text.n - start);
    struct str first;
    (void)str_cut(rest, STR("\n"), &first, &rest); /* the last line may have no end */
    return arena_printf(call->tmp, "line %u: " STR_FMT, line,
                        STR_ARG(str_sub(first, 0, DIFFERENCE_TEXT_MAX)));
}

void path_compare_content(struct resource_call *call, struct str was, struct str want)
{
    if (str_eq(was, want)) {
        return;
    }
    uint32_t line = 1;
    size_t start = 0;
    size_t i = 0;
    for (; i < was.n && i < want.n && was.p[i] == want.p[i]; i++) {
        if (was.p[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    resource_differs(call, "content", line_at(call, was, start, line),
                     line_at(call, want, start, line));
}

/* ── originals ─────────────────────────────────────────────────────────────────────────────── */

static int save_state(struct resource_call *call, const struct path_state *state,
                      struct original *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    struct str target;
    int r = 0;
    jw_obj(&w);
    if (!state->exists) {
        jw_pair(&w, "state", STR("absent"));
    } else if (S_ISLNK(state->st.st_mode)) {
        r = root_readlink(&state->place, call->tmp, &target, err);
        if (r == 0) {
            jw_pair(&w, "state", STR("link"));
            jw_pair(&w, "target", target);
        }
    } else if (S_ISREG(state->st.st_mode)) {
        r = root_read(&state->place, call->tmp, &ret->data, err);
        jw_pair(&w, "state", STR("file"));
    } else {
        jw_pair(&w, "state", STR("folder"));
    }
    if (state->exists) {
        jw_pair_i64(&w, "uid", state->st.st_uid);
        jw_pair_i64(&w, "gid", state->st.st_gid);
        jw_pair_i64(&w, "mode", state->st.st_mode & 07777);
    }
    jw_obj_end(&w);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return r;
}

int path_save(struct resource_call *call, struct str path, unsigned flags, struct original *ret,
              struct err *err)
{
    struct path_state state;
    int r = path_look(call, path, flags, &state, err);
    if (r < 0) {
        return r;
    }
    r = save_state(call, &state, ret, err);
    root_place_done(&state.place);
    return r;
}

static int restore_at(struct resource_call *call, const struct root_place *place,
                      const struct jval *was, struct str content, struct err *err)
{
    struct str state = jval_str(jval_get(was, STR("state")));
    int64_t uid = 0;
    int64_t gid = 0;
    int64_t mode = 0;
    (void)jval_i64(jval_get(was, STR("uid")), &uid); /* only files have these */
    (void)jval_i64(jval_get(was, STR("gid")), &gid);
    (void)jval_i64(jval_get(was, STR("mode")), &mode);
    if (str_eq(state, STR("link"))) {
        return root_symlink(call->root, place, jval_str(jval_get(was, STR("target"))), err);
    }
    if (str_eq(state, STR("file"))) {
        struct root_file file = { .content = content,
                                  .uid = (uint32_t)uid,
                                  .gid = (uint32_t)gid,
                                  .mode = (uint32_t)mode,
                                  .keep_xattrs = true };
        return root_replace(call->root, place, &file, err);
    }
    return err_set(err, ERR_INVALID, "'" STR_FMT "' was something else before, which is not made",
                   STR_ARG(place->path));
}

int path_restore(struct resource_call *call, struct str path, unsigned flags,
                 const struct original *original, struct err *err)
{
    const struct jval *was = NULL;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    if (r < 0) {
        return r;
    }
    bool absent = original == NULL || str_eq(jval_str(jval_get(was, STR("state"))), STR("absent"));
    struct path_state state;
    r = path_look(call, path, flags, &state, err);
    if (r < 0) {
        return r;
    }
    if (!absent && state.place.dir < 0) {
        r = err_set(err, ERR_NOTFOUND, "the folder of '" STR_FMT "' is gone", STR_ARG(path));
    } else if (!absent) {
        r = restore_at(call, &state.place, was, original->data, err);
    } else if (state.exists) {
        r = root_remove(call->root, &state.place, S_ISDIR(state.st.st_mode), err);
    }
    root_place_done(&state.place);
    return r;
}
