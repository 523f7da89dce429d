#include "agent/journal.h"

#include "base/alloc.h"
#include "format/digest.h"
#include "format/json_writer.h"

#define CHECKSUM_DIGITS 16u

static void add_line(struct buf *out, struct str json)
{
    buf_printf(out, "%016llx ", (unsigned long long)sha256_u64(json));
    buf_add(out, json);
    buf_add_char(out, '\n');
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void set_run(struct journal *j, struct str id, const struct journal_run *run)
{
    struct journal_run *known = map_find(&j->runs, id);
    if (known == NULL) {
        known = ALLOC_NEW(struct journal_run);
        (void)map_put(&j->runs, id, known); /* not there, as was just seen */
    }
    *known = *run;
}

static void set_mark(struct journal *j, struct str id, bool marked)
{
    if (marked) {
        (void)map_put(&j->marks, id, j); /* any value: it is the name that counts */
    } else {
        (void)map_del(&j->marks, id); /* it may not be there */
    }
}

static bool read_record(struct journal *j, const struct jval *record)
{
    struct str mark = jval_str(jval_get(record, STR("mark")));
    struct str unmark = jval_str(jval_get(record, STR("unmark")));
    struct str run = jval_str(jval_get(record, STR("run")));
    struct str end = jval_str(jval_get(record, STR("end")));
    int64_t time = 0;
    struct journal_run entry = { 0 };
    (void)jval_i64(jval_get(record, STR("time")), &time); /* marks have none */
    if (mark.n > 0) {
        set_mark(j, mark, true);
    } else if (unmark.n > 0) {
        set_mark(j, unmark, false);
    } else if (run.n > 0) {
        entry.started = time;
        set_run(j, run, &entry);
    } else if (end.n > 0) {
        const struct journal_run *known = map_find(&j->runs, end);
        entry.started = known != NULL ? known->started : time;
        entry.ended = MAX(time, (int64_t)1);
        (void)jval_i64(jval_get(record, STR("code")), &entry.exit_code); /* 0 without one */
        set_run(j, end, &entry);
    } else {
        return false;
    }
    return true;
}

static bool read_line(struct journal *j, struct str line)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *record;
    struct str digits;
    struct str json;
    char wanted[CHECKSUM_DIGITS + 1];
    if (!str_cut(line, STR(" "), &digits, &json)) {
        return false;
    }
    (void)snprintf(wanted, sizeof(wanted), "%016llx", (unsigned long long)sha256_u64(json));
    return str_eq(digits, str_from(wanted)) && json_parse(json, 0, &tmp, &record, &err) == 0 &&
           read_record(j, record);
}

void journal_parse(struct journal *j, struct str text)
{
    j->bytes = text.n;
    struct str line;
    while (text.n > 0 && str_split_next(&text, '\n', &line)) {
        if (line.n > 0 && !read_line(j, line)) {
            j->damaged++;
        }
    }
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void add_run(struct buf *out, struct str id, const struct journal_run *run)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    jw_obj(&w);
    jw_pair(&w, run->ended == 0 ? "run" : "end", id);
    if (run->ended != 0) {
        jw_pair_i64(&w, "code", run->exit_code);
    }
    jw_pair_i64(&w, "time", run->ended != 0 ? run->ended : run->started);
    jw_obj_end(&w);
    add_line(out, buf_str(&json));
}

static void add_mark(struct buf *out, const char *what, struct str id)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    jw_obj(&w);
    jw_pair(&w, what, id);
    jw_obj_end(&w);
    add_line(out, buf_str(&json));
}

static int append(struct journal *j, struct str lines, struct err *err)
{
    if (j->root == NULL) {
        return 0;
    }
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    int r = root_walk(j->root, j->path, ROOT_WALK_MAKE, &place, err);
    r = r < 0 ? r : root_append(j->root, &place, lines, err);
    if (r < 0) {
        return err_wrap(err, "journal");
    }
    j->bytes += lines.n;
    return 0;
}

