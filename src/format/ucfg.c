/* Loads a configuration file, replaces its variables and converts its values. */
#include "format/ucfg.h"

#include "base/buf.h"
#include "base/duration.h"
#include "format/yaml.h"
#include "format/ucfg_literal.h"
#include "format/ucfg_variables.h"

#include <math.h>

#define NS_A_SECOND INT64_C(1000000000)

struct ucfg_loader {
    struct ydoc doc;
    struct arena *out;
    struct problems *problems;
};

static struct ucfg_value *load_value(struct ucfg_loader *l, const struct jval *v, struct str path);

static void load_text(struct ucfg_loader *l, struct str text, struct ucfg_value *ret)
{
    struct err err = { 0 };
    struct ucfg_vars *variables = ARENA_NEW(l->out, struct ucfg_vars);
    ret->kind = UCFG_VALUE_STR;
    ret->text = text;
    if (str_find_char(text, '$') == SIZE_MAX) {
        return;
    }
    if (ucfg_vars_parse(text, l->out, variables, &err) < 0) {
        problems_add(l->problems, ret->pos, "%s", err.msg);
    } else if (!ucfg_vars_is_text(variables, l->out, &ret->text)) {
        ret->kind = UCFG_VALUE_VARIABLES;
        ret->variables = variables;
    }
}

static void load_number(const struct jval *v, struct ucfg_value *ret)
{
    struct str text = { .p = v->p, .n = v->n };
    struct ucfg_value number;
    if (ucfg_value_read_integer(text, &number)) {
        ret->kind = number.kind;
        ret->integer = number.integer;
        ret->natural = number.natural;
    } else {
        ret->kind = UCFG_VALUE_FLOAT;
        (void)jval_f64(v, &ret->real); /* the tape has numbers that it can read */
    }
}

static void put_item(struct ucfg_loader *l, struct ucfg_value *obj, uint32_t at,
                     struct ucfg_value *item)
{
    if (at >= obj->item_n) {
        struct ucfg_value **items = ARENA_ARRAY(l->out, struct ucfg_value *, at + 1);
        for (uint32_t i = 0; i <= at; i++) {
            items[i] = i < obj->item_n ? obj->items[i] : ARENA_NEW(l->out, struct ucfg_value);
        }
        obj->items = items;
        obj->item_n = at + 1;
    }
    obj->items[at] = item;
}

static void load_member(struct ucfg_loader *l, const struct jval *v, struct ucfg_value *obj)
{
    struct pos pos = ydoc_key_pos(&l->doc, v);
    struct str name = jval_key(v);
    if (ydoc_key_kind(&l->doc, v) != JSTR) {
        problems_add(l->problems, pos, "key '" STR_FMT "': found %s, want a string: quote it",
                     STR_ARG(str_sub(name, 0, MIN(name.n, (size_t)64))),
                     jkind_name(ydoc_key_kind(&l->doc, v)));
        return;
    }
    struct ucfg_value *value = load_value(l, v, arena_path(l->out, obj->path, name));
    uint32_t index;
    if (str_to_u32(name, &index) && index <= UCFG_INDEX_MAX) {
        put_item(l, obj, index, value);
        return;
    }
    obj->members[obj->member_n++] =
        (struct ucfg_value_member){ .name = arena_str(l->out, name), .pos = pos, .value = value };
}

static struct ucfg_value *load_value(struct ucfg_loader *l, const struct jval *v, struct str path)
{
    struct ucfg_value *ret = ARENA_NEW(l->out, struct ucfg_value);
    ret->pos = ydoc_pos(&l->doc, v);
    ret->path = path;
    switch (jval_kind(v)) {
    case JNULL:
        break;
    case JBOOL:
        ret->kind = UCFG_VALUE_BOOL;
        ret->truth = jval_bool(v, false);
        break;
    case JNUM:
        load_number(v, ret);
        break;
    case JSTR:
        load_text(l, jval_str(v), ret);
        break;
    case JARR:
        ret->kind = UCFG_VALUE_OBJ;
        ret->list = true;
        ret->items = ARENA_ARRAY(l->out, struct ucfg_value *, v->n + 1);
        JVAL_EACH (v, item) {
            struct str at = arena_printf(l->out, "%u", ret->item_n);
            ret->items[ret->item_n++] = load_value(l, item, arena_path(l->out, path, at));
        }
        break;
    case JOBJ:
        ret->kind = UCFG_VALUE_OBJ;
        ret->members = ARENA_ARRAY(l->out, struct ucfg_value_member, v->n + 1);
        JVAL_EACH (v, member) {
            load_member(l, member, ret);
        }
        break;
    }
    return ret;
}

