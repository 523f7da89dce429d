#include "format/label_pack.h"

#include "base/limits.h"

static bool label_fits(struct str key, struct str value)
{
    return key.n > 0 && key.n <= LABEL_KEY_MAX && value.n <= LABEL_VALUE_MAX &&
           str_find_char(key, '=') == SIZE_MAX && str_find_char(key, '\n') == SIZE_MAX &&
           str_find_char(value, '\n') == SIZE_MAX;
}

void label_pack(const struct jval *labels, struct buf *out)
{
    JVAL_EACH (jval_kind(labels) == JOBJ ? labels : NULL, v) {
        struct str key = jval_key(v);
        struct str value = jval_str(v);
        if (jval_kind(v) == JSTR && label_fits(key, value)) {
            buf_printf(out, STR_FMT "=" STR_FMT "\n", STR_ARG(key), STR_ARG(value));
        }
    }
}

struct str label_pack_keep(const struct jval *labels, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    label_pack(labels, &text);
    return arena_str(out, buf_str(&text));
}

bool label_pack_find(void *ctx, struct str key, struct str *ret_value)
{
    const struct str *packed = ctx;
    struct str rest = *packed;
    struct str line;
    while (rest.n > 0 && str_split_next(&rest, '\n', &line)) {
        struct str name;
        struct str value;
        if (str_cut(line, STR("="), &name, &value) && str_eq(name, key)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}
