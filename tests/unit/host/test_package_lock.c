#include "host/package_lock.h"

#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that holds the lock, and the end of a pipe by which it says so. */
static pid_t hold_lock(const char *path)
{
    int pipes[2];
    char byte;
    CHECK_EQ(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd = open(path, O_RDWR | O_CREAT, 0640);
        if (fd < 0 || fcntl(fd, F_SETLK, &lock) != 0 || write(pipes[1], "x", 1) != 1) {
            _exit(1);
        }
        (void)pause();
        _exit(0);
    }
    (void)close(pipes[1]);
    CHECK_EQ(read(pipes[0], &byte, 1), 1);
    (void)close(pipes[0]);
    return pid;
}

TEST(package_lock_is_seen_while_somebody_holds_it)
{
    static const char *const folders[] = { "/var", "/var/lib", "/var/lib/dpkg" };
    char root[] = "/tmp/check-package-lock-XXXXXX";
    CHECK(mkdtemp(root) != NULL);
    CHECK(!package_lock_held(root)); /* there is no such file */
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char path[256];
        (void)snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        CHECK_EQ(mkdir(path, 0755), 0);
    }
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/var/lib/dpkg/lock", root);
    pid_t pid = hold_lock(path);
    CHECK(package_lock_held(root));
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK(!package_lock_held(root)); /* the file is there, and nobody holds it */
    CHECK_EQ(unlink(path), 0);
    for (size_t i = ARRAY_LEN(folders); i > 0; i--) {
        (void)snprintf(path, sizeof(path), "%s%s", root, folders[i - 1]);
        CHECK_EQ(rmdir(path), 0);
    }
    CHECK_EQ(rmdir(root), 0);
}
