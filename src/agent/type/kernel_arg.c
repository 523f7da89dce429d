/*
 * kernelArg: a parameter with which the kernel is started, in the configuration of GRUB.
 *
 * Three places must agree: what was configured, what was made of it (grub.cfg), and what the
 * running kernel was started with. Only a reboot mends the last; that is noted.
 */
#include "agent/kernel_cmdline.h"
#include "agent/setting_edit.h"
#include "agent/type/edit.h"
#include "agent/type/path.h"
#include "agent/type/reboot_mark.h"
#include "agent/type/tool.h"
#include "agent/type/type.h"

#define DEFAULTS_PATH STR("/etc/default/grub")

static const struct field fields[] = {
    { "arg", FIELD_TEXT, .required = true,
      .help = "its name, such as mitigations; others of the same name go" },
    { "value", FIELD_WORD, .help = "what stands behind `=`; nothing: the name alone" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
    { "backend", FIELD_CHOICE, .initial = "Auto", .choices = "Auto|grub",
      .help = "whose configuration; Auto: grub, if there is /etc/default/grub" },
};

static const struct setting_key config_key = { .format = SETTING_ENV,
                                               .name = STR_INIT("GRUB_CMDLINE_LINUX"),
                                               .separator = STR_INIT("=") };

/* The file is a shell's, the kernel splits at spaces: what both take as it is. */
static bool is_plain(struct str text, const char *more)
{
    bool good = true;
    for (size_t i = 0; i < text.n && good; i++) {
        char c = text.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               str_find_char(str_from(more), c) != SIZE_MAX;
    }
    return good;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str arg = resource_value(r, "arg")->text;
    const struct field_value *value = resource_value(r, "value");
    bool absent = resource_is_absent(r);
    if (arg.n == 0 || arg.n > 128 || !is_plain(arg, "_-.")) {
        return err_set(err, ERR_INVALID,
                       "field 'arg': found '" STR_FMT "', want a name such as mitigations",
                       STR_ARG(str_sub(arg, 0, 64)));
    }
    if (!is_plain(value->text, "_-.,:;/@+%=*") || (absent && value->given)) {
        return err_set(err, ERR_INVALID,
                       "field 'value': want letters, digits and _-.,:;/@+%%=*, and with 'state: "
                       "absent' none");
    }
    struct str *word = ARENA_NEW(p->out, struct str); /* empty = it is not to be there */
    *word = absent ? STR("")
            : value->given
                ? arena_printf(p->out, STR_FMT "=" STR_FMT, STR_ARG(arg), STR_ARG(value->text))
                : arg;
    p->resource->prepared = word;
    resource_uses(p, "path", DEFAULTS_PATH);
    return 0;
}

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

/* The word in each place; empty = it is not there. */
struct found {
    struct str config;
    struct str made;
    struct str running;
    bool marked;
};

static struct str find_word(struct resource_call *call, struct str text)
{
    struct str word;
    return kernel_cmdline_find(text, resource_value(call->resource, "arg")->text, &word) ? word
                                                                                         : STR("");
}

static int read_made(struct resource_call *call, struct str *ret, struct err *err)
{
    static const char *const paths[] = { "/boot/grub/grub.cfg", "/boot/grub2/grub.cfg" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct str text;
        bool exists;
        int r = root_slurp(call->root, str_from(paths[i]), path_flags(call->resource), call->tmp,
                           &text, &exists, err);
        if (r < 0) {
            return r;
        }
        if (exists && kernel_cmdline_of_grub(text, &text)) {
            *ret = find_word(call, text);
            return 0;
        }
    }
    return err_set(err, ERR_NOTFOUND,
                   "there is no kernel in /boot/grub/grub.cfg or "
                   "/boot/grub2/grub.cfg; other boot loaders are not served");
}

static int look(struct resource_call *call, struct found *ret, struct err *err)
{
    struct str text = STR("");
    struct str value;
    bool exists;
    *ret = (struct found){ 0 };
    int r = edit_read(call, DEFAULTS_PATH, &text, &exists, err);
    if (r == 0 && !exists) {
        r = err_set(err, ERR_NOTFOUND,
                    "there is no /etc/default/grub; other boot loaders are not "
                    "served");
    }
    if (r == 0 && setting_find(&config_key, text, call->tmp, &value)) {
        ret->config = find_word(call, value);
    }
    r = r < 0 ? r : read_made(call, &ret->made, err);
    r = r < 0 ? r
              : root_slurp(call->root, STR("/proc/cmdline"), ROOT_WALK_KERNEL, call->tmp, &text,
                           &exists, err);
    ret->running = r == 0 && exists ? find_word(call, text) : STR("");
    return r < 0 ? r : reboot_mark_look(call, &ret->marked, err);
}

static struct str shown(struct str word)
{
    return word.n > 0 ? word : STR("(none)");
}

static int check(struct resource_call *call, struct err *err)
{
    const struct str *want = call->resource->prepared;
    struct found found;
    int r = look(call, &found, err);
    if (r < 0) {
        return r;
    }
    if (!str_eq(found.config, *want)) {
        resource_differs(call, "config", shown(found.config), shown(*want));
    }
    if (!str_eq(found.made, *want)) {
        resource_differs(call, "grub.cfg", shown(found.made), shown(*want));
    }
    if (!str_eq(found.running, *want) && !found.marked) {
        resource_differs(call, "rebootRequired", STR("false"), STR("true"));
    }
    call->disruption = call->difference_n > 0 ? DISRUPTION_VISIT : DISRUPTION_NONE;
    return 0;
}

/* ── apply ─────────────────────────────────────────────────────────────────────────────────── */

static int edit_config(struct resource_call *call, const void *ctx, struct str text,
                       struct str *ret, struct err *err)
{
    const struct str *want = ctx;
    struct str words = STR("");
    (void)setting_find(&config_key, text, call->tmp, &words); /* empty when it is missing */
    words =
        kernel_cmdline_edit(words, resource_value(call->resource, "arg")->text, *want, call->tmp);
    return setting_set(&config_key, words, text, call->tmp, ret, err);
}

static int next(struct resource_call *call, const void *ctx, struct tool *ret, struct err *err)
{
    static const char *const programs[] = { "/usr/sbin/update-grub", "/usr/sbin/grub2-mkconfig",
                                            NULL };
    const struct str *want = ctx;
    struct str made;
    struct str program;
    int r = read_made(call, &made, err);
    if (r < 0 || str_eq(made, *want)) {
        return r;
    }
    r = tool_find(call, programs, &program, err);
    if (r < 0) {
        return r;
    }
    tool_add(ret, program);
    if (str_ends(program, STR("mkconfig"))) {
        tool_add_option(ret, STR("-o"), STR("/boot/grub2/grub.cfg"));
    }
    return 0;
}

static int make_so(struct resource_call *call, const struct str *want, struct err *err)
{
    struct edit edit = { .path = DEFAULTS_PATH, .fn = edit_config, .ctx = want };
    struct found found;
    int r = call->step == 0 ? edit_apply(call, &edit, err) : 0;
    r = r < 0 ? r : tool_run_all(call, next, want, err);
    r = r != 0 ? r : look(call, &found, err);
    return r != 0 || str_eq(found.running, *want) ? r : reboot_mark_set(call, err);
}

static int apply(struct resource_call *call, struct err *err)
{
    return make_so(call, call->resource->prepared, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    struct found found;
    int r = look(call, &found, err);
    struct edit_original o = { .had = found.config.n > 0, .text = found.config, .file = true };
    edit_save(call, &o, ret);
    return r;
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    struct edit_original o;
    int r = edit_load(call, original, &o, err);
    struct str want = o.had ? o.text : STR("");
    return r < 0 ? r : make_so(call, &want, err);
}

const struct resource_type resource_type_kernel_arg = {
    .name = "kernelArg",
    .fields = FIELD_TABLE(fields),
    .identity = { "arg" },
    .help = "a parameter with which the kernel is started, by GRUB; a change waits until the node "
            "is out of service, and notes that it wants a reboot",
    .example = "arg: transparent_hugepage, value: madvise",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .path = "/etc/default/grub" } },
};
