#include "host/host_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "host/package_lock.h"

#define LOCK_LOOK_MS 500 /* between two looks at the locks of package managers */
#define SHELL "/bin/sh"
#define HOST_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

extern char **environ;

static void fd_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* nothing was written through it that could be lost */
        *fd = -1;
    }
}

/* ── the machine's namespaces ──────────────────────────────────────────────────────────────── */

/* The mount namespace comes last: the others are found through this one's /proc. */
static int host_join(int32_t pid, struct err *err)
{
    static const char *const names[] = { "cgroup", "ipc", "uts", "net", "mnt" };
    int fds[ARRAY_LEN(names)];
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, names[i]); /* fits */
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0 && r == 0) {
            r = err_set_os(err, errno, "%s (the pod needs hostPID, privileged and user 0)", path);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (r == 0 && setns(fds[i], 0) != 0) {
            r = err_set_os(err, errno,
                           "cannot join the machine's %s namespace (the pod needs hostPID, "
                           "privileged and user 0)",
                           names[i]);
        }
        fd_close(&fds[i]);
    }
    if (r == 0 && chdir("/") != 0) {
        r = err_set_os(err, errno, "cannot enter the machine's root directory");
    }
    return r;
}

static bool host_reboot_required(void)
{
    static const char *const files[] = { "/run/reboot-required", "/run/reboot-needed",
                                         "/var/run/reboot-required", "/var/run/reboot-needed" };
    bool required = false;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct stat st;
        required = required || stat(files[i], &st) == 0;
    }
    return required;
}

/* ── the script ────────────────────────────────────────────────────────────────────────────── */

/* A file in memory that has the script; it stays open over exec, or no interpreter could read it.
 */
static int script_open(struct str script, struct err *err)
{
    int fd = memfd_create("script", 0);
    if (fd < 0) {
        return err_set_os(err, errno, "memfd_create");
    }
    size_t written = 0;
    while (written < script.n) {
        ssize_t n = write(fd, script.p + written, script.n - written);
        if (n <= 0) {
            (void)close(fd);
            return err_set_os(err, errno, "cannot keep the script");
        }
        written += (size_t)n;
    }
    return fd;
}

/* In the child, which only calls what is safe after fork. */
NORETURN static void script_exec(const struct host_run_spec *spec, int script, int output)
{
    sigset_t none;
    char path[32];
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* the parent blocks what it reads by signalfd */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    (void)dup2(output, STDOUT_FILENO);
    (void)dup2(output, STDERR_FILENO);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
    }
    if (spec->argv != NULL) {
        (void)execvp(spec->argv[0], spec->argv);
        dprintf(STDERR_FILENO, "cannot run %s: %s\n", spec->argv[0], strerror(errno));
        _exit(127);
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", script); /* fits */
    char *with_interpreter[] = { path, NULL };
    char *with_shell[] = { (char[]){ SHELL }, path, NULL };
    if (str_starts(spec->script, STR("#!"))) {
        (void)execve(path, with_interpreter, environ);
    } else {
        (void)execve(SHELL, with_shell, environ);
    }
    dprintf(STDERR_FILENO, "cannot run the script: %s\n", strerror(errno));
    _exit(127);
}

/* ── waiting for it ────────────────────────────────────────────────────────────────────────── */

struct host_child {
    pid_t pid;
    int output;  /* what it prints; -1 when it has closed that */
    int signals; /* signalfd: the child's end, and ours */
    bool ended;
    int status;
    usec_t hold_until; /* monotonic; it is to end, and a package manager is let finish; or NEVER */
    usec_t kill_at;    /* monotonic; USEC_NEVER: it has not been told to end */
};

static usec_t host_now(void)
{
    struct timespec t = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
    return SECONDS(t.tv_sec) + t.tv_nsec / 1000;
}

static void tail_add(struct host_run_result *ret, const char *bytes, size_t n)
{
    if (n >= HOST_RUN_TAIL_MAX) {
        bytes += n - HOST_RUN_TAIL_MAX;
        n = HOST_RUN_TAIL_MAX;
        ret->tail_n = 0;
    }
    size_t kept = MIN((size_t)ret->tail_n, HOST_RUN_TAIL_MAX - n);
    memmove(ret->tail, ret->tail + ret->tail_n - kept, kept);
    memcpy(ret->tail + kept, bytes, n);
    ret->tail_n = (uint32_t)(kept + n);
}

static void host_child_read(struct host_child *c, struct host_run_result *ret)
{
    char bytes[4096];
    ssize_t n = read(c->output, bytes, sizeof(bytes));
    if (n <= 0) {
        fd_close(&c->output);
        return;
    }
    tail_add(ret, bytes, (size_t)n);
    for (ssize_t done = 0; done < n;) {
        ssize_t w = write(STDOUT_FILENO, bytes + done, (size_t)(n - done));
        if (w <= 0) {
            break; /* nobody reads the log: the run goes on */
        }
        done += w;
    }
}

