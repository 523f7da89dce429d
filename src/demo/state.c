#include "demo/state.h"

#include "format/json.h"
#include "sandbox/apiserver/apiserver.h"

#define STATE_LABEL STR("cloud.sap/maintenance-state")
#define DATA_ANNOTATION STR("cloud.sap/maintenance-data")
#define ZONE_LABEL STR("topology.kubernetes.io/zone")
#define REBOOT_ANNOTATION STR("sandbox.drydock.dev/reboot")

static void scene_copy(char *out, size_t max, struct str text)
{
    size_t n = MIN(text.n, max - 1);
    memcpy(out, text.p, n);
    out[n] = '\0';
}

static bool scene_is_ready(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Ready"))) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

static enum scene_state scene_state(struct str label, bool cordoned)
{
    if (str_eq(label, STR("in-maintenance"))) {
        return SCENE_MAINTENANCE;
    }
    if (cordoned) {
        return SCENE_DRAINING;
    }
    return str_eq(label, STR("maintenance-required")) ? SCENE_REQUIRED : SCENE_OPERATIONAL;
}

static void scene_visit(void *ctx, const struct jval *object)
{
    struct scene *s = ctx;
    if (s->n == SCENE_NODES_MAX) {
        return;
    }
    const struct jval *labels = jval_at(object, "metadata.labels");
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    struct str state = jval_str(jval_get(labels, STATE_LABEL));
    struct scene_node *node = &s->nodes[s->n++];
    scene_copy(node->name, sizeof(node->name), jval_str(jval_at(object, "metadata.name")));
    scene_copy(node->zone, sizeof(node->zone), jval_str(jval_get(labels, ZONE_LABEL)));
    node->state = scene_state(state, jval_bool(jval_at(object, "spec.unschedulable"), false));
    node->ready = scene_is_ready(object);
    node->labelled = state.n > 0 && jval_str(jval_get(annotations, DATA_ANNOTATION)).n > 0;
    node->needed = jval_get(labels, STR(UPDATE_NEEDED)) != NULL;
    node->approved = jval_get(labels, STR(UPDATE_APPROVED)) != NULL;
    node->granted = jval_get(labels, STR(UPDATE_REBOOT)) != NULL;
    node->updated = jval_get(labels, STR(UPDATE_IMAGE)) != NULL;
    node->rebooting = jval_get(annotations, REBOOT_ANNOTATION) != NULL;
    bool rests = node->state == SCENE_OPERATIONAL;
    s->states[node->state]++;
    s->ready += node->ready ? 1 : 0;
    s->labelled += node->labelled ? 1 : 0;
    s->serviced += node->updated && rests && node->ready ? 1 : 0;
}

static bool scene_is_out(const struct scene_node *node)
{
    return node->state == SCENE_DRAINING || node->state == SCENE_MAINTENANCE;
}

void scene_look(struct apiserver *server, struct scene *ret)
{
    *ret = (struct scene){ .n = 0 };
    apiserver_each(server, STR(""), STR("nodes"), STR(""), scene_visit, ret);
    for (uint32_t i = 0; i < ret->n; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; scene_is_out(&ret->nodes[i]) && k < ret->n; k++) {
            bool zone = str_eq(str_from(ret->nodes[i].zone), str_from(ret->nodes[k].zone));
            same += zone && scene_is_out(&ret->nodes[k]) ? 1 : 0;
        }
        ret->out += scene_is_out(&ret->nodes[i]) ? 1 : 0;
        ret->out_zone = MAX(ret->out_zone, same);
    }
}

const struct scene_node *scene_find(const struct scene *s, struct str name)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (str_eq(str_from(s->nodes[i].name), name)) {
            return &s->nodes[i];
        }
    }
    return NULL;
}

struct scene_count {
    struct str app;
    struct scene_pods pods;
};

static void scene_visit_pod(void *ctx, const struct jval *object)
{
    struct scene_count *count = ctx;
    struct str app = jval_str(jval_get(jval_at(object, "metadata.labels"), STR("app")));
    if (count->app.n > 0 && !str_eq(app, count->app)) {
        return;
    }
    bool going = jval_at(object, "metadata.deletionTimestamp") != NULL;
    count->pods.all++;
    count->pods.ready += scene_is_ready(object) && !going ? 1 : 0;
}

struct scene_pods scene_pods(struct apiserver *server, struct str app)
{
    struct scene_count count = { .app = app };
    apiserver_each(server, STR(""), STR("pods"), STR(""), scene_visit_pod, &count);
    return count.pods;
}
