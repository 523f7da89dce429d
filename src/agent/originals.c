#include "agent/originals.h"

#include "format/digest.h"
#include "format/json_writer.h"

#define RECORD_SUFFIX ".json"
#define DATA_SUFFIX ".data"

static struct str file_path(const struct originals *o, struct str id, const char *suffix,
                            struct arena *out)
{
    return arena_printf(out, STR_FMT "/%016llx%s", STR_ARG(o->folder),
                        (unsigned long long)sha256_u64(id), suffix);
}

static int write_file(const struct originals *o, struct str path, struct str content,
                      struct err *err)
{
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    struct root_file file = {
        .content = content, .uid = o->root->uid, .gid = UINT32_MAX, .mode = 0600
    };
    int r = root_walk(o->root, path, ROOT_WALK_MAKE, &place, err);
    return r < 0 ? r : root_replace(o->root, &place, &file, err);
}

static int remove_file(const struct originals *o, struct str path, struct err *err)
{
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    int r = root_walk(o->root, path, 0, &place, err);
    return r == -ERR_NOTFOUND ? 0 : r < 0 ? r : root_remove(o->root, &place, false, err);
}

/* NULL root of the tape when there is no record. */
static int read_record(const struct originals *o, struct str path, struct arena *out,
                       const struct jval **ret, struct err *err)
{
    struct str text;
    bool exists;
    *ret = NULL;
    int r = root_slurp(o->root, path, 0, out, &text, &exists, err);
    if (r < 0 || !exists) {
        return r;
    }
    r = json_parse(text, 0, out, ret, err);
    return r < 0 ? err_wrap(err, "'" STR_FMT "'", STR_ARG(path)) : 0;
}

int originals_find(const struct originals *o, struct str id, bool *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *record;
    int r = read_record(o, file_path(o, id, RECORD_SUFFIX, &tmp), &tmp, &record, err);
    *ret = r == 0 && record != NULL;
    return r;
}

static void write_record(const struct resource *resource, uint64_t sequence, struct str original,
                         struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "id", resource->id);
    jw_pair_i64(&w, "sequence", (int64_t)sequence);
    jw_key(&w, STR("resource"));
    jw_raw(&w, resource->json);
    jw_key(&w, STR("original"));
    jw_raw(&w, original);
    jw_obj_end(&w);
}

int originals_put(const struct originals *o, const struct resource *resource, uint64_t sequence,
                  const struct original *original, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf kept = { 0 };
    const struct jval *known;
    struct str path = file_path(o, resource->id, RECORD_SUFFIX, &tmp);
    int r = read_record(o, path, &tmp, &known, err);
    if (r < 0) {
        return r;
    }
    struct json_writer w = json_writer_on(&kept);
    const struct jval *old = jval_get(known, STR("original"));
    if (old != NULL) {
        jw_val(&w, old);
    } else {
        /* The data before the record: a record without its data must not exist. */
        r = original->data.n > 0
                ? write_file(o, file_path(o, resource->id, DATA_SUFFIX, &tmp), original->data, err)
                : 0;
        buf_add(&kept, original->json);
    }
    write_record(resource, sequence, buf_str(&kept), &text);
    CLEANUP(buf_done)
    struct buf before = { 0 };
    w = json_writer_on(&before);
    if (known != NULL) {
        jw_val(&w, known);
    }
    if (r < 0 || str_eq(buf_str(&before), buf_str(&text))) {
        return r;
    }
    return write_file(o, path, buf_str(&text), err);
}

static int list_one(const struct originals *o, struct str name, struct arena *out,
                    struct original_record *ret, bool *ret_good, struct err *err)
{
    const struct jval *record;
    int64_t sequence = 0;
    struct err ignored = { 0 };
    struct str path = arena_printf(out, STR_FMT "/" STR_FMT, STR_ARG(o->folder), STR_ARG(name));
    int r = read_record(o, path, out, &record, err);
    *ret_good = false;
    if (r < 0 || jval_kind(record) != JOBJ) {
        return r;
    }
    *ret = (struct original_record){ .id = jval_str(jval_get(record, STR("id"))) };
    (void)jval_i64(jval_get(record, STR("sequence")), &sequence); /* 0 without one */
    ret->sequence = (uint64_t)sequence;
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    jw_val(&w, jval_get(record, STR("resource")));
    ret->resource_known = resource_read_json(buf_str(&json), out, &ret->resource, &ignored) == 0 &&
                          str_eq(ret->resource.id, ret->id);
    buf_reset(&json);
    w = json_writer_on(&json);
    jw_val(&w, jval_get(record, STR("original")));
    ret->original.json = arena_str(out, buf_str(&json));
    bool exists;
    r = root_slurp(o->root, file_path(o, ret->id, DATA_SUFFIX, out), 0, out, &ret->original.data,
                   &exists, err);
    *ret_good = r == 0 && ret->id.n > 0;
    return r;
}

static int record_cmp(const void *a, const void *b)
{
    const struct original_record *x = a;
    const struct original_record *y = b;
    return x->sequence != y->sequence ? (x->sequence < y->sequence ? 1 : -1)
                                      : str_cmp(x->id, y->id);
}

int originals_list(const struct originals *o, struct arena *out, struct original_record **ret,
                   uint32_t *ret_n, struct err *err)
{
    struct str *names;
    uint32_t n;
    int r = root_list(o->root, o->folder, 0, out, &names, &n, err);
    if (r < 0) {
        return r;
    }
    struct original_record *records = ARENA_ARRAY(out, struct original_record, n + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool good = false;
        if (str_ends(names[i], STR(RECORD_SUFFIX)) && names[i].p[0] != '.') {
            r = list_one(o, names[i], out, &records[count], &good, err);
        }
        if (r < 0) {
            return r;
        }
        count += good;
    }
    qsort(records, count, sizeof(records[0]), record_cmp);
    *ret = records;
    *ret_n = count;
    return 0;
}

int originals_remove(const struct originals *o, struct str id, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    /* The record first: data alone is nothing. */
    int r = remove_file(o, file_path(o, id, RECORD_SUFFIX, &tmp), err);
    return r < 0 ? r : remove_file(o, file_path(o, id, DATA_SUFFIX, &tmp), err);
}
