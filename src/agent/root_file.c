/* root: what is done at a place that the walk has found. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/root_internal.h"
#include "base/buf.h"

#define XATTR_NAMES_MAX 4096u
#define XATTR_VALUE_MAX 4096u /* labels and access lists have some hundred bytes */
#define LINK_MAX_BYTES 4096u

static void fd_done(const int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* what had to be on the disk was synced before */
    }
}

static int place_fail(const struct root_place *place, int os, const char *what, struct err *err)
{
    return err_set_os(err, os, "%s '" STR_FMT "'", what, STR_ARG(place->path));
}

int root_stat(const struct root_place *place, struct stat *ret, bool *ret_exists, struct err *err)
{
    struct stat st;
    if (fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT) {
            return place_fail(place, errno, "look at", err);
        }
        *ret_exists = false;
        return 0;
    }
    *ret = st;
    *ret_exists = true;
    return 0;
}

static int read_all(const struct root_place *place, int fd, struct buf *text, struct err *err)
{
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return place_fail(place, errno, "read", err);
        }
        if (n == 0) {
            return 0;
        }
        buf_add(text, (struct str){ chunk, (size_t)n });
        if (text->full) {
            return err_set(err, ERR_LIMIT, "file '" STR_FMT "': more than %zu bytes",
                           STR_ARG(place->path), ROOT_FILE_MAX);
        }
    }
}

int root_read(const struct root_place *place, struct arena *out, struct str *ret, struct err *err)
{
    /* O_NONBLOCK: a pipe that somebody put there must not hold us. */
    CLEANUP(fd_done)
    int fd = root_open_name(place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 && errno == ENOENT) {
        return err_set(err, ERR_NOTFOUND, "there is no file '" STR_FMT "'", STR_ARG(place->path));
    }
    if (fd < 0 && errno == ELOOP) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is a symbolic link, want a file",
                       STR_ARG(place->path));
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        return place_fail(place, errno, "read", err);
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is no regular file", STR_ARG(place->path));
    }
    CLEANUP(buf_done)
    struct buf text = { .max = ROOT_FILE_MAX };
    int r = read_all(place, fd, &text, err);
    if (r < 0) {
        return r;
    }
    *ret = arena_str(out, buf_str(&text));
    return 0;
}

int root_readlink(const struct root_place *place, struct arena *out, struct str *ret,
                  struct err *err)
{
    char target[LINK_MAX_BYTES];
    ssize_t n = readlinkat(place->dir, place->name, target, sizeof(target));
    if (n < 0 || (size_t)n == sizeof(target)) {
        return place_fail(place, n < 0 ? errno : ENAMETOOLONG, "read link", err);
    }
    *ret = arena_str(out, (struct str){ target, (size_t)n });
    return 0;
}

/* ── replacing a file ──────────────────────────────────────────────────────────────────────── */

struct beside {
    char name[ROOT_NAME_MAX + 1];
};

/* Always the same name, so that what a crash left is found and overwritten by the next try. */
static struct beside beside_name(const struct root_place *place)
{
    struct beside beside;
    (void)snprintf(beside.name, sizeof(beside.name), ".%.240s.drydock", place->name); /* it fits */
    return beside;
}

struct str root_beside(const struct root_place *place, struct arena *out)
{
    struct beside beside = beside_name(place);
    size_t slash = str_rfind_char(place->path, '/');
    ASSERT(slash != SIZE_MAX);
    return arena_printf(out, STR_FMT "/%s", STR_ARG(str_sub(place->path, 0, slash)), beside.name);
}

static int write_all(int fd, struct str content)
{
    while (content.n > 0) {
        ssize_t n = write(fd, content.p, content.n);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        content = str_sub(content, (size_t)n, content.n - (size_t)n);
    }
    return 0;
}

/* A label or an access list of the old file is the new one's, too. A capability is not: it was
 * given to other bytes. */
static int copy_xattrs(int from, int to)
{
    char names[XATTR_NAMES_MAX];
    ssize_t n = flistxattr(from, names, sizeof(names));
    if (n < 0) {
        return errno == ENOTSUP || errno == EBADF ? 0 : -errno;
    }
    for (const char *name = names; name < names + n; name += strlen(name) + 1) {
        char value[XATTR_VALUE_MAX];
        struct str s = str_from(name);
        if (str_eq(s, STR("security.capability")) || str_eq(s, STR("security.ima")) ||
            str_eq(s, STR("security.evm"))) {
            continue;
        }
        ssize_t size = fgetxattr(from, name, value, sizeof(value));
        if (size < 0 || (fsetxattr(to, name, value, (size_t)size, 0) < 0 && errno != ENOTSUP)) {
            return -errno;
        }
    }
    return 0;
}

