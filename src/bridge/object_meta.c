#include "bridge/object_meta.h"

#include "base/limits.h"
#include "base/timestamp.h"

bool meta_has(const struct jval *map, struct str key)
{
    return jval_kind(jval_get(map, key)) != JNULL;
}

bool meta_is(const struct jval *map, struct str key, struct str value)
{
    const struct jval *v = jval_get(map, key);
    return jval_kind(v) == JSTR && str_eq(jval_str(v), value);
}

struct str meta_text(const struct jval *v, size_t most)
{
    struct str text = jval_str(v);
    return text.n <= most ? text : STR_NONE;
}

bool meta_same(struct str a, struct str b)
{
    return a.p == NULL || b.p == NULL ? a.p == b.p : str_eq(a, b);
}

usec_t meta_time(const struct jval *v)
{
    struct timestamp stamp;
    struct err ignored = { 0 };
    struct str text = jval_str(v);
    if (text.n == 0 || timestamp_parse(text, &stamp, &ignored) < 0) {
        return 0;
    }
    usec_t wall = timestamp_to_usec(stamp);
    return wall > 0 ? wall : 0;
}

static int meta_too_long(const char *what, size_t n, size_t most, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s of %zu bytes, at most %zu", what, n, most);
}

int meta_check_lengths(const struct jval *metadata, struct err *err)
{
    const struct jval *labels = jval_get(metadata, STR("labels"));
    const struct jval *annotations = jval_get(metadata, STR("annotations"));
    size_t uid = jval_str(jval_get(metadata, STR("uid"))).n;
    size_t total = 0;
    if (uid > OBJECT_UID_MAX) {
        return meta_too_long("a UID", uid, OBJECT_UID_MAX, err);
    }
    JVAL_EACH (jval_kind(labels) == JOBJ ? labels : NULL, v) {
        if (jval_key(v).n > LABEL_KEY_MAX) {
            return meta_too_long("a label key", jval_key(v).n, LABEL_KEY_MAX, err);
        }
        if (jval_str(v).n > LABEL_VALUE_MAX) {
            return meta_too_long("a label value", jval_str(v).n, LABEL_VALUE_MAX, err);
        }
    }
    JVAL_EACH (jval_kind(annotations) == JOBJ ? annotations : NULL, v) {
        if (jval_key(v).n > LABEL_KEY_MAX) {
            return meta_too_long("an annotation key", jval_key(v).n, LABEL_KEY_MAX, err);
        }
        total += jval_key(v).n + jval_str(v).n;
    }
    return total > ANNOTATIONS_BYTES_MAX
               ? meta_too_long("annotations", total, ANNOTATIONS_BYTES_MAX, err)
               : 0;
}

/* What the arena takes for so many bytes. */
static size_t meta_rounded(size_t size)
{
    size_t step = _Alignof(max_align_t);
    return (size + step - 1) / step * step;
}

void *meta_keep(struct arena *out, void *object, size_t size, struct str *const *texts, size_t n)
{
    size_t total = meta_rounded(size);
    for (size_t i = 0; i < n; i++) {
        total += texts[i]->p != NULL ? meta_rounded(texts[i]->n + 1) : 0;
    }
    out->first = total;
    for (size_t i = 0; i < n; i++) {
        if (texts[i]->p != NULL) {
            *texts[i] = arena_str(out, *texts[i]);
        }
    }
    return memcpy(arena_alloc(out, size), object, size);
}
