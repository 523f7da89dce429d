/* mount: what is mounted at a path, now, and by /etc/fstab after the next start. mount of the
 * machine does it, because file systems have helpers of their own. */
#include "agent/kernel_tables.h"
#include "agent/type/fstab_line.h"
#include "agent/type/path.h"
#include "agent/type/tool.h"
#include "agent/type/type.h"
#include "base/buf.h"

static const struct field fields[] = {
    { "path", FIELD_PATH, .required = true, .help = "where it is mounted" },
    { "device", FIELD_TEXT,
      .help = "what: a device, UUID=…, LABEL=…, server:/path, or any word for tmpfs" },
    { "fsType", FIELD_TEXT, .help = "its file system, such as ext4, xfs, nfs, tmpfs" },
    { "options", FIELD_TEXTS, .help = "such as noatime; nothing: defaults" },
    { "state", FIELD_CHOICE, .initial = "mounted", .choices = "mounted|present|unmounted|absent",
      .help = "mounted now and after the next start; only after the next start; not mounted now; "
              "neither" },
    { "persist", FIELD_CHOICE, .initial = "fstab", .choices = "fstab|none",
      .help = "whether /etc/fstab is changed" },
    { "createDir", FIELD_BOOL, .initial = "true", .help = "make the folder if it is missing" },
    { "lazy", FIELD_BOOL, .initial = "false",
      .help = "unmount at once even if somebody uses it, who then keeps what he sees" },
};

enum runtime { RUNTIME_ANY, RUNTIME_MOUNTED, RUNTIME_UNMOUNTED };

struct wanted {
    enum runtime runtime;
    bool keep; /* fstab stays as it is */
    struct fstab_line line;
};

/* ── prepare ───────────────────────────────────────────────────────────────────────────────── */

static bool word_is_good(struct str word)
{
    bool good = word.n > 0 && word.p[0] != '-';
    for (size_t i = 0; i < word.n && good; i++) {
        good = (unsigned char)word.p[i] >= 0x20 && word.p[i] != 0x7f;
    }
    return good;
}

static int join_options(struct resource_prepare *p, struct str *ret, struct err *err)
{
    const struct field_value *options = resource_value(p->resource, "options");
    struct str text = STR("");
    for (uint32_t i = 0; i < options->item_n; i++) {
        if (!word_is_good(options->items[i])) {
            return err_set(err, ERR_INVALID, "field 'options': found '" STR_FMT "', want a word",
                           STR_ARG(str_sub(options->items[i], 0, 64)));
        }
        text = arena_printf(p->out, STR_FMT "%s" STR_FMT, STR_ARG(text), i > 0 ? "," : "",
                            STR_ARG(options->items[i]));
    }
    *ret = text.n > 0 ? text : STR("defaults");
    return 0;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str state = resource_value(r, "state")->text;
    struct str path = resource_value(r, "path")->text;
    struct wanted *w = ARENA_NEW(p->out, struct wanted);
    bool mounted = str_eq(state, STR("mounted"));
    bool present = str_eq(state, STR("present"));
    bool unmounted = str_eq(state, STR("unmounted"));
    *w = (struct wanted){ .runtime = mounted   ? RUNTIME_MOUNTED
                                     : present ? RUNTIME_ANY
                                               : RUNTIME_UNMOUNTED,
                          .keep =
                              unmounted || str_eq(resource_value(r, "persist")->text, STR("none")),
                          .line = { .key = { .path = path },
                                    .wanted = mounted || present,
                                    .entry = { .device = resource_value(r, "device")->text,
                                               .path = path,
                                               .type = resource_value(r, "fsType")->text } } };
    struct fstab_entry *entry = &w->line.entry;
    if (w->line.wanted && (!word_is_good(entry->device) || !word_is_good(entry->type))) {
        return err_set(err, ERR_INVALID,
                       "fields 'device' and 'fsType': want both with 'state: " STR_FMT "'",
                       STR_ARG(state));
    }
    if (present && w->keep) {
        return err_set(err, ERR_INVALID, "field 'persist': want fstab with 'state: present'");
    }
    int result = join_options(p, &entry->options, err);
    if (result < 0) {
        return result;
    }
    p->resource->prepared = w;
    p->resource->provides = arena_printf(p->out, "path:" STR_FMT, STR_ARG(path));
    resource_uses(p, "path", path);
    resource_uses_parent(p, path);
    fstab_line_prepare(p);
    if (str_starts(entry->device, STR("/"))) {
        resource_uses(p, "path", entry->device);
    }
    return 0;
}

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

