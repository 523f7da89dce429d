/*
 * check_service: the promises about nodes that are served by a configuration: I1 to I10 as they can be
 * seen at the server's commits, at the wire and in the inboxes of third parties.
 *
 * Written from the contract and the blueprint (blueprint.h), not from the controllers' code. A
 * commit of a patch is judged by the configuration and the clock of its sender at the moment of
 * sending, and by what was on the server when it took effect.
 */
#pragma once

#include "port/api.h"
#include "tests/swarm/config_oracle.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/check_drain_rules.h"

#define SERVICE_BLUEPRINTS 2u
#define SERVICE_SETTLED MINUTES(5) /* after the last fault: what waits has been looked at */

struct service {
    struct promise *promise;  /* borrowed */
    struct apiserver *server; /* borrowed */
    struct blueprint blueprints[SERVICE_BLUEPRINTS];
    bool on;      /* the trial has a configuration */
    bool elect;   /* grants are recorded */
    bool limited; /* every way into maintenance is */
    usec_t calm_since;
    struct rules rules; /* of nodes that are drained */
    struct arena memory;
    struct map sent;    /* writer/node/version → struct service_sent */
    struct map told;    /* message → struct service_told */
    struct map entered; /* uid/profile → struct service_entered */
    struct map hands;   /* node → struct service_hand */
};

/* Who sends, and by which configuration and clock. */
struct service_sender {
    struct str identity;
    uint32_t term;            /* counts its times as leader */
    uint32_t blueprint;       /* SERVICE_BLUEPRINTS: none */
    usec_t wall;              /* by its own clock */
    usec_t now;               /* true time */
    usec_t sent_at;           /* of a commit: the true time at which it was sent */
    usec_t blueprint_since;   /* true time */
    uint64_t blueprint_count; /* counts up with each change, of all */
};

void service_done(struct service *s);

/* A request leaves a controller. */
void service_on_send(struct service *s, const struct service_sender *who,
                     const struct api_request *request);
/* A write of a node by whomever; `writer` empty: not by a controller. */
void service_on_node_commit(struct service *s, struct str writer, const struct jval *before,
                            const struct jval *after, usec_t now);

/* The message in a text to a third party: "n0|node|profile|state|time"; empty: it has none. */
struct str service_message(struct str text);
/* It leaves; it has been taken in; the sender knows that. */
void service_on_tell(struct service *s, const struct service_sender *who, struct str message);
void service_on_heard(struct service *s, struct str message);
void service_on_told(struct service *s, const struct service_sender *who, struct str message);

/* At the end: nobody waits for nothing. `who` leads. */
void service_at_rest(struct service *s, const struct service_sender *who);
