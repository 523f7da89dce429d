#include "host/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int publish_write(int fd, struct str content)
{
    while (content.n > 0) {
        ssize_t n = write(fd, content.p, content.n);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n > 0) {
            content = str_sub(content, (size_t)n, content.n - (size_t)n);
        }
    }
    return 0;
}

int file_replace(struct str path, struct str content, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const char *target = arena_str(&tmp, path).p;
    struct str beside = arena_printf(&tmp, STR_FMT ".XXXXXX", STR_ARG(path));
    char *name = (char *)(uintptr_t)beside.p; /* in our own arena; mkostemp fills in its end */
    int fd = mkostemp(name, O_CLOEXEC);       /* with mode 0600 */
    if (fd < 0) {
        return err_set_os(err, errno, "write '%s'", target);
    }
    int failed = publish_write(fd, content);
    if (close(fd) < 0 && failed == 0) {
        failed = errno;
    }
    if (failed == 0 && rename(name, target) < 0) {
        failed = errno;
    }
    if (failed != 0) {
        (void)unlink(name); /* best effort: the failure above is what counts */
        return err_set_os(err, failed, "write '%s'", target);
    }
    return 0;
}
