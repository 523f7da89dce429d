#include "agent/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/watch_table.h"
#include "base/alloc.h"
#include "base/map.h"

/* Of a folder only what happens to names: how its other files are written is nobody's business, and
 * a busy folder must not keep the agent awake. */
#define FOLDER_EVENTS                                                                              \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
#define FILE_EVENTS (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define SELF_FOLDER_EVENTS (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define GONE_EVENTS (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)
#define SAME_FILE_EVENTS                                                                           \
    (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB) /* the walk leads where it led                        \
                                              */

enum blind { BLIND_NOT, BLIND_FULL, BLIND_REMOTE, BLIND_OTHER };

struct watch_path {
    uint32_t owner;
    uint8_t kind;
    uint8_t blind;
    bool stale;     /* to be walked again */
    int held;       /* WATCH_KERNEL: what keeps the kernel from forgetting it; -1 = nothing */
    uint32_t first; /* of its entries in the table */
    struct str path;
};

/* A folder in which paths are, for what a mount may cover. */
struct watch_folder {
    uint64_t device;
    uint64_t inode;
};

struct watch {
    struct watch_spec spec;
    struct arena memory;
    int fds[WATCH_SOURCES];
    int kernel_fds[WATCH_SOURCES]; /* what an epoll instance of fds[] polls */
    struct watch_table table;
    struct watch_path *paths;
    uint32_t path_n;
    uint32_t path_cap;
    uint32_t *stale;
    uint32_t stale_n;
    uint32_t stale_cap;
    struct map folders; /* by path: struct watch_folder */
};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* nothing was written to it */
        *fd = -1;
    }
}

struct watch *watch_new(const struct watch_spec *spec, struct err *err)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) {
        (void)err_set_os(err, errno, "watch files"); /* NULL says that it failed */
        return NULL;
    }
    struct watch *w = ALLOC_NEW(struct watch);
    *w = (struct watch){ .spec = *spec };
    for (size_t i = 0; i < WATCH_SOURCES; i++) {
        w->fds[i] = -1;
        w->kernel_fds[i] = -1;
    }
    w->fds[WATCH_SOURCE_FILES] = fd;
    watch_table_init(&w->table, fd, spec->watches_max);
    return w;
}

void watch_free(struct watch *w)
{
    if (w == NULL) {
        return;
    }
    for (uint32_t i = 0; i < w->path_n; i++) {
        close_fd(&w->paths[i].held);
    }
    for (size_t i = 0; i < WATCH_SOURCES; i++) {
        close_fd(&w->fds[i]);
        close_fd(&w->kernel_fds[i]);
    }
    watch_table_done(&w->table);
    map_done(&w->folders);
    arena_done(&w->memory);
    alloc_free(w);
}

/* ── the way to a path ─────────────────────────────────────────────────────────────────────── */

struct walk {
    struct watch *w;
    uint32_t path;
    int dirs[ROOT_DEPTH_MAX];
    uint32_t depth;
    uint32_t links;
    struct str rest; /* still to go */
    struct arena tmp;
};

static void walk_pop_to(struct walk *k, uint32_t depth)
{
    while (k->depth > depth) {
        close_fd(&k->dirs[--k->depth]);
    }
}

static void walk_done(struct walk *k)
{
    walk_pop_to(k, 0);
    arena_done(&k->tmp);
}

static struct str walk_name(struct walk *k)
{
    struct str name = STR_NONE;
    while (k->rest.n > 0 && (name.n == 0 || str_eq(name, STR(".")))) {
        (void)str_cut(k->rest, STR("/"), &name, &k->rest); /* the last one has no slash */
    }
    return str_eq(name, STR(".")) ? STR_NONE : name;
}

static bool walk_is_at_end(const struct walk *k)
{
    for (size_t i = 0; i < k->rest.n; i++) {
        if (k->rest.p[i] != '/') {
            return false;
        }
    }
    return true;
}

static void walk_watch(struct walk *k, int fd, uint32_t mask, struct str name)
{
    struct watch_path *p = &k->w->paths[k->path];
    int r = watch_table_put(&k->w->table, fd, mask, name, k->path, &p->first);
    if (r < 0 && p->blind != BLIND_FULL) {
        p->blind = r == -ENOSPC ? BLIND_FULL : BLIND_OTHER;
    }
}

