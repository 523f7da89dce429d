/* drydock templates: prints the NodeOperationTemplates that come with the program, and the Job that
 * a run of one would be. */
#include "cmd/commands.h"
#include "cmd/templates_page.h"
#include "format/json_tree.h"
#include "format/yaml.h"
#include "format/yaml_writer.h"
#include "kinds/builtin_template.h"
#include "kinds/crd.h"
#include "operation/template_expand.h"

#include <stdio.h>

#define TEMPLATES_OUTPUT_MAX ((size_t)1024 * 1024) /* they have some 60 KiB */
#define PREFIX STR("drydock-")
#define DEFAULT_TIMEOUT OPERATION_TIMEOUT

struct templates_flags {
    struct str output;
    bool job;
    bool preflight;
    bool markdown;
};

static const struct option templates_options[] = {
    { "o", OPTION_CHOICE, OPTION(struct templates_flags, output), "FORM", "yaml", "yaml|json",
      "as YAML documents, or as one List in JSON", .also = "output" },
    { "job", OPTION_BOOL, OPTION(struct templates_flags, job), NULL, NULL, NULL,
      "instead: the Job that a run would be, with the parameters given" },
    { "preflight", OPTION_BOOL, OPTION(struct templates_flags, preflight), NULL, NULL, NULL,
      "with --job: the Job of the look before it" },
    { "markdown", OPTION_BOOL, OPTION(struct templates_flags, markdown), NULL, NULL, NULL,
      "instead: the reference page of all of them" },
};

/* NULL: there is no such template. */
static const struct asset *template_find(struct str name)
{
    struct str short_name = name;
    (void)str_cut_prefix(name, PREFIX, &short_name); /* both forms are fine */
    for (size_t i = 0; i < builtin_templates_count; i++) {
        struct str file = str_from(builtin_templates[i].name);
        if (str_cut_suffix(file, STR(".yaml"), &file) && str_eq(file, short_name)) {
            return &builtin_templates[i];
        }
    }
    return NULL;
}

static int template_unknown(struct str name, struct err *err)
{
    CLEANUP(buf_done)
    struct buf names = { 0 };
    for (size_t i = 0; i < builtin_templates_count; i++) {
        struct str file = str_from(builtin_templates[i].name);
        (void)str_cut_suffix(file, STR(".yaml"), &file); /* all have it */
        buf_printf(&names, "%s" STR_FMT, i > 0 ? ", " : "", STR_ARG(file));
    }
    return err_set(err, ERR_INVALID, "there is no template '" STR_FMT "': want one of " STR_FMT,
                   STR_ARG(name), STR_ARG(buf_str(&names)));
}

static const struct template_parameter *parameter_find(const struct node_operation_template *t,
                                                       struct str name)
{
    for (uint32_t i = 0; i < t->parameter_n; i++) {
        if (str_eq(t->parameters[i].name, name)) {
            return &t->parameters[i];
        }
    }
    return NULL;
}

/* "minFree=40", "exclude=[a, b]"; "version=v1.34.2" is the operation's. */
static int argument_read(const struct node_operation_template *t, struct str argument,
                         struct tree *parameters, struct str *version, struct arena *out,
                         struct err *err)
{
    size_t i = str_find_char(argument, '=');
    struct ydoc doc;
    if (i == SIZE_MAX || i == 0) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "': want PARAMETER=VALUE", STR_ARG(argument));
    }
    struct str name = str_sub(argument, 0, i);
    struct str value = str_sub(argument, i + 1, argument.n - i - 1);
    const struct template_parameter *p = parameter_find(t, name);
    if (str_eq(name, STR("version"))) {
        *version = value;
        return 0;
    }
    if (p == NULL || ((p->type == PARAMETER_STRING || p->type == PARAMETER_ENUM) && !p->secret)) {
        tree_set(out, parameters, name, tree_str(out, value));
        return 0;
    }
    if (ydoc_parse_plain(value, out, &doc, err) < 0) {
        return err_wrap(err, "'" STR_FMT "'", STR_ARG(argument));
    }
    tree_set(out, parameters, name, tree_from(out, doc.root));
    return 0;
}

/* Names stand where those of a real run would. */
static int job_print(const struct node_operation_template *t,
                     const struct template_expand_input *in, bool preflight, struct arena *memory,
                     struct buf *out, struct err *err)
{
    struct run_job_spec spec = {
        .namespace = STR("drydock-jobs"),
        .machine = STR("a-node"),
        .machine_uid = STR("uid-of-the-node"),
        .maintenance = STR("a-maintenance"),
        .maintenance_uid = STR("uid-of-the-maintenance"),
        .operation = STR("operation"),
        .revision = STR("0000000000000000"),
        .attempt = 1,
        .preflight = preflight,
        .version = in->version,
        .runner_image = STR("drydock"),
    };
    struct str payload;
    struct str defaults;
    const struct jval *root = NULL;
    int r = template_expand(in, memory, &payload, err);
    if (r == 0) {
        r = template_expand_defaults(in, memory, &defaults, err);
    }
    if (r == 0) {
        r = template_variables(in, memory, &spec.parameters, &spec.parameter_n, err);
    }
    if (r == 0) {
        r = json_parse(defaults, 0, memory, &root, err);
    }
    struct spec_reader reader = { .out = memory };
    struct spec_node at = { .reader = &reader, .value = root };
    struct spec_node look = spec_member(&at, "preflight");
    if (r == 0 && preflight && look.value == NULL) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' has no preflight", STR_ARG(t->meta.name));
    }
    spec.timeout = preflight ? spec_duration(&look, "timeout", PREFLIGHT_TIMEOUT)
                             : spec_duration(&at, "timeout", DEFAULT_TIMEOUT);
    spec.payload = look.value;
    if (r == 0 && !preflight) {
        r = json_parse(payload, 0, memory, &spec.payload, err);
    }
    return r < 0 ? r : run_job_print(&spec, out, err);
}

