#include "agent/field.h"

#include "base/buf.h"
#include "base/duration.h"
#include "format/json_writer.h"
#include "format/regex.h"

#define PATH_BYTES_MAX 4095u /* PATH_MAX of Linux without its NUL */
#define NAME_BYTES_MAX 255u  /* NAME_MAX */

static const char *const wanted[] = {
    [FIELD_TEXT] = "text",
    [FIELD_SCALAR] = "text or a number",
    [FIELD_WORD] = "text or a number; on, off, yes and no in quotes",
    [FIELD_PATH] = "an absolute path such as /etc/motd",
    [FIELD_REGEX] = "a regular expression",
    [FIELD_MODE] = "octal digits in quotes such as '0644'",
    [FIELD_BOOL] = "true or false",
    [FIELD_INT] = "a whole number",
    [FIELD_DURATION] = "a duration such as 90s",
    [FIELD_TEXTS] = "a list of texts",
    [FIELD_OBJECT] = "an object",
};

struct str field_wanted(const struct field *field, struct arena *out)
{
    if (field->kind != FIELD_CHOICE) {
        return str_from(wanted[field->kind]);
    }
    struct str text = STR("one of");
    struct str rest = str_from(field->choices);
    struct str choice;
    for (bool first = true; str_split_next(&rest, '|', &choice); first = false) {
        text = arena_printf(out, STR_FMT "%s " STR_FMT, STR_ARG(text), first ? "" : ",",
                            STR_ARG(choice));
    }
    return text;
}

int field_check_path(struct str path, struct err *err)
{
    if (path.n > PATH_BYTES_MAX) {
        return err_set(err, ERR_INVALID, "found a path of %zu bytes, want at most %u", path.n,
                       PATH_BYTES_MAX);
    }
    if (!str_starts(path, STR("/")) || path.n == 1 || str_find_char(path, '\0') != SIZE_MAX) {
        return err_set(err, ERR_INVALID, "found '" STR_FMT "', want %s",
                       STR_ARG(str_sub(path, 0, 128)), wanted[FIELD_PATH]);
    }
    struct str rest = str_sub(path, 1, path.n - 1);
    struct str name;
    while (str_split_next(&rest, '/', &name)) {
        if (name.n == 0 || str_eq(name, STR(".")) || str_eq(name, STR(".."))) {
            return err_set(err, ERR_INVALID,
                           "found '" STR_FMT "', want it without '//', '.', '..' and a '/' at "
                           "its end",
                           STR_ARG(str_sub(path, 0, 128)));
        }
        if (name.n > NAME_BYTES_MAX) {
            return err_set(err, ERR_INVALID, "found a name of %zu bytes in it, want at most %u",
                           name.n, NAME_BYTES_MAX);
        }
    }
    return 0;
}

static bool choice_is_known(const struct field *field, struct str text)
{
    struct str rest = str_from(field->choices);
    struct str choice;
    while (str_split_next(&rest, '|', &choice)) {
        if (str_eq(choice, text)) {
            return true;
        }
    }
    return false;
}

static int read_mode(struct str text, int64_t *ret, struct err *err)
{
    int64_t mode = 0;
    bool good = text.n >= 3 && text.n <= 5;
    for (size_t i = 0; i < text.n && good; i++) {
        good = text.p[i] >= '0' && text.p[i] <= '7';
        mode = mode * 8 + (text.p[i] - '0');
    }
    if (!good || mode > 07777) {
        return err_set(err, ERR_INVALID, "found '" STR_FMT "', want %s",
                       STR_ARG(str_sub(text, 0, 32)), wanted[FIELD_MODE]);
    }
    *ret = mode;
    return 0;
}

/* Fields whose value is written as text, the defaults of the table among them. */
static int read_text(const struct field *field, struct str text, struct arena *out,
                     struct field_value *ret, struct err *err)
{
    ret->text = text;
    if (text.n > FIELD_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "found %zu bytes, want at most %zu", text.n, FIELD_TEXT_MAX);
    }
    switch (field->kind) {
    case FIELD_PATH:
        return field_check_path(text, err);
    case FIELD_CHOICE:
        return choice_is_known(field, text)
                   ? 0
                   : err_set(err, ERR_INVALID, "found '" STR_FMT "', want " STR_FMT,
                             STR_ARG(str_sub(text, 0, 64)), STR_ARG(field_wanted(field, out)));
    case FIELD_REGEX: {
        struct regex *ignored;
        return regex_compile(text, out, &ignored, err);
    }
    case FIELD_MODE:
        return read_mode(text, &ret->number, err);
    case FIELD_DURATION: {
        int64_t ns;
        int r = duration_parse(text, &ns, err);
        ret->number = r == 0 ? ns / 1000 : 0;
        return r == 0 && ns < 0 ? err_set(err, ERR_INVALID, "found '" STR_FMT "', want it above 0",
                                          STR_ARG(str_sub(text, 0, 32)))
                                : r;
    }
    default:
        return 0;
    }
}

