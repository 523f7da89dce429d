#include "host/systemd.h"

#include <errno.h>
#include <poll.h>

#include <event2/event.h>
#include <systemd/sd-bus.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "host/loop.h"

#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"
#define UNIT_INTERFACE "org.freedesktop.systemd1.Unit"

/* What a request waits for. */
enum stage { STAGE_CALL, STAGE_SECOND_CALL, STAGE_JOB };

struct systemd {
    struct loop *loop;
    struct arena memory; /* the address */
    struct str address;
    struct str socket;
    sd_bus *bus; /* NULL = not connected */
    struct event *io;
    struct loop_timer deadline;
    struct loop_timer soon; /* something is to be read or written at once */

    /* The request under way: */
    bool busy;
    bool answered; /* the answer of this stage is there */
    enum stage stage;
    enum unit_verb verb;
    struct arena request;
    struct str unit;
    struct str path; /* of the unit, or of the job */
    struct unit_reply reply;
    void (*on_end)(void *ctx, const struct unit_reply *reply);
    void *end_ctx;
};

/* Methods of the manager. */
static const struct {
    const char *method;
    bool job;   /* answers with a job, which ends later */
    bool files; /* takes a list of files, and the manager is to read them again */
    bool force; /* of those, takes a second truth value */
} verbs[UNIT_VERBS] = {
    [UNIT_LOOK] = { .method = "LoadUnit" },
    [UNIT_RELOAD_MANAGER] = { .method = "Reload" },
    [UNIT_START] = { .method = "StartUnit", .job = true },
    [UNIT_STOP] = { .method = "StopUnit", .job = true },
    [UNIT_RESTART] = { .method = "RestartUnit", .job = true },
    [UNIT_RELOAD_OR_RESTART] = { .method = "ReloadOrRestartUnit", .job = true },
    [UNIT_TRY_RESTART] = { .method = "TryRestartUnit", .job = true },
    [UNIT_ENABLE] = { .method = "EnableUnitFiles", .files = true, .force = true },
    [UNIT_DISABLE] = { .method = "DisableUnitFiles", .files = true },
    [UNIT_MASK] = { .method = "MaskUnitFiles", .files = true, .force = true },
    [UNIT_UNMASK] = { .method = "UnmaskUnitFiles", .files = true },
    [UNIT_RESET_FAILED] = { .method = "ResetFailedUnit" },
};

static void disconnect(struct systemd *s)
{
    if (s->io != NULL) {
        event_free(STEAL(s->io));
    }
    if (s->bus != NULL) {
        (void)sd_bus_close_unref(STEAL(s->bus)); /* answers NULL */
    }
    loop_timer_stop(&s->soon);
}

static void finish(struct systemd *s)
{
    s->busy = false;
    loop_timer_stop(&s->deadline);
    s->on_end(s->end_ctx, &s->reply);
}

static void set_problem(struct systemd *s, const char *what, const char *why)
{
    s->reply = (struct unit_reply){ .problem = arena_printf(&s->request, "%s: %s", what, why) };
}

/* The connection is of no use any more; the next request makes a new one. */
static void fail(struct systemd *s, const char *what, int os)
{
    char text[128];
    set_problem(s, what, strerror_r(os, text, sizeof(text)));
    disconnect(s);
    if (s->busy) {
        finish(s);
    }
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static int read_property(struct systemd *s, sd_bus_message *m)
{
    struct {
        const char *name;
        struct str *text;
    } texts[] = { { "LoadState", &s->reply.load },
                  { "ActiveState", &s->reply.active },
                  { "UnitFileState", &s->reply.file } };
    const char *name;
    const char *text;
    int r = sd_bus_message_read_basic(m, 's', &name);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (str_eq(str_from(name), str_from(texts[i].name))) {
            r = sd_bus_message_read(m, "v", "s", &text);
            *texts[i].text = r < 0 ? STR("") : arena_str(&s->request, str_from(text));
            return r;
        }
    }
    if (str_eq(str_from(name), STR("NeedDaemonReload"))) {
        int truth = 0;
        r = sd_bus_message_read(m, "v", "b", &truth);
        s->reply.need_reload = truth != 0;
        return r;
    }
    return sd_bus_message_skip(m, "v");
}

static int read_properties(struct systemd *s, sd_bus_message *m)
{
    int r = sd_bus_message_enter_container(m, 'a', "{sv}");
    while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
        r = read_property(s, m);
        r = r < 0 ? r : sd_bus_message_exit_container(m);
    }
    return r;
}

