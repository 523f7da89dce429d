#include "kinds/node_operation.h"

#include "format/json_writer.h"

#define DURATION_MIN MINUTES(5)
#define DURATION_MAX HOURS(168)
#define EVERY_MIN MINUTES(1)
#define FILES_MAX 16u

static const char *const disruptive_names[] = { "Auto", "Always", "Never" };

static uint32_t count_of(const struct spec_node *at, const char *const *keys, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        count += spec_has(at, keys[i]) ? 1 : 0;
    }
    return count;
}

void node_operation_check_job(const struct spec_node *at)
{
    static const char *const sources[] = { "script", "scriptFrom", "image" };
    if (count_of(at, sources, ARRAY_LEN(sources)) != 1) {
        spec_wrong(at, "Invalid", "exactly one of script, scriptFrom, image");
    } else if (!spec_has(at, "image") && (spec_has(at, "command") || spec_has(at, "args"))) {
        spec_wrong(at, "Invalid", "command and args only with image");
    }
}

void operation_reboot_read(const struct spec_node *at, const char *key,
                           struct operation_reboot *ret)
{
    static const char *const policies[] = { "Never", "IfRequired", "Always" };
    static const char *const methods[] = { "Auto", "Kexec", "Signal", "Command" };
    struct spec_node m = spec_member(at, key);
    struct spec_node detect = spec_member(&m, "detect");
    *ret = (struct operation_reboot){
        .policy = (enum reboot_policy)SPEC_ENUM(&m, "policy", policies, REBOOT_NEVER),
        .method = (enum reboot_method)SPEC_ENUM(&m, "method", methods, REBOOT_BY_AUTO),
        .files = spec_texts(&detect, "files", FILES_MAX),
        .command = spec_texts(&detect, "command", OPERATION_COMMAND_MAX),
        .kernel = spec_bool(&detect, "kernel", true),
        .units = spec_bool(&detect, "units", true),
        .immediate = spec_bool(&m, "immediate", false),
        .timeout = spec_duration(&m, "timeout", REBOOT_TIMEOUT),
        .min_interval = spec_duration(&m, "minInterval", REBOOT_MIN_INTERVAL),
    };
}

void operation_preflight_read(const struct spec_node *at, const char *key,
                              struct operation_preflight *ret)
{
    struct spec_node m = spec_member(at, key);
    *ret = (struct operation_preflight){
        .given = m.value != NULL,
        .script = spec_text(&m, "script"),
        .image = spec_text(&m, "image"),
        .command = spec_texts(&m, "command", OPERATION_COMMAND_MAX),
        .timeout = spec_duration(&m, "timeout", PREFLIGHT_TIMEOUT),
    };
    if (ret->given && (ret->script.n > 0) == (ret->image.n > 0)) {
        spec_wrong(&m, "Invalid", "either script or image");
    }
}

static void version_read(const struct spec_node *at, struct operation_version *ret)
{
    struct spec_node m = spec_member(at, "version");
    *ret = (struct operation_version){
        .value = spec_text(&m, "value"),
        .channel = spec_text(&m, "channel"),
        .pointer = spec_text(&m, "pointer"),
        .interval = spec_duration(&m, "interval", CHANNEL_INTERVAL),
    };
    if (m.value != NULL && (ret->value.n > 0) == (ret->channel.n > 0)) {
        spec_wrong(&m, "Invalid", "either value or channel");
    }
}

static void pattern_read(const struct spec_node *at, struct operation_cron *c)
{
    struct spec_node m = spec_member(at, "schedule");
    struct err err = { 0 };
    c->by = CRON_BY_SCHEDULE;
    c->schedule = spec_text(at, "schedule");
    if (cron_parse(c->schedule, &c->pattern, &err) < 0) {
        spec_wrong(&m, "Invalid", "five fields such as '0 2 * * 2' (%s)", err.msg);
    }
}

static void cron_zone_read(const struct spec_node *at, const struct window_sources *sources,
                           struct operation_cron *c)
{
    struct spec_node m = spec_member(at, "timeZone");
    struct err err = { 0 };
    c->zone_name = spec_text(at, "timeZone");
    c->has_zone = c->zone_name.n > 0;
    if (!c->has_zone || str_eq(c->zone_name, STR("UTC"))) {
        return;
    }
    if (sources->find_zone == NULL ||
        sources->find_zone(sources->ctx, c->zone_name, &c->zone, &err) < 0) {
        spec_wrong(&m, "UnknownZone", "a zone such as Europe/Berlin%s%s",
                   err.msg[0] == '\0' ? "" : ": ", err.msg);
    }
}

static void between(const struct spec_node *at, const char *key, usec_t value, usec_t min,
                    const char *words)
{
    struct spec_node m = spec_member(at, key);
    if (m.value != NULL && (value < min || value > DURATION_MAX)) {
        spec_wrong(&m, "Invalid", "a duration of %s", words);
    }
}

