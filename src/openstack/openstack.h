/*
 * openstack: a session with OpenStack's identity service, Keystone v3 or v2.0: a token, and where
 * the compute service of the region is.
 *
 * Level-triggered: openstack_get answers with the session, says that it is being made (`on_change`
 * comes from the loop when it is worth asking again), or says what is wrong. A token is renewed
 * before it expires and after somebody was refused with it. Credentials are read for each login and
 * wiped when it is sent; neither they nor the token are ever part of a message.
 */
#pragma once

#include "core/outside_call.h"
#include "core/secret_source.h"
#include "openstack/cloud_config.h"

#define OPENSTACK_REPLY_MAX ((size_t)4 * 1024 * 1024) /* a catalogue of many regions */
#define OPENSTACK_EARLY MINUTES(2)        /* a token is renewed that long before its end */
#define OPENSTACK_LIFE HOURS(1)           /* of a token that does not say */
#define OPENSTACK_REFUSED_MIN SECONDS(30) /* after a wrong password: accounts get locked */
#define OPENSTACK_FILE STR("provider/cloudprovider.conf") /* where the original looks */
#define OPENSTACK_SECRET_KEY STR("cloudprovider.conf")

/* Texts live until the next call of openstack_get or openstack_refused. */
struct openstack_session {
    struct str token;   /* for the header X-Auth-Token */
    struct str compute; /* the compute service's URL, without a slash at its end; empty: the
                         * catalogue has none, `compute_error` says so */
    struct str compute_error;
    struct str region;
    struct str project; /* its id */
    uint64_t generation;
};

enum openstack_stage {
    OPENSTACK_CLOSED,
    OPENSTACK_DISCOVERS, /* asks which versions of the identity API there are */
    OPENSTACK_LOGS_IN,
    OPENSTACK_OPEN,
};

struct openstack_config {
    struct client *client;     /* for Secrets; borrowed */
    struct outbound *outbound; /* borrowed; NULL: it cannot be reached from here */
    const struct files *files; /* borrowed; may be NULL */
    void (*on_change)(void *ctx);
    void *ctx;
};

struct openstack {
    struct openstack_config config;
    struct loop *loop;
    enum openstack_stage stage;
    struct secret_source source;
    struct outside_call call;
    struct arena login; /* of `cloud`; wiped when the login is sent */
    struct cloud_config cloud;
    bool v2;             /* Keystone v2.0 */
    struct arena memory; /* of `session`; wiped */
    struct openstack_session session;
    usec_t renew_at; /* monotonic */
    struct err err;  /* of the last login; code 0 = none */
    uint64_t logins; /* that succeeded */
};

void openstack_init(struct openstack *o, const struct openstack_config *config);
void openstack_done(struct openstack *o); /* wipes; accepts a zeroed one */
/* With both texts the Secret's key OPENSTACK_SECRET_KEY, otherwise the file OPENSTACK_FILE. */
void openstack_set_secret(struct openstack *o, struct str namespace, struct str name);

/* 0: `*ret`. -ERR_BUSY: it is being made. Otherwise `err` says what is wrong; it is tried again,
 * when it is asked for, from openstack_retry_at on. */
NODISCARD
int openstack_get(struct openstack *o, struct openstack_session *ret, struct err *err);
/* A server refused the token of that session (401). */
void openstack_refused(struct openstack *o, uint64_t generation);
usec_t openstack_retry_at(const struct openstack *o); /* monotonic */
