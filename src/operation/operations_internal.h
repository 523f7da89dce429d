/*
 * operations_internal: what the files that carry out NodeMaintenances share.
 *
 *   operations.c          the watches, the turn, and the life of the part
 *   campaign.c            one NodeMaintenance: whether it is accepted, its operations and revisions
 *   campaign_window.c     when it may start something
 *   campaign_rollout.c    its machines, what is due on them, and which come next
 *   campaign_gates.c      conditions of the cluster that a visit waits for
 *   campaign_wave_gates.c and those that a wave waits for while it soaks
 *   work_after_gates.c    and those behind a visit
 *   work_labels.c         labels that a visit gives its node
 *   gate_question.c …     gates that have to be asked for (gate_question.h)
 *   campaign_depends.c    other NodeMaintenances that come first
 *   campaign_status.c     its status: the ledger of its visits, and what people read
 *   campaign_durations.c  how long its visits took
 *   work.c                one machine: its NodeState and its visit
 *   work_facts.c          what is known around a visit
 *   work_act.c            what a visit's plan says, done
 *   run_output.c          how a run ended, as its pod tells
 *   job_state.c           what is kept of a Job
 *   job_history.c         Jobs that are not needed any more
 *   lost_request.c        requests of visits whose Node is gone
 *   machine_facts.c       what a Node says of its machine
 *   reboot_probe.c        whether a machine asks for a reboot
 *   payload_references.c  Secrets and ConfigMaps that payloads and windows refer to
 *   prerequisites.c       namespaces and rights that are missing
 *   operations_events.c   what is told as Events
 *   run_histories.c       what was done on machines, kept for people
 *   operations_metrics.c  what is counted for Prometheus
 *   series_members.c      the machines of a series
 *   reference_status.c    the status of windows, series and templates (reference_status.h)
 */
#pragma once

#include "base/metric.h"
#include "base/ratelimit.h"
#include "base/timestamp.h"
#include "calendar/opening_hours.h"
#include "core/node_write.h"
#include "drain/cordon.h"
#include "kube/writer.h"
#include "operation/due.h"
#include "operation/gate_question.h"
#include "operation/operations.h"
#include "operation/rollout.h"
#include "operation/run_job.h"
#include "operation/series.h"
#include "operation/visit_steps.h"
#include "operation/window_outlook.h"
#include "operation/window_rest.h"

#define OPERATIONS_WRITES_MAX 16u /* in flight; more only queue in the API server */
#define STATUS_EVERY SECONDS(2)   /* how often what only informs people is written */
#define RUN_TAKEN_AWAY_MAX 3u     /* runs that were evicted and the like do not count, so often */
#define RUN_REBOOTED_MAX 1u       /* the same for those whose machine rebooted */
#define TURN_GAP MSECONDS(20)     /* between two turns: many events are one look */
#define TURN_GAP_MACHINE 10       /* us more for each machine that a turn looks at */
#define RIGHTS_HINT "'drydock rbac operations' prints the roles that the controller needs"

/* ── Jobs ──────────────────────────────────────────────────────────────────────────────────── */

struct job_state {
    struct str name;
    struct str uid;
    struct str owner_uid; /* of the NodeMaintenance */
    struct str maintenance;
    struct str operation;
    struct str machine;
    enum run_job_state state;
    struct str reason; /* of a failure */
    usec_t finished;   /* wall; 0 = it has not */
    bool deleting;
};
extern const struct store_kind job_state_kind;
/* The body of a DELETE of exactly that Job. */
void job_print_delete(const struct job_state *job, const char *propagation, struct buf *out);

/* ── campaigns ─────────────────────────────────────────────────────────────────────────────── */

