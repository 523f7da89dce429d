#include "ledger/lease_grants.h"

#include "base/alloc.h"
#include "format/json_writer.h"
#include "format/json.h"

struct lease_grants_cell {
    struct lease_grant entry;
    struct arena memory;
};

void lease_grants_init(struct lease_grants *l, uint64_t hash_key)
{
    *l = (struct lease_grants){ 0 };
    map_init(&l->entries, hash_key, ~hash_key);
}

static void cell_free(struct lease_grants_cell *cell)
{
    arena_done(&cell->memory);
    alloc_free(cell);
}

void lease_grants_clear(struct lease_grants *l)
{
    MAP_EACH (&l->entries, item) {
        struct lease_grants_cell *cell = map_item_value(item);
        l->dirty = true;
        (void)map_del(&l->entries, map_item_name(item)); /* it is `cell` */
        cell_free(cell);
    }
}

void lease_grants_done(struct lease_grants *l)
{
    lease_grants_clear(l);
    map_done(&l->entries);
}

bool lease_grants_put(struct lease_grants *l, struct str node, struct str owner, uint64_t version)
{
    if (map_find(&l->entries, node) == NULL && map_count(&l->entries) >= LEASE_GRANTS_MAX) {
        return false;
    }
    struct lease_grants_cell *cell = ALLOC_NEW(struct lease_grants_cell);
    cell->entry.node = arena_str(&cell->memory, node);
    cell->entry.owner = arena_str(&cell->memory, owner);
    cell->entry.version = version;
    struct lease_grants_cell *old = map_put(&l->entries, cell->entry.node, cell);
    if (old != NULL) {
        cell_free(old);
    }
    l->dirty = true;
    return true;
}

void lease_grants_remove(struct lease_grants *l, struct str node)
{
    struct lease_grants_cell *cell = map_del(&l->entries, node);
    if (cell != NULL) {
        l->dirty = true;
        cell_free(cell);
    }
}

const struct lease_grant *lease_grants_find(const struct lease_grants *l, struct str node)
{
    const struct lease_grants_cell *cell = map_find(&l->entries, node);
    return cell == NULL ? NULL : &cell->entry;
}

uint32_t lease_grants_count(const struct lease_grants *l)
{
    return map_count(&l->entries);
}

void lease_grants_print(const struct lease_grants *l, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    MAP_EACH (&l->entries, item) {
        const struct lease_grants_cell *cell = map_item_value(item);
        jw_key(&w, cell->entry.node);
        jw_obj(&w);
        jw_pair(&w, "profile", cell->entry.owner);
        jw_pair_i64(&w, "version", (int64_t)cell->entry.version);
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
}

int lease_grants_parse(struct lease_grants *l, struct str text, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    lease_grants_clear(l);
    l->dirty = false;
    if (text.n == 0) {
        return 0;
    }
    int r = json_parse(text, 0, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    if (jval_kind(root) != JOBJ) {
        return err_set(err, ERR_INVALID, "grants: found no object");
    }
    JVAL_EACH (root, entry) {
        int64_t version = 0;
        if (!jval_i64(jval_get(entry, STR("version")), &version) || version <= 0) {
            return err_set(err, ERR_INVALID, "grants: '" STR_FMT "' has no version, want a number",
                           STR_ARG(str_sub(jval_key(entry), 0, 64)));
        }
        if (!lease_grants_put(l, jval_key(entry), jval_str(jval_get(entry, STR("profile"))),
                              (uint64_t)version)) {
            return err_set(err, ERR_LIMIT, "grants: more than %u", LEASE_GRANTS_MAX);
        }
    }
    l->dirty = false;
    return 0;
}
