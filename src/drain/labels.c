#include "drain/labels.h"

#define LABELS_MAX 1024u /* no sane object has a tenth */

int drain_labels_read(const struct jval *object, struct arena *out, struct drain_labels *ret,
                      struct err *err)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    *ret = (struct drain_labels){ 0 };
    if (jval_kind(labels) != JOBJ) {
        return 0;
    }
    if (labels->n > LABELS_MAX) {
        return err_set(err, ERR_LIMIT, "an object with %u labels, at most %u are read", labels->n,
                       LABELS_MAX);
    }
    struct drain_label *kept = ARENA_ARRAY(out, struct drain_label, labels->n);
    JVAL_EACH (labels, value) {
        kept[ret->n++] = (struct drain_label){
            .key = arena_str(out, jval_key(value)),
            .value = arena_str(out, jval_str(value)),
        };
    }
    ret->all = kept;
    return 0;
}

bool drain_labels_same(const struct drain_labels *a, const struct drain_labels *b)
{
    if (a->n != b->n) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (!str_eq(a->all[i].key, b->all[i].key) || !str_eq(a->all[i].value, b->all[i].value)) {
            return false;
        }
    }
    return true;
}

bool drain_labels_lookup(void *ctx, struct str key, struct str *ret_value)
{
    const struct drain_labels *l = ctx;
    for (uint32_t i = 0; i < l->n; i++) {
        if (str_eq(l->all[i].key, key)) {
            *ret_value = l->all[i].value;
            return true;
        }
    }
    return false;
}
