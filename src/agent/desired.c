#include "agent/desired.h"

#include "base/alloc.h"

static int read_all(struct desired *d, struct str text, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct ydoc doc;
    int r = ydoc_parse(text, &tmp, &doc, err);
    r = r < 0 ? r : resource_list_read(&doc, &d->memory, &d->resources, err);
    return r < 0 ? r : graph_build(&d->resources, &d->memory, &d->graph, err);
}

struct desired *desired_new(struct str text, struct err *err)
{
    struct desired *d = ALLOC_NEW(struct desired);
    if (read_all(d, text, err) < 0) {
        desired_free(d);
        return NULL;
    }
    return d;
}

void desired_free(struct desired *d)
{
    if (d != NULL) {
        arena_done(&d->memory);
        alloc_free(d);
    }
}