static int read_path(struct systemd *s, sd_bus_message *m)
{
    const char *path;
    int r = sd_bus_message_read_basic(m, 'o', &path);
    s->path = r < 0 ? STR("") : arena_str(&s->request, str_from(path));
    return r;
}

/* Only notes what came: the loop goes on with it. */
static int on_reply(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    struct systemd *s = ctx;
    (void)error; /* the message says it */
    int r = 0;
    s->answered = true;
    if (sd_bus_message_is_method_error(m, NULL) > 0) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        s->reply.problem =
            arena_str(&s->request, str_from(e->message != NULL ? e->message : e->name));
    } else if (s->verb == UNIT_LOOK && s->stage == STAGE_SECOND_CALL) {
        r = read_properties(s, m);
    } else if (s->verb == UNIT_LOOK || verbs[s->verb].job) {
        r = read_path(s, m);
    }
    if (r < 0) {
        s->reply.problem = STR("systemd's answer cannot be read");
    }
    return 1;
}

static int on_job_removed(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    struct systemd *s = ctx;
    uint32_t id;
    const char *path;
    const char *unit;
    const char *result;
    (void)error; /* nobody is to be told */
    if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0 || !s->busy ||
        s->stage != STAGE_JOB || !str_eq(str_from(path), s->path)) {
        return 0; /* of somebody else */
    }
    s->answered = true;
    if (!str_eq(str_from(result), STR("done")) && !str_eq(str_from(result), STR("skipped"))) {
        set_problem(s, verbs[s->verb].method, result);
    }
    return 0;
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static int add_arguments(const struct systemd *s, sd_bus_message *m)
{
    const char *unit = s->unit.p;
    if (verbs[s->verb].job) {
        return sd_bus_message_append(m, "ss", unit, "replace");
    }
    if (verbs[s->verb].files) {
        int r = sd_bus_message_append(m, "asb", 1, unit, /* runtime= */ 0);
        return r < 0 || !verbs[s->verb].force ? r : sd_bus_message_append(m, "b", 0);
    }
    return s->verb == UNIT_RELOAD_MANAGER ? 0 : sd_bus_message_append(m, "s", unit);
}

static int send_call(struct systemd *s, const char *path, const char *interface, const char *method,
                     const char *argument)
{
    sd_bus_message *m = NULL;
    int r = sd_bus_message_new_method_call(s->bus, &m, MANAGER, path, interface, method);
    r = r < 0                    ? r
        : argument != NULL       ? sd_bus_message_append(m, "s", argument)
        : s->stage == STAGE_CALL ? add_arguments(s, m)
                                 : 0;
    r = r < 0 ? r : sd_bus_call_async(s->bus, NULL, m, on_reply, s, UINT64_MAX);
    (void)sd_bus_message_unref(m); /* answers NULL */
    return r;
}

/* What follows the answer of a stage. True: the request is done. */
static bool advance(struct systemd *s)
{
    s->answered = false;
    if (s->reply.problem.n > 0) {
        return true;
    }
    int r = 0;
    if (s->stage == STAGE_CALL && s->verb == UNIT_LOOK) {
        s->stage = STAGE_SECOND_CALL;
        r = send_call(s, s->path.p, "org.freedesktop.DBus.Properties", "GetAll", UNIT_INTERFACE);
    } else if (s->stage == STAGE_CALL && verbs[s->verb].files) {
        s->stage = STAGE_SECOND_CALL;
        r = send_call(s, MANAGER_PATH, MANAGER_INTERFACE, "Reload", NULL);
    } else if (s->stage == STAGE_CALL && verbs[s->verb].job) {
        s->stage = STAGE_JOB;
    } else {
        return true;
    }
    if (r < 0) {
        set_problem(s, "systemd", "the question cannot be sent");
    }
    return r < 0;
}

/* ── the connection ────────────────────────────────────────────────────────────────────────── */

static void pump(struct systemd *s);

static void on_io(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd;
    (void)what;
    pump(ctx);
}

