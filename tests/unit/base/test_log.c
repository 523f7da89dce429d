#include "base/err.h"
#include "base/log.h"
#include "format/json.h"
#include "tests/check.h"

static void keep(void *ctx, struct str line)
{
    buf_add(ctx, line);
}

static usec_t fixed_wall(void *ctx)
{
    return *(usec_t *)ctx;
}

TEST(log_lines_are_text_with_keys_and_values)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    usec_t wall = 1767323045000123;
    struct log log = {
        .write = keep, .ctx = &out, .wall = fixed_wall, .wall_ctx = &wall, .name = STR("drain")
    };
    log_info(&log, "node cordoned", KV_STR("node", STR("n1")), KV_US("took", 1500),
             KV_I64("pods", -3), KV_BOOL("forced", false));
    CHECK_STR(buf_str(&out), "2026-01-02T03:04:05.000123Z INFO  drain: node cordoned node=n1 "
                             "took=1.5ms pods=-3 forced=false\n");
    buf_reset(&out);
    log.wall = NULL;
    log.name = STR_NONE;
    log_error(&log, "failed", KV_TEXT("a", "two words"), KV_TEXT("b", ""), KV_TEXT("c", "q\"\\"),
              KV_TEXT("d", "l1\nl2\x01"));
    CHECK_STR(buf_str(&out),
              "ERROR failed a=\"two words\" b=\"\" c=\"q\\\"\\\\\" d=\"l1\\nl2\\u0001\"\n");
}

TEST(log_lines_are_json_with_the_same_keys)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    usec_t wall = 0;
    struct err err = { .code = ERR_IO, .msg = "broken \"pipe\"" };
    struct log log = { .write = keep,
                       .ctx = &out,
                       .wall = fixed_wall,
                       .wall_ctx = &wall,
                       .format = LOG_JSON,
                       .name = STR("web") };
    log_warn(&log, "gone", KV_ERR(&err), KV_US("after", SECONDS(90)), KV_I64("n", 1),
             KV_BOOL("last", true));
    const struct jval *v;
    CHECK_EQ(json_parse(buf_str(&out), 0, &a, &v, &err), 0);
    CHECK_STR(buf_str(&out),
              "{\"level\":\"warn\",\"ts\":\"1970-01-01T00:00:00.000000Z\",\"logger\":\"web\","
              "\"msg\":\"gone\",\"error\":\"broken \\\"pipe\\\"\",\"after\":\"1m30s\",\"n\":1,"
              "\"last\":true}\n");
}

TEST(log_drops_what_is_below_its_level_or_has_nowhere_to_go)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct log log = { .write = keep, .ctx = &out, .level = LOG_WARN };
    struct log nowhere = { 0 };
    log_debug(&log, "no");
    log_info(&log, "no");
    log_error(&nowhere, "no");
    log_error(NULL, "no");
    CHECK_EQ(out.n, 0);
    log_warn(&log, "yes");
    CHECK_STR(buf_str(&out), "WARN  yes\n");
}
