#include "kube/podlist.h"

#include "format/json_items.h"
#include "kube/client.h"

void podlist_add_path(struct buf *path, const struct podlist_request *request)
{
    buf_add(path, STR("/api/v1/pods?fieldSelector=spec.nodeName%3D"));
    client_add_segment(path, request->node);
    buf_printf(path, "&limit=%d", PODLIST_PAGE);
    if (request->page.n > 0) {
        buf_add(path, STR("&continue="));
        client_add_segment(path, request->page);
    } else if (request->cached) {
        /* Pods are indexed by node in the server's cache, and only there: a list from storage has
         * the server read every pod of the cluster. */
        buf_add(path, STR("&resourceVersion=0"));
    }
}

int podlist_read(struct str list, podlist_visit visit, void *ctx, struct buf *page, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct json_items split;
    struct str item;
    int r = 0;
    buf_reset(page);
    json_items_init(&split, list);
    while ((r = json_items_next(&split, &item, err)) > 0) {
        const struct jval *pod = NULL;
        arena_reset(&tmp);
        if (json_parse(item, JSON_GO, &tmp, &pod, err) < 0) {
            return err_wrap(err, "a pod");
        }
        if (!visit(ctx, pod)) {
            return 0;
        }
    }
    if (r < 0) {
        return r;
    }
    const struct jval *metadata = NULL;
    arena_reset(&tmp);
    if (split.metadata.n > 0 && json_parse(split.metadata, JSON_GO, &tmp, &metadata, err) < 0) {
        return err_wrap(err, "a list's metadata");
    }
    buf_add(page, jval_str(jval_get(metadata, STR("continue"))));
    return 0;
}
