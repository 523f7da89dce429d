#include "profile/alert_record.h"

#include "base/timestamp.h"
#include "format/json.h"
#include "format/json_writer.h"

static struct str member(const struct jval *v, const char *key)
{
    return jval_str(jval_get(v, str_from(key)));
}

/* Not within a character. */
static struct str shorten(struct str text)
{
    size_t n = MIN(text.n, (size_t)ALERT_RECORD_REASON_MAX);
    while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xC0) == 0x80) {
        n--;
    }
    return str_sub(text, 0, n);
}

static void parse_told(const struct jval *list, struct arena *out, struct alert_record *ret)
{
    struct str *told = ARENA_ARRAY(out, struct str, ALERT_RECORD_TOLD_MAX);
    JVAL_EACH (list, entry) {
        struct str node = jval_str(entry);
        if (node.n > 0 && ret->told_n < ALERT_RECORD_TOLD_MAX) {
            told[ret->told_n++] = arena_str(out, node);
        }
    }
    ret->told = told;
}

static void parse_unsent(const struct jval *list, struct arena *out, struct alert_record *ret)
{
    struct alert_record_message *unsent =
        ARENA_ARRAY(out, struct alert_record_message, ALERT_RECORD_UNSENT_MAX);
    JVAL_EACH (list, entry) {
        struct alert_record_message m = {
            .instance = arena_str(out, member(entry, "instance")),
            .node = arena_str(out, member(entry, "node")),
            .state = arena_str(out, member(entry, "state")),
            .request = arena_str(out, member(entry, "request")),
            .reason = arena_str(out, shorten(member(entry, "reason"))),
            .since = jval_time(jval_get(entry, STR("since")), USEC_NEVER),
            .first = jval_time(jval_get(entry, STR("first")), USEC_NEVER),
        };
        if (m.instance.n > 0 && m.state.n > 0 && m.since != USEC_NEVER && m.first != USEC_NEVER &&
            ret->unsent_n < ALERT_RECORD_UNSENT_MAX) {
            unsent[ret->unsent_n++] = m;
        }
    }
    ret->unsent = unsent;
}

int alert_record_parse(struct str text, struct arena *out, struct alert_record *ret,
                       struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    *ret = (struct alert_record){ 0 };
    if (text.n == 0) {
        return 0;
    }
    int r = json_parse(text, 0, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    if (jval_kind(root) != JOBJ) {
        return err_set(err, ERR_INVALID, "alerts: found %s, want an object",
                       jkind_name(jval_kind(root)));
    }
    parse_told(jval_get(root, STR("told")), out, ret);
    parse_unsent(jval_get(root, STR("unsent")), out, ret);
    return 0;
}

static void print_time(struct json_writer *w, const char *key, usec_t wall)
{
    char text[TIMESTAMP_TEXT_MAX];
    jw_pair(w, key, timestamp_print_seconds(wall, text));
}

void alert_record_print(const struct alert_record *r, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    if (r->told_n == 0 && r->unsent_n == 0) {
        return;
    }
    jw_obj(&w);
    jw_key(&w, STR("told"));
    jw_strs(&w, r->told, MIN(r->told_n, ALERT_RECORD_TOLD_MAX));
    jw_key(&w, STR("unsent"));
    jw_arr(&w);
    uint32_t left_out =
        r->unsent_n > ALERT_RECORD_UNSENT_MAX ? r->unsent_n - ALERT_RECORD_UNSENT_MAX : 0;
    for (uint32_t i = left_out; i < r->unsent_n; i++) {
        const struct alert_record_message *m = &r->unsent[i];
        jw_obj(&w);
        jw_pair(&w, "instance", m->instance);
        jw_pair(&w, "node", m->node);
        jw_pair(&w, "state", m->state);
        jw_pair(&w, "request", m->request);
        jw_pair(&w, "reason", shorten(m->reason));
        print_time(&w, "since", m->since);
        print_time(&w, "first", m->first);
        jw_obj_end(&w);
    }
    jw_arr_end(&w);
    jw_obj_end(&w);
}
