#include "ledger/lease_grants.h"

#include "base/alloc.h"
#include "format/json_writer.h"
#include "format/json.h"

struct ledger_cell {
    struct ledger_entry entry;
    struct arena memory;
};

void ledger_init(struct ledger *l, uint64_t hash_key)
{
    *l = (struct ledger){ 0 };
    map_init(&l->entries, hash_key, ~hash_key);
}

static void cell_free(struct ledger_cell *cell)
{
    arena_done(&cell->memory);
    alloc_free(cell);
}

void ledger_clear(struct ledger *l)
{
    MAP_EACH (&l->entries, item) {
        struct ledger_cell *cell = map_item_value(item);
        l->dirty = true;
        (void)map_del(&l->entries, map_item_name(item)); /* it is `cell` */
        cell_free(cell);
    }
}

void ledger_done(struct ledger *l)
{
    ledger_clear(l);
    map_done(&l->entries);
}

bool ledger_put(struct ledger *l, struct str node, struct str owner, uint64_t version)
{
    if (map_find(&l->entries, node) == NULL && map_count(&l->entries) >= LEDGER_ENTRIES_MAX) {
        return false;
    }
    struct ledger_cell *cell = ALLOC_NEW(struct ledger_cell);
    cell->entry.node = arena_str(&cell->memory, node);
    cell->entry.owner = arena_str(&cell->memory, owner);
    cell->entry.version = version;
    struct ledger_cell *old = map_put(&l->entries, cell->entry.node, cell);
    if (old != NULL) {
        cell_free(old);
    }
    l->dirty = true;
    return true;
}

void ledger_strike(struct ledger *l, struct str node)
{
    struct ledger_cell *cell = map_del(&l->entries, node);
    if (cell != NULL) {
        l->dirty = true;
        cell_free(cell);
    }
}

const struct ledger_entry *ledger_find(const struct ledger *l, struct str node)
{
    const struct ledger_cell *cell = map_find(&l->entries, node);
    return cell == NULL ? NULL : &cell->entry;
}

uint32_t ledger_count(const struct ledger *l)
{
    return map_count(&l->entries);
}

void ledger_print(const struct ledger *l, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    MAP_EACH (&l->entries, item) {
        const struct ledger_cell *cell = map_item_value(item);
        jw_key(&w, cell->entry.node);
        jw_obj(&w);
        jw_pair(&w, "profile", cell->entry.owner);
        jw_pair_i64(&w, "version", (int64_t)cell->entry.version);
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
}

int ledger_parse(struct ledger *l, struct str text, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    ledger_clear(l);
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
        if (!ledger_put(l, jval_key(entry), jval_str(jval_get(entry, STR("profile"))),
                        (uint64_t)version)) {
            return err_set(err, ERR_LIMIT, "grants: more than %u", LEDGER_ENTRIES_MAX);
        }
    }
    l->dirty = false;
    return 0;
}
