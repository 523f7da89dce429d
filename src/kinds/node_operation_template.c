#include "kinds/node_operation_template.h"

#define PATTERN_MAX 256u
#define NAME_MAX 52u

static const char *const type_names[] = {
    [PARAMETER_STRING] = "string", [PARAMETER_INT] = "int", [PARAMETER_BOOL] = "bool",
    [PARAMETER_LIST] = "list",     [PARAMETER_MAP] = "map", [PARAMETER_ENUM] = "enum",
};

const char *parameter_type_name(enum parameter_type type)
{
    return type_names[type];
}

/* As the schema has it: letters and digits, the first a small letter, and no name with a meaning of
 * its own: DD_SCRIPT and its kin are set for every run. */
static bool name_is_good(struct str name)
{
    static const char *const taken[] = { "version",   "versionTag",  "machine",  "facts", "attempt",
                                         "operation", "maintenance", "revision", "script" };
    if (name.n == 0 || name.n > TEMPLATE_PARAMETER_NAME_MAX || name.p[0] < 'a' || name.p[0] > 'z') {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        if (str_eq(name, str_from(taken[i]))) {
            return false;
        }
    }
    return true;
}

static void pattern_read(const struct spec_node *at, struct template_parameter *p)
{
    struct spec_node m = spec_member(at, "pattern");
    struct err err = { 0 };
    struct regex *compiled = NULL;
    p->pattern_text = spec_text(at, "pattern");
    if (m.value == NULL) {
        return;
    }
    if (p->type != PARAMETER_STRING && p->type != PARAMETER_LIST) {
        spec_wrong(&m, "Invalid", "a pattern only for string and list");
    } else if (p->pattern_text.n > PATTERN_MAX ||
               regex_compile(p->pattern_text, at->reader->out, &compiled, &err) < 0) {
        spec_wrong(&m, "Invalid", "a regular expression in RE2 syntax (%s)", err.msg);
    }
    p->pattern = compiled;
}

static void parameter_read(const struct spec_node *at, struct template_parameter *p)
{
    struct spec_node name = spec_member(at, "name");
    *p = (struct template_parameter){
        .name = spec_text(at, "name"),
        .type = (enum parameter_type)SPEC_ENUM(at, "type", type_names, PARAMETER_STRING),
        .default_json = spec_json(at, "default"),
        .required = spec_bool(at, "required", false),
        .secret = spec_bool(at, "secret", false),
        .allowed = spec_texts(at, "enum", TEMPLATE_ENUM_MAX),
        .has_min = spec_has(at, "min"),
        .has_max = spec_has(at, "max"),
        .min = spec_number(at, "min", 0, INT64_MIN, INT64_MAX),
        .max = spec_number(at, "max", 0, INT64_MIN, INT64_MAX),
    };
    if (!name_is_good(p->name)) {
        spec_wrong(&name, "Invalid",
                   "letters and digits, the first a small letter, and none of version, "
                   "versionTag, machine, facts, attempt, operation, maintenance, revision, script");
    }
    if (!spec_has(at, "type")) {
        spec_wrong(at, "Invalid", "a type");
    }
    if (p->default_json.n == 0 && !p->required) {
        spec_wrong(at, "Invalid", "a default, or required: true");
    }
    if ((p->type == PARAMETER_ENUM) != (p->allowed.n > 0)) {
        spec_wrong(at, "Invalid", "enum for type enum, and for no other");
    }
    if ((p->has_min || p->has_max) && p->type != PARAMETER_INT && p->type != PARAMETER_LIST) {
        spec_wrong(at, "Invalid", "min and max only for int and list");
    }
    if (p->has_min && p->has_max && p->min > p->max) {
        spec_wrong(at, "Invalid", "a min that is not above max");
    }
    if (p->secret && p->type != PARAMETER_STRING) {
        spec_wrong(at, "Invalid", "secret only for string");
    }
    pattern_read(at, p);
}

static void parameters_read(const struct spec_node *spec, struct node_operation_template *t)
{
    struct spec_node list = spec_member(spec, "parameters");
    struct template_parameter *items = ARENA_ARRAY(spec->reader->out, struct template_parameter,
                                                   MIN(spec_count(&list), TEMPLATE_PARAMETERS_MAX));
    t->parameters = items;
    SPEC_EACH(&list, TEMPLATE_PARAMETERS_MAX, item)
    {
        struct template_parameter *p = &items[t->parameter_n++];
        parameter_read(&item, p);
        for (uint32_t i = 0; i + 1 < t->parameter_n; i++) {
            if (str_eq(items[i].name, p->name)) {
                spec_wrong(&item, "Invalid", "a name that no other parameter has");
            }
        }
    }
}

