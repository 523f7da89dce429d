#include "format/json_fields.h"

#include "base/timestamp.h"

struct str jr_text(const struct json_fields *in, const struct jval *v, const char *key)
{
    return arena_str(in->out, jval_str(jval_get(v, str_from(key))));
}

bool jr_bool(const struct jval *v, const char *key)
{
    return jval_bool(jval_get(v, str_from(key)), false);
}

uint32_t jr_u32(const struct jval *v, const char *key, uint32_t absent)
{
    int64_t n;
    bool fits = jval_i64(jval_get(v, str_from(key)), &n) && n >= 0 && n <= UINT32_MAX;
    return fits ? (uint32_t)n : absent;
}

int jr_time(const struct json_fields *in, const struct jval *v, const char *key, usec_t absent,
            usec_t *ret)
{
    const struct jval *value = jval_get(v, str_from(key));
    struct timestamp at;
    *ret = absent;
    if (value == NULL) {
        return 0;
    }
    if (timestamp_parse(jval_str(value), &at, in->err) < 0) {
        return err_wrap(in->err, "'%s'", key);
    }
    *ret = timestamp_to_usec(at);
    return 0;
}

int jr_count(const struct json_fields *in, const struct jval *list, uint32_t most, uint32_t *ret)
{
    *ret = jval_kind(list) == JARR || jval_kind(list) == JOBJ ? list->n : 0;
    return *ret <= most ? 0
                        : err_set(in->err, ERR_LIMIT, "a list has %u parts, at most %u are read",
                                  *ret, most);
}