/* An operation of a NodeMaintenance with its template expanded and its defaults applied. */
struct campaign_operation {
    const struct node_operation *spec;              /* borrowed: from the store's object */
    struct str payload_json;                        /* empty: it only reboots */
    const struct jval *payload;                     /* the same; NULL: none */
    bool per_machine;                               /* words of the machine stand in it */
    const struct node_operation_template *template; /* of this turn; NULL: it has none */
    const struct run_job_parameter *parameters;
    uint32_t parameter_n;
    struct str revision;
    usec_t timeout;
    struct operation_reboot reboot;
    struct operation_preflight preflight;
    bool quiet;  /* disturbs nothing */
    bool bare;   /* only reboots */
    bool cron;   /* runs at ticks, be they of a schedule or of the windows */
    usec_t tick; /* the latest one, wall; 0 = none has come */
    usec_t tick_deadline;
    usec_t next_tick; /* USEC_NEVER = none is known */
    /* Counted in the turn. */
    uint32_t succeeded;
    uint32_t failed;
    uint32_t missed;
};

/* Why nothing starts, and when that could change. */
struct campaign_wait {
    struct str reason; /* of the condition Progressing; empty: something starts, or is at work */
    struct str message;
};

/* A machine of a campaign, in this turn. */
struct campaign_member {
    uint32_t machine;       /* its place among the turn's machines */
    struct due_answer *due; /* by operation */
    bool place;             /* in the ledger */
    bool visited;           /* its visit has a run of this campaign */
    bool held;
    struct str gate; /* why its visit fails before it begins; empty: it does not */
};

/* What the gates of a list say, together. */
struct gates_answer {
    enum gate_verdict verdict;
    bool of_machine;                     /* others may pass */
    const struct maintenance_gate *gate; /* that refuses, or is asked; NULL: none of them */
    struct str place;
    bool final;     /* waiting is of no use: as if its time were over */
    struct str why; /* as a sentence, with the time at which it is asked again */
    usec_t next;    /* wall; USEC_NEVER: when something changes */
};

struct gates_asker {
    const struct turn_machine *machine; /* of the visit; NULL: none */
    usec_t since;                       /* see gate_question_look */
    usec_t waits_since;                 /* wall: since when it waits, for those behind a visit */
    /* Passes over a gate; may be NULL. */
    bool (*skips)(const struct campaign *c, const struct gates_asker *asker,
                  const struct gate_place *p);
};

/* A machine whose gates refused when its request was approved. */
struct campaign_gate_pause {
    struct list link;
    struct arena memory;
    struct str machine;
    struct str visit; /* the last one that was refused */
    uint32_t times;   /* in a row */
    usec_t until;     /* wall */
};

/* In words, for people. */
struct campaign_summary {
    const char *phase;
    struct str reason;
    struct str message;
    bool complete;
    bool has_one_shot;
};

struct campaign_counts {
    uint32_t selected;
    uint32_t pending;
    uint32_t in_visit;
    uint32_t succeeded;
    uint32_t failed;
    uint32_t skipped;
    uint32_t held;
    uint32_t unreachable;
};

/* Runs that succeeded, until they are told. */
struct campaign_gathered {
    usec_t since; /* wall */
    uint32_t succeeded;
    uint32_t skipped;
};

/* The tick of a cron operation, and on how many machines it was not served. */
struct campaign_tick {
    usec_t at;
    uint32_t unserved;
};

struct campaign {
    struct operations *o;
    struct list link;
    struct store_item *item;          /* borrowed */
    const struct node_maintenance *m; /* its object */
    struct writer writer;
    usec_t written;  /* monotonic: when the status was last sent */
    struct buf sent; /* the status as it was last sent, without places */
    struct window_rest_durations durations;
    bool durations_known; /* what the status had was read */
    struct list gate_pauses;
    struct campaign_gathered gathered;
    struct campaign_tick ticks[OPERATIONS_MAX];
    unsigned turned;   /* what the status that is being written says for the first time */
    const char *phase; /* as it was last composed; NULL = not yet */
    struct window_outlook outlook; /* its openings, for people; see campaign_look_ahead */
    const void *outlook_of;        /* the object as it was then, */
    uint64_t outlook_windows;      /* and the revision of all windows */

