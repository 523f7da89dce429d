/*
 * notify_call: one notification under way, as its plugin sees it.
 *
 * A plugin is a sender: it is handed a call whose Node has been read and sees it through to
 * notify_call_end, which frees the call. Everything a sender makes lives in the call's memory.
 */
#pragma once

#include "format/govalue.h"
#include "profile/notify/notify.h"

#define NOTIFY_TEXT_MAX ((size_t)256 * 1024) /* as much as a template gives */
/* A longer Retry-After is not obeyed: the message might never be sent. */
#define NOTIFY_RETRY_AFTER_MAX HOURS(1)

struct notify_call;

struct notify_sender {
    const char *name; /* of the plugin */
    /* Ends with notify_call_end; when `send` itself fails, its caller ends the call. */
    int (*send)(struct notify_call *call, struct err *err);
    /* May be NULL: another call of this sender has ended, and this one may go on. */
    void (*wake)(struct notify_call *call);
};

extern const struct notify_sender notify_mail;
extern const struct notify_sender notify_slack;
extern const struct notify_sender notify_slack_thread;
extern const struct notify_sender notify_webhook;

struct notify_call {
    struct list link; /* in the notifier's calls */
    struct notifier *notifier;
    struct arena memory;
    const struct notify_sender *sender;
    const struct plugin *plugin;
    struct str instance;         /* its name */
    struct plugin_value *values; /* texts and lists are copies; no dates, no cron */
    struct notify_facts facts;
    struct govalue root;  /* of templates, once the Node is there */
    struct api_call *api; /* at most one of both is under way */
    struct outbound_call *outbound;
    api_on_reply on_api; /* called at its end */
    enum api_verb verb;
    outbound_on_reply on_wire;
    struct loop_timer timer;
    void (*on_timer)(struct notify_call *call);
    void *sender_data; /* the sender's, in `memory` */
    notify_on_done on_done;
    void *ctx;
};

const struct plugin_value *notify_call_value(const struct notify_call *call, const char *key);

/* Renders the template of a key. */
NODISCARD
int notify_call_render(struct notify_call *call, const char *key, struct str *ret, struct err *err);

/* `on_reply` gets the call as its ctx. */
void notify_call_api(struct notify_call *call, const struct api_request *request,
                     api_on_reply on_reply);
void notify_call_http(struct notify_call *call, const struct outbound_request *request,
                      outbound_on_reply on_reply);
void notify_call_mail(struct notify_call *call, const struct outbound_mail *mail,
                      outbound_on_reply on_reply);
/* From the loop, no sooner than `at`. */
void notify_call_wait(struct notify_call *call, usec_t at,
                      void (*on_timer)(struct notify_call *call));

/* The reply's own failure, or "WHO answered 404: not found"; bodies are cut to a line. */
void notify_call_explain(const struct outbound_reply *reply, const char *who, struct err *ret);

/* `err` is NULL when the message was sent. Frees the call. */
void notify_call_end(struct notify_call *call, const struct err *err, usec_t retry_after);
/* The same for a reply whose status says whether the message was sent: 2xx. */
void notify_call_end_by_status(struct notify_call *call, const struct outbound_reply *reply,
                               const char *who);
