#include "profile/check/check.h"

#include "profile/check/check_plugin.h"
#include "tests/check.h"
#include "tests/lib/check_fixture.h"

TEST(checks_every_plugin_of_the_table_can_run)
{
    const struct plugin_table *table = &plugin_tables[PLUGIN_CHECK];
    for (uint32_t i = 0; i < table->n; i++) {
        CHECK(check_find(table->items[i].name) != NULL);
    }
}

/* What a grant has to ask again, or to take, is said by the table and not by the plugin's name. */
TEST(checks_that_want_answers_from_outside_say_so_in_the_table)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct plugin_table *table = &plugin_tables[PLUGIN_CHECK];
    for (uint32_t i = 0; i < table->n; i++) {
        const struct plugin *p = &table->items[i];
        struct check_fixture b;
        check_fixture_begin(
            &b, arena_printf(&tmp, "  - {name: x, type: %s, config: %s}\n", p->name, p->example).p);
        check_fixture_node(&b, "n", "version=1.2.3", NULL);
        struct check_verdict v = check_fixture_run(&b, "x", "n");
        bool outside = false;
        bool leases = false;
        for (uint32_t k = 0; k < v.want_n; k++) {
            enum facts_kind kind = v.wants[k].kind;
            leases = leases || kind == FACTS_STAGGER;
            outside = outside || (kind != FACTS_STAGGER && kind != FACTS_AFFINITY);
        }
        check_case((int64_t)i);
        CHECK_EQ(p->asks_outside, outside);
        CHECK_EQ(p->takes_lease, leases);
        check_fixture_end(&b);
    }
    check_case(-1);
}

/* One node a case: its labels, annotations or conditions, what the check says. `line` is the one of
 * tests/ASSERTIONS.md, check plugins. */
struct node_case {
    const char *line;
    const char *check;
    const char *labels;
    const char *annotations;
    const char *conditions;
    enum check_answer answer;
    const char *info;
    const char *reason;
};

#define READY                                                                                      \
    "[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"Unknown\"}]"

static const struct node_case node_cases[] = {
    { "hasLabel: key with empty value -> pass", "{type: hasLabel, config: {key: a}}", "a=", NULL,
      NULL, CHECK_PASS, "", "label a is ''" },
    { "hasLabel: key with empty value -> pass", "{type: hasLabel, config: {key: a, value: ''}}",
      "a=1", NULL, NULL, CHECK_PASS, "", "label a is '1'" },
    { "hasLabel: equal value -> pass", "{type: hasLabel, config: {key: a, value: 1}}", "a=1", NULL,
      NULL, CHECK_PASS, "", "label a is '1'" },
    { "hasLabel: other value -> fail", "{type: hasLabel, config: {key: a, value: 1}}", "a=2", NULL,
      NULL, CHECK_FAIL, "", "label a is '2', not '1'" },
    { "hasLabel: other key -> fail", "{type: hasLabel, config: {key: a}}", "b=1", "a=1", NULL,
      CHECK_FAIL, "{\"reason\":\"label a not present\"}", "the node has no label a" },
    { "hasAnnotation: key with empty value -> pass", "{type: hasAnnotation, config: {key: a}}",
      NULL, "a=", NULL, CHECK_PASS, "", "annotation a is ''" },
    { "hasAnnotation: equal value -> pass", "{type: hasAnnotation, config: {key: a, value: 1}}",
      NULL, "a=1", NULL, CHECK_PASS, "", "annotation a is '1'" },
    { "hasAnnotation: other value -> fail", "{type: hasAnnotation, config: {key: a, value: A}}",
      NULL, "a=a", NULL, CHECK_FAIL, "", "annotation a is 'a', not 'A'" },
    { "hasAnnotation: other key -> fail", "{type: hasAnnotation, config: {key: a}}", "a=1", "b=1",
      NULL, CHECK_FAIL, "{\"reason\":\"annotation a not present\"}",
      "the node has no annotation a" },
    { "condition: Ready=True pass", "{type: condition, config: {type: Ready, status: 'True'}}",
      NULL, NULL, READY, CHECK_PASS, "{\"current\":\"True\",\"expected\":\"True\"}",
      "condition Ready is 'True'" },
    { "condition: Ready=Unknown fail", "{type: condition, config: {type: Ready, status: Unknown}}",
      NULL, NULL, READY, CHECK_FAIL, "{\"current\":\"True\",\"expected\":\"Unknown\"}",
      "condition Ready is 'True', not 'Unknown'" },
    { "condition: absent DiskPressure fail",
      "{type: condition, config: {type: DiskPressure, status: 'False'}}", NULL, NULL, READY,
      CHECK_FAIL, "{\"reason\":\"condition DiskPressure not present\"}",
      "the node has no condition DiskPressure" },
};

