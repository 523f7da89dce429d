#include "bridge/workload_request.h"

#include "kinds/keys.h"
#include "bridge/object_meta.h"
#include "format/json_writer.h"

static const struct str state_names[] = {
    [PLEA_PENDING] = STR_INIT("Pending"),
    [PLEA_APPROVED] = STR_INIT("Approved"),
    [PLEA_IN_PROGRESS] = STR_INIT("InProgress"),
    [PLEA_COMPLETED] = STR_INIT("Completed"),
};

/* One that is absent or unknown is Pending, as for all actors. */
static enum plea_state plea_read_state(const struct jval *v)
{
    for (size_t i = 0; i < ARRAY_LEN(state_names); i++) {
        if (str_eq(jval_str(v), state_names[i])) {
            return (enum plea_state)i;
        }
    }
    return PLEA_PENDING;
}

static int plea_project(void *ctx UNUSED, const struct jval *object, struct arena *out, void **ret,
                        struct err *err UNUSED)
{
    const struct jval *metadata = jval_get(object, STR("metadata"));
    const struct jval *spec = jval_get(object, STR("spec"));
    const struct jval *annotations = jval_get(metadata, STR("annotations"));
    bool node = str_eq(jval_str(jval_get(spec, STR("type"))), STR("node"));
    /* The selector has asked for those of our client; an answer is only that. */
    bool ours = meta_is(jval_get(metadata, STR("labels")), KEY_CLIENT, STR(PLEA_CLIENT)) && node;
    struct plea found = {
        .uid = meta_text(jval_get(metadata, STR("uid")), PLEA_TEXT_MAX),
        .node = node ? meta_text(jval_get(spec, STR("name")), PLEA_TEXT_MAX) : STR_NONE,
        .request = ours ? meta_text(jval_get(annotations, KEY_ROUTED), PLEA_TEXT_MAX) : STR_NONE,
        .state = plea_read_state(jval_get(spec, STR("state"))),
    };
    struct str *const texts[] = { &found.uid, &found.node, &found.request };
    *ret = meta_keep(out, &found, sizeof(found), texts, ARRAY_LEN(texts));
    return 0;
}

static bool plea_same(const void *left, const void *right)
{
    const struct plea *a = left;
    const struct plea *b = right;
    return str_eq(a->uid, b->uid) && str_eq(a->node, b->node) && str_eq(a->request, b->request) &&
           a->state == b->state;
}

const struct store_kind plea_kind = {
    .name = "maintenancerequest",
    .project = plea_project,
    .same = plea_same,
};

struct str plea_state_name(enum plea_state state)
{
    return state_names[state];
}

bool plea_open(const struct plea *p)
{
    return p->request.n > 0 && p->node.n > 0 && p->state != PLEA_COMPLETED;
}

void plea_print_new(const struct plea_ask *ask, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("repairman.k8s.io/v1"));
    jw_pair(&w, "kind", STR("MaintenanceRequest"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", ask->name);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    jw_key(&w, KEY_CLIENT);
    jw_str(&w, STR(PLEA_CLIENT));
    jw_obj_end(&w);
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    jw_key(&w, KEY_ROUTED);
    jw_str(&w, ask->request);
    jw_obj_end(&w);
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "name", ask->node);
    jw_pair(&w, "type", STR("node"));
    jw_pair(&w, "state", state_names[PLEA_PENDING]);
    jw_pair(&w, "reason", ask->reason);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

void plea_print_state(const struct plea *p, uint64_t version, enum plea_state state,
                      struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "uid", p->uid);
    if (version > 0) {
        char text[24];
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
        jw_pair(&w, "resourceVersion", str_from(text));
    }
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "state", state_names[state]);
    jw_obj_end(&w);
    jw_obj_end(&w);
}
