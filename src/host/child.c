#include "host/child.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/alloc.h"
#include "host/loop.h"

struct child_pipe {
    struct child *child;
    int fd;
    struct event *event;
    struct buf text;
};

struct child {
    struct loop *loop; /* borrowed: from whoever started it */
    pid_t pid;
    int pidfd;
    struct event *exited;
    struct child_pipe out;
    struct child_pipe complaint;
    struct loop_timer deadline;
    usec_t time_max;
    struct err err;
    child_on_end on_end;
    void *ctx;
};

static void child_kill(struct child *c)
{
    /* The group first: it exists as soon as the child runs. Either may be gone already. */
    (void)kill(-c->pid, SIGKILL);
    (void)kill(c->pid, SIGKILL);
}

static void child_fail(struct child *c, enum err_code code, const char *what)
{
    if (c->err.code == 0) {
        (void)err_set(&c->err, code, "%s", what);
        child_kill(c);
    }
}

static void pipe_close(struct child_pipe *p)
{
    if (p->event != NULL) {
        event_free(STEAL(p->event));
    }
    if (p->fd >= 0) {
        (void)close(p->fd); /* only read from */
        p->fd = -1;
    }
}

static void pipe_read(struct child_pipe *p)
{
    while (p->fd >= 0) {
        char chunk[4096];
        ssize_t n = read(p->fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            pipe_close(p);
            return;
        }
        buf_add(&p->text, (struct str){ .p = chunk, .n = (size_t)n });
        if (p->text.full) {
            char what[96];
            (void)snprintf(what, sizeof(what), "it wrote more than %zu bytes", p->text.max);
            child_fail(p->child, ERR_LIMIT, what);
            pipe_close(p);
        }
    }
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    pipe_read(ctx);
}

static void child_free(struct child *c)
{
    if (c->exited != NULL) {
        event_free(c->exited);
    }
    pipe_close(&c->out);
    pipe_close(&c->complaint);
    buf_done(&c->out.text);
    buf_done(&c->complaint.text);
    loop_timer_done(&c->deadline);
    if (c->pidfd >= 0) {
        (void)close(c->pidfd); /* a name of a process, nothing to lose */
    }
    alloc_free(c);
}

static void on_exited(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    struct child *c = ctx;
    siginfo_t info = { 0 };
    int r = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG);
    if (r == 0 && info.si_pid == 0) {
        return;
    }
    /* What it has written is in the pipes. A grandchild that still holds them is not waited for. */
    pipe_read(&c->out);
    pipe_read(&c->complaint);
    bool exited = r == 0 && info.si_code == CLD_EXITED;
    struct child_result result = {
        .exit_code = exited ? info.si_status : -1,
        .signo = exited || r != 0 ? 0 : info.si_status,
        .out = buf_str(&c->out.text),
        .complaint = buf_str(&c->complaint.text),
        .err = c->err.code != 0 ? &c->err : NULL,
    };
    loop_timer_stop(&c->deadline);
    c->on_end(c->ctx, &result);
    child_free(c);
}

static void on_deadline(void *ctx)
{
    struct child *c = ctx;
    char what[96];
    (void)snprintf(what, sizeof(what), "it did not end within %lld s",
                   (long long)(c->time_max / SECONDS(1)));
    child_fail(c, ERR_TIMEOUT, what);
}

/* The file behind a command's name, as a shell would find it; STR_NONE and `err` when there is
 * none. */
static struct str child_find(const struct child_spec *spec, struct arena *tmp, struct err *err)
{
    if (str_find_char(spec->command, '/') != SIZE_MAX) {
        return arena_str(tmp, spec->command);
    }
    struct str path = STR_NONE;
    for (uint32_t i = 0; i < spec->env_n; i++) {
        struct str value;
        if (str_cut_prefix(spec->env[i], STR("PATH="), &value)) {
            path = value;
        }
    }
    struct str dir;
    while (path.n > 0 && str_split_next(&path, ':', &dir)) {
        struct str file =
            arena_printf(tmp, STR_FMT "/" STR_FMT, STR_ARG(dir), STR_ARG(spec->command));
        if (dir.n > 0 && access(file.p, X_OK) == 0) {
            return file;
        }
    }
    (void)err_set(err, ERR_NOTFOUND, "executable '" STR_FMT "' not found in PATH",
                  STR_ARG(spec->command));
    return STR_NONE;
}

static char *text_copy(struct arena *tmp, struct str s)
{
    struct str copy = arena_str(tmp, s);
    return (char *)(uintptr_t)copy.p; /* libc's vectors are not const */
}

static bool env_same_name(struct str a, struct str b)
{
    struct str name_a;
    struct str name_b;
    struct str rest;
    (void)str_cut(a, STR("="), &name_a, &rest); /* without '=' it is all name */
    (void)str_cut(b, STR("="), &name_b, &rest);
    return str_eq(name_a, name_b);
}

