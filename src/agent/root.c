/* root: walking a path. */
#include "agent/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/root_internal.h"

static int open_beneath(int dir, const char *name, uint64_t flags)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW,
        .resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
    };
    /* With O_PATH and O_NOFOLLOW the link itself is opened; only without RESOLVE_NO_SYMLINKS. */
    if ((flags & O_PATH) != 0) {
        how.resolve = RESOLVE_NO_MAGICLINKS;
    }
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

int root_open_name(const struct root_place *place, uint64_t flags)
{
    return open_beneath(place->dir, place->name, flags);
}

void root_step(struct root *root, const char *what)
{
    ASSERT(!root->read_only);
    if (root->on_step != NULL) {
        root->on_step(root->step_ctx, what);
    }
}

int root_open(struct root *root, struct str path, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str name = arena_str(&tmp, path);
    *root = (struct root){ .uid = geteuid(),
                           .gid = getegid(),
                           .process = str_eq(path, STR("/")) ? (uint32_t)getpid() : 1 };
    root->fd = open(name.p, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root->fd < 0 ? err_set_os(err, errno, "root '%s'", name.p) : 0;
}

void root_done(struct root *root)
{
    if (root->fd >= 0) {
        (void)close(root->fd); /* a name of a place, nothing to lose */
        root->fd = -1;
    }
}

void root_place_done(struct root_place *place)
{
    if (place->dir >= 0) {
        (void)close(place->dir); /* likewise */
        place->dir = -1;
    }
}

/* ── the walk ──────────────────────────────────────────────────────────────────────────────── */

struct walk {
    struct root *root;
    unsigned flags;
    struct str path; /* as it was asked for, for messages */
    int dirs[ROOT_DEPTH_MAX];
    uint32_t depth; /* the folder in which the walk stands is dirs[depth - 1] */
    uint32_t links;
    struct arena *tmp;
};

static void walk_done(struct walk *w)
{
    for (uint32_t i = 0; i < w->depth; i++) {
        (void)close(w->dirs[i]); /* a name of a place, nothing to lose */
    }
    w->depth = 0;
}

static bool is_trusted(const struct root *root, uint32_t uid)
{
    return uid == 0 || uid == root->uid;
}

static int check_folder(const struct walk *w, int fd, struct str name, struct err *err)
{
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
        return err_set_os(err, errno, "path '" STR_FMT "'", STR_ARG(w->path));
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_INVALID, "path '" STR_FMT "': '" STR_FMT "' is no folder",
                       STR_ARG(w->path), STR_ARG(name));
    }
    bool kernel = fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
                  fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == DEBUGFS_MAGIC;
    if (kernel && (w->flags & ROOT_WALK_KERNEL) == 0) {
        return err_set(err, ERR_DENIED,
                       "path '" STR_FMT "': '" STR_FMT "' is the kernel's; want the resource that "
                       "is made for it, such as sysctl",
                       STR_ARG(w->path), STR_ARG(name));
    }
    if ((w->flags & ROOT_WALK_UNSAFE) != 0 || kernel) {
        return 0;
    }
    if (!is_trusted(w->root, st.st_uid) && st.st_uid != w->root->owner) {
        return err_set(err, ERR_DENIED,
                       "path '" STR_FMT "': the folder '" STR_FMT "' belongs to user %u, want root",
                       STR_ARG(w->path), STR_ARG(name), (unsigned)st.st_uid);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return err_set(err, ERR_DENIED,
                       "path '" STR_FMT "': others may write into the folder '" STR_FMT
                       "' (mode %04o)",
                       STR_ARG(w->path), STR_ARG(name), (unsigned)(st.st_mode & 07777));
    }
    return 0;
}

static int walk_push(struct walk *w, int fd, struct str name, struct err *err)
{
    int r = w->depth == ROOT_DEPTH_MAX
                ? err_set(err, ERR_LIMIT, "path '" STR_FMT "': more than %u folders deep",
                          STR_ARG(w->path), ROOT_DEPTH_MAX)
                : check_folder(w, fd, name, err);
    if (r < 0) {
        (void)close(fd); /* a name of a place */
        return r;
    }
    w->dirs[w->depth++] = fd;
    return 0;
}

static int walk_make(struct walk *w, struct str name, struct err *err)
{
    root_step(w->root, "mkdir");
    if (mkdirat(w->dirs[w->depth - 1], name.p, 0755) < 0 && errno != EEXIST) {
        return err_set_os(err, errno, "path '" STR_FMT "': folder '" STR_FMT "'", STR_ARG(w->path),
                          STR_ARG(name));
    }
    return 0;
}

static int walk_names(struct walk *w, struct str rest, bool whole, struct str *ret_last,
                      struct err *err);

