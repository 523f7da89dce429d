#include "tests/lib/agent_fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "sandbox/sim/virtual_loop.h"

#define STATE_DIR "/var/lib/drydock/agent"
#define KILLS_MAX 400 /* far more than any document of a test has steps */

static void command_ended(void *ctx)
{
    struct agent_fixture *f = ctx;
    f->command_on_end(f->command_ctx, &f->command_result);
}

/* The program ends a second later. */
static int play_command(void *ctx, const struct command_spec *command,
                        void (*on_end)(void *ctx, const struct command_result *result),
                        void *end_ctx, struct err *err)
{
    struct agent_fixture *f = ctx;
    if (f->on_command == NULL) {
        return err_set(err, ERR_IO, "no program is played here");
    }
    f->command_n++;
    f->command_result = (struct command_result){ .out = STR("") };
    f->on_command(f, command, &f->command_result);
    f->command_on_end = on_end;
    f->command_ctx = end_ctx;
    loop_timer_set(&f->command_end, virtual_loop_now(f->time) + SECONDS(1));
    return 0;
}

static void unit_ended(void *ctx)
{
    struct agent_fixture *f = ctx;
    f->unit_on_end(f->unit_ctx, &f->unit_reply);
}

/* The answer comes a second later. */
static int play_unit(void *ctx, const struct unit_request *request,
                     void (*on_end)(void *ctx, const struct unit_reply *reply), void *end_ctx,
                     struct err *err)
{
    struct agent_fixture *f = ctx;
    if (f->on_unit == NULL) {
        return err_set(err, ERR_IO, "no service manager is played here");
    }
    f->unit_reply = (struct unit_reply){ 0 };
    f->on_unit(f, request, &f->unit_reply);
    f->unit_on_end = on_end;
    f->unit_ctx = end_ctx;
    loop_timer_set(&f->unit_end, virtual_loop_now(f->time) + SECONDS(1));
    return 0;
}

void agent_fixture_init(struct agent_fixture *f)
{
    struct err err = { 0 };
    *f = (struct agent_fixture){ .rules = { .allowed = DISRUPTION_VISIT } };
    (void)snprintf(f->path, sizeof(f->path), "/tmp/drydock-agent-XXXXXX");
    CHECK(mkdtemp(f->path) != NULL);
    CHECK_EQ(chmod(f->path, 0755), 0);
    CHECK_EQ(root_open(&f->root, str_from(f->path), &err), 0);
    f->time = virtual_loop_new(1, SECONDS(1700000000));
    loop_timer_init(&f->command_end, virtual_loop_root(f->time), command_ended, f);
    loop_timer_init(&f->unit_end, virtual_loop_root(f->time), unit_ended, f);
}

static int remove_one(const char *path, const struct stat *st UNUSED, int kind UNUSED,
                      struct FTW *at UNUSED)
{
    return remove(path);
}

static void run_end(struct agent_fixture *f)
{
    if (f->converge.vertices != NULL) {
        converge_done(&f->converge);
    }
    f->converge = (struct converge){ 0 };
    f->idle = false;
}

void agent_fixture_done(struct agent_fixture *f)
{
    run_end(f);
    loop_timer_done(&f->command_end);
    loop_timer_done(&f->unit_end);
    virtual_loop_free(f->time);
    root_done(&f->root);
    CHECK_EQ(nftw(f->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    arena_done(&f->memory);
}

/* ── files ─────────────────────────────────────────────────────────────────────────────────── */

const char *agent_outside(struct agent_fixture *f, const char *path)
{
    return arena_printf(&f->memory, "%s%s", f->path, path).p;
}

void agent_mkdir(struct agent_fixture *f, const char *path)
{
    for (size_t i = 1; path[i - 1] != '\0'; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            struct str part = arena_printf(&f->memory, "%.*s", (int)i, path);
            (void)mkdir(agent_outside(f, part.p), 0755); /* it may be there */
        }
    }
}

void agent_write(struct agent_fixture *f, const char *path, const char *content)
{
    size_t slash = str_rfind_char(str_from(path), '/');
    if (slash > 0) {
        agent_mkdir(f, arena_str(&f->memory, str_sub(str_from(path), 0, slash)).p);
    }
    int fd = open(agent_outside(f, path), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, content, strlen(content)), strlen(content));
    CHECK_EQ(close(fd), 0);
}

