/* webhook: sends the message to any HTTP server, signed if there is a secret. */
#include "base/base64.h"
#include "base/hex.h"
#include "format/digest.h"
#include "profile/notify/notify_call.h"

static void on_answered(void *ctx, const struct outbound_reply *reply)
{
    notify_call_end_by_status(ctx, reply, "the webhook");
}

#define WEBHOOK_SIGNATURE_HEADERS 4u
#define WEBHOOK_ID_BYTES 16u

/* The same for every attempt to send one message, also by another replica or after a crash, and
 * another one for the next message, so that a receiver can tell a repetition. */
static struct str webhook_id(struct notify_call *call)
{
    const struct notify_facts *f = &call->facts;
    unsigned char hash[SHA256_BYTES];
    CLEANUP(buf_done)
    struct buf text = { 0 };
    sha256(arena_printf(&call->memory,
                        STR_FMT "\n" STR_FMT "\n" STR_FMT "\n" STR_FMT
                                "\n%lld.%09d\n%lld.%09d%s" STR_FMT,
                        STR_ARG(call->instance), STR_ARG(f->node), STR_ARG(f->profile),
                        STR_ARG(f->state), (long long)f->last_transition.sec,
                        f->last_transition.nsec, (long long)f->last_sent.sec, f->last_sent.nsec,
                        f->request.n > 0 ? "\n" : "", STR_ARG(f->request)),
           hash);
    buf_add(&text, STR("msg_"));
    hex_add(&text, hash, WEBHOOK_ID_BYTES, /* upper= */ false);
    return arena_str(&call->memory, buf_str(&text));
}

/* Of the body alone: what receivers of earlier versions verify. */
static struct str webhook_body_signature(struct notify_call *call, struct str secret,
                                         struct str body)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    unsigned char mac[SHA256_BYTES];
    sha256_hmac(secret, body, mac);
    buf_add(&text, STR("sha256="));
    hex_add(&text, mac, sizeof(mac), /* upper= */ false);
    return arena_str(&call->memory, buf_str(&text));
}

/* Of id, time and body, as https://www.standardwebhooks.com has it. */
static struct str webhook_signature(struct notify_call *call, struct str secret, struct str text)
{
    unsigned char mac[SHA256_BYTES];
    struct str key = secret;
    struct str encoded;
    if (str_cut_prefix(secret, WEBHOOK_SECRET_PREFIX, &encoded)) {
        bool good = base64_decode(encoded, &call->memory, &key);
        ASSERT(good); /* check_webhook saw it */
    }
    sha256_hmac(key, text, mac);
    struct str bytes = { .p = (const char *)mac, .n = sizeof(mac) };
    return arena_concat(&call->memory, STR("v1,"), base64_encode(&call->memory, bytes));
}

static void webhook_sign(struct notify_call *call, struct str secret, struct str body,
                         struct outbound_header ret[WEBHOOK_SIGNATURE_HEADERS])
{
    struct str id = webhook_id(call);
    struct str at = arena_printf(&call->memory, "%lld",
                                 (long long)(loop_wall(call->notifier->loop) / SECONDS(1)));
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, STR_FMT "." STR_FMT ".", STR_ARG(id), STR_ARG(at));
    buf_add(&text, body);
    ret[0] = (struct outbound_header){ STR("webhook-id"), id };
    ret[1] = (struct outbound_header){ STR("webhook-timestamp"), at };
    ret[2] = (struct outbound_header){ STR("webhook-signature"),
                                       webhook_signature(call, secret, buf_str(&text)) };
    ret[3] = (struct outbound_header){ STR("X-Drydock-Signature"),
                                       webhook_body_signature(call, secret, body) };
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
    struct outbound_header *headers = ARENA_ARRAY(&call->memory, struct outbound_header,
                                                  more->item_n + 1 + WEBHOOK_SIGNATURE_HEADERS);
    headers[0] = (struct outbound_header){ STR("Content-Type"),
                                           notify_call_value(call, "contentType")->text };
    uint32_t n = 1;
    if (secret.n > 0) {
        webhook_sign(call, secret, body, &headers[n]);
        n += WEBHOOK_SIGNATURE_HEADERS;
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
