#include "core/activity.h"

#include "base/humantime.h"

void activity_note_done(struct activity_note *n)
{
    buf_done(&n->did);
    buf_done(&n->waits);
    buf_done(&n->error);
    *n = (struct activity_note){ 0 };
}

/* Puts a text in place of another. True when it is another one. */
static bool activity_put(struct activity_note *n, struct buf *to, struct str text)
{
    size_t length = MIN(text.n, (size_t)ACTIVITY_TEXT_MAX);
    while (length < text.n && length > 0 && ((unsigned char)text.p[length] & 0xc0u) == 0x80u) {
        length--; /* not within a character */
    }
    text = str_sub(text, 0, length);
    if (str_eq(buf_str(to), text)) {
        return false;
    }
    buf_reset(to);
    buf_add(to, text);
    n->version++;
    return true;
}

void activity_did(struct activity_note *n, usec_t wall, const char *fmt, ...)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    (void)activity_put(n, &n->did, buf_str(&text)); /* the time is new in any case */
    (void)activity_put(n, &n->error, STR(""));
    n->did_at = wall;
    n->failures = 0;
    n->version++;
}

void activity_waits(struct activity_note *n, usec_t next, const char *fmt, ...)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    (void)activity_put(n, &n->waits, buf_str(&text)); /* it counts by itself */
    n->version += n->next != next ? 1 : 0;
    n->next = next;
}

bool activity_failed(struct activity_note *n, usec_t wall, struct str error)
{
    n->error_at = wall;
    n->failures++;
    n->version++;
    return activity_put(n, &n->error, error);
}

void activity_read(const struct activity_note *n, struct str who, struct activity *ret)
{
    *ret = (struct activity){
        .who = who,
        .did = buf_str(&n->did),
        .did_at = n->did_at,
        .waits = buf_str(&n->waits),
        .next = n->next == 0 ? USEC_NEVER : n->next,
        .error = buf_str(&n->error),
        .error_at = n->error_at,
    };
}

void activity_print_json(const struct activity *a, struct json_writer *w)
{
    jw_obj(w);
    jw_pair(w, "name", a->who);
    jw_pair_some(w, "did", a->did);
    jw_pair_time(w, "didAt", a->did_at);
    jw_pair_some(w, "waitsFor", a->waits);
    jw_pair_time(w, "nextTry", a->next);
    jw_pair_some(w, "lastError", a->error);
    jw_pair_time(w, "lastErrorAt", a->error.n > 0 ? a->error_at : 0);
    jw_obj_end(w);
}

void activity_print_list(const struct activity *items, uint32_t n, struct json_writer *w)
{
    if (n == 0) {
        return;
    }
    jw_key(w, STR("integrations"));
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        activity_print_json(&items[i], w);
    }
    jw_arr_end(w);
}

struct activity activity_copy(const struct activity *a, struct arena *out)
{
    struct activity copy = *a;
    copy.who = arena_str(out, a->who);
    copy.did = arena_str(out, a->did);
    copy.waits = arena_str(out, a->waits);
    copy.error = arena_str(out, a->error);
    return copy;
}

struct str activity_text(const struct activity *a, usec_t now, struct arena *out)
{
    struct str text = STR("");
    if (a->error.n > 0) {
        text = arena_printf(out, "failed " STR_FMT " ago: " STR_FMT,
                            STR_ARG(humantime_since(now, a->error_at, out)), STR_ARG(a->error));
    }
    if (a->waits.n > 0) {
        text = arena_printf(out, STR_FMT "%swaits for " STR_FMT, STR_ARG(text),
                            text.n > 0 ? "; " : "", STR_ARG(a->waits));
    }
    struct str next = humantime_at(now, a->next, out);
    if (next.n > 0) {
        text = arena_printf(out, STR_FMT "%snext try " STR_FMT, STR_ARG(text),
                            text.n > 0 ? "; " : "", STR_ARG(next));
    }
    if (a->did.n > 0) {
        text = arena_printf(out, STR_FMT "%slast did " STR_FMT " ago: " STR_FMT, STR_ARG(text),
                            text.n > 0 ? "; " : "", STR_ARG(humantime_since(now, a->did_at, out)),
                            STR_ARG(a->did));
    }
    return text.n > 0 ? text : STR("nothing to do yet");
}