int ucfg_load(struct str text, struct ucfg_env env, struct arena *out, struct ucfg *ret,
              struct problems *problems)
{
    struct err err = { 0 };
    struct ucfg_loader l = { .out = out, .problems = problems };
    uint32_t before = problems->errors;
    if (text.n > UCFG_BYTES_MAX) {
        problems_add(problems, (struct pos){ 0 }, "found %zu bytes, want %zu at most", text.n,
                     UCFG_BYTES_MAX);
        return -ERR_INVALID;
    }
    if (ydoc_parse_lenient(text, out, &l.doc, &err) < 0) {
        /* The place comes first in a message of ydoc_parse; it is said once here. */
        struct str msg = str_from(err.msg);
        struct str at = arena_printf(out, "line %u, column %u: ", err.pos.line, err.pos.column);
        (void)str_cut_prefix(msg, at, &msg);
        problems_add(problems, err.pos, STR_FMT, STR_ARG(msg));
        return -ERR_INVALID;
    }
    struct ucfg_value *root = load_value(&l, l.doc.root, STR(""));
    if (root->kind != UCFG_VALUE_OBJ && root->kind != UCFG_VALUE_NULL) {
        problems_add(problems, root->pos, "found %s, want a mapping", ucfg_value_kind_name(root));
    }
    if (problems->errors != before) {
        return -ERR_INVALID;
    }
    *ret = (struct ucfg){ .text = text, .root = root, .env = env, .out = out };
    return 0;
}

const struct ucfg_value *ucfg_get(const struct ucfg_value *obj, struct str name)
{
    const struct ucfg_value *found = NULL;
    for (uint32_t i = 0; obj != NULL && i < obj->member_n; i++) {
        if (str_eq(obj->members[i].name, name)) {
            found = obj->members[i].value; /* the last one counts */
        }
    }
    return found;
}

/* One resolution: how far it has gone, so that neither cycles nor doubling goes on for ever. */
struct walk {
    const struct ucfg *u;
    uint32_t steps;
    uint32_t depth;
    struct err *err;
};

static int walk_value(struct walk *w, const struct ucfg_value *v, struct ucfg_value *ret);
static int walk_splice(struct walk *w, const struct ucfg_vars *s, struct str *ret);

static bool env_find(const struct ucfg *u, struct str name, struct str *ret)
{
    struct str value;
    if (u->env.find == NULL || !u->env.find(u->env.ctx, name, &value) || value.n == 0) {
        return false;
    }
    *ret = arena_str(u->out, value);
    return true;
}

static int fail_unset(struct str name, struct err *err)
{
    return err_set(err, ERR_NOTFOUND,
                   "variable '" STR_FMT "': found nothing, want a value in the environment",
                   STR_ARG(str_sub(name, 0, MIN(name.n, (size_t)64))));
}

/* `*ret_shared` tells whether the name is a key of the file. */
static int walk_name(struct walk *w, struct str name, struct ucfg_value *ret, bool *ret_shared)
{
    const struct ucfg_value *shared = ucfg_get(w->u->root, name);
    if (++w->steps > UCFG_STEPS_MAX) {
        return err_set(w->err, ERR_LIMIT, "more than %u variables in one value", UCFG_STEPS_MAX);
    }
    *ret_shared = shared != NULL;
    if (shared != NULL) {
        return walk_value(w, shared, ret);
    }
    struct str text;
    if (!env_find(w->u, name, &text)) {
        return fail_unset(name, w->err);
    }
    *ret = (struct ucfg_value){ .kind = UCFG_VALUE_STR, .text = text };
    return 0;
}