    /* Compiled: again when the object, or something that it refers to, has changed. */
    struct arena memory;
    const void *compiled_object;
    uint64_t compiled_references;
    struct campaign_operation *operations;
    uint32_t operation_n;
    struct str revision; /* of all operations together */
    struct str problem_reason;
    struct str problem; /* why it is not accepted, as a sentence; empty: it is */
    const struct series_spec *series;

    /* Of this turn. */
    bool open;      /* its window is */
    bool may_go_on; /* what was asked for may still begin */
    bool stops;     /* what runs is to end as soon as it can; `stops_why` says why */
    struct str stops_why;
    bool may_start; /* something new may be asked for */
    struct interval
        window; /* that is open, or comes next; ends with USEC_NEVER if it never closes */
    struct campaign_wait wait;
    usec_t tick;
    bool paused;
    bool lacks; /* a namespace or a right is missing: `wait` says which */
    struct str pause_reason;
    struct maintenance_gate_record gate; /* at which everything waits; to be written */
    struct gates_answer gate_answer;     /* of the first machine that was passed over */
    uint32_t gated_n;                    /* how many were */
    struct campaign_member *members;
    struct rollout_machine *rollout;
    uint32_t member_n;
    struct campaign_counts counts;
    struct rollout_plan plan;
    struct maintenance_place *places; /* that the ledger should have */
    uint32_t place_n;
    struct str resumed; /* what people asked for and was taken up: status.handled */
    usec_t resumed_at;  /* wall: failures before count no more; 0 = never */
    struct str rerun;
};

/* ── machines ──────────────────────────────────────────────────────────────────────────────── */

/* A machine as this turn sees it. */
struct turn_machine {
    struct str name;
    const struct node *node;
    const struct node_state *state; /* NULL: there is none, or one of another Node of that name */
    struct store_item *state_item;  /* NULL: there is none */
    struct machine machine;
    struct machine_facts facts;
    struct work *work; /* NULL: nothing is under way */
    bool reachable;    /* Ready, and not being deleted */
};

enum run_output_state { RUN_OUTPUT_NONE, RUN_OUTPUT_READING, RUN_OUTPUT_KNOWN };

/* How a finished Job ended, as its pod tells. */
struct run_output {
    enum run_output_state state;
    struct buf job; /* its name */
    struct api_call *call;
    usec_t retry_at; /* monotonic */
    struct arena memory;
    struct run_job_message message;
    struct str pod_reason; /* of a pod that was taken away: "Evicted", "Preempting", … */
    bool taken_away;       /* through no fault of the payload */
    bool image_pulled;
};

/* A machine on which something is under way. */
struct work {
    struct operations *o;
    struct list link;
    struct arena memory;
    struct str name;
    struct writer state;   /* of the NodeState */
    struct writer request; /* of the MaintenanceRequest */
    struct writer job;     /* of the Job that is to be made */
    struct cordon *cordon;
    struct node_write labels;
    enum visit_cordon_step cordon_step; /* that is under way */
    struct drain *drain;
    bool drained; /* the drain said so */
    bool ends;    /* the visit's record is being removed: */
    struct visit_record ended;
    struct arena ended_memory;
    struct run_output output;
    bool wanted;             /* looked at in this turn */
    bool begins;             /* a request is being set to InProgress */
    usec_t verified;         /* monotonic: since when the gates behind the visit are asked; or 0 */
    usec_t approved;         /* monotonic: when it was first seen to be approved; 0 = it is not */
    struct buf request_name; /* that is being written */
    struct buf job_key;      /* of the Job that is being made or deleted, as the store has it */
    struct buf waits;        /* for what, in words */
};

/* What is made in the namespaces that the configuration names. */
enum operations_made { MADE_STATE, MADE_JOB, MADE_KINDS };

/* The server would not have it made. */
struct operations_refusal {
    usec_t until; /* monotonic: that counts no longer; 0 = it was not refused */
    enum err_code code;
    struct buf text;
};

struct operations_metrics {
    struct metric *campaigns;
    struct metric *visits;
    struct metric *windows;
    struct metric *runs;
    struct metric_series *missed;
    struct metric_series *visit_seconds;
};

