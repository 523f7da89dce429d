#include "agent/type/fstab_line.h"

#include "agent/type/edit.h"

#define FSTAB_PATH STR("/etc/fstab")

void fstab_line_prepare(struct resource_prepare *p)
{
    resource_uses(p, "path", FSTAB_PATH);
}

static int edit_line(struct resource_call *call, const void *ctx, struct str text, struct str *ret,
                     struct err *err)
{
    const struct fstab_line *line = ctx;
    struct fstab_entry entry = line->entry;
    (void)err; /* nothing can fail here */
    if (line->any) {
        (void)fstab_find(&line->key, text, call->tmp, &entry); /* else it is our own */
    }
    *ret = fstab_edit(&line->key, line->wanted ? &entry : NULL, text, call->tmp);
    return 0;
}

static struct edit edit_of(const struct fstab_line *line)
{
    return (struct edit){ .path = FSTAB_PATH,
                          .fn = edit_line,
                          .ctx = line,
                          .create = line->wanted,
                          .missing_is_right = !line->wanted };
}

int fstab_line_check(struct resource_call *call, const struct fstab_line *line, struct err *err)
{
    struct edit edit = edit_of(line);
    return edit_check(call, &edit, err);
}

int fstab_line_apply(struct resource_call *call, const struct fstab_line *line, struct err *err)
{
    struct edit edit = edit_of(line);
    return edit_apply(call, &edit, err);
}

int fstab_line_save(struct resource_call *call, const struct fstab_line *line,
                    struct json_writer *w, struct original *ret, struct err *err)
{
    struct str text;
    bool file;
    int r = edit_read(call, FSTAB_PATH, &text, &file, err);
    if (r == 0) {
        jw_pair_bool(w, "file", file);
        ret->data = fstab_lines(&line->key, text, call->tmp);
    }
    return r;
}

struct put_back {
    const struct fstab_key *key;
    struct str lines;
};

static int put_back(struct resource_call *call, const void *ctx, struct str text, struct str *ret,
                    struct err *err)
{
    const struct put_back *p = ctx;
    (void)err; /* nothing can fail here */
    *ret = fstab_restore(p->key, p->lines, text, call->tmp);
    return 0;
}

int fstab_line_restore(struct resource_call *call, const struct fstab_line *line,
                       const struct original *original, const struct jval *was, struct err *err)
{
    struct put_back p = { .key = &line->key, .lines = original != NULL ? original->data : STR("") };
    struct edit edit = { .path = FSTAB_PATH,
                         .fn = put_back,
                         .ctx = &p,
                         .create = p.lines.n > 0,
                         .missing_is_right = p.lines.n == 0,
                         .remove_empty = !jval_bool(jval_get(was, STR("file")), true) };
    return edit_apply(call, &edit, err);
}
