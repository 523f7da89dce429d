#include "web/http_reply.h"

#include "format/json_writer.h"

static const struct str text_type = STR_INIT("text/plain; charset=utf-8");
static const struct str json_type = STR_INIT("application/json");

static void http_reply_send(struct inbound_exchange *x, int status, struct str type,
                            struct shared_bytes *body)
{
    inbound_set_header(x, "Cache-Control", STR("no-store"));
    inbound_set_header(x, "X-Content-Type-Options", STR("nosniff"));
    inbound_reply_shared(x, status, type, body);
}

void http_reply_text(struct inbound_exchange *x, int status, struct str text)
{
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *copy = shared_bytes_copy(text);
    http_reply_send(x, status, text_type, copy);
}

void http_reply_json(struct inbound_exchange *x, int status, struct str body)
{
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *copy = shared_bytes_copy(body);
    http_reply_send(x, status, json_type, copy);
}

void http_reply_report_shared(struct inbound_exchange *x, enum query_format format,
                              struct shared_bytes *report)
{
    if (report == NULL) {
        http_reply_error(x, 500, STR("the document is too large"));
    } else {
        http_reply_send(x, 200, format == QUERY_FORMAT_JSON ? json_type : text_type, report);
    }
}

void http_reply_report(struct inbound_exchange *x, enum query_format format, struct buf *out)
{
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *report = out->full ? NULL : shared_bytes_take(out);
    http_reply_report_shared(x, format, report);
}

void http_reply_error(struct inbound_exchange *x, int status, struct str text)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    jw_pair(&w, "error", text);
    jw_obj_end(&w);
    http_reply_json(x, status, buf_str(&out));
}