/* The link's target takes its place. False: it leads nowhere that can be watched. */
static bool walk_link(struct walk *k, int fd)
{
    char target[PATH_MAX];
    struct statfs fs;
    ssize_t n = readlinkat(fd, "", target, sizeof(target));
    if (n <= 0 || (size_t)n == sizeof(target) || ++k->links > WATCH_LINKS_MAX ||
        fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC) {
        k->w->paths[k->path].blind = BLIND_OTHER;
        return false;
    }
    k->rest = arena_printf(&k->tmp, "%.*s/" STR_FMT, (int)n, target, STR_ARG(k->rest));
    if (target[0] == '/') {
        walk_pop_to(k, 1);
    }
    return true;
}

/* What is at the end of the way. */
static void walk_end(struct walk *k, int fd, const struct stat *st)
{
    struct watch_path *p = &k->w->paths[k->path];
    walk_watch(k, fd, S_ISDIR(st->st_mode) ? SELF_FOLDER_EVENTS : FILE_EVENTS, STR_NONE);
    if (p->kind == WATCH_KERNEL) {
        close_fd(&p->held);
        p->held = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
}

/* One name; false when the way ends with it. */
static bool walk_step(struct walk *k, struct str name)
{
    const struct watch_path *p = &k->w->paths[k->path];
    struct stat st;
    name = arena_str(&k->tmp, name);
    if (str_eq(name, STR(".."))) {
        walk_pop_to(k, MAX(k->depth - 1, 1u));
        return true;
    }
    int dir = k->dirs[k->depth - 1];
    bool last = walk_is_at_end(k);
    walk_watch(k, dir, FOLDER_EVENTS, name);
    int fd = openat(dir, name.p, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool more = false;
    if (fd < 0 || fstat(fd, &st) < 0) {
        /* missing: the folder will tell */
    } else if (S_ISLNK(st.st_mode)) {
        more = (!last || p->kind != WATCH_LINK) && walk_link(k, fd);
    } else if (last) {
        walk_end(k, fd, &st);
    } else if (S_ISDIR(st.st_mode) && k->depth < ROOT_DEPTH_MAX) {
        k->dirs[k->depth++] = fd;
        return true;
    }
    close_fd(&fd);
    return more;
}

/* File systems on which others change files without this kernel's knowing. */
static bool is_remote(int fd)
{
    static const uint32_t kinds[] = {
        0x6969 /* nfs */,      0x517b /* smb */,       0xff534d42 /* cifs */, 0xfe534d42 /* smb2 */,
        0x65735546 /* fuse */, 0x01021997 /* 9p */,    0x00c36400 /* ceph */, 0x5346414f /* afs */,
        0x01161970 /* gfs2 */, 0x7461636f /* ocfs2 */,
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if ((uint32_t)fs.f_type == kinds[i]) {
            return true;
        }
    }
    return false;
}

static void walk_path(struct watch *w, uint32_t path)
{
    CLEANUP(walk_done)
    struct walk k = { .w = w, .path = path, .rest = w->paths[path].path };
    struct watch_path *p = &w->paths[path];
    uint32_t old = p->first;
    p->first = WATCH_TABLE_NONE;
    p->blind = BLIND_NOT;
    k.dirs[0] = fcntl(w->spec.root->fd, F_DUPFD_CLOEXEC, 3);
    if (k.dirs[0] < 0) {
        p->blind = BLIND_OTHER;
    } else {
        k.depth = 1;
        for (struct str name = walk_name(&k); name.n > 0 && walk_step(&k, name);) {
            name = walk_name(&k);
        }
        if (p->blind == BLIND_NOT && is_remote(k.dirs[k.depth - 1])) {
            p->blind = BLIND_REMOTE;
        }
    }
    watch_table_drop(&w->table, old); /* after the new ones: what both need is not forgotten */
}

/* ── what is told ──────────────────────────────────────────────────────────────────────────── */

static void tell(struct watch *w, uint32_t path, enum watch_news news)
{
    w->spec.on_news(w->spec.ctx, w->paths[path].owner, news);
}

static void make_stale(struct watch *w, uint32_t path)
{
    if (!w->paths[path].stale) {
        w->paths[path].stale = true;
        ARENA_GROW(&w->memory, w->stale, w->stale_n, w->stale_cap);
        w->stale[w->stale_n++] = path;
    }
}

static void make_all_stale(struct watch *w)
{
    for (uint32_t i = 0; i < w->path_n; i++) {
        make_stale(w, i);
        tell(w, i, WATCH_CHANGED);
    }
}

static void walk_stale(struct watch *w)
{
    for (uint32_t i = 0; i < w->stale_n; i++) {
        w->paths[w->stale[i]].stale = false;
        if (w->paths[w->stale[i]].path.n > 0) {
            walk_path(w, w->stale[i]);
        }
    }
    w->stale_n = 0;
}

struct found {
    struct watch *w;
    uint32_t mask;
};

static void on_found(void *ctx, uint32_t path)
{
    const struct found *f = ctx;
    if ((f->mask & ~(uint32_t)(SAME_FILE_EVENTS | IN_ISDIR)) != 0) {
        make_stale(f->w, path);
    }
    tell(f->w, path, (f->mask & IN_MODIFY) != 0 ? WATCH_WRITING : WATCH_CHANGED);
}

static void take_event(struct watch *w, const struct inotify_event *e)
{
    struct found f = { .w = w, .mask = e->mask };
    if ((e->mask & IN_Q_OVERFLOW) != 0) {
        make_all_stale(w); /* what was lost may have been anything */
    } else if ((e->mask & GONE_EVENTS) != 0) {
        watch_table_each(&w->table, e->wd, on_found, &f);
        if ((e->mask & IN_IGNORED) != 0) {
            watch_table_forget(&w->table, e->wd);
        }
    } else {
        watch_table_find(&w->table, e->wd, e->len > 0 ? str_from(e->name) : STR_NONE, on_found, &f);
    }
}

static void read_files(struct watch *w)
{
    _Alignas(struct inotify_event) char bytes[16384];
    ssize_t n;
    while ((n = read(w->fds[WATCH_SOURCE_FILES], bytes, sizeof(bytes))) > 0) {
        for (size_t at = 0; at < (size_t)n;) {
            const struct inotify_event *e = (const void *)(bytes + at);
            take_event(w, e);
            at += sizeof(*e) + e->len;
        }
    }
    walk_stale(w);
}

/* ── mounts, swap, the host's name ─────────────────────────────────────────────────────────── */

static const enum watch_kind source_kinds[WATCH_SOURCES] = {
    [WATCH_SOURCE_FILES] = WATCH_NONE,
    [WATCH_SOURCE_MOUNTS] = WATCH_MOUNTS,
    [WATCH_SOURCE_SWAPS] = WATCH_SWAPS,
    [WATCH_SOURCE_HOSTNAME] = WATCH_HOSTNAME,
};

/* The kernel answers a poll of these files once for each change, and they are readable at any time;
 * so each has an epoll instance of its own, which is readable exactly when there is news. */
static bool open_source(struct watch *w, enum watch_source source)
{
    char path[64];
    static const char *const names[WATCH_SOURCES] = {
        [WATCH_SOURCE_SWAPS] = "proc/swaps", [WATCH_SOURCE_HOSTNAME] = "proc/sys/kernel/hostname"
    };
    if (w->fds[source] >= 0) {
        return true;
    }
    (void)snprintf(path, sizeof(path), "proc/%u/mountinfo", (unsigned)w->spec.root->process);
    int file = openat(w->spec.root->fd, names[source] != NULL ? names[source] : path,
                      O_RDONLY | O_CLOEXEC);
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = { .events = EPOLLPRI | EPOLLET };
    if (file < 0 || fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, file, &wanted) < 0) {
        close_fd(&file);
        close_fd(&fd);
        return false;
    }
    w->kernel_fds[source] = file;
    w->fds[source] = fd;
    return true;
}

/* What a folder is now; zeroes when it is missing. */
static struct watch_folder look_at_folder(const struct watch *w, const char *path)
{
    struct stat st;
    if (fstatat(w->spec.root->fd, path[1] == '\0' ? "." : path + 1, &st, 0) < 0) {
        return (struct watch_folder){ 0 };
    }
    return (struct watch_folder){ .device = st.st_dev, .inode = st.st_ino };
}

static struct str folder_of(struct str path)
{
    size_t slash = str_rfind_char(path, '/');
    return slash == SIZE_MAX || slash == 0 ? STR("/") : str_sub(path, 0, slash);
}

static void note_folder(struct watch *w, struct str path)
{
    struct str folder = folder_of(path);
    if (map_find(&w->folders, folder) == NULL) {
        struct watch_folder *x = ARENA_NEW(&w->memory, struct watch_folder);
        *x = look_at_folder(w, arena_str(&w->memory, folder).p);
        (void)map_put(&w->folders, folder, x); /* it was not there */
    }
}

/* inotify knows files, not paths: something mounted over a folder takes its paths elsewhere. */
static void find_covered(struct watch *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    MAP_EACH (&w->folders, item) {
        struct watch_folder *was = map_item_value(item);
        struct str name = map_item_name(item);
        struct watch_folder now = look_at_folder(w, arena_str(&tmp, name).p);
        if (now.device == was->device && now.inode == was->inode) {
            continue;
        }
        *was = now;
        for (uint32_t i = 0; i < w->path_n; i++) {
            if (w->paths[i].path.n > 0 && str_eq(folder_of(w->paths[i].path), name)) {
                make_stale(w, i);
                tell(w, i, WATCH_CHANGED);
            }
        }
    }
    walk_stale(w);
}

static void read_kernel(struct watch *w, enum watch_source source)
{
    struct epoll_event ignored;
    (void)epoll_wait(w->fds[source], &ignored, 1, 0); /* it may be taken already: see above */
    for (uint32_t i = 0; i < w->path_n; i++) {
        if (w->paths[i].kind == source_kinds[source]) {
            tell(w, i, source == WATCH_SOURCE_MOUNTS ? WATCH_MOUNTED : WATCH_CHANGED);
        }
    }
    if (source == WATCH_SOURCE_MOUNTS) {
        find_covered(w);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

void watch_add(struct watch *w, uint32_t owner, enum watch_kind kind, struct str path)
{
    ASSERT(kind != WATCH_NONE);
    ARENA_GROW(&w->memory, w->paths, w->path_n, w->path_cap);
    struct watch_path *p = &w->paths[w->path_n++];
    *p = (struct watch_path){
        .owner = owner, .kind = (uint8_t)kind, .held = -1, .first = WATCH_TABLE_NONE
    };
    for (enum watch_source s = WATCH_SOURCE_MOUNTS; s < WATCH_SOURCES; s++) {
        if (source_kinds[s] == kind) {
            p->blind = open_source(w, s) ? BLIND_NOT : BLIND_OTHER;
            return;
        }
    }
    if (kind == WATCH_CLOCK) {
        p->blind = BLIND_OTHER;
        return;
    }
    p->path = arena_str(&w->memory, path);
    /* Without it nothing is lost but a mount over a folder, until the next look at everything. */
    if (kind != WATCH_KERNEL && open_source(w, WATCH_SOURCE_MOUNTS)) {
        note_folder(w, p->path);
    }
    walk_path(w, w->path_n - 1);
}

struct adding {
    struct watch *w;
    uint32_t owner;
};

static void add_more(void *ctx, enum watch_kind kind, struct str path)
{
    const struct adding *a = ctx;
    watch_add(a->w, a->owner, kind, path);
}

void watch_resource(struct watch *w, uint32_t owner, const struct resource *r)
{
    struct adding a = { .w = w, .owner = owner };
    if (r->problem.n == 0) { /* or nothing that happens makes it right */
        resource_watch(r, add_more, &a);
    }
}

int watch_fd(const struct watch *w, enum watch_source source)
{
    return w->fds[source];
}

void watch_read(struct watch *w, enum watch_source source)
{
    if (source == WATCH_SOURCE_FILES) {
        read_files(w);
    } else if (w->fds[source] >= 0) {
        read_kernel(w, source);
    }
}

void watch_each_blind(const struct watch *w, void (*fn)(void *ctx, uint32_t owner, const char *why),
                      void *ctx)
{
    static const char *const why[] = {
        [BLIND_FULL] = "the kernel has no more watches to give (fs.inotify.max_user_watches)",
        [BLIND_REMOTE] = "other machines may change this file system",
        [BLIND_OTHER] = "nothing tells of its changes",
    };
    for (uint32_t i = 0; i < w->path_n; i++) {
        if (w->paths[i].blind != BLIND_NOT) {
            fn(ctx, w->paths[i].owner, why[w->paths[i].blind]);
        }
    }
}

void watch_retry(struct watch *w)
{
    for (uint32_t i = 0; i < w->path_n; i++) {
        if (w->paths[i].blind != BLIND_NOT && w->paths[i].path.n > 0) {
            walk_path(w, i);
        }
    }
}