/* The request of a visit that has no record any more; one is looked at at a time. */
struct lost_request {
    struct api_call *call; /* reads its NodeState */
    struct writer writer;  /* of the request */
    struct buf visit;      /* that was asked for */
    bool confirmed;        /* there is no record of it */
    usec_t retry_at;       /* monotonic */
    struct buf name;       /* of the request that is being written */
};

struct operations {
    struct window_sources sources; /* first: the kinds are read with it */
    struct core_part part;
    struct core *core;
    struct operations_config config;
    struct loop *loop;
    struct log *log;
    struct informer maintenances;
    struct informer windows;
    struct informer series;
    struct informer templates;
    struct informer states;
    struct informer jobs;
    struct informer requests;
    bool told_denied;
    bool watching; /* the kinds other than NodeMaintenances are watched */
    struct list campaigns;
    struct list works;
    struct map work_by_name;
    struct cordons *cordons;
    struct map zones;    /* name → struct zone */
    struct arena memory; /* of the configuration and the zones */
    struct loop_timer turn;
    usec_t turned; /* monotonic: the last turn */
    uint64_t turns;
    uint64_t changes; /* turns that something asked for: what people see may be another */
    bool knows;       /* the turn knew everything; only then there are members and machines */
    uint32_t in_flight;
    struct operations_refusal refusals[MADE_KINDS];
    /* Of the namespace of Jobs, once something refers to one. */
    struct informer config_maps;
    struct informer secrets;
    bool wants_config_maps;
    bool wants_secrets;
    uint64_t reference_epoch; /* counts up when what may be read has changed */
    struct map calendars;     /* "namespace/name" of ConfigMaps that windows name */
    bool calendars_stale;     /* one of them has changed: the windows are to be read again */
    struct list questions;    /* of gates */
    uint32_t gate_calls;      /* in flight */
    struct operations_metrics metrics;
    struct ratelimit events;
    struct list histories; /* what visits have done and is not written yet */
    uint32_t history_n;
    usec_t history_retry_at; /* monotonic */
    struct api_call *history_call;
    struct api_call *trim_call; /* deletes a Job that is not needed any more */
    struct lost_request lost;
    struct buf path;
    struct buf body;

    /* Of this turn. */
    struct arena tmp;
    usec_t now;  /* wall */
    usec_t next; /* wall: when the next turn is due by itself */
    struct turn_machine *machines;
    uint32_t machine_n;
    struct map machine_by_name;   /* name → struct turn_machine */
    struct turn_machine *orphans; /* visits of machines whose Node is gone */
    uint32_t orphan_n;
};

/* ── operations.c ──────────────────────────────────────────────────────────────────────────── */
void operations_schedule(struct operations *o);
void operations_wake_at(struct operations *o, usec_t wall);
/* True when one more write may be sent; operations_sent counts it, operations_answered ends it. */
bool operations_may_send(const struct operations *o);
/* A turn at once: what it found out holds until the loop runs. False: not all is known, so there
 * are no machines and no members. */
bool operations_look(struct operations *o);
struct turn_machine *operations_machine(const struct operations *o, struct str name);
struct campaign *operations_campaign(const struct operations *o, struct str uid);
struct campaign *operations_campaign_named(const struct operations *o, struct str name);

/* ── operations_events.c ───────────────────────────────────────────────────────────────────── */
void operations_events_init(struct operations *o);
/* An Event on a NodeMaintenance, and on the Node if one is named. */
void operations_tell(struct operations *o, const struct campaign *c, struct str node, bool warning,
                     const char *reason, struct str note);
/* How a visit ended. */
void operations_tell_end(struct operations *o, struct str node, const struct visit_record *v);
void campaign_tell_gathered(struct campaign *c);
/* What the status `text` says that `old` did not; told when it has been written. */
void campaign_note_turning(struct campaign *c, const struct jval *old, struct str text);
void campaign_tell_turning(struct campaign *c);

