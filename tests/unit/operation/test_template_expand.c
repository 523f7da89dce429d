#include "operation/template_expand.h"

#include "kinds/builtin_template.h"
#include "kinds/crd.h"
#include "tests/check.h"

#define PARAMETERS                                                                                 \
    "[{\"name\":\"packages\",\"type\":\"list\",\"default\":[],\"pattern\":\"^[a-z]+$\",\"max\":2}" \
    ","                                                                                            \
    "{\"name\":\"count\",\"type\":\"int\",\"default\":1,\"min\":1,\"max\":5},"                     \
    "{\"name\":\"purge\",\"type\":\"bool\",\"default\":false},"                                    \
    "{\"name\":\"mode\",\"type\":\"enum\",\"enum\":[\"a\",\"b\"],\"default\":\"a\"},"              \
    "{\"name\":\"text\",\"type\":\"string\",\"default\":\"t\"},"                                   \
    "{\"name\":\"env\",\"type\":\"map\",\"default\":{}},"                                          \
    "{\"name\":\"token\",\"type\":\"string\",\"secret\":true,\"default\":{\"secretRef\":{"         \
    "\"name\":"                                                                                    \
    "\"s\",\"key\":\"k\"}}}]"

static bool label(void *ctx, struct str key, struct str *ret_value)
{
    *ret_value = str_from(ctx);
    return str_eq(key, STR("rack"));
}

static const struct machine_facts facts = { .os_id = STR_INIT("debian"),
                                            .arch = STR_INIT("amd64") };
static struct machine machine = { .name = STR_INIT("n1"), .label = label, .facts = &facts };

/* What is expanded, or the error with its code before it. */
static struct str expand(struct arena *a, const char *payload, const char *parameters,
                         const struct machine *m)
{
    const struct jval *object = NULL;
    struct node_operation_template t;
    struct err err = { 0 };
    struct str result = STR_NONE;
    struct str text = arena_printf(
        a, "{\"metadata\":{\"name\":\"t\"},\"spec\":{\"parameters\":" PARAMETERS ",\"%s\":%s}}",
        payload[0] == '[' ? "resources" : "job", payload);
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    node_operation_template_read(object, a, &t);
    CHECK_STR(spec_problem_text(&t.problem, a), "");
    int r =
        template_expand(&(struct template_expand_input){ .template = &t,
                                                         .parameters_json = str_from(parameters),
                                                         .version = STR("v1.34.2+k3s1"),
                                                         .machine = m },
                        a, &result, &err);
    return r < 0 ? arena_printf(a, "%s: %s", err_code_name((enum err_code) - r), err.msg) : result;
}

