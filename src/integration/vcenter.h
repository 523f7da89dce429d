/*
 * vcenter: one vCenter as it is spoken to: a session that is kept and renewed, an inventory that is
 * read as a whole when somebody asks for it, and calls that switch machines on and off.
 *
 * Nothing blocks and nothing is repeated without a wait. The inventory is read on one line of
 * requests, one at a time: session, view, pages, and then what is to be known of tasks and alarms.
 * A session that has expired is renewed once a reading. Whoever is refused by user or password
 * waits long before the next try: servers lock accounts. While a vCenter fails, what was read of it
 * before is kept, and the time of that reading says how old it is.
 *
 * Passwords and cookies are in no message, and their memory is wiped.
 */
#pragma once

#include "base/list.h"
#include "base/log.h"
#include "integration/vim25.h"
#include "kube/retry.h"
#include "port/loop.h"
#include "port/outbound.h"

#define VCENTER_RETRY_MIN SECONDS(2)
#define VCENTER_RETRY_MAX MINUTES(2)
/* vSphere locks an account for five minutes after five refusals within three; other directories
 * are stricter. */
#define VCENTER_LOGIN_RETRY_MIN MINUTES(10)
#define VCENTER_LOGIN_RETRY_MAX HOURS(2)
#define VCENTER_TASK_TIMEOUT MINUTES(5) /* longer tasks of machines hang */

struct vcenter;

struct vcenter_config {
    struct str url; /* with /sdk */
    struct str user;
    struct str password;
    bool insecure;
    bool alarms; /* the names of triggered alarms are wanted */
};

struct vcenter_hooks {
    void (*on_change)(void *ctx); /* from the loop: an inventory was read, or something failed */
    /* Whether the tasks and alarms of that host are wanted. */
    bool (*wants_host)(void *ctx, struct str host);
    void *ctx;
};

/* What the line waits for. */
enum vcenter_stage {
    VCENTER_CONTENT,
    VCENTER_LOGIN,
    VCENTER_VIEW,
    VCENTER_PAGE,
    VCENTER_DETAILS,
};

struct vcenter {
    struct loop *loop;         /* borrowed */
    struct outbound *outbound; /* borrowed */
    struct vcenter_hooks hooks;
    struct arena memory; /* of `config`; wiped */
    struct vcenter_config config;

    /* The session. */
    struct arena session;
    struct vim25_service service;
    struct str cookie;     /* empty: nobody is logged in */
    struct vim25_ref view; /* empty: there is none */

    /* The line. */
    struct outbound_call *call;
    enum vcenter_stage stage; /* of `call` */
    struct loop_timer timer;
    struct backoff backoff;
    struct backoff login_backoff;
    usec_t retry_at; /* monotonic: nothing is sent on the line before */
    bool wanted;     /* somebody wants another inventory */
    bool begun;      /* its first page was asked for */
    bool renewed;    /* the session, during this reading */
    struct str token;
    struct arena reading; /* memory of `objects` */
    struct vim25_objects objects;

    /* What is known. */
    struct arena known;
    struct vim25_objects inventory;
    usec_t read_at;       /* monotonic: when it was asked for; 0 = never */
    usec_t asked_at;      /* the same of the reading that is under way */
    usec_t took;          /* the last reading */
    struct err err;       /* why the last try failed; code 0 = it did not */
    usec_t failing_since; /* monotonic; 0 = it does not fail */
    bool refused;         /* it does not accept user or password */
    uint64_t requests;    /* all that were sent */
    uint64_t logins;

    struct list calls;           /* of machines; struct vcenter_call */
    struct outbound_call *check; /* of machines that are waited for */
};

void vcenter_init(struct vcenter *v, struct loop *loop, struct outbound *outbound,
                  const struct vcenter_hooks *hooks);
/* Cancels what is in flight and ends the session, as far as the door still sends that. Calls of
 * machines are forgotten without an answer. Accepts a zeroed one. */
void vcenter_done(struct vcenter *v);
/* Texts are copied. Another server, user or password begins a new session, at once. */
void vcenter_configure(struct vcenter *v, const struct vcenter_config *config);

/* Reads the inventory, unless that is under way or has to wait. */
void vcenter_read(struct vcenter *v);
/* Reads these machines again, for their power state, into the inventory; one such reading at a
 * time. False: not now. */
bool vcenter_check_vms(struct vcenter *v, const struct vim25_ref *vms, uint32_t n);

/* ── machines ──────────────────────────────────────────────────────────────────────────────── */

struct vcenter_result {
    enum vim25_fault fault;
    struct err err; /* code 0: it was done */
};

struct vcenter_call {
    struct list link;
    struct vcenter *v;
    enum vim25_power_call what;
    struct outbound_call *call;
    struct arena memory;
    struct vim25_ref task; /* empty: not known yet */
    usec_t give_up_at;
    usec_t wait;
    struct loop_timer timer;
    void (*on_done)(void *ctx, const struct vcenter_result *result);
    void *ctx;
};

/* Sends the call and waits for its task. `on_done` comes from the loop, and the handle is gone
 * then. NULL: there is no session now. */
struct vcenter_call *vcenter_power(struct vcenter *v, enum vim25_power_call what,
                                   struct vim25_ref vm,
                                   void (*on_done)(void *ctx, const struct vcenter_result *result),
                                   void *ctx);
/* Whether it takes effect is unknown. Accepts NULL. */
void vcenter_power_cancel(struct vcenter_call *c);
