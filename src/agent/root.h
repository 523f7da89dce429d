/*
 * root: the file tree of the machine, and the only way in which resources reach it.
 *
 * A path is walked name by name below the root, which is "/" or, inside a pod, /proc/1/root. Every
 * folder on the way must belong to root (or to whom the agent runs as) and be closed to writers who
 * are not; a symbolic link is followed only if root made it, and stays below the root. So nobody
 * who is not root can lead a write elsewhere. The last name is never followed here.
 *
 * Files are replaced, not written: whoever reads, and whoever finds the disk after a power cut, has
 * the old content or the new one. `on_step` is called before each call that changes the disk, so
 * that tests can end the process at every one of them.
 */
#pragma once

#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"

#define ROOT_NAME_MAX 255u /* NAME_MAX */
#define ROOT_DEPTH_MAX 64u /* folders of a path */
#define ROOT_LINKS_MAX 16u /* symbolic links on the way */
#define ROOT_FILE_MAX ((size_t)16 * 1024 * 1024)

struct root {
    int fd;       /* O_PATH */
    uint32_t uid; /* who is trusted beside 0: as whom the agent runs */
    uint32_t gid;
    uint32_t owner; /* whose folders are good beside root's, for files of an account; 0 = nobody's.
                       His links are not: they may lead to files that he may not touch */
    uint32_t process; /* a process that sees the mounts of this tree: we, or the machine's first */
    bool read_only;   /* asserted before every change: a run that only tells has no way to write */
    void (*on_step)(void *ctx, const char *what); /* NULL in the product */
    void *step_ctx;
};

NODISCARD
int root_open(struct root *root, struct str path, struct err *err);
void root_done(struct root *root);

/* The folder of a path, held open, and the last name in it. */
struct root_place {
    int dir; /* -1 = none */
    char name[ROOT_NAME_MAX + 1];
    struct str path; /* borrowed: the whole, for messages */
};

enum root_walk_flags {
    ROOT_WALK_UNSAFE = 1 << 0, /* writers on the way are accepted */
    ROOT_WALK_FOLLOW = 1 << 1, /* if the last name is a link of root's, go to where it leads */
    ROOT_WALK_KERNEL = 1 << 2, /* /proc, /sys and /dev may be walked */
    ROOT_WALK_MAKE = 1 << 3,   /* folders that are missing are made, 0755 */
};

/* -ERR_NOTFOUND when a folder on the way is missing, -ERR_DENIED when somebody else may write on
 * the way. */
NODISCARD
int root_walk(struct root *root, struct str path, unsigned flags, struct root_place *ret,
              struct err *err);
void root_place_done(struct root_place *place); /* accepts a zeroed one whose dir is -1 */
#define ROOT_PLACE_NONE ((struct root_place){ .dir = -1 })

/* What is there, links not followed. `*ret_exists` is false when nothing is. */
NODISCARD
int root_stat(const struct root_place *place, struct stat *ret, bool *ret_exists, struct err *err);
/* A regular file. -ERR_NOTFOUND when there is nothing. */
NODISCARD
int root_read(const struct root_place *place, struct arena *out, struct str *ret, struct err *err);
NODISCARD
int root_readlink(const struct root_place *place, struct arena *out, struct str *ret,
                  struct err *err);

struct root_file {
    struct str content;
    uint32_t uid;
    uint32_t gid;
    uint32_t mode;
    bool keep_xattrs; /* those of the file that is replaced, but for capabilities */
};

/* Writes the file beside its place under a name of its own (root_beside), owner, mode and
 * attributes before the first byte can be seen, and has it on the disk. */
NODISCARD
int root_write_beside(struct root *root, const struct root_place *place,
                      const struct root_file *file, struct err *err);
/* "/etc/.motd.drydock": where root_write_beside has put it. */
struct str root_beside(const struct root_place *place, struct arena *out);
/* Takes it to its place; a place that is a mount of its own is written into instead. */
NODISCARD
int root_take_place(struct root *root, const struct root_place *place, const struct root_file *file,
                    struct err *err);
/* Both. */
NODISCARD
int root_replace(struct root *root, const struct root_place *place, const struct root_file *file,
                 struct err *err);

NODISCARD
int root_remove(struct root *root, const struct root_place *place, bool folder, struct err *err);
NODISCARD
int root_remove_beside(struct root *root, const struct root_place *place, struct err *err);
NODISCARD
int root_mkdir(struct root *root, const struct root_place *place, uint32_t mode, struct err *err);
/* Replaces a link that is there in one step. */
NODISCARD
int root_symlink(struct root *root, const struct root_place *place, struct str target,
                 struct err *err);
/* Of a file or folder; UINT32_MAX = stays. */
NODISCARD
int root_set_owner(struct root *root, const struct root_place *place, uint32_t uid, uint32_t gid,
                   struct err *err);
NODISCARD
int root_set_mode(struct root *root, const struct root_place *place, uint32_t mode,
                  struct err *err);
/* Owner and mode of a folder, and of nothing else: in a folder of an account the name may have
 * become a link or a file meanwhile. */
NODISCARD
int root_give_folder(struct root *root, const struct root_place *place, uint32_t uid, uint32_t gid,
                     uint32_t mode, struct err *err);
/* Writes a file of the kernel's: one write, no replacing. */
NODISCARD
int root_write_kernel(struct root *root, const struct root_place *place, struct str content,
                      struct err *err);

/* The content of a file, walked and read at once; `*ret_exists` is false when it or a folder of it
 * is missing. */
NODISCARD
int root_slurp(struct root *root, struct str path, unsigned flags, struct arena *out,
               struct str *ret, bool *ret_exists, struct err *err);

/* The names in a folder, sorted; none when it is missing. */
NODISCARD
int root_list(struct root *root, struct str path, unsigned flags, struct arena *out,
              struct str **ret, uint32_t *ret_n, struct err *err);
/* Appends to a file of the agent's own, which is made if it is missing, and has it on the disk. */
NODISCARD
int root_append(struct root *root, const struct root_place *place, struct str content,
                struct err *err);
