/* kernelModule: a module of the kernel, now and after the next start. modprobe of the machine loads
 * and unloads it, because it knows what else a module needs. */
#include "agent/kernel_tables.h"
#include "agent/type/path.h"
#include "agent/type/tool.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

#define NAME_MAX_BYTES 55u /* MODULE_NAME_LEN of Linux without its NUL */

static const struct field fields[] = {
    { "module", FIELD_TEXT, .required = true, .help = "its name" },
    { "state", FIELD_CHOICE, .initial = "loaded", .choices = "loaded|unloaded|blocked",
      .help = "blocked: unloaded, and nothing can load it by its name" },
    { "options", FIELD_TEXT,
      .help = "parameters such as `nr_devices=2`; they count when it is loaded" },
    { "persist", FIELD_BOOL, .initial = "true",
      .help = "also after the next start, by /etc/modules-load.d/drydock-NAME.conf and "
              "/etc/modprobe.d/drydock-NAME.conf" },
};

struct module {
    struct str name;
    bool loaded; /* is to be */
    struct str load_path;
    struct str load_text; /* empty = no file */
    struct str probe_path;
    struct str probe_text;
};

static bool name_is_good(struct str name)
{
    bool good = name.n > 0 && name.n <= NAME_MAX_BYTES && name.p[0] != '-';
    for (size_t i = 0; i < name.n && good; i++) {
        char c = name.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    }
    return good;
}

static bool options_are_good(struct str options)
{
    bool good = true;
    for (size_t i = 0; i < options.n && good; i++) {
        good = (unsigned char)options.p[i] >= 0x20 && options.p[i] != 0x7f;
    }
    return good && (options.n == 0 || options.p[0] != '-');
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str name = resource_value(r, "module")->text;
    struct str options = resource_value(r, "options")->text;
    struct str state = resource_value(r, "state")->text;
    bool persist = resource_value(r, "persist")->truth;
    struct module *m = ARENA_NEW(p->out, struct module);
    if (!name_is_good(name)) {
        return err_set(err, ERR_INVALID,
                       "field 'module': found '" STR_FMT "', want a name such as br_netfilter",
                       STR_ARG(str_sub(name, 0, 64)));
    }
    *m = (struct module){ .name = name, .loaded = str_eq(state, STR("loaded")) };
    if (!options_are_good(options) || (options.n > 0 && !m->loaded)) {
        return err_set(err, ERR_INVALID,
                       "field 'options': want one line of NAME=value, with 'state: loaded'");
    }
    if (!persist && str_eq(state, STR("blocked"))) {
        return err_set(err, ERR_INVALID, "field 'persist': want true with 'state: blocked'");
    }
    m->load_path =
        arena_printf(p->out, "/etc/modules-load.d/drydock-" STR_FMT ".conf", STR_ARG(name));
    m->probe_path = arena_printf(p->out, "/etc/modprobe.d/drydock-" STR_FMT ".conf", STR_ARG(name));
    if (persist && m->loaded) {
        m->load_text = arena_printf(p->out, STR_FMT "\n", STR_ARG(name));
    }
    if (persist && m->loaded && options.n > 0) {
        m->probe_text = arena_printf(p->out, "options " STR_FMT " " STR_FMT "\n", STR_ARG(name),
                                     STR_ARG(options));
    } else if (str_eq(state, STR("blocked"))) {
        m->probe_text =
            arena_printf(p->out, "blacklist " STR_FMT "\ninstall " STR_FMT " /bin/false\n",
                         STR_ARG(name), STR_ARG(name));
    }
    p->resource->prepared = m;
    p->resource->provides = arena_printf(p->out, "module:" STR_FMT, STR_ARG(name));
    resource_uses(p, "path", m->load_path);
    resource_uses(p, "path", m->probe_path);
    return 0;
}

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

struct found {
    bool loaded;
    bool builtin;
    uint32_t users;
};

static int look(struct resource_call *call, struct found *ret, struct err *err)
{
    const struct module *m = call->resource->prepared;
    struct str modules = STR("");
    struct str release = STR("");
    struct str builtin = STR("");
    struct kernel_module entry = { 0 };
    bool exists;
    int r = root_slurp(call->root, STR("/proc/modules"), ROOT_WALK_KERNEL, call->tmp, &modules,
                       &exists, err);
    r = r < 0 ? r
              : root_slurp(call->root, STR("/proc/sys/kernel/osrelease"), ROOT_WALK_KERNEL,
                           call->tmp, &release, &exists, err);
    r = r < 0 ? r
              : root_slurp(call->root,
                           arena_printf(call->tmp, "/lib/modules/" STR_FMT "/modules.builtin",
                                        STR_ARG(str_trim(release))),
                           0, call->tmp, &builtin, &exists, err);
    *ret = (struct found){ .builtin = r == 0 && kernel_module_is_builtin(builtin, m->name) };
    ret->loaded = r == 0 && (ret->builtin || kernel_module_find(modules, m->name, &entry));
    ret->users = entry.users;
    return r;
}