static void cron_read(const struct spec_node *at, const struct window_sources *sources,
                      struct operation_cron *c)
{
    static const char *const overlaps[] = { "Forbid", "Replace" };
    struct spec_node m = spec_member(at, "cron");
    if (spec_has(at, "schedule")) {
        if (m.value != NULL) {
            spec_wrong(at, "Invalid", "either schedule or cron");
        }
        pattern_read(at, c);
        return;
    }
    bool per_window = spec_bool(&m, "perWindow", false);
    uint32_t ways = (spec_has(&m, "schedule") ? 1u : 0u) + (spec_has(&m, "every") ? 1u : 0u) +
                    (per_window ? 1u : 0u);
    c->every = spec_duration(&m, "every", 0);
    c->duration = spec_duration(&m, "duration", 0);
    c->starting_deadline = spec_duration(&m, "startingDeadline", 0);
    c->replace = SPEC_ENUM(&m, "overlap", overlaps, 0) == 1;
    c->run_on_create = spec_bool(&m, "runOnCreate", false);
    c->by = per_window ? CRON_BY_WINDOW : CRON_BY_INTERVAL;
    between(&m, "every", c->every, EVERY_MIN, "1m to 168h");
    between(&m, "duration", c->duration, DURATION_MIN, "5m to 168h");
    cron_zone_read(&m, sources, c);
    if (ways != 1) {
        spec_wrong(&m, "Invalid", "exactly one of schedule, every, perWindow: true");
    } else if (spec_has(&m, "schedule")) {
        pattern_read(&m, c);
    } else if (c->has_zone || c->duration > 0) {
        spec_wrong(&m, "Invalid", "timeZone and duration only with schedule");
    }
}

static void realtime_read(const struct spec_node *at, struct operation_realtime *ret)
{
    static const char *const adopts[] = { "InWindow", "Always" };
    static const char *const repairs[] = { "Always", "InWindow" };
    static const char *const removes[] = { "Keep", "Restore", "Remove" };
    struct spec_node m = spec_member(at, "realtime");
    *ret = (struct operation_realtime){
        .adopt_always = SPEC_ENUM(&m, "adopt", adopts, 0) == 1,
        .repair_in_window = SPEC_ENUM(&m, "repair", repairs, 0) == 1,
        .defer_disruptive = spec_bool(&m, "deferDisruptive", true),
        .noop = spec_bool(&m, "noop", false),
        .on_remove = (enum on_remove)SPEC_ENUM(&m, "onRemove", removes, ON_REMOVE_KEEP),
        .verify = spec_json(&m, "verify"),
    };
}

static void resources_read(const struct spec_node *at, struct node_operation *o)
{
    struct spec_node list = spec_member(at, "resources");
    o->payload = PAYLOAD_RESOURCES;
    o->payload_json = spec_json(at, "resources");
    if (spec_count(&list) == 0) {
        spec_wrong(&list, "Invalid", "at least one resource");
    }
    SPEC_EACH(&list, OPERATION_RESOURCES_MAX, item)
    {
        if (spec_text(&item, "name").n == 0 || spec_text(&item, "type").n == 0) {
            spec_wrong(&item, "Invalid", "name and type");
        }
    }
}

static void template_read(const struct spec_node *at, struct node_operation *o)
{
    struct spec_node m = spec_member(at, "template");
    struct spec_node parameters = spec_member(&m, "parameters");
    o->payload = PAYLOAD_TEMPLATE;
    o->template_name = spec_text(&m, "name");
    o->parameters_json = spec_json(&m, "parameters");
    if (o->template_name.n == 0) {
        spec_wrong(&m, "Invalid", "the name of a NodeOperationTemplate");
    }
    if (parameters.value != NULL && jval_kind(parameters.value) != JOBJ) {
        spec_wrong(&parameters, "Invalid", "values by name");
    }
}

/* `script` is the short form of a job. */
static void script_read(const struct spec_node *at, struct node_operation *o)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_pair(&w, "script", spec_text(at, "script"));
    jw_obj_end(&w);
    o->payload = PAYLOAD_JOB;
    o->payload_json = arena_str(at->reader->out, buf_str(&text));
}

static void payload_read(const struct spec_node *at, struct node_operation *o)
{
    static const char *const payloads[] = { "job", "script", "resources", "template" };
    uint32_t n = count_of(at, payloads, ARRAY_LEN(payloads));
    o->parameters_json = STR_NONE;
    if (n > 1) {
        spec_wrong(at, "Invalid", "at most one of job, script, resources, template");
    } else if (n == 0 && o->reboot.policy == REBOOT_NEVER) {
        spec_wrong(at, "Invalid",
                   "job, script, resources, template, or a reboot.policy other than Never");
    } else if (spec_has(at, "job")) {
        struct spec_node job = spec_member(at, "job");
        node_operation_check_job(&job);
        o->payload = PAYLOAD_JOB;
        o->payload_json = spec_json(at, "job");
    } else if (spec_has(at, "script")) {
        script_read(at, o);
    } else if (spec_has(at, "resources")) {
        resources_read(at, o);
    } else if (spec_has(at, "template")) {
        template_read(at, o);
    }
    if (o->parameters_json.n == 0) {
        o->parameters_json = STR("{}");
    }
}