static void host_child_signal(struct host_child *c, struct host_run_result *ret)
{
    struct signalfd_siginfo info;
    if (read(c->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return;
    }
    if (info.ssi_signo != SIGCHLD) {
        ret->stopped = true;
        c->hold_until = MIN(c->hold_until, host_now() + HOST_RUN_STOP_HOLD);
    } else if (waitpid(c->pid, &c->status, WNOHANG) == c->pid) {
        c->ended = true;
    }
}

/* Tells it to end, and kills it when it does not. Returns how long the wait may be, in ms. */
static int host_child_stop(struct host_child *c)
{
    usec_t now = host_now();
    if (c->hold_until == USEC_NEVER) {
        return -1;
    }
    if (c->kill_at == USEC_NEVER) {
        if (now < c->hold_until && package_lock_held("")) {
            return LOCK_LOOK_MS;
        }
        c->kill_at = now + HOST_RUN_STOP_WAIT;
        (void)kill(-c->pid, SIGTERM);
    } else if (now >= c->kill_at) {
        (void)kill(-c->pid, SIGKILL);
    }
    return (int)(MAX(c->kill_at - now, (usec_t)0) / 1000 + 1);
}

/* Until the child has ended. What it left in the background does not hold the run up. */
static void host_child_wait(struct host_child *c, struct host_run_result *ret)
{
    while (!c->ended) {
        struct pollfd fds[] = { { .fd = c->signals, .events = POLLIN },
                                { .fd = c->output, .events = POLLIN } };
        int n = poll(fds, ARRAY_LEN(fds), host_child_stop(c));
        if (n > 0 && fds[1].revents != 0) {
            host_child_read(c, ret);
        }
        if (n > 0 && fds[0].revents != 0) {
            host_child_signal(c, ret);
        }
    }
    while (c->output >= 0) { /* what was printed before the end */
        struct pollfd fd = { .fd = c->output, .events = POLLIN };
        if (poll(&fd, 1, 0) <= 0) {
            break;
        }
        host_child_read(c, ret);
    }
    fd_close(&c->output);
}

static int host_watch_signals(struct err *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return err_set_os(err, errno, "sigprocmask");
    }
    (void)signal(SIGPIPE, SIG_IGN); /* a log that nobody reads ends no run */
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd < 0 ? err_set_os(err, errno, "signalfd") : fd;
}

static int host_start(const struct host_run_spec *spec, struct host_child *c, struct err *err)
{
    CLEANUP(fd_close)
    int script = -1;
    int pipes[2];
    int r = spec->argv == NULL ? script_open(spec->script, err) : 0;
    script = spec->argv == NULL ? r : -1;
    if (r < 0) {
        return r;
    }
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        return err_set_os(err, errno, "pipe");
    }
    c->output = pipes[0];
    c->pid = fork();
    if (c->pid == 0) {
        script_exec(spec, script, pipes[1]);
    }
    (void)close(pipes[1]);
    return c->pid < 0 ? err_set_os(err, errno, "fork") : 0;
}

int host_run(const struct host_run_spec *spec, struct host_run_result *ret, struct err *err)
{
    struct host_child c = {
        .output = -1, .signals = -1, .hold_until = USEC_NEVER, .kill_at = USEC_NEVER
    };
    *ret = (struct host_run_result){ 0 };
    int r = host_join(spec->pid, err);
    if (r == 0) {
        r = setenv("PATH", HOST_PATH, 1) == 0 ? 0 : err_set_os(err, errno, "cannot set PATH");
    }
    if (r == 0) {
        c.signals = host_watch_signals(err);
        r = MIN(c.signals, 0);
    }
    r = r == 0 ? host_start(spec, &c, err) : r;
    if (r == 0) {
        host_child_wait(&c, ret);
        ret->exit_code = WIFEXITED(c.status) ? WEXITSTATUS(c.status) : 128 + WTERMSIG(c.status);
        ret->reboot_required = host_reboot_required();
    }
    fd_close(&c.output);
    fd_close(&c.signals);
    return r;
}

/* ── reboot ────────────────────────────────────────────────────────────────────────────────── */

static int host_read_boot_id(char out[64], struct err *err)
{
    int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, errno, BOOT_ID_PATH);
    }
    ssize_t n = read(fd, out, 63);
    int why = errno;
    (void)close(fd); /* it was only read */
    if (n <= 0) {
        return err_set_os(err, why, BOOT_ID_PATH);
    }
    out[n] = '\0';
    return 0;
}

int host_reboot(int32_t pid, struct str expected, struct err *err)
{
    char text[64];
    int r = host_read_boot_id(text, err);
    if (r < 0) {
        return r;
    }
    struct str now = str_trim(str_from(text));
    if (!str_eq(now, expected)) {
        return err_set(err, ERR_GONE,
                       "the machine has rebooted since the order was given: its boot ID is " STR_FMT
                       ", not " STR_FMT,
                       STR_ARG(now), STR_ARG(expected));
    }
    struct host_run_result result;
    char *const systemctl[] = { (char[]){ "systemctl" }, (char[]){ "reboot" }, NULL };
    r = host_run(&(struct host_run_spec){ .pid = pid, .argv = systemctl }, &result, err);
    if (r == 0 && result.exit_code != 0) {
        /* Without systemctl: what systemd, and most other first processes, take for a reboot. */
        r = kill(pid, SIGRTMIN + 5) == 0
                ? 0
                : err_set_os(err, errno, "cannot tell the machine to reboot");
    }
    return r;
}
