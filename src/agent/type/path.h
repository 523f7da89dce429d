/*
 * path: what the types that own a path share: owner and mode by name, reading what is there, saving
 * it and putting it back.
 */
#pragma once

#include "agent/resource.h"
#include "agent/root.h"

/* The fields `owner`, `group` and `mode`, for a type's table. */
#define PATH_OWNER_FIELDS                                                                          \
    { "owner", FIELD_SCALAR, .help = "user, by name or number; nothing: it stays as it is" },      \
        { "group", FIELD_SCALAR, .help = "group, by name or number; nothing: it stays as it is" }, \
    {                                                                                              \
        "mode", FIELD_MODE, .help = "permissions; nothing: they stay as they are"                  \
    }

/* Whether it is below /proc, /sys or /dev. */
bool path_is_kernels(struct str path);

/* Refuses what is the kernel's; notes that the resource provides the path and comes after its
 * folder. */
NODISCARD
int path_prepare(struct resource_prepare *p, struct str path, struct err *err);

/* What is at a path. */
struct path_state {
    struct root_place place; /* dir is -1 when a folder on the way is missing */
    bool exists;
    struct stat st;
};

/* Never fails because something is missing. Whoever calls it calls root_place_done. */
NODISCARD
int path_look(struct resource_call *call, struct str path, unsigned flags, struct path_state *ret,
              struct err *err);
/* The flags of the walk that the resource's meta asks for. */
unsigned path_flags(const struct resource *r);

/* Whether two paths lead to the same file or device, links of root's followed. */
NODISCARD
int path_is_same(struct resource_call *call, struct str a, struct str b, bool *ret,
                 struct err *err);

struct path_owner {
    uint32_t uid; /* UINT32_MAX = nothing is said */
    uint32_t gid;
    bool mode_given;
    uint32_t mode;
};

/* Notes that user and group come first. */
void path_uses_owner(struct resource_prepare *p);
/* -ERR_NOTFOUND when the machine has no such user or group. */
NODISCARD
int path_owner(struct resource_call *call, struct path_owner *ret, struct err *err);
/* Adds differences of something that exists. */
void path_compare_owner(struct resource_call *call, const struct path_owner *want,
                        const struct stat *st);
/* What a new file of this owner has, with the old one's for what is not said. */
struct root_file path_file(const struct resource_call *call, const struct path_owner *want,
                           const struct path_state *old, struct str content);

/* A file of our own with this content, its folders with it; or that there is none. */
NODISCARD
int path_put(struct resource_call *call, struct str path, const struct path_owner *owner,
             struct str content, bool present, struct err *err);

/* Says where two texts part. */
void path_compare_content(struct resource_call *call, struct str was, struct str want);

/* For `save` and `restore` of types that own a file or a link. */
NODISCARD
int path_save(struct resource_call *call, struct str path, unsigned flags, struct original *ret,
              struct err *err);
NODISCARD
int path_restore(struct resource_call *call, struct str path, unsigned flags,
                 const struct original *original, struct err *err);
