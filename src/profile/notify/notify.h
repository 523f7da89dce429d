/*
 * notify: one message about one node, from its template to whoever reads it.
 *
 * A call reads the whole Node, renders the instance's templates over it and sends the result by the
 * instance's plugin. It ends once: sent, failed, or cancelled. Nothing is tried again here but the
 * record of a Slack thread: when to send, and whether to send again, is decided by the caller. What
 * a call needs is copied when it begins, so the configuration may be replaced while it is under
 * way.
 *
 * Messages that share a Slack thread go one after the other, so that two nodes which change at
 * the same moment do not open two threads; the notifier keeps their queue.
 */
#pragma once

#include "base/list.h"
#include "base/timestamp.h"
#include "kube/client.h"
#include "port/outbound.h"
#include "profile/config.h"

struct notifier {
    struct loop *loop;     /* borrowed, all three */
    struct client *client; /* for the Node and for slackThread's Lease */
    struct outbound *outbound;
    struct list calls; /* under way, in the order in which they began */
};

/* What a template can use besides the Node. */
struct notify_facts {
    struct str node;            /* its name; empty: the message is about none */
    struct str state;           /* "in-maintenance" */
    struct str profile;         /* the one whose state it is */
    struct str profile_current; /* .Profile.Current; empty = `profile` */
    struct str profile_last;    /* .Profile.Last; the profile of the state before, may be empty */
    struct str reason;          /* .Reason: of an alert, a sentence; otherwise empty */
    struct str request;         /* .Request: the MaintenanceRequest that it is about, or empty */
    bool in_maintenance;        /* any profile of the node is */
    bool log_details;
    struct timestamp last_transition;
    struct timestamp last_sent; /* when the instance sent its last message; tells two apart */
};

struct notify_call;

/* `err` is NULL when the message is sent. `retry_after` is how long the other side asks to wait;
 * 0 = it did not say. The call has been freed by then. */
typedef void (*notify_on_done)(void *ctx, const struct err *err, usec_t retry_after);

void notifier_init(struct notifier *notifier, struct loop *loop, struct client *client,
                   struct outbound *outbound);

/* `instance` is one of PLUGIN_NOTIFY. on_done comes from the loop, never from inside. */
struct notify_call *notify_send(struct notifier *notifier, const struct config_instance *instance,
                                const struct notify_facts *facts, notify_on_done on_done,
                                void *ctx);

/* on_done will not come; whether the message went out is unknown. */
void notify_cancel(struct notify_call *call);