/* ── run_histories.c ───────────────────────────────────────────────────────────────────────── */
void histories_add(struct operations *o, struct str machine, const struct visit_record *v);
void histories_write(struct operations *o);
void histories_free(struct operations *o);

/* ── operations_metrics.c ──────────────────────────────────────────────────────────────────── */
void operations_metrics_init(struct operations *o);
void operations_metrics_done(struct operations *o);
void operations_metrics_end(struct operations *o, const struct visit_record *v, usec_t took);
void campaign_count_missed(struct campaign *c);

/* ── campaign.c ────────────────────────────────────────────────────────────────────────────── */
struct campaign *campaign_new(struct operations *o, struct store_item *item);
void campaign_free(struct campaign *c);
void campaign_compile(struct campaign *c);
/* What a run of the operation on that machine is; -ERR_INVALID says why it cannot be. */
NODISCARD
int campaign_run_spec(const struct campaign *c, const struct campaign_operation *op,
                      const struct turn_machine *machine, uint32_t attempt, bool preflight,
                      struct arena *out, struct run_job_spec *ret, struct err *err);
const struct campaign_operation *campaign_operation(const struct campaign *c, struct str name);

/* ── campaign_window.c ─────────────────────────────────────────────────────────────────────── */
void campaign_look_at_window(struct campaign *c);
bool campaign_is_overridden(const struct campaign *c); /* by spec.window.override */
/* Finds the openings that come, as far as one turn's work allows. False: it has no window. */
bool campaign_look_ahead(struct campaign *c);
void campaign_look_at_ticks(struct campaign *c);

/* ── campaign_rollout.c ────────────────────────────────────────────────────────────────────── */
/* What people ask for by annotations. */
void campaign_look_at_asks(struct campaign *c);
/* What each machine has done, and what is due; for all campaigns before campaign_decide. */
void campaign_look_at_machines(struct campaign *c);
void campaign_decide(struct campaign *c);
/* The wave of each member; the one behind the last has the rest. */
void campaign_find_waves(const struct campaign *c, uint32_t *ret);
/* Whether a text that people wrote means the present revision. */
bool campaign_is_revision(const struct campaign *c, struct str named);
bool campaign_wave_is_approved(const struct campaign *c, struct str text);
/* Adds the runs that are due there and may begin. */
uint32_t campaign_add_runs(const struct campaign *c, const struct turn_machine *machine,
                           struct visit_run *runs, uint32_t n, uint32_t max);
const struct campaign_member *campaign_member(const struct campaign *c,
                                              const struct turn_machine *machine);
/* A failure there has left the machine cordoned, and still counts. `c` NULL: nobody's does. */
bool campaign_keeps_cordon(const struct campaign *c, const struct turn_machine *machine);
/* All that it should do has been done on that machine; `operation` empty: all of them. */
bool campaign_done_on(const struct campaign *c, const struct campaign_member *member,
                      struct str operation);

/* ── series_members.c ──────────────────────────────────────────────────────────────────────── */
/* `chosen`, by the turn's machines; answers how many. */
uint32_t series_members(struct operations *o, const struct series_spec *series, bool *chosen);

/* ── campaign_gates.c ──────────────────────────────────────────────────────────────────────── */
#define GATES_BEFORE "rollout.gates.beforeNode"
#define GATE_MESSAGE_MAX 512u /* the schema's */
/* Asks all of a list; the first that refuses counts. */
struct gates_answer campaign_gates_ask(struct campaign *c, const char *list,
                                       const struct maintenance_gates *gates,
                                       const struct gates_asker *asker);
/* Once more, live, right before the cordon: since `since`, monotonic. */
struct gates_answer campaign_gates_at_approval(struct campaign *c,
                                               const struct turn_machine *machine, usec_t since,
                                               struct str visit);
