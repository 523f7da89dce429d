#include "tests/swarm/check_basic.h"

#include <stdarg.h>

#include "format/json_tree.h"

void promise_done(struct promise *p)
{
    arena_done(&p->lease_arena);
}

bool promise_broken(const struct promise *p)
{
    return p->why[0] != '\0';
}

void promise_break(struct promise *p, const char *fmt, ...)
{
    if (promise_broken(p)) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(p->why, sizeof(p->why), fmt, args);
    va_end(args);
}

struct promise_node promise_node_of(const struct jval *object)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    return (struct promise_node){
        .name = jval_str(jval_at(object, "metadata.name")),
        .uid = jval_str(jval_at(object, "metadata.uid")),
        .state = jval_str(jval_get(labels, STATE_LABEL)),
        .profile = jval_str(jval_get(labels, PROFILE_LABEL)),
        .data = jval_str(jval_get(annotations, DATA_ANNOTATION)),
    };
}

/* The only configured profile is the default one: the label names it, or names nothing. */
static bool wants_default(struct str profile)
{
    if (profile.n == 0) {
        return true;
    }
    struct str rest = profile;
    struct str name;
    bool more = true;
    while (more) {
        more = str_cut(rest, STR("--"), &name, &rest);
        if (str_eq(name, STR("default"))) {
            return true;
        }
    }
    return false;
}

/* Prints what the annotation must be, given the transition time that it names. */
static struct str data_wanted(struct arena *tmp, bool with_default, struct str transition)
{
    if (!with_default) {
        return STR("{\"Profiles\":{},\"Notifications\":{}}");
    }
    return arena_printf(tmp,
                        "{\"Profiles\":{\"default\":{\"Transition\":\"" STR_FMT
                        "\",\"Current\":\"operational\",\"Previous\":\"operational\"}},"
                        "\"Notifications\":{}}",
                        STR_ARG(transition));
}

enum data_is { DATA_ABSENT, DATA_BROKEN, DATA_OTHER, DATA_RIGHT };