/* The text of a variable that is part of a longer text. */
static int walk_variable(struct walk *w, const struct ucfg_vars_piece *piece, struct str *ret)
{
    struct str name;
    int result = walk_splice(w, piece->name, &name);
    if (result < 0) {
        return result;
    }
    struct ucfg_value value;
    bool shared;
    struct str text = STR("");
    result = walk_name(w, name, &value, &shared);
    if (result == -ERR_LIMIT) {
        return result;
    }
    if (result == 0 && !ucfg_value_text(&value, w->u->out, &text)) {
        result = err_set(w->err, ERR_INVALID, "variable '" STR_FMT "': found %s, want text",
                         STR_ARG(str_sub(name, 0, MIN(name.n, (size_t)64))),
                         ucfg_value_kind_name(&value));
    }
    bool set = result == 0 && text.n > 0;
    switch (piece->op) {
    case UCFG_VARS_PLAIN:
        break;
    case UCFG_VARS_DEFAULT:
        if (!set) {
            return walk_splice(w, piece->operand, ret);
        }
        break;
    case UCFG_VARS_ALTERNATIVE:
        if (set) {
            return walk_splice(w, piece->operand, ret);
        }
        *ret = STR("");
        return 0;
    case UCFG_VARS_MESSAGE:
        if (!set) {
            result = walk_splice(w, piece->operand, &text);
            return result < 0 ? result
                              : err_set(w->err, ERR_NOTFOUND, STR_FMT,
                                        STR_ARG(str_sub(text, 0, MIN(text.n, (size_t)256))));
        }
        break;
    }
    *ret = text;
    return result;
}

static int walk_splice(struct walk *w, const struct ucfg_vars *s, struct str *ret)
{
    CLEANUP(buf_done)
    struct buf text = { .max = UCFG_TEXT_MAX };
    for (uint32_t i = 0; i < s->n; i++) {
        struct str piece = s->pieces[i].text;
        int result = s->pieces[i].variable ? walk_variable(w, &s->pieces[i], &piece) : 0;
        if (result < 0) {
            return result;
        }
        buf_add(&text, piece);
    }
    if (text.full) {
        return err_set(w->err, ERR_LIMIT, "found more than %zu bytes behind variables",
                       UCFG_TEXT_MAX);
    }
    *ret = arena_str(w->u->out, buf_str(&text));
    return 0;
}

static int walk_dynamic(struct walk *w, const struct ucfg_value *v, struct ucfg_value *ret)
{
    struct str name;
    struct str text;
    bool shared = false;
    int result;
    if (ucfg_vars_is_name(v->variables, &name)) {
        result = walk_name(w, name, ret, &shared);
        if (result == 0 && !shared) {
            result = ucfg_literal_parse(ret->text, /* objects= */ false, w->u->out, ret, w->err);
        }
    } else {
        result = walk_splice(w, v->variables, &text);
        if (result == 0) {
            result = ucfg_literal_parse(text, /* objects= */ true, w->u->out, ret, w->err);
        }
    }
    if (result == 0) {
        ret->dynamic = true;
        ret->shared = shared;
    }
    return result;
}

static int walk_value(struct walk *w, const struct ucfg_value *v, struct ucfg_value *ret)
{
    if (v->kind != UCFG_VALUE_VARIABLES) {
        *ret = *v;
        return 0;
    }
    if (w->depth == UCFG_REFERENCE_MAX) {
        return err_set(w->err, ERR_LIMIT, "found a variable that leads back to itself");
    }
    w->depth++;
    int result = walk_dynamic(w, v, ret);
    w->depth--;
    return result;
}

int ucfg_resolve(const struct ucfg *u, const struct ucfg_value *v, struct ucfg_value *ret,
                 struct err *err)
{
    struct walk w = { .u = u, .err = err };
    struct ucfg_value value = { .kind = UCFG_VALUE_NULL };
    int result = walk_value(&w, v, &value);
    if (result < 0) {
        return result;
    }
    value.pos = v->pos; /* of the place that uses it */
    value.path = v->path;
    *ret = value;
    return 0;
}

/* Resolves what is there; 0 and `*ret_given` false where the default stays. */
static int given(const struct ucfg *u, const struct ucfg_value *v, struct ucfg_value *ret,
                 bool *ret_given, struct err *err)
{
    *ret_given = v != NULL && v->kind != UCFG_VALUE_NULL;
    return *ret_given ? ucfg_resolve(u, v, ret, err) : 0;
}

/* "found 'abc', want an integer". Messages are logged, so what a variable holds is not shown: it
 * may be a secret. */
static int fail_kind(const struct ucfg *u, const struct ucfg_value *v, const char *wanted,
                     struct err *err)
{
    struct str text;
    if (v->dynamic) {
        return err_set(err, ERR_INVALID, "found %s behind its variable, want %s",
                       ucfg_value_kind_name(v), wanted);
    }
    if (!ucfg_value_text(v, u->out, &text)) {
        return err_set(err, ERR_INVALID, "found %s, want %s", ucfg_value_kind_name(v), wanted);
    }
    return err_set(err, ERR_INVALID, "found '" STR_FMT "', want %s",
                   STR_ARG(str_sub(text, 0, MIN(text.n, (size_t)64))), wanted);
}

