/* How a mail goes out: libcurl connects, encrypts and logs in; smtp.h does the rest over that
 * connection. */
#include "host/outbound_internal.h"

#include <event2/event.h>

#include "host/curl_endpoint.h"
#include "host/loop.h"

#define QUIT_MAX SECONDS(1) /* the mail is accepted; how long the answer to QUIT is waited for */
#define READ_BYTES 4096

/* Go's net/smtp sends a password in clear to these only. */
static bool is_local(struct str address)
{
    static const struct str names[] = { STR_INIT("localhost"), STR_INIT("127.0.0.1"),
                                        STR_INIT("::1"), STR_INIT("[::1]") };
    size_t colon = str_rfind_char(address, ':');
    struct str host = colon == SIZE_MAX ? address : str_sub(address, 0, colon);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(host, names[i])) {
            return true;
        }
    }
    return false;
}

int outbound_mail_check(struct outbound_call *call, struct err *err)
{
    const struct outbound_mail *m = &call->mail;
    struct str host;
    struct str port;
    uint32_t number;
    size_t colon = str_rfind_char(m->address, ':');
    host = str_sub(m->address, 0, colon == SIZE_MAX ? 0 : colon);
    port = colon == SIZE_MAX ? STR_NONE : str_sub(m->address, colon + 1, SIZE_MAX);
    bool odd = false;
    for (size_t i = 0; i < m->address.n; i++) {
        unsigned char c = (unsigned char)m->address.p[i];
        odd = odd || c <= ' ' || c == 0x7f || strchr("/@?#\\%", (int)c) != NULL;
    }
    if (odd) {
        call->peer = STR("…"); /* not a text for a log */
    }
    if (odd || host.n == 0 || !str_to_u32(port, &number) || number == 0 || number > 65535) {
        return err_set(err, ERR_INVALID, "the address is not host:port");
    }
    int r = smtp_check(m->from, err);
    for (uint32_t i = 0; r == 0 && i < m->to_n; i++) {
        r = smtp_check(m->to[i], err);
    }
    if (r == 0 && m->to_n == 0) {
        r = err_set(err, ERR_INVALID, "found no receiver, want one at least");
    }
    if (r == 0 && m->payload.n > SMTP_PAYLOAD_MAX) {
        r = err_set(err, ERR_LIMIT, "found a mail of %zu bytes, want %zu at most", m->payload.n,
                    SMTP_PAYLOAD_MAX);
    }
    return r;
}

bool outbound_mail_decided(struct outbound_call *call)
{
    return call->mail_state.talking && call->mail_state.smtp.status != 0;
}

void outbound_mail_stop(struct outbound_call *call)
{
    struct outbound_mail_state *l = &call->mail_state;
    if (l->event != NULL) {
        event_free(STEAL(l->event)); /* before its descriptor is closed */
    }
    if (call->attached) {
        curl_loop_remove(l->multi, call->easy); /* closes the connection without QUIT */
        call->attached = false;
    }
    curl_loop_free(STEAL(l->multi));
}

static void mail_fail(struct outbound_call *call, enum err_code code, const char *text)
{
    struct err err = { 0 };
    (void)err_set(&err, code, "%s", text); /* the code is what is wanted */
    outbound_call_fail(call, &err);
}

static void on_socket(evutil_socket_t fd, short what, void *ctx);

static void watch_socket(struct outbound_call *call, short events)
{
    struct outbound_mail_state *l = &call->mail_state;
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (l->event != NULL && l->watched == events) {
        return;
    }
    if (l->event != NULL) {
        event_free(STEAL(l->event));
    }
    (void)curl_easy_getinfo(call->easy, CURLINFO_ACTIVESOCKET, &fd);
    if (fd == CURL_SOCKET_BAD) {
        mail_fail(call, ERR_IO, "closed the connection");
        return;
    }
    l->watched = events;
    l->event = event_new(host_loop_base(call->outbound->loop), fd, events, on_socket, call);
    ASSERT(l->event != NULL);
    int r = event_add(l->event, NULL);
    ASSERT(r == 0);
}