static char **child_env(const struct child_spec *spec, struct arena *tmp)
{
    char **env = ARENA_ARRAY(tmp, char *, (size_t)spec->env_n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < spec->env_n; i++) {
        bool later = false;
        for (uint32_t j = i + 1; j < spec->env_n && !later; j++) {
            later = env_same_name(spec->env[i], spec->env[j]);
        }
        if (!later) {
            env[n++] = text_copy(tmp, spec->env[i]);
        }
    }
    return env;
}

/* Spawns with `out` and `complaint` as its outputs; answers 0 or an errno. */
static int child_spawn(struct child *c, char *file, char **argv, char **env, const int ends[2])
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    (void)posix_spawn_file_actions_init(&files); /* glibc's cannot fail */
    (void)posix_spawnattr_init(&attr);
    sigset_t none;
    sigset_t pipe_only;
    (void)sigemptyset(&none);
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE); /* we ignore it, the child should not */
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &pipe_only);
    (void)posix_spawnattr_setpgroup(&attr, 0);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    int r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    r = r != 0 ? r : posix_spawn_file_actions_adddup2(&files, ends[0], 1);
    r = r != 0 ? r : posix_spawn_file_actions_adddup2(&files, ends[1], 2);
    r = r != 0 ? r : posix_spawn_file_actions_addclosefrom_np(&files, 3);
    r = r != 0 ? r : posix_spawn(&c->pid, file, &files, &attr, argv, env);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return r;
}

/* Makes a pipe whose reading end is `p`'s and whose writing end is the answer, or -errno. */
static int pipe_open(struct child_pipe *p, struct child *c, size_t max)
{
    int ends[2];
    *p = (struct child_pipe){ .child = c, .fd = -1, .text = { .max = max } };
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -errno;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* a pipe of ours takes it */
    p->fd = ends[0];
    return ends[1];
}

static struct event *child_watch(struct child *c, int fd, event_callback_fn fn, void *ctx)
{
    struct event *event = event_new(host_loop_base(c->loop), fd, EV_READ | EV_PERSIST, fn, ctx);
    ASSERT(event != NULL);
    int r = event_add(event, NULL);
    ASSERT(r == 0);
    return event;
}

/* The child runs: hang its descriptors into the loop. */
static int child_attach(struct child *c, struct err *err)
{
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->pidfd < 0) {
        int os = errno;
        child_kill(c);
        (void)waitpid(c->pid, NULL, 0); /* it was killed: nothing to learn */
        return err_set_os(err, os, "cannot watch process %d", (int)c->pid);
    }
    c->exited = child_watch(c, c->pidfd, on_exited, c);
    c->out.event = child_watch(c, c->out.fd, on_readable, &c->out);
    c->complaint.event = child_watch(c, c->complaint.fd, on_readable, &c->complaint);
    loop_timer_set(&c->deadline, loop_now(c->loop) + c->time_max);
    return 0;
}

int child_start(struct loop *loop, const struct child_spec *spec, child_on_end on_end, void *ctx,
                struct child **ret, struct err *err)
{
    ASSERT(spec->time_max > 0);
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str file = child_find(spec, &tmp, err);
    if (file.p == NULL) {
        return -(int)err->code;
    }
    char **argv = ARENA_ARRAY(&tmp, char *, (size_t)spec->args_n + 2);
    argv[0] = text_copy(&tmp, spec->command);
    for (uint32_t i = 0; i < spec->args_n; i++) {
        argv[i + 1] = text_copy(&tmp, spec->args[i]);
    }
    struct child *c = ALLOC_NEW(struct child);
    *c = (struct child){ .loop = loop, .pidfd = -1, .time_max = spec->time_max };
    c->on_end = on_end;
    c->ctx = ctx;
    loop_timer_init(&c->deadline, loop, on_deadline, c);
    int ends[2];
    ends[0] = pipe_open(&c->out, c, spec->output_max);
    ends[1] = pipe_open(&c->complaint, c, spec->output_max);
    int os = ends[0] < 0 ? -ends[0] : ends[1] < 0 ? -ends[1] : 0;
    if (os == 0) {
        os = child_spawn(c, text_copy(&tmp, file), argv, child_env(spec, &tmp), ends);
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (ends[i] >= 0) {
            (void)close(ends[i]); /* the child has its own copy */
        }
    }
    int r = os != 0 ? err_set_os(err, os, "cannot run '%s'", file.p) : child_attach(c, err);
    if (r < 0) {
        child_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void child_stop(struct child *c)
{
    if (c == NULL) {
        return;
    }
    child_kill(c);
    /* Returns as soon as the kernel has taken it down; a zombie would stay otherwise. */
    (void)waitpid(c->pid, NULL, 0);
    child_free(c);
}
