/* mail: sends the message by SMTP. */
#include "base/buf.h"
#include "profile/notify/notify_call.h"

static void on_mail(void *ctx, const struct outbound_reply *reply)
{
    notify_call_end_by_status(ctx, reply, "the mail server");
}

/* The original's bytes: no Date, no MIME, the subject as it is. */
static int mail_send(struct notify_call *call, struct err *err)
{
    CLEANUP(buf_done)
    struct buf payload = { .max = 2 * NOTIFY_TEXT_MAX };
    struct str message;
    const struct plugin_value *to = notify_call_value(call, "to");
    int r = notify_call_render(call, "message", &message, err);
    if (r < 0) {
        return r;
    }
    buf_add(&payload, STR("From: "));
    buf_add(&payload, notify_call_value(call, "from")->text);
    buf_add(&payload, STR("\r\nTo: "));
    for (uint32_t i = 0; i < to->item_n; i++) {
        buf_add(&payload, i > 0 ? STR(",") : STR(""));
        buf_add(&payload, to->items[i]);
    }
    buf_add(&payload, STR("\r\nSubject: "));
    buf_add(&payload, notify_call_value(call, "subject")->text);
    buf_add(&payload, STR("\r\n\r\n"));
    buf_add(&payload, message);
    if (payload.full) {
        return err_set(err, ERR_LIMIT, "found a mail of more than %zu bytes, want less",
                       payload.max);
    }
    struct outbound_mail mail = {
        .address = notify_call_value(call, "address")->text,
        .from = notify_call_value(call, "from")->text,
        .to = to->items,
        .to_n = to->item_n,
        .payload = buf_str(&payload),
        .auth = notify_call_value(call, "auth")->truth,
        .identity = notify_call_value(call, "identity")->text,
        .user = notify_call_value(call, "user")->text,
        .password = notify_call_value(call, "password")->text,
    };
    notify_call_mail(call, &mail, on_mail);
    return 0;
}

const struct notify_sender notify_mail = { .name = "mail", .send = mail_send };
