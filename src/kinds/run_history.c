#include "kinds/run_history.h"

#include "base/hex.h"
#include "format/digest.h"
#include "format/json.h"
#include "format/json_writer.h"

#define NAME_HASH_BYTES 16u

struct str run_history_name(struct str machine, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    unsigned char hash[SHA256_BYTES];
    sha256(machine, hash);
    buf_add(&text, STR("history-"));
    hex_add(&text, hash, NAME_HASH_BYTES, /* upper= */ false);
    return arena_str(out, buf_str(&text));
}

void run_history_print(const struct run_history_entry *e, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair_time(&w, "time", e->time);
    jw_pair(&w, "node", e->node);
    jw_pair(&w, "maintenance", e->maintenance);
    jw_pair(&w, "operation", e->operation);
    jw_pair(&w, "result", e->result);
    jw_pair_some(&w, "reason", e->reason);
    jw_pair_some(&w, "message", e->message);
    jw_pair_i64(&w, "attempt", e->attempt);
    if (e->took > 0) {
        jw_pair_i64(&w, "seconds", e->took / SECONDS(1));
    }
    if (e->rebooted) {
        jw_pair_bool(&w, "rebooted", true);
    }
    jw_obj_end(&w);
    buf_add_char(out, '\n');
}

bool run_history_read(struct str line, struct arena *out, struct run_history_entry *ret)
{
    const struct jval *v = NULL;
    struct err err = { 0 };
    int64_t attempt = 0;
    int64_t seconds = 0;
    if (line.n == 0 || json_parse(line, 0, out, &v, &err) < 0 || jval_kind(v) != JOBJ) {
        return false;
    }
    (void)jval_i64(jval_get(v, STR("attempt")), &attempt); /* or 0 */
    (void)jval_i64(jval_get(v, STR("seconds")), &seconds); /* likewise */
    *ret = (struct run_history_entry){
        .time = jval_time(jval_get(v, STR("time")), 0),
        .node = jval_str(jval_get(v, STR("node"))),
        .maintenance = jval_str(jval_get(v, STR("maintenance"))),
        .operation = jval_str(jval_get(v, STR("operation"))),
        .result = jval_str(jval_get(v, STR("result"))),
        .reason = jval_str(jval_get(v, STR("reason"))),
        .message = jval_str(jval_get(v, STR("message"))),
        .attempt = attempt > 0 && attempt <= UINT32_MAX ? (uint32_t)attempt : 0,
        .took = seconds > 0 && seconds <= INT32_MAX ? SECONDS(seconds) : 0,
        .rebooted = jval_bool(jval_get(v, STR("rebooted")), false),
    };
    return ret->time > 0;
}

/* Where the line before the one that begins at `at` begins. */
static size_t line_before(struct str text, size_t at)
{
    size_t i = at - 1; /* its line break */
    while (i > 0 && text.p[i - 1] != '\n') {
        i--;
    }
    return i;
}

void run_history_append(struct str old, struct str lines, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf all = { 0 };
    buf_add(&all, old);
    if (old.n > 0 && old.p[old.n - 1] != '\n') {
        buf_add_char(&all, '\n'); /* somebody has edited it */
    }
    buf_add(&all, lines);
    struct str text = buf_str(&all);
    size_t from = text.n;
    for (uint32_t n = 0; from > 0 && n < RUN_HISTORY_ENTRIES_MAX; n++) {
        size_t before = line_before(text, from);
        if (text.n - before > RUN_HISTORY_BYTES_MAX) {
            break;
        }
        from = before;
    }
    buf_add(out, str_sub(text, from, text.n - from));
}
