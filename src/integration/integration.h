/*
 * integration: the room in which drydock works with systems outside the cluster, one file a system.
 *
 * All of them are one part of the controller (core/core.h). What they share is here: a
 * configuration file for each, read again when it changes, of which the last good version stays in
 * force; the moment to work; one description of what each does (core/activity.h).
 *
 * A provider is one file and an entry of integration_providers: a struct integration_provider. Its
 * life:
 *
 *   read       checks the file and makes a configuration of it; also for `drydock check`
 *   start      once, before anything else; makes `self`
 *   configure  a configuration is in force, the first or another one
 *   on_node    a Node is new, has changed, or goes
 *   turn       works: see below
 *   stop       frees `self`; nothing may be sent afterwards
 *
 * `turn` is called from the loop, never from within another call, and only while this process leads
 * (core_may_act) and a configuration is in force. It looks at what is known, begins what is to be
 * done, and returns: a reply, a credential or a drain that changes calls integration_wake, and the
 * next turn goes on. It says when it wants to be called again with integration_wake_at. Anything
 * may be repeated after a crash, so what must be remembered is written to Node objects before the
 * effects that need it.
 *
 * What a provider has at hand:
 *   in->core            Nodes (core->nodes.store), drains, arbiter, recorder, client, log
 *   core/node_write.h   one writer a Node: labels, annotations, cordons, by compare-and-swap
 *   core/secret_source.h  a secret text from a file or a Secret, wiped after use
 *   core/outside_call.h requests to one server with a time limit and back-off
 *   in->note            what the provider as a whole does; node_activity tells of one node
 *
 * Nothing secret goes into a log line, an error, an Event or an activity.
 */
#pragma once

#include "core/activity.h"
#include "core/core.h"
#include "format/ucfg.h"
#include "port/files.h"
#include "port/outbound.h"

#define INTEGRATION_FILE_BYTES_MAX UCFG_BYTES_MAX

struct integration;

struct integration_provider {
    const char *name;  /* "kubernikus": as people, metrics and flags call it */
    const char *title; /* "Kubernikus" */
    const char *file;  /* where its configuration is unless a flag says otherwise */
    size_t config_size;
    /* Annotations of Nodes that it reads in the store. */
    const struct str *annotations;
    uint32_t annotation_n;
    /* Fills `ret`, config_size zeroed bytes; what it points to lives in u->out. Problems that are
     * no warnings keep the file from being used. Pure. */
    void (*read)(const struct ucfg *u, void *ret, struct problems *problems);
    /* All that follow may be NULL. */
    void (*start)(struct integration *in);
    /* in->config is in force; the one before is gone when this returns. */
    void (*configure)(struct integration *in);
    void (*on_node)(struct integration *in, struct store_item *item, bool gone);
    void (*turn)(struct integration *in);
    /* Whether it disturbs that Node, as the Node object says; see core_part_ops. */
    bool (*disturbs)(const struct integration *in, const struct store_item *item);
    /* The limits have changed, or what is reserved under them. */
    void (*on_limits)(struct integration *in);
    /* What it does about that node; false: nothing. Texts live until the loop runs. */
    bool (*node_activity)(const struct integration *in, struct str node, struct activity *ret);
    /* Writes are in flight that an orderly end waits for. */
    bool (*is_busy)(const struct integration *in);
    /* Its own gauges are to be set. */
    void (*collect)(struct integration *in);
    void (*stop)(struct integration *in);
};

extern const struct integration_provider *const integration_providers[];
extern const uint32_t integration_provider_n;
/* By its name; NULL when there is none. */
const struct integration_provider *integration_find_provider(struct str name);
/* The provider whose file is called so, whatever the folder: "/etc/x/kubernikus.yaml". */
const struct integration_provider *integration_provider_of_file(struct str path);

/* Reads a file. -ERR_INVALID when there are errors; warnings alone keep nothing from running. The
 * problems are sorted by place. Everything lives in `out`, which holds passwords: arena_wipe it. */
NODISCARD
int integration_load(const struct integration_provider *provider, struct str text,
                     struct ucfg_env env, struct arena *out, void **ret, struct problems *problems);

/* A configuration in force. */
struct integration_active {
    struct arena memory;
    void *config;
};

/* One provider at work. */
struct integration {
    const struct integration_provider *provider;
    struct integrations *all;
    struct core *core;         /* borrowed */
    struct outbound *outbound; /* borrowed */
    const struct files *files; /* borrowed; NULL: files cannot be read */
    const void *config;        /* in force; NULL: none yet */
    void *self;                /* the provider's own */
    struct activity_note note;

    /* The rest is the room's own. */
    struct integration_active *active;
    struct loop_timer timer;
    struct buf file;         /* as it was given last */
    struct buf config_error; /* why that file is not in force; empty = it is */
    usec_t loaded;           /* wall time; 0 = never */
    struct metric_series *config_valid;
    struct metric_series *failing;
    struct metric_series *last_action;
    struct metric_series *failures;
};

#define INTEGRATIONS_MAX 8u /* providers in the table */

struct integrations {
    struct core_part part;
    struct core *core; /* borrowed; NULL: it never joined */
    struct integration items[INTEGRATIONS_MAX];
    uint32_t n;
    struct str annotations[INTEGRATIONS_MAX * 4];
    struct buf why; /* of is_ready */
};

struct integrations_config {
    struct outbound *outbound; /* borrowed */
    const struct files *files; /* borrowed */
    /* Which providers run, by their place in integration_providers. */
    bool enabled[INTEGRATIONS_MAX];
};

/* Joins the core. Not ready before every provider that runs has a configuration. */
void integrations_init(struct integrations *all, struct core *core,
                       const struct integrations_config *config);
/* Like a crash; accepts a zeroed one. */
void integrations_done(struct integrations *all);
/* NULL when that provider does not run. */
struct integration *integrations_find(struct integrations *all, struct str name);

/* Puts another configuration in force. If it is no good the one before stays, which is shown until
 * a good one comes. */
NODISCARD
int integration_configure(struct integration *in, struct str file, struct str text,
                          struct ucfg_env env);
/* The file could not be read at all. */
void integration_configure_failed(struct integration *in, struct str file, const struct err *err);

/* Asks for a turn, now or at that monotonic time, whichever comes first. */
void integration_wake(struct integration *in);
void integration_wake_at(struct integration *in, usec_t at);
/* Wall time of a monotonic one, for activities; USEC_NEVER stays. */
usec_t integration_wall(const struct integration *in, usec_t at);
/* Notes a failure and logs it, unless it was the last one, too. */
void integration_failed(struct integration *in, const struct err *err);

/* What each provider that runs does. Texts live until the loop runs. */
void integrations_each(const struct integrations *all,
                       void (*fn)(void *ctx, const struct activity *activity), void *ctx);
/* The same about one node. */
void integrations_each_of_node(const struct integrations *all, struct str node,
                               void (*fn)(void *ctx, const struct activity *activity), void *ctx);
