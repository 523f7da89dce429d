/* drydock rbac: prints the roles that drydock needs. */
#include "cmd/rbac.h"

#include "cmd/commands.h"
#include "format/json_writer.h"

#include <stdio.h>

#define RBAC_OUTPUT_MAX ((size_t)1024 * 1024) /* it has some 20 KiB */
#define RBAC_WORDS_MAX 64u                    /* more roles, uses or namespaces than anybody has */

/* ── roles ─────────────────────────────────────────────────────────────────────────────────── */

/* One role as it is printed. */
struct rbac_role {
    struct str name; /* without "drydock-" */
    const char *suffix;
    struct str namespace; /* empty: a ClusterRole */
    const struct right_rule *rules;
    uint32_t rule_n;
};

typedef void (*rbac_role_printer)(void *ctx, const struct rbac_role *role);

static void rbac_each_in(const struct rbac_choice *choice, struct str name, enum right_scope scope,
                         rbac_role_printer print, void *ctx)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct right_rule *rules = NULL;
    const struct right_query query = { .role = name,
                                       .scope = scope,
                                       .leave_out = choice->leave_out,
                                       .leave_out_n = choice->leave_out_n };
    struct rbac_role role = { .name = name,
                              .suffix = "",
                              .rule_n = rights_rules(&query, &tmp, &rules) };
    role.rules = rules;
    if (role.rule_n == 0) {
        return;
    }
    switch (scope) {
    case RIGHT_HOME:
        role.namespace = choice->namespace;
        break;
    case RIGHT_SYSTEM:
        role.namespace = STR("kube-system");
        break;
    case RIGHT_JOBS:
        role.namespace = choice->jobs_namespace;
        break;
    case RIGHT_NAMED:
        role.suffix = "-leases";
        for (uint32_t i = 0; i < choice->lease_namespace_n; i++) {
            role.namespace = choice->lease_namespaces[i];
            print(ctx, &role);
        }
        return;
    case RIGHT_CLUSTER:
    case RIGHT_SCOPES:
        break;
    }
    print(ctx, &role);
}

static bool rbac_wants(const struct rbac_choice *choice, struct str name)
{
    for (uint32_t i = 0; i < choice->role_n; i++) {
        if (str_eq(choice->roles[i], name)) {
            return true;
        }
    }
    return choice->role_n == 0;
}

static void rbac_each(const struct rbac_choice *choice, rbac_role_printer print, void *ctx)
{
    for (uint32_t i = 0; i < right_roles_count; i++) {
        struct str name = str_from(right_roles[i].name);
        for (int scope = 0; rbac_wants(choice, name) && scope < RIGHT_SCOPES; scope++) {
            rbac_each_in(choice, name, (enum right_scope)scope, print, ctx);
        }
    }
}

/* ── YAML ──────────────────────────────────────────────────────────────────────────────────── */

static void yaml_words(struct buf *out, const char *key, const struct str *words, uint32_t n)
{
    buf_printf(out, "%s: [", key);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(out, words[i].n > 0 ? "%s" STR_FMT : "%s\"" STR_FMT "\"", i > 0 ? ", " : "",
                   STR_ARG(words[i]));
    }
    buf_add(out, STR("]"));
}

static void yaml_role(void *ctx, const struct rbac_role *role)
{
    struct buf *out = ctx;
    buf_printf(out,
               "%sapiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: "
               "drydock-" STR_FMT "%s",
               out->n > 0 ? "---\n" : "", role->namespace.n > 0 ? "Role" : "ClusterRole",
               STR_ARG(role->name), role->suffix);
    if (role->namespace.n > 0) {
        buf_printf(out, ", namespace: " STR_FMT, STR_ARG(role->namespace));
    }
    buf_add(out, STR("}\nrules:\n"));
    for (uint32_t i = 0; i < role->rule_n; i++) {
        const struct right_rule *rule = &role->rules[i];
        buf_add(out, STR("- {"));
        yaml_words(out, "apiGroups", &rule->group, 1);
        buf_add(out, STR(", "));
        yaml_words(out, "resources", rule->resources, rule->resource_n);
        buf_add(out, STR(", "));
        if (rule->names.n > 0) {
            yaml_words(out, "resourceNames", &rule->names, 1);
            buf_add(out, STR(", "));
        }
        yaml_words(out, "verbs", rule->verbs, rule->verb_n);
        buf_add(out, STR("}\n"));
    }
}

