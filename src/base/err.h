/*
 * err: a failure's code for the program and its sentence for the human.
 *
 * Lives on the stack of whoever handles the failure, allocates nothing, is never NULL. The site
 * that knows sets it, each level that adds meaning wraps it once. Code branches on the code, never
 * on the text.
 */
#pragma once

#include "base/str.h"

enum err_code {
    ERR_INVALID = 1, /* the input is wrong; trying again will not help */
    ERR_NOTFOUND,
    ERR_CONFLICT, /* the object moved on: observe again */
    ERR_GONE,     /* the resourceVersion is too old: list again */
    ERR_BUSY,     /* come back later; retry_at may say when */
    ERR_DENIED,
    ERR_TIMEOUT,
    ERR_IO,
    ERR_PROTO, /* the peer does not speak as agreed */
    ERR_LIMIT,
    ERR_CANCELLED,
};

struct pos {
    uint32_t line;   /* from 1; 0 = unknown */
    uint32_t column; /* from 1, in bytes */
};

struct err {
    enum err_code code;
    int os; /* errno, or 0 */
    struct pos pos;
    usec_t retry_at; /* monotonic; 0 = unknown */
    char msg[512];
};

/* Both return -code. A text that does not fit ends in "…": messages are for people. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3); /* "fmt: old" */
int err_set_os(struct err *err, int os, const char *fmt, ...)
    PRINTF_LIKE(3, 4); /* "fmt: strerror" */

/* The analyser cannot know that no code is 0, and would follow failures that answer success. */
#if defined(__clang_analyzer__) && !defined(ERR_ITSELF)
#define err_set(...) ((void)(err_set)(__VA_ARGS__), -(int)ERR_INVALID)
#define err_wrap(...) ((void)(err_wrap)(__VA_ARGS__), -(int)ERR_INVALID)
#define err_set_os(...) ((void)(err_set_os)(__VA_ARGS__), -(int)ERR_IO)
#endif

const char *err_code_name(enum err_code code);