static int read_items(const struct jval *v, struct arena *out, struct field_value *ret,
                      struct err *err)
{
    if (v->n > FIELD_ITEMS_MAX) {
        return err_set(err, ERR_LIMIT, "found %u elements, want at most %u", v->n, FIELD_ITEMS_MAX);
    }
    struct str *items = ARENA_ARRAY(out, struct str, v->n + 1);
    JVAL_EACH (v, item) {
        if (jval_kind(item) != JSTR) {
            return err_set(err, ERR_INVALID, "found %s as element %u, want text",
                           jkind_name(jval_kind(item)), ret->item_n + 1);
        }
        items[ret->item_n++] = arena_str(out, jval_str(item));
    }
    ret->items = items;
    return 0;
}

static int read_object(const struct jval *v, struct arena *out, struct field_value *ret)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    jw_val(&w, v);
    ret->text = arena_str(out, buf_str(&json));
    return 0;
}

static int wrong_kind(const struct field *field, const struct jval *v, struct arena *out,
                      struct err *err)
{
    return err_set(err, ERR_INVALID, "found %s, want " STR_FMT, jkind_name(jval_kind(v)),
                   STR_ARG(field_wanted(field, out)));
}

static int read_value(const struct field *field, const struct jval *v, struct arena *out,
                      struct field_value *ret, struct err *err)
{
    enum jkind kind = jval_kind(v);
    switch (field->kind) {
    case FIELD_BOOL:
        ret->truth = jval_bool(v, false);
        return kind == JBOOL ? 0 : wrong_kind(field, v, out, err);
    case FIELD_INT:
        return kind == JNUM && jval_i64(v, &ret->number) ? 0 : wrong_kind(field, v, out, err);
    case FIELD_TEXTS:
        return kind == JARR ? read_items(v, out, ret, err) : wrong_kind(field, v, out, err);
    case FIELD_OBJECT:
        return kind == JOBJ ? read_object(v, out, ret) : wrong_kind(field, v, out, err);
    case FIELD_CHOICE:
        /* YAML takes on and off for truth values. */
        if (kind == JBOOL && choice_is_known(field, STR("on"))) {
            ret->text = jval_bool(v, false) ? STR("on") : STR("off");
            return 0;
        }
        break;
    case FIELD_SCALAR:
    case FIELD_WORD:
        if (kind == JNUM) {
            ret->text = arena_str(out, (struct str){ v->p, v->n });
            return 0;
        }
        if (kind == JBOOL && field->kind == FIELD_SCALAR) {
            ret->text = jval_bool(v, false) ? STR("true") : STR("false");
            return 0;
        }
        break;
    default:
        break;
    }
    if (kind != JSTR) {
        return wrong_kind(field, v, out, err);
    }
    return read_text(field, arena_str(out, jval_str(v)), out, ret, err);
}

int field_read(const struct field *field, const struct jval *v, struct arena *out,
               struct field_value *ret, struct err *err)
{
    struct field_value value = { .given = true };
    int r = read_value(field, v, out, &value, err);
    if (r < 0) {
        return err_wrap(err, "field '%s'", field->name);
    }
    *ret = value;
    return 0;
}

static void set_initial(const struct field *field, struct arena *out, struct field_value *ret)
{
    *ret = (struct field_value){ 0 };
    if (field->initial == NULL) {
        return;
    }
    struct err err = { 0 };
    struct str text = str_from(field->initial);
    int r = 0;
    if (field->kind == FIELD_BOOL) {
        ret->truth = str_eq(text, STR("true"));
    } else if (field->kind == FIELD_INT) {
        r = str_to_i64(text, &ret->number) ? 0 : -1;
    } else {
        r = read_text(field, text, out, ret, &err);
    }
    ASSERT(r == 0);
}

int field_read_all(const struct field_table *table, const struct jval *object, struct arena *out,
                   struct field_value **ret, const struct jval **ret_bad, struct err *err)
{
    struct field_value *values = ARENA_ARRAY(out, struct field_value, table->n + 1);
    for (uint32_t i = 0; i < table->n; i++) {
        const struct field *field = &table->items[i];
        const struct jval *v = jval_get(object, str_from(field->name));
        *ret_bad = v;
        if (v == NULL || jval_kind(v) == JNULL) {
            if (field->required) {
                return err_set(err, ERR_INVALID, "field '%s': found nothing, want " STR_FMT,
                               field->name, STR_ARG(field_wanted(field, out)));
            }
            set_initial(field, out, &values[i]);
            continue;
        }
        int r = field_read(field, v, out, &values[i], err);
        if (r < 0) {
            return r;
        }
    }
    *ret_bad = NULL;
    *ret = values;
    return 0;
}

const struct field *field_find(const struct field_table *table, struct str name)
{
    for (uint32_t i = 0; i < table->n; i++) {
        if (str_eq(str_from(table->items[i].name), name)) {
            return &table->items[i];
        }
    }
    return NULL;
}

const struct field_value *field_get(const struct field_table *table,
                                    const struct field_value *values, const char *name)
{
    const struct field *field = field_find(table, str_from(name));
    ASSERT(field != NULL);
    return &values[field - table->items];
}