/* A link that root made, in a folder that is root's: where it leads, the walk goes. */
static int walk_link(struct walk *w, int fd, struct str name, struct err *err)
{
    char target[4096];
    struct stat st;
    struct statfs fs;
    ssize_t n = readlinkat(fd, "", target, sizeof(target));
    int r = fstat(fd, &st) < 0 ? -1 : fstatfs(fd, &fs);
    int os = errno;
    (void)close(fd); /* a name of a place */
    if (n < 0 || r < 0) {
        return err_set_os(err, os, "path '" STR_FMT "'", STR_ARG(w->path));
    }
    if (fs.f_type == PROC_SUPER_MAGIC) {
        return err_set(err, ERR_DENIED, "path '" STR_FMT "': the link '" STR_FMT "' is a process's",
                       STR_ARG(w->path), STR_ARG(name));
    }
    if (!is_trusted(w->root, st.st_uid) && (w->flags & ROOT_WALK_UNSAFE) == 0) {
        return err_set(err, ERR_DENIED,
                       "path '" STR_FMT "': the link '" STR_FMT "' belongs to user %u, want root",
                       STR_ARG(w->path), STR_ARG(name), (unsigned)st.st_uid);
    }
    if (++w->links > ROOT_LINKS_MAX || n == 0 || (size_t)n == sizeof(target)) {
        return err_set(err, ERR_LIMIT, "path '" STR_FMT "': more than %u links on the way",
                       STR_ARG(w->path), ROOT_LINKS_MAX);
    }
    struct str to = arena_str(w->tmp, (struct str){ target, (size_t)n });
    if (to.p[0] == '/') {
        for (; w->depth > 1; w->depth--) {
            (void)close(w->dirs[w->depth - 1]); /* a name of a place */
        }
    }
    struct str ignored;
    return walk_names(w, to, /* whole= */ true, &ignored, err);
}

static int walk_one(struct walk *w, struct str name, struct err *err)
{
    name = arena_str(w->tmp, name);
    if (str_eq(name, STR(".."))) {
        if (w->depth > 1) {
            (void)close(w->dirs[--w->depth]); /* a name of a place */
        }
        return 0;
    }
    int dir = w->dirs[w->depth - 1];
    int fd = open_beneath(dir, name.p, O_PATH);
    if (fd < 0 && errno == ENOENT && (w->flags & ROOT_WALK_MAKE) != 0) {
        int r = walk_make(w, name, err);
        if (r < 0) {
            return r;
        }
        fd = open_beneath(dir, name.p, O_PATH);
    }
    struct stat st;
    if (fd < 0 && errno == ENOENT) {
        return err_set(err, ERR_NOTFOUND, "path '" STR_FMT "': there is no folder '" STR_FMT "'",
                       STR_ARG(w->path), STR_ARG(name));
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        int os = errno;
        if (fd >= 0) {
            (void)close(fd); /* a name of a place */
        }
        return err_set_os(err, os, "path '" STR_FMT "'", STR_ARG(w->path));
    }
    return S_ISLNK(st.st_mode) ? walk_link(w, fd, name, err) : walk_push(w, fd, name, err);
}

/* Walks all names of `rest`, or all but the last one. */
static int walk_names(struct walk *w, struct str rest, bool whole, struct str *ret_last,
                      struct err *err)
{
    struct str name;
    struct str last = STR_NONE;
    while (str_split_next(&rest, '/', &name)) {
        if (name.n == 0 || str_eq(name, STR("."))) {
            continue;
        }
        int r = last.n > 0 ? walk_one(w, last, err) : 0;
        if (r < 0) {
            return r;
        }
        last = name;
    }
    if (whole && last.n > 0) {
        return walk_one(w, last, err);
    }
    *ret_last = last;
    return 0;
}

/* The last name is a link that is to be followed: its target takes the place of the path. */
static int walk_follow(struct walk *w, struct str *last, struct err *err)
{
    for (;;) {
        struct stat st;
        char target[4096];
        *last = arena_str(w->tmp, *last);
        int dir = w->dirs[w->depth - 1];
        if (fstatat(dir, last->p, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode)) {
            return 0; /* nothing there, or no link: the caller will see */
        }
        if (!is_trusted(w->root, st.st_uid) && (w->flags & ROOT_WALK_UNSAFE) == 0) {
            return err_set(err, ERR_DENIED, "path '" STR_FMT "': the link belongs to user %u",
                           STR_ARG(w->path), (unsigned)st.st_uid);
        }
        ssize_t n = readlinkat(dir, last->p, target, sizeof(target));
        if (n <= 0 || (size_t)n == sizeof(target) || ++w->links > ROOT_LINKS_MAX) {
            return err_set(err, ERR_LIMIT, "path '" STR_FMT "': more than %u links on the way",
                           STR_ARG(w->path), ROOT_LINKS_MAX);
        }
        struct str to = arena_str(w->tmp, (struct str){ target, (size_t)n });
        if (to.p[0] == '/') {
            for (; w->depth > 1; w->depth--) {
                (void)close(w->dirs[w->depth - 1]); /* a name of a place */
            }
        }
        int r = walk_names(w, to, /* whole= */ false, last, err);
        if (r < 0) {
            return r;
        }
        if (last->n == 0 || str_eq(*last, STR(".."))) {
            return err_set(err, ERR_INVALID, "path '" STR_FMT "': the link leads to no file",
                           STR_ARG(w->path));
        }
    }
}

int root_walk(struct root *root, struct str path, unsigned flags, struct root_place *ret,
              struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(walk_done)
    struct walk w = { .root = root, .flags = flags, .path = path, .tmp = &tmp };
    int top = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
    if (top < 0) {
        return err_set_os(err, errno, "path '" STR_FMT "'", STR_ARG(path));
    }
    struct str last = STR_NONE;
    int r = walk_push(&w, top, STR("/"), err);
    r = r < 0 ? r : walk_names(&w, path, /* whole= */ false, &last, err);
    if (r == 0 && (flags & ROOT_WALK_FOLLOW) != 0) {
        r = walk_follow(&w, &last, err);
    }
    if (r < 0) {
        return r;
    }
    if (last.n == 0 || last.n > ROOT_NAME_MAX) {
        return err_set(err, ERR_INVALID, "path '" STR_FMT "': want it to name a file",
                       STR_ARG(path));
    }
    *ret = (struct root_place){ .dir = w.dirs[--w.depth], .path = path };
    memcpy(ret->name, last.p, last.n);
    return 0;
}
