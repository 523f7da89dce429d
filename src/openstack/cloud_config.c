#include "openstack/cloud_config.h"

#include "base/buf.h"

static const struct {
    const char *name;
    size_t offset;
    bool required;
} keys[] = {
    { "auth-url", offsetof(struct cloud_config, auth_url), true },
    { "username", offsetof(struct cloud_config, username), true },
    { "password", offsetof(struct cloud_config, password), true },
    { "region", offsetof(struct cloud_config, region), false },
    { "domain-name", offsetof(struct cloud_config, domain_name), false },
    { "tenant-id", offsetof(struct cloud_config, tenant_id), true },
};

static struct str *field(struct cloud_config *c, size_t i)
{
    return (struct str *)(void *)((char *)c + keys[i].offset);
}

static int fail(struct err *err, uint32_t line, const char *text)
{
    int r = err_set(err, ERR_INVALID, "line %u: %s", line, text);
    err->pos = (struct pos){ .line = line, .column = 1 };
    return r;
}

/* Behind a closing quote only a comment may stand. */
static bool is_rest(struct str rest)
{
    rest = str_trim(rest);
    return rest.n == 0 || rest.p[0] == ';' || rest.p[0] == '#';
}

static int read_quoted(struct str text, struct arena *out, uint32_t line, struct str *ret,
                       struct err *err)
{
    char *bytes = arena_alloc(out, text.n + 1);
    size_t n = 0;
    for (size_t i = 1; i < text.n; i++) {
        char c = text.p[i];
        if (c == '"') {
            if (!is_rest(str_sub(text, i + 1, text.n - i - 1))) {
                return fail(err, line, "found something behind the closing quote");
            }
            *ret = (struct str){ .p = bytes, .n = n };
            return 0;
        }
        if (c == '\\' && i + 1 < text.n) {
            c = text.p[++i];
            if (c != '"' && c != '\\') {
                return fail(err, line, "found an escape other than \\\" and \\\\");
            }
        }
        bytes[n++] = c;
    }
    return fail(err, line, "found no closing quote");
}

static struct str without_comment(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        bool begins = text.p[i] == ';' || text.p[i] == '#';
        if (begins && (i == 0 || text.p[i - 1] == ' ' || text.p[i - 1] == '\t')) {
            return str_trim(str_sub(text, 0, i));
        }
    }
    return text;
}

static int read_value(struct str text, struct arena *out, uint32_t line, struct str *ret,
                      struct err *err)
{
    text = str_trim(text);
    if (text.n > 0 && text.p[0] == '"') {
        return read_quoted(text, out, line, ret, err);
    }
    *ret = arena_str(out, without_comment(text));
    return 0;
}

static int read_line(struct cloud_config *c, struct str text, uint32_t line, bool *global,
                     struct arena *out, struct err *err)
{
    struct str name;
    struct str value;
    text = str_trim(text);
    if (text.n == 0 || text.p[0] == ';' || text.p[0] == '#') {
        return 0;
    }
    if (text.p[0] == '[') {
        if (!str_cut_suffix(without_comment(text), STR("]"), &name)) {
            return fail(err, line, "found no end of the section's name, want [Global]");
        }
        name = str_trim(str_sub(name, 1, name.n - 1));
        *global = str_eq_fold(name, STR("Global"));
        return 0;
    }
    if (!str_cut(text, STR("="), &name, &value)) {
        return *global ? fail(err, line, "found no '=', want key = value") : 0;
    }
    name = str_trim(name);
    for (size_t i = 0; *global && i < ARRAY_LEN(keys); i++) {
        if (str_eq_fold(name, str_from(keys[i].name))) {
            return read_value(value, out, line, field(c, i), err);
        }
    }
    return 0;
}

int cloud_config_parse(struct str text, struct arena *out, struct cloud_config *ret,
                       struct err *err)
{
    struct cloud_config c = { 0 };
    bool global = false;
    uint32_t line = 0;
    struct str rest = text;
    struct str one;
    (void)str_cut_prefix(rest, STR("\xef\xbb\xbf"), &rest); /* or there is no mark */
    while (rest.n > 0 && str_split_next(&rest, '\n', &one)) {
        line++;
        if (line > CLOUD_CONFIG_LINES_MAX) {
            return err_set(err, ERR_LIMIT, "more than %u lines", CLOUD_CONFIG_LINES_MAX);
        }
        int r = read_line(&c, one, line, &global, out, err);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (keys[i].required && field(&c, i)->n == 0) {
            return err_set(err, ERR_INVALID, "key '%s' of section [Global] is missing or empty",
                           keys[i].name);
        }
    }
    *ret = c;
    return 0;
}
