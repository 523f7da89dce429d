#include "profile/config.h"
#include "base/buf.h"
#include "tests/vectors.h"

/* Where the answer is another one on purpose; all of these load in the original. */
static const struct {
    int64_t n;
    const char *why;
} refused[] = {
    { 601, "a list is no state" },
    { 701, "a list is no schedule's config" },
    { 721, "a list is no mapping of instances" },
};

static bool is_refused(int64_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        if (refused[i].n == n) {
            return true;
        }
    }
    return false;
}

static bool find_env(void *ctx, struct str name, struct str *ret)
{
    const struct jval *v = jval_get(ctx, name);
    *ret = jval_str(v);
    return v != NULL;
}

static struct ucfg_env env_of(const struct jval *one)
{
    /* The cases are only read; a context is for whoever wants to write. */
    return (struct ucfg_env){ .find = find_env,
                              .ctx = (void *)(uintptr_t)jval_get(one, STR("env")) };
}

static void check_names(const struct jval *one, const struct config *c)
{
    const struct jval *profiles = jval_get(one, STR("profiles"));
    const struct jval *checks = jval_get(one, STR("checks"));
    const struct jval *filter = jval_get(one, STR("label_filter"));
    CHECK_EQ(c->profile_n, profiles->n);
    JVAL_EACH (profiles, name) {
        CHECK(config_find_profile(c, jval_str(name)) != NULL);
    }
    CHECK_EQ(c->instances[PLUGIN_CHECK].n, checks->n);
    JVAL_EACH (checks, name) {
        CHECK(config_find_instance(c, PLUGIN_CHECK, jval_str(name)) != NULL);
    }
    CHECK_EQ(c->label_filter.n, filter->n);
    uint32_t i = 0;
    JVAL_EACH (filter, key) {
        CHECK_STR(c->label_filter.items[i++], jval_str(key));
    }
}

TEST(config_accepts_what_the_original_accepts)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t seen = 0;
    const struct jval *cases = jval_get(vectors_load("vectors/ucfg.json", &a), STR("cases"));
    JVAL_EACH (cases, one) {
        if (!vectors_kind(one, "config")) {
            continue;
        }
        vectors_enter(one);
        seen++;
        struct problems problems = { .out = &a };
        struct config c;
        int r = config_load(vectors_text(one, "yaml", &a), env_of(one), &a, &c, &problems);
        bool want = vectors_ok(one) && !is_refused(vectors_i64(one, "n"));
        if (r == 0 && !want && c.requeue_ns == CONFIG_REQUEUE_NS) {
            continue; /* the original wants an interval, here it may be left out */
        }
        if ((r == 0) != want) {
            check_fail(__FILE__, __LINE__, "is %d: " STR_FMT, r,
                       STR_ARG(problems.n > 0 ? problems.items[0].text : STR("no problem")));
        }
        if (r == 0) {
            CHECK_EQ(c.requeue_ns, vectors_i64(one, "requeue_ns"));
            check_names(one, &c);
        }
    }
    check_case(-1);
    CHECK_EQ(seen, 132);
}

/* The key "v" of each type, required, as a plugin would have it. */
static const struct plugin_key required_keys[] = {
    { "v", PLUGIN_BOOL, .required = true },     { "v", PLUGIN_INT, .required = true },
    { "v", PLUGIN_DURATION, .required = true }, { "v", PLUGIN_TEXTS, .required = true },
    { "v", PLUGIN_TEXT, .required = true },
};
static const char *const required_names[] = { "bool_required", "int_required", "duration_required",
                                              "list_required", "string_required" };

TEST(plugin_read_requires_what_the_original_requires)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t seen = 0;
    const struct jval *cases = jval_get(vectors_load("vectors/ucfg.json", &a), STR("cases"));
    JVAL_EACH (cases, one) {
        for (size_t i = 0; i < ARRAY_LEN(required_names); i++) {
            const struct jval *answer =
                jval_get(jval_get(one, STR("as")), str_from(required_names[i]));
            if (answer == NULL) {
                continue;
            }
            vectors_enter(one);
            seen++;
            struct problems problems = { .out = &a };
            struct ucfg u;
            struct plugin p = { .name = "x", .keys = &required_keys[i], .key_n = 1 };
            CHECK_EQ(ucfg_load(vectors_text(one, "yaml", &a), env_of(one), &a, &u, &problems), 0);
            (void)plugin_read(&p, &u, u.root, u.root->pos, &problems); /* for its problems */
            CHECK_EQ(problems.n == 0, vectors_ok(answer));
        }
    }
    check_case(-1);
    CHECK_EQ(seen, 105);
}