struct str agent_read(struct agent_fixture *f, const char *path)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    char chunk[4096];
    int fd = open(agent_outside(f, path), O_RDONLY);
    if (fd < 0) {
        return STR("(none)");
    }
    for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;) {
        buf_add(&text, (struct str){ chunk, (size_t)n });
    }
    CHECK_EQ(close(fd), 0);
    return arena_str(&f->memory, buf_str(&text));
}

struct str agent_link(struct agent_fixture *f, const char *path)
{
    char target[4096];
    ssize_t n = readlink(agent_outside(f, path), target, sizeof(target));
    return n < 0 ? STR("(none)") : arena_str(&f->memory, (struct str){ target, (size_t)n });
}

uint32_t agent_mode(struct agent_fixture *f, const char *path)
{
    struct stat st;
    return lstat(agent_outside(f, path), &st) < 0 ? 0 : st.st_mode & 07777;
}

/* nftw has no argument of its own. */
static struct {
    struct agent_fixture *f;
    struct buf *out;
} tree;

static int add_one(const char *path, const struct stat *st, int kind UNUSED, struct FTW *at UNUSED)
{
    const char *inside = path + strlen(tree.f->path);
    if (str_starts(str_from(inside), STR(STATE_DIR))) {
        return 0;
    }
    buf_printf(tree.out, "%s %o %u", inside, st->st_mode, st->st_uid);
    if (S_ISREG(st->st_mode)) {
        buf_printf(tree.out, " %llu ", (unsigned long long)st->st_ino); /* not even replaced */
        buf_add(tree.out, agent_read(tree.f, inside));
    } else if (S_ISLNK(st->st_mode)) {
        buf_add(tree.out, agent_link(tree.f, inside));
    }
    buf_add_char(tree.out, '\n');
    return 0;
}

struct str agent_tree(struct agent_fixture *f)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    tree.f = f;
    tree.out = &out;
    CHECK_EQ(nftw(f->path, add_one, 16, FTW_PHYS), 0);
    return arena_str(&f->memory, buf_str(&out));
}

/* ── programs ──────────────────────────────────────────────────────────────────────────────── */

static void play_files(struct agent_fixture *f, const struct agent_play *play)
{
    for (size_t i = 0; i < ARRAY_LEN(play->files) && play->files[i].path != NULL; i++) {
        if (play->files[i].content != NULL) {
            agent_write(f, play->files[i].path, play->files[i].content);
        } else {
            CHECK_EQ(unlink(agent_outside(f, play->files[i].path)), 0);
        }
    }
}

void agent_play(struct agent_fixture *f, const struct command_spec *command,
                struct command_result *ret)
{
    struct str words = STR("");
    for (uint32_t i = 0; i < command->argv_n; i++) {
        words = arena_printf(&f->memory, STR_FMT "%s" STR_FMT, STR_ARG(words), i > 0 ? " " : "",
                             STR_ARG(command->argv[i]));
    }
    f->command_input = arena_str(&f->memory, command->input);
    for (const struct agent_play *play = f->plays; play->words != NULL; play++) {
        if (str_eq(words, str_from(play->words))) {
            play_files(f, play);
            ret->exit_code = play->exit_code;
            ret->out = str_from(play->out);
            return;
        }
    }
    check_fail(__FILE__, __LINE__, "nobody plays '%s'", words.p);
}

/* ── runs ──────────────────────────────────────────────────────────────────────────────────── */

static void on_idle(void *ctx)
{
    struct agent_fixture *f = ctx;
    f->idle = true;
}

