/*
 * run_job: the Job that carries out one run on one machine, and what became of it.
 *
 * Its name follows from visit, machine, object, revision and attempt, so that whoever makes it
 * twice, because an answer was lost or a new leader goes on, meets the first one. A Job found under
 * that name is ours only if the NodeMaintenance of the same UID owns it and its hash is that of
 * what we would make; anybody else's is not looked at (ForeignJob).
 *
 * Attempts are counted by the controller: the Job itself never tries again.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"

#define RUN_JOB_NAME_MAX 63u

struct run_job_parameter {
    struct str name; /* "DD_…" */
    struct str value;
    struct str secret; /* instead of a value: a Secret beside the Job, and its key */
    struct str secret_key;
};

struct run_job_spec {
    struct str namespace; /* of all Jobs */
    struct str machine;
    struct str machine_uid;
    struct str maintenance;
    struct str maintenance_uid;
    struct str operation;
    struct str revision;
    uint32_t attempt;   /* from 1 */
    struct str visit;   /* in whose course it runs: a visit makes each run once */
    bool preflight;     /* it only looks whether there is something to do */
    bool probe;         /* it looks whether a reboot has helped */
    usec_t timeout;     /* > 0 */
    struct str version; /* DD_VERSION; may be empty */
    /* The JobPayload after expansion, as JSON: `script`, or `image` with its fields. */
    const struct jval *payload;
    const struct run_job_parameter *parameters; /* of a template, as variables; may be none */
    uint32_t parameter_n;
    struct str runner_image;   /* has drydock run-on-host */
    struct str priority_class; /* may be empty */
    bool no_host;              /* runs on any machine, and sees nothing of it */
};

/* "dd-<operation>-<12 hex>". */
struct str run_job_name(const struct run_job_spec *spec, struct arena *out);
/* The object to POST. -ERR_INVALID names the field of the payload that cannot be used. */
NODISCARD
int run_job_print(const struct run_job_spec *spec, struct buf *out, struct err *err);

/* The Job that reboots the machine, if its boot ID is still `boot_id`. */
struct run_job_reboot {
    struct str visit; /* the name follows from it */
    struct str boot_id;
};
struct str run_job_reboot_name(const struct run_job_reboot *reboot, struct arena *out);
void run_job_print_reboot(const struct run_job_spec *spec, const struct run_job_reboot *reboot,
                          struct buf *out);

enum run_job_state { RUN_JOB_ACTIVE, RUN_JOB_SUCCEEDED, RUN_JOB_FAILED };

/* What a Job's status says. */
struct run_job_end {
    enum run_job_state state;
    bool ours;         /* owner and hash are right */
    struct str reason; /* of a failure: "Timeout", "ExitCode", … */
};
/* `ours` is not looked at. Texts live in `out`. */
void run_job_read_end(const struct jval *job, struct arena *out, struct run_job_end *ret);
/* For a Job of the name that `spec` has. Texts live in `out`. */
void run_job_read(const struct jval *job, const struct run_job_spec *spec, struct arena *out,
                  struct run_job_end *ret);

#define RUN_JOB_NOTHING_TO_DO 77 /* exit code */

/* What drydock run-on-host left in the pod's termination message. */
struct run_job_message {
    bool said; /* it is there and can be read */
    int64_t exit_code;
    bool nothing_to_do; /* exit code 77 */
    bool reboot_required;
    struct str output; /* the end of it, of a failure; control characters are replaced */
};
/* `out` keeps the texts. */
void run_job_read_message(struct str text, struct arena *out, struct run_job_message *ret);
/* The end of what a run printed, without what a terminal or a log would act upon. */
struct str run_job_clean_output(struct str output, struct arena *out);
