#include "demo/state.h"

#include "format/json.h"
#include "sandbox/apiserver/apiserver.h"

#define STATE_LABEL STR("cloud.sap/maintenance-state")
#define NODE_DATA_ANNOTATION STR("cloud.sap/maintenance-data")
#define ZONE_LABEL STR("topology.kubernetes.io/zone")
#define REBOOT_ANNOTATION STR("sandbox.drydock.dev/reboot")

static void demo_state_copy(char *out, size_t max, struct str text)
{
    size_t n = MIN(text.n, max - 1);
    memcpy(out, text.p, n);
    out[n] = '\0';
}

static bool demo_state_is_ready(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Ready"))) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

static enum demo_node_state demo_node_state(struct str label, bool cordoned)
{
    if (str_eq(label, STR("in-maintenance"))) {
        return DEMO_NODE_MAINTENANCE;
    }
    if (cordoned) {
        return DEMO_NODE_DRAINING;
    }
    return str_eq(label, STR("maintenance-required")) ? DEMO_NODE_REQUIRED : DEMO_NODE_OPERATIONAL;
}

static void demo_state_visit(void *ctx, const struct jval *object)
{
    struct demo_state *s = ctx;
    if (s->n == DEMO_NODES_MAX) {
        return;
    }
    const struct jval *labels = jval_at(object, "metadata.labels");
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    struct str state = jval_str(jval_get(labels, STATE_LABEL));
    struct demo_node *node = &s->nodes[s->n++];
    demo_state_copy(node->name, sizeof(node->name), jval_str(jval_at(object, "metadata.name")));
    demo_state_copy(node->zone, sizeof(node->zone), jval_str(jval_get(labels, ZONE_LABEL)));
    node->state = demo_node_state(state, jval_bool(jval_at(object, "spec.unschedulable"), false));
    node->ready = demo_state_is_ready(object);
    node->labelled = state.n > 0 && jval_str(jval_get(annotations, NODE_DATA_ANNOTATION)).n > 0;
    node->needed = jval_get(labels, STR(DEMO_UPDATE_NEEDED)) != NULL;
    node->approved = jval_get(labels, STR(DEMO_UPDATE_APPROVED)) != NULL;
    node->granted = jval_get(labels, STR(DEMO_UPDATE_REBOOT)) != NULL;
    node->updated = jval_get(labels, STR(DEMO_UPDATE_IMAGE)) != NULL;
    node->rebooting = jval_get(annotations, REBOOT_ANNOTATION) != NULL;
    bool rests = node->state == DEMO_NODE_OPERATIONAL;
    s->states[node->state]++;
    s->ready += node->ready ? 1 : 0;
    s->labelled += node->labelled ? 1 : 0;
    s->serviced += node->updated && rests && node->ready ? 1 : 0;
}

static bool demo_state_is_out(const struct demo_node *node)
{
    return node->state == DEMO_NODE_DRAINING || node->state == DEMO_NODE_MAINTENANCE;
}

void demo_state_read(struct apiserver *server, struct demo_state *ret)
{
    *ret = (struct demo_state){ .n = 0 };
    apiserver_each(server, STR(""), STR("nodes"), STR(""), demo_state_visit, ret);
    for (uint32_t i = 0; i < ret->n; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; demo_state_is_out(&ret->nodes[i]) && k < ret->n; k++) {
            bool zone = str_eq(str_from(ret->nodes[i].zone), str_from(ret->nodes[k].zone));
            same += zone && demo_state_is_out(&ret->nodes[k]) ? 1 : 0;
        }
        ret->out += demo_state_is_out(&ret->nodes[i]) ? 1 : 0;
        ret->out_zone = MAX(ret->out_zone, same);
    }
}

const struct demo_node *demo_state_find(const struct demo_state *s, struct str name)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (str_eq(str_from(s->nodes[i].name), name)) {
            return &s->nodes[i];
        }
    }
    return NULL;
}

struct demo_state_count {
    struct str app;
    struct demo_state_pods pods;
};

static void demo_state_visit_pod(void *ctx, const struct jval *object)
{
    struct demo_state_count *count = ctx;
    struct str app = jval_str(jval_get(jval_at(object, "metadata.labels"), STR("app")));
    if (count->app.n > 0 && !str_eq(app, count->app)) {
        return;
    }
    bool going = jval_at(object, "metadata.deletionTimestamp") != NULL;
    count->pods.all++;
    count->pods.ready += demo_state_is_ready(object) && !going ? 1 : 0;
}

struct demo_state_pods demo_state_pods(struct apiserver *server, struct str app)
{
    struct demo_state_count count = { .app = app };
    apiserver_each(server, STR(""), STR("pods"), STR(""), demo_state_visit_pod, &count);
    return count.pods;
}
