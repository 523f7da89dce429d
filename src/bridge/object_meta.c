#include "bridge/object_meta.h"

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
