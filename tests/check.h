/*
 * check: a thin layer over cmocka: tests register themselves, failures name both values, properties
 * name their seed.
 *
 * TEST(name) { … } and PROPERTY(name) { … } (with `struct rng *rng`) need no list; each test
 * program is one module's.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/str.h"

#define PROPERTY_SEEDS 500u

void check_register(const char *name, void (*run)(void **state));
void check_fail(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4)
NORETURN;
void check_eq(int64_t a, int64_t b, const char *what, const char *file, int line);
void check_str(struct str a, struct str b, const char *what, const char *file, int line);
/* Names the case of a table that runs now; failures say it. -1: none. */
void check_case(int64_t n);
void check_property(void (*body)(struct rng *rng), const char *name);

#define TEST(name)                                                                                 \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        check_register(#name, name);                                                               \
    }                                                                                              \
    static void name(void **state UNUSED)

#define PROPERTY(name)                                                                             \
    static void property_##name(struct rng *rng);                                                  \
    TEST(name)                                                                                     \
    {                                                                                              \
        check_property(property_##name, #name);                                                    \
    }                                                                                              \
    static void property_##name(struct rng *rng)

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : check_fail(__FILE__, __LINE__, "false: %s", #condition))
#define CHECK_EQ(a, b) check_eq((int64_t)(a), (int64_t)(b), #a, __FILE__, __LINE__)

#define CHECK_AS_STR_(x)                                                                           \
    _Generic((x), struct str : check_as_str_, char * : check_as_text_, const char * : check_as_text_)(x)
static inline struct str check_as_str_(struct str s)
{
    return s;
}
static inline struct str check_as_text_(const char *s)
{
    return str_from(s);
}
/* Takes struct str and C strings on both sides. */
#define CHECK_STR(a, b) check_str(CHECK_AS_STR_(a), CHECK_AS_STR_(b), #a, __FILE__, __LINE__)

/* The content of a file below tests/data, NUL-terminated; lives until the program ends. */
struct str check_data(const char *name);
