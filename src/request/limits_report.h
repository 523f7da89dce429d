/*
 * limits_report: limits, what is held under them and who waits, as people see them.
 *
 * Made from arbiter, requests and profiles by the controller; or from the objects alone, by the
 * command line, which has nothing but an API server. Plain data and pure printers: the web view,
 * `drydock status`, `drydock limits` and `drydock explain` have one wording.
 *
 * A claim (the word of the JSON) is a request, or a profile's step into maintenance: it waits, or
 * it holds something. Texts are borrowed from where they come from.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "format/json_writer.h"
#include "kinds/maintenance_request.h"
#include "ledger/arbiter.h"
#include "request/requests.h"

#define LIMITS_REPORT_CLAIMS_SHOWN 20u /* claims of one kind in the text; -o wide has all */

/* Whoever holds a target. */
struct limits_report_holder {
    struct str target;
    struct str uid;
    struct str name;   /* of the request, or "profile/os" */
    struct str client; /* of the request; may be empty */
    struct str phase;
    usec_t since;           /* wall; 0 = unknown */
    usec_t deadline;        /* wall; USEC_NEVER = none */
    struct str at_deadline; /* what happens then; may be empty */
};

struct limits_report_limit {
    struct str name;
    struct str type;
    struct str selects; /* which of the type, in words; empty = all */
    bool exclusive;
    uint32_t percent;
    uint32_t minimum;
    uint32_t most; /* UINT32_MAX = none */
    bool computed; /* the numbers below are known */
    uint32_t population;
    uint32_t allowed;
    uint32_t held;
    uint32_t unavailable; /* and not held */
    uint32_t room;        /* how many more could be held now */
    uint32_t waiting;     /* at least; limits_report_finish counts */
    bool paused;
    bool over;          /* over-committed */
    struct str problem; /* why it grants nothing; empty = nothing is wrong */
    usec_t gap_end;     /* wall: nothing is granted before; 0 = there is no gap */
    struct limits_report_holder *holders;
    uint32_t holder_n;
};

struct limits_report_claim {
    struct str uid;
    struct str name; /* as a holder's */
    struct str client;
    struct str type;
    struct str target; /* "worker-1", "shop/web" */
    struct str phase;
    struct str step;
    struct str reason;
    struct str message;
    struct str until; /* what has to happen next, in words; see limits_report_finish */
    bool waits;
    bool last; /* behind all others that wait */
    bool ended;
    int32_t priority;
    uint32_t position;        /* in the queue of its limit, from 1; 0 = unknown */
    usec_t since;             /* wall: since when it is in this phase; 0 = unknown */
    usec_t deadline;          /* wall; USEC_NEVER = none */
    struct str at_deadline;   /* what happens then; may be empty */
    usec_t next;              /* wall: when it could change by itself; USEC_NEVER */
    struct str limit;         /* that refuses it; empty = none does */
    const struct str *limits; /* that apply to it */
    uint32_t limit_n;
    struct str blocker_uid;
    const struct limits_report_holder *blocker; /* who it waits for; NULL = nobody in particular */
};

enum limits_report_about { LIMITS_REPORT_ALL, LIMITS_REPORT_REQUEST, LIMITS_REPORT_LIMIT };

struct limits_report {
    usec_t now;
    uint32_t columns;                   /* of the text; 0 = 80 */
    enum limits_report_about about;     /* what it is narrowed to */
    struct limits_report_limit *limits; /* by name */
    uint32_t limit_n;
    uint32_t limit_cap;
    struct limits_report_claim *claims; /* see limits_report_finish */
    uint32_t claim_n;
    uint32_t claim_cap;
};

/* ── making one ────────────────────────────────────────────────────────────────────────────── */

/* Everything that is there but what has ended, unless `ended`. Without the CRDs both are NULL. */
void limits_report_collect(struct limits_report *b, const struct arbiter *arbiter,
                           const struct requests *requests, bool ended, struct arena *out);
void limits_report_add_limit(struct limits_report *b, const struct limits_report_limit *limit,
                             struct arena *out);
void limits_report_add_claim(struct limits_report *b, const struct limits_report_claim *claim,
                             struct arena *out);
/* Once all is there: brings limits and claims together, finds out who waits for whom and what
 * would help, and sorts: those that wait in the order of the queue, then the others by target.
 * Holders without a claim get one. */
void limits_report_finish(struct limits_report *b, struct arena *out);

/* Leaves what is to be known about one request: its limits, itself first, then who comes before it
 * in the queue. `name` may be its target. False: there is no such request. */
bool limits_report_only_request(struct limits_report *b, struct str name, struct arena *out);
/* The same for a limit: itself, and the claims that it concerns. */
bool limits_report_only_limit(struct limits_report *b, struct str name);

/* What happens to a request at its deadline, as the limits that apply to it say: "it goes back to
 * the queue". Empty: nothing, or it is not known. */
struct str limits_report_at_deadline(enum mrequest_phase phase, enum mrequest_step step,
                                     const struct limit_options *options);

/* ── reading it ────────────────────────────────────────────────────────────────────────────── */

/* "open", "full", "paused", "over-committed", "paused, over-committed", "not computed", "selects
 * nothing". */
struct str limits_report_limit_state(const struct limits_report_limit *l);
/* "mr-7 of kured", "profile os". */
struct str limits_report_owner_text(struct str name, struct str client, struct arena *out);
bool limits_report_is_profile(struct str name);
const struct limits_report_limit *limits_report_find_limit(const struct limits_report *b,
                                                           struct str name);

/* At most so many claims, and holders of one limit; 0 = all. The counts are of all of them. */
void limits_report_print_json(const struct limits_report *b, uint32_t most, struct json_writer *w);
/* 80 columns, or lines without end and nothing left out. */
void limits_report_print_text(const struct limits_report *b, bool wide, struct buf *out);
