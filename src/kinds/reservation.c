#include "kinds/reservation.h"

#include "base/timestamp.h"
#include "kinds/maintenance_request.h"

#include <stdlib.h>

static uint32_t reservation_number(const struct jval *v)
{
    int64_t n = 0;
    return jval_i64(v, &n) && n > 0 && n <= (int64_t)MREQUEST_GRANT_MAX ? (uint32_t)n : 0;
}

struct reservation_key {
    struct str text;
    struct str tie; /* entries of one target stand in order of their uids */
    uint32_t index;
};

static int key_cmp(const void *a, const void *b)
{
    const struct reservation_key *x = a;
    const struct reservation_key *y = b;
    int order = str_cmp(x->text, y->text);
    if (order == 0) {
        order = str_cmp(x->tie, y->tie);
    }
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static uint32_t *sorted(struct reservation_key *keys, uint32_t n, struct arena *out)
{
    uint32_t *order = ARENA_ARRAY(out, uint32_t, n);
    qsort(keys, n, sizeof(*keys), key_cmp);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = keys[i].index;
    }
    return order;
}

uint64_t reservation_bytes(const struct reservation *r)
{
    return RESERVATION_BYTES_FIXED + r->uid.n + r->name.n + r->target.n + r->state.n;
}

bool reservations_fit(uint64_t n, uint64_t bytes, uint64_t more)
{
    return n < RESERVATIONS_MAX && bytes + more <= RESERVATIONS_BYTES_MAX;
}

bool reservations_full(const struct reservations *r)
{
    return !reservations_fit(r->n, r->bytes, RESERVATION_BYTES_LONGEST);
}

void reservations_index(struct reservations *r, struct reservation *items, uint32_t n,
                        struct arena *out)
{
    *r = (struct reservations){ .items = items, .n = n };
    if (n == 0) {
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct reservation_key *keys = ARENA_ARRAY(&tmp, struct reservation_key, n);
    for (uint32_t i = 0; i < n; i++) {
        r->bytes += reservation_bytes(&items[i]);
        keys[i] = (struct reservation_key){ .text = items[i].uid, .index = i };
    }
    r->by_uid = sorted(keys, n, out);
    for (uint32_t i = 0; i < n; i++) {
        keys[i] =
            (struct reservation_key){ .text = items[i].target, .tie = items[i].uid, .index = i };
    }
    r->by_target = sorted(keys, n, out);
    for (uint32_t i = 0; i < n; i++) {
        r->targets += i == 0 || !str_eq(keys[i].text, keys[i - 1].text) ? 1 : 0;
    }
}

void reservations_parse(const struct jval *list, struct arena *out, struct reservations *ret)
{
    *ret = (struct reservations){ 0 };
    if (jval_kind(list) != JARR || list->n == 0) {
        return;
    }
    struct reservation *items = ARENA_ARRAY(out, struct reservation, list->n);
    uint32_t n = 0;
    JVAL_EACH (list, entry) {
        struct str uid = jval_str(jval_get(entry, STR("requestUID")));
        if (uid.n == 0) {
            continue;
        }
        items[n] = (struct reservation){
            .uid = arena_str(out, uid),
            .name = arena_str(out, jval_str(jval_get(entry, STR("requestName")))),
            .target = arena_str(out, jval_str(jval_get(entry, STR("target")))),
            .state = arena_str(out, jval_str(jval_get(entry, STR("state")))),
            .grant = reservation_number(jval_get(entry, STR("grant"))),
            .granted = jval_time(jval_get(entry, STR("grantedTime")), USEC_NEVER),
        };
        n++;
    }
    reservations_index(ret, items, n, out);
}

static const struct reservation *reservations_search(const struct reservations *r, bool by_target,
                                                     struct str wanted)
{
    const uint32_t *order = by_target ? r->by_target : r->by_uid;
    uint32_t low = 0;
    uint32_t high = r->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct reservation *item = &r->items[order[middle]];
        int found = str_cmp(by_target ? item->target : item->uid, wanted);
        if (found == 0) {
            return item;
        }
        if (found < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const struct reservation *reservations_find(const struct reservations *r, struct str uid)
{
    return reservations_search(r, /* by_target= */ false, uid);
}

bool reservations_has_target(const struct reservations *r, struct str target)
{
    return reservations_search(r, /* by_target= */ true, target) != NULL;
}

struct tree *reservations_tree(const struct reservations *r, struct arena *out)
{
    struct tree *list = tree_arr(out);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reservation *item = &r->items[i];
        struct tree *entry = tree_obj(out);
        tree_set(out, entry, STR("requestUID"), tree_str(out, item->uid));
        if (item->name.n > 0) {
            tree_set(out, entry, STR("requestName"), tree_str(out, item->name));
        }
        if (item->target.n > 0) {
            tree_set(out, entry, STR("target"), tree_str(out, item->target));
        }
        if (item->grant > 0) {
            tree_set(out, entry, STR("grant"), tree_i64(out, item->grant));
        }
        if (item->granted != USEC_NEVER) {
            char text[TIMESTAMP_TEXT_MAX];
            tree_set(out, entry, STR("grantedTime"),
                     tree_str(out, timestamp_print_seconds(item->granted, text)));
        }
        if (item->state.n > 0) {
            tree_set(out, entry, STR("state"), tree_str(out, item->state));
        }
        tree_add(list, entry);
    }
    return list;
}