int ucfg_str(const struct ucfg *u, const struct ucfg_value *v, struct str *ret, struct err *err)
{
    struct ucfg_value value;
    bool there;
    int result = given(u, v, &value, &there, err);
    if (result < 0 || !there) {
        return result;
    }
    struct str text;
    if (!ucfg_value_text(&value, u->out, &text)) {
        return fail_kind(u, &value, "a string", err);
    }
    *ret = text;
    return 0;
}

int ucfg_bool(const struct ucfg *u, const struct ucfg_value *v, bool *ret, struct err *err)
{
    static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };
    static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False" };
    struct ucfg_value value;
    bool there;
    int result = given(u, v, &value, &there, err);
    if (result < 0 || !there) {
        return result;
    }
    if (value.kind == UCFG_VALUE_BOOL) {
        *ret = value.truth;
        return 0;
    }
    for (size_t i = 0; value.kind == UCFG_VALUE_STR && i < ARRAY_LEN(yes); i++) {
        bool truth = str_eq(value.text, str_from(yes[i]));
        if (truth || str_eq(value.text, str_from(no[i]))) {
            *ret = truth;
            return 0;
        }
    }
    return fail_kind(u, &value, "true or false", err);
}

int ucfg_int(const struct ucfg *u, const struct ucfg_value *v, int64_t *ret, struct err *err)
{
    struct ucfg_value value;
    bool there;
    int result = given(u, v, &value, &there, err);
    if (result < 0 || !there) {
        return result;
    }
    struct ucfg_value number = value;
    if (value.kind == UCFG_VALUE_STR && !ucfg_value_read_integer(value.text, &number)) {
        return fail_kind(u, &value, "an integer", err);
    }
    if (number.kind == UCFG_VALUE_INT) {
        *ret = number.integer;
    } else if (number.kind == UCFG_VALUE_UINT && number.natural <= INT64_MAX) {
        *ret = (int64_t)number.natural;
    } else if (number.kind == UCFG_VALUE_FLOAT && fabs(number.real) < 0x1p63) {
        *ret = (int64_t)number.real;
    } else {
        return fail_kind(u, &value, "an integer", err);
    }
    return 0;
}

/* A plain number is seconds; false when nanoseconds cannot count them. */
static bool seconds_read(const struct ucfg_value *v, int64_t *ret_ns)
{
    if (v->kind == UCFG_VALUE_FLOAT) {
        double ns = v->real * (double)NS_A_SECOND;
        if (!(fabs(ns) < 0x1p63)) {
            return false;
        }
        *ret_ns = (int64_t)ns;
        return true;
    }
    int64_t seconds = v->kind == UCFG_VALUE_INT ? v->integer : (int64_t)v->natural;
    if (v->kind == UCFG_VALUE_UINT && v->natural > INT64_MAX) {
        return false;
    }
    return !__builtin_mul_overflow(seconds, NS_A_SECOND, ret_ns);
}

int ucfg_duration(const struct ucfg *u, const struct ucfg_value *v, int64_t *ret_ns,
                  struct err *err)
{
    static const char wanted[] = "a duration such as 1h30m or 45s";
    struct ucfg_value value;
    bool there;
    int result = given(u, v, &value, &there, err);
    if (result < 0 || !there) {
        return result;
    }
    bool plain = value.kind == UCFG_VALUE_INT || value.kind == UCFG_VALUE_UINT ||
                 value.kind == UCFG_VALUE_FLOAT;
    int64_t ns;
    struct str text;
    if (plain && !value.dynamic) {
        if (!seconds_read(&value, &ns)) {
            return fail_kind(u, &value, "less than 292 years of seconds", err);
        }
        *ret_ns = ns;
        return 0;
    }
    struct err ignored = { 0 };
    if (!ucfg_value_text(&value, u->out, &text) || duration_parse(text, &ns, &ignored) < 0) {
        return fail_kind(u, &value, wanted, err); /* names the same text with what is wanted */
    }
    *ret_ns = ns;
    return 0;
}

