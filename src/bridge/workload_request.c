#include "bridge/workload_request.h"

#include "kinds/keys.h"
#include "bridge/object_meta.h"
#include "format/json_writer.h"

static const struct str state_names[] = {
    [WORKLOAD_REQUEST_PENDING] = STR_INIT("Pending"),
    [WORKLOAD_REQUEST_APPROVED] = STR_INIT("Approved"),
    [WORKLOAD_REQUEST_IN_PROGRESS] = STR_INIT("InProgress"),
    [WORKLOAD_REQUEST_COMPLETED] = STR_INIT("Completed"),
};

/* One that is absent or unknown is Pending, as for all actors. */
static enum workload_request_state workload_request_read_state(const struct jval *v)
{
    for (size_t i = 0; i < ARRAY_LEN(state_names); i++) {
        if (str_eq(jval_str(v), state_names[i])) {
            return (enum workload_request_state)i;
        }
    }
    return WORKLOAD_REQUEST_PENDING;
}

static int workload_request_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                                    void **ret, struct err *err UNUSED)
{
    const struct jval *metadata = jval_get(object, STR("metadata"));
    const struct jval *spec = jval_get(object, STR("spec"));
    const struct jval *annotations = jval_get(metadata, STR("annotations"));
    bool node = str_eq(jval_str(jval_get(spec, STR("type"))), STR("node"));
    /* The selector has asked for those of our client; an answer is only that. */
    bool ours =
        meta_is(jval_get(metadata, STR("labels")), KEY_CLIENT, STR(WORKLOAD_REQUEST_CLIENT)) &&
        node;
    struct workload_request found = {
        .uid = meta_text(jval_get(metadata, STR("uid")), WORKLOAD_REQUEST_TEXT_MAX),
        .node = node ? meta_text(jval_get(spec, STR("name")), WORKLOAD_REQUEST_TEXT_MAX) : STR_NONE,
        .request = ours ? meta_text(jval_get(annotations, KEY_ROUTED), WORKLOAD_REQUEST_TEXT_MAX)
                        : STR_NONE,
        .state = workload_request_read_state(jval_get(spec, STR("state"))),
    };
    struct str *const texts[] = { &found.uid, &found.node, &found.request };
    *ret = meta_keep(out, &found, sizeof(found), texts, ARRAY_LEN(texts));
    return 0;
}

static bool workload_request_same(const void *left, const void *right)
{
    const struct workload_request *a = left;
    const struct workload_request *b = right;
    return str_eq(a->uid, b->uid) && str_eq(a->node, b->node) && str_eq(a->request, b->request) &&
           a->state == b->state;
}

const struct store_kind workload_request_kind = {
    .name = "maintenancerequest",
    .project = workload_request_project,
    .same = workload_request_same,
};

struct str workload_request_state_name(enum workload_request_state state)
{
    return state_names[state];
}

bool workload_request_is_open(const struct workload_request *p)
{
    return p->request.n > 0 && p->node.n > 0 && p->state != WORKLOAD_REQUEST_COMPLETED;
}

void workload_request_print_new(const struct workload_request_spec *ask, struct buf *out)
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
    jw_str(&w, STR(WORKLOAD_REQUEST_CLIENT));
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
    jw_pair(&w, "state", state_names[WORKLOAD_REQUEST_PENDING]);
    jw_pair(&w, "reason", ask->reason);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

void workload_request_print_state(const struct workload_request *p, uint64_t version,
                                  enum workload_request_state state, struct buf *out)
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
