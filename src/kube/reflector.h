/*
 * reflector: brings all objects of one path, and then every change of them, in order and for ever.
 *
 * It begins with a streaming list (a watch that sends the initial objects first); a server that
 * does not offer it is asked for pages. Afterwards it watches, and resumes from the last
 * resourceVersion when the stream ends. When the server has forgotten that version (410) it lists
 * again, between on_list and on_synced, so that whoever keeps the objects can tell which are gone.
 * What cannot be read (a malformed line, an object without a name) is reported and counted, and a
 * new list begins after a wait: a hostile or broken server costs time, never the process.
 *
 *     IDLE → STREAM → WATCH ⇄ WAIT        STREAM, PAGES → WAIT on failure
 *             ↘ PAGES ↗                   WATCH → STREAM or PAGES after 410
 */
#pragma once

#include "format/json.h"
#include "kube/client.h"

#define REFLECTOR_PAGE                                                                             \
    100u /* a page of 100 large nodes is some 3 MiB in memory, one of 500 is 15 */
#define REFLECTOR_SILENCE_MAX                                                                      \
    SECONDS(150) /* bookmarks come every minute; a dead peer sends none                            \
                  */
#define REFLECTOR_STREAM_PATIENCE SECONDS(20) /* then a stream without its end mark is given up */

enum reflector_state {
    REFLECTOR_IDLE,
    REFLECTOR_STREAM, /* a watch that sends the initial objects */
    REFLECTOR_PAGES,
    REFLECTOR_WATCH,
    REFLECTOR_WAIT,
};

struct reflector_config {
    struct str path;    /* "/api/v1/nodes", without a query; borrowed */
    struct str query;   /* selectors to add, "&fieldSelector=…" or empty; borrowed */
    bool metadata_only; /* objects come without anything but their metadata */
    uint32_t page;      /* objects a page; 0 = REFLECTOR_PAGE */
    usec_t silence_max; /* of a watch; 0 = REFLECTOR_SILENCE_MAX */
    /* A list begins. */
    void (*on_list)(void *ctx);
    /* An error means that the object cannot be used: it is reported and a new list is due. */
    int (*on_object)(void *ctx, const struct jval *object, bool deleted, struct err *err);
    /* A list is complete as of `version`. False asks for another one. */
    bool (*on_synced)(void *ctx, uint64_t version);
    /* Something failed; it goes on by itself. `bad` when the server's answer could not be read. */
    void (*on_error)(void *ctx, const struct err *err, bool bad);
    /* What failed works again, though nothing may have changed meanwhile; may be NULL. */
    void (*on_well)(void *ctx);
    void *ctx;
};

struct reflector {
    struct client *client; /* borrowed */
    struct reflector_config config;
    enum reflector_state state;
    enum reflector_state after; /* what WAIT waits for */
    struct api_watch *watch;    /* STREAM, WATCH */
    struct api_call *call;      /* PAGES */
    struct loop_timer timer;    /* WAIT, and the patience of STREAM */
    struct backoff backoff;
    struct arena line;   /* of the one event or item at hand */
    struct buf path;     /* working memory for requests */
    struct buf token;    /* "continue" of the next page */
    uint64_t version;    /* everything up to here has been given on */
    bool synced;         /* once, at least */
    bool opened;         /* the present stream began */
    bool failing;        /* the last attempt failed, nothing has come since */
    bool refused;        /* the server knows no streaming lists */
    int status;          /* of the answer that failed last, for on_error; 0 = there was none */
    uint32_t short_ends; /* streaming lists in a row that ended before their end */
    uint32_t resumes;    /* refused attempts in a row to go on from `version` */
    usec_t opened_at;
    usec_t line_at;    /* when the last line came */
    usec_t wait_until; /* WAIT */
    uint64_t lists;    /* begun */
    uint64_t bad;      /* answers that could not be read */
};

void reflector_init(struct reflector *r, struct client *client,
                    const struct reflector_config *config);
/* Stops it, whatever it does. */
void reflector_done(struct reflector *r);

void reflector_start(struct reflector *r);