/* What one part forbids of another. */
static void combination_check(const struct spec_node *at, const struct node_operation *o)
{
    bool timed = spec_has(at, "cron") || spec_has(at, "schedule");
    if ((o->type == OPERATION_CRON) != timed) {
        spec_wrong(at, "Invalid", "schedule or cron for type cron, and for no other");
    } else if (o->type != OPERATION_REALTIME && spec_has(at, "realtime")) {
        spec_wrong(at, "Invalid", "realtime only for type realtime");
    } else if (o->type == OPERATION_REALTIME && o->payload == PAYLOAD_JOB) {
        spec_wrong(at, "Invalid", "resources or a template for type realtime, and no job");
    } else if (o->runner == RUNNER_JOB &&
               (o->type == OPERATION_REALTIME || o->payload == PAYLOAD_RESOURCES)) {
        spec_wrong(at, "Invalid", "runner Agent for type realtime and for resources");
    } else if (o->type == OPERATION_REALTIME && o->reboot.policy == REBOOT_ALWAYS) {
        spec_wrong(at, "Invalid", "reboot.policy IfRequired for type realtime");
    }
}

static unsigned given_of(const struct spec_node *at)
{
    return (spec_has(at, "timeout") ? (unsigned)OPERATION_GAVE_TIMEOUT : 0) |
           (spec_has(at, "disruptive") ? (unsigned)OPERATION_GAVE_DISRUPTIVE : 0) |
           (spec_has(at, "reboot") ? (unsigned)OPERATION_GAVE_REBOOT : 0) |
           (spec_has(at, "preflight") ? (unsigned)OPERATION_GAVE_PREFLIGHT : 0);
}

static void identity_read(const struct spec_node *at, struct node_operation *o)
{
    static const char *const types[] = { "one-shot", "cron", "realtime" };
    struct spec_node name = spec_member(at, "name");
    o->name = spec_text(at, "name");
    o->type = (enum operation_type)SPEC_ENUM(at, "type", types, OPERATION_ONE_SHOT);
    if (!spec_is_dns_label(o->name, OPERATION_NAME_MAX)) {
        spec_wrong(&name, "Invalid", "small letters, digits and dashes, at most %u",
                   OPERATION_NAME_MAX);
    }
    if (!spec_has(at, "type")) {
        struct spec_node type = spec_member(at, "type");
        spec_wrong(&type, "Invalid", "one of one-shot, cron, realtime");
    }
}

void node_operation_read(const struct spec_node *at, const struct window_sources *sources,
                         struct node_operation *ret)
{
    static const char *const runners[] = { "Auto", "Job", "Agent" };
    static const char *const reruns[] = { "Change", "Nonce" };
    static const char *const joins[] = { "Run", "Skip" };
    struct spec_node when = spec_member(at, "when");
    *ret = (struct node_operation){
        .given = given_of(at),
        .runner = (enum operation_runner)SPEC_ENUM(at, "runner", runners, RUNNER_AUTO),
        .disruptive = (enum operation_disruptive)SPEC_ENUM(at, "disruptive", disruptive_names,
                                                           DISRUPTIVE_AUTO),
        .timeout = spec_duration(at, "timeout", OPERATION_TIMEOUT),
        .track_references = spec_bool(at, "trackReferences", true),
        .rerun_on_nonce = SPEC_ENUM(at, "rerunOn", reruns, 0) == 1,
        .skip_new_nodes = SPEC_ENUM(at, "newNodes", joins, 0) == 1,
        .nonce = spec_text(at, "nonce"),
        .after = spec_texts(at, "after", OPERATIONS_MAX),
    };
    identity_read(at, ret);
    ret->when.has_facts = series_facts_read(&when, "facts", &ret->when.facts);
    ret->when.has_labels = spec_selector(&when, "labels", &ret->when.labels);
    if (when.value != NULL && !ret->when.has_facts && !ret->when.has_labels) {
        spec_wrong(&when, "Invalid", "facts or labels");
    }
    operation_reboot_read(at, "reboot", &ret->reboot);
    operation_preflight_read(at, "preflight", &ret->preflight);
    version_read(at, &ret->version);
    if (ret->type == OPERATION_CRON) {
        cron_read(at, sources, &ret->cron);
    }
    realtime_read(at, &ret->realtime);
    payload_read(at, ret);
    combination_check(at, ret);
}
