/*
 * check_plugin: what a check plugin is made of, and the helpers that all of them use.
 *
 * A plugin's keys are in the table of profile/plugin_table.h. `prepare` turns their values into
 * what `run` reads, once, when the configuration is loaded: deciding parses nothing. Prepared
 * values that the fleet reads as well are declared here, the others in their plugin's file.
 */
#pragma once

#include "base/duration.h"
#include "format/json_writer.h"
#include "profile/check/check.h"

#define CHECK_INFO_MAX ((size_t)256 * 1024) /* a Prometheus answers with some warnings at most */

struct check_prepare_input {
    const struct plugin *plugin;
    const struct plugin_value *values; /* good ones */
    const struct ucfg_env *env;
    struct arena *out; /* the configuration's */
    struct problems *problems;
};

struct check_plugin {
    const char *name;
    /* What is wrong beyond its keys is added to the problems. */
    const void *(*prepare)(const struct check_prepare_input *input);
    /* `*ret` is CHECK_FAIL when it begins. */
    void (*run)(const struct check_input *in, uint32_t index, struct check_verdict *ret);
};

extern const struct check_plugin check_affinity;
extern const struct check_plugin check_any_label;
extern const struct check_plugin check_check_hypervisor;
extern const struct check_plugin check_cluster_semver;
extern const struct check_plugin check_condition;
extern const struct check_plugin check_has_annotation;
extern const struct check_plugin check_has_label;
extern const struct check_plugin check_hypervisor_condition;
extern const struct check_plugin check_kubernikus_count;
extern const struct check_plugin check_max_maintenance;
extern const struct check_plugin check_node_count;
extern const struct check_plugin check_prometheus_instant;
extern const struct check_plugin check_stagger;
extern const struct check_plugin check_time_window;
extern const struct check_plugin check_wait;
extern const struct check_plugin check_wait_exclude;

/* NULL when no check has that name. */
const struct check_plugin *check_find(const char *name);

/* hasLabel, hasAnnotation, anyLabel. */
struct check_key_config {
    struct str key;
    struct str value; /* empty: anything */
};
const void *check_key_prepare(const struct check_prepare_input *input);
/* hasLabel and hasAnnotation: `value` is the node's, STR_NONE without one; `what` is "label" or
 * "annotation". */
void check_key_run(const struct check_input *in, const struct check_key_config *key,
                   const char *what, struct str value, struct check_verdict *ret);

/* condition, hypervisorCondition */
struct check_condition_config {
    struct str type;
    struct str status;
};
const void *check_condition_prepare(const struct check_prepare_input *input);
/* `whose` is "node" or "hypervisor"; `status` is the condition's, STR_NONE without one. */
void check_condition_run(const struct check_input *in,
                         const struct check_condition_config *prepared, const char *whose,
                         struct str status, struct check_verdict *ret);

/* The Hypervisor of the node. False: there is none, or it is not known; the verdict says so. */
bool check_find_hypervisor(const struct check_input *in, struct check_verdict *ret,
                           const struct hypervisor **ret_found);

struct check_semver_config {
    struct str key;
    bool scoped; /* to nodes of the profile */
};

/* affinity */
struct check_affinity_config {
    int64_t operational; /* so many nodes; 0: never */
};

struct check_max_config {
    int64_t max;
    struct str profile;    /* empty: any */
    int64_t skip_after_ns; /* 0: never */
    struct str *keys;      /* that make a group */
    uint32_t key_n;
};

const struct plugin_value *check_value(const struct check_prepare_input *input, const char *key);
static inline const void *check_prepared(const struct check_input *in, uint32_t index)
{
    return in->config->instances[PLUGIN_CHECK].items[index].prepared;
}

/* The info object: begin, members in the order of their names, end. */
struct check_info {
    struct buf buf;
    struct json_writer json;
};
void check_info_begin(struct check_info *info);
struct str check_info_end(struct check_info *info, struct arena *out);
/* A float as Go prints it; NaN and the infinities, which JSON does not have, as text. */
void check_info_f64(struct check_info *info, const char *key, double value);
/* {"reason":"…"} */
struct str check_info_reason(struct arena *out, struct str reason);

void check_fail_with(const struct check_input *in, struct check_verdict *ret, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Adds a want; the answer stays what it is. */
void check_want(const struct check_input *in, struct check_verdict *ret,
                const struct facts_want *want);
/* Whether an answer has to be asked for: it is unknown, or older than the refresh interval. A slow
 * answer counts for a moment after it came, however short the interval is. `next` is pulled to when
 * it will be due (again). */
bool check_needs_refresh(const struct check_input *in, bool known, usec_t asked, usec_t answered,
                         struct check_verdict *ret);

/* "1h30m", "45s": whole seconds, without zero parts. */
struct str check_duration_text(struct arena *out, int64_t ns);
/* "Mon 22:00", on the clocks of that offset; with the date when it is a week away or more. */
struct str check_time_text(struct arena *out, usec_t wall, usec_t now, int32_t offset);
/* "'value'", shortened where it is long. */
struct str check_quote_text(struct arena *out, struct str value);