static const char *named(struct check_fixture *b, const char *check)
{
    /* "{type: x, …}" becomes "- {name: c, type: x, …}". */
    return arena_printf(&b->memory, "  - {name: c, %s", check + 1).p;
}

TEST(checks_look_at_the_node_itself)
{
    for (size_t i = 0; i < ARRAY_LEN(node_cases); i++) {
        const struct node_case *c = &node_cases[i];
        struct check_fixture b;
        check_case((int64_t)i);
        check_fixture_begin(&b, "  - {name: none, type: nodeCount, config: {count: 1}}");
        check_fixture_configure(&b, named(&b, c->check));
        if (c->conditions != NULL) {
            check_fixture_node_conditions(&b, "n", c->conditions);
        } else {
            check_fixture_node(&b, "n", c->labels, c->annotations);
        }
        struct check_verdict v = check_fixture_run(&b, "c", "n");
        CHECK_EQ(v.answer, c->answer);
        CHECK_STR(v.info, c->info);
        CHECK_STR(v.reason, c->reason);
        CHECK_EQ(v.next, USEC_NEVER);
        check_fixture_end(&b);
    }
    check_case(-1);
}

/* What a trigger of an earlier profile has changed is seen. */
TEST(checks_see_the_edits_of_the_subject)
{
    struct check_fixture b;
    check_fixture_begin(&b, "  - {name: c, type: hasLabel, config: {key: ok, value: yes}}");
    check_fixture_node(&b, "n", "ok=true", NULL);
    const struct store_item *item = store_find(&b.store, STR("n"));
    struct node_edit edit = { .name = item->name, .node = item->object, .out = &b.memory };
    struct check_input in = { .config = &b.config, .edit = &edit, .out = &b.memory };
    struct check_verdict v;
    check_run(&in, 0, &v);
    CHECK_EQ(v.answer, CHECK_PASS);
    node_edit_remove_label(&edit, STR("ok"));
    check_run(&in, 0, &v);
    CHECK_EQ(v.answer, CHECK_FAIL);
    check_fixture_end(&b);
}

struct time_case {
    const char *line;
    const char *check;
    const char *transition;
    const char *now;
    enum check_answer answer;
    const char *next; /* NULL: never */
    const char *info;
    const char *reason;
};

#define WAIT12 "{type: wait, config: {duration: 0h12m}}"
#define EXCLUDE "{type: waitExclude, config: {duration: 30h, exclude: [mon, wed]}}"
#define EXCLUDE1 "{type: waitExclude, config: {duration: 1s, exclude: [mon, wed]}}"
#define WINDOW                                                                                     \
    "{type: timeWindow, config: {start: '10:30', end: '15:20', weekdays: [monday, tue], "          \
    "exclude: [Feb 2]}}"

