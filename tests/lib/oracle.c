#include "tests/lib/oracle.h"

#include <jansson.h>

#include "base/map.h"

static bool equal(const struct jval *v, const json_t *jansson);

static bool equal_object(const struct jval *v, const json_t *jansson)
{
    const char *key;
    json_t *value;
    uint32_t ours;
    CLEANUP(map_done)
    struct map last = { 0 };
    JVAL_EACH (v, member) {
        /* The last of each name; the one before is of no interest. */
        (void)map_put(&last, jval_key(member), (void *)(uintptr_t)member);
    }
    ours = map_count(&last);
    if (ours != json_object_size(jansson)) {
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)jansson, key, value)
    {
        const struct jval *member = map_find(&last, str_from(key));
        if (member == NULL || !equal(member, value)) {
            return false;
        }
    }
    return true;
}

static bool equal_array(const struct jval *v, const json_t *jansson)
{
    size_t i = 0;
    if (v->n != json_array_size(jansson)) {
        return false;
    }
    JVAL_EACH (v, item) {
        if (!equal(item, json_array_get(jansson, i++))) {
            return false;
        }
    }
    return true;
}

static bool equal(const struct jval *v, const json_t *jansson)
{
    int64_t whole;
    double real;
    switch (json_typeof(jansson)) {
    case JSON_OBJECT:
        return jval_kind(v) == JOBJ && equal_object(v, jansson);
    case JSON_ARRAY:
        return jval_kind(v) == JARR && equal_array(v, jansson);
    case JSON_STRING:
        return jval_kind(v) == JSTR &&
               str_eq(jval_str(v), (struct str){ .p = json_string_value(jansson),
                                                 .n = json_string_length(jansson) });
    case JSON_INTEGER:
        return jval_i64(v, &whole) && whole == json_integer_value(jansson);
    case JSON_REAL:
        /* Ours gives up on texts of more than 511 bytes. */
        return jval_kind(v) == JNUM &&
               (v->n > 511 || (jval_f64(v, &real) && real == json_real_value(jansson)));
    case JSON_TRUE:
    case JSON_FALSE:
        return jval_kind(v) == JBOOL && jval_bool(v, false) == json_is_true(jansson);
    case JSON_NULL:
        return jval_kind(v) == JNULL;
    }
    return false;
}

enum oracle_verdict oracle_compare_json(struct str text, const struct jval *root)
{
    json_error_t error;
    json_t *jansson =
        json_loadb(text.n > 0 ? text.p : "", text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    enum oracle_verdict verdict = ORACLE_AGREES;
    if (jansson == NULL) {
        enum json_error_code code = json_error_code(&error);
        bool unsure = code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
                      code == json_error_stack_overflow;
        verdict = root == NULL ? ORACLE_AGREES : unsure ? ORACLE_UNSURE : ORACLE_DISAGREES;
    } else if (root == NULL && str_find_char(text, '\0') != SIZE_MAX) {
        verdict = ORACLE_UNSURE; /* jansson takes a NUL byte behind the value for the end */
    } else if (root == NULL || !equal(root, jansson)) {
        verdict = ORACLE_DISAGREES;
    }
    json_decref(jansson);
    return verdict;
}