/* A visit of the machine has begun. */
void campaign_gates_passed(struct campaign *c, struct str machine);
/* They refused the machine when its request was approved: it goes to the end for a while. */
bool campaign_gates_rest(const struct campaign *c, struct str machine);
/* Marks machines of the plan whose own gates refuse. True if there are such: then others come. */
bool campaign_pass_over_gated(struct campaign *c);
/* Takes machines that may not begin out of the plan. */
void campaign_look_at_gates(struct campaign *c);
/* Gates of the wave that soaks: what they say becomes part of its spec. */
struct gates_answer campaign_look_at_wave_gates(struct campaign *c,
                                                const struct rollout_record *record,
                                                const struct rollout_spec *spec,
                                                struct rollout_wave *waves);
/* Why it soaks, where a gate is the reason; and that a soak which failed stops everything. */
void campaign_tell_soak(struct campaign *c, const struct gates_answer *gates);
/* A gate has stopped everything, and nobody has resumed it. */
bool campaign_gate_timed_out(struct campaign *c);
/* The gate stops everything from now on. */
void campaign_time_out_at_gate(struct campaign *c, struct str place, struct str why);
void campaign_print_gate(const struct campaign *c, struct json_writer *w);
void campaign_gate_pauses_free(struct campaign *c);

/* ── campaign_depends.c ────────────────────────────────────────────────────────────────────── */
/* Names NodeMaintenances that wait for one another: a problem. */
void campaigns_find_cycles(struct operations *o);
/* Empty: all that come first have been done; on `machine`, if it is not NULL. */
struct str campaign_waits_for(const struct campaign *c, const struct turn_machine *machine,
                              struct arena *out);

/* ── campaign_status.c ─────────────────────────────────────────────────────────────────────── */
void campaign_summarize(const struct campaign *c, struct campaign_summary *ret);
/* Writes the places that the ledger should have, and the status for people. */
void campaign_write(struct campaign *c);
struct condition_writer {
    const struct campaign *c;
    const struct jval *old; /* the status as the object has it */
    struct json_writer *w;
};
void campaign_print_condition(const struct condition_writer *x, const char *type, bool truth,
                              struct str reason, struct str message);
bool campaign_may_send(struct campaign *c);
/* Sends the patch that is in the body. */
void campaign_send_status(struct campaign *c);

/* ── campaign_durations.c ──────────────────────────────────────────────────────────────────── */
void campaign_read_durations(struct campaign *c);
void campaign_print_durations(const struct campaign *c, struct json_writer *w);
void operations_add_duration(struct operations *o, const struct visit_record *v, usec_t took);

/* ── payload_references.c ──────────────────────────────────────────────────────────────────── */
#define CALENDARS_MAX 256u  /* ConfigMaps with calendars: more than anybody keeps */
#define REFERENCES_MAX 256u /* of one payload */
/* Watches what is referred to. False while that is not known yet: nothing is decided then. */
bool payload_references_known(struct operations *o);
/* The hashes of what the operation refers to. -ERR_NOTFOUND names the field of what is not there,
 * -ERR_IO says what may not be read. */
NODISCARD
int payload_references(struct campaign *c, struct campaign_operation *op, struct str *hashes,
                       uint32_t max, uint32_t *ret_n, struct err *err);
/* For struct window_sources. */
NODISCARD
int payload_references_calendar(void *ctx, struct str config_map, struct str key, struct str *ret,
                                struct err *err);
void payload_references_on_config_map(void *ctx, struct store_item *item, const void *before);
void payload_references_on_config_map_gone(void *ctx, struct store_item *item);

/* ── prerequisites.c ───────────────────────────────────────────────────────────────────────── */
/* How the server answered when one was to be made. */
void operations_note_made(struct operations *o, enum operations_made made,
                          enum retry_verdict verdict, const struct err *err);
/* What is missing, and how to mend it; its reason is empty when nothing is. */
struct campaign_wait operations_lack(struct operations *o);
/* Writes that into all statuses while nothing can be decided. */
void operations_tell_lack(struct operations *o);
void operations_free_refusals(struct operations *o);

/* ── work.c ────────────────────────────────────────────────────────────────────────────────── */
struct work *work_new(struct operations *o, struct str name);
void work_free(struct work *w);
/* One look at a machine: its visit, or the beginning of one. */
void work_step(struct work *w, struct turn_machine *machine);
/* Forgets what is only in memory: somebody else may lead. */
void work_reset(struct work *w);

