#include "web/source.h"

#include "kube/node.h"
#include "profile/controller.h"

static bool source_ready(void *ctx, struct str *ret_why)
{
    const struct source *s = ctx;
    if (s->controller == NULL) {
        *ret_why = STR("no controller runs");
        return false;
    }
    return controller_ready(s->controller, ret_why);
}

static void source_status(void *ctx, struct web_status *ret)
{
    const struct source *s = ctx;
    struct web_status status = { .title = s->title, .identity = s->identity };
    status.ready = source_ready(ctx, &status.why);
    if (s->controller != NULL) {
        struct controller_stats stats;
        controller_stats(s->controller, &stats);
        status.writes = stats.patches;
        status.leading = controller_leading(s->controller);
        status.leader = controller_leader(s->controller);
    }
    *ret = status;
}

struct source_walk {
    struct source *source;
    void (*fn)(void *fn_ctx, const struct web_node *node);
    void *fn_ctx;
};

static bool source_node(void *ctx, const struct controller_node *node)
{
    struct source_walk *walk = ctx;
    struct arena *tmp = &walk->source->tmp;
    arena_reset(tmp);
    struct web_label *labels = ARENA_ARRAY(tmp, struct web_label, node->label_count);
    for (uint32_t i = 0; i < node->label_count; i++) {
        labels[i] = (struct web_label){ .key = intern_str(node->labels[i].key),
                                        .value = intern_str(node->labels[i].value) };
    }
    walk->fn(walk->fn_ctx, &(struct web_node){ .name = node->name,
                                               .state = node->state,
                                               .error = node->error,
                                               .ready = node->ready,
                                               .unschedulable = node->unschedulable,
                                               .busy = node->busy,
                                               .updated = node->decided,
                                               .labels = labels,
                                               .label_count = node->label_count });
    return true;
}

static void source_each_node(void *ctx, void (*fn)(void *fn_ctx, const struct web_node *node),
                             void *fn_ctx)
{
    struct source *s = ctx;
    struct source_walk walk = { .source = s, .fn = fn, .fn_ctx = fn_ctx };
    if (s->controller != NULL) {
        controller_each_node(s->controller, source_node, &walk);
    }
}

void source_init(struct source *s, const struct controller *controller)
{
    *s = (struct source){
        .controller = controller,
        .web = { .ctx = s, .status = source_status, .each_node = source_each_node },
        .health = { .ctx = s, .ready = source_ready },
    };
}

void source_done(struct source *s)
{
    arena_done(&s->tmp);
}