static void rearm(struct systemd *s)
{
    int events = sd_bus_get_events(s->bus);
    int fd = sd_bus_get_fd(s->bus);
    uint64_t timeout = UINT64_MAX;
    if (events < 0 || fd < 0 || sd_bus_get_timeout(s->bus, &timeout) < 0) {
        fail(s, "systemd", ENOTCONN);
        return;
    }
    if (s->io != NULL) {
        event_free(STEAL(s->io));
    }
    short what =
        (short)(((events & POLLIN) != 0 ? EV_READ : 0) | ((events & POLLOUT) != 0 ? EV_WRITE : 0));
    s->io = event_new(host_loop_base(s->loop), fd, what, on_io, s);
    ASSERT(s->io != NULL);
    int r = event_add(s->io, NULL);
    ASSERT(r == 0);
    if (timeout == 0) {
        loop_timer_pull(&s->soon, loop_now(s->loop));
    }
}

static void pump(struct systemd *s)
{
    int r;
    while ((r = sd_bus_process(s->bus, NULL)) > 0) {
        if (s->answered && s->busy && advance(s)) {
            rearm(s); /* before the end is told, which may ask the next */
            finish(s);
            return;
        }
    }
    if (r < 0) {
        fail(s, "the connection to systemd is lost", -r);
        return;
    }
    rearm(s);
}

static void on_soon(void *ctx)
{
    struct systemd *s = ctx;
    if (s->bus != NULL) {
        pump(s);
    }
}

static void on_deadline(void *ctx)
{
    fail(ctx, "systemd", ETIMEDOUT);
}

static int connect_bus(struct systemd *s, struct err *err)
{
    int r = sd_bus_new(&s->bus);
    r = r < 0 ? r : sd_bus_set_address(s->bus, s->address.p);
    r = r < 0 ? r : sd_bus_start(s->bus);
    r = r < 0 ? r
              : sd_bus_match_signal(s->bus, NULL, NULL, MANAGER_PATH, MANAGER_INTERFACE,
                                    "JobRemoved", on_job_removed, s);
    if (r < 0) {
        disconnect(s);
        return err_set_os(err, -r, "systemd cannot be reached at '" STR_FMT "'",
                          STR_ARG(s->socket));
    }
    return 0;
}

static int ask(void *ctx, const struct unit_request *request,
               void (*on_end)(void *ctx, const struct unit_reply *reply), void *end_ctx,
               struct err *err)
{
    struct systemd *s = ctx;
    ASSERT(!s->busy);
    arena_reset(&s->request);
    int r = s->bus == NULL ? connect_bus(s, err) : 0;
    if (r < 0) {
        return r;
    }
    s->stage = STAGE_CALL;
    s->verb = request->verb;
    s->unit = arena_str(&s->request, request->unit);
    s->path = STR("");
    s->reply = (struct unit_reply){ 0 };
    s->answered = false;
    r = send_call(s, MANAGER_PATH, MANAGER_INTERFACE, verbs[s->verb].method, NULL);
    if (r < 0) {
        disconnect(s);
        return err_set_os(err, -r, "ask systemd");
    }
    s->busy = true;
    s->on_end = on_end;
    s->end_ctx = end_ctx;
    loop_timer_set(&s->deadline, loop_now(s->loop) + request->time_max);
    loop_timer_pull(&s->soon, loop_now(s->loop));
    return 0;
}

/* As an address of D-Bus has it: anything else than these is %XX. */
static struct str make_address(struct str socket, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_add(&text, STR("unix:path="));
    for (size_t i = 0; i < socket.n; i++) {
        char c = socket.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     str_find_char(STR("-_/.*\\"), c) != SIZE_MAX;
        if (plain) {
            buf_add_char(&text, c);
        } else {
            buf_printf(&text, "%%%02x", (unsigned char)c);
        }
    }
    return arena_str(out, buf_str(&text));
}

struct systemd *systemd_new(struct loop *loop, struct str socket)
{
    struct systemd *s = ALLOC_NEW(struct systemd);
    *s = (struct systemd){ .loop = loop };
    s->socket = arena_str(&s->memory, socket);
    s->address = make_address(socket, &s->memory);
    loop_timer_init(&s->deadline, loop, on_deadline, s);
    loop_timer_init(&s->soon, loop, on_soon, s);
    return s;
}

void systemd_free(struct systemd *s)
{
    if (s == NULL) {
        return;
    }
    disconnect(s);
    loop_timer_done(&s->deadline);
    loop_timer_done(&s->soon);
    arena_done(&s->request);
    arena_done(&s->memory);
    alloc_free(s);
}

struct units systemd_units(struct systemd *s)
{
    return (struct units){ .ask = ask, .ctx = s };
}
