#include "cmd/templates_page.h"

#include "format/json_writer.h"
#include "kinds/builtin_template.h"
#include "kinds/crd.h"
#include "kinds/keys.h"
#include "kinds/node_operation_template.h"

static void add_default(const struct template_parameter *p, struct buf *out)
{
    if (p->default_json.n == 0) {
        buf_add(out, STR("**required**"));
    } else if (!str_eq(p->default_json, STR("\"\""))) {
        buf_printf(out, "`" STR_FMT "`", STR_ARG(p->default_json));
    }
}

static void add_holds(const struct template_parameter *p, struct buf *out)
{
    static const char *const holds[] = {
        [PARAMETER_STRING] = "text",      [PARAMETER_INT] = "whole number",
        [PARAMETER_BOOL] = "true, false", [PARAMETER_LIST] = "list of texts",
        [PARAMETER_MAP] = "map",          [PARAMETER_ENUM] = "one of",
    };
    buf_add(out, str_from(holds[p->type]));
    for (uint32_t i = 0; i < p->allowed.n; i++) {
        buf_printf(out, "%s `" STR_FMT "`", i > 0 ? "," : "", STR_ARG(p->allowed.items[i]));
    }
    if (p->type == PARAMETER_INT && p->has_min && p->has_max) {
        buf_printf(out, ", %lld to %lld", (long long)p->min, (long long)p->max);
    }
}

static void add_parameters(const struct node_operation_template *t, const struct jval *object,
                           struct buf *out)
{
    if (t->parameter_n == 0) {
        buf_add(out, STR("\nIt has no parameters.\n"));
        return;
    }
    buf_add(out, STR("\n| parameter | holds | default | meaning |\n|---|---|---|---|\n"));
    uint32_t i = 0;
    JVAL_EACH (jval_at(object, "spec.parameters"), item) {
        buf_printf(out, "| `" STR_FMT "` | ", STR_ARG(t->parameters[i].name));
        add_holds(&t->parameters[i], out);
        buf_add(out, STR(" | "));
        add_default(&t->parameters[i], out);
        buf_printf(out, " | " STR_FMT " |\n",
                   STR_ARG(jval_str(jval_get(item, STR("description")))));
        i++;
    }
}

static void add_types(const struct jval *object, struct buf *out)
{
    const char *before = "";
    buf_add(out, STR("For operations of type "));
    JVAL_EACH (jval_at(object, "spec.types"), type) {
        buf_printf(out, "%s`" STR_FMT "`", before, STR_ARG(jval_str(type)));
        before = " and ";
    }
}

static void add_defaults(const struct jval *object, struct buf *out)
{
    const struct jval *defaults = jval_at(object, "spec.defaults");
    struct str disruptive = jval_str(jval_get(defaults, STR("disruptive")));
    struct str policy = jval_str(jval_at(defaults, "reboot.policy"));
    buf_printf(out, ". Timeout " STR_FMT, STR_ARG(jval_str(jval_get(defaults, STR("timeout")))));
    buf_add(out, str_eq(disruptive, STR("Never")) ? STR("; a quiet run, without a visit")
                                                  : STR("; each run is a visit"));
    if (policy.n > 0) {
        buf_printf(out, "; reboot policy " STR_FMT,
                   STR_ARG(str_eq(policy, STR("${reboot}")) ? STR("as `reboot` says") : policy));
    }
    buf_add(out, jval_get(defaults, STR("preflight")) != NULL
                     ? STR("; looks before the node is cordoned whether there is work.\n")
                     : STR(".\n"));
}

static void add_template(const struct asset *asset, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *object = crd_object(asset, &tmp);
    struct node_operation_template t;
    node_operation_template_read(object, &tmp, &t);
    buf_printf(out, "\n## " STR_FMT "\n\n" STR_FMT "\n\n", STR_ARG(t.meta.name),
               STR_ARG(jval_str(jval_at(object, "spec.description"))));
    add_types(object, out);
    add_defaults(object, out);
    add_parameters(&t, object, out);
    struct str rest =
        jval_str(jval_get(jval_at(object, "metadata.annotations"), KEY_TEMPLATE_EXAMPLE));
    struct str line;
    buf_add(out, STR("\n```yaml\noperations:\n"));
    for (bool first = true; rest.n > 0 && str_split_next(&rest, '\n', &line); first = false) {
        buf_printf(out, "%s" STR_FMT "\n", first ? "- " : "  ", STR_ARG(line));
    }
    buf_add(out, STR("```\n"));
}

void templates_page_print(struct buf *out)
{
    buf_add(
        out,
        STR("# Templates\n\n"
            "<!-- Made by `drydock templates --markdown`; a test compares. -->\n\n"
            "NodeOperationTemplates that come with drydock: scripts with typed parameters, for "
            "operations of NodeMaintenances. `drydock templates | kubectl apply -f -` installs "
            "them; `drydock templates NAME` prints one. Copy one under another name to change "
            "it.\n\n"
            "A script runs on the machine itself, with the machine's own tools. Nothing in it is "
            "substituted: parameters are environment variables, `DD_MIN_FREE` for `minFree`. A "
            "list has a line for each element, a map a line `name=value` for each member. "
            "`DD_VERSION` is the operation's `version`. Exit code 77 means that there was nothing "
            "to do, which is a success.\n\n"
            "`drydock templates NAME --job PARAMETER=VALUE…` prints the Job that a run would be, "
            "`--preflight` that of the look before it.\n\n"
            "To take a node out of service without running anything there, for work on its "
            "hardware, no template is needed: see `drydock request` in "
            "[requests](requests.md).\n"));
    for (size_t i = 0; i < builtin_templates_count; i++) {
        add_template(&builtin_templates[i], out);
    }
}