static int load(const char *yaml, struct arena *a, struct config *ret, struct problems *problems)
{
    *problems = (struct problems){ .out = a };
    return config_load(str_from(yaml), (struct ucfg_env){ 0 }, a, ret, problems);
}

TEST(config_reads_instances_with_typed_values)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems;
    struct config c;
    CHECK_EQ(load("intervals: {requeue: 90}\n"
                  "instances:\n"
                  "  check:\n"
                  "  - {type: stagger, name: s, config: {duration: 1h, leaseName: l, "
                  "leaseNamespace: n}}\n"
                  "  - {type: timeWindow, name: w, config: {start: '9:30', end: '12:00', "
                  "weekdays: [mon, Sunday], exclude: Feb 29}}\n"
                  "  notify:\n"
                  "  - type: slack\n"
                  "    name: tell\n"
                  "    config: {hook: h, channel: c, message: m}\n"
                  "    schedule: {type: Scheduled, config: {instant: '7:05', weekdays: fri}}\n"
                  "  trigger:\n"
                  "  - {type: eviction, name: drain, config: {action: drain}}\n",
                  &a, &c, &problems),
             0);
    CHECK_EQ(c.requeue_ns, INT64_C(90000000000));
    const struct config_instance *s = config_find_instance(&c, PLUGIN_CHECK, STR("s"));
    CHECK_EQ(plugin_get(s->plugin, s->values, "parallel")->number, 1);
    CHECK_EQ(plugin_get(s->plugin, s->values, "duration")->number, INT64_C(3600000000000));
    CHECK_STR(plugin_get(s->plugin, s->values, "leaseName")->text, "l");
    const struct config_instance *w = config_find_instance(&c, PLUGIN_CHECK, STR("w"));
    CHECK_EQ(plugin_get(w->plugin, w->values, "start")->number, 9 * 3600 + 30 * 60);
    CHECK_EQ(plugin_get(w->plugin, w->values, "weekdays")->number, 3);
    CHECK_EQ(plugin_get(w->plugin, w->values, "exclude")->dates[0].day, 29);
    const struct config_instance *tell = config_find_instance(&c, PLUGIN_NOTIFY, STR("tell"));
    CHECK_STR(tell->schedule->name, "scheduled");
    CHECK_EQ(plugin_get(tell->schedule, tell->schedule_values, "weekdays")->number, 1 << 5);
    const struct config_instance *drain = config_find_instance(&c, PLUGIN_TRIGGER, STR("drain"));
    CHECK_EQ(plugin_get(drain->plugin, drain->values, "deletionTimeout")->number,
             INT64_C(600000000000));
    CHECK(config_find_instance(&c, PLUGIN_TRIGGER, STR("s")) == NULL);
}

static const char base[] = "intervals: {requeue: 1m}\n"
                           "instances:\n"
                           "  check:\n"
                           "  - {type: hasLabel, name: a, config: {key: k}}\n"
                           "  - {type: hasLabel, name: reboot-needed, config: {key: k}}\n"
                           "  trigger:\n"
                           "  - {type: alterLabel, name: t, config: {key: k}}\n";

static struct str with_base(struct arena *a, const char *more)
{
    return arena_concat(a, str_from(base), str_from(more));
}

TEST(config_reads_profiles_with_expressions_and_chains)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems;
    struct config c;
    struct str yaml = with_base(&a, "profiles:\n"
                                    "- name: p\n"
                                    "  operational:\n"
                                    "    enter: t\n"
                                    "    transitions:\n"
                                    "    - {check: a&&!reboot-needed, next: in-maintenance, "
                                    "trigger: t && t}\n"
                                    "    - {check: a, next: operational}\n");
    CHECK_EQ(load(yaml.p, &a, &c, &problems), 0);
    CHECK_EQ(c.profile_n, 2);
    const struct config_profile *p = config_find_profile(&c, STR("p"));
    const struct config_state *from = &p->states[PROFILE_STATE_OPERATIONAL];
    CHECK_EQ(from->enter.n, 1);
    CHECK_EQ(from->transition_n, 2);
    CHECK_EQ(from->transitions[0].next, PROFILE_STATE_MAINTENANCE);
    CHECK_EQ(from->transitions[0].check.var_n, 2);
    CHECK_EQ(from->transitions[0].check.vars[1].index, 1);
    CHECK_EQ(from->transitions[0].trigger.n, 2);
    CHECK_EQ(p->states[PROFILE_STATE_REQUIRED].transition_n, 0);
}

