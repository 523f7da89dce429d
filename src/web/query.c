#include "web/query.h"
#include "base/hex.h"

struct str query_param(struct str query, struct str key, struct arena *out)
{
    struct str pair;
    while (query.n > 0 && str_split_next(&query, '&', &pair)) {
        struct str name;
        struct str value;
        (void)str_cut(pair, STR("="), &name, &value);
        if (!str_eq(name, key)) {
            continue;
        }
        char *text = ARENA_ARRAY(out, char, value.n + 1);
        size_t n = 0;
        for (size_t i = 0; i < value.n; i++) {
            bool escape = value.p[i] == '%' && i + 2 < value.n && hex_digit(value.p[i + 1]) >= 0 &&
                          hex_digit(value.p[i + 2]) >= 0;
            if (escape) {
                text[n++] = (char)(hex_digit(value.p[i + 1]) * 16 + hex_digit(value.p[i + 2]));
                i += 2;
            } else {
                text[n++] = value.p[i] == '+' ? ' ' : value.p[i];
            }
        }
        return (struct str){ .p = text, .n = n };
    }
    return STR_NONE;
}

bool query_format(struct str query, enum query_format *ret)
{
    static const struct str names[] = {
        [QUERY_FORMAT_JSON] = STR_INIT("json"),
        [QUERY_FORMAT_TEXT] = STR_INIT("text"),
        [QUERY_FORMAT_WIDE] = STR_INIT("wide"),
    };
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str value = query_param(query, STR("format"), &tmp);
    for (uint32_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(value, names[i]) || (value.n == 0 && i == QUERY_FORMAT_JSON)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

uint32_t query_columns(struct str query)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    uint32_t columns;
    return str_to_u32(query_param(query, STR("columns"), &tmp), &columns) &&
                   columns >= QUERY_COLUMNS_MIN && columns <= QUERY_COLUMNS_MAX
               ? columns
               : 0;
}
