/*
 * client: one API server as all parts of a controller share it: the door, its gate and its tally.
 *
 * Whoever gets a reply says so with client_note before anything else; that counts it and closes or
 * opens the gate. Nothing is queued here: who finds the gate closed sets its own timer for
 * client_open_at.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/ratelimit.h"
#include "kube/server_clock.h"
#include "base/mutation.h"
#include "kube/retry.h"
#include "port/api.h"
#include "port/loop.h"

struct client {
    struct loop *loop; /* borrowed */
    struct api *api;   /* borrowed */
    struct retry_gate gate;
    struct server_clock clock; /* the server's */
    MUTATIONS_FIELD;
    /* Writes in flight that somebody waits for; what is only told to people lets them go first. */
    uint32_t urgent;
    /* What a server that is not trusted may send, in units of client_take_traffic; borrowed, and
     * NULL for a server that is. */
    struct ratelimit *traffic;
    /* Every answer, for metrics; may be NULL. Status 0 is no answer. */
    void (*on_reply)(void *ctx, enum api_verb verb, int status);
    void *ctx;
};

void client_init(struct client *c, struct loop *loop, struct api *api);

bool client_open(const struct client *c);
usec_t client_open_at(const struct client *c);

/* Why nothing is sent now. */
struct client_pause {
    usec_t since; /* both by the server's wall clock */
    usec_t until;
    int status;   /* of the answer that said so; 0 = there was none */
    usec_t asked; /* by its Retry-After, as far as it is obeyed; 0 = it had none */
};
/* False: requests are sent. */
bool client_pause(const struct client *c, struct client_pause *ret);
/* The same in words; empty = requests are sent. `server`: its host and port, or empty. */
struct str client_pause_text(const struct client *c, struct str server, struct arena *out);

enum retry_verdict client_note(struct client *c, enum api_verb verb, const struct api_reply *reply);
/* The same for an answer of which the caller knows better what it means: a 429 that a disruption
 * budget gave concerns one pod, and is no reason to quiet anybody else. */
void client_note_as(struct client *c, enum api_verb verb, const struct api_reply *reply,
                    enum retry_verdict verdict);
/* The same for the beginning and the end of a watch; `opened`: its beginning was noted. */
enum retry_verdict client_note_watch(struct client *c, const struct api_watch_event *event,
                                     bool opened);

/* Counts an answer or an event against `traffic`: a unit for it, and one more for each KiB. Fails
 * with ERR_LIMIT when more has come than is allowed. */
NODISCARD
int client_take_traffic(struct client *c, size_t bytes, struct err *err);

/* "the server answered 403: nodes is forbidden": the message of a Status body, or the transport's.
 */
void client_explain(int status, struct str body, const struct err *cause, struct err *ret);

/* Adds a path segment, percent-encoded: a name from a stranger must not become another path. */
void client_add_segment(struct buf *path, struct str name);
