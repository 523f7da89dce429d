#include "kinds/node_maintenance.h"

#include "format/yaml.h"
#include "tests/check.h"

/* 2026-01-02T03:04:05Z, a Friday. */
#define NOW SECONDS(1767323045)

static int find_zone(void *ctx UNUSED, struct str name, const struct zone **ret, struct err *err)
{
    if (!str_eq(name, STR("Europe/Berlin"))) {
        return err_set(err, ERR_NOTFOUND, "no such zone");
    }
    *ret = NULL; /* UTC will do */
    return 0;
}

static const struct window_sources sources = { .find_zone = find_zone, .now = NOW };

static const struct node_maintenance *read_object(struct arena *a, struct str text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct node_maintenance *m = ARENA_NEW(a, struct node_maintenance);
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    node_maintenance_read(object, &sources, a, m);
    return m;
}

static const struct node_maintenance *read(struct arena *a, const char *spec)
{
    return read_object(
        a, arena_printf(a, "{\"metadata\":{\"name\":\"m\",\"uid\":\"u\"},\"spec\":%s}", spec));
}

#define SHOT "{\"name\":\"a\",\"type\":\"one-shot\",\"script\":\"true\"}"

TEST(node_maintenance_has_its_defaults)
{
    struct arena a = { 0 };
    const struct node_maintenance *m = read(&a, "{\"operations\":[" SHOT "]}");
    CHECK_STR(spec_problem_text(&m->problem, &a), "");
    CHECK(!m->window.given && !m->series.own.given && !m->suspend && !m->dry_run && !m->held);
    CHECK_EQ(m->rollout.max_concurrent.n, 1);
    CHECK_EQ(m->rollout.min_ready, SECONDS(60));
    CHECK_EQ(m->rollout.order, ORDER_AUTO);
    CHECK_EQ(m->rollout.control_plane, CONTROL_PLANE_FIRST);
    CHECK_EQ(m->rollout.wave_n, 1);
    CHECK_STR(m->rollout.waves[0].name, "rest");
    CHECK(m->rollout.waves[0].implied);
    CHECK_EQ(m->failure.retries, 2);
    CHECK_EQ(m->failure.pause_after.n, 1);
    CHECK_EQ(m->failure.backoff_max, MINUTES(15));
    CHECK_EQ(m->keep_succeeded, 3);
    CHECK_EQ(m->keep_failed, 10);
    CHECK(m->disruption.drain.enabled && !m->disruption.drain.given);
    CHECK_EQ(m->disruption.drain.timeout, MINUTES(15));
    CHECK_EQ(m->disruption.drain.grace, -1);
    CHECK(!m->disruption.prefer_no_schedule);
    CHECK(!node_maintenance_drains(m));
    const struct node_operation *o = &m->operations[0];
    CHECK_EQ(o->payload, PAYLOAD_JOB);
    CHECK_STR(o->payload_json, "{\"script\":\"true\"}");
    CHECK_EQ(o->timeout, MINUTES(30));
    CHECK_EQ(o->disruptive, DISRUPTIVE_AUTO);
    CHECK_EQ(o->reboot.policy, REBOOT_NEVER);
    CHECK(o->track_references && o->reboot.kernel && o->reboot.units && o->given == 0);
    arena_done(&a);
}

/* What people who come from kured write: it drains, one node at a time. */
TEST(node_maintenance_reads_reboots_in_a_window)
{
    struct arena a = { 0 };
    const struct node_maintenance *m =
        read(&a, "{\"window\":{\"days\":[\"Mon\",\"Tue\",\"Wed\",\"Thu\"],\"from\":\"22:00\","
                 "\"to\":\"04:00\",\"timeZone\":\"Europe/Berlin\"},\"operations\":[{\"name\":"
                 "\"reboot\",\"type\":\"realtime\",\"reboot\":{\"policy\":\"IfRequired\"}}]}");
    CHECK_STR(spec_problem_text(&m->problem, &a), "");
    CHECK(m->window.given && m->window.own.given);
    CHECK_EQ(m->window.own.hours.open_n, 1);
    CHECK_EQ(m->operations[0].payload, PAYLOAD_NONE);
    CHECK_EQ(m->rollout.max_concurrent.n, 1);
    CHECK(node_maintenance_drains(m));
    arena_done(&a);
}

