/* fstab_line: what mount and swap share: their line of /etc/fstab, or that there is none. */
#pragma once

#include "agent/fstab.h"
#include "agent/resource.h"
#include "format/json_writer.h"

struct fstab_line {
    struct fstab_key key;     /* which line */
    bool wanted;              /* that there is one: `entry` */
    bool any;                 /* one that is there is good, whatever it says */
    struct fstab_entry entry; /* device, path, type, options */
};

/* Notes that the file comes first. */
void fstab_line_prepare(struct resource_prepare *p);
NODISCARD
int fstab_line_check(struct resource_call *call, const struct fstab_line *line, struct err *err);
NODISCARD
int fstab_line_apply(struct resource_call *call, const struct fstab_line *line, struct err *err);
/* Adds a member to the object that is being written, and sets the original's data. */
NODISCARD
int fstab_line_save(struct resource_call *call, const struct fstab_line *line,
                    struct json_writer *w, struct original *ret, struct err *err);
/* `was` is the object as it was written; without an original the line goes. */
NODISCARD
int fstab_line_restore(struct resource_call *call, const struct fstab_line *line,
                       const struct original *original, const struct jval *was, struct err *err);