static int templates_print_job(const struct command_call *call, struct buf *out, struct err *err)
{
    const struct templates_flags *flags = call->config;
    struct node_operation_template t;
    struct tree *parameters = tree_obj(call->memory);
    struct template_expand_input in = { .template = &t };
    CLEANUP(buf_done)
    struct buf json = { .max = TEMPLATES_OUTPUT_MAX };
    const struct jval *job = NULL;
    const struct asset *asset = template_find(call->args[0]);
    int r = 0;
    if (asset == NULL) {
        return template_unknown(call->args[0], err);
    }
    node_operation_template_read(crd_object(asset, call->memory), call->memory, &t);
    for (uint32_t i = 1; r == 0 && i < call->arg_count; i++) {
        r = argument_read(&t, call->args[i], parameters, &in.version, call->memory, err);
    }
    if (r == 0) {
        in.parameters_json = tree_json(call->memory, parameters);
        r = job_print(&t, &in, flags->preflight, call->memory, &json, err);
    }
    if (r == 0) {
        r = json_parse(buf_str(&json), 0, call->memory, &job, err);
    }
    if (r == 0 && str_eq(flags->output, STR("json"))) {
        buf_printf(out, STR_FMT "\n", STR_ARG(buf_str(&json)));
    } else if (r == 0) {
        yaml_write(job, out);
    }
    return r;
}

static void templates_print_all(const struct asset *objects, size_t n, bool as_json,
                                struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct json_writer w = json_writer_on(out);
    if (!as_json) {
        for (size_t i = 0; i < n; i++) {
            buf_add(out, i > 0 ? STR("---\n") : STR_NONE);
            buf_add(out, asset_text(&objects[i]));
        }
        return;
    }
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("v1"));
    jw_pair(&w, "kind", STR("List"));
    jw_key(&w, STR("items"));
    jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        jw_val(&w, crd_object(&objects[i], &tmp));
    }
    jw_arr_end(&w);
    jw_obj_end(&w);
    buf_add(out, STR("\n"));
}

static int templates_check(const struct command_call *call, struct err *err)
{
    const struct templates_flags *flags = call->config;
    if (flags->job && call->arg_count == 0) {
        return err_set(err, ERR_INVALID, "--job wants the NAME of a template");
    }
    if (!flags->job && (flags->preflight || call->arg_count > 1)) {
        return err_set(err, ERR_INVALID, "PARAMETER=VALUE and --preflight go with --job");
    }
    return 0;
}

static int templates_run(const struct command_call *call)
{
    const struct templates_flags *flags = call->config;
    CLEANUP(buf_done)
    struct buf out = { .max = TEMPLATES_OUTPUT_MAX };
    struct err err = { 0 };
    const struct asset *one = call->arg_count > 0 ? template_find(call->args[0]) : NULL;
    int r = 0;
    if (flags->markdown) {
        templates_page_print(&out);
    } else if (flags->job) {
        r = templates_print_job(call, &out, &err);
    } else if (call->arg_count > 0 && one == NULL) {
        r = template_unknown(call->args[0], &err);
    } else {
        templates_print_all(one != NULL ? one : builtin_templates,
                            one != NULL ? 1 : builtin_templates_count,
                            str_eq(flags->output, STR("json")), &out);
    }
    if (r < 0) {
        return command_fail(call, &err);
    }
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    return COMMAND_OK;
}

const struct command command_templates = {
    .name = "templates",
    .args = "[NAME [PARAMETER=VALUE…]]",
    .summary = "print the operation templates that come with drydock",
    .text = "Prints the NodeOperationTemplates that come with the program, all or the one named, "
            "for kubectl:\n\n"
            "  drydock templates | kubectl apply -f -\n\n"
            "With --job it prints the Job that a run would be, for a look at what a machine would "
            "get, or to try it there. Values of lists and maps are written as in YAML, and "
            "version=… is the operation's version:\n\n"
            "  drydock templates apt-upgrade --job origin=security 'exclude=[linux-*]'",
    .options = { .options = templates_options, .count = ARRAY_LEN(templates_options) },
    .config_size = sizeof(struct templates_flags),
    .args_min = 0,
    .args_max = TEMPLATE_PARAMETERS_MAX + 2,
    .check = templates_check,
    .run = templates_run,
};
