#include "host/no_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

/* The exit code of a child that has entered and then does `try`; 0 is what it answers for EPERM. */
static int in_child(int (*try)(void))
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct err err = { 0 };
        if (no_exec_enter(&err) < 0) {
            _exit(100);
        }
        _exit(try());
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static char *const argv[] = { NULL };

static int try_execve(void)
{
    (void)execve("/bin/true", argv, argv);
    return errno == EPERM ? 0 : 1;
}

static int try_execveat(void)
{
    int fd = open("/bin/true", O_PATH | O_CLOEXEC);
    (void)syscall(SYS_execveat, fd, "", argv, argv, AT_EMPTY_PATH);
    return errno == EPERM ? 0 : 1;
}

static int try_grandchild(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(try_execve());
    }
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : 2;
}

static int try_files(void)
{
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    char byte;
    return fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : 1;
}

TEST(no_exec_refuses_every_way_to_become_another_program)
{
    CHECK_EQ(in_child(try_execve), 0);
    CHECK_EQ(in_child(try_execveat), 0);
    CHECK_EQ(in_child(try_grandchild), 0);
}

TEST(no_exec_leaves_everything_else_alone)
{
    CHECK_EQ(in_child(try_files), 0);
}
