#include "host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define PATH_BYTES_MAX 4096u /* PATH_MAX of Linux, its NUL included */

/* Paths come from configuration: they may hold anything. */
static int path_text(struct str path, char out[PATH_BYTES_MAX], struct err *err)
{
    if (path.n == 0) {
        return err_set(err, ERR_INVALID, "the file name is empty");
    }
    if (path.n >= PATH_BYTES_MAX || str_find_char(path, '\0') != SIZE_MAX) {
        return err_set(err, ERR_INVALID, "no file can have a name of %zu bytes like this", path.n);
    }
    memcpy(out, path.p, path.n);
    out[path.n] = '\0';
    return 0;
}

bool file_mark_eq(const struct file_mark *a, const struct file_mark *b)
{
    return a->inode == b->inode && a->mtime_ns == b->mtime_ns && a->size == b->size;
}

int file_mark(struct str path, struct file_mark *ret, struct err *err)
{
    char name[PATH_BYTES_MAX];
    int r = path_text(path, name, err);
    if (r < 0) {
        return r;
    }
    struct stat st;
    if (stat(name, &st) < 0) {
        return err_set_os(err, errno, "file '%s'", name);
    }
    *ret = (struct file_mark){
        .inode = st.st_ino,
        .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .size = st.st_size,
    };
    return 0;
}

static int fd_read(int fd, const char *name, struct buf *text, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return err_set_os(err, errno, "file '%s'", name);
    }
    if (S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_INVALID, "file '%s': is a directory", name);
    }
    for (;;) {
        char chunk[8192];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_set_os(err, errno, "file '%s'", name);
        }
        if (n == 0) {
            return 0;
        }
        buf_add(text, (struct str){ .p = chunk, .n = (size_t)n });
        if (text->full) {
            return err_set(err, ERR_LIMIT, "file '%s': is longer than %zu bytes", name, text->max);
        }
    }
}

int file_read(struct str path, size_t max, struct arena *out, struct str *ret, struct err *err)
{
    char name[PATH_BYTES_MAX];
    int r = path_text(path, name, err);
    if (r < 0) {
        return r;
    }
    /* Without O_NONBLOCK a FIFO in its place would hold the process for ever. */
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_set_os(err, errno, "file '%s'", name);
    }
    CLEANUP(buf_done)
    struct buf text = { .max = max };
    r = fd_read(fd, name, &text, err);
    (void)close(fd); /* was only read from */
    if (r < 0) {
        return r;
    }
    *ret = arena_str(out, buf_str(&text));
    return 0;
}

static int write_all(int fd, struct str content)
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
    int failed = write_all(fd, content);
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
