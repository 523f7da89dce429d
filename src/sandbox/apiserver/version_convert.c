/* version_convert: objects between their stored version and the version a request asks for. */
#include "sandbox/apiserver/apiserver_internal.h"

/* Events in their two groups: the same members under other names. */
static const struct {
    const char *core;
    const char *events;
} convert_event_names[] = {
    { "involvedObject", "regarding" },
    { "message", "note" },
    { "source", "deprecatedSource" },
    { "firstTimestamp", "deprecatedFirstTimestamp" },
    { "lastTimestamp", "deprecatedLastTimestamp" },
    { "count", "deprecatedCount" },
    { "reportingComponent", "reportingController" },
};

static void convert_event(struct tree *t, struct arena *a, bool to_core)
{
    TREE_EACH (t, member) {
        for (size_t i = 0; i < ARRAY_LEN(convert_event_names); i++) {
            const char *from =
                to_core ? convert_event_names[i].events : convert_event_names[i].core;
            const char *to = to_core ? convert_event_names[i].core : convert_event_names[i].events;
            if (str_eq(member->key, str_from(from))) {
                member->key = arena_str(a, str_from(to));
                break;
            }
        }
    }
}

void convert_to_stored(const struct kind *kind, const struct kinds *kinds, struct tree *t,
                       struct arena *a)
{
    const struct kind *stored = kinds_of_store(kinds, kind->store);
    if (stored == kind) {
        return;
    }
    if (kind_is(kind, KIND_EVENTS_V1)) {
        convert_event(t, a, /* to_core= */ true);
    }
    tree_set(a, t, STR("apiVersion"), tree_str(a, stored->api_version));
}

void convert_from_stored(const struct kind *kind, const struct kinds *kinds, struct tree *t,
                         struct arena *a)
{
    if (kinds_of_store(kinds, kind->store) == kind) {
        return;
    }
    if (kind_is(kind, KIND_EVENTS_V1)) {
        convert_event(t, a, /* to_core= */ false);
        static const char *const empty[] = { "reportingController", "reportingInstance" };
        for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
            struct tree *member = tree_get(t, str_from(empty[i]));
            if (member != NULL && tree_text(member).n == 0) {
                tree_remove(t, member);
            }
        }
    }
    tree_set(a, t, STR("apiVersion"), tree_str(a, kind->api_version));
}

struct str convert_json(const struct kind *kind, const struct kinds *kinds, const struct object *o,
                        struct arena *a)
{
    if (kinds_of_store(kinds, kind->store) == kind) {
        return o->json;
    }
    struct tree *t = object_tree(o, a);
    convert_from_stored(kind, kinds, t, a);
    return tree_json(a, t);
}