static int read_document(struct agent_fixture *f, const char *yaml, struct err *err)
{
    struct ydoc doc;
    run_end(f);
    int r = ydoc_parse(str_from(yaml), &f->memory, &doc, err);
    r = r < 0 ? r : resource_list_read(&doc, &f->memory, &f->resources, err);
    for (uint32_t i = 0; r == 0 && f->on_resource != NULL && i < f->resources.n; i++) {
        f->on_resource(&f->resources.items[i]);
    }
    return r < 0 ? r : graph_build(&f->resources, &f->memory, &f->graph, err);
}

void agent_run(struct agent_fixture *f, const char *yaml)
{
    struct err err = { 0 };
    int r = read_document(f, yaml, &err);
    if (r < 0) {
        check_fail(__FILE__, __LINE__, "the document is refused: %s", err.msg);
    }
    struct converge_spec spec = { .loop = virtual_loop_root(f->time),
                                  .root = &f->root,
                                  .graph = &f->graph,
                                  .rules = f->rules,
                                  .state_dir = STR(STATE_DIR),
                                  .runner = { .run = play_command, .ctx = f },
                                  .units = { .ask = play_unit, .ctx = f },
                                  .on_idle = on_idle,
                                  .ctx = f };
    f->root.read_only = f->rules.noop;
    CHECK_EQ(converge_start(&f->converge, &spec, &err), 0);
    while (!f->idle) {
        CHECK(virtual_loop_step(f->time, virtual_loop_now(f->time) + DAYS(1)));
    }
}

void agent_noop(struct agent_fixture *f, const char *yaml)
{
    f->rules.noop = true;
    agent_run(f, yaml);
    f->rules.noop = false;
    f->root.read_only = false;
}

const char *agent_refused(struct agent_fixture *f, const char *yaml)
{
    struct err err = { 0 };
    CHECK(read_document(f, yaml, &err) < 0);
    return arena_str(&f->memory, str_from(err.msg)).p;
}

const struct vertex *agent_vertex(const struct agent_fixture *f, const char *name)
{
    for (uint32_t i = 0; i < f->resources.n; i++) {
        if (str_eq(f->resources.items[i].name, str_from(name))) {
            return &f->converge.engine.vertices[i];
        }
    }
    check_fail(__FILE__, __LINE__, "there is no resource %s", name);
}

struct str agent_said(struct agent_fixture *f, const char *name)
{
    const struct vertex *x = agent_vertex(f, name);
    return arena_printf(&f->memory, "%s%s%s%s%s", vertex_state_names[x->state],
                        x->changed ? ", changed" : "", x->refreshed ? ", refreshed" : "",
                        x->reason != NULL ? ": " : "", x->reason != NULL ? vertex_message(x) : "");
}

/* ── kills ─────────────────────────────────────────────────────────────────────────────────── */

static void on_step(void *ctx, const char *what UNUSED)
{
    int *left = ctx;
    if ((*left)-- == 0) {
        (void)kill(getpid(), SIGKILL);
    }
}

/* True when it was killed, false when it came to its end before. */
static bool run_killed(struct agent_fixture *f, const char *yaml, int n)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        f->root.on_step = on_step;
        f->root.step_ctx = &n;
        agent_run(f, yaml);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return WIFSIGNALED(status);
}

void agent_kill_everywhere(const char *yaml, void (*before)(struct agent_fixture *f),
                           void (*left)(struct agent_fixture *f),
                           void (*after)(struct agent_fixture *f))
{
    bool killed = true;
    int n = 0;
    for (; killed; n++) {
        CHECK(n < KILLS_MAX);
        check_case(n);
        struct agent_fixture f;
        agent_fixture_init(&f);
        before(&f);
        killed = run_killed(&f, yaml, n);
        left(&f);
        agent_run(&f, yaml);
        after(&f);
        agent_run(&f, yaml);
        CHECK_EQ(engine_count(&f.converge.engine).changed, 0);
        agent_fixture_done(&f);
    }
    check_case(-1);
    CHECK(n > 3); /* or nothing was ever written */
}