/* Judges an annotation under a profile label. OTHER: readable, and not what the label asks for. */
static enum data_is data_judge(struct str data, struct str profile)
{
    if (data.n == 0) {
        return DATA_ABSENT;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    if (json_parse(data, 0, &tmp, &v, &err) < 0 || jval_kind(v) != JOBJ ||
        jval_kind(jval_get(v, STR("Profiles"))) != JOBJ ||
        jval_kind(jval_get(v, STR("Notifications"))) != JOBJ) {
        return DATA_BROKEN;
    }
    struct str transition = jval_str(jval_at(v, "Profiles.default.Transition"));
    return str_eq(data, data_wanted(&tmp, wants_default(profile), transition)) ? DATA_RIGHT
                                                                               : DATA_OTHER;
}

/* The object without what a controller may change and what the server changes with every write. */
static struct tree *rest_of(struct arena *tmp, const struct jval *object)
{
    struct tree *t = tree_from(tmp, object);
    (void)tree_del_at(t, "metadata.resourceVersion"); /* absent is fine */
    (void)tree_del_at(t, "metadata.managedFields");   /* absent is fine */
    struct tree *labels = tree_at(t, "metadata.labels");
    if (labels != NULL) {
        (void)tree_del(labels, STATE_LABEL); /* absent is fine */
    }
    struct tree *annotations = tree_at(t, "metadata.annotations");
    if (annotations != NULL) {
        (void)tree_del(annotations, DATA_ANNOTATION); /* absent is fine */
    }
    /* A first label or annotation makes its map; an empty map is no difference. */
    if (labels != NULL && labels->n == 0) {
        (void)tree_del_at(t, "metadata.labels");
    }
    if (annotations != NULL && annotations->n == 0) {
        (void)tree_del_at(t, "metadata.annotations");
    }
    return t;
}

static void check_node_change(struct promise *p, struct str writer, const struct promise_node *old,
                              const struct promise_node *new)
{
    enum data_is was = data_judge(old->data, new->profile);
    enum data_is is = data_judge(new->data, new->profile);
    bool same = str_eq(old->data, new->data);
    if (was == DATA_BROKEN && !same) {
        promise_break(p,
                      "I10: " STR_FMT " overwrote an annotation of " STR_FMT " that cannot be read",
                      STR_ARG(writer), STR_ARG(new->name));
    } else if (was == DATA_RIGHT && !same) {
        promise_break(p,
                      "I7: " STR_FMT " replaced the state of " STR_FMT " that was right: '" STR_FMT
                      "' by '" STR_FMT "'",
                      STR_ARG(writer), STR_ARG(new->name), STR_ARG(old->data), STR_ARG(new->data));
    } else if (is != DATA_RIGHT && !same) {
        promise_break(
            p, "§1.3: " STR_FMT " wrote '" STR_FMT "' on " STR_FMT " (profile '" STR_FMT "')",
            STR_ARG(writer), STR_ARG(new->data), STR_ARG(new->name), STR_ARG(new->profile));
    } else if (!str_eq(old->state, new->state) && !str_eq(new->state, STR("operational"))) {
        promise_break(p, "§1.4: " STR_FMT " wrote state '" STR_FMT "' on " STR_FMT, STR_ARG(writer),
                      STR_ARG(new->state), STR_ARG(new->name));
    }
}

void promise_on_node_write(struct promise *p, struct str writer, const struct jval *before,
                           const struct jval *after)
{
    p->node_writes++;
    if (before == NULL || after == NULL) {
        promise_break(p, "I3: " STR_FMT " made or removed a node", STR_ARG(writer));
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (!tree_eq(rest_of(&tmp, before), rest_of(&tmp, after))) {
        promise_break(p, "I3: " STR_FMT " changed more of a node than is its business",
                      STR_ARG(writer));
        return;
    }
    struct promise_node old = promise_node_of(before);
    struct promise_node new = promise_node_of(after);
    check_node_change(p, writer, &old, &new);
}

void promise_on_lease_write(struct promise *p, struct str writer, const struct jval *after,
                            usec_t now)
{
    struct str holder = jval_str(jval_at(after, "spec.holderIdentity"));
    bool held = p->lease_holder.n > 0 && now - p->lease_renewed < PROMISE_LEASE;
    if (held && !str_eq(writer, p->lease_holder)) {
        promise_break(p, "I3: " STR_FMT " wrote the lease that " STR_FMT " renewed %lld ms ago",
                      STR_ARG(writer), STR_ARG(p->lease_holder),
                      (long long)((now - p->lease_renewed) / 1000));
    }
    arena_reset(&p->lease_arena);
    p->lease_holder = holder.n > 0 ? arena_str(&p->lease_arena, holder) : STR_NONE;
    p->lease_renewed = now;
}

void promise_on_node_send(struct promise *p, struct str writer, usec_t now)
{
    if (!str_eq(writer, p->lease_holder)) {
        promise_break(p, "I3: " STR_FMT " patches a node while '" STR_FMT "' holds the lease",
                      STR_ARG(writer), STR_ARG(p->lease_holder));
    } else if (now - p->lease_renewed > PROMISE_LEASE) {
        promise_break(p, "I3: " STR_FMT " patches a node %lld ms after its last renewal",
                      STR_ARG(writer), (long long)((now - p->lease_renewed) / 1000));
    }
}

void promise_at_rest(struct promise *p, const struct promise_node *node)
{
    enum data_is data = data_judge(node->data, node->profile);
    if (data == DATA_BROKEN) {
        return; /* left alone, as it should be */
    }
    if (data != DATA_RIGHT) {
        promise_break(p, "I9: " STR_FMT " (profile '" STR_FMT "') carries '" STR_FMT "' at the end",
                      STR_ARG(node->name), STR_ARG(node->profile), STR_ARG(node->data));
    } else if (!str_eq(node->state, STR("operational"))) {
        promise_break(p, "I9: " STR_FMT " has state '" STR_FMT "' at the end", STR_ARG(node->name),
                      STR_ARG(node->state));
    }
}
