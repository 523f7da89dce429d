#include "kinds/node_marks.h"

#include "format/json_writer.h"
#include "kinds/keys.h"

static const struct str label_keys[] = {
    KEY_STATE,
    KEY_KUBELET_NEEDS_UPDATE,
    KEY_ESX_MODE,
    KEY_ESX_VERSION,
};

static const struct str annotation_keys[] = {
    KEY_DATA,           KEY_FENCE,        KEY_ABORT,       KEY_PROFILE_CORDON,
    KEY_REQUEST_CORDON, KEY_VISIT_CORDON, KEY_KEPT_CORDON, KEY_DELETING,
    KEY_ESX_INITIATED,  KEY_ESX_SHUTDOWN, KEY_ESX_CORDON,
};

_Static_assert(ARRAY_LEN(label_keys) + ARRAY_LEN(annotation_keys) <= NODE_MARKS_MAX,
               "all of them may be there");

static void find_in(const struct jval *map, const struct str *keys, size_t n, bool label,
                    struct node_marks *ret)
{
    for (size_t i = 0; i < n; i++) {
        if (jval_get(map, keys[i]) != NULL) {
            ret->items[ret->n++] = (struct node_mark){ .key = keys[i], .label = label };
        }
    }
}

/* A mark names the owner of a cordon; ESX says instead when the cordon was another's. */
static bool cordon_is_marked(const struct jval *notes)
{
    return jval_get(notes, KEY_PROFILE_CORDON) != NULL ||
           jval_get(notes, KEY_REQUEST_CORDON) != NULL ||
           jval_get(notes, KEY_VISIT_CORDON) != NULL ||
           (jval_get(notes, KEY_ESX_INITIATED) != NULL && jval_get(notes, KEY_ESX_CORDON) == NULL);
}

void node_marks_find(const struct jval *node, struct node_marks *ret)
{
    const struct jval *labels = jval_at(node, "metadata.labels");
    const struct jval *notes = jval_at(node, "metadata.annotations");
    bool cordoned = jval_bool(jval_at(node, "spec.unschedulable"), false);
    *ret = (struct node_marks){ .lift = cordoned && cordon_is_marked(notes) };
    find_in(labels, label_keys, ARRAY_LEN(label_keys), true, ret);
    find_in(notes, annotation_keys, ARRAY_LEN(annotation_keys), false, ret);
    if (cordoned && jval_get(notes, KEY_KEPT_CORDON) != NULL) {
        ret->lift = false;
        ret->stays = "a visit has failed there";
    } else if (cordoned && !ret->lift && jval_get(notes, KEY_DELETING) != NULL) {
        ret->stays = "its server was being deleted";
    }
}

static void add_removed(struct json_writer *w, const struct node_marks *m, const char *map,
                        bool label)
{
    jw_key(w, str_from(map));
    jw_obj(w);
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->items[i].label == label) {
            jw_key(w, m->items[i].key);
            jw_null(w);
        }
    }
    jw_obj_end(w);
}

void node_marks_patch(const struct node_marks *m, struct str version, struct buf *out)
{
    ASSERT(m->n > 0);
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", version);
    add_removed(&w, m, "labels", true);
    add_removed(&w, m, "annotations", false);
    jw_obj_end(&w);
    if (m->lift) {
        jw_key(&w, STR("spec"));
        jw_obj(&w);
        jw_key(&w, STR("unschedulable"));
        jw_null(&w);
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
}
