/* One NodeMaintenance: whether it is accepted, its operations with their templates expanded, and
 * their revisions. */
#include "base/alloc.h"
#include "base/hex.h"
#include "operation/operations_internal.h"
#include "operation/revision.h"
#include "operation/template_expand.h"

static const struct writer_rules campaign_rules = {
    .conflict = { MSECONDS(20), SECONDS(2) },
    .absent = { SECONDS(1), MINUTES(1) },
    .refused = { SECONDS(10), MINUTES(5) },
    .failed = { MSECONDS(500), SECONDS(30) },
};

struct campaign *campaign_new(struct operations *o, struct store_item *item)
{
    struct campaign *c = ALLOC_NEW(struct campaign);
    c->o = o;
    c->item = item;
    writer_init(&c->writer, &o->core->client, &campaign_rules);
    list_init(&c->gate_pauses);
    list_add(&o->campaigns, &c->link);
    return c;
}

void campaign_free(struct campaign *c)
{
    if (c->writer.call != NULL) {
        c->o->in_flight--;
    }
    writer_cancel(&c->writer);
    list_del(&c->link);
    campaign_gate_pauses_free(c);
    buf_done(&c->sent);
    arena_done(&c->memory);
    alloc_free(c);
}

/* The first problem counts. */
static void campaign_refuse(struct campaign *c, const char *reason, struct str why)
{
    if (c->problem.n == 0) {
        c->problem_reason = str_from(reason);
        c->problem = why;
    }
}

const struct campaign_operation *campaign_operation(const struct campaign *c, struct str name)
{
    for (uint32_t i = 0; i < c->operation_n; i++) {
        if (str_eq(c->operations[i].spec->name, name)) {
            return &c->operations[i];
        }
    }
    return NULL;
}

/* ── templates ─────────────────────────────────────────────────────────────────────────────── */

/* What the template says where the operation's author said nothing. */
static int campaign_apply_defaults(struct campaign *c, struct campaign_operation *op,
                                   const struct template_expand_input *in, struct err *err)
{
    static const char *const disruptive[] = { "Auto", "Always", "Never" };
    struct spec_reader reader = { .out = &c->memory };
    struct str json;
    const struct jval *v = NULL;
    int r = template_expand_defaults(in, &c->memory, &json, err);
    r = r < 0 ? r : json_parse(json, 0, &c->memory, &v, err);
    if (r < 0) {
        return r;
    }
    struct spec_node at = { .reader = &reader, .key = "defaults", .value = v };
    unsigned given = op->spec->given;
    if ((given & OPERATION_GAVE_TIMEOUT) == 0) {
        op->timeout = spec_duration(&at, "timeout", op->timeout);
    }
    if ((given & OPERATION_GAVE_REBOOT) == 0) {
        operation_reboot_read(&at, "reboot", &op->reboot);
    }
    if ((given & OPERATION_GAVE_PREFLIGHT) == 0) {
        operation_preflight_read(&at, "preflight", &op->preflight);
    }
    if ((given & OPERATION_GAVE_DISRUPTIVE) == 0) {
        op->quiet = SPEC_ENUM(&at, "disruptive", disruptive, DISRUPTIVE_AUTO) == DISRUPTIVE_NEVER;
    }
    if (reader.problem.reason.n > 0) {
        return err_set(err, ERR_INVALID, "template '" STR_FMT "': " STR_FMT,
                       STR_ARG(op->spec->template_name),
                       STR_ARG(spec_problem_text(&reader.problem, &c->memory)));
    }
    return 0;
}

static bool campaign_find_template(struct campaign *c, struct campaign_operation *op)
{
    const struct node_operation *spec = op->spec;
    const struct store_item *item = store_find(&c->o->templates.store, spec->template_name);
    struct arena *out = &c->memory;
    if (item == NULL) {
        campaign_refuse(c, "RefNotFound",
                        arena_printf(out,
                                     "operation '" STR_FMT "': template.name: there is no "
                                     "NodeOperationTemplate '" STR_FMT "'",
                                     STR_ARG(spec->name), STR_ARG(spec->template_name)));
        return false;
    }
    op->template = item->object;
    if (op->template->problem.reason.n > 0) {
        campaign_refuse(c, "TemplateError",
                        arena_printf(out, "template '" STR_FMT "': " STR_FMT,
                                     STR_ARG(spec->template_name),
                                     STR_ARG(spec_problem_text(&op->template->problem, out))));
        return false;
    }
    if ((op->template->types >> spec->type & 1u) == 0) {
        campaign_refuse(c, "TemplateError",
                        arena_printf(out,
                                     "operation '" STR_FMT "': template '" STR_FMT
                                     "' is not made for operations of this type",
                                     STR_ARG(spec->name), STR_ARG(spec->template_name)));
        return false;
    }
    return true;
}