int ucfg_list(const struct ucfg *u, const struct ucfg_value *v, struct ucfg_list *ret,
              struct err *err)
{
    struct ucfg_value value;
    bool there;
    int result = given(u, v, &value, &there, err);
    if (result < 0) {
        return result;
    }
    if (!there) {
        *ret = (struct ucfg_list){ .absent = true };
        return 0;
    }
    struct ucfg_list list = { 0 };
    if (value.kind == UCFG_VALUE_OBJ) {
        list.items = ARENA_ARRAY(u->out, struct ucfg_value, value.item_n + 1);
        for (; list.n < value.item_n; list.n++) {
            list.items[list.n] = *value.items[list.n];
            if (list.items[list.n].pos.line == 0) {
                list.items[list.n].pos = value.pos; /* it came out of a variable */
            }
        }
    } else if (value.shared && value.kind == UCFG_VALUE_STR && value.text.n == 0) {
        return fail_kind(u, &value, "a list", err);
    } else if (value.kind != UCFG_VALUE_NULL) {
        list.items = ARENA_NEW(u->out, struct ucfg_value);
        list.items[list.n++] = value;
    }
    *ret = list;
    return 0;
}

int ucfg_strs(const struct ucfg *u, const struct ucfg_value *v, struct ucfg_strs *ret,
              struct err *err)
{
    struct ucfg_list list;
    int result = ucfg_list(u, v, &list, err);
    if (result < 0 || list.absent) {
        return result;
    }
    struct ucfg_strs strs = { .items = ARENA_ARRAY(u->out, struct str, list.n + 1) };
    for (; strs.n < list.n; strs.n++) {
        strs.items[strs.n] = STR("");
        result = ucfg_str(u, &list.items[strs.n], &strs.items[strs.n], err);
        if (result < 0) {
            return result;
        }
    }
    *ret = strs;
    return 0;
}

int ucfg_obj(const struct ucfg *u, const struct ucfg_value *v, const struct ucfg_value **ret,
             struct err *err)
{
    struct ucfg_value value;
    bool there;
    int result = given(u, v, &value, &there, err);
    if (result < 0) {
        return result;
    }
    if (!there) {
        *ret = NULL;
        return 0;
    }
    if (value.kind == UCFG_VALUE_NULL) {
        value.kind = UCFG_VALUE_OBJ; /* a variable that holds null is an empty object */
    }
    if (value.kind != UCFG_VALUE_OBJ) {
        return fail_kind(u, &value, "a mapping", err);
    }
    struct ucfg_value *copy = ARENA_NEW(u->out, struct ucfg_value);
    *copy = value;
    *ret = copy;
    return 0;
}

/* A line of the text, from 1, without its end; the empty one behind the last. */
static struct str line_at(struct str text, uint32_t number)
{
    struct str rest = text;
    struct str line = STR("");
    for (uint32_t i = 0; i < number; i++) {
        if (rest.p == NULL || !str_split_next(&rest, '\n', &line)) {
            return STR("");
        }
    }
    (void)str_cut_suffix(line, STR("\r"), &line);
    return line;
}

static uint32_t characters(struct str text)
{
    uint32_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += ((unsigned char)text.p[i] & 0xc0u) != 0x80u;
    }
    return n;
}

/* What follows the first characters of a line. */
static struct str behind(struct str line, uint32_t count)
{
    size_t at = 0;
    for (uint32_t i = 0; at < line.n && i < count; i++) {
        do {
            at++;
        } while (at < line.n && ((unsigned char)line.p[at] & 0xc0u) == 0x80u);
    }
    return str_sub(line, at, SIZE_MAX);
}

struct pos ucfg_place(const struct ucfg *u, const struct ucfg_value *v, struct str text,
                      struct pos within)
{
    struct pos pos = v->pos;
    if (v->kind != UCFG_VALUE_STR || within.line == 0 || within.column == 0) {
        return pos;
    }
    struct str wanted = line_at(text, within.line);
    uint32_t before = characters(str_sub(wanted, 0, within.column - 1));
    struct str source = behind(line_at(u->text, pos.line), pos.column > 0 ? pos.column - 1 : 0);
    if (source.n > 0 && (source.p[0] == '|' || source.p[0] == '>')) {
        struct str line = line_at(u->text, pos.line + within.line);
        bool same = wanted.n > 0 && str_ends(line, wanted);
        return same ? (struct pos){ pos.line + within.line,
                                    characters(line) - characters(wanted) + before + 1 }
                    : pos;
    }
    bool quoted = source.n > 0 && (source.p[0] == '"' || source.p[0] == '\'');
    if (within.line == 1 && str_starts(quoted ? str_sub(source, 1, SIZE_MAX) : source, text)) {
        pos.column += before + (quoted ? 1 : 0);
    }
    return pos;
}
