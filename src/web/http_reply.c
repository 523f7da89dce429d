#include "web/http_reply.h"

#include "format/json_writer.h"

static void answer(struct inbound_exchange *x, int status, struct str type, struct str body)
{
    inbound_set_header(x, "Cache-Control", STR("no-store"));
    inbound_set_header(x, "X-Content-Type-Options", STR("nosniff"));
    inbound_reply(x, status, type, body);
}

void answer_text(struct inbound_exchange *x, int status, struct str text)
{
    answer(x, status, STR("text/plain; charset=utf-8"), text);
}

void answer_json(struct inbound_exchange *x, int status, struct str body)
{
    answer(x, status, STR("application/json"), body);
}

void answer_document(struct inbound_exchange *x, const struct buf *out)
{
    if (out->full) {
        answer_error(x, 500, STR("the document is too large"));
    } else {
        answer_json(x, 200, buf_str(out));
    }
}

void answer_error(struct inbound_exchange *x, int status, struct str text)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    jw_pair(&w, "error", text);
    jw_obj_end(&w);
    answer_json(x, status, buf_str(&out));
}
