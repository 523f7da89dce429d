#include "host/filewatch.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/alloc.h"
#include "host/file.h"
#include "host/loop.h"

#define FILEWATCH_LINKS_MAX 40u  /* the kernel's own limit on symbolic links in a way */
#define FILEWATCH_NAMES_MAX 256u /* folders deep, links included */

#define FOLDER_EVENTS                                                                              \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_MODIFY |            \
     IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define FILE_EVENTS                                                                                \
    (IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW)
#define WRITTEN (IN_CLOSE_WRITE | IN_MODIFY)
#define SELF (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)

/* A name in a watched folder; an empty name is the file itself. */
struct filewatch_name {
    int wd;
    struct str name;
    bool last; /* the file, not a folder or a link on the way */
};

struct filewatch {
    struct loop *loop;
    struct str path;
    void (*on_change)(void *ctx);
    void *ctx;
    struct arena memory; /* of `path` */

    int fd; /* inotify's; a new one for each walk, so that no old event can be taken for a new one
             */
    struct event *event;
    struct arena walk; /* of `names` */
    struct filewatch_name *names;
    uint32_t name_n;
    uint32_t name_cap;
    bool starved; /* the kernel refused a watch */

    bool there; /* the file, as of the last walk */
    struct file_mark mark;
    bool touched; /* its content was written to since */
    struct loop_timer settle;
    usec_t first; /* change that is being waited out */
};

/* ── the way to the file ───────────────────────────────────────────────────────────────────── */

static void filewatch_add(struct filewatch *w, const char *path, struct str name, bool last)
{
    int wd = inotify_add_watch(w->fd, path, name.n > 0 ? FOLDER_EVENTS : FILE_EVENTS);
    if (wd < 0) {
        /* No events come from a folder that may not be read; a removed one shows in the next. */
        w->starved |= errno == ENOSPC || errno == ENOMEM;
        return;
    }
    ARENA_GROW(&w->walk, w->names, w->name_n, w->name_cap);
    w->names[w->name_n++] =
        (struct filewatch_name){ .wd = wd, .name = arena_str(&w->walk, name), .last = last };
}

/* The first name of `*rest`, which loses it. */
static struct str filewatch_step(struct str *rest)
{
    struct str name = STR_NONE;
    struct str after = *rest;
    while (after.n > 0 && name.n == 0) {
        (void)str_cut(after, STR("/"), &name, &after);
    }
    *rest = after;
    return name;
}

/* Walks as the kernel does, and watches every name that could lead elsewhere. */
static void filewatch_walk(struct filewatch *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str rest = w->path;
    struct str folder = str_starts(rest, STR("/")) ? STR("/") : STR("./");
    uint32_t links = 0;
    for (struct str name = filewatch_step(&rest); name.n > 0; name = filewatch_step(&rest)) {
        struct stat st;
        struct str at = arena_printf(&tmp, STR_FMT STR_FMT, STR_ARG(folder), STR_ARG(name));
        bool last = filewatch_step(&(struct str){ .p = rest.p, .n = rest.n }).n == 0;
        filewatch_add(w, folder.p, name, last);
        if (w->name_n >= FILEWATCH_NAMES_MAX || lstat(at.p, &st) != 0) {
            return;
        }
        if (S_ISLNK(st.st_mode)) {
            char target[PATH_MAX];
            ssize_t n = readlink(at.p, target, sizeof(target));
            if (n <= 0 || (size_t)n == sizeof(target) || ++links > FILEWATCH_LINKS_MAX) {
                return;
            }
            rest = arena_printf(&tmp, "%.*s/" STR_FMT, (int)n, target, STR_ARG(rest));
            folder = target[0] == '/' ? STR("/") : folder;
        } else if (S_ISDIR(st.st_mode)) {
            folder = arena_printf(&tmp, STR_FMT "/", STR_ARG(at));
        } else {
            filewatch_add(w, at.p, STR_NONE, /* last= */ true);
            return;
        }
    }
}

/* ── events ────────────────────────────────────────────────────────────────────────────────── */