TEST(template_expand_puts_values_with_their_types)
{
    static const struct {
        const char *payload;
        const char *parameters;
        const char *result;
    } cases[] = {
        { "{\"command\":\"${packages}\"}", "{\"packages\":[\"a\",\"b\"]}",
          "{\"command\":[\"a\",\"b\"]}" },
        { "{\"a\":\"${count}\",\"b\":\"n=${count}!\"}", "{\"count\":3}",
          "{\"a\":3,\"b\":\"n=3!\"}" },
        { "{\"a\":\"${purge}\",\"b\":\"${purge}${mode}\"}", "{}",
          "{\"a\":false,\"b\":\"falsea\"}" },
        { "{\"a\":\"${token}\"}", "{}", "{\"a\":{\"secretRef\":{\"name\":\"s\",\"key\":\"k\"}}}" },
        { "{\"image\":\"k3s:${versionTag}\",\"args\":[\"${version}\"]}", "{}",
          "{\"image\":\"k3s:v1.34.2-k3s1\",\"args\":[\"v1.34.2+k3s1\"]}" },
        { "{\"a\":\"$${text} $$ $\"}", "{}", "{\"a\":\"${text} $$ $\"}" },
        /* Nothing that was put in is looked at again, and scripts are not looked at. */
        { "{\"a\":\"${text}-\"}", "{\"text\":\"${mode}\"}", "{\"a\":\"${mode}-\"}" },
        { "{\"script\":\"echo ${text} ${HOME}\"}", "{}", "{\"script\":\"echo ${text} ${HOME}\"}" },
        { "{\"script\":\"${text}\"}", "{}", "{\"script\":\"${text}\"}" },
        { "{\"${text}\":1,\"b\":null}", "{}", "{\"${text}\":1,\"b\":null}" },
        { "{\"env\":[{\"name\":\"A\",\"value\":\"${machine.name}-${facts.osId}\"}],\"args\":[\"${"
          "machine.labels['rack']}\",\"${machine.labels['no']}\"]}",
          "{}", "{\"env\":[{\"name\":\"A\",\"value\":\"n1-debian\"}],\"args\":[\"r7\",\"\"]}" },
        { "[{\"name\":\"a\",\"type\":\"file\",\"path\":\"/etc/${machine.name}\"}]", "{}",
          "[{\"name\":\"a\",\"type\":\"file\",\"path\":\"/etc/n1\"}]" },
    };
    machine.label_ctx = (void *)(uintptr_t) "r7";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        CHECK_STR(expand(&a, cases[i].payload, cases[i].parameters, &machine), cases[i].result);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(template_expand_names_the_parameter_and_what_is_wanted)
{
    static const struct {
        const char *payload;
        const char *parameters;
        const char *error;
    } cases[] = {
        { "{}", "{\"other\":1}", "parameter 'other' is none of the template's" },
        { "{}", "{\"count\":\"3\"}", "parameter 'count': want a whole number" },
        { "{}", "{\"count\":6}", "parameter 'count': found 6, want at most 5" },
        { "{}", "{\"count\":0}", "parameter 'count': found 0, want at least 1" },
        { "{}", "{\"purge\":\"no\"}", "parameter 'purge': want true or false" },
        { "{}", "{\"mode\":\"c\"}", "parameter 'mode': want one of a, b" },
        { "{}", "{\"packages\":\"a\"}", "parameter 'packages': want a list of strings" },
        { "{}", "{\"packages\":[1]}", "parameter 'packages': want a list of strings" },
        { "{}", "{\"packages\":[\"A\"]}", "parameter 'packages': want what matches '^[a-z]+$'" },
        { "{}", "{\"packages\":[\"a\",\"b\",\"c\"]}",
          "parameter 'packages': found 3 elements, want at most 2" },
        { "{}", "{\"env\":[]}", "parameter 'env': want a map" },
        { "{}", "{\"text\":7}", "parameter 'text': want a string" },
        { "{}", "{\"token\":\"open\"}", "parameter 'token': want {secretRef: {name, key}}" },
        { "{\"a\":\"x${packages}\"}", "{}",
          "parameter 'packages' is a list, map or secret: want ${packages} as the whole text" },
        { "{\"a\":\"x${token}\"}", "{}",
          "parameter 'token' is a list, map or secret: want ${token} as the whole text" },
        { "{\"a\":\"${nobody}\"}", "{}",
          "${nobody}: want a parameter, version, versionTag, machine.name, machine.labels['...'] "
          "or "
          "facts.*" },
        { "{\"a\":\"${text\"}", "{}", "'a': want a '}' behind '${', or '$${'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        struct str wanted = arena_printf(&a, "%s: %s", err_code_name(ERR_INVALID), cases[i].error);
        CHECK_STR(expand(&a, cases[i].payload, cases[i].parameters, NULL), wanted);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(template_expand_lets_a_machine_choose_nothing)
{
    static const char *const payloads[] = {
        "{\"image\":\"${machine.name}\"}",
        "{\"secrets\":[{\"name\":\"${machine.labels['rack']}\"}]}",
        "{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"value\":\"${machine.name}\"}}]}",
        "{\"env\":[{\"name\":\"${facts.osId}\"}]}",
        "{\"x\":{\"args\":[\"${machine.name}\"]}}",
        "{\"x\":{\"env\":[{\"value\":\"${machine.name}\"}]}}",
        "[{\"name\":\"a\",\"type\":\"file\",\"contentFrom\":{\"secret\":\"${machine.name}\"}}]",
    };
    struct str denied = str_from(err_code_name(ERR_DENIED));
    for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        machine.label_ctx = (void *)(uintptr_t) "r7";
        CHECK(str_starts(expand(&a, payloads[i], "{}", &machine), denied));
        CHECK(str_starts(expand(&a, payloads[i], "{}", NULL), denied));
        arena_done(&a);
    }
    check_case(-1);
    static const char *const labels[] = { "a b", "$(x)", "a\nb", "a;b" };
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        machine.label_ctx = (void *)(uintptr_t)labels[i];
        CHECK(str_starts(expand(&a, "{\"args\":[\"${machine.labels['rack']}\"]}", "{}", &machine),
                         denied));
        arena_done(&a);
    }
    check_case(-1);
}

/* For a revision: the same for all machines. */
TEST(template_expand_without_machine_keeps_its_words)
{
    struct arena a = { 0 };
    CHECK_STR(expand(&a, "{\"args\":[\"${machine.name}-${text}\"]}", "{}", NULL),
              "{\"args\":[\"${machine.name}-t\"]}");
    arena_done(&a);
}

TEST(template_expand_counts_while_it_multiplies)
{
    struct arena a = { 0 };
    struct buf parameter = { 0 };
    struct buf payload = { 0 };
    struct str limit = str_from(err_code_name(ERR_LIMIT));
    buf_add(&parameter, STR("{\"text\":\""));
    for (int i = 0; i < 60000; i++) {
        buf_add_char(&parameter, 'x');
    }
    buf_add(&parameter, STR("\"}"));
    buf_add_char(&parameter, '\0');
    buf_add(&payload, STR("{\"a\":["));
    for (int i = 0; i < 500; i++) {
        buf_printf(&payload, "%s\"%s${text}\"", i > 0 ? "," : "", i % 2 == 0 ? "" : "-");
    }
    buf_add(&payload, STR("]}"));
    buf_add_char(&payload, '\0');
    CHECK(str_starts(expand(&a, payload.p, parameter.p, NULL), limit));
    CHECK(!str_starts(expand(&a, "{\"a\":\"${text}\"}", parameter.p, NULL), limit));
    parameter.n -= 3;
    for (int i = 0; i < 6000; i++) {
        buf_add_char(&parameter, 'x');
    }
    buf_add(&parameter, STR("\"}"));
    buf_add_char(&parameter, '\0');
    CHECK(str_starts(expand(&a, "{\"a\":1}", parameter.p, NULL), limit));
    buf_done(&parameter);
    buf_done(&payload);
    arena_done(&a);
}

TEST(template_expand_refuses_what_is_too_deep)
{
    struct arena a = { 0 };
    struct buf deep = { 0 };
    struct str limit = str_from(err_code_name(ERR_LIMIT));
    buf_add(&deep, STR("{\"env\":"));
    for (int i = 0; i < 20; i++) {
        buf_add(&deep, STR("{\"a\":"));
    }
    buf_add(&deep, STR("1"));
    for (int i = 0; i < 21; i++) {
        buf_add_char(&deep, '}');
    }
    buf_add_char(&deep, '\0');
    CHECK(str_starts(expand(&a, "{}", deep.p, NULL), limit));
    buf_reset(&deep);
    buf_add(&deep, STR("{\"a\":"));
    for (int i = 0; i < 150; i++) {
        buf_add_char(&deep, '[');
    }
    for (int i = 0; i < 150; i++) {
        buf_add_char(&deep, ']');
    }
    buf_add(&deep, STR("}"));
    buf_add_char(&deep, '\0');
    CHECK(str_starts(expand(&a, deep.p, "{}", NULL), limit));
    buf_done(&deep);
    arena_done(&a);
}

/* "NAME=value" of each variable, in brackets; or the error. */
static struct str variables(struct arena *a, const char *parameters)
{
    const struct jval *object = NULL;
    struct node_operation_template t;
    struct err err = { 0 };
    struct buf out = { 0 };
    const struct run_job_parameter *items = NULL;
    uint32_t n = 0;
    CHECK_EQ(json_parse(STR("{\"metadata\":{\"name\":\"t\"},\"spec\":{\"parameters\":" PARAMETERS
                            ",\"job\":{\"script\":\"x\"}}}"),
                        0, a, &object, &err),
             0);
    node_operation_template_read(object, a, &t);
    int r = template_variables(
        &(struct template_expand_input){ .template = &t, .parameters_json = str_from(parameters) },
        a, &items, &n, &err);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&out, "[" STR_FMT "=" STR_FMT "%s" STR_FMT "]", STR_ARG(items[i].name),
                   STR_ARG(items[i].value), items[i].secret.n > 0 ? items[i].secret.p : "",
                   STR_ARG(items[i].secret_key));
    }
    struct str result = r < 0 ? arena_printf(a, "%s", err.msg) : arena_str(a, buf_str(&out));
    buf_done(&out);
    return result;
}

