/* launcher: the side of the process that is served. */
#include "host/launcher.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "host/launcher_internal.h"
#include "host/loop.h"

struct launcher {
    int socket;
    pid_t pid;
};

struct launcher_job {
    struct loop *loop;
    int32_t pid; /* 0 = not known yet */
    int out;
    int news;
    struct event *out_event;
    struct event *news_event;
    struct loop_timer deadline;
    struct buf text;
    bool timed_out;
    bool ended;
    int32_t status;
    void (*on_end)(void *ctx, const struct launcher_result *result);
    void *ctx;
};

int launcher_new(struct str root, struct launcher **ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    int ends[2];
    int top = -1;
    if (!str_eq(root, STR("/"))) {
        top = open(arena_str(&tmp, root).p, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (top < 0) {
            return err_set_os(err, errno, "root '" STR_FMT "'", STR_ARG(root));
        }
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        return err_set_os(err, errno, "launcher");
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]); /* the other side's */
        launcher_serve(ends[1], top);
    }
    int os = errno;
    (void)close(ends[1]); /* the child's */
    if (top >= 0) {
        (void)close(top); /* likewise */
    }
    if (pid < 0) {
        (void)close(ends[0]); /* nobody is on the other side */
        return err_set_os(err, os, "launcher");
    }
    struct launcher *l = ALLOC_NEW(struct launcher);
    *l = (struct launcher){ .socket = ends[0], .pid = pid };
    *ret = l;
    return 0;
}

void launcher_free(struct launcher *l)
{
    if (l == NULL) {
        return;
    }
    (void)close(l->socket);         /* which tells it to end */
    (void)waitpid(l->pid, NULL, 0); /* it does so at once */
    alloc_free(l);
}

/* ── a job ─────────────────────────────────────────────────────────────────────────────────── */

static void fd_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* only read from, or handed over */
        *fd = -1;
    }
}

static void job_free(struct launcher_job *j)
{
    if (j->out_event != NULL) {
        event_free(j->out_event);
    }
    if (j->news_event != NULL) {
        event_free(j->news_event);
    }
    fd_close(&j->out);
    fd_close(&j->news);
    loop_timer_done(&j->deadline);
    buf_done(&j->text);
    alloc_free(j);
}

static void job_read(struct launcher_job *j)
{
    for (;;) {
        char chunk[4096];
        ssize_t n = j->out < 0 ? 0 : read(j->out, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n == 0 && j->out_event != NULL) {
            event_free(STEAL(j->out_event));
        }
        if (n <= 0) {
            return;
        }
        size_t room = LAUNCHER_OUTPUT_MAX - j->text.n;
        buf_add(&j->text, (struct str){ chunk, MIN((size_t)n, room) });
    }
}

static void on_output(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    job_read(ctx);
}

static void job_end(struct launcher_job *j)
{
    job_read(j); /* what it has written is in the pipe; nobody waits for those it left behind */
    struct launcher_result result = {
        .exit_code = j->pid == 0              ? 126
                     : WIFSIGNALED(j->status) ? 128 + WTERMSIG(j->status)
                                              : WEXITSTATUS(j->status),
        .timed_out = j->timed_out,
        .out = buf_str(&j->text),
    };
    loop_timer_stop(&j->deadline);
    j->on_end(j->ctx, &result);
    job_free(j);
}

static void on_news(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    struct launcher_job *j = ctx;
    struct launcher_news news;
    for (;;) {
        ssize_t n = read(j->news, &news, sizeof(news));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return;
        }
        if (n != (ssize_t)sizeof(news)) {
            /* The launcher itself is gone: its children cannot be told of. */
            j->pid = 0;
            break;
        }
        j->pid = news.pid;
        j->status = news.status;
        if (news.ended) {
            break;
        }
    }
    job_end(j);
}

static void on_deadline(void *ctx)
{
    struct launcher_job *j = ctx;
    j->timed_out = true;
    if (j->pid > 0) {
        (void)kill(-j->pid, SIGKILL); /* it may have ended just now */
    }
}

/* ── a request ─────────────────────────────────────────────────────────────────────────────── */

static int add_word(struct buf *out, struct str word, struct err *err)
{
    if (str_find_char(word, '\0') != SIZE_MAX) {
        return err_set(err, ERR_INVALID, "an argument or variable has a NUL in it");
    }
    buf_add(out, word);
    buf_add_char(out, '\0');
    return 0;
}

