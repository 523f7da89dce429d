#include "tests/swarm/check_basic.h"

#include <stdarg.h>

#include "format/json_tree.h"

void check_basic_done(struct check_basic *p)
{
    arena_done(&p->lease_arena);
}

bool check_violated(const struct check_basic *p)
{
    return p->violation[0] != '\0';
}

void check_violation(struct check_basic *p, const char *fmt, ...)
{
    if (check_violated(p)) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(p->violation, sizeof(p->violation), fmt, args);
    va_end(args);
}

struct check_basic_node check_basic_node_read(const struct jval *object)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    return (struct check_basic_node){
        .name = jval_str(jval_at(object, "metadata.name")),
        .uid = jval_str(jval_at(object, "metadata.uid")),
        .state = jval_str(jval_get(labels, STATE_LABEL)),
        .profile = jval_str(jval_get(labels, PROFILE_LABEL)),
        .data = jval_str(jval_get(annotations, NODE_DATA_ANNOTATION)),
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
static struct str data_expected(struct arena *tmp, bool with_default, struct str transition)
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

enum data_class { DATA_ABSENT, DATA_BROKEN, DATA_OTHER, DATA_EXPECTED };

/* Judges an annotation under a profile label. OTHER: readable, and not what the label asks for. */
static enum data_class data_classify(struct str data, struct str profile)
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
    return str_eq(data, data_expected(&tmp, wants_default(profile), transition)) ? DATA_EXPECTED
                                                                                 : DATA_OTHER;
}

/* The object without what a controller may change and what the server changes with every write. */
static struct tree *without_own_fields(struct arena *tmp, const struct jval *object)
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
        (void)tree_del(annotations, NODE_DATA_ANNOTATION); /* absent is fine */
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

static void check_node_change(struct check_basic *p, struct str writer,
                              const struct check_basic_node *old,
                              const struct check_basic_node *new)
{
    enum data_class old_class = data_classify(old->data, new->profile);
    enum data_class new_class = data_classify(new->data, new->profile);
    bool same = str_eq(old->data, new->data);
    if (old_class == DATA_BROKEN && !same) {
        check_violation(
            p, "I10: " STR_FMT " overwrote an annotation of " STR_FMT " that cannot be read",
            STR_ARG(writer), STR_ARG(new->name));
    } else if (old_class == DATA_EXPECTED && !same) {
        check_violation(p,
                        "I7: " STR_FMT " replaced the state of " STR_FMT
                        " that was right: '" STR_FMT "' by '" STR_FMT "'",
                        STR_ARG(writer), STR_ARG(new->name), STR_ARG(old->data),
                        STR_ARG(new->data));
    } else if (new_class != DATA_EXPECTED && !same) {
        check_violation(
            p, "P1: " STR_FMT " wrote '" STR_FMT "' on " STR_FMT " (profile '" STR_FMT "')",
            STR_ARG(writer), STR_ARG(new->data), STR_ARG(new->name), STR_ARG(new->profile));
    } else if (!str_eq(old->state, new->state) && !str_eq(new->state, STR("operational"))) {
        check_violation(p, "P2: " STR_FMT " wrote state '" STR_FMT "' on " STR_FMT, STR_ARG(writer),
                        STR_ARG(new->state), STR_ARG(new->name));
    }
}

void check_basic_on_node_write(struct check_basic *p, struct str writer, const struct jval *before,
                               const struct jval *after)
{
    p->node_writes++;
    if (before == NULL || after == NULL) {
        check_violation(p, "I3: " STR_FMT " made or removed a node", STR_ARG(writer));
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (!tree_eq(without_own_fields(&tmp, before), without_own_fields(&tmp, after))) {
        check_violation(p, "I3: " STR_FMT " changed more of a node than is its business",
                        STR_ARG(writer));
        return;
    }
    struct check_basic_node old = check_basic_node_read(before);
    struct check_basic_node new = check_basic_node_read(after);
    check_node_change(p, writer, &old, &new);
}

void check_basic_on_lease_write(struct check_basic *p, struct str writer, const struct jval *after,
                                usec_t now)
{
    struct str holder = jval_str(jval_at(after, "spec.holderIdentity"));
    bool held = p->lease_holder.n > 0 && now - p->lease_renewed < CHECK_BASIC_LEASE_DURATION;
    if (held && !str_eq(writer, p->lease_holder)) {
        check_violation(p, "I3: " STR_FMT " wrote the lease that " STR_FMT " renewed %lld ms ago",
                        STR_ARG(writer), STR_ARG(p->lease_holder),
                        (long long)((now - p->lease_renewed) / 1000));
    }
    arena_reset(&p->lease_arena);
    p->lease_holder = holder.n > 0 ? arena_str(&p->lease_arena, holder) : STR_NONE;
    p->lease_renewed = now;
}

void check_basic_on_node_send(struct check_basic *p, struct str writer, usec_t now)
{
    if (!str_eq(writer, p->lease_holder)) {
        check_violation(p, "I3: " STR_FMT " patches a node while '" STR_FMT "' holds the lease",
                        STR_ARG(writer), STR_ARG(p->lease_holder));
    } else if (now - p->lease_renewed > CHECK_BASIC_LEASE_DURATION) {
        check_violation(p, "I3: " STR_FMT " patches a node %lld ms after its last renewal",
                        STR_ARG(writer), (long long)((now - p->lease_renewed) / 1000));
    }
}

void check_basic_at_end(struct check_basic *p, const struct check_basic_node *node)
{
    enum data_class data = data_classify(node->data, node->profile);
    if (data == DATA_BROKEN) {
        return; /* left alone, as it should be */
    }
    if (data != DATA_EXPECTED) {
        check_violation(p,
                        "I9: " STR_FMT " (profile '" STR_FMT "') carries '" STR_FMT "' at the end",
                        STR_ARG(node->name), STR_ARG(node->profile), STR_ARG(node->data));
    } else if (!str_eq(node->state, STR("operational"))) {
        check_violation(p, "I9: " STR_FMT " has state '" STR_FMT "' at the end",
                        STR_ARG(node->name), STR_ARG(node->state));
    }
}