TEST(template_variables_have_a_line_for_each_element)
{
    struct arena a = { 0 };
    CHECK_STR(variables(&a, "{}"),
              "[DD_PACKAGES=][DD_COUNT=1][DD_PURGE=false][DD_MODE=a][DD_TEXT=t]"
              "[DD_ENV=][DD_TOKEN=sk]");
    CHECK_STR(variables(&a, "{\"packages\":[\"a\",\"b\"],\"purge\":true,\"text\":\"x\\ny $(z)\","
                            "\"env\":{\"A\":\"b=c\",\"n\":7,\"deep\":{\"x\":[1]}}}"),
              "[DD_PACKAGES=a\nb][DD_COUNT=1][DD_PURGE=true][DD_MODE=a][DD_TEXT=x\ny $(z)]"
              "[DD_ENV=A=b=c\nn=7\ndeep={\"x\":[1]}][DD_TOKEN=sk]");
    arena_done(&a);
}

TEST(template_variables_refuse_what_would_be_read_as_something_else)
{
    struct arena a = { 0 };
    CHECK_STR(variables(&a, "{\"env\":{\"a\":\"x\\ny=z\"}}"),
              "parameter 'env': want values without line breaks");
    CHECK_STR(variables(&a, "{\"env\":{\"a\\nb\":\"x\"}}"),
              "parameter 'env': want names without line breaks");
    CHECK_STR(variables(&a, "{\"text\":\"a\\u0000b\"}"),
              "parameter 'text': want a text without NUL");
    CHECK_STR(variables(&a, "{\"count\":0}"), "parameter 'count': found 0, want at least 1");
    arena_done(&a);
}