static const struct time_case time_cases[] = {
    { "wait: 10 min after 12 min passes", "{type: wait, config: {duration: 10m}}",
      "2022-03-01T12:00:00Z", "2022-03-01T12:12:00Z", CHECK_PASS, NULL, "",
      "more than 10m have passed" },
    { "wait: 15 min after 12 min fails", "{type: wait, config: {duration: 15m}}",
      "2022-03-01T12:00:00Z", "2022-03-01T12:12:00.5Z", CHECK_FAIL, "2022-03-01T12:15:00.000001Z",
      "{\"remaining_seconds\":179.5}", "12m of 15m have passed" },
    { "wait: 0h12m parses", WAIT12, "2022-03-01T12:00:00Z", "2022-03-01T12:12:00Z", CHECK_FAIL,
      "2022-03-01T12:12:00.000001Z", "{\"remaining_seconds\":0}", "12m of 12m have passed" },
    { "waitExclude, no exclusions: 10:00->10:30 fail",
      "{type: waitExclude, config: {duration: 1h, exclude: [sun]}}", "2022-03-01T10:00:00Z",
      "2022-03-01T10:30:00Z", CHECK_FAIL, "2022-03-01T11:00:00.000001Z",
      "{\"remaining_seconds\":1800}", "30m of 1h that count have passed" },
    { "waitExclude, no exclusions: 10:00->11:30 pass",
      "{type: waitExclude, config: {duration: 1h, exclude: [sun]}}", "2022-03-01T10:00:00Z",
      "2022-03-01T11:30:00Z", CHECK_PASS, NULL, "", "more than 1h that count have passed" },
    { "waitExclude: Sun 6th 12:00->Tue 17:00 fail", EXCLUDE, "2022-03-06T12:00:00Z",
      "2022-03-08T17:00:00Z", CHECK_FAIL, "2022-03-08T18:00:00.000001Z",
      "{\"remaining_seconds\":3600}", "29h of 30h that count have passed" },
    { "waitExclude: Sun 6th 12:00->Tue 18:10 pass", EXCLUDE, "2022-03-06T12:00:00Z",
      "2022-03-08T18:10:00Z", CHECK_PASS, "2022-03-09T12:00:00Z", "",
      "more than 30h that count have passed" },
    { "waitExclude: Mon 7th 12:00->Thu 05:00 fail", EXCLUDE, "2022-03-07T12:00:00Z",
      "2022-03-10T05:00:00Z", CHECK_FAIL, "2022-03-10T06:00:00.000001Z",
      "{\"remaining_seconds\":3600}", "29h of 30h that count have passed" },
    { "waitExclude: Mon 7th 12:00->Thu 06:10 pass", EXCLUDE, "2022-03-07T12:00:00Z",
      "2022-03-10T06:10:00Z", CHECK_PASS, NULL, "", "more than 30h that count have passed" },
    { "waitExclude: Sat 5th 22:00->Mon 17:00 fail", EXCLUDE, "2022-03-05T22:00:00Z",
      "2022-03-07T17:00:00Z", CHECK_FAIL, "2022-03-08T04:00:00.000001Z",
      "{\"remaining_seconds\":14400}", "26h of 30h that count have passed" },
    { "waitExclude: 1 s: Sun 12:00:00->12:00:02 pass", EXCLUDE1, "2022-03-06T12:00:00Z",
      "2022-03-06T12:00:02Z", CHECK_PASS, "2022-03-07T12:00:00Z", "",
      "more than 1s that count have passed" },
    { "timeWindow: Mon 11:00 pass", WINDOW, "2021-02-01T00:00:00Z", "2021-02-01T11:00:00Z",
      CHECK_PASS, "2021-02-01T15:20:00Z", "", "closes on Mon 15:20 UTC" },
    { "timeWindow: Tue 15:00 pass", WINDOW, "2021-02-01T00:00:00Z", "2021-02-09T15:00:00Z",
      CHECK_PASS, "2021-02-09T15:20:00Z", "", "closes on Tue 15:20 UTC" },
    { "timeWindow: Tue 15:30 fail", WINDOW, "2021-02-01T00:00:00Z", "2021-02-09T15:30:00Z",
      CHECK_FAIL, "2021-02-15T10:30:00.000001Z", "", "opens on Mon 10:30 UTC" },
    { "timeWindow: Mon 10:29 fail", WINDOW, "2021-02-01T00:00:00Z", "2021-02-01T10:29:00Z",
      CHECK_FAIL, "2021-02-01T10:30:00.000001Z", "", "opens on Mon 10:30 UTC" },
    { "timeWindow: Thu 11:00 fail", WINDOW, "2021-02-01T00:00:00Z", "2021-02-04T11:00:00Z",
      CHECK_FAIL, "2021-02-08T10:30:00.000001Z", "{\"reason\":\"current day of week forbidden\"}",
      "opens on Mon 10:30 UTC" },
    { "timeWindow: Thu 15:00 fail", WINDOW, "2021-02-01T00:00:00Z", "2021-02-04T15:00:00Z",
      CHECK_FAIL, "2021-02-08T10:30:00.000001Z", "{\"reason\":\"current day of week forbidden\"}",
      "opens on Mon 10:30 UTC" },
    { "timeWindow: excluded Feb 2 2021 (Tue) 15:00 fails", WINDOW, "2021-02-01T00:00:00Z",
      "2021-02-02T15:00:00Z", CHECK_FAIL, "2021-02-08T10:30:00.000001Z",
      "{\"reason\":\"day/month forbidden\"}", "opens on Mon 10:30 UTC" },
    { "beyond: a time zone",
      "{type: timeWindow, config: {start: '22:00', end: '23:00', weekdays: [mon], "
      "timeZone: Europe/Berlin}}",
      "2021-02-01T00:00:00Z", "2021-07-05T19:59:00Z", CHECK_FAIL, "2021-07-05T20:00:00.000001Z", "",
      "opens on Mon 22:00 CEST" },
    { "beyond: overnight",
      "{type: timeWindow, config: {start: '22:00', end: '4:00', weekdays: [mon], overnight: true}}",
      "2021-02-01T00:00:00Z", "2021-02-02T03:00:00Z", CHECK_PASS, "2021-02-02T04:00:00Z", "",
      "closes on Tue 04:00 UTC" },
    { "beyond: a pattern",
      "{type: timeWindow, config: {cron: '0 22 * * mon', duration: 2h, timeZone: Europe/Berlin}}",
      "2021-02-01T00:00:00Z", "2021-02-01T21:00:00Z", CHECK_PASS, "2021-02-01T23:00:00Z", "",
      "closes on Tue 00:00 CET" },
    { "beyond: a pattern, before",
      "{type: timeWindow, config: {cron: '0 22 * * mon', duration: 2h}}", "2021-02-01T00:00:00Z",
      "2021-02-01T21:59:59Z", CHECK_FAIL, "2021-02-01T22:00:00Z", "", "opens on Mon 22:00 UTC" },
    { "beyond: a window on a day that is always excluded",
      "{type: timeWindow, config: {start: '22:00', end: '23:00', weekdays: [mon, tue, wed, thu, "
      "fri, sat, sun], exclude: [Jan 1]}}",
      "2021-01-01T00:00:00Z", "2021-01-01T22:30:00Z", CHECK_FAIL, "2021-01-02T22:00:00.000001Z",
      "{\"reason\":\"day/month forbidden\"}", "opens on Sat 22:00 UTC" },
    { "beyond: a window that has no time",
      "{type: timeWindow, config: {start: '22:00', end: '22:00', weekdays: [mon]}}",
      "2021-02-01T00:00:00Z", "2021-02-01T22:00:00Z", CHECK_FAIL, NULL, "", "it never opens" },
};