static void types_read(const struct spec_node *spec, struct node_operation_template *t)
{
    static const char *const names[] = { "one-shot", "cron", "realtime" };
    struct spec_node list = spec_member(spec, "types");
    if (list.value == NULL) {
        t->types = 1u << OPERATION_ONE_SHOT | 1u << OPERATION_CRON |
                   (t->payload == PAYLOAD_RESOURCES ? 1u << OPERATION_REALTIME : 0u);
        return;
    }
    SPEC_EACH(&list, ARRAY_LEN(names), item)
    {
        uint32_t k = 0;
        while (k < ARRAY_LEN(names) && !str_eq(jval_str(item.value), str_from(names[k]))) {
            k++;
        }
        if (k == ARRAY_LEN(names)) {
            spec_wrong(&item, "Invalid", "one of one-shot, cron, realtime");
        } else {
            t->types |= 1u << k;
        }
    }
    if (t->types == 0) {
        spec_wrong(&list, "Invalid", "at least one of one-shot, cron, realtime");
    } else if (t->payload == PAYLOAD_JOB && (t->types & 1u << OPERATION_REALTIME) != 0) {
        spec_wrong(&list, "Invalid", "no realtime for a template of a job");
    }
}

static void payload_read(const struct spec_node *spec, struct node_operation_template *t)
{
    struct spec_node job = spec_member(spec, "job");
    struct spec_node resources = spec_member(spec, "resources");
    if ((job.value != NULL) == (resources.value != NULL)) {
        spec_wrong(spec, "Invalid", "exactly one of job, resources");
    } else if (job.value != NULL && jval_kind(job.value) != JOBJ) {
        spec_wrong(&job, "Invalid", "a job");
    } else if (resources.value != NULL && spec_count(&resources) == 0) {
        spec_wrong(&resources, "Invalid", "at least one resource");
    }
    t->payload = job.value != NULL ? PAYLOAD_JOB : PAYLOAD_RESOURCES;
    t->payload_json = spec_json(spec, job.value != NULL ? "job" : "resources");
    SPEC_EACH(&resources, OPERATION_RESOURCES_MAX, item)
    {
        if (spec_text(&item, "name").n == 0 || spec_text(&item, "type").n == 0) {
            spec_wrong(&item, "Invalid", "name and type");
        }
    }
}

void node_operation_template_read(const struct jval *object, struct arena *out,
                                  struct node_operation_template *ret)
{
    struct spec_reader reader = { .out = out };
    struct spec_node spec = spec_root(&reader, object, "spec");
    struct spec_node meta = spec_root(&reader, object, "metadata");
    struct spec_node name = spec_member(&meta, "name");
    struct spec_node defaults = spec_member(&spec, "defaults");
    *ret = (struct node_operation_template){
        .meta = spec_read_meta(object, out),
        .version = spec_text(&spec, "version"),
        .defaults_json = spec_json(&spec, "defaults"),
        .status = spec_read_status(object, out),
    };
    if (!spec_is_dns_label(ret->meta.name, NAME_MAX)) {
        spec_wrong(&name, "Invalid", "small letters, digits and dashes, at most %u", NAME_MAX);
    }
    if (defaults.value == NULL) {
        ret->defaults_json = STR("{}");
    } else if (jval_kind(defaults.value) != JOBJ) {
        spec_wrong(&defaults, "Invalid", "timeout, disruptive, reboot, preflight or drain");
    }
    payload_read(&spec, ret);
    types_read(&spec, ret);
    parameters_read(&spec, ret);
    ret->problem = reader.problem;
}

static int node_operation_template_project(void *ctx UNUSED, const struct jval *object,
                                           struct arena *out, void **ret, struct err *err UNUSED)
{
    struct node_operation_template *t = ARENA_NEW(out, struct node_operation_template);
    node_operation_template_read(object, out, t);
    *ret = t;
    return 0;
}

/* Every version counts: the next write of its status is based on it. */
static bool node_operation_template_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

const struct store_kind node_operation_template_kind = {
    .name = "node operation template",
    .project = node_operation_template_project,
    .same = node_operation_template_same,
};
