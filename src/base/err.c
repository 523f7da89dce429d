#define ERR_ITSELF
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>

PRINTF_LIKE(3, 0)
static void err_print(char *msg, size_t size, const char *fmt, va_list args)
{
    int n = vsnprintf(msg, size, fmt, args);
    ASSERT(n >= 0);
    if ((size_t)n >= size) {
        static const char more[] = "…";
        memcpy(msg + size - sizeof(more), more, sizeof(more));
    }
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    *err = (struct err){ .code = code, .pos = err->pos, .retry_at = err->retry_at };
    va_list args;
    va_start(args, fmt);
    err_print(err->msg, sizeof(err->msg), fmt, args);
    va_end(args);
    return -(int)code;
}

/* The outer text may quote the inner one, so the new message is built beside the old. */
static void err_join(struct err *err, const char *outer, const char *inner)
{
    char joined[sizeof(err->msg)];
    int n = snprintf(joined, sizeof(joined), "%s: %s", outer, inner);
    ASSERT(n >= 0);
    if ((size_t)n >= sizeof(joined)) {
        static const char more[] = "…";
        memcpy(joined + sizeof(joined) - sizeof(more), more, sizeof(more));
    }
    memcpy(err->msg, joined, sizeof(joined));
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    ASSERT(err->code != 0);
    char outer[sizeof(err->msg)];
    va_list args;
    va_start(args, fmt);
    err_print(outer, sizeof(outer), fmt, args);
    va_end(args);
    err_join(err, outer, err->msg);
    return -(int)err->code;
}

static enum err_code err_code_of_os(int os)
{
    switch (os) {
    case ENOENT:
        return ERR_NOTFOUND;
    case EACCES:
    case EPERM:
        return ERR_DENIED;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EINVAL:
        return ERR_INVALID;
    default:
        return ERR_IO;
    }
}

int err_set_os(struct err *err, int os, const char *fmt, ...)
{
    char outer[sizeof(err->msg)];
    va_list args;
    va_start(args, fmt);
    err_print(outer, sizeof(outer), fmt, args);
    va_end(args);
    *err = (struct err){ .code = err_code_of_os(os), .os = os, .pos = err->pos };
    char text[128];
    err_join(err, outer, strerror_r(os, text, sizeof(text)));
    return -(int)err->code;
}

const char *err_code_name(enum err_code code)
{
    static const char *const names[] = {
        [ERR_INVALID] = "invalid",     [ERR_NOTFOUND] = "not found",
        [ERR_CONFLICT] = "conflict",   [ERR_GONE] = "gone",
        [ERR_BUSY] = "busy",           [ERR_DENIED] = "denied",
        [ERR_TIMEOUT] = "timeout",     [ERR_IO] = "I/O",
        [ERR_PROTO] = "protocol",      [ERR_LIMIT] = "limit",
        [ERR_CANCELLED] = "cancelled",
    };
    return (size_t)code < ARRAY_LEN(names) && names[code] != NULL ? names[code] : "none";
}
