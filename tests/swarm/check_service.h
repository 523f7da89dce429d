/*
 * check_service: the promises about nodes that are served by a configuration: I1 to I10 as they can
 * be seen at the server's commits, at the wire and in the inboxes of third parties.
 *
 * Written from docs/contract/ and the configuration (random_config.h), not from the controllers'
 * code. A commit of a patch is judged by the configuration and the clock of its sender at the
 * moment of sending, and by what was on the server when it took effect.
 */
#pragma once

#include "port/api.h"
#include "tests/swarm/config_oracle.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/check_drain_rules.h"

#define CHECK_SERVICE_CONFIGS 2u
#define CHECK_SERVICE_ANSWER_MAX                                                                   \
    SECONDS(45) /* how old an answer of Prometheus may be when a node goes by it */
/* Whoever leads has read its Lease within the time for which it may act without renewing it. */
#define CHECK_SERVICE_PAUSE_SEEN SECONDS(15)
#define CHECK_SERVICE_SETTLED MINUTES(5) /* after the last fault: what waits has been looked at */

struct check_service {
    struct check_basic *basic; /* borrowed */
    struct apiserver *server;  /* borrowed */
    struct random_config configs[CHECK_SERVICE_CONFIGS];
    bool on;              /* the run has a configuration */
    bool elect;           /* grants are recorded */
    bool limited;         /* every way into maintenance is */
    bool told_in_the_end; /* messages get through again when the faults are over */
    usec_t recovery_since;
    usec_t prometheus_no_since;     /* true time; USEC_NEVER: it says yes */
    usec_t paused_since;            /* true time: everything is; USEC_NEVER: it is not */
    struct check_drain_rules rules; /* of nodes that are drained */
    struct arena memory;
    struct map sent;           /* writer/node/version → struct check_service_sent */
    struct map notified;       /* message → struct check_service_notified */
    struct map entered;        /* uid/profile → struct check_service_entered */
    struct map manual_cordons; /* node → struct check_service_manual_cordon */
    struct map granted;        /* node → struct check_service_granted */
    struct map asked;          /* identity → struct check_service_asked */
    struct map looked;         /* node → struct check_service_looked */
};

/* Who sends, and by which configuration and clock. */
struct check_sender {
    struct str identity;
    uint32_t term;           /* counts its times as leader */
    uint32_t config;         /* CHECK_SERVICE_CONFIGS: none */
    usec_t wall;             /* by its own clock */
    usec_t now;              /* true time */
    usec_t sent_at;          /* of a commit: the true time at which it was sent */
    usec_t config_since;     /* true time */
    uint64_t config_version; /* counts up with each change, of all */
};

void check_service_done(struct check_service *s);

/* A request leaves a controller. */
void check_service_on_send(struct check_service *s, const struct check_sender *sender,
                           const struct api_request *request);
/* It asks Prometheus. */
void check_service_on_query_send(struct check_service *s, const struct check_sender *sender);
/* A write of the leader's Lease, with the grants that it records. */
void check_service_on_lease_commit(struct check_service *s, usec_t now);
/* A write of a node by whomever; `writer` empty: not by a controller. */
void check_service_on_node_commit(struct check_service *s, struct str writer,
                                  const struct jval *before, const struct jval *after, usec_t now);

/* The message in a text to a third party: "n0|node|profile|state|time"; empty: it has none. */
struct str check_service_message(struct str text);
/* It leaves; it has been taken in; the sender knows that. */
void check_service_on_notify_send(struct check_service *s, const struct check_sender *sender,
                                  struct str message);
void check_service_on_notify_received(struct check_service *s, struct str message);
void check_service_on_notify_acked(struct check_service *s, const struct check_sender *sender,
                                   struct str message);

/* At the end: nobody waits for nothing. `who` leads. */
void check_service_at_end(struct check_service *s, const struct check_sender *sender);