/* Sends what is to be sent; false when the connection is no more. */
static bool mail_write(struct outbound_call *call)
{
    struct smtp *s = &call->mail_state.smtp;
    while (s->out.n > 0) {
        size_t n = 0;
        CURLcode code = curl_easy_send(call->easy, s->out.p, s->out.n, &n);
        if (code == CURLE_AGAIN) {
            return true;
        }
        if (code != CURLE_OK) {
            return false;
        }
        buf_drop(&s->out, n);
    }
    return true;
}

/* Takes what has come; false when the connection is no more, or speaks nonsense. */
static bool mail_read(struct outbound_call *call, struct err *err)
{
    struct smtp *s = &call->mail_state.smtp;
    char bytes[READ_BYTES];
    while (s->step != SMTP_OVER) {
        size_t n = 0;
        CURLcode code = curl_easy_recv(call->easy, bytes, sizeof(bytes), &n);
        if (code == CURLE_AGAIN) {
            return true;
        }
        if (code != CURLE_OK || n == 0) {
            (void)err_set(err, ERR_IO, "the answer broke off");
            return false;
        }
        if (smtp_take(s, (struct str){ .p = bytes, .n = n }, err) < 0) {
            return false;
        }
    }
    return true;
}

/* One round over the connection: read, then write what that made due. */
static void mail_talk(struct outbound_call *call)
{
    struct outbound_mail_state *l = &call->mail_state;
    struct smtp *s = &l->smtp;
    struct err err = { 0 };
    bool open = mail_read(call, &err);
    if (open && !mail_write(call)) {
        open = false;
        (void)err_set(&err, ERR_IO, "the connection broke off");
    }
    if (s->status != 0 && call->status == 0) {
        call->status = s->status;
        buf_add(&call->reply, buf_str(&s->text));
        /* The server has accepted or refused the mail already; a failing QUIT changes nothing. */
        loop_timer_set(&call->timer,
                       MIN(call->timer.at, loop_now(call->outbound->loop) + QUIT_MAX));
    }
    if (s->status != 0 && (!open || s->step == SMTP_OVER)) {
        outbound_call_end(call);
    } else if (!open) {
        outbound_call_fail(call, &err);
    } else {
        watch_socket(call, (short)(EV_PERSIST | EV_READ | (s->out.n > 0 ? EV_WRITE : 0)));
    }
}

static void on_socket(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    struct outbound_call *call = ctx;
    (void)loop_now(call->outbound->loop); /* the turn begins for the clock */
    if (call->state == OUTBOUND_OVER) {
        event_free(STEAL(call->mail_state.event)); /* it waits for its delivery */
        return;
    }
    mail_talk(call);
}

/* What the server says while libcurl speaks with it. */
static size_t curl_on_line(char *data, size_t size, size_t n, void *ctx)
{
    struct outbound_call *call = ctx;
    struct outbound_mail_state *l = &call->mail_state;
    struct str line = str_trim((struct str){ .p = data, .n = size * n });
    uint32_t code;
    if (line.n < 3 || !str_to_u32(str_sub(line, 0, 3), &code)) {
        return size * n;
    }
    struct str text = str_sub(line, MIN(line.n, (size_t)4), SIZE_MAX);
    size_t kept = MIN(text.n, sizeof(l->last_text) - 1);
    l->last_code = (int)code;
    memcpy(l->last_text, kept > 0 ? text.p : "", kept);
    l->last_text[kept] = '\0';
    if (code == 220) { /* a greeting, or STARTTLS: what was offered before counts no more */
        l->eight_bit = false;
        l->utf8 = false;
    } else if (code == 235) {
        l->logged_in = true;
    } else if (code == 250) {
        l->eight_bit = l->eight_bit || str_eq_fold(text, STR("8BITMIME"));
        l->utf8 = l->utf8 || str_eq_fold(text, STR("SMTPUTF8"));
    }
    return size * n;
}