TEST(node_maintenance_drains_unless_its_author_says_no)
{
    static const struct {
        const char *drain;
        const char *reboot;
        bool drains;
    } cases[] = {
        { "", "", false },
        { "\"drain\":{\"timeout\":\"5m\"}", "", true },
        { "\"drain\":{\"enabled\":false}", ",\"reboot\":{\"policy\":\"Always\"}", false },
        { "", ",\"reboot\":{\"policy\":\"IfRequired\"}", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        struct str spec = arena_printf(&a,
                                       "{\"disruption\":{%s},\"operations\":[{\"name\":\"a\","
                                       "\"type\":\"one-shot\",\"script\":\"x\"%s}]}",
                                       cases[i].drain, cases[i].reboot);
        const struct node_maintenance *m = read(&a, spec.p);
        CHECK_STR(m->problem.reason, "");
        CHECK_EQ(node_maintenance_drains(m), cases[i].drains);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(node_maintenance_reads_short_and_long_cron_alike)
{
    static const char *const forms[] = {
        "\"schedule\":\"0 2 * * 2\"",
        "\"cron\":{\"schedule\":\"0 2 * * 2\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        struct str spec = arena_printf(
            &a, "{\"operations\":[{\"name\":\"a\",\"type\":\"cron\",\"script\":\"x\",%s}]}",
            forms[i]);
        const struct node_maintenance *m = read(&a, spec.p);
        CHECK_STR(m->problem.reason, "");
        CHECK_EQ(m->operations[0].cron.by, CRON_BY_SCHEDULE);
        CHECK_EQ(m->operations[0].cron.pattern.hours, 1u << 2);
        CHECK(!m->operations[0].cron.has_zone);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(node_maintenance_adds_the_wave_that_has_everybody)
{
    static const struct {
        const char *waves;
        uint32_t n;
        bool implied;
        const char *problem;
    } cases[] = {
        { "{\"name\":\"canary\",\"size\":1}", 2, true, "" },
        { "{\"name\":\"canary\",\"size\":1},{\"name\":\"all\",\"size\":\"100%\"}", 2, false, "" },
        { "{\"name\":\"a\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}}}", 2, true, "" },
        { "{\"name\":\"rest\",\"size\":1}", 2, true, "Invalid" },
        { "{\"name\":\"a\",\"size\":\"50%\"},{\"name\":\"b\",\"size\":\"9%\"}", 3, true,
          "Invalid" },
        { "{\"name\":\"a\",\"size\":9},{\"name\":\"b\",\"size\":\"5%\"}", 3, true, "" },
        { "{\"name\":\"a\",\"size\":9},{\"name\":\"a\",\"size\":10}", 3, true, "Invalid" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        struct str spec = arena_printf(
            &a, "{\"rollout\":{\"waves\":[%s]},\"operations\":[" SHOT "]}", cases[i].waves);
        const struct node_maintenance *m = read(&a, spec.p);
        CHECK_STR(m->problem.reason, cases[i].problem);
        CHECK_EQ(m->rollout.wave_n, cases[i].n);
        CHECK_EQ(m->rollout.waves[m->rollout.wave_n - 1].implied, cases[i].implied);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(node_maintenance_says_what_is_wrong_where)
{
    static const struct {
        const char *spec;
        const char *reason;
        const char *text;
    } cases[] = {
        { "{\"operations\":[{\"name\":\"a\",\"type\":\"one-shot\",\"script\":\"x\",\"after\":["
          "\"b\"]},"
          "{\"name\":\"b\",\"type\":\"one-shot\",\"script\":\"x\",\"after\":[\"c\"]},"
          "{\"name\":\"c\",\"type\":\"one-shot\",\"script\":\"x\",\"after\":[\"a\"]}]}",
          "Cycle", NULL },
        { "{\"operations\":[" SHOT "],\"dependsOn\":[{\"name\":\"m\"}]}", "Cycle",
          "spec.dependsOn[0]: found {\"name\":\"m\"}, want another NodeMaintenance than itself" },
        { "{\"operations\":[" SHOT "],\"disruption\":{\"drain\":{\"escalate\":{}}}}", "Unsupported",
          "spec.disruption.drain.escalate: found {}, want a drain without this field" },
        { "{\"operations\":[{\"name\":\"a\",\"type\":\"cron\",\"script\":\"x\",\"cron\":{"
          "\"schedule\":"
          "\"0 0 30 2 *\"}}]}",
          "Invalid", NULL },
        { "{\"operations\":[{\"name\":\"a\",\"type\":\"cron\",\"script\":\"x\",\"cron\":{"
          "\"schedule\":"
          "\"@daily\",\"timeZone\":\"Europe/Berln\"}}]}",
          "UnknownZone",
          "spec.operations[0].cron.timeZone: found \"Europe/Berln\", want a zone such as "
          "Europe/Berlin: no such zone" },
        { "{\"operations\":[" SHOT "],\"rollout\":{\"gates\":{\"beforeNode\":[{\"nodes\":{"
          "\"maxNotReady\":1},\"interval\":\"1s\"}]}}}",
          "Invalid", "spec.rollout.gates.beforeNode[0].interval: found \"1s\", want at least 5s" },
        { "{\"operations\":[" SHOT "],\"window\":{}}", "Invalid",
          "spec.window: found {}, want refs, days with from and to, recurrences, or override" },
        { "{\"operations\":[" SHOT "],\"nodeSeries\":{}}", "Invalid",
          "spec.nodeSeries: found {}, want ref, or a description of the machines" },
        { "7", "Invalid", "spec.operations: found nothing, want at least one operation" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct node_maintenance *m = read(&a, cases[i].spec);
        CHECK_STR(m->problem.reason, cases[i].reason);
        if (cases[i].text != NULL) {
            CHECK_STR(spec_problem_text(&m->problem, &a), cases[i].text);
        }
        arena_done(&a);
    }
    check_case(-1);
}

TEST(node_maintenance_reads_labels_annotations_and_the_record)
{
    struct arena a = { 0 };
    const struct node_maintenance *m = read_object(
        &a,
        STR("{\"metadata\":{\"name\":\"m\",\"generation\":4,\"labels\":{\"drydock.dev/hold\":"
            "\"true\"},\"annotations\":{\"drydock.dev/approve\":\"r/canary by me\","
            "\"drydock.dev/rerun\":\"a@2026-01-01T00:00:00Z\",\"drydock.dev/abandon\":\"true\"},"
            "\"finalizers\":[\"x\",\"drydock.dev/node-maintenance\"]},"
            "\"spec\":{\"operations\":[" SHOT "]},\"status\":{\"visits\":[{\"machine\":\"n\","
            "\"uid\":\"v\",\"request\":\"mr-1\",\"since\":\"2026-01-02T03:04:05Z\"}],"
            "\"wave\":{\"index\":1,\"revision\":\"r\",\"soakUntil\":\"2026-01-02T03:04:05Z\"},"
            "\"operations\":[{\"name\":\"a\",\"lastTick\":\"2026-01-02T03:04:05Z\"}],"
            "\"handled\":{\"approve\":[\"r/canary\"],\"rerun\":\"a@x\"}}}"));
    CHECK(m->held && m->finalizer && m->asks.abandon);
    CHECK_STR(m->asks.approve, "r/canary by me");
    CHECK_STR(m->asks.rerun, "a@2026-01-01T00:00:00Z");
    CHECK_EQ(m->record.place_n, 1);
    CHECK_STR(m->record.places[0].request, "mr-1");
    CHECK_EQ(m->record.places[0].since, NOW);
    CHECK_EQ(m->record.wave.index, 1);
    CHECK_EQ(m->record.wave.soak_until, NOW);
    CHECK_EQ(m->record.operations[0].last_tick, NOW);
    CHECK_EQ(m->record.approved.n, 1);
    CHECK_STR(m->record.reran, "a@x");
    arena_done(&a);
}

/* What is not looked at here: whoever evaluates a gate or a resource reads its fields, and the rest
 * harms nobody. */
static bool is_the_servers(struct str name)
{
    static const char *const names[] = {
        "override with a short reason",
        "05%",
        "maxFailedNodes",
        "a URL without scheme",
        "a URL of a file",
        "a broken expression",
        "expect as a word of its own",
        "a query with both",
        "a value that is no number",
        "a resource that exists with values",
        "an empty drain",
        "timezone",
        "a version with an interval",
        "image with shell",
        "newNodes of cron",
        "a mode as a number",
        "a mode in letters",
        "a file without path",
        "contents",
        "swap off",
        "swap in quotes",
        "a service without unit",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(name, str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

/* Whatever a real API server accepts is accepted, and what its rules refuse is refused, too: the
 * sandbox and older servers have no rules. */
static void agree(const char *file, uint32_t *ret_accepted, uint32_t *ret_refused)
{
    struct arena a = { 0 };
    struct ydoc doc;
    struct err err = { 0 };
    CHECK_EQ(ydoc_parse(check_data(file), &a, &doc, &err), 0);
    int64_t i = 0;
    JVAL_EACH (doc.root, row) {
        check_case(i++);
        struct tree *object = tree_obj(&a);
        struct tree *spec = tree_from(&a, jval_get(row, STR("spec")));
        const struct jval *operation = jval_get(row, STR("operation"));
        if (tree_kind(spec) != JOBJ) {
            spec = tree_obj(&a);
        }
        if (operation != NULL || tree_get(spec, STR("operations")) == NULL) {
            struct tree *one = NULL;
            CHECK_EQ(tree_parse(STR(SHOT), &a, &one, &err), 0);
            if (operation != NULL) {
                one = tree_from(&a, operation);
                if (tree_get(one, STR("name")) == NULL) {
                    tree_set(&a, one, STR("name"), tree_str(&a, STR("a")));
                }
            }
            tree_set(&a, spec, STR("operations"), tree_arr(&a));
            tree_add(tree_get(spec, STR("operations")), one);
        }
        struct str name = jval_str(jval_at(row, "metadata.name"));
        tree_set_at(&a, object, "metadata.name", tree_str(&a, name.n > 0 ? name : STR("x")));
        tree_set(&a, object, STR("spec"), spec);
        const struct node_maintenance *m = read_object(&a, tree_json(&a, object));
        const struct jval *refused = jval_get(row, STR("refused"));
        if (refused == NULL) {
            CHECK_STR(spec_problem_text(&m->problem, &a), "");
            (*ret_accepted)++;
        } else if (m->problem.reason.n == 0) {
            CHECK(is_the_servers(jval_str(jval_get(row, STR("case")))));
        } else {
            (*ret_refused)++;
        }
    }
    check_case(-1);
    arena_done(&a);
}

TEST(node_maintenance_agrees_with_the_api_server)
{
    uint32_t accepted = 0;
    uint32_t refused = 0;
    agree("operations/nodemaintenances.yaml", &accepted, &refused);
    agree("operations/newcomers.yaml", &accepted, &refused);
    CHECK(accepted > 50 && refused > 120);
}