static bool filewatch_concerns(struct filewatch *w, const struct inotify_event *e)
{
    if ((e->mask & IN_Q_OVERFLOW) != 0) {
        w->touched = true;
        return true;
    }
    struct str name = e->len > 0 ? str_from(e->name) : STR_NONE;
    for (uint32_t i = 0; i < w->name_n; i++) {
        const struct filewatch_name *watched = &w->names[i];
        if (watched->wd != e->wd) {
            continue;
        }
        if ((e->mask & SELF) != 0 || str_eq(watched->name, name)) {
            w->touched |= watched->last && (e->mask & WRITTEN) != 0;
            return true;
        }
    }
    return false;
}

/* Reads all that is there; true when any of it concerns the file. */
static bool filewatch_read(struct filewatch *w)
{
    _Alignas(struct inotify_event) char bytes[4096];
    bool any = false;
    ssize_t n;
    while ((n = read(w->fd, bytes, sizeof(bytes))) > 0) {
        for (size_t at = 0; at < (size_t)n;) {
            const struct inotify_event *e = (const void *)(bytes + at);
            any |= filewatch_concerns(w, e);
            at += sizeof(*e) + e->len;
        }
    }
    return any;
}

static void filewatch_on_event(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    struct filewatch *w = ctx;
    usec_t now = loop_now(w->loop);
    if (!filewatch_read(w)) {
        return;
    }
    w->first = w->settle.armed && w->first != 0 ? w->first : now;
    loop_timer_set(&w->settle, MIN(now + FILEWATCH_SETTLE, w->first + FILEWATCH_SETTLE_MAX));
}

static void filewatch_close(struct filewatch *w)
{
    if (w->event != NULL) {
        event_free(STEAL(w->event));
    }
    if (w->fd >= 0) {
        (void)close(w->fd);
        w->fd = -1;
    }
}

/* New watches first, then what the file is now: what changes after that is an event. */
static int filewatch_open(struct filewatch *w, struct err *err)
{
    struct err ignored = { 0 };
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, errno, "watch '" STR_FMT "'", STR_ARG(w->path));
    }
    filewatch_close(w);
    w->fd = fd;
    w->event = event_new(host_loop_base(w->loop), fd, EV_READ | EV_PERSIST, filewatch_on_event, w);
    if (w->event == NULL || event_add(w->event, NULL) != 0) {
        out_of_memory(0);
    }
    arena_reset(&w->walk);
    w->names = NULL;
    w->name_n = 0;
    w->name_cap = 0;
    w->starved = false;
    filewatch_walk(w);
    w->there = file_mark(w->path, &w->mark, &ignored) == 0;
    return 0;
}

static void filewatch_settled(void *ctx)
{
    struct filewatch *w = ctx;
    struct err ignored = { 0 };
    const struct file_mark mark = w->mark;
    bool there = w->there;
    w->first = 0;
    (void)filewatch_read(w); /* what has come since belongs to the same change */
    int r = filewatch_open(w, &ignored);
    if (r < 0 || w->starved) {
        loop_timer_set(&w->settle, loop_now(w->loop) + FILEWATCH_RETRY);
    }
    if (r < 0) {
        return; /* the old watches stay, and so does what they saw */
    }
    bool changed = w->touched || there != w->there || (there && !file_mark_eq(&mark, &w->mark));
    w->touched = false;
    if (changed) {
        w->on_change(w->ctx); /* last: it may free the watch */
    }
}

struct filewatch *filewatch_new(struct loop *loop, struct str path, void (*on_change)(void *ctx),
                                void *ctx, struct err *err)
{
    ASSERT(path.n > 0);
    struct filewatch *w = ALLOC_NEW(struct filewatch);
    *w = (struct filewatch){ .loop = loop, .on_change = on_change, .ctx = ctx, .fd = -1 };
    w->memory.first = PATH_MAX;
    w->path = arena_str(&w->memory, path);
    loop_timer_init(&w->settle, loop, filewatch_settled, w);
    if (filewatch_open(w, err) < 0) {
        filewatch_free(w);
        return NULL;
    }
    if (w->starved) {
        loop_timer_set(&w->settle, loop_now(loop) + FILEWATCH_RETRY);
    }
    return w;
}

void filewatch_free(struct filewatch *w)
{
    if (w == NULL) {
        return;
    }
    filewatch_close(w);
    loop_timer_done(&w->settle);
    arena_done(&w->walk);
    arena_done(&w->memory);
    alloc_free(w);
}