/* ── payloads ──────────────────────────────────────────────────────────────────────────────── */

static int campaign_expand(const struct campaign *c, const struct campaign_operation *op,
                           const struct machine *machine, struct arena *out, struct str *ret,
                           struct err *err)
{
    (void)c;
    return template_expand(
        &(struct template_expand_input){
            .template = op->template,
            .payload = PAYLOAD_JOB,
            .payload_json = op->spec->payload_json,
            .parameters_json = op->spec->parameters_json,
            .version = op->spec->version.value,
            .machine = machine,
        },
        out, ret, err);
}

/* What this version cannot do is said, not passed over. */
static const char *operation_unsupported(const struct campaign_operation *op)
{
    const struct node_operation *o = op->spec;
    bool resources = o->payload == PAYLOAD_RESOURCES ||
                     (op->template != NULL && op->template->payload == PAYLOAD_RESOURCES);
    if (resources || o->runner == RUNNER_AGENT) {
        return "resources and runner Agent need the agent, which this version does not have";
    }
    if (o->type == OPERATION_REALTIME && o->payload != PAYLOAD_NONE) {
        return "type realtime needs the agent, which this version does not have, unless it only "
               "reboots";
    }
    if (o->version.channel.n > 0) {
        return "version.channel is not read by this version: write version.value";
    }
    return NULL;
}

static int campaign_compile_payload(struct campaign *c, struct campaign_operation *op,
                                    struct err *err)
{
    int r = 0;
    if (op->template != NULL) {
        const struct template_expand_input in = { .template = op->template,
                                                  .parameters_json = op->spec->parameters_json,
                                                  .version = op->spec->version.value };
        r = template_variables(&in, &c->memory, &op->parameters, &op->parameter_n, err);
        r = r < 0 ? r : campaign_apply_defaults(c, op, &in, err);
    }
    if (r == 0 && !op->bare) {
        r = campaign_expand(c, op, NULL, &c->memory, &op->payload_json, err);
        r = r < 0 ? r : json_parse(op->payload_json, 0, &c->memory, &op->payload, err);
        op->per_machine = str_contains(op->payload_json, STR("${machine.")) ||
                          str_contains(op->payload_json, STR("${facts."));
    }
    if (r == 0 && op->payload != NULL) {
        struct run_job_spec spec;
        CLEANUP(buf_done)
        struct buf body = { 0 };
        struct turn_machine nobody = { .name = STR("machine"), .node = NULL };
        struct campaign_operation plain = *op;
        plain.per_machine = false;
        r = campaign_run_spec(c, &plain, &nobody, 1, false, &c->memory, &spec, err);
        r = r < 0 ? r : run_job_print(&spec, &body, err);
    }
    return r;
}

