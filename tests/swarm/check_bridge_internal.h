/*
 * check_bridge_internal: what the files of the judge of bridges share: what they remember, and how they read
 * the servers.
 */
#pragma once

#include "kinds/keys.h"
#include "tests/swarm/check_bridge.h"

/* One setting of an approval's label by an engine. */
struct treaty_setting {
    struct str used_for; /* the request that it approved; empty: none yet */
};

enum treaty_kind { TREATY_DELETION, TREATY_MAINTENANCE, TREATY_KINDS };

/* A request, as an annotation of a Node names it. */
struct treaty_request {
    struct treaty_setting *answer; /* the newest that stood beside it; NULL: none did */
    bool granted;
};

struct treaty_machine {
    struct str uid;
    struct str space;
    struct str name;
    uint32_t cluster;
    uint32_t incarnation; /* of its Cluster */
    struct str node;      /* empty: none yet */
    struct trait paused;
    struct trait approved;
    struct str approved_by; /* the bridge that did; empty: nobody, or somebody else */
    bool gone;
    usec_t gone_at;
    bool deleting;
    usec_t deleted_at;
    usec_t waits_at;     /* when Cluster API said that it waits for hooks; 0: never */
    usec_t absent_first; /* since it is being deleted: when its Node was not there; 0: never */
    bool released;       /* a bridge took the hook away while it was being deleted */
    /* Metal3. */
    struct str infra;     /* the name of its infrastructure object; empty: it has none */
    struct str provider;  /* empty: not known yet */
    struct trait due;     /* whatever host it has, that is to be off */
    struct trait drained; /* its Node is; looked at only where bridges do */
};

struct treaty_node {
    struct trait absent;
    struct trait unmanaged; /* there, without the engine's label */
    struct trait approved[TREATY_KINDS];
    struct trait unasked[TREATY_KINDS]; /* there, without the label of the request */
    struct treaty_setting *setting[TREATY_KINDS];
};

/* The labels and annotations of a request. */
struct treaty_keys {
    struct str asked;
    struct str request;
    struct str approval;
    struct str answers;
};

static inline struct treaty_keys keys_of(enum treaty_kind kind)
{
    return kind == TREATY_DELETION
               ? (struct treaty_keys){ KEY_MACHINE_DELETED, KEY_DELETION_REQUEST,
                                       KEY_APPROVE_DELETION, KEY_DELETION_APPROVED_FOR }
               : (struct treaty_keys){ KEY_MACHINE_MAINTENANCE, KEY_MAINTENANCE_REQUEST,
                                       KEY_APPROVE_MAINTENANCE, KEY_MAINTENANCE_APPROVED_FOR };
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static inline struct str text_at(const struct jval *object, const char *path)
{
    return jval_str(jval_at(object, path));
}

static inline struct str label_of(const struct jval *object, struct str key)
{
    return jval_str(jval_get(jval_at(object, "metadata.labels"), key));
}

/* `.p` is NULL where there is none. */
static inline struct str note_of(const struct jval *object, struct str key)
{
    return jval_str(jval_get(jval_at(object, "metadata.annotations"), key));
}

static inline bool has_note(const struct jval *object, struct str key)
{
    return jval_get(jval_at(object, "metadata.annotations"), key) != NULL;
}

static inline bool is_true(const struct jval *object, struct str key)
{
    return str_eq(label_of(object, key), KEYS_TRUE);
}

static inline bool is_deleting(const struct jval *object)
{
    return text_at(object, "metadata.deletionTimestamp").n > 0;
}

static inline bool is_bridge(struct str agent)
{
    return str_starts(agent, STR("drydock-"));
}

static inline bool is_managed(const struct jval *node)
{
    return jval_get(jval_at(node, "metadata.labels"), KEY_STATE) != NULL;
}

static inline bool cluster_is_paused(const struct jval *cluster)
{
    return jval_bool(jval_at(cluster, "spec.paused"), false) || has_note(cluster, KEY_PAUSED);
}

/* By its label, or beside a template's. */
static inline bool is_approved(const struct jval *machine)
{
    return str_eq(label_of(machine, KEY_MAINTENANCE), KEY_APPROVED) ||
           str_eq(note_of(machine, KEY_APPROVED_ASIDE), KEYS_TRUE);
}

/* ── remembering ───────────────────────────────────────────────────────────────────────────── */

static inline void trait_note(struct trait *trait, bool is, usec_t now)
{
    now = MAX(now, (usec_t)1);
    trait->since = is && !trait->is ? now : trait->since;
    trait->last = is || trait->is ? now : trait->last;
    trait->is = is;
}

/* It was so at some moment since then. */
static inline bool trait_was(const struct trait *trait, usec_t from)
{
    return trait->is || (trait->last > 0 && trait->last >= from);
}

/* It is so, and has been for that long. */
static inline bool trait_lasts(const struct trait *trait, usec_t now, usec_t span)
{
    return trait->is && now - trait->since >= span;
}

struct treaty_node *treaty_node(struct treaty *t, uint32_t cluster, struct str name);
struct treaty_request *treaty_request(struct treaty *t, enum treaty_kind kind, struct str name);
/* The Machine that a request is of; NULL: there never was one. */
struct treaty_machine *treaty_asker(struct treaty *t, struct str request);
/* The Machine that has that Node; NULL: none. */
struct treaty_machine *treaty_owner(struct treaty *t, uint32_t cluster, struct str node);
/* How long what a writer knows of others may be old. */
usec_t treaty_lag(const struct treaty *t, struct str agent, uint32_t cluster);
/* The number of the writer; TREATY_PILOTS_MAX: it is not (any more) one that runs. */
uint32_t treaty_pilot(const struct treaty *t, struct str agent);

/* Whether two versions differ in nothing but those labels and annotations. */
struct treaty_span {
    const struct str *labels;
    size_t label_n;
    const struct str *notes;
    size_t note_n;
};
bool treaty_same_but(const struct jval *a, const struct jval *b, const struct treaty_span *span);

/* ── the files ─────────────────────────────────────────────────────────────────────────────── */

void treaty_on_machine(struct treaty *t, const struct apiserver_commit *commit);
void treaty_on_node(struct treaty *t, uint32_t cluster, const struct apiserver_commit *commit);

/* Something in the management cluster has changed: drain rules, or what they select. */
void treaty_note_rules(struct treaty *t, const struct apiserver_commit *commit);
/* A bridge has written to a Node. */
void treaty_check_book(struct treaty *t, uint32_t cluster, const struct apiserver_commit *commit,
                       usec_t lag);
/* Whether the Machine's Node is cordoned, and no pod is left that its rules do not skip. */
bool treaty_is_drained(struct treaty *t, const struct treaty_machine *m);

void treaty_on_host(struct treaty *t, const struct apiserver_commit *commit);
/* A Machine has changed, or is gone (NULL). */
void treaty_note_due(struct treaty *t, struct treaty_machine *m, const struct jval *machine);
/* Something has changed by which Nodes of that cluster are drained or are not. */
void treaty_note_drained(struct treaty *t, uint32_t cluster);
/* All hosts, and what Machines say of theirs, in the end. */
void treaty_host_at_rest(struct treaty *t);

/* What stands there is what the servers say at this moment. */
bool treaty_book_is_right(struct treaty *t, const struct treaty_machine *m,
                          const struct jval *node);
