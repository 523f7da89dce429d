/*
 * defs: the few words every file speaks: attributes, assertions, time units.
 *
 * ASSERT stays on in every build. It guards what our own code promises; data from outside is
 * answered with an error instead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/banned.h"

/* Durations and instants in microseconds. Signed, so that differences need no care. */
typedef int64_t usec_t;

#define USEC_NEVER INT64_MAX
#define MSECONDS(n) ((usec_t)(n)*1000)
#define SECONDS(n) ((usec_t)(n)*1000000)
#define MINUTES(n) SECONDS((usec_t)(n)*60)
#define HOURS(n) MINUTES((usec_t)(n)*60)
#define DAYS(n) HOURS((usec_t)(n)*24)

#define NODISCARD __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))
#define NORETURN __attribute__((noreturn))

/* Runs `fn(&variable)` when the variable leaves its scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Hands a pointer over: yields its value and leaves NULL behind. */
#define STEAL(x)                                                                                   \
    __extension__({                                                                                \
        __typeof__(x) stolen_ = (x);                                                               \
        (x) = NULL;                                                                                \
        stolen_;                                                                                   \
    })

#define MIN(a, b)                                                                                  \
    __extension__({                                                                                \
        __typeof__(a) min_a_ = (a);                                                                \
        __typeof__(b) min_b_ = (b);                                                                \
        min_a_ < min_b_ ? min_a_ : min_b_;                                                         \
    })
#define MAX(a, b)                                                                                  \
    __extension__({                                                                                \
        __typeof__(a) max_a_ = (a);                                                                \
        __typeof__(b) max_b_ = (b);                                                                \
        max_a_ > max_b_ ? max_a_ : max_b_;                                                         \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define ASSERT(condition) ((condition) ? (void)0 : assert_fail(#condition, __FILE__, __LINE__))

NORETURN void assert_fail(const char *condition, const char *file, int line);

/* Ends the process with a message: limits at the edges keep this out of reach in practice. */
NORETURN void out_of_memory(size_t wanted);