TEST(checks_look_at_the_time)
{
    for (size_t i = 0; i < ARRAY_LEN(time_cases); i++) {
        const struct time_case *c = &time_cases[i];
        struct check_fixture b;
        check_case((int64_t)i);
        check_fixture_begin(&b, "  - {name: none, type: nodeCount, config: {count: 1}}");
        check_fixture_configure(&b, named(&b, c->check));
        b.transition = c->transition;
        b.now = c->now;
        check_fixture_node(&b, "n", NULL, NULL);
        struct check_verdict v = check_fixture_run(&b, "c", "n");
        CHECK_EQ(v.answer, c->answer);
        CHECK_EQ(v.next, c->next != NULL ? check_fixture_wall(c->next) : USEC_NEVER);
        CHECK_STR(v.info, c->info);
        CHECK_STR(v.reason, c->reason);
        check_fixture_end(&b);
    }
    check_case(-1);
}

/* What the configuration says, as the table of plugins reads it; tests/ASSERTIONS.md has these
 * lines as "parses" and as errors. */
struct load_case {
    const char *line;
    const char *check;
    const char *problem; /* NULL: it loads */
};

static const struct load_case load_cases[] = {
    { "hasAnnotation, hasLabel: parse", "{type: hasLabel, config: {key: a, value: b}}", NULL },
    { "anyLabel: parse", "{type: anyLabel, config: {key: a, value: b}}", NULL },
    { "condition: parse", "{type: condition, config: {type: Ready, status: 'True'}}", NULL },
    { "clusterSemver: profileScoped: yes parses",
      "{type: clusterSemver, config: {key: a, profileScoped: yes}}", NULL },
    { "maxMaintenance: new keys",
      "{type: maxMaintenance, config: {max: 1, profile: p, skipAfter: 20s, groupBy: [a, b]}}",
      NULL },
    { "maxMaintenance: legacy keys (profile, skipAfter 20s, groupLabel)",
      "{type: maxMaintenance, config: {max: 1, profile: p, skipAfter: 20s, groupLabel: a}}", NULL },
    { "nodeCount: parses", "{type: nodeCount, config: {count: 154}}", NULL },
    { "prometheusInstant: parses",
      "{type: prometheusInstant, config: {url: http://p, query: up, expr: value > 0}}", NULL },
    { "timeWindow: parse incl. Feb 3",
      "{type: timeWindow, config: {start: '10:30', end: '15:20', weekdays: [monday, wed], "
      "exclude: [Feb 3]}}",
      NULL },
    { "timeWindow: no weekdays -> error",
      "{type: timeWindow, config: {start: '10:30', end: '15:20', weekdays: []}}",
      "key 'weekdays': found it empty, want weekdays such as [mon, fri]" },
    { "timeWindow: 18:00-17:30 -> error",
      "{type: timeWindow, config: {start: '18:00', end: '17:30', weekdays: [mon]}}",
      "key 'end': found a window from 18:00 to 17:30, want the end after the start, or "
      "'overnight: true'" },
    { "weekday names: abcde rejected",
      "{type: timeWindow, config: {start: '18:00', end: '19:30', weekdays: [abcde]}}",
      "key 'weekdays': 'abcde' is not a known weekday: want 'mon' … 'sun' or a full name" },
    { "wait: 0h12m parses", "{type: wait, config: {duration: 0h12m}}", NULL },
    { "beyond: a time zone",
      "{type: timeWindow, config: {start: '18:00', end: '19:30', weekdays: [mon], timeZone: "
      "Europe/Berlin}}",
      NULL },
    { "beyond: a time zone that is unknown",
      "{type: timeWindow, config: {start: '18:00', end: '19:30', weekdays: [mon], timeZone: "
      "Mars/Base}}",
      "key 'timeZone': found 'Mars/Base' (there is no such zone), want a zone such as "
      "Europe/Berlin" },
    { "beyond: a file that is no time zone",
      "{type: timeWindow, config: {start: '18:00', end: '19:30', weekdays: [mon], timeZone: "
      "broken}}",
      "key 'timeZone': found 'broken' (time zone: found no 'TZif' header, want a TZif file), "
      "want a zone such as Europe/Berlin" },
};

