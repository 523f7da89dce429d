/*
 * vectors: recorded cases of the Go libraries, below tests/data/vectors: one object a case, with
 * its number `n`, so that a failure can name it.
 */
#pragma once

#include "format/json.h"
#include "tests/check.h"

static inline const struct jval *vectors_load(const char *name, struct arena *a)
{
    struct err err = { 0 };
    const struct jval *root = NULL;
    if (json_parse(check_data(name), 0, a, &root, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s: %s", name, err.msg);
    }
    return root;
}

/* The number of the case is named by the checks that follow. */
static inline void vectors_enter(const struct jval *one)
{
    int64_t n = -1;
    CHECK(jval_i64(jval_get(one, STR("n")), &n));
    check_case(n);
}

static inline bool vectors_kind(const struct jval *one, const char *kind)
{
    return str_eq(jval_str(jval_get(one, STR("kind"))), str_from(kind));
}

static inline bool vectors_ok(const struct jval *one)
{
    return jval_bool(jval_get(one, STR("ok")), false);
}

/* A text member; bytes that are no UTF-8 are kept as hexadecimal digits under `key`_hex. */
static inline struct str vectors_text(const struct jval *one, const char *key, struct arena *a)
{
    const struct jval *plain = jval_get(one, str_from(key));
    if (plain != NULL) {
        return jval_str(plain);
    }
    struct str hex = jval_str(jval_get(one, arena_printf(a, "%s_hex", key)));
    char *bytes = arena_alloc(a, hex.n / 2 + 1);
    for (size_t i = 0; i + 1 < hex.n; i += 2) {
        static const char digits[] = "0123456789abcdef";
        const char *high = strchr(digits, hex.p[i]);
        const char *low = strchr(digits, hex.p[i + 1]);
        CHECK(high != NULL && low != NULL);
        bytes[i / 2] = (char)((high - digits) << 4 | (low - digits));
    }
    return (struct str){ .p = bytes, .n = hex.n / 2 };
}

static inline int64_t vectors_i64(const struct jval *one, const char *key)
{
    int64_t n = 0;
    if (!jval_i64(jval_get(one, str_from(key)), &n)) {
        check_fail(__FILE__, __LINE__, "no number '%s'", key);
    }
    return n;
}
