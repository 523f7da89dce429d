/* service and unit: what the service manager is told, and what comes back. */
#include "tests/lib/agent_fixture.h"

#include "base/buf.h"

#define OTHER "resources: [{name: other, type: file, path: /other, content: x}]"

/* One unit, and what was ordered. */
static struct {
    const char *load;
    const char *active;
    const char *file;
    bool need_reload;
    const char *problem; /* of a start */
    struct buf log;
} unit;

static const char *const verb_names[UNIT_VERBS] = {
    [UNIT_RELOAD_MANAGER] = "daemon-reload",
    [UNIT_START] = "start",
    [UNIT_STOP] = "stop",
    [UNIT_RESTART] = "restart",
    [UNIT_RELOAD_OR_RESTART] = "reload-or-restart",
    [UNIT_TRY_RESTART] = "try-restart",
    [UNIT_ENABLE] = "enable",
    [UNIT_DISABLE] = "disable",
    [UNIT_MASK] = "mask",
    [UNIT_UNMASK] = "unmask",
    [UNIT_RESET_FAILED] = "reset-failed",
};

static void play(struct agent_fixture *f UNUSED, const struct unit_request *request,
                 struct unit_reply *ret)
{
    switch (request->verb) {
    case UNIT_LOOK:
        CHECK_STR(request->unit, "chrony.service");
        *ret = (struct unit_reply){ .load = str_from(unit.load),
                                    .active = str_from(unit.active),
                                    .file = str_from(unit.file),
                                    .need_reload = unit.need_reload };
        return;
    case UNIT_RELOAD_MANAGER:
        unit.need_reload = false;
        unit.load = "loaded";
        break;
    case UNIT_START:
        ret->problem = str_from(unit.problem);
        unit.active = unit.problem != NULL ? "failed" : "active";
        break;
    case UNIT_STOP:
        unit.active = "inactive";
        break;
    case UNIT_ENABLE:
        unit.file = "enabled";
        break;
    case UNIT_DISABLE:
    case UNIT_UNMASK:
        unit.file = "disabled";
        break;
    case UNIT_MASK:
        unit.file = "masked";
        break;
    case UNIT_RESET_FAILED:
        unit.active = "inactive";
        break;
    default:
        break;
    }
    buf_printf(&unit.log, "%s%s", unit.log.n > 0 ? " " : "", verb_names[request->verb]);
}

static void machine(struct agent_fixture *f, const char *active, const char *file)
{
    agent_fixture_init(f);
    buf_reset(&unit.log);
    unit.load = "loaded";
    unit.active = active;
    unit.file = file;
    unit.need_reload = false;
    unit.problem = NULL;
    f->on_unit = play;
}

static void machine_done(struct agent_fixture *f)
{
    buf_done(&unit.log);
    agent_fixture_done(f);
}

#define SERVICE(more) "resources: [{name: a, type: service, unit: chrony" more "}]"
#define RESTORE ", meta: {onRemove: Restore}"