static int look(struct resource_call *call, struct kernel_mount *ret, bool *ret_mounted,
                struct err *err)
{
    struct str text = STR("");
    bool exists;
    struct str path = arena_printf(call->tmp, "/proc/%u/mountinfo", (unsigned)call->root->process);
    int r = root_slurp(call->root, path, ROOT_WALK_KERNEL, call->tmp, &text, &exists, err);
    if (r == 0 && !exists) {
        r = err_set(err, ERR_NOTFOUND, "there is no '" STR_FMT "', so mounts cannot be seen",
                    STR_ARG(path));
    }
    *ret = (struct kernel_mount){ 0 };
    *ret_mounted = r == 0 && kernel_mount_find(text, resource_value(call->resource, "path")->text,
                                               call->tmp, ret);
    return r;
}

/* Where the machine has links to devices by what they are called. */
static struct str device_path(struct str device, struct arena *tmp)
{
    static const struct {
        struct str tag;
        const char *folder;
    } tags[] = {
        { STR_INIT("UUID="), "by-uuid" },
        { STR_INIT("LABEL="), "by-label" },
        { STR_INIT("PARTUUID="), "by-partuuid" },
        { STR_INIT("PARTLABEL="), "by-partlabel" },
    };
    struct str value;
    for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
        if (str_cut_prefix(device, tags[i].tag, &value)) {
            return arena_printf(tmp, "/dev/disk/%s/" STR_FMT, tags[i].folder, STR_ARG(value));
        }
    }
    return device;
}

static bool is_bind(struct str options)
{
    return kernel_options_have(options, STR("bind")) || kernel_options_have(options, STR("rbind"));
}

/* Of a part of another file system the kernel tells that file system's device. */
static int compare_device(struct resource_call *call, const struct fstab_entry *want,
                          const struct kernel_mount *found, bool *ret_same, struct err *err)
{
    struct str device = device_path(want->device, call->tmp);
    bool type = str_eq(want->type, found->type) || str_eq(want->type, STR("auto")) ||
                (str_eq(want->type, STR("nfs")) && str_eq(found->type, STR("nfs4")));
    *ret_same = is_bind(want->options) || (type && str_eq(device, found->device));
    if (*ret_same || !type || !str_starts(device, STR("/"))) {
        return 0;
    }
    return path_is_same(call, device, found->device, ret_same, err);
}

/* An option that is asked for and can be seen not to be there; empty when there is none. */
static struct str missing_option(const struct fstab_entry *want, const struct kernel_mount *found)
{
    static const struct str seen[] = {
        STR_INIT("ro"),    STR_INIT("rw"),     STR_INIT("nosuid"),
        STR_INIT("nodev"), STR_INIT("noexec"), STR_INIT("noatime"),
    };
    for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
        if (kernel_options_have(want->options, seen[i]) &&
            !kernel_options_have(found->options, seen[i])) {
            return seen[i];
        }
    }
    return STR("");
}

/* ── check ─────────────────────────────────────────────────────────────────────────────────── */

static int check_mounted(struct resource_call *call, const struct wanted *w,
                         const struct kernel_mount *found, struct err *err)
{
    bool same;
    int r = compare_device(call, &w->line.entry, found, &same, err);
    if (r < 0) {
        return r;
    }
    struct str missing = missing_option(&w->line.entry, found);
    if (!same) {
        resource_differs(call, "device", found->device, w->line.entry.device);
    } else if (missing.n > 0) {
        resource_differs(call, "options", found->options, missing);
    }
    if (!same || missing.n > 0) {
        call->disruption = DISRUPTION_VISIT;
    }
    return 0;
}

static int check(struct resource_call *call, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    struct kernel_mount found;
    bool mounted;
    int r = look(call, &found, &mounted, err);
    if (r == 0 && w->runtime != RUNTIME_ANY && mounted != (w->runtime == RUNTIME_MOUNTED)) {
        resource_differs(call, "state", mounted ? STR("mounted") : STR("unmounted"),
                         mounted ? STR("unmounted") : STR("mounted"));
        call->disruption = mounted ? DISRUPTION_VISIT : DISRUPTION_NONE;
    } else if (r == 0 && mounted && w->runtime == RUNTIME_MOUNTED) {
        r = check_mounted(call, w, &found, err);
    }
    return r < 0 || w->keep ? r : fstab_line_check(call, &w->line, err);
}

/* ── apply ─────────────────────────────────────────────────────────────────────────────────── */