static int check_file(struct resource_call *call, struct str path, struct str want, struct err *err)
{
    struct str text = STR("");
    bool exists;
    int r =
        root_slurp(call->root, path, path_flags(call->resource), call->tmp, &text, &exists, err);
    if (r == 0 && !str_eq(exists ? text : STR(""), want)) {
        resource_differs(call, "persist", exists ? text : STR("(none)"),
                         want.n > 0 ? want : STR("(none)"));
    }
    return r;
}

static int check(struct resource_call *call, struct err *err)
{
    const struct module *m = call->resource->prepared;
    struct found found;
    int r = look(call, &found, err);
    if (r == 0 && found.builtin && !m->loaded) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is a part of this kernel and cannot go",
                       STR_ARG(m->name));
    }
    if (r == 0 && found.loaded != m->loaded) {
        resource_differs(call, "state", found.loaded ? STR("loaded") : STR("unloaded"),
                         found.loaded ? STR("unloaded") : STR("loaded"));
        call->disruption = found.loaded ? DISRUPTION_WINDOW : DISRUPTION_NONE;
    }
    if (r < 0 || !resource_value(call->resource, "persist")->truth) {
        return r;
    }
    r = check_file(call, m->load_path, m->load_text, err);
    return r < 0 ? r : check_file(call, m->probe_path, m->probe_text, err);
}

/* ── apply ─────────────────────────────────────────────────────────────────────────────────── */

static int ask_probe(struct resource_call *call, bool load, bool options, struct tool *ret,
                     struct err *err)
{
    static const char *const paths[] = { "/usr/sbin/modprobe", "/sbin/modprobe", NULL };
    const struct module *m = call->resource->prepared;
    struct str program;
    struct str rest = options ? resource_value(call->resource, "options")->text : STR("");
    struct str word;
    int r = tool_find(call, paths, &program, err);
    if (r < 0) {
        return r;
    }
    tool_add(ret, program);
    if (!load) {
        tool_add(ret, STR("-r"));
    }
    tool_add(ret, m->name);
    while (rest.n > 0 && str_split_next(&rest, ' ', &word)) {
        if (word.n > 0) {
            tool_add(ret, word);
        }
    }
    return 0;
}

static int next(struct resource_call *call, const void *ctx, struct tool *ret, struct err *err)
{
    const struct module *m = ctx;
    struct found found;
    int r = look(call, &found, err);
    return r < 0 || found.loaded == m->loaded
               ? r
               : ask_probe(call, m->loaded, /* options= */ true, ret, err);
}

static int write_file(struct resource_call *call, struct str path, struct str text, struct err *err)
{
    struct path_owner owner = { .uid = UINT32_MAX, .gid = UINT32_MAX };
    return path_put(call, path, &owner, text, text.n > 0, err);
}

/* The files first: modprobe reads them, and one that is blocked must not come back meanwhile. */
static int apply(struct resource_call *call, struct err *err)
{
    const struct module *m = call->resource->prepared;
    int r = 0;
    if (call->step == 0 && resource_value(call->resource, "persist")->truth) {
        r = write_file(call, m->load_path, m->load_text, err);
        r = r < 0 ? r : write_file(call, m->probe_path, m->probe_text, err);
    }
    return r < 0 ? r : tool_run_all(call, next, m, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    struct found found;
    int r = look(call, &found, err);
    ret->json = found.loaded ? STR("{\"loaded\":true}") : STR("{\"loaded\":false}");
    return r;
}

/* What we have loaded goes if nobody uses it; what we have unloaded comes back. */
static int restore_next(struct resource_call *call, const void *ctx, struct tool *ret,
                        struct err *err)
{
    const bool *want = ctx;
    struct found found;
    int r = look(call, &found, err);
    if (r < 0 || found.loaded == *want || (!*want && (found.builtin || found.users > 0))) {
        return r;
    }
    return ask_probe(call, *want, /* options= */ false, ret, err);
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct module *m = call->resource->prepared;
    const struct jval *was = NULL;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    bool loaded = jval_bool(jval_get(was, STR("loaded")), false);
    if (r == 0 && call->step == 0 && resource_value(call->resource, "persist")->truth) {
        r = write_file(call, m->load_path, STR(""), err);
        r = r < 0 ? r : write_file(call, m->probe_path, STR(""), err);
    }
    return r < 0 || loaded == m->loaded ? r : tool_run_all(call, restore_next, &loaded, err);
}

static void watch_more(const struct resource *r, watch_add_fn add, void *ctx)
{
    const struct module *m = r->prepared;
    add(ctx, WATCH_CLOCK, STR_NONE);
    if (m->load_path.n > 0) {
        add(ctx, WATCH_PATH, m->load_path);
        add(ctx, WATCH_PATH, m->probe_path);
    }
}

const struct resource_type resource_type_kernel_module = {
    .name = "kernelModule",
    .fields = FIELD_TABLE(fields),
    .identity = { "module" },
    .help = "a module of the kernel, now and after the next start",
    .example = "module: br_netfilter",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch_more = watch_more,
};