/* Each problem alone: its place in the line, and its words. */
TEST(config_names_the_place_and_what_is_wanted)
{
    static const struct {
        const char *yaml;
        uint32_t line;
        uint32_t column;
        const char *text;
    } cases[] = {
        { "profiles:\n- {name: p, operational: {transitions: [{check: a && zz, next: "
          "operational}]}}\n",
          9, 54, "the requested check instance \"zz\" is not known to the registry" },
        { "profiles:\n- {name: p, operational: {enter: 't && b'}}\n", 9, 40,
          "the requested trigger instance \" b\" is not known to the registry" },
        { "profiles:\n- {name: p, operational: [x]}\n", 9, 26,
          "a state: found a list, want a mapping" },
        { "profiles:\n- {operational: {}}\n", 9, 3,
          "key 'name': found nothing, want the profile's name" },
        { "  notify:\n  - {type: nope, schedule: {type: oneshot, config: {}}}\n", 9, 12,
          "found type 'nope', want that of a notification plugin" },
        { "  - {type: AlterLabel, name: x}\n", 8, 12,
          "found type 'AlterLabel', want 'alterLabel'" },
        { "  - {type: alterHypervisor, name: x, config: {x: 1}}\n", 8, 47,
          "field x not found in HypervisorSpec" },
        { "  - {type: eviction, name: x, config: {action: Drain}}\n", 8, 48,
          "key 'action': found 'Drain', want one of cordon|uncordon|drain" },
        { "  - {type: eviction, name: x}\n", 8, 5,
          "key 'action': found nothing, want cordon|uncordon|drain" },
        { "dashboard: {labelFilter: [[a]]}\n", 8, 26,
          "key 'labelFilter': found a list, want a string" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct problems problems;
        struct config c;
        CHECK_EQ(load(with_base(&a, cases[i].yaml).p, &a, &c, &problems), -ERR_INVALID);
        CHECK_STR(problems.items[0].text, cases[i].text);
        CHECK_EQ(problems.items[0].pos.line, cases[i].line);
        CHECK_EQ(problems.items[0].pos.column, cases[i].column);
        CHECK_EQ(problems.n, 1);
    }
    check_case(-1);
}

/* Keys that nothing reads: the file is accepted, as the original accepts it, and they are told. */
TEST(config_reads_whom_to_tell_of_drains_and_requests)
{
    static const char instances[] = "instances:\n"
                                    "  notify:\n"
                                    "  - type: webhook\n"
                                    "    name: hook\n"
                                    "    config: {url: 'http://h'}\n"
                                    "    schedule: {type: oneshot, config: {delay: 0s}}\n";
    static const struct {
        const char *yaml;
        usec_t after;     /* of drains */
        uint32_t told[3]; /* by how many instances */
        const char *problem;
    } cases[] = {
        { "notify: {drainBlocked: {after: 1h, instances: hook}}", HOURS(1), { 1, 0, 0 }, NULL },
        { "notify: {drainBlocked: {instances: hook}, requestRejected: {instances: hook && hook}, "
          "requestExpired: {instances: hook}}",
          MINUTES(10),
          { 1, 2, 1 },
          NULL },
        { "profiles: []", 0, { 0 }, NULL },
        { "notify: some text",
          0,
          { 0 },
          "key 'notify': ignored, because it is no mapping such as {drainBlocked: {after: 10m, "
          "instances: mail}}" },
        { "notify: {drainblocked: {instances: hook}}",
          0,
          { 0 },
          "key 'drainblocked' is unknown in notify and ignored; did you mean 'drainBlocked'?" },
        { "notify: {requestExpired: {after: 1h, instances: hook}}",
          0,
          { 0, 0, 1 },
          "key 'after' is unknown in an entry of 'notify' and ignored" },
        { "notify: {drainBlocked: {after: soon, instances: hook}}",
          -1,
          { 0 },
          "key 'after': found 'soon', want a duration such as 1h30m or 45s" },
        { "notify: {drainBlocked: {after: -1s, instances: hook}}",
          -1,
          { 0 },
          "key 'after': found a negative duration, want one such as 10m" },
        { "notify: {drainBlocked: {after: 1h}}",
          -1,
          { 0 },
          "key 'instances': found nothing, want the names of notify instances" },
        { "notify: {requestRejected: {instances: mail}}",
          -1,
          { 0 },
          "the requested notification instance \"mail\" is not known to the registry" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct problems problems = { .out = &a };
        struct config c;
        check_case((int64_t)i);
        struct str yaml = arena_printf(&a, "%s%s\n", instances, cases[i].yaml);
        bool good = cases[i].after >= 0;
        CHECK_EQ(config_load(yaml, (struct ucfg_env){ 0 }, &a, &c, &problems) == 0, good);
        CHECK_EQ(problems.n, cases[i].problem != NULL ? 1 : 0);
        if (cases[i].problem != NULL) {
            CHECK_STR(problems.items[0].text, cases[i].problem);
        }
        for (uint32_t kind = 0; good && kind < CONFIG_ALERT_KINDS; kind++) {
            CHECK_EQ(c.alerts[kind].instances.n, cases[i].told[kind]);
        }
        CHECK(!good || c.alerts[CONFIG_ALERT_DRAIN_BLOCKED].after == cases[i].after);
    }
    check_case(-1);
}

TEST(config_warns_of_keys_that_nothing_reads)
{
    static const struct {
        const char *yaml;
        uint32_t line;
        uint32_t column;
        const char *text;
    } cases[] = {
        { "  check:\n  - {type: timeWindow, name: w, config: {start: '1:00', end: '2:00', "
          "weekdays: "
          "mon, timezone: UTC}}\n",
          9, 85, "key 'timezone' is unknown in timeWindow and ignored; did you mean 'timeZone'?" },
        { "  check:\n  - {type: maxMaintenance, name: m, config: {max: 1, groupby: zone}}\n", 9, 54,
          "key 'groupby' is unknown in maxMaintenance and ignored; did you mean 'groupBy'?" },
        { "  - {type: eviction, name: x, config: {action: drain, forceEvict: true}}\n", 8, 55,
          "key 'forceEvict' is unknown in eviction and ignored; did you mean 'forceEviction'?" },
        { "profiles:\n- {name: p, operational: {transitons: []}}\n", 9, 27,
          "key 'transitons' is unknown in a state and ignored; did you mean 'transitions'?" },
        { "profile:\n- {name: p}\n", 8, 1,
          "key 'profile' is unknown in the file and ignored; did you mean 'profiles'?" },
        { "profiles:\n- {name: p, in-maintenence: {}}\n", 9, 13,
          "key 'in-maintenence' is unknown in a profile and ignored; did you mean "
          "'in-maintenance'?" },
        { "  - {type: eviction, name: x, config: {action: drain}, colour: red}\n", 8, 56,
          "key 'colour' is unknown in an instance and ignored" },
        { "profiles:\n- {name: p, operational: {transitions: [{check: a, next: operational, "
          "triger: t}]}}\n",
          9, 71, "key 'triger' is unknown in a transition and ignored; did you mean 'trigger'?" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct problems problems;
        struct config c;
        CHECK_EQ(load(with_base(&a, cases[i].yaml).p, &a, &c, &problems), 0);
        CHECK_EQ(problems.n, 1);
        CHECK(problems.items[0].warning);
        CHECK_STR(problems.items[0].text, cases[i].text);
        CHECK_EQ(problems.items[0].pos.line, cases[i].line);
        CHECK_EQ(problems.items[0].pos.column, cases[i].column);
    }
    check_case(-1);
}

/* A key that a variable names may stand at the top of the file. */
TEST(config_takes_any_key_that_a_variable_names)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems;
    struct config c;
    CHECK_EQ(load("often: 10s\nintervals: {requeue: '${often}'}\n", &a, &c, &problems), 0);
    CHECK_EQ(problems.n, 0);
    CHECK_EQ(c.requeue_ns, INT64_C(10000000000));
}

TEST(config_suggests_what_was_probably_meant)
{
    static const struct {
        const char *yaml;
        const char *text;
    } cases[] = {
        { "  check:\n  - {type: hasLable, name: x, config: {key: a}}\n",
          "found type 'hasLable', want 'hasLabel'" },
        { "  - {type: evict, name: x, config: {action: drain}}\n",
          "found type 'evict', want that of a trigger plugin" },
        { "profiles:\n- {name: p, operational: {transitions: [{check: reboot-neded, next: "
          "operational}]}}\n",
          "the requested check instance \"reboot-neded\" is not known to the registry; did you "
          "mean "
          "\"reboot-needed\"?" },
        { "profiles:\n- {name: p, operational: {transitions: [{check: a, next: maintenance}]}}\n",
          "key 'next': found 'maintenance', want 'in-maintenance'" },
        { "profiles:\n- {name: p, operational: {transitions: [{check: a, next: nowhere}]}}\n",
          "key 'next': found 'nowhere', want a state such as in-maintenance" },
        { "  check:\n  - {type: timeWindow, name: w, config: {start: '22:00', end: '4:00', "
          "weekdays: mon}}\n",
          "key 'end': found a window from 22:00 to 04:00, want the end after the start, or "
          "'overnight: true'" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct problems problems;
        struct config c;
        CHECK_EQ(load(with_base(&a, cases[i].yaml).p, &a, &c, &problems), -ERR_INVALID);
        CHECK_STR(problems.items[0].text, cases[i].text);
    }
    check_case(-1);
}

TEST(config_takes_any_refresh_interval_or_none)
{
    static const struct {
        const char *yaml;
        int64_t ns;
        uint32_t warnings;
    } cases[] = {
        { "profiles: []\n", CONFIG_REQUEUE_NS, 0 },
        { "intervals: {}\n", CONFIG_REQUEUE_NS, 0 },
        { "intervals: {requeue: -5s}\n", INT64_C(-5000000000), 1 },
        { "intervals: {requeue: 1ns}\n", 1, 1 },
        { "intervals: {requeue: 1s, notify: 5m}\n", INT64_C(1000000000), 0 },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct problems problems;
        struct config c;
        CHECK_EQ(load(cases[i].yaml, &a, &c, &problems), 0);
        CHECK_EQ(c.requeue_ns, cases[i].ns);
        CHECK_EQ(problems.n, cases[i].warnings);
        CHECK(config_refresh(&c) >= SECONDS(1)); /* it never spins */
    }
    check_case(-1);
}

TEST(config_reads_a_window_by_cron)
{
    static const struct {
        const char *config;
        bool ok;
    } cases[] = {
        { "{cron: '0 22 * * mon', duration: 4h}", true },
        { "{cron: '0 22 * * mon'}", false },
        { "{cron: '0 22 * * mon', duration: 4h, start: '1:00'}", false },
        { "{cron: '0 25 * * mon', duration: 4h}", false },
        { "{start: '22:00', end: '4:00', weekdays: mon, overnight: true}", true },
        { "{start: '22:00', end: '4:00', weekdays: mon}", false },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct problems problems;
        struct config c;
        struct str yaml = arena_printf(&a,
                                       "intervals: {requeue: 1m}\ninstances:\n  check:\n"
                                       "  - {type: timeWindow, name: w, config: %s}\n",
                                       cases[i].config);
        CHECK_EQ(load(yaml.p, &a, &c, &problems) == 0, cases[i].ok);
    }
    check_case(-1);
}

/* A drop-in serves its nodes with a template that the original would also have stumbled over. */
TEST(config_warns_of_templates_and_loads_nevertheless)
{
    static const struct {
        const char *message; /* behind "message: " */
        uint32_t line;       /* 0: no warning */
        uint32_t column;
    } cases[] = {
        { "'{{ .Node.Name }}'", 0, 0 },        { "'ü {{ .Node.Name'", 7, 32 },
        { "'{{ nope 1 }}'", 7, 20 },           { "|\n        fine\n        ü {{ if }} x\n", 9, 16 },
        { "\"two\\nlines {{ if }}\"", 7, 16 }, { "'${X}'", 7, 16 },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *vars = NULL;
    CHECK_EQ(json_parse(STR("{\"X\":\"{{ hidden\"}"), 0, &a, &vars, &err), 0);
    struct ucfg_env env = { .find = find_env, .ctx = (void *)(uintptr_t)vars };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct problems problems = { .out = &a };
        struct config c;
        struct str yaml =
            arena_printf(&a,
                         "intervals: {requeue: 1m}\ninstances:\n  notify:\n"
                         "  - type: slack\n    schedule: {type: oneshot, config: {}}\n"
                         "    config:\n      message: %s\n"
                         "      hook: h\n      channel: c\n    name: n\n",
                         cases[i].message);
        CHECK_EQ(config_load(yaml, env, &a, &c, &problems), 0);
        CHECK_EQ(c.instances[PLUGIN_NOTIFY].n, 1);
        CHECK_EQ(problems.errors, 0);
        CHECK_EQ(problems.n, cases[i].line == 0 ? 0 : 1);
        if (problems.n > 0) {
            CHECK(problems.items[0].warning);
            CHECK_EQ(problems.items[0].pos.line, cases[i].line);
            CHECK_EQ(problems.items[0].pos.column, cases[i].column);
            CHECK(str_starts(problems.items[0].text, STR("key 'message': ")));
            CHECK(!str_contains(problems.items[0].text, STR("hidden")));
        }
    }
    check_case(-1);
}

TEST(config_checks_what_a_webhook_puts_into_its_request)
{
    static const struct {
        const char *config;
        const char *text; /* NULL: fine */
    } cases[] = {
        { "{url: 'https://a/b', method: PUT, headers: ['A: b', 'C:d']}", NULL },
        { "{url: 'http://a', headers: 'A: b', timeout: 5s}", NULL },
        { "{url: 'ftp://a'}", "key 'url': found something else, want http://… or https://…" },
        { "{url: 'http://a', method: po st}",
          "key 'method': found something else, want a method such as POST" },
        { "{url: 'http://a', headers: ['A: b', 'nothing']}",
          "key 'headers': found something else at 2, want 'Name: value'" },
        { "{url: 'http://a', headers: [\"A: b\\r\\nB: c\"]}",
          "key 'headers': found something else at 1, want 'Name: value'" },
        { "{url: 'http://a', secret: any text}", NULL },
        { "{url: 'http://a', secret: whsec_c2VjcmV0}", NULL },
        { "{url: 'http://a', secret: whsec_hidden!}",
          "key 'secret': found something else behind 'whsec_', want base64" },
        { "{url: 'http://a', timeout: 0s}",
          "key 'timeout': found nothing above 0, want a duration such as 30s" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct problems problems;
        struct config c;
        struct str yaml = arena_printf(&a,
                                       "intervals: {requeue: 1m}\ninstances:\n  notify:\n"
                                       "  - {type: webhook, name: w, config: %s, "
                                       "schedule: {type: oneshot, config: {}}}\n",
                                       cases[i].config);
        CHECK_EQ(load(yaml.p, &a, &c, &problems) == 0, cases[i].text == NULL);
        if (cases[i].text != NULL) {
            CHECK_STR(problems.items[0].text, cases[i].text);
        }
    }
    check_case(-1);
}

/* The tables are data: each example must be what its own table accepts. */
TEST(plugin_examples_are_accepted)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (uint32_t kind = 0; kind <= PLUGIN_KINDS; kind++) {
        const struct plugin_table *table =
            kind < PLUGIN_KINDS ? &plugin_tables[kind] : &plugin_schedules;
        for (uint32_t i = 0; i < table->n; i++) {
            const struct plugin *p = &table->items[i];
            struct problems problems = { .out = &a };
            struct ucfg u;
            check_case(kind * 100 + i);
            CHECK(p->help != NULL);
            CHECK(p->example != NULL);
            CLEANUP(arena_done)
            struct arena env = { 0 };
            const struct jval *vars = NULL;
            struct err err = { 0 };
            CHECK_EQ(json_parse(STR("{\"HOOK\":\"h\",\"TOKEN\":\"t\",\"SECRET\":\"s\"}"), 0, &env,
                                &vars, &err),
                     0);
            struct ucfg_env lookup = { .find = find_env, .ctx = (void *)(uintptr_t)vars };
            CHECK_EQ(ucfg_load(str_from(p->example), lookup, &a, &u, &problems), 0);
            const struct plugin_value *values = plugin_read(p, &u, u.root, u.root->pos, &problems);
            CHECK_EQ(problems.n, 0);
            bool given = false;
            for (uint32_t key = 0; key < p->key_n; key++) {
                CHECK(p->keys[key].help != NULL);
                given = given || values[key].given;
            }
            CHECK(given);
        }
    }
    check_case(-1);
}

TEST(config_lists_all_problems_in_the_order_of_the_file)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems;
    struct config c;
    CHECK_EQ(load("profiles:\n"
                  "- name: p\n"
                  "  operational: {notify: nobody}\n"
                  "instances:\n"
                  "  check:\n"
                  "  - {type: wait, name: w, config: {duration: 30}}\n"
                  "  - {type: nodeCount, name: n, config: {count: many}}\n"
                  "intervals: {requeue: soon}\n",
                  &a, &c, &problems),
             -ERR_INVALID);
    CHECK_EQ(problems.n, 4);
    static const uint32_t lines[] = { 3, 6, 7, 8 };
    for (uint32_t i = 0; i < problems.n; i++) {
        CHECK_EQ(problems.items[i].pos.line, lines[i]);
    }
    CHECK_STR(problems.items[1].text, "key 'duration': found '30', want a duration such as 1h30m");
}

/* Problems are logged; an environment holds secrets. */
TEST(config_keeps_what_variables_hold_to_itself)
{
    static const char *const configs[] = {
        "type: wait, config: {duration: '${S}'}",
        "type: nodeCount, config: {count: '${S}'}",
        "type: clusterSemver, config: {key: k, profileScoped: '${S}'}",
        "type: stagger, config: {duration: 'x${S}', leaseName: l, leaseNamespace: n}",
        "type: waitExclude, config: {duration: 1s, exclude: [mon, '${S}']}",
        "type: timeWindow, config: {start: '${S}', end: '9:00', weekdays: mon}",
        "type: hasLabel, config: {key: '{{ x }} ${S}'}",
        "type: hasLabel, config: {key: '[${S}] ${S}'}",
        "type: hasLabel, config: {key: '\"${S}'}",
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *vars = NULL;
    CHECK_EQ(json_parse(STR("{\"S\":\"hunter2\"}"), 0, &a, &vars, &err), 0);
    struct ucfg_env env = { .find = find_env, .ctx = (void *)(uintptr_t)vars };
    for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
        check_case((int64_t)i);
        struct problems problems = { .out = &a };
        struct config c;
        struct str yaml = arena_printf(&a,
                                       "intervals: {requeue: 1m}\ninstances:\n  check:\n"
                                       "  - {%s}\n",
                                       configs[i]);
        CHECK_EQ(config_load(yaml, env, &a, &c, &problems), -ERR_INVALID);
        CHECK_EQ(problems.n, 1);
        CHECK(!str_contains(problems.items[0].text, STR("hunter2")));
    }
    check_case(-1);
}

/* Whatever is cut off or changed, the answer is a configuration or a list of problems. */
PROPERTY(config_survives_damage)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf yaml = { 0 };
    buf_add(&yaml, str_from(base));
    buf_add(&yaml, STR("profiles:\n- {name: p, operational: {enter: t, transitions: [{check: "
                       "'a || !a', next: in-maintenance}]}}\n"));
    static const char bytes[] = "{}[]:,-'\"$&|! \n0a";
    for (uint32_t i = rng_below(rng, 4); i > 0; i--) {
        yaml.p[rng_below(rng, (uint32_t)yaml.n)] = bytes[rng_below(rng, sizeof(bytes) - 1)];
    }
    yaml.n -= rng_below(rng, 2) * rng_below(rng, (uint32_t)yaml.n);
    struct problems problems = { .out = &a };
    struct config c = { 0 };
    int r = config_load(buf_str(&yaml), (struct ucfg_env){ 0 }, &a, &c, &problems);
    CHECK_EQ(r == 0, problems.errors == 0);
    CHECK_EQ(r == 0, c.requeue_ns != 0);
}
