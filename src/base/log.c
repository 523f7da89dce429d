#include "base/log.h"

#include "base/duration.h"
#include "base/timestamp.h"

static const char *const level_names[] = { "DEBUG", "INFO", "WARN", "ERROR" };
static const char *const level_names_json[] = { "debug", "info", "warn", "error" };

static void log_quote(struct buf *line, struct str s)
{
    buf_add_char(line, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\') {
            buf_add_char(line, '\\');
            buf_add_char(line, (char)c);
        } else if (c == '\n') {
            buf_add(line, STR("\\n"));
        } else if (c < 0x20 || c == 0x7f) {
            buf_printf(line, "\\u%04x", c);
        } else {
            buf_add_char(line, (char)c);
        }
    }
    buf_add_char(line, '"');
}

static bool log_is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f) {
            return false;
        }
    }
    return s.n > 0;
}

static void log_value(struct buf *line, const struct kv *pair, bool json)
{
    char text[DURATION_TEXT_MAX];
    switch (pair->kind) {
    case KV_KIND_STR:
        if (!json && log_is_plain(pair->str)) {
            buf_add(line, pair->str);
        } else {
            log_quote(line, pair->str);
        }
        break;
    case KV_KIND_I64:
        buf_printf(line, "%lld", (long long)pair->number);
        break;
    case KV_KIND_US:
        if (json) {
            log_quote(line, duration_print(pair->number * 1000, text));
        } else {
            buf_add(line, duration_print(pair->number * 1000, text));
        }
        break;
    case KV_KIND_BOOL:
        buf_add(line, pair->number != 0 ? STR("true") : STR("false"));
        break;
    }
}

static void log_write_text(const struct log *log, struct buf *line, enum log_level level,
                           const char *text)
{
    if (log->wall != NULL) {
        char stamp[TIMESTAMP_TEXT_MAX];
        buf_add(line, timestamp_print_micro(log->wall(log->wall_ctx), stamp));
        buf_add_char(line, ' ');
    }
    buf_printf(line, "%-5s ", level_names[level]);
    if (log->name.n > 0) {
        buf_printf(line, STR_FMT ": ", STR_ARG(log->name));
    }
    buf_add(line, str_from(text));
}

static void log_write_json(const struct log *log, struct buf *line, enum log_level level,
                           const char *text)
{
    buf_printf(line, "{\"level\":\"%s\"", level_names_json[level]);
    if (log->wall != NULL) {
        char stamp[TIMESTAMP_TEXT_MAX];
        buf_add(line, STR(",\"ts\":"));
        log_quote(line, timestamp_print_micro(log->wall(log->wall_ctx), stamp));
    }
    if (log->name.n > 0) {
        buf_add(line, STR(",\"logger\":"));
        log_quote(line, log->name);
    }
    buf_add(line, STR(",\"msg\":"));
    log_quote(line, str_from(text));
}

void log_write(struct log *log, enum log_level level, const char *text, size_t n,
               const struct kv *pairs)
{
    if (log == NULL || log->write == NULL || level < log->level) {
        return;
    }
    bool json = log->format == LOG_JSON;
    CLEANUP(buf_done)
    struct buf line = { .max = (size_t)64 * 1024 };
    if (json) {
        log_write_json(log, &line, level, text);
    } else {
        log_write_text(log, &line, level, text);
    }
    for (size_t i = 0; i < n; i++) {
        buf_add(&line, json ? STR(",") : STR(" "));
        if (json) {
            log_quote(&line, str_from(pairs[i].key));
        } else {
            buf_add(&line, str_from(pairs[i].key));
        }
        buf_add_char(&line, json ? ':' : '=');
        log_value(&line, &pairs[i], json);
    }
    buf_add(&line, json ? STR("}\n") : STR("\n"));
    if (!line.full) {
        log->write(log->ctx, buf_str(&line));
    }
}