static int find_zone(void *ctx, struct str name, struct arena *out, struct str *ret,
                     struct err *err)
{
    (void)ctx; /* the test data are everybody's */
    if (str_eq(name, STR("broken"))) {
        *ret = STR("garbage");
        return 0;
    }
    if (!str_eq(name, STR("Europe/Berlin"))) {
        return err_set(err, ERR_NOTFOUND, "there is no such zone");
    }
    *ret = arena_str(out, check_data("zone/Berlin"));
    return 0;
}

static int load(struct arena *a, const char *check, struct config *ret, struct problems *problems)
{
    struct str yaml = arena_printf(a,
                                   "intervals: {requeue: 30s}\ninstances:\n  check:\n"
                                   "  - {name: c, %s\n",
                                   check + 1);
    return config_load(yaml, (struct ucfg_env){ .zone = find_zone }, a, ret, problems);
}

TEST(checks_load)
{
    for (size_t i = 0; i < ARRAY_LEN(load_cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct problems problems = { .out = &a };
        struct config config;
        const struct load_case *c = &load_cases[i];
        check_case((int64_t)i);
        int r = load(&a, c->check, &config, &problems);
        CHECK_STR(problems.n > 0 ? problems.items[0].text : STR(""),
                  c->problem != NULL ? c->problem : "");
        CHECK_EQ(r, c->problem != NULL ? -ERR_INVALID : 0);
        CHECK(problems.n == 0 || problems.items[0].pos.line == 4);
    }
    check_case(-1);
}

TEST(checks_a_zone_where_none_is_known_is_a_problem)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { .out = &a };
    struct config config;
    struct str yaml = STR("intervals: {requeue: 30s}\n"
                          "instances:\n"
                          "  check:\n"
                          "  - name: c\n"
                          "    type: timeWindow\n"
                          "    config: {cron: '@daily', duration: 1h, timeZone: Europe/Berlin}\n");
    CHECK_EQ(config_load(yaml, (struct ucfg_env){ 0 }, &a, &config, &problems), -ERR_INVALID);
    CHECK_STR(problems.items[0].text,
              "key 'timeZone': found 'Europe/Berlin' where no zones are known, want UTC");
    CHECK_EQ(problems.items[0].pos.line, 6);
}

