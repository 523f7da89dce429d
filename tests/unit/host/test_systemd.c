/* systemd: the door to the service manager, against a manager that this test plays on a socket of
 * its own with the same protocol. */
#include "host/systemd.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "base/arena.h"
#include "base/buf.h"
#include "host/loop.h"
#include "tests/check.h"

#define MANAGER_PATH "/org/freedesktop/systemd1"
#define UNIT_PATH MANAGER_PATH "/unit/chrony_2eservice"
#define JOB_PATH MANAGER_PATH "/job/7"

struct manager {
    char folder[32];
    struct arena memory;
    int listener;
    sd_bus *bus;
    struct buf log;         /* methods with their texts */
    const char *job_result; /* NULL = the job never ends */
    const char *refuse;     /* an error for every method */
    struct loop *loop;
    struct systemd *systemd;
    bool ended;
    struct unit_reply reply;
};

static int answer_look(sd_bus_message *m)
{
    sd_bus_message *reply = NULL;
    CHECK(sd_bus_message_new_method_return(m, &reply) >= 0);
    CHECK(sd_bus_message_append(reply, "a{sv}", 5, "Id", "s", "chrony.service", "LoadState", "s",
                                "loaded", "ActiveState", "s", "active", "NeedDaemonReload", "b", 1,
                                "UnitFileState", "s", "enabled") >= 0);
    int r = sd_bus_send(NULL, reply, NULL);
    (void)sd_bus_message_unref(reply); /* answers NULL */
    return r;
}

static int answer_job(struct manager *g, sd_bus_message *m)
{
    CHECK(sd_bus_reply_method_return(m, "o", JOB_PATH) >= 0);
    /* Somebody else's job first. */
    CHECK(sd_bus_emit_signal(g->bus, MANAGER_PATH, "org.freedesktop.systemd1.Manager", "JobRemoved",
                             "uoss", 6, MANAGER_PATH "/job/6", "x.service", "failed") >= 0);
    if (g->job_result != NULL) {
        CHECK(sd_bus_emit_signal(g->bus, MANAGER_PATH, "org.freedesktop.systemd1.Manager",
                                 "JobRemoved", "uoss", 7, JOB_PATH, "chrony.service",
                                 g->job_result) >= 0);
    }
    return 1;
}

static void note(struct manager *g, sd_bus_message *m)
{
    char kind;
    const char *text;
    buf_printf(&g->log, "%s%s", g->log.n > 0 ? " " : "", sd_bus_message_get_member(m));
    if (sd_bus_message_peek_type(m, &kind, NULL) > 0 && kind == 'a') {
        CHECK(sd_bus_message_enter_container(m, 'a', "s") >= 0);
        kind = 's';
    }
    if (sd_bus_message_read_basic(m, 's', &text) > 0) {
        buf_printf(&g->log, "(%s)", text);
    }
}

static int on_call(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    struct manager *g = ctx;
    (void)error;
    if (sd_bus_message_is_method_call(m, NULL, NULL) <= 0) {
        return 0;
    }
    struct str member = str_from(sd_bus_message_get_member(m));
    note(g, m);
    if (g->refuse != NULL) {
        return sd_bus_reply_method_errorf(m, "org.freedesktop.systemd1.Refused", "%s", g->refuse);
    }
    if (str_eq(member, STR("LoadUnit"))) {
        return sd_bus_reply_method_return(m, "o", UNIT_PATH);
    }
    if (str_eq(member, STR("GetAll"))) {
        CHECK_STR(sd_bus_message_get_path(m), UNIT_PATH);
        return answer_look(m);
    }
    if (str_ends(member, STR("Unit")) && !str_eq(member, STR("ResetFailedUnit"))) {
        return answer_job(g, m);
    }
    return sd_bus_reply_method_return(m, NULL);
}

