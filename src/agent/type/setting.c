/* setting: one value in a configuration file. */
#include "agent/setting_edit.h"
#include "agent/type/edit.h"
#include "agent/type/type.h"

static const struct field fields[] = {
    { "path", FIELD_PATH, .required = true, .help = "the file" },
    { "format", FIELD_CHOICE, .required = true, .choices = "ini|env|kv|sshd",
      .help = "how it is written: sections with key=value; NAME=value of a shell; key, separator, "
              "value; sshd_config up to its first Match" },
    { "key", FIELD_SCALAR, .required = true, .help = "the name of the value" },
    { "section", FIELD_TEXT, .help = "ini: the section; nothing: before the first one" },
    { "value", FIELD_SCALAR, .help = "the value, on one line" },
    { "separator", FIELD_TEXT,
      .help = "what stands between key and value in a new line; kv: also what divides; nothing: a "
              "space for sshd, otherwise =" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
    { "create", FIELD_BOOL, .initial = "false", .help = "make the file if it is missing" },
};

static enum setting_format read_format(struct str text)
{
    enum setting_format format = SETTING_INI;
    while (!str_eq(str_from(setting_format_names[format]), text)) {
        format++;
        ASSERT(format < SETTING_FORMATS); /* the table knows the names */
    }
    return format;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct setting_key *key = ARENA_NEW(p->out, struct setting_key);
    const struct field_value *separator = resource_value(r, "separator");
    key->format = read_format(resource_value(r, "format")->text);
    key->section = resource_value(r, "section")->text;
    key->name = resource_value(r, "key")->text;
    key->separator = separator->given              ? separator->text
                     : key->format == SETTING_SSHD ? STR(" ")
                                                   : STR("=");
    if (key->section.n > 0 && key->format != SETTING_INI) {
        return err_set(err, ERR_INVALID, "field 'section': want it with 'format: ini' only");
    }
    if (resource_value(r, "value")->given == resource_is_absent(r)) {
        return err_set(err, ERR_INVALID,
                       "field 'value': want it, and with 'state: absent' want it not");
    }
    int result = setting_check(key, resource_value(r, "value")->text, err);
    if (result < 0) {
        return result;
    }
    p->resource->prepared = key;
    /* Sections make different things of one key. */
    p->resource->id = arena_printf(p->out, "setting:" STR_FMT ":" STR_FMT "%s" STR_FMT,
                                   STR_ARG(resource_value(r, "path")->text), STR_ARG(key->section),
                                   key->section.n > 0 ? "." : "", STR_ARG(key->name));
    return edit_prepare(p, resource_value(r, "path")->text, err);
}

static int edit_setting(struct resource_call *call, const void *ctx, struct str text,
                        struct str *ret, struct err *err)
{
    const struct resource *r = call->resource;
    (void)ctx; /* the resource says it all */
    return resource_is_absent(r) ? setting_remove(r->prepared, text, call->tmp, ret, err)
                                 : setting_set(r->prepared, resource_value(r, "value")->text, text,
                                               call->tmp, ret, err);
}

static struct edit edit_of(const struct resource *r)
{
    return edit_of_fields(r, edit_setting, NULL, resource_is_absent(r));
}

/* The values say more than two lines would. */
static int check(struct resource_call *call, struct err *err)
{
    const struct resource *r = call->resource;
    struct edit edit = edit_of(r);
    struct str text;
    struct str value;
    bool exists;
    uint32_t before = call->difference_n;
    int result = edit_check(call, &edit, err);
    result = result < 0 ? result : edit_read(call, edit.path, &text, &exists, err);
    if (result == 0 && call->difference_n > before) {
        bool found = setting_find(r->prepared, text, call->tmp, &value);
        call->difference_n = before;
        resource_differs(call, "value", found ? value : STR("(none)"),
                         resource_is_absent(r) ? STR("(none)") : resource_value(r, "value")->text);
    }
    return result;
}

static int apply(struct resource_call *call, struct err *err)
{
    struct edit edit = edit_of(call->resource);
    return edit_apply(call, &edit, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    struct edit_original o = { 0 };
    struct str text;
    int r = edit_read(call, resource_value(call->resource, "path")->text, &text, &o.file, err);
    o.had = r == 0 && setting_find(call->resource->prepared, text, call->tmp, &o.text);
    edit_save(call, &o, ret);
    return r;
}

static int restore_setting(struct resource_call *call, const void *ctx, struct str text,
                           struct str *ret, struct err *err)
{
    const struct edit_original *o = ctx;
    return o->had ? setting_set(call->resource->prepared, o->text, text, call->tmp, ret, err)
                  : setting_remove(call->resource->prepared, text, call->tmp, ret, err);
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    struct edit_original o;
    int r = edit_load(call, original, &o, err);
    if (r < 0) {
        return r;
    }
    return edit_restore(call, &o, restore_setting, &o, err);
}

const struct resource_type resource_type_setting = {
    .name = "setting",
    .fields = FIELD_TABLE(fields),
    .identity = { "path", "key" },
    .help = "one value in a configuration file; comments and order of the rest stay as they are",
    .example = "path: /etc/ssh/sshd_config, format: sshd, key: PermitRootLogin, value: 'no'",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .field = "path" } },
};