void rbac_print_yaml(const struct rbac_choice *choice, struct buf *out)
{
    rbac_each(choice, yaml_role, out);
}

/* ── JSON ──────────────────────────────────────────────────────────────────────────────────── */

static void json_words(struct json_writer *w, const char *key, const struct str *words, uint32_t n)
{
    jw_key(w, str_from(key));
    jw_strs(w, words, n);
}

static void json_role(void *ctx, const struct rbac_role *role)
{
    struct json_writer *w = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    jw_obj(w);
    jw_pair(w, "apiVersion", STR("rbac.authorization.k8s.io/v1"));
    jw_pair(w, "kind", role->namespace.n > 0 ? STR("Role") : STR("ClusterRole"));
    jw_key(w, STR("metadata"));
    jw_obj(w);
    jw_pair(w, "name",
            arena_printf(&tmp, "drydock-" STR_FMT "%s", STR_ARG(role->name), role->suffix));
    jw_pair_some(w, "namespace", role->namespace);
    jw_obj_end(w);
    jw_key(w, STR("rules"));
    jw_arr(w);
    for (uint32_t i = 0; i < role->rule_n; i++) {
        const struct right_rule *rule = &role->rules[i];
        jw_obj(w);
        json_words(w, "apiGroups", &rule->group, 1);
        json_words(w, "resources", rule->resources, rule->resource_n);
        if (rule->names.n > 0) {
            json_words(w, "resourceNames", &rule->names, 1);
        }
        json_words(w, "verbs", rule->verbs, rule->verb_n);
        jw_obj_end(w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

void rbac_print_json(const struct rbac_choice *choice, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("v1"));
    jw_pair(&w, "kind", STR("List"));
    jw_key(&w, STR("items"));
    jw_arr(&w);
    rbac_each(choice, json_role, &w);
    jw_arr_end(&w);
    jw_obj_end(&w);
    buf_add(out, STR("\n"));
}

/* ── the list ──────────────────────────────────────────────────────────────────────────────── */

static const char *const scope_names[RIGHT_SCOPES] = {
    [RIGHT_CLUSTER] = "cluster", [RIGHT_HOME] = "home", [RIGHT_NAMED] = "named",
    [RIGHT_SYSTEM] = "system",   [RIGHT_JOBS] = "jobs",
};

static void list_words(struct buf *out, const char *key, const char *words)
{
    struct str rest = str_from(words);
    struct str word;
    buf_printf(out, ", \"%s\": [", key);
    for (bool first = true; str_split_next(&rest, ',', &word); first = false) {
        buf_printf(out, "%s\"" STR_FMT "\"", first ? "" : ", ", STR_ARG(word));
    }
    buf_add(out, STR("]"));
}

/* A line a right, so that a change is a line's change; no text of the table needs escapes. */
void rbac_print_list(struct buf *out)
{
    buf_add(out, STR("{\"rights\": [\n"));
    for (uint32_t i = 0; i < rights_count; i++) {
        const struct right *r = &rights[i];
        buf_printf(out,
                   "  {\"role\": \"%s\", \"use\": \"%s\", \"scope\": \"%s\", \"group\": \"%s\"",
                   r->role, r->use != NULL ? r->use : "", scope_names[r->scope], r->group);
        list_words(out, "resources", r->resources);
        if (r->names != NULL) {
            list_words(out, "names", r->names);
        }
        list_words(out, "verbs", r->verbs);
        buf_add(out, i + 1 < rights_count ? STR("},\n") : STR("}\n"));
    }
    buf_add(out, STR("]}\n"));
}

/* ── the page ──────────────────────────────────────────────────────────────────────────────── */

static const char *const scope_texts[RIGHT_SCOPES] = {
    [RIGHT_CLUSTER] = "cluster",
    [RIGHT_HOME] = "its own namespace",
    [RIGHT_NAMED] = "the namespaces of those Leases",
    [RIGHT_SYSTEM] = "`kube-system`",
    [RIGHT_JOBS] = "the namespace of Jobs",
};

static void page_words(struct buf *out, const char *words)
{
    struct str rest = str_from(words);
    struct str word;
    for (bool first = true; str_split_next(&rest, ',', &word); first = false) {
        buf_printf(out, "%s`" STR_FMT "`", first ? "" : ", ", STR_ARG(word));
    }
}

static void page_rights(struct buf *out, const char *role)
{
    buf_add(out, STR("\n| it | verbs | resources | where | only for |\n|---|---|---|---|---|\n"));
    for (uint32_t i = 0; i < rights_count; i++) {
        const struct right *r = &rights[i];
        if (!str_eq(str_from(r->role), str_from(role))) {
            continue;
        }
        buf_printf(out, "| %s | ", r->why);
        page_words(out, r->verbs);
        buf_add(out, STR(" | "));
        page_words(out, r->resources);
        if (r->group[0] != '\0') {
            buf_printf(out, " of `%s`", r->group);
        }
        if (r->names != NULL) {
            buf_printf(out, ", of name `%s`", r->names);
        }
        buf_printf(out, " | %s | ", scope_texts[r->scope]);
        if (r->use != NULL) {
            buf_printf(out, "`%s`", r->use);
        }
        buf_add(out, STR(" |\n"));
    }
}

static void page_uses(struct buf *out, const char *role)
{
    bool first = true;
    for (uint32_t i = 0; i < right_uses_count; i++) {
        const struct right_use *u = &right_uses[i];
        if (!str_eq(str_from(u->role), str_from(role))) {
            continue;
        }
        if (first) {
            buf_add(out, STR("\n| use | needed where | value of the chart |\n|---|---|---|\n"));
        }
        first = false;
        buf_printf(out, u->setting[0] != '\0' ? "| `%s` | %s | `%s` |\n" : "| `%s` | %s | %s |\n",
                   u->name, u->text, u->setting);
    }
}

void rbac_print_page(struct buf *out)
{
    buf_add(
        out,
        STR("# Rights\n\n"
            "What each program needs in a cluster, and no more. This page, `drydock rbac` and "
            "the roles of the [Helm chart](install.md) are made from one list, "
            "[src/kinds/rights.c](../src/kinds/rights.c). What an installation does not use "
            "can be left out:\n\n"
            "```\n"
            "drydock rbac controller | kubectl apply -f -                          # all of it\n"
            "drydock rbac controller --without forced-drains,volumes,install-crds  # less\n"
            "drydock rbac actor viewer -o json\n"
            "```\n\n"
            "Where a right is missing the programs go on with the rest: logs, `/readyz?verbose` "
            "and `drydock status` name it.\n"));
    for (uint32_t i = 0; i < right_roles_count; i++) {
        const struct str name = str_from(right_roles[i].name);
        buf_printf(out, "\n## %s\n\nFor %s.\n", right_roles[i].name, right_roles[i].text);
        page_rights(out, right_roles[i].name);
        page_uses(out, right_roles[i].name);
        const struct rbac_choice choice = { .roles = &name,
                                            .role_n = 1,
                                            .namespace = STR("drydock-system"),
                                            .jobs_namespace = STR("drydock-jobs") };
        buf_add(out, STR("\n```yaml\n"));
        CLEANUP(buf_done)
        struct buf roles = { 0 };
        rbac_print_yaml(&choice, &roles);
        buf_add(out, buf_str(&roles));
        buf_add(out, STR("```\n"));
    }
}

/* ── the command ───────────────────────────────────────────────────────────────────────────── */

struct rbac_flags {
    struct str output;
    struct str without;
    struct str namespace;
    struct str jobs_namespace;
    struct str lease_namespaces;
};

static const struct option rbac_options[] = {
    { "o", OPTION_CHOICE, OPTION(struct rbac_flags, output), "FORM", "yaml",
      "yaml|json|list|markdown",
      "roles as YAML documents or as one List in JSON; or all rights: as data, or as a page",
      .also = "output" },
    { "without", OPTION_TEXT, OPTION(struct rbac_flags, without), "USES", "", NULL,
      "what this installation does not use, by commas; -o markdown lists the uses" },
    { "namespace", OPTION_TEXT, OPTION(struct rbac_flags, namespace), "NAME", "drydock-system",
      NULL, "where controller and bridge run", .also = "n" },
    { "jobs-namespace", OPTION_TEXT, OPTION(struct rbac_flags, jobs_namespace), "NAME",
      "drydock-jobs", NULL, "where Jobs of operations run" },
    { "lease-namespaces", OPTION_TEXT, OPTION(struct rbac_flags, lease_namespaces), "NAMES", "",
      NULL, "where stagger and slackThread of the configuration have Leases, by commas" },
};

static uint32_t rbac_split(struct str text, struct str *words)
{
    struct str word;
    uint32_t n = 0;
    while (n < RBAC_WORDS_MAX && str_split_next(&text, ',', &word)) {
        words[n] = str_trim(word);
        n += words[n].n > 0 ? 1 : 0;
    }
    return n;
}

static int rbac_check(const struct command_call *call, struct err *err)
{
    const struct rbac_flags *flags = call->config;
    struct str uses[RBAC_WORDS_MAX];
    uint32_t n = rbac_split(flags->without, uses);
    for (uint32_t i = 0; i < n; i++) {
        if (!rights_has_use(uses[i])) {
            return err_set(err, ERR_INVALID, "--without: there is no use '" STR_FMT "'",
                           STR_ARG(uses[i]));
        }
    }
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (!rights_has_role(call->args[i])) {
            return err_set(err, ERR_INVALID, "there is no role '" STR_FMT "'",
                           STR_ARG(call->args[i]));
        }
    }
    return 0;
}

static int rbac_run(const struct command_call *call)
{
    const struct rbac_flags *flags = call->config;
    struct str uses[RBAC_WORDS_MAX];
    struct str namespaces[RBAC_WORDS_MAX];
    CLEANUP(buf_done)
    struct buf out = { .max = RBAC_OUTPUT_MAX };
    const struct rbac_choice choice = {
        .roles = call->args,
        .role_n = call->arg_count,
        .leave_out = uses,
        .leave_out_n = rbac_split(flags->without, uses),
        .lease_namespaces = namespaces,
        .lease_namespace_n = rbac_split(flags->lease_namespaces, namespaces),
        .namespace = flags->namespace,
        .jobs_namespace = flags->jobs_namespace,
    };
    if (str_eq(flags->output, STR("json"))) {
        rbac_print_json(&choice, &out);
    } else if (str_eq(flags->output, STR("list"))) {
        rbac_print_list(&out);
    } else if (str_eq(flags->output, STR("markdown"))) {
        rbac_print_page(&out);
    } else {
        rbac_print_yaml(&choice, &out);
    }
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    return COMMAND_OK;
}

const struct command command_rbac = {
    .name = "rbac",
    .args = "[ROLE…]",
    .summary = "print the roles that drydock needs in a cluster",
    .text = "Prints ClusterRoles and Roles with exactly the rights that are needed, for kubectl; "
            "without an argument for all roles: controller, operations, bridge, bridge-workload, "
            "actor, override, viewer.\n\n"
            "  drydock rbac controller --without forced-drains | kubectl apply -f -",
    .options = { .options = rbac_options, .count = ARRAY_LEN(rbac_options) },
    .config_size = sizeof(struct rbac_flags),
    .args_max = RBAC_WORDS_MAX,
    .check = rbac_check,
    .run = rbac_run,
};