/* ── The templates that come with the program ────────────────────────────────────────────────── */

/* Expands payload, defaults and variables with one parameter given, or none; the error, if any. */
static struct str expand_builtin(struct arena *a, const struct node_operation_template *t,
                                 struct str name, struct str value)
{
    struct err err = { 0 };
    struct str payload;
    struct str defaults;
    const struct run_job_parameter *items;
    uint32_t n = 0;
    const struct jval *root = NULL;
    const struct template_expand_input in = {
        .template = t,
        .parameters_json = name.n > 0 ? arena_printf(a, "{\"" STR_FMT "\":" STR_FMT "}",
                                                     STR_ARG(name), STR_ARG(value))
                                      : STR("{}"),
    };
    if (template_expand(&in, a, &payload, &err) < 0 ||
        template_expand_defaults(&in, a, &defaults, &err) < 0 ||
        template_variables(&in, a, &items, &n, &err) < 0) {
        return arena_printf(a, "%s", err.msg);
    }
    CHECK_EQ(n, t->parameter_n);
    CHECK_EQ(json_parse(defaults, 0, a, &root, &err), 0);
    struct spec_reader reader = { .out = a };
    struct spec_node at = { .reader = &reader, .key = "defaults", .value = root };
    struct operation_reboot reboot;
    struct operation_preflight preflight;
    operation_reboot_read(&at, "reboot", &reboot);
    operation_preflight_read(&at, "preflight", &preflight);
    CHECK(spec_duration(&at, "timeout", 0) > 0);
    return spec_problem_text(&reader.problem, a);
}

