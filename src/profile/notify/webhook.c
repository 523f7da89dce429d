/* webhook: sends the message to any HTTP server, signed if there is a secret. */
#include "base/hex.h"
#include "format/digest.h"
#include "profile/notify/notify_call.h"

static void on_answered(void *ctx, const struct outbound_reply *reply)
{
    notify_call_end_by_status(ctx, reply, "the webhook");
}

static struct str signature(struct notify_call *call, struct str secret, struct str body)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    unsigned char mac[SHA256_BYTES];
    sha256_hmac(secret, body, mac);
    buf_add(&text, STR("sha256="));
    hex_add(&text, mac, sizeof(mac), /* upper= */ false);
    return arena_str(&call->memory, buf_str(&text));
}

static int webhook_send(struct notify_call *call, struct err *err)
{
    const struct plugin_value *more = notify_call_value(call, "headers");
    struct str secret = notify_call_value(call, "secret")->text;
    struct str body;
    int r = notify_call_render(call, "body", &body, err);
    if (r < 0) {
        return r;
    }
    struct outbound_header *headers =
        ARENA_ARRAY(&call->memory, struct outbound_header, more->item_n + 2);
    headers[0] = (struct outbound_header){ STR("Content-Type"),
                                           notify_call_value(call, "contentType")->text };
    uint32_t n = 1;
    if (secret.n > 0) {
        headers[1] =
            (struct outbound_header){ STR("X-Drydock-Signature"), signature(call, secret, body) };
        n = 2;
    }
    for (uint32_t i = 0; i < more->item_n; i++) {
        struct str name;
        struct str value;
        (void)str_cut(more->items[i], STR(":"), &name, &value); /* check_webhook saw the ':' */
        headers[n + i] = (struct outbound_header){ str_trim(name), str_trim(value) };
    }
    struct outbound_request request = {
        .method = notify_call_value(call, "method")->text,
        .url = notify_call_value(call, "url")->text,
        .headers = headers,
        .header_n = n + more->item_n,
        .body = body,
        .timeout = notify_call_value(call, "timeout")->number / 1000,
    };
    notify_call_http(call, &request, on_answered);
    return 0;
}

const struct notify_sender notify_webhook = { .name = "webhook", .send = webhook_send };