/* Only what counts, in a new file: the old one ends in half a line, or has grown. */
static int renew(struct journal *j, usec_t wall, struct err *err)
{
    CLEANUP(buf_done)
    struct buf out = { .max = JOURNAL_BYTES_MAX };
    MAP_EACH (&j->marks, mark) {
        add_mark(&out, "mark", map_item_name(mark));
    }
    MAP_EACH (&j->runs, item) {
        struct journal_run *run = map_item_value(item);
        if (MAX(run->started, run->ended) + JOURNAL_RUN_KEPT < wall) {
            alloc_free(run);
            (void)map_del(&j->runs, map_item_name(item)); /* it was just visited */
        } else {
            add_run(&out, map_item_name(item), run);
        }
    }
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    struct root_file file = { .content = buf_str(&out), .uid = j->root->uid, .gid = UINT32_MAX };
    file.mode = 0600;
    int r = root_walk(j->root, j->path, ROOT_WALK_MAKE, &place, err);
    r = r < 0 ? r : root_replace(j->root, &place, &file, err);
    j->bytes = out.n;
    return r;
}

int journal_open(struct journal *j, struct root *root, struct str path, usec_t wall,
                 struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    *j = (struct journal){ .root = root->read_only ? NULL : root, .path = path };
    struct str text;
    bool exists;
    int r = root_slurp(root, path, 0, &tmp, &text, &exists, err);
    if (r < 0) {
        return err_wrap(err, "journal");
    }
    if (!exists) {
        return 0;
    }
    journal_parse(j, text);
    bool cut = text.n > 0 && text.p[text.n - 1] != '\n';
    if (j->root != NULL && (cut || j->damaged > 0 || text.n > JOURNAL_RENEW_BYTES)) {
        return renew(j, wall, err);
    }
    return 0;
}

void journal_done(struct journal *j)
{
    MAP_EACH (&j->runs, item) {
        alloc_free(map_item_value(item));
    }
    map_done(&j->runs);
    map_done(&j->marks);
}

bool journal_is_marked(const struct journal *j, struct str id)
{
    return map_find(&j->marks, id) != NULL;
}

int journal_mark(struct journal *j, const struct str *ids, uint32_t n, struct err *err)
{
    CLEANUP(buf_done)
    struct buf lines = { 0 };
    for (uint32_t i = 0; i < n; i++) {
        if (!journal_is_marked(j, ids[i])) {
            add_mark(&lines, "mark", ids[i]);
        }
    }
    int r = lines.n == 0 ? 0 : append(j, buf_str(&lines), err);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        set_mark(j, ids[i], true);
    }
    return r;
}

int journal_unmark(struct journal *j, struct str id, struct err *err)
{
    if (!journal_is_marked(j, id)) {
        return 0;
    }
    CLEANUP(buf_done)
    struct buf lines = { 0 };
    add_mark(&lines, "unmark", id);
    int r = append(j, buf_str(&lines), err);
    if (r == 0) {
        set_mark(j, id, false);
    }
    return r;
}

const struct journal_run *journal_run_find(const struct journal *j, struct str id)
{
    return map_find(&j->runs, id);
}

int journal_run_begin(struct journal *j, struct str id, usec_t wall, struct err *err)
{
    if (journal_run_find(j, id) != NULL) {
        return err_set(err, ERR_CONFLICT, "run '" STR_FMT "' was started before", STR_ARG(id));
    }
    CLEANUP(buf_done)
    struct buf lines = { 0 };
    struct journal_run run = { .started = wall };
    add_run(&lines, id, &run);
    int r = append(j, buf_str(&lines), err);
    if (r == 0) {
        set_run(j, id, &run);
    }
    return r;
}

int journal_run_end(struct journal *j, struct str id, int64_t exit_code, usec_t wall,
                    struct err *err)
{
    const struct journal_run *known = journal_run_find(j, id);
    ASSERT(known != NULL);
    CLEANUP(buf_done)
    struct buf lines = { 0 };
    struct journal_run run = { .started = known->started,
                               .ended = MAX(wall, (usec_t)1),
                               .exit_code = exit_code };
    add_run(&lines, id, &run);
    int r = append(j, buf_str(&lines), err);
    if (r == 0) {
        set_run(j, id, &run);
    }
    return r;
}
