#include "web/http_reply.h"

#include "format/json_writer.h"

static void http_reply_send(struct inbound_exchange *x, int status, struct str type,
                            struct str body)
{
    inbound_set_header(x, "Cache-Control", STR("no-store"));
    inbound_set_header(x, "X-Content-Type-Options", STR("nosniff"));
    inbound_reply(x, status, type, body);
}

void http_reply_text(struct inbound_exchange *x, int status, struct str text)
{
    http_reply_send(x, status, STR("text/plain; charset=utf-8"), text);
}

void http_reply_json(struct inbound_exchange *x, int status, struct str body)
{
    http_reply_send(x, status, STR("application/json"), body);
}

void http_reply_report(struct inbound_exchange *x, enum query_format format, const struct buf *out)
{
    if (out->full) {
        http_reply_error(x, 500, STR("the document is too large"));
    } else if (format == QUERY_FORMAT_JSON) {
        http_reply_json(x, 200, buf_str(out));
    } else {
        http_reply_text(x, 200, buf_str(out));
    }
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
