#include "agent/veto.h"

#include "agent/root.h"
#include "base/closest.h"
#include "format/glob.h"

#define RULES_MAX 1000u /* a file of this many lines was not written by hand */

/* Splits off the first word. */
static struct str next_word(struct str *rest)
{
    *rest = str_trim(*rest);
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t') {
        n++;
    }
    struct str word = str_sub(*rest, 0, n);
    *rest = str_trim(str_sub(*rest, n, rest->n - n));
    return word;
}

static int check_type(struct str name, struct err *err)
{
    if (resource_type_find(name) != NULL) {
        return 0;
    }
    struct closest near = closest_to(name);
    for (const struct resource_type *const *t = resource_types; *t != NULL; t++) {
        closest_offer(&near, str_from((*t)->name));
    }
    return err_set(err, ERR_INVALID,
                   "found type '" STR_FMT "', want one of the agent's%s" STR_FMT "%s",
                   STR_ARG(str_sub(name, 0, 64)), near.best.n > 0 ? "; did you mean '" : "",
                   STR_ARG(near.best), near.best.n > 0 ? "'?" : "");
}

static int check_pattern(struct str pattern, struct err *err)
{
    return str_starts(pattern, STR("/"))
               ? glob_check(pattern, err)
               : err_set(err, ERR_INVALID, "found path '" STR_FMT "', want it to begin with /",
                         STR_ARG(str_sub(pattern, 0, 64)));
}

static int parse_rule(struct str line, struct veto_rule *ret, bool *ret_noop, struct err *err)
{
    struct str rest = line;
    struct str verb = next_word(&rest);
    struct str kind = next_word(&rest);
    bool deny = str_eq(verb, STR("deny"));
    *ret = (struct veto_rule){ .allow = str_eq(verb, STR("allow")), .what = rest };
    if (str_eq(verb, STR("mode")) && str_eq(kind, STR("noop")) && rest.n == 0) {
        *ret_noop = true;
        return 0;
    }
    if ((deny || ret->allow) && str_eq(kind, STR("type"))) {
        return check_type(rest, err);
    }
    ret->kind = VETO_PLACE;
    if (deny && str_eq(kind, STR("path"))) {
        return check_pattern(rest, err);
    }
    ret->kind = str_eq(kind, STR("exec")) ? VETO_EXEC : VETO_REBOOT;
    if (deny && rest.n == 0 && (str_eq(kind, STR("exec")) || str_eq(kind, STR("reboot")))) {
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "found '" STR_FMT "', want 'allow type TYPE', 'deny type TYPE', 'deny path "
                   "PATTERN', 'deny exec', 'deny reboot' or 'mode noop'",
                   STR_ARG(str_sub(line, 0, 64)));
}

int veto_parse(struct str text, struct arena *out, struct veto *ret, struct err *err)
{
    struct veto v = { .broken = STR_NONE };
    uint32_t cap = 0;
    uint32_t number = 0;
    struct str line;
    text = arena_str(out, text);
    while (str_split_next(&text, '\n', &line)) {
        number++;
        line = str_trim(line);
        if (line.n == 0 || line.p[0] == '#') {
            continue;
        }
        struct veto_rule rule;
        bool noop = false;
        int r = v.rule_n == RULES_MAX ? err_set(err, ERR_LIMIT, "more than %u rules", RULES_MAX)
                                      : parse_rule(line, &rule, &noop, err);
        if (r < 0) {
            return err_wrap(err, "line %u", number);
        }
        v.noop = v.noop || noop;
        if (!noop) {
            rule.line = number;
            ARENA_GROW(out, v.rules, v.rule_n, cap);
            v.rules[v.rule_n++] = rule;
        }
    }
    *ret = v;
    return 0;
}

static int load(struct root *root, struct arena *out, struct veto *ret, struct err *err)
{
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    struct stat st;
    struct str text;
    bool exists = false;
    *ret = (struct veto){ .broken = STR_NONE };
    int r = root_walk(root, STR(VETO_PATH), 0, &place, err);
    if (r == -ERR_NOTFOUND) {
        return 0;
    }
    r = r < 0 ? r : root_stat(&place, &st, &exists, err);
    if (r < 0 || !exists) {
        return r;
    }
    if ((st.st_uid != 0 && st.st_uid != root->uid) || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return err_set(err, ERR_DENIED, "others than root may write it (owner %u, mode %04o)",
                       (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
    }
    r = root_read(&place, out, &text, err);
    return r < 0 ? r : veto_parse(text, out, ret, err);
}

struct veto veto_load(struct root *root, struct arena *out)
{
    struct veto v;
    struct err err = { 0 };
    if (load(root, out, &v, &err) < 0) {
        v = (struct veto){ .broken =
                               arena_printf(out, "%s cannot be followed, so it forbids all: %s",
                                            VETO_PATH, err.msg) };
    }
    return v;
}

/* ── judging ───────────────────────────────────────────────────────────────────────────────── */

struct place_look {
    struct str pattern;
    bool hit;
};

static void look_at_place(void *ctx, enum watch_kind kind, struct str path)
{
    struct place_look *look = ctx;
    (void)kind;
    look->hit = look->hit || (path.n > 0 && glob_match(look->pattern, path));
}

/* Its paths are those of its fields and those that are watched for it: a mount's are its place and
 * /etc/fstab. */
static bool has_place(const struct resource *r, struct str pattern)
{
    struct place_look look = { .pattern = pattern };
    for (uint32_t i = 0; i < r->type->fields.n; i++) {
        if (r->type->fields.items[i].kind == FIELD_PATH) {
            look_at_place(&look, WATCH_PATH, r->values[i].text);
        }
    }
    resource_watch(r, look_at_place, &look);
    return look.hit;
}

static bool brings_program(const struct resource *r)
{
    static const char *const fields[] = { "validate", "exec" };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (field_find(&r->type->fields, str_from(fields[i])) != NULL &&
            resource_value(r, fields[i])->given) {
            return true;
        }
    }
    return str_eq(str_from(r->type->name), STR("exec"));
}

static bool rule_hits(const struct veto_rule *rule, const struct resource *r)
{
    switch (rule->kind) {
    case VETO_TYPE:
        return str_eq(str_from(r->type->name), rule->what);
    case VETO_PLACE:
        return has_place(r, rule->what);
    case VETO_EXEC:
        return brings_program(r);
    default:
        return str_eq(str_from(r->type->name), STR("reboot"));
    }
}

bool veto_forbids(const struct veto *v, const struct resource *r, struct arena *out,
                  struct str *ret_why)
{
    bool some_allowed = false;
    bool allowed = false;
    if (v == NULL) {
        return false;
    }
    if (v->broken.n > 0) {
        *ret_why = v->broken;
        return true;
    }
    for (uint32_t i = 0; i < v->rule_n; i++) {
        const struct veto_rule *rule = &v->rules[i];
        bool hit = rule_hits(rule, r);
        if (hit && !rule->allow) {
            *ret_why = arena_printf(out, "line %u of %s forbids it", rule->line, VETO_PATH);
            return true;
        }
        some_allowed = some_allowed || rule->allow;
        allowed = allowed || (hit && rule->allow);
    }
    *ret_why = arena_printf(out, "%s allows other types only", VETO_PATH);
    return some_allowed && !allowed;
}