static void campaign_compile_operation(struct campaign *c, struct campaign_operation *op)
{
    struct err err = { 0 };
    const struct node_operation *spec = op->spec;
    if (spec->payload == PAYLOAD_TEMPLATE && !campaign_find_template(c, op)) {
        return;
    }
    op->timeout = spec->timeout;
    op->reboot = spec->reboot;
    op->preflight = spec->preflight;
    op->quiet = spec->disruptive == DISRUPTIVE_NEVER;
    op->bare = spec->payload == PAYLOAD_NONE;
    op->cron = spec->type != OPERATION_ONE_SHOT;
    const char *unsupported = operation_unsupported(op);
    if (unsupported != NULL) {
        campaign_refuse(c, "Unsupported",
                        arena_printf(&c->memory, "operation '" STR_FMT "': %s", STR_ARG(spec->name),
                                     unsupported));
        return;
    }
    int r = campaign_compile_payload(c, op, &err);
    op->quiet = op->quiet && op->reboot.policy == REBOOT_NEVER;
    struct str references[REFERENCES_MAX];
    struct revision_input input = {
        .operation = spec,
        .payload_json = op->payload_json,
        .version = spec->version.value,
        .references = references,
    };
    r = r < 0 ? r : payload_references(c, op, references, REFERENCES_MAX, &input.reference_n, &err);
    r = r < 0 ? r : revision_of(&input, &c->memory, &op->revision, &err);
    if (r < 0) {
        campaign_refuse(
            c,
            r == -ERR_LIMIT        ? "TooLarge"
            : r == -ERR_NOTFOUND   ? "RefNotFound"
            : r == -ERR_IO         ? "Forbidden"
            : r == -ERR_DENIED     ? "UntrustedSubstitution"
            : op->template != NULL ? "TemplateError"
                                   : "Invalid",
            arena_printf(&c->memory, "operation '" STR_FMT "': %s", STR_ARG(spec->name), err.msg));
    }
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

static void campaign_find_series(struct campaign *c)
{
    const struct maintenance_where *where = &c->m->series;
    c->series = &where->own;
    if (where->ref.n == 0) {
        return;
    }
    const struct store_item *item = store_find(&c->o->series.store, where->ref);
    const struct node_series *series = item != NULL ? item->object : NULL;
    if (series == NULL) {
        campaign_refuse(c, "RefNotFound",
                        arena_printf(&c->memory,
                                     "spec.nodeSeries.ref: there is no NodeSeries '" STR_FMT "'",
                                     STR_ARG(where->ref)));
    } else if (series->problem.reason.n > 0) {
        campaign_refuse(c, "Invalid",
                        arena_printf(&c->memory, "NodeSeries '" STR_FMT "': " STR_FMT,
                                     STR_ARG(where->ref),
                                     STR_ARG(spec_problem_text(&series->problem, &c->memory))));
    } else {
        c->series = &series->spec;
    }
}

static void campaign_find_windows(struct campaign *c)
{
    const struct spec_texts *refs = &c->m->window.refs;
    for (uint32_t i = 0; i < refs->n; i++) {
        const struct store_item *item = store_find(&c->o->windows.store, refs->items[i]);
        const struct maintenance_window *w = item != NULL ? item->object : NULL;
        if (w == NULL) {
            campaign_refuse(c, "RefNotFound",
                            arena_printf(&c->memory,
                                         "spec.window.refs[%u]: there is no MaintenanceWindow "
                                         "'" STR_FMT "'",
                                         i, STR_ARG(refs->items[i])));
        } else if (w->problem.reason.n > 0) {
            campaign_refuse(c, "Invalid",
                            arena_printf(&c->memory, "MaintenanceWindow '" STR_FMT "': " STR_FMT,
                                         STR_ARG(refs->items[i]),
                                         STR_ARG(spec_problem_text(&w->problem, &c->memory))));
        } else if (w->effect == WINDOW_FREEZE) {
            campaign_refuse(c, "Invalid",
                            arena_printf(&c->memory,
                                         "spec.window.refs[%u]: MaintenanceWindow '" STR_FMT
                                         "' is a Freeze, which holds for all; name one that opens",
                                         i, STR_ARG(refs->items[i])));
        }
    }
}

static void campaign_check_urls(struct campaign *c, const struct maintenance_gates *gates)
{
    for (uint32_t i = 0; i < gates->n; i++) {
        struct str url = gates->items[i].url;
        if (url.n > 0 && !gate_url_is_allowed(c->o->config.allow_urls, url)) {
            campaign_refuse(c, "DestinationNotAllowed",
                            arena_printf(&c->memory,
                                         "spec.rollout: a gate asks '" STR_FMT
                                         "', which the controller's flag --allow-url does not name",
                                         STR_ARG(url)));
        }
    }
}

static void campaign_check_gates(struct campaign *c)
{
    const struct maintenance_rollout *r = &c->m->rollout;
    campaign_check_urls(c, &r->before);
    campaign_check_urls(c, &r->after);
    for (uint32_t i = 0; i < r->wave_n; i++) {
        campaign_check_urls(c, &r->waves[i].gates);
    }
}

static void campaign_check_supported(struct campaign *c)
{
    const struct node_maintenance *m = c->m;
    const struct maintenance_disruption *d = &m->disruption;
    const char *what = NULL;
    if (m->profile.n > 0) {
        what = "spec.coordination.profile";
    } else if (m->unbudgeted) {
        what = "spec.coordination.budget None";
    } else if (m->notify_n > 0) {
        what = "spec.notify";
    } else if (d->silence_n > 0) {
        what = "spec.disruption.silences";
    } else if (d->prefer_no_schedule) {
        what = "spec.disruption.preferNoSchedule";
    } else if (m->rollout.exclusive_group.n > 0) {
        what = "spec.rollout.exclusiveGroup";
    }
    if (what != NULL) {
        campaign_refuse(c, "Unsupported",
                        arena_printf(&c->memory, "%s: not part of this version", what));
    } else if (d->drain.on_timeout != DRAIN_FAIL && !c->o->config.allow_forced_drains) {
        campaign_refuse(c, "Unsupported",
                        STR("spec.disruption.drain.onTimeout: Proceed and Force need the "
                            "controller's flag --allow-forced-drains"));
    }
}

static struct str campaign_revision(struct campaign *c)
{
    CLEANUP(buf_done)
    struct buf all = { 0 };
    CLEANUP(buf_done)
    struct buf hex = { 0 };
    unsigned char hash[SHA256_BYTES];
    if (c->operation_n == 1) {
        return c->operations[0].revision;
    }
    for (uint32_t i = 0; i < c->operation_n; i++) {
        buf_add(&all, c->operations[i].spec->name);
        buf_add_char(&all, '\0');
        buf_add(&all, c->operations[i].revision);
        buf_add_char(&all, '\0');
    }
    sha256(buf_str(&all), hash);
    hex_add(&hex, hash, sizeof(hash), /* upper= */ false);
    return arena_str(&c->memory, buf_str(&hex));
}

/* Counts up whenever something changes that NodeMaintenances refer to. */
static uint64_t operations_references(const struct operations *o)
{
    return o->windows.store.revision + o->series.store.revision + o->templates.store.revision +
           o->config_maps.store.revision + o->secrets.store.revision + o->reference_epoch;
}

void campaign_compile(struct campaign *c)
{
    uint64_t references = operations_references(c->o);
    if (c->compiled_object == c->item->object && c->compiled_references == references) {
        return;
    }
    c->m = c->item->object;
    c->compiled_object = c->m;
    c->compiled_references = references;
    arena_reset(&c->memory);
    c->problem = STR_NONE;
    c->problem_reason = STR_NONE;
    c->revision = STR_NONE;
    c->operation_n = 0;
    c->series = &c->m->series.own;
    if (c->m->problem.reason.n > 0) {
        c->problem_reason = c->m->problem.reason;
        c->problem = spec_problem_text(&c->m->problem, &c->memory);
        return;
    }
    campaign_check_supported(c);
    campaign_check_gates(c);
    campaign_find_series(c);
    campaign_find_windows(c);
    c->operation_n = c->m->operation_n;
    c->operations = ARENA_ARRAY(&c->memory, struct campaign_operation, c->operation_n);
    for (uint32_t i = 0; i < c->operation_n; i++) {
        c->operations[i] = (struct campaign_operation){
            .spec = &c->m->operations[i],
            .tick_deadline = USEC_NEVER,
            .next_tick = USEC_NEVER,
        };
        campaign_compile_operation(c, &c->operations[i]);
    }
    c->revision = campaign_revision(c);
}

/* ── runs ──────────────────────────────────────────────────────────────────────────────────── */

static struct str preflight_payload(const struct campaign_operation *op, struct arena *out)
{
    const struct operation_preflight *p = &op->preflight;
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    if (!p->given && op->bare) {
        return reboot_probe_payload(&op->reboot, out);
    }
    jw_obj(&w);
    jw_pair_some(&w, "script", p->script);
    jw_pair_some(&w, "image", p->image);
    if (p->command.n > 0) {
        jw_key(&w, STR("command"));
        jw_strs(&w, p->command.items, p->command.n);
    }
    jw_obj_end(&w);
    return arena_str(out, buf_str(&json));
}

int campaign_run_spec(const struct campaign *c, const struct campaign_operation *op,
                      const struct turn_machine *machine, uint32_t attempt, bool preflight,
                      struct arena *out, struct run_job_spec *ret, struct err *err)
{
    const struct operations_config *config = &c->o->config;
    int r = 0;
    *ret = (struct run_job_spec){
        .namespace = config->jobs_namespace,
        .machine = machine->name,
        .machine_uid = machine->node != NULL ? machine->node->uid : STR_NONE,
        .maintenance = c->m->meta.name,
        .maintenance_uid = c->m->meta.uid,
        .operation = op->spec->name,
        .revision = op->revision,
        .attempt = attempt,
        .timeout = preflight ? op->preflight.timeout : op->timeout,
        .version = op->spec->version.value,
        .payload = op->payload,
        .parameters = op->parameters,
        .parameter_n = op->parameter_n,
        .runner_image = config->runner_image,
        .priority_class = config->priority_class,
        .preflight = preflight,
    };
    if (preflight) {
        r = json_parse(preflight_payload(op, out), 0, out, &ret->payload, err);
        ret->timeout = ret->timeout > 0 ? ret->timeout : PREFLIGHT_TIMEOUT;
    } else if (op->per_machine) {
        struct str json;
        r = campaign_expand(c, op, &machine->machine, out, &json, err);
        r = r < 0 ? r : json_parse(json, 0, out, &ret->payload, err);
    }
    if (r == 0 && config->runner_image.n == 0 && jval_get(ret->payload, STR("image")) == NULL) {
        r = err_set(err, ERR_INVALID,
                    "scripts need the controller's flag --runner-image, the image of drydock that "
                    "runs them on machines");
    }
    return r;
}
