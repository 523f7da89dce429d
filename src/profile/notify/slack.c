/* slack: posts the message to an incoming webhook of Slack. */
#include "format/json_writer.h"
#include "profile/notify/notify_call.h"

static void on_posted(void *ctx, const struct outbound_reply *reply)
{
    struct notify_call *call = ctx;
    struct err err = { 0 };
    /* The body "ok" alone says that it was sent; the status adds nothing. */
    if (reply->err == NULL && str_eq(reply->body, STR("ok"))) {
        notify_call_end(call, NULL, 0);
        return;
    }
    notify_call_explain(reply, "it", &err);
    (void)err_wrap(&err, reply->err != NULL ? "slack" : "slack webhook response is not ok");
    notify_call_end(call, &err, reply->retry_after);
}

static int slack_send(struct notify_call *call, struct err *err)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct json_writer w = json_writer_on(&body);
    struct str message;
    int r = notify_call_render(call, "message", &message, err);
    if (r < 0) {
        return r;
    }
    jw_obj(&w);
    jw_pair(&w, "text", message);
    jw_pair(&w, "channel", notify_call_value(call, "channel")->text);
    jw_obj_end(&w);
    const struct outbound_header headers[] = { { STR("Content-Type"), STR("application/json") } };
    struct outbound_request request = {
        .method = STR("POST"),
        .url = notify_call_value(call, "hook")->text,
        .headers = headers,
        .header_n = ARRAY_LEN(headers),
        .body = buf_str(&body),
    };
    notify_call_http(call, &request, on_posted);
    return 0;
}

const struct notify_sender notify_slack = { .name = "slack", .send = slack_send };
