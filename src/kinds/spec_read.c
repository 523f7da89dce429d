#include "kinds/spec_read.h"

#include "format/json_writer.h"

bool spec_read_selector(const struct jval *v, struct arena *out, struct selector *ret,
                        struct str *ret_problem)
{
    struct err err = { 0 };
    if (v == NULL || jval_kind(v) == JNULL) {
        return false;
    }
    if (selector_from_jval(v, out, ret, &err) < 0) {
        *ret_problem = arena_str(out, str_from(err.msg));
        return false;
    }
    return true;
}

struct str spec_read_status(const struct jval *object, struct arena *out)
{
    const struct jval *status = jval_get(object, STR("status"));
    if (jval_kind(status) != JOBJ) {
        return STR("{}");
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_val(&w, status);
    return arena_str(out, buf_str(&text));
}
