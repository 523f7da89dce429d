/*
 * log: one event, one line, constant text, key=value. Only the parts, agent, web and cmd log;
 * below, functions return errors.
 *
 * A zeroed sink drops everything. Lines go to a write function, so tests and the simulator read
 * them back. Repeats of one text are rate-limited by the caller's key (log_every). Never log a
 * token, key, body or environment value.
 */
#pragma once

#include "base/buf.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

struct log {
    void (*write)(void *ctx, struct str line); /* line ends in \n; NULL = drop */
    void *ctx;
    usec_t (*wall)(void *ctx); /* NULL = no time in the line */
    void *wall_ctx;
    enum log_level level;
    enum log_format format;
    struct str name; /* borrowed: which part speaks, e.g. "controllers.maintenance" */
};

enum kv_kind { KV_KIND_STR, KV_KIND_I64, KV_KIND_US, KV_KIND_BOOL };

struct kv {
    const char *key;
    enum kv_kind kind;
    struct str str;
    int64_t number;
};

#define KV_STR(k, v) ((struct kv){ .key = (k), .kind = KV_KIND_STR, .str = (v) })
#define KV_TEXT(k, v) KV_STR(k, str_from(v))
#define KV_I64(k, v) ((struct kv){ .key = (k), .kind = KV_KIND_I64, .number = (int64_t)(v) })
#define KV_US(k, v)                                                                                \
    ((struct kv){ .key = (k), .kind = KV_KIND_US, .number = (v) }) /* printed as Go duration */
#define KV_BOOL(k, v) ((struct kv){ .key = (k), .kind = KV_KIND_BOOL, .number = (v) })
#define KV_ERR(e) KV_STR("error", str_from((e)->msg))

void log_write(struct log *log, enum log_level level, const char *text, size_t n,
               const struct kv *pairs);

#define LOG_AT(log, level, text, ...)                                                              \
    log_write((log), (level), (text),                                                              \
              sizeof((struct kv[]){ { 0 }, ##__VA_ARGS__ }) / sizeof(struct kv) - 1,               \
              (struct kv[]){ { 0 }, ##__VA_ARGS__ } + 1)
#define log_debug(log, text, ...) LOG_AT(log, LOG_DEBUG, text, ##__VA_ARGS__)
#define log_info(log, text, ...) LOG_AT(log, LOG_INFO, text, ##__VA_ARGS__)
#define log_warn(log, text, ...) LOG_AT(log, LOG_WARN, text, ##__VA_ARGS__)
#define log_error(log, text, ...) LOG_AT(log, LOG_ERROR, text, ##__VA_ARGS__)
