#include "core/outside_call.h"

void outside_call_init(struct outside_call *c, struct loop *loop, struct outbound *outbound)
{
    *c = (struct outside_call){
        .loop = loop,
        .outbound = outbound,
        .backoff = { .base = OUTSIDE_RETRY_MIN, .max = OUTSIDE_RETRY_MAX },
    };
}

void outside_call_done(struct outside_call *c)
{
    if (c->call != NULL) {
        outbound_cancel(c->outbound, STEAL(c->call));
    }
}

bool outside_call_ready(const struct outside_call *c)
{
    return c->call == NULL && loop_now(c->loop) >= c->retry_at;
}

static void outside_call_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct outside_call *c = ctx;
    c->call = NULL;
    c->on_reply(c->ctx, reply);
}

void outside_call_send(struct outside_call *c, const struct outbound_request *request,
                       outbound_on_reply on_reply, void *ctx)
{
    ASSERT(outside_call_ready(c));
    c->on_reply = on_reply;
    c->ctx = ctx;
    c->sent++;
    c->call = outbound_http(c->outbound, request, outside_call_on_reply, c);
}

void outside_call_back_off(struct outside_call *c, usec_t at_least)
{
    usec_t wait = backoff_next(&c->backoff, loop_random(c->loop));
    c->failed++;
    c->retry_at = loop_now(c->loop) + MAX(wait, at_least);
}

int outside_call_judge(struct outside_call *c, const struct outbound_reply *reply, struct err *err)
{
    static const struct {
        int status;
        enum err_code code;
    } codes[] = {
        { 401, ERR_DENIED },   { 403, ERR_DENIED }, { 404, ERR_NOTFOUND },
        { 409, ERR_CONFLICT }, { 429, ERR_BUSY },
    };
    if (reply->status / 100 == 2) {
        backoff_reset(&c->backoff);
        c->retry_at = 0;
        return 0;
    }
    if (reply->status == 0) {
        *err = *reply->err;
        outside_call_back_off(c, reply->retry_after);
        return -(int)err->code;
    }
    enum err_code code = reply->status >= 500 ? ERR_IO : ERR_INVALID;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        code = codes[i].status == reply->status ? codes[i].code : code;
    }
    if (code == ERR_IO || code == ERR_BUSY) {
        outside_call_back_off(c, reply->retry_after);
    }
    return err_set(err, code, "the server answered %d", reply->status);
}
