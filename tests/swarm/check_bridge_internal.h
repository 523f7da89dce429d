/*
 * check_bridge_internal: what the files of the judge of bridges share: what they remember, and how
 * they read the servers.
 */
#pragma once

#include "kinds/keys.h"
#include "tests/swarm/check_bridge.h"

/* One setting of an approval's label by an engine. */
struct check_bridge_approval {
    struct str used_for; /* the request that it approved; empty: none yet */
};

enum check_bridge_kind { CHECK_BRIDGE_DELETION, CHECK_BRIDGE_MAINTENANCE, CHECK_BRIDGE_KINDS };

/* A request, as an annotation of a Node names it. */
struct check_bridge_request {
    struct check_bridge_approval *approval; /* the newest that stood beside it; NULL: none did */
    bool granted;
};

struct check_bridge_machine {
    struct str uid;
    struct str namespace;
    struct str name;
    uint32_t cluster;
    uint32_t incarnation; /* of its Cluster */
    struct str node;      /* empty: none yet */
    struct timed_flag paused;
    struct timed_flag approved;
    struct str approved_by; /* the bridge that did; empty: nobody, or somebody else */
    bool gone;
    usec_t gone_at;
    bool deleting;
    usec_t deleted_at;
    usec_t waits_at;     /* when Cluster API said that it waits for hooks; 0: never */
    usec_t absent_first; /* since it is being deleted: when its Node was not there; 0: never */
    bool released;       /* a bridge took the hook away while it was being deleted */
    /* Metal3. */
    struct str infra_name;           /* the name of its infrastructure object; empty: it has none */
    struct str provider;             /* empty: not known yet */
    struct timed_flag power_off_due; /* whatever host it has, that is to be off */
    struct timed_flag drained;       /* its Node is; looked at only where bridges do */
};

struct check_bridge_node {
    struct timed_flag absent;
    struct timed_flag unmanaged; /* there, without the engine's label */
    struct timed_flag approved[CHECK_BRIDGE_KINDS];
    struct timed_flag unrequested[CHECK_BRIDGE_KINDS]; /* there, without the label of the request */
    struct check_bridge_approval *approvals[CHECK_BRIDGE_KINDS];
};

/* The labels and annotations of a request. */
struct check_bridge_keys {
    struct str requested;
    struct str request;
    struct str approval;
    struct str approved_for;
};

static inline struct check_bridge_keys request_keys(enum check_bridge_kind kind)
{
    return kind == CHECK_BRIDGE_DELETION
               ? (struct check_bridge_keys){ KEY_MACHINE_DELETED, KEY_DELETION_REQUEST,
                                             KEY_APPROVE_DELETION, KEY_DELETION_APPROVED_FOR }
               : (struct check_bridge_keys){ KEY_MACHINE_MAINTENANCE, KEY_MAINTENANCE_REQUEST,
                                             KEY_APPROVE_MAINTENANCE,
                                             KEY_MAINTENANCE_APPROVED_FOR };
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
static inline struct str annotation_of(const struct jval *object, struct str key)
{
    return jval_str(jval_get(jval_at(object, "metadata.annotations"), key));
}

static inline bool has_annotation(const struct jval *object, struct str key)
{
    return jval_get(jval_at(object, "metadata.annotations"), key) != NULL;
}

static inline bool label_is_true(const struct jval *object, struct str key)
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
    return jval_bool(jval_at(cluster, "spec.paused"), false) || has_annotation(cluster, KEY_PAUSED);
}

/* By its label, or beside a template's. */
static inline bool is_approved(const struct jval *machine)
{
    return str_eq(label_of(machine, KEY_MAINTENANCE), KEY_APPROVED) ||
           str_eq(annotation_of(machine, KEY_APPROVED_ASIDE), KEYS_TRUE);
}

/* ── remembering ───────────────────────────────────────────────────────────────────────────── */

static inline void timed_flag_set(struct timed_flag *flag, bool value, usec_t now)
{
    now = MAX(now, (usec_t)1);
    flag->since = value && !flag->is ? now : flag->since;
    flag->last = value || flag->is ? now : flag->last;
    flag->is = value;
}

/* It was so at some moment since then. */
static inline bool timed_flag_was_set(const struct timed_flag *flag, usec_t from)
{
    return flag->is || (flag->last > 0 && flag->last >= from);
}

/* It is so, and has been for that long. */
static inline bool timed_flag_set_for(const struct timed_flag *flag, usec_t now, usec_t span)
{
    return flag->is && now - flag->since >= span;
}

struct check_bridge_node *check_bridge_node(struct check_bridge *t, uint32_t cluster,
                                            struct str name);
struct check_bridge_request *check_bridge_request(struct check_bridge *t,
                                                  enum check_bridge_kind kind, struct str name);
/* The Machine that a request is of; NULL: there never was one. */
struct check_bridge_machine *check_bridge_requester(struct check_bridge *t, struct str request);
/* The Machine that has that Node; NULL: none. */
struct check_bridge_machine *check_bridge_node_owner(struct check_bridge *t, uint32_t cluster,
                                                     struct str node);
/* How long what a writer knows of others may be old. */
usec_t check_bridge_lag(const struct check_bridge *t, struct str agent, uint32_t cluster);
/* The number of the writer; CHECK_BRIDGE_PROCESSES_MAX: it is not (any more) one that runs. */
uint32_t check_bridge_writer(const struct check_bridge *t, struct str agent);

/* Whether two versions differ in nothing but those labels and annotations. */
struct check_bridge_allowed {
    const struct str *labels;
    size_t label_n;
    const struct str *annotations;
    size_t annotation_n;
};
bool check_bridge_only_changed(const struct jval *a, const struct jval *b,
                               const struct check_bridge_allowed *span);

/* ── the files ─────────────────────────────────────────────────────────────────────────────── */

void check_bridge_on_machine(struct check_bridge *t, const struct apiserver_commit *commit);
void check_bridge_on_node(struct check_bridge *t, uint32_t cluster,
                          const struct apiserver_commit *commit);

/* Something in the management cluster has changed: drain rules, or what they select. */
void check_bridge_on_drain_rules(struct check_bridge *t, const struct apiserver_commit *commit);
/* A bridge has written to a Node. */
void check_bridge_drain_rules(struct check_bridge *t, uint32_t cluster,
                              const struct apiserver_commit *commit, usec_t lag);
/* Whether the Machine's Node is cordoned, and no pod is left that its rules do not skip. */
bool check_bridge_is_drained(struct check_bridge *t, const struct check_bridge_machine *m);

void check_bridge_on_host(struct check_bridge *t, const struct apiserver_commit *commit);
/* A Machine has changed, or is gone (NULL). */
void check_bridge_update_power(struct check_bridge *t, struct check_bridge_machine *m,
                               const struct jval *machine);
/* Something has changed by which Nodes of that cluster are drained or are not. */
void check_bridge_update_drained(struct check_bridge *t, uint32_t cluster);
/* All hosts, and what Machines say of theirs, in the end. */
void check_bridge_hosts_at_end(struct check_bridge *t);

/* What stands there is what the servers say at this moment. */
bool check_bridge_drain_rules_match(struct check_bridge *t, const struct check_bridge_machine *m,
                                    const struct jval *node);
