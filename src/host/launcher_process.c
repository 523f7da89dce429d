/* launcher: the process that starts programs. It knows nothing but its socket and its children. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/launcher_internal.h"

#define CHILDREN_MAX 16u

struct served {
    pid_t pid; /* 0 = free */
    int news;
};

struct server {
    int socket;
    int root; /* -1 = stays where it is */
    struct served children[CHILDREN_MAX];
    char request[LAUNCHER_BYTES_MAX];
};

static void tell(int news, int32_t pid, bool ended, int32_t status)
{
    struct launcher_news n = { .pid = pid, .ended = ended, .status = status };
    ssize_t written = write(news, &n, sizeof(n)); /* less than PIPE_BUF: all or nothing */
    (void)written;                                /* nobody is left to tell */
}

/* Cuts the strings; false when the request is not as we make them. */
static bool cut(const struct launcher_request *r, char *p, const char *end,
                char *words[LAUNCHER_WORDS_MAX + 4])
{
    uint32_t n = 0;
    uint32_t wanted = 1 + r->argv_n + r->env_n;
    if (r->argv_n == 0 || r->argv_n > LAUNCHER_WORDS_MAX || r->env_n > LAUNCHER_WORDS_MAX ||
        wanted > LAUNCHER_WORDS_MAX) {
        return false;
    }
    while (n < wanted && p < end) {
        size_t length = strnlen(p, (size_t)(end - p));
        if (p + length == end) {
            return false;
        }
        words[n++] = p;
        p += length + 1;
        if (n == 1 + r->argv_n) {
            words[n++] = NULL; /* argv's end */
            wanted++;
        }
    }
    words[n] = NULL;
    return n == wanted;
}

NORETURN static void become(const struct server *s, const struct launcher_request *r, char **words,
                            const int *fds)
{
    sigset_t none;
    ASSERT(words[0] != NULL && words[1] != NULL); /* a request has both, or it was refused */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    bool good = dup2(fds[LAUNCHER_FD_INPUT], 0) >= 0 && dup2(fds[LAUNCHER_FD_OUTPUT], 1) >= 0 &&
                dup2(fds[LAUNCHER_FD_OUTPUT], 2) >= 0;
    if (good && s->root >= 0) {
        good = fchdir(s->root) == 0 && chroot(".") == 0;
    }
    good = good && chdir(words[0]) == 0;
    if (good && (r->uid != geteuid() || r->gid != getegid())) {
        good = setgroups(0, NULL) == 0 && setgid(r->gid) == 0 && setuid(r->uid) == 0;
    }
    if (good && close_range(3, ~0U, 0) == 0) {
        (void)execve(words[1], &words[1], &words[2 + r->argv_n]);
    }
    dprintf(2, "cannot run '%s': %s\n", words[1], strerrordesc_np(errno));
    _exit(good && errno == ENOENT ? 127 : 126);
}

static void start(struct server *s, size_t n, const int *fds)
{
    struct launcher_request r;
    char *words[LAUNCHER_WORDS_MAX + 4] = { NULL };
    struct served *free_place = NULL;
    for (uint32_t i = 0; i < CHILDREN_MAX && free_place == NULL; i++) {
        free_place = s->children[i].pid == 0 ? &s->children[i] : NULL;
    }
    int os = n < sizeof(r) ? EINVAL : free_place == NULL ? EAGAIN : 0;
    if (os == 0) {
        memcpy(&r, s->request, sizeof(r));
        os = cut(&r, s->request + sizeof(r), s->request + n, words) ? 0 : EINVAL;
    }
    pid_t pid = os == 0 ? fork() : -1;
    if (pid == 0) {
        become(s, &r, words, fds);
    }
    if (pid < 0) {
        tell(fds[LAUNCHER_FD_NEWS], 0, true, os != 0 ? os : errno);
        (void)close(fds[LAUNCHER_FD_NEWS]); /* a pipe of which all was said */
    } else {
        (void)setpgid(pid, pid); /* also here: it must exist before we tell of it */
        *free_place = (struct served){ .pid = pid, .news = fds[LAUNCHER_FD_NEWS] };
        tell(free_place->news, pid, false, 0);
    }
    (void)close(fds[LAUNCHER_FD_INPUT]);  /* the child has its own */
    (void)close(fds[LAUNCHER_FD_OUTPUT]); /* likewise */
}

/* False at the end of the socket: whom we serve has gone. */
static bool receive(struct server *s)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * LAUNCHER_FDS)];
    } control;
    struct iovec part = { .iov_base = s->request, .iov_len = sizeof(s->request) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.room,
                              .msg_controllen = sizeof(control.room) };
    ssize_t n = recvmsg(s->socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) {
        return true;
    }
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (c == NULL || c->cmsg_len != CMSG_LEN(sizeof(int) * LAUNCHER_FDS)) {
        return false;
    }
    int fds[LAUNCHER_FDS];
    memcpy(fds, CMSG_DATA(c), sizeof(fds));
    start(s, (size_t)n, fds);
    return true;
}

static void reap(struct server *s)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (uint32_t i = 0; i < CHILDREN_MAX; i++) {
            if (s->children[i].pid == pid) {
                tell(s->children[i].news, pid, true, status);
                (void)close(s->children[i].news); /* a pipe of which all was said */
                s->children[i].pid = 0;
            }
        }
    }
}

void launcher_serve(int socket, int root)
{
    static struct server s; /* of a process of its own: nobody shares it */
    sigset_t child;
    (void)prctl(PR_SET_NAME, "launcher", 0, 0, 0);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child, NULL);
    s.socket = socket;
    s.root = root;
    int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        struct pollfd wait[] = { { .fd = socket, .events = POLLIN },
                                 { .fd = signals, .events = POLLIN } };
        if (signals < 0 || (poll(wait, ARRAY_LEN(wait), -1) < 0 && errno != EINTR)) {
            _exit(1);
        }
        if (wait[1].revents != 0) {
            struct signalfd_siginfo info;
            ssize_t n = read(signals, &info, sizeof(info));
            (void)n; /* waitpid says it better */
            reap(&s);
        }
        if (wait[0].revents != 0 && !receive(&s)) {
            _exit(0);
        }
    }
}
