#include "agent/desired_file.h"

#include "base/alloc.h"
#include "host/file.h"
#include "host/filewatch.h"

struct desired_file {
    struct loop *loop;
    struct arena memory;
    struct str path;
    struct filewatch *watch;
};

struct desired_file *desired_file_new(struct loop *loop, struct str path)
{
    struct desired_file *f = ALLOC_NEW(struct desired_file);
    f->loop = loop;
    f->path = arena_str(&f->memory, path);
    return f;
}

void desired_file_free(struct desired_file *f)
{
    if (f != NULL) {
        filewatch_free(f->watch);
        arena_done(&f->memory);
        alloc_free(f);
    }
}

static struct str name(void *ctx)
{
    const struct desired_file *f = ctx;
    return f->path;
}

static int read_text(void *ctx, struct arena *out, struct str *ret, struct err *err)
{
    const struct desired_file *f = ctx;
    return file_read(f->path, CONFIG_FILE_BYTES_MAX, out, ret, err);
}

static int follow(void *ctx, void (*on_change)(void *ctx), void *change_ctx, struct err *err)
{
    struct desired_file *f = ctx;
    ASSERT(f->watch == NULL);
    f->watch = filewatch_new(f->loop, f->path, on_change, change_ctx, err);
    return f->watch != NULL ? 0 : -(int)err->code;
}

struct desired_source desired_file_source(struct desired_file *f)
{
    return (struct desired_source){ .name = name, .read = read_text, .follow = follow, .ctx = f };
}