static int make_request(const struct launcher_command *c, struct buf *out, struct err *err)
{
    struct launcher_request head = {
        .argv_n = c->argv_n, .env_n = c->env_n, .uid = c->uid, .gid = c->gid
    };
    buf_add(out, (struct str){ (const char *)&head, sizeof(head) });
    int r = add_word(out, c->cwd.n > 0 ? c->cwd : STR("/"), err);
    for (uint32_t i = 0; i < c->argv_n && r == 0; i++) {
        r = add_word(out, c->argv[i], err);
    }
    for (uint32_t i = 0; i < c->env_n && r == 0; i++) {
        r = add_word(out, c->env[i], err);
    }
    if (r == 0 && (out->full || c->argv_n + c->env_n >= LAUNCHER_WORDS_MAX)) {
        r = err_set(err, ERR_LIMIT, "a command has at most %u words and %zu bytes",
                    LAUNCHER_WORDS_MAX, LAUNCHER_BYTES_MAX);
    }
    return r;
}

/* The input as a file in memory: it can be read at any pace, and nobody has to feed it. */
static int make_input(struct str input, struct err *err)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || (input.n > 0 && write(fd, input.p, input.n) != (ssize_t)input.n) ||
        lseek(fd, 0, SEEK_SET) < 0) {
        int os = errno;
        fd_close(&fd);
        return err_set_os(err, os, "input of a command");
    }
    return fd;
}

static int send_request(struct launcher *l, struct str bytes, const int *fds, struct err *err)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * LAUNCHER_FDS)];
    } control = { 0 };
    struct iovec part = { .iov_base = (void *)(uintptr_t)bytes.p, .iov_len = bytes.n };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.room,
                              .msg_controllen = sizeof(control.room) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * LAUNCHER_FDS);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * LAUNCHER_FDS);
    return sendmsg(l->socket, &message, MSG_NOSIGNAL) < 0 ? err_set_os(err, errno, "launcher") : 0;
}

static int job_pipes(struct launcher_job *j, int *fds, struct err *err)
{
    int out[2];
    int news[2];
    if (pipe2(out, O_CLOEXEC) < 0) {
        return err_set_os(err, errno, "launcher");
    }
    j->out = out[0];
    fds[LAUNCHER_FD_OUTPUT] = out[1];
    if (pipe2(news, O_CLOEXEC) < 0) {
        return err_set_os(err, errno, "launcher");
    }
    j->news = news[0];
    fds[LAUNCHER_FD_NEWS] = news[1];
    (void)fcntl(j->out, F_SETFL, O_NONBLOCK); /* a pipe of ours takes it */
    (void)fcntl(j->news, F_SETFL, O_NONBLOCK);
    return 0;
}

static struct event *job_watch(struct launcher_job *j, int fd, event_callback_fn fn)
{
    struct event *event = event_new(host_loop_base(j->loop), fd, EV_READ | EV_PERSIST, fn, j);
    ASSERT(event != NULL);
    int r = event_add(event, NULL);
    ASSERT(r == 0);
    return event;
}

int launcher_run(struct launcher *l, struct loop *loop, const struct launcher_command *command,
                 void (*on_end)(void *ctx, const struct launcher_result *result), void *ctx,
                 struct err *err)
{
    ASSERT(command->argv_n > 0);
    ASSERT(command->time_max > 0);
    CLEANUP(buf_done)
    struct buf request = { .max = LAUNCHER_BYTES_MAX };
    int fds[LAUNCHER_FDS] = { -1, -1, -1 };
    struct launcher_job *j = ALLOC_NEW(struct launcher_job);
    *j = (struct launcher_job){ .loop = loop, .out = -1, .news = -1, .on_end = on_end, .ctx = ctx };
    loop_timer_init(&j->deadline, loop, on_deadline, j);
    int r = make_request(command, &request, err);
    r = r < 0 ? r : job_pipes(j, fds, err);
    if (r == 0) {
        fds[LAUNCHER_FD_INPUT] = make_input(command->input, err);
        r = fds[LAUNCHER_FD_INPUT] < 0 ? -(int)err->code : 0;
    }
    r = r < 0 ? r : send_request(l, buf_str(&request), fds, err);
    for (size_t i = 0; i < LAUNCHER_FDS; i++) {
        fd_close(&fds[i]);
    }
    if (r < 0) {
        job_free(j);
        return r;
    }
    j->out_event = job_watch(j, j->out, on_output);
    j->news_event = job_watch(j, j->news, on_news);
    loop_timer_set(&j->deadline, loop_now(loop) + command->time_max);
    return 0;
}