static void check_parameter(struct arena *a, const struct node_operation_template *t,
                            const struct template_parameter *p)
{
    static const char *const wrong[] = {
        [PARAMETER_STRING] = "7", [PARAMETER_INT] = "\"7\"", [PARAMETER_BOOL] = "\"yes\"",
        [PARAMETER_LIST] = "{}",  [PARAMETER_MAP] = "[]",    [PARAMETER_ENUM] = "\"none-of-them\"",
    };
    struct str named = arena_printf(a, "parameter '" STR_FMT "': ", STR_ARG(p->name));
    CHECK(p->default_json.n > 0);
    CHECK_STR(expand_builtin(a, t, p->name, p->default_json), "");
    CHECK(str_starts(expand_builtin(a, t, p->name, str_from(wrong[p->type])), named));
    CHECK(str_starts(expand_builtin(a, t, p->name, STR("null")), named));
    for (uint32_t i = 0; i < p->allowed.n; i++) {
        struct str value = arena_printf(a, "\"" STR_FMT "\"", STR_ARG(p->allowed.items[i]));
        CHECK_STR(expand_builtin(a, t, p->name, value), "");
    }
    if (p->type == PARAMETER_INT) {
        CHECK(p->has_min && p->has_max);
        CHECK_STR(expand_builtin(a, t, p->name, arena_printf(a, "%lld", (long long)p->max)), "");
        CHECK(str_starts(
            expand_builtin(a, t, p->name, arena_printf(a, "%lld", (long long)p->max + 1)), named));
    }
    if (p->type == PARAMETER_BOOL) {
        CHECK_STR(expand_builtin(a, t, p->name, STR("true")), "");
        CHECK_STR(expand_builtin(a, t, p->name, STR("false")), "");
    }
    if (p->type == PARAMETER_LIST || p->pattern != NULL) { /* what a shell could take apart */
        struct str value = p->type == PARAMETER_LIST ? STR("[\"a b\"]") : STR("\"a b\"");
        CHECK(str_starts(expand_builtin(a, t, p->name, value), named));
    }
}

TEST(template_expand_takes_every_parameter_of_the_templates_that_ship)
{
    CHECK(builtin_templates_count >= 10);
    for (size_t i = 0; i < builtin_templates_count; i++) {
        struct arena a = { 0 };
        struct node_operation_template t;
        const struct jval *object = crd_object(&builtin_templates[i], &a);
        check_case((int64_t)i);
        node_operation_template_read(object, &a, &t);
        CHECK_STR(spec_problem_text(&t.problem, &a), "");
        CHECK_STR(arena_printf(&a, STR_FMT ".yaml", STR_ARG(t.meta.name)),
                  arena_printf(&a, "drydock-%s", builtin_templates[i].name));
        CHECK_STR(
            jval_str(jval_get(jval_at(object, "metadata.labels"), STR("drydock.dev/builtin"))),
            "true");
        CHECK_STR(expand_builtin(&a, &t, STR_NONE, STR_NONE), "");
        for (uint32_t k = 0; k < t.parameter_n; k++) {
            check_parameter(&a, &t, &t.parameters[k]);
        }
        arena_done(&a);
    }
    check_case(-1);
}