TEST(service_is_brought_to_its_state_and_no_further)
{
    static const struct {
        const char *active;
        const char *file;
        const char *resource;
        const char *said;
        const char *log;
    } cases[] = {
        { "active", "enabled", SERVICE(", enabled: true"), "Ok", "" },
        { "inactive", "disabled", SERVICE(", enabled: true"), "Ok, changed", "enable start" },
        { "inactive", "masked", SERVICE(", enabled: true"), "Ok, changed", "unmask enable start" },
        { "activating", "static", SERVICE(", enabled: true"), "Ok", "" },
        { "failed", "enabled", SERVICE(""), "Ok, changed", "reset-failed start" },
        { "failed", "enabled", SERVICE(", resetFailed: false"), "Ok, changed", "start" },
        { "failed", "enabled", SERVICE(", state: unmanaged"), "Ok", "" },
        { "active", "enabled", SERVICE(", state: stopped, enabled: false"), "Ok, changed",
          "disable stop" },
        { "active", "enabled", SERVICE(", state: stopped, enabled: masked"), "Ok, changed",
          "mask stop" },
        { "inactive", "", SERVICE(", state: stopped, enabled: false"), "Ok", "" },
        { "active", "enabled-runtime", SERVICE(", enabled: true"), "Ok, changed", "enable" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent_fixture f;
        check_case((int64_t)i);
        machine(&f, cases[i].active, cases[i].file);
        agent_run(&f, cases[i].resource);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
        CHECK_STR(buf_str(&unit.log), cases[i].log);
        machine_done(&f);
    }
    check_case(-1);
}

TEST(service_comes_back_as_it_was)
{
    static const struct {
        const char *active;
        const char *file;
        const char *resource;
        const char *log;
    } cases[] = {
        { "inactive", "disabled", SERVICE(", enabled: true" RESTORE), "enable start disable stop" },
        { "active", "enabled", SERVICE(", state: stopped, enabled: masked" RESTORE),
          "mask stop unmask enable start" },
        { "active", "enabled", SERVICE(", state: stopped" RESTORE), "stop start" },
        { "inactive", "disabled", SERVICE(", meta: {onRemove: Remove}"), "start" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent_fixture f;
        check_case((int64_t)i);
        machine(&f, cases[i].active, cases[i].file);
        agent_run(&f, cases[i].resource);
        agent_run(&f, OTHER);
        CHECK(converge_is_good(&f.converge));
        CHECK_STR(buf_str(&unit.log), cases[i].log);
        machine_done(&f);
    }
    check_case(-1);
}

#define NOTIFIED(more)                                                                             \
    "resources:\n"                                                                                 \
    "- {name: conf, type: file, path: /conf, content: x, notifies: [a]}\n"                         \
    "- {name: a, type: service, unit: chrony" more "}\n"

TEST(service_is_refreshed_as_it_asks_for)
{
    static const struct {
        const char *active;
        const char *resource;
        const char *said;
        const char *log;
    } cases[] = {
        { "active", NOTIFIED(""), "Ok, refreshed", "restart" },
        { "active", NOTIFIED(", onRefresh: ReloadOrRestart"), "Ok, refreshed",
          "reload-or-restart" },
        { "active", NOTIFIED(", onRefresh: TryRestart"), "Ok, refreshed", "try-restart" },
        { "active", NOTIFIED(", onRefresh: None"), "Ok, refreshed", "" },
        { "inactive", NOTIFIED(", state: stopped"), "Ok, refreshed", "try-restart" },
        /* Who was just started has read it. */
        { "inactive", NOTIFIED(""), "Ok, changed, refreshed", "start" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent_fixture f;
        check_case((int64_t)i);
        machine(&f, cases[i].active, "enabled");
        agent_run(&f, cases[i].resource);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
        CHECK_STR(buf_str(&unit.log), cases[i].log);
        machine_done(&f);
    }
    check_case(-1);
}

TEST(service_restarts_in_a_window_and_starts_at_once)
{
    struct agent_fixture f;
    machine(&f, "active", "enabled");
    f.rules.allowed = DISRUPTION_NONE;
    agent_run(&f, NOTIFIED(""));
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    CHECK_STR(buf_str(&unit.log), "");
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, NOTIFIED(""));
    CHECK_STR(agent_said(&f, "a"), "Ok, refreshed");
    CHECK_STR(buf_str(&unit.log), "restart");
    f.rules.allowed = DISRUPTION_NONE;
    unit.active = "inactive";
    agent_run(&f, NOTIFIED(""));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    machine_done(&f);
}

static void play_kubelet(struct agent_fixture *f UNUSED, const struct unit_request *request,
                         struct unit_reply *ret)
{
    CHECK_STR(request->unit, "kubelet.service");
    CHECK_EQ(request->verb, UNIT_LOOK);
    *ret = (struct unit_reply){ .load = STR("loaded"),
                                .active = STR("active"),
                                .file = STR("enabled") };
}

TEST(service_that_carries_pods_waits_until_the_node_is_out_of_service)
{
    struct agent_fixture f;
    machine(&f, "active", "enabled");
    f.on_unit = play_kubelet;
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, "resources: [{name: a, type: service, unit: kubelet, state: stopped}]");
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    machine_done(&f);
}

TEST(service_that_does_not_start_is_told)
{
    struct agent_fixture f;
    machine(&f, "inactive", "enabled");
    unit.problem = "StartUnit: failed";
    agent_run(&f, SERVICE(""));
    CHECK_STR(agent_said(&f, "a"), "Failed: 'chrony.service': StartUnit: failed");
    f.on_unit = NULL;
    agent_run(&f, SERVICE(""));
    CHECK_STR(agent_said(&f, "a"), "Failed: no service manager is played here");
    machine_done(&f);
}

/* ── unit ──────────────────────────────────────────────────────────────────────────────────── */

#define UNIT_TEXT "[Service]\\nExecStart=/bin/true\\n"

TEST(unit_is_written_read_and_started_and_all_of_it_undone)
{
    static const char yaml[] =
        "resources:\n"
        "- {name: service, type: service, unit: chrony" RESTORE "}\n"
        "- {name: unit, type: unit, unit: chrony, content: \"" UNIT_TEXT "\"" RESTORE "}\n";
    struct agent_fixture f;
    machine(&f, "inactive", "");
    unit.load = "not-found";
    agent_noop(&f, yaml);
    CHECK_EQ(engine_count(&f.converge.engine).states[VERTEX_NOOP], 2);
    CHECK_STR(buf_str(&unit.log), "");
    agent_run(&f, yaml);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/systemd/system/chrony.service"),
              "[Service]\nExecStart=/bin/true\n");
    CHECK_STR(buf_str(&unit.log), "daemon-reload start");
    agent_run(&f, yaml);
    CHECK_EQ(engine_count(&f.converge.engine).changed, 0);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(buf_str(&unit.log), "daemon-reload start stop daemon-reload");
    CHECK_STR(agent_read(&f, "/etc/systemd/system/chrony.service"), "(none)");
    machine_done(&f);
}