static void manager_init(struct manager *g)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    *g = (struct manager){ .job_result = "done" };
    (void)snprintf(g->folder, sizeof(g->folder), "/tmp/drydock bus-XXXXXX");
    CHECK(mkdtemp(g->folder) != NULL);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/private", g->folder);
    g->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(g->listener >= 0);
    CHECK_EQ(bind(g->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_EQ(listen(g->listener, 4), 0);
    g->loop = host_loop_new();
    g->systemd = systemd_new(g->loop, str_from(address.sun_path));
}

static void manager_hang_up(struct manager *g)
{
    (void)sd_bus_close_unref(STEAL(g->bus)); /* answers NULL */
}

static void manager_done(struct manager *g)
{
    systemd_free(g->systemd);
    manager_hang_up(g);
    host_loop_free(g->loop);
    CHECK_EQ(close(g->listener), 0);
    CHECK_EQ(unlink(arena_printf(&g->memory, "%s/private", g->folder).p), 0);
    CHECK_EQ(rmdir(g->folder), 0);
    buf_done(&g->log);
    arena_done(&g->memory);
}

static void accept_one(struct manager *g)
{
    int fd = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    sd_id128_t id = { .bytes = { 1 } };
    if (fd < 0) {
        return;
    }
    CHECK(sd_bus_new(&g->bus) >= 0);
    CHECK(sd_bus_set_fd(g->bus, fd, fd) >= 0);
    CHECK(sd_bus_set_server(g->bus, 1, id) >= 0);
    CHECK(sd_bus_add_filter(g->bus, NULL, on_call, g) >= 0);
    CHECK(sd_bus_start(g->bus) >= 0);
}

static void on_end(void *ctx, const struct unit_reply *reply)
{
    struct manager *g = ctx;
    CHECK(!g->ended);
    g->ended = true;
    g->reply = (struct unit_reply){ .problem = arena_str(&g->memory, reply->problem),
                                    .load = arena_str(&g->memory, reply->load),
                                    .active = arena_str(&g->memory, reply->active),
                                    .file = arena_str(&g->memory, reply->file),
                                    .need_reload = reply->need_reload };
}

static void ask(struct manager *g, enum unit_verb verb, usec_t time_max)
{
    struct err err = { 0 };
    struct unit_request request = { .verb = verb,
                                    .unit = STR("chrony.service"),
                                    .time_max = time_max };
    struct units units = systemd_units(g->systemd);
    buf_reset(&g->log);
    g->ended = false;
    CHECK_EQ(units.ask(units.ctx, &request, on_end, g, &err), 0);
    while (!g->ended) {
        if (g->bus == NULL) {
            accept_one(g);
        }
        while (g->bus != NULL && sd_bus_process(g->bus, NULL) > 0) {
        }
        host_loop_turn(g->loop, MSECONDS(5));
    }
}

TEST(systemd_tells_how_a_unit_is)
{
    struct manager g;
    manager_init(&g);
    for (int i = 0; i < 2; i++) {
        ask(&g, UNIT_LOOK, SECONDS(60));
        CHECK_STR(g.reply.problem, "");
        CHECK_STR(g.reply.load, "loaded");
        CHECK_STR(g.reply.active, "active");
        CHECK_STR(g.reply.file, "enabled");
        CHECK(g.reply.need_reload);
        CHECK_STR(buf_str(&g.log),
                  "LoadUnit(chrony.service) GetAll(org.freedesktop.systemd1.Unit)");
    }
    manager_done(&g);
}

TEST(systemd_is_told_what_to_do)
{
    static const struct {
        enum unit_verb verb;
        const char *log;
    } cases[] = {
        { UNIT_RELOAD_MANAGER, "Reload" },
        { UNIT_START, "StartUnit(chrony.service)" },
        { UNIT_STOP, "StopUnit(chrony.service)" },
        { UNIT_RESTART, "RestartUnit(chrony.service)" },
        { UNIT_RELOAD_OR_RESTART, "ReloadOrRestartUnit(chrony.service)" },
        { UNIT_TRY_RESTART, "TryRestartUnit(chrony.service)" },
        { UNIT_ENABLE, "EnableUnitFiles(chrony.service) Reload" },
        { UNIT_DISABLE, "DisableUnitFiles(chrony.service) Reload" },
        { UNIT_MASK, "MaskUnitFiles(chrony.service) Reload" },
        { UNIT_UNMASK, "UnmaskUnitFiles(chrony.service) Reload" },
        { UNIT_RESET_FAILED, "ResetFailedUnit(chrony.service)" },
    };
    struct manager g;
    manager_init(&g);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        ask(&g, cases[i].verb, SECONDS(60));
        CHECK_STR(g.reply.problem, "");
        CHECK_STR(buf_str(&g.log), cases[i].log);
    }
    check_case(-1);
    manager_done(&g);
}

TEST(systemd_says_why_not)
{
    struct manager g;
    manager_init(&g);
    g.job_result = "timeout";
    ask(&g, UNIT_START, SECONDS(60));
    CHECK_STR(g.reply.problem, "StartUnit: timeout");
    g.refuse = "Unit chrony.service not found.";
    ask(&g, UNIT_ENABLE, SECONDS(60));
    CHECK_STR(g.reply.problem, "Unit chrony.service not found.");
    CHECK_STR(buf_str(&g.log), "EnableUnitFiles(chrony.service)");
    manager_done(&g);
}

TEST(systemd_is_asked_again_after_a_job_that_never_ends_and_a_lost_connection)
{
    struct manager g;
    manager_init(&g);
    g.job_result = NULL;
    ask(&g, UNIT_START, MSECONDS(20));
    CHECK_STR(g.reply.problem, "systemd: Connection timed out");
    manager_hang_up(&g);
    ask(&g, UNIT_LOOK, SECONDS(60));
    CHECK_STR(g.reply.problem, "");
    manager_hang_up(&g);
    for (int i = 0; i < 3; i++) {
        host_loop_turn(g.loop, MSECONDS(5));
    }
    ask(&g, UNIT_LOOK, SECONDS(60));
    CHECK_STR(g.reply.active, "active");
    manager_done(&g);
}

TEST(systemd_that_is_not_there_is_told)
{
    struct err err = { 0 };
    struct loop *loop = host_loop_new();
    struct systemd *s = systemd_new(loop, STR("/tmp/drydock-none/private"));
    struct units units = systemd_units(s);
    struct unit_request request = { .verb = UNIT_LOOK,
                                    .unit = STR("a.service"),
                                    .time_max = SECONDS(1) };
    CHECK(units.ask(units.ctx, &request, NULL, NULL, &err) < 0);
    CHECK_STR(str_from(err.msg), "systemd cannot be reached at '/tmp/drydock-none/private': No "
                                 "such file or directory");
    systemd_free(s);
    host_loop_free(loop);
}