static bool keeps_connection(void *ctx UNUSED, CURL *easy UNUSED, CURLcode result)
{
    return result == CURLE_OK;
}

static void connect_failed(struct outbound_call *call, CURLcode result)
{
    const struct outbound_mail_state *l = &call->mail_state;
    struct err err = { 0 };
    bool answered = result == CURLE_LOGIN_DENIED || result == CURLE_REMOTE_ACCESS_DENIED ||
                    result == CURLE_WEIRD_SERVER_REPLY;
    if (result == CURLE_USE_SSL_FAILED) {
        mail_fail(call, ERR_DENIED,
                  "offers no STARTTLS, and a password is not sent over a link in clear");
    } else if (result == CURLE_LOGIN_DENIED && l->last_code < 400) {
        mail_fail(call, ERR_DENIED, "offers no AUTH PLAIN, so nobody can log in");
    } else if (answered && l->last_code >= 400) {
        call->status = l->last_code; /* it has refused in its own words */
        buf_add(&call->reply, str_from(l->last_text));
        outbound_call_end(call);
    } else {
        (void)curl_endpoint_explain(call->easy, result, call->detail, &err); /* for its words */
        outbound_call_fail(call, &err);
    }
}

/* libcurl has made the connection, or given up. */
static void on_connected(void *ctx, CURL *easy UNUSED, CURLcode result)
{
    struct outbound_call *call = ctx;
    struct outbound_mail_state *l = &call->mail_state;
    call->attached = result == CURLE_OK;
    if (result != CURLE_OK) {
        connect_failed(call, result);
        return;
    }
    if (call->mail.auth && !l->logged_in) {
        mail_fail(call, ERR_DENIED, "offers no AUTH PLAIN, so nobody can log in");
        return;
    }
    struct smtp_mail mail = {
        .from = call->mail.from,
        .to = call->mail.to,
        .to_n = call->mail.to_n,
        .payload = call->mail.payload,
        .eight_bit = l->eight_bit,
        .utf8 = l->utf8,
    };
    smtp_init(&l->smtp, &mail);
    l->talking = true;
    mail_talk(call);
}

void outbound_mail_start(struct outbound_call *call)
{
    const struct outbound_mail *m = &call->mail;
    struct outbound_mail_state *l = &call->mail_state;
    l->multi = curl_loop_new(call->outbound->loop, on_connected, call);
    curl_loop_set_keeps(l->multi, keeps_connection);
    outbound_call_prepare(call);
    /* The path is what EHLO says. */
    struct str url =
        arena_printf(&call->memory, "smtp://" STR_FMT "/localhost", STR_ARG(m->address));
    bool must = m->auth && !is_local(m->address);
    (void)curl_easy_setopt(call->easy, CURLOPT_PROTOCOLS_STR, "smtp");
    (void)curl_easy_setopt(call->easy, CURLOPT_URL, url.p);
    (void)curl_easy_setopt(call->easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(call->easy, CURLOPT_CONNECT_ONLY, 1L);
    (void)curl_easy_setopt(call->easy, CURLOPT_USE_SSL,
                           must ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_TRY);
    (void)curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, curl_on_line);
    (void)curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
    if (m->auth) {
        (void)curl_easy_setopt(call->easy, CURLOPT_USERNAME, m->user.p);
        (void)curl_easy_setopt(call->easy, CURLOPT_PASSWORD, m->password.p);
        (void)curl_easy_setopt(call->easy, CURLOPT_LOGIN_OPTIONS, "AUTH=PLAIN");
        (void)curl_easy_setopt(call->easy, CURLOPT_SASL_IR, 1L);
        if (m->identity.n > 0) {
            (void)curl_easy_setopt(call->easy, CURLOPT_SASL_AUTHZID, m->identity.p);
        }
    }
    curl_loop_add(l->multi, call->easy);
    call->attached = true;
}
