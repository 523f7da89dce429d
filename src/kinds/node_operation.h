/*
 * node_operation: reads one operation of a NodeMaintenance.
 *
 * Short forms become the long ones: `script` is a job with a script, `schedule` a cron with one. A
 * payload stays JSON: templates are expanded in it, its hash is the revision, and it becomes a Job
 * or an agent's graph. An operation may have no payload and only reboot.
 */
#pragma once

#include "kinds/maintenance_window.h"
#include "kinds/node_series.h"

#define OPERATION_NAME_MAX 40u /* the schema's, as those below */
#define OPERATIONS_MAX 32u
#define OPERATION_RESOURCES_MAX 500u
#define OPERATION_COMMAND_MAX 64u
#define OPERATION_TIMEOUT MINUTES(30)
#define REBOOT_TIMEOUT MINUTES(20)
#define REBOOT_MIN_INTERVAL HOURS(1)
#define PREFLIGHT_TIMEOUT MINUTES(2)
#define CHANNEL_INTERVAL MINUTES(15)

enum operation_type { OPERATION_ONE_SHOT, OPERATION_CRON, OPERATION_REALTIME };
enum operation_payload {
    PAYLOAD_NONE, /* only a reboot */
    PAYLOAD_JOB,
    PAYLOAD_RESOURCES,
    PAYLOAD_TEMPLATE,
};
enum operation_runner { RUNNER_AUTO, RUNNER_JOB, RUNNER_AGENT };
enum operation_disruptive { DISRUPTIVE_AUTO, DISRUPTIVE_ALWAYS, DISRUPTIVE_NEVER };
enum reboot_policy { REBOOT_NEVER, REBOOT_IF_REQUIRED, REBOOT_ALWAYS };
enum reboot_method {
    REBOOT_BY_AUTO,
    REBOOT_BY_KEXEC,
    REBOOT_BY_SIGNAL,
    REBOOT_BY_COMMAND,
};
enum cron_by { CRON_BY_SCHEDULE, CRON_BY_INTERVAL, CRON_BY_WINDOW };
enum on_remove { ON_REMOVE_KEEP, ON_REMOVE_RESTORE, ON_REMOVE_REMOVE };

/* Which of them the author wrote: a template's defaults count only for the others. */
enum operation_given {
    OPERATION_GAVE_TIMEOUT = 1 << 0,
    OPERATION_GAVE_DISRUPTIVE = 1 << 1,
    OPERATION_GAVE_REBOOT = 1 << 2,
    OPERATION_GAVE_PREFLIGHT = 1 << 3,
};

struct operation_reboot {
    enum reboot_policy policy;
    enum reboot_method method;
    struct spec_texts files; /* none: those of the documentation */
    struct spec_texts command;
    bool kernel;
    bool units;
    bool immediate;
    usec_t timeout;
    usec_t min_interval;
};

struct operation_preflight {
    bool given;
    struct str script;
    struct str image;
    struct spec_texts command;
    usec_t timeout;
};

struct operation_version {
    struct str value;
    struct str channel; /* a URL; empty: `value` counts */
    struct str pointer;
    usec_t interval;
};

struct operation_cron {
    enum cron_by by;
    struct cron pattern;
    struct str schedule;
    bool has_zone; /* otherwise the window's, or UTC */
    struct str zone_name;
    const struct zone *zone; /* borrowed: from the sources */
    usec_t every;
    usec_t duration;          /* of the window that a tick opens itself; 0: none */
    usec_t starting_deadline; /* 0: until the next tick */
    bool replace;             /* overlap */
    bool run_on_create;
};

struct operation_realtime {
    bool adopt_always;
    bool repair_in_window;
    bool defer_disruptive;
    bool noop;
    enum on_remove on_remove;
    struct str verify; /* JSON; empty: none */
};

struct operation_when {
    bool has_facts;
    struct series_facts facts;
    bool has_labels;
    struct selector labels;
};

struct node_operation {
    struct str name;
    enum operation_type type;
    enum operation_payload payload;
    struct str payload_json; /* PAYLOAD_JOB: an object; PAYLOAD_RESOURCES: a list */
    struct str template_name;
    struct str parameters_json; /* "{}" if there are none */
    unsigned given;             /* enum operation_given */
    enum operation_runner runner;
    enum operation_disruptive disruptive;
    usec_t timeout;
    struct operation_when when;
    struct operation_preflight preflight;
    struct operation_version version;
    struct operation_reboot reboot;
    struct operation_cron cron;
    struct operation_realtime realtime;
    bool track_references;
    bool rerun_on_nonce; /* only a new nonce runs it again */
    bool skip_new_nodes;
    struct str nonce;
    struct spec_texts after;
};

/* Notes what is wrong with a job. */
void node_operation_check_job(const struct spec_node *at);
void operation_reboot_read(const struct spec_node *at, const char *key,
                           struct operation_reboot *ret);
void operation_preflight_read(const struct spec_node *at, const char *key,
                              struct operation_preflight *ret);
void node_operation_read(const struct spec_node *at, const struct window_sources *sources,
                         struct node_operation *ret);