#define DROPIN                                                                                     \
    "resources: [{name: a, type: unit, unit: chrony.service, dropin: {name: limits, content: "     \
    "\"[Service]\\nNice=5\\n\"}}]"

TEST(unit_has_drop_ins_and_files_that_were_not_read)
{
    struct agent_fixture f;
    machine(&f, "active", "enabled");
    agent_run(&f, DROPIN);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/systemd/system/chrony.service.d/limits.conf"),
              "[Service]\nNice=5\n");
    CHECK_STR(buf_str(&unit.log), "daemon-reload");
    unit.need_reload = true;
    agent_run(&f, DROPIN);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(buf_str(&unit.log), "daemon-reload daemon-reload");
    machine_done(&f);
}

static void with_manager(struct agent_fixture *f)
{
    buf_reset(&unit.log);
    unit.load = "loaded";
    unit.active = "active";
    unit.file = "enabled";
    f->on_unit = play;
}

static void judge_left(struct agent_fixture *f)
{
    unit.need_reload =
        !str_eq(agent_read(f, "/etc/systemd/system/chrony.service.d/limits.conf"), STR("(none)"));
}

static void judge_after(struct agent_fixture *f)
{
    CHECK(converge_is_good(&f->converge));
    CHECK(!unit.need_reload);
}

TEST(unit_is_read_wherever_the_agent_is_killed)
{
    agent_kill_everywhere(DROPIN, with_manager, judge_left, judge_after);
    buf_done(&unit.log);
}

TEST(services_name_what_is_wrong)
{
    static const struct {
        const char *resource;
        const char *said;
    } cases[] = {
        { "{name: a, type: service, unit: ../x}",
          "Failed: field 'unit': found '../x', want a name such as chrony.service" },
        { "{name: a, type: service, unit: chrony, enabled: maybe}",
          "Failed: field 'enabled': found 'maybe', want true, false or masked" },
        { "{name: a, type: service, unit: chrony, enabled: masked}",
          "Failed: field 'enabled': found 'masked' beside 'state: running'" },
        { "{name: a, type: service, unit: chrony, startTimeout: 0s}",
          "Failed: field 'startTimeout': want it above 0" },
        { "{name: a, type: unit, unit: chrony}",
          "Failed: field 'content': want it, and with 'state: absent' want it not" },
        { "{name: a, type: unit, unit: chrony, content: x, dropin: {name: a}}",
          "Failed: fields 'content' and 'dropin': want one of them" },
        { "{name: a, type: unit, unit: chrony, dropin: {name: a/b, content: x}}",
          "Failed: field 'dropin': field 'name': want the name of a file" },
        { "{name: a, type: unit, unit: chrony, dropin: {name: a, contents: x}}",
          "Failed: field 'dropin': unknown field 'contents'" },
        { "{name: a, type: unit, unit: chrony, state: absent}", "Ok" },
    };
    struct agent_fixture f;
    machine(&f, "active", "enabled");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        agent_run(&f, arena_printf(&f.memory, "resources: [%s]", cases[i].resource).p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
    }
    check_case(-1);
    machine_done(&f);
}