static void ask_mount(const struct fstab_entry *entry, struct tool *ret)
{
    tool_add(ret, STR("/bin/mount"));
    tool_add_option(ret, STR("-t"), entry->type);
    tool_add_option(ret, STR("-o"), entry->options);
    tool_add(ret, entry->device);
    tool_add(ret, entry->path);
}

static int ask_change(struct resource_call *call, const struct fstab_entry *entry,
                      const struct kernel_mount *found, struct tool *ret, struct err *err)
{
    bool same;
    int r = compare_device(call, entry, found, &same, err);
    if (r < 0 || (same && missing_option(entry, found).n == 0)) {
        return r;
    }
    if (same) {
        tool_add(ret, STR("/bin/mount"));
        tool_add_option(ret, STR("-o"),
                        arena_printf(call->tmp, "remount," STR_FMT, STR_ARG(entry->options)));
    } else {
        tool_add(ret, STR("/bin/umount"));
    }
    tool_add(ret, entry->path);
    return 0;
}

static int next(struct resource_call *call, const void *ctx, struct tool *ret, struct err *err)
{
    const struct wanted *w = ctx;
    struct kernel_mount found;
    bool mounted;
    int r = look(call, &found, &mounted, err);
    if (r < 0 || w->runtime == RUNTIME_ANY || (w->runtime == RUNTIME_UNMOUNTED && !mounted)) {
        return r;
    }
    if (w->runtime == RUNTIME_UNMOUNTED) {
        tool_add(ret, STR("/bin/umount"));
        if (resource_value(call->resource, "lazy")->truth) {
            tool_add(ret, STR("-l"));
        }
        tool_add(ret, w->line.entry.path);
        return 0;
    }
    if (mounted) {
        return ask_change(call, &w->line.entry, &found, ret, err);
    }
    ask_mount(&w->line.entry, ret);
    return 0;
}

static int make_folder(struct resource_call *call, const struct wanted *w, struct err *err)
{
    struct path_state state;
    if (w->runtime != RUNTIME_MOUNTED || !resource_value(call->resource, "createDir")->truth) {
        return 0;
    }
    int r = path_look(call, w->line.entry.path, ROOT_WALK_MAKE | ROOT_WALK_KERNEL, &state, err);
    if (r < 0) {
        return r;
    }
    r = state.exists ? 0 : root_mkdir(call->root, &state.place, 0755, err);
    root_place_done(&state.place);
    return r;
}

static int apply(struct resource_call *call, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    int r = 0;
    if (call->step == 0) {
        r = make_folder(call, w, err);
        r = r < 0 || w->keep ? r : fstab_line_apply(call, &w->line, err);
    }
    return r < 0 ? r : tool_run_all(call, next, w, err);
}

/* ── originals ─────────────────────────────────────────────────────────────────────────────── */

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer out = json_writer_on(&json);
    struct kernel_mount found;
    bool mounted;
    int r = look(call, &found, &mounted, err);
    if (r < 0) {
        return r;
    }
    jw_obj(&out);
    jw_pair_bool(&out, "mounted", mounted);
    jw_pair(&out, "device", found.device);
    jw_pair(&out, "type", found.type);
    jw_pair(&out, "options", found.options);
    r = fstab_line_save(call, &w->line, &out, ret, err);
    jw_obj_end(&out);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return r;
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct wanted *own = call->resource->prepared;
    const struct jval *was = NULL;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    if (r < 0 || (original == NULL && !own->line.wanted)) {
        return r; /* to remove what is not mounted means nothing */
    }
    if (call->step == 0 && !own->keep) {
        r = fstab_line_restore(call, &own->line, original, was, err);
    }
    bool mounted = jval_bool(jval_get(was, STR("mounted")), false);
    struct wanted w = { .runtime = own->runtime == RUNTIME_ANY ? RUNTIME_ANY
                                   : mounted                   ? RUNTIME_MOUNTED
                                                               : RUNTIME_UNMOUNTED,
                        .line.entry = { .device = jval_str(jval_get(was, STR("device"))),
                                        .path = own->line.entry.path,
                                        .type = jval_str(jval_get(was, STR("type"))),
                                        .options = jval_str(jval_get(was, STR("options"))) } };
    return r < 0 ? r : tool_run_all(call, next, &w, err);
}

const struct resource_type resource_type_mount = {
    .name = "mount",
    .fields = FIELD_TABLE(fields),
    .identity = { "path" },
    .help = "a file system that is mounted at a path; unmounting and remounting wait until the "
            "node is out of service",
    .example = "path: /srv/data, device: LABEL=data, fsType: xfs, options: [noatime]",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { .kind = WATCH_MOUNTS }, { WATCH_PATH, .path = "/etc/fstab" } },
};