TEST(checks_warn_of_an_expression_that_cannot_be_read)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { .out = &a };
    struct config config;
    CHECK_EQ(load(&a, "{type: prometheusInstant, config: {url: http://p, expr: 'value <'}}",
                  &config, &problems),
             0);
    CHECK_EQ(problems.n, 1);
    CHECK(problems.items[0].warning);
    CHECK(str_starts(problems.items[0].text, STR("key 'expr': ")));
}

/* stagger: parallel defaults to 1. */
TEST(checks_one_node_goes_unless_more_may)
{
    struct check_fixture b;
    check_fixture_begin(&b, "  - {name: c, type: stagger, config: {duration: 1s, leaseName: l, "
                            "leaseNamespace: d}}");
    check_fixture_node(&b, "n", NULL, NULL);
    const struct facts_lease lease = { .known = true,
                                       .complete = true,
                                       .renewed = timestamp_from_usec(check_fixture_wall(b.now)),
                                       .duration_s = 60,
                                       .asked = check_fixture_wall(b.now) };
    (void)facts_put_lease(b.facts, 0, 0, &lease);
    CHECK_EQ(check_fixture_run(&b, "c", "n").answer, CHECK_FAIL); /* no second one is wanted */
    check_fixture_end(&b);
}

TEST(checks_a_window_that_stays_closed_is_not_said_to_open)
{
    struct check_fixture b;
    CLEANUP(buf_done)
    struct buf yaml = { 0 };
    buf_add(&yaml, STR("  - {name: c, type: timeWindow, config: {start: '10:00', end: '11:00', "
                       "weekdays: [mon, tue, wed, thu, fri, sat, sun], exclude: ["));
    for (int month = 1; month <= 12; month++) {
        for (int day = 1; day <= day_month_max(month); day++) {
            buf_printf(&yaml, "%s %d, ", day_months[month - 1], day);
        }
    }
    buf_add(&yaml, STR("]}}"));
    buf_add_char(&yaml, '\0');
    check_fixture_begin(&b, yaml.p);
    check_fixture_node(&b, "n", NULL, NULL);
    struct check_verdict v = check_fixture_run(&b, "c", "n");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK(v.next > check_fixture_wall(b.now) + DAYS(365));
    CHECK(str_starts(v.reason, STR("does not open before ")));
    check_fixture_end(&b);
}