/* ── work_facts.c ──────────────────────────────────────────────────────────────────────────── */
void work_facts(struct work *w, const struct turn_machine *machine, const struct visit_record *v,
                struct visit_facts *ret);
/* Several runs of one object have the same gates, and the same of all else that an object says. */
bool visit_run_is_first(const struct visit_record *v, uint32_t i);
/* The MaintenanceRequest of the visit; NULL: there is none. */
const struct maintenance_request *work_request(const struct work *w, const struct visit_record *v);

/* How the store names a Job; and the Job, NULL: there is none. */
struct str work_job_key(const struct work *w, struct str name);
const struct job_state *work_find_job(const struct work *w, struct str name);
/* The name of the Job of a run, or of its preflight. */
struct str work_job_name(const struct work *w, const struct visit_record *v,
                         const struct visit_run *run, bool preflight);

/* The Job that looks whether the reboot has helped. */
struct str work_probe_name(const struct work *w, const struct visit_record *v,
                           const struct visit_run *run);

/* ── work_labels.c ─────────────────────────────────────────────────────────────────────────── */
/* Adds the labels that the object wants. */
void visit_labels_join(struct visit_record *v, const struct campaign *c);
/* Whether the record has room for them. */
bool visit_labels_fit(const struct visit_record *v, const struct campaign *c);
void work_label_facts(const struct work *w, const struct node *node, const struct visit_record *v,
                      struct visit_facts *f);
void work_act_labels(struct work *w, const struct visit_record *v, const struct visit_plan *plan);

/* ── work_after_gates.c ────────────────────────────────────────────────────────────────────── */
void work_after_gates(struct work *w, const struct turn_machine *machine,
                      const struct visit_record *v, struct visit_facts *f);

/* ── reboot_probe.c ────────────────────────────────────────────────────────────────────────── */
/* The payload that asks the machine whether a reboot is required: exit code 0, or 77 for no. What
 * cannot be found out is a failure, and never a reboot. run-on-host itself knows the usual files,
 * too. */
struct str reboot_probe_payload(const struct operation_reboot *reboot, struct arena *out);
/* The Job that looks whether a reboot has helped. */
NODISCARD
int reboot_probe_spec(const struct campaign *c, const struct campaign_operation *op,
                      const struct turn_machine *machine, uint32_t attempt, struct arena *out,
                      struct run_job_spec *ret, struct err *err);

/* ── work_act.c ────────────────────────────────────────────────────────────────────────────── */
void work_act(struct work *w, const struct turn_machine *machine, const struct visit_record *v,
              const struct visit_plan *plan);
void work_stop_drain(struct work *w);
/* Lifts a cordon that a failed visit of that NodeMaintenance left. */
void work_lift_kept(struct work *w, struct str maintenance_uid);

/* ── run_output.c ──────────────────────────────────────────────────────────────────────────── */
/* True once it is known how the finished Job ended; asks otherwise. */
bool run_output_know(struct work *w, const struct job_state *job);
void run_output_done(struct run_output *r);
/* The path of the pods of a Job, and what they say. */
void run_output_add_path(const struct operations *o, struct str job, struct buf *path);
void run_output_read_pods(struct run_output *r, const struct jval *list);

/* ── job_history.c ─────────────────────────────────────────────────────────────────────────── */
/* Deletes Jobs that have ended and that nobody needs. */
void job_history_trim(struct operations *o);

/* ── lost_request.c ────────────────────────────────────────────────────────────────────────── */
void lost_request_init(struct operations *o);
void lost_request_done(struct operations *o); /* cancels what is under way */
void lost_request_look(struct operations *o);

/* ── machine_facts.c ───────────────────────────────────────────────────────────────────────── */
/* What the agent says, and for the rest what the kubelet does. */
void machine_facts_read(const struct node *node, const struct node_state *state,
                        struct machine_facts *ret);