static int fill_beside(struct root *root, const struct root_place *place, int fd,
                       const struct root_file *file)
{
    root_step(root, "write");
    int r = write_all(fd, file->content);
    if (r == 0 && file->keep_xattrs) {
        CLEANUP(fd_done)
        int old = root_open_name(place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        r = old >= 0 ? copy_xattrs(old, fd) : 0;
    }
    /* The owner first: a change of owner takes set-user-ID bits away. */
    if (r == 0 && fchown(fd, file->uid, file->gid) < 0) {
        r = -errno;
    }
    if (r == 0 && fchmod(fd, file->mode) < 0) {
        r = -errno;
    }
    root_step(root, "fsync");
    if (r == 0 && fsync(fd) < 0) {
        r = -errno;
    }
    return r;
}

int root_write_beside(struct root *root, const struct root_place *place,
                      const struct root_file *file, struct err *err)
{
    struct beside beside = beside_name(place);
    root_step(root, "create");
    if (unlinkat(place->dir, beside.name, 0) < 0 && errno != ENOENT) {
        return place_fail(place, errno, "write beside", err);
    }
    int fd =
        openat(place->dir, beside.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return place_fail(place, errno, "write beside", err);
    }
    int r = fill_beside(root, place, fd, file);
    fd_done(&fd);
    if (r < 0) {
        (void)unlinkat(place->dir, beside.name, 0); /* the failure itself is told */
        return place_fail(place, -r, "write", err);
    }
    return 0;
}

static int sync_folder(struct root *root, const struct root_place *place, struct err *err)
{
    /* The walk has an O_PATH descriptor, which cannot be synced. */
    int fd = openat(place->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    root_step(root, "fsync folder");
    int os = fd < 0 || (fsync(fd) < 0 && errno != EINVAL) ? errno : 0;
    fd_done(&fd);
    return os != 0 ? place_fail(place, os, "sync the folder of", err) : 0;
}

/* A file that is mounted alone cannot be replaced: it is written into, and a crash may leave half
 * of it. The next check sees that. */
static int write_into(struct root *root, const struct root_place *place,
                      const struct root_file *file, struct err *err)
{
    CLEANUP(fd_done)
    int fd = root_open_name(place, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return place_fail(place, errno, "write into", err);
    }
    root_step(root, "write into");
    int r = write_all(fd, file->content);
    if (r == 0 &&
        (fchown(fd, file->uid, file->gid) < 0 || fchmod(fd, file->mode) < 0 || fsync(fd) < 0)) {
        r = -errno;
    }
    return r < 0 ? place_fail(place, -r, "write into", err) : root_remove_beside(root, place, err);
}

int root_take_place(struct root *root, const struct root_place *place, const struct root_file *file,
                    struct err *err)
{
    struct beside beside = beside_name(place);
    root_step(root, "rename");
    if (renameat(place->dir, beside.name, place->dir, place->name) < 0) {
        int os = errno;
        if (os == EBUSY) {
            return write_into(root, place, file, err);
        }
        (void)unlinkat(place->dir, beside.name, 0); /* the failure itself is told */
        return place_fail(place, os, "replace", err);
    }
    return sync_folder(root, place, err);
}

int root_replace(struct root *root, const struct root_place *place, const struct root_file *file,
                 struct err *err)
{
    int r = root_write_beside(root, place, file, err);
    return r < 0 ? r : root_take_place(root, place, file, err);
}

int root_remove_beside(struct root *root, const struct root_place *place, struct err *err)
{
    struct beside beside = beside_name(place);
    root_step(root, "unlink beside");
    if (unlinkat(place->dir, beside.name, 0) < 0 && errno != ENOENT) {
        return place_fail(place, errno, "remove what was written beside", err);
    }
    return 0;
}

/* ── the rest ──────────────────────────────────────────────────────────────────────────────── */

int root_remove(struct root *root, const struct root_place *place, bool folder, struct err *err)
{
    root_step(root, "unlink");
    if (unlinkat(place->dir, place->name, folder ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT) {
        return place_fail(place, errno, "remove", err);
    }
    return sync_folder(root, place, err);
}

int root_mkdir(struct root *root, const struct root_place *place, uint32_t mode, struct err *err)
{
    root_step(root, "mkdir");
    if (mkdirat(place->dir, place->name, mode) < 0 && errno != EEXIST) {
        return place_fail(place, errno, "make folder", err);
    }
    return sync_folder(root, place, err);
}

int root_symlink(struct root *root, const struct root_place *place, struct str target,
                 struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct beside beside = beside_name(place);
    root_step(root, "symlink");
    if (unlinkat(place->dir, beside.name, 0) < 0 && errno != ENOENT) {
        return place_fail(place, errno, "link beside", err);
    }
    if (symlinkat(arena_str(&tmp, target).p, place->dir, beside.name) < 0) {
        return place_fail(place, errno, "link", err);
    }
    root_step(root, "rename");
    if (renameat(place->dir, beside.name, place->dir, place->name) < 0) {
        int os = errno;
        (void)unlinkat(place->dir, beside.name, 0); /* the failure itself is told */
        return place_fail(place, os, "replace", err);
    }
    return sync_folder(root, place, err);
}

int root_set_owner(struct root *root, const struct root_place *place, uint32_t uid, uint32_t gid,
                   struct err *err)
{
    root_step(root, "chown");
    if (fchownat(place->dir, place->name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0) {
        return place_fail(place, errno, "set the owner of", err);
    }
    return 0;
}

int root_set_mode(struct root *root, const struct root_place *place, uint32_t mode, struct err *err)
{
    CLEANUP(fd_done)
    int fd = root_open_name(place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return place_fail(place, errno, "set the mode of", err);
    }
    root_step(root, "chmod");
    return fchmod(fd, mode) < 0 ? place_fail(place, errno, "set the mode of", err) : 0;
}

int root_give_folder(struct root *root, const struct root_place *place, uint32_t uid, uint32_t gid,
                     uint32_t mode, struct err *err)
{
    CLEANUP(fd_done)
    int fd = root_open_name(place, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        return place_fail(place, errno, "give away", err);
    }
    root_step(root, "give folder");
    return fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0
               ? place_fail(place, errno, "give away", err)
               : 0;
}

int root_write_kernel(struct root *root, const struct root_place *place, struct str content,
                      struct err *err)
{
    CLEANUP(fd_done)
    int fd = root_open_name(place, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return place_fail(place, errno, "write", err);
    }
    root_step(root, "write to the kernel");
    ssize_t n = write(fd, content.p, content.n);
    return n < 0 ? place_fail(place, errno, "write", err) : 0;
}

int root_slurp(struct root *root, struct str path, unsigned flags, struct arena *out,
               struct str *ret, bool *ret_exists, struct err *err)
{
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    struct err local = { 0 };
    int r = root_walk(root, path, flags, &place, &local);
    r = r < 0 ? r : root_read(&place, out, ret, &local);
    *ret_exists = r == 0;
    if (r < 0 && r != -ERR_NOTFOUND) {
        *err = local;
        return r;
    }
    return 0;
}

int root_append(struct root *root, const struct root_place *place, struct str content,
                struct err *err)
{
    root_step(root, "append");
    CLEANUP(fd_done)
    int fd = openat(place->dir, place->name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    int r = fd < 0 ? -errno : write_all(fd, content);
    root_step(root, "fsync");
    if (r == 0 && fsync(fd) < 0) {
        r = -errno;
    }
    return r < 0 ? place_fail(place, -r, "append to", err) : 0;
}

static int name_cmp(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void dir_done(DIR *const *dir)
{
    if (*dir != NULL) {
        (void)closedir(*dir); /* only read from */
    }
}

static int list_names(const struct root_place *place, struct arena *out, struct str **ret,
                      uint32_t *ret_n, struct err *err)
{
    int fd = root_open_name(place, O_RDONLY | O_DIRECTORY);
    CLEANUP(dir_done)
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int os = errno;
        fd_done(&fd);
        return os == ENOENT ? 0 : place_fail(place, os, "list", err);
    }
    uint32_t cap = 0;
    for (;;) {
        errno = 0;
        /* cppcheck-suppress readdirCalled */
        const struct dirent *entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe): one thread */
        if (entry == NULL) {
            break;
        }
        struct str name = str_from(entry->d_name);
        if (!str_eq(name, STR(".")) && !str_eq(name, STR(".."))) {
            ARENA_GROW(out, *ret, *ret_n, cap);
            (*ret)[(*ret_n)++] = arena_str(out, name);
        }
    }
    if (errno != 0) {
        return place_fail(place, errno, "list", err);
    }
    if (*ret_n > 1) {
        qsort(*ret, *ret_n, sizeof(**ret), name_cmp);
    }
    return 0;
}

int root_list(struct root *root, struct str path, unsigned flags, struct arena *out,
              struct str **ret, uint32_t *ret_n, struct err *err)
{
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    struct err local = { 0 };
    *ret = NULL;
    *ret_n = 0;
    int r = root_walk(root, path, flags, &place, &local);
    if (r == -ERR_NOTFOUND) {
        return 0;
    }
    if (r < 0) {
        *err = local;
        return r;
    }
    return list_names(&place, out, ret, ret_n, err);
}
