#include "integration/file_reader.h"

#include "format/unknown_keys.h"

static struct str last_piece(const char *path)
{
    struct str rest = str_from(path);
    struct str piece = rest;
    while (str_split_next(&rest, '.', &piece)) {
    }
    return piece;
}

static const struct ucfg_value *value_of(const struct ucfg_value *obj, const char *path)
{
    const struct ucfg_value *v = ucfg_get(obj, last_piece(path));
    return v == NULL || v->kind == UCFG_VALUE_NULL ? NULL : v;
}

struct pos file_reader_pos(const struct file_reader *r, const struct ucfg_value *obj,
                           const char *path)
{
    const struct ucfg_value *v = value_of(obj, path);
    if (v != NULL && v->pos.line > 0) {
        return v->pos;
    }
    return obj != NULL && obj->pos.line > 0 ? obj->pos : r->u->root->pos;
}

static void wrong(const struct file_reader *r, const struct ucfg_value *obj, const char *path,
                  const char *text)
{
    problems_add(r->problems, file_reader_pos(r, obj, path), "key '%s': %s", path, text);
}

const struct ucfg_value *file_reader_obj(const struct file_reader *r, const struct ucfg_value *obj,
                                         const char *path, const char *names)
{
    struct err err = { 0 };
    const struct ucfg_value *ret = NULL;
    if (ucfg_obj(r->u, value_of(obj, path), &ret, &err) < 0) {
        wrong(r, obj, path, err.msg);
        return NULL;
    }
    if (ret != NULL && ret->list) {
        wrong(r, obj, path, "found a list, want a mapping");
        return NULL;
    }
    if (names != NULL) {
        unknown_keys_warn(ret, names, path, r->problems);
    }
    return ret;
}

usec_t file_reader_duration(const struct file_reader *r, const struct ucfg_value *obj,
                            const char *path, bool required)
{
    struct err err = { 0 };
    int64_t ns = 0;
    const struct ucfg_value *v = value_of(obj, path);
    if (ucfg_duration(r->u, v, &ns, &err) < 0) {
        wrong(r, obj, path, err.msg);
    } else if (v == NULL && required) {
        wrong(r, obj, path, "found nothing, want a duration such as 30s");
    } else if (v != NULL && ns < 1000) {
        wrong(r, obj, path, "found nothing above 0, want a duration such as 30s");
    } else {
        return ns / 1000;
    }
    return 0;
}

bool file_reader_bool(const struct file_reader *r, const struct ucfg_value *obj, const char *path)
{
    struct err err = { 0 };
    bool ret = false;
    if (ucfg_bool(r->u, value_of(obj, path), &ret, &err) < 0) {
        wrong(r, obj, path, err.msg);
    }
    return ret;
}

double file_reader_real(const struct file_reader *r, const struct ucfg_value *obj, const char *path,
                        double otherwise)
{
    struct err err = { 0 };
    const struct ucfg_value *v = value_of(obj, path);
    struct ucfg_value is;
    if (v == NULL) {
        return otherwise;
    }
    if (ucfg_resolve(r->u, v, &is, &err) < 0) {
        wrong(r, obj, path, err.msg);
    } else if (is.kind == UCFG_VALUE_FLOAT) {
        return is.real;
    } else if (is.kind == UCFG_VALUE_INT) {
        return (double)is.integer;
    } else if (is.kind == UCFG_VALUE_UINT) {
        return (double)is.natural;
    } else {
        wrong(r, obj, path, "found something else, want a number such as 0.1");
    }
    return otherwise;
}

static struct str read_text(const struct file_reader *r, const struct ucfg_value *obj,
                            const char *path, bool required, bool secret)
{
    struct err err = { 0 };
    struct str ret = STR("");
    if (ucfg_str(r->u, value_of(obj, path), &ret, &err) < 0) {
        wrong(r, obj, path, secret ? "found no text, want one; it is not shown" : err.msg);
    } else if (required && ret.n == 0) {
        wrong(r, obj, path, "found nothing, want a text");
    }
    return ret;
}

struct str file_reader_text(const struct file_reader *r, const struct ucfg_value *obj,
                            const char *path, bool required)
{
    return read_text(r, obj, path, required, /* secret= */ false);
}

struct str file_reader_secret(const struct file_reader *r, const struct ucfg_value *obj,
                              const char *path, bool required)
{
    return read_text(r, obj, path, required, /* secret= */ true);
}

struct ucfg_strs file_reader_texts(const struct file_reader *r, const struct ucfg_value *obj,
                                   const char *path)
{
    struct err err = { 0 };
    struct ucfg_strs ret = { 0 };
    if (ucfg_strs(r->u, value_of(obj, path), &ret, &err) < 0) {
        wrong(r, obj, path, err.msg);
    }
    return ret;
}
