#include "host/package_lock.h"

#include "base/defs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static const char *const lock_files[] = {
    "/var/lib/dpkg/lock-frontend", /* apt and others that call dpkg, for as long as they take */
    "/var/lib/dpkg/lock",
    "/var/lib/rpm/.rpm.lock",
    "/usr/lib/sysimage/rpm/.rpm.lock",
};

static bool file_is_locked(const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return false;
    }
    bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    (void)close(fd); /* it was only asked about */
    return held;
}

bool package_lock_held(const char *root)
{
    for (size_t i = 0; i < ARRAY_LEN(lock_files); i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s%s", root, lock_files[i]);
        if (n > 0 && (size_t)n < sizeof(path) && file_is_locked(path)) {
            return true;
        }
    }
    return false;
}
