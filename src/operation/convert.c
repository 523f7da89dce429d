#include "operation/convert_internal.h"

#include "base/duration.h"
#include "format/selector.h"
#include "format/yaml_writer.h"
#include "kinds/keys.h"
#include "kinds/node_maintenance.h"

#include <stdarg.h>
#include <stdio.h>

#define NOTE_MAX 512u
#define SECOND_NS INT64_C(1000000000)
#define DAY_SECONDS 86400u
#define EVERY_DAY 0x7fu

static const char *const day_names[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun" };

/* ── Notes and errors ────────────────────────────────────────────────────────────────────────── */

int convert_wrong(const struct convert_reader *r, const struct jval *at, const char *fmt, ...)
{
    char text[NOTE_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a message that is cut is still one */
    va_end(args);
    int result = err_set(r->err, ERR_INVALID, "%s", text);
    r->err->pos = ydoc_pos(r->doc, at);
    return result;
}

void convert_note(const struct convert_reader *r, enum convert_weight weight, const struct jval *at,
                  struct str about, const char *fmt, ...)
{
    struct convert *c = r->c;
    char text[NOTE_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* see convert_wrong */
    va_end(args);
    if (c->note_n > CONVERT_NOTES_MAX) {
        return; /* convert_finish tells */
    }
    for (uint32_t i = 0; i < c->note_n; i++) {
        if (str_eq(c->notes[i].about, about) && str_eq(c->notes[i].text, str_from(text))) {
            return;
        }
    }
    ARENA_GROW(c->memory, c->notes, c->note_n, c->note_cap);
    c->notes[c->note_n++] = (struct convert_note){
        .weight = weight,
        .pos = ydoc_pos(r->doc, at),
        .about = arena_str(c->memory, about),
        .text = arena_str(c->memory, str_from(text)),
    };
}

void convert_not_yet(const struct convert_reader *r, const struct jval *at, struct str about,
                     const char *field)
{
    convert_note(r, CONVERT_LOOK, at, about,
                 "this version of the controller does not accept %s: leave it out until one does",
                 field);
}

/* ── Sources ─────────────────────────────────────────────────────────────────────────────────── */

static int each_object(const struct ydoc *doc, const struct jval *object, convert_read *read,
                       struct arena *memory, struct convert_list *list, uint32_t *found,
                       struct err *err)
{
    const struct jval *items = jval_get(object, STR("items"));
    if (!str_ends(jval_str(jval_get(object, STR("kind"))), STR("List")) ||
        jval_kind(items) != JARR) {
        int r = read(doc, object, list, memory, err);
        *found += r == 0 ? 1u : 0u;
        return r == -ERR_NOTFOUND ? 0 : r;
    }
    JVAL_EACH (items, item) {
        int r = read(doc, item, list, memory, err);
        if (r < 0 && r != -ERR_NOTFOUND) {
            return r;
        }
        *found += r == 0 ? 1u : 0u;
    }
    return 0;
}

int convert_each(struct str text, convert_read *read, const char *wanted, struct arena *memory,
                 struct convert_list *list, struct err *err)
{
    struct ydoc *docs = NULL;
    uint32_t doc_n = 0;
    uint32_t found = 0;
    int r = ydoc_parse_all(text, memory, &docs, &doc_n, err);
    for (uint32_t i = 0; r == 0 && i < doc_n; i++) {
        r = each_object(&docs[i], docs[i].root, read, memory, list, &found, err);
    }
    if (r == 0 && found == 0) {
        r = err_set(err, ERR_INVALID, "%s", wanted);
        err->pos = (struct pos){ .line = 1, .column = 1 };
    }
    return r;
}

/* Small letters, digits and dashes; what a label of a Job can hold. */
static struct str name_for(struct str name, struct arena *memory)
{
    char *text = ARENA_ARRAY(memory, char, MAINTENANCE_NAME_MAX + 1);
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < MAINTENANCE_NAME_MAX; i++) {
        char c = name.p[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (good || n > 0) {
            text[n++] = good ? c : '-';
        }
    }
    while (n > 0 && text[n - 1] == '-') {
        n--;
    }
    text[n] = '\0';
    return (struct str){ .p = text, .n = n };
}

int convert_begin(struct convert_list *list, struct arena *memory, struct str kind,
                  const struct ydoc *doc, const struct jval *object, struct convert **ret,
                  struct err *err)
{
    struct str name = jval_str(jval_at(object, "metadata.name"));
    struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
    struct str own = name_for(name, memory);
    struct convert c = {
        .memory = memory,
        .object = tree_obj(memory),
        .source = arena_printf(memory, STR_FMT " " STR_FMT "%s" STR_FMT, STR_ARG(kind),
                               STR_ARG(namespace), namespace.n > 0 ? "/" : "", STR_ARG(name)),
    };
    const struct convert_reader r = { .doc = doc, .c = &c, .memory = memory, .err = err };
    if (own.n == 0) {
        return convert_wrong(&r, object, STR_FMT " without a name: want metadata.name",
                             STR_ARG(kind));
    }
    if (list->n >= CONVERT_SOURCES_MAX) {
        return convert_wrong(&r, object, "want at most %u objects at once", CONVERT_SOURCES_MAX);
    }
    for (uint32_t i = 0; i < list->n; i++) {
        if (str_eq(tree_text_at(list->items[i].object, "metadata.name"), own)) {
            return convert_wrong(&r, object,
                                 STR_FMT " and " STR_FMT " would both be NodeMaintenance '" STR_FMT
                                         "': convert them one at a time",
                                 STR_ARG(list->items[i].source), STR_ARG(c.source), STR_ARG(own));
        }
    }
    tree_set(memory, c.object, STR("apiVersion"), tree_str(memory, STR(OPERATION_API_VERSION)));
    tree_set(memory, c.object, STR("kind"), tree_str(memory, STR("NodeMaintenance")));
    tree_set_at(memory, c.object, "metadata.name", tree_str(memory, own));
    tree_set_at(memory, c.object, "spec", tree_obj(memory));
    if (!str_eq(own, name)) {
        convert_note(&r, CONVERT_LOOK, jval_at(object, "metadata.name"), STR("metadata.name"),
                     "'" STR_FMT "' has become '" STR_FMT "': want at most %u small letters, "
                     "digits and dashes",
                     STR_ARG(name), STR_ARG(own), MAINTENANCE_NAME_MAX);
    }
    ARENA_GROW(memory, list->items, list->n, list->cap);
    list->items[list->n] = c;
    *ret = &list->items[list->n++];
    return 0;
}

/* Whether there is such a zone is asked elsewhere. */
static int any_zone(void *ctx UNUSED, struct str name UNUSED, const struct zone **ret,
                    struct err *err UNUSED)
{
    *ret = NULL;
    return 0;
}

int convert_finish(const struct convert_reader *r, const struct jval *object)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *made = NULL;
    struct node_maintenance m;
    const struct window_sources sources = { .find_zone = any_zone };
    if (json_parse(tree_json(&tmp, r->c->object), JSON_GO, &tmp, &made, &err) < 0) {
        return convert_wrong(r, object, "%s", err.msg);
    }
    if (r->c->note_n > CONVERT_NOTES_MAX) {
        return convert_wrong(r, object, "want an object with at most %u things to tell about",
                             CONVERT_NOTES_MAX);
    }
    node_maintenance_read(made, &sources, &tmp, &m);
    if (m.problem.reason.n == 0) {
        return 0;
    }
    return convert_wrong(r, object, "the NodeMaintenance would not be accepted: " STR_FMT,
                         STR_ARG(spec_problem_text(&m.problem, &tmp)));
}

/* ── Values ──────────────────────────────────────────────────────────────────────────────────── */

struct str convert_duration(int64_t ns, struct arena *memory)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    int64_t seconds = ns / SECOND_NS + (ns % SECOND_NS > 0 ? 1 : 0);
    const int64_t units[] = { seconds / 3600, seconds / 60 % 60, seconds % 60 };
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (units[i] > 0 || (i == 2 && text.n == 0)) {
            buf_printf(&text, "%lld%c", (long long)units[i], "hms"[i]);
        }
    }
    return arena_str(memory, buf_str(&text));
}

struct str convert_literal(struct str text, struct arena *memory)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    for (size_t i = str_find(text, STR("${")); i != SIZE_MAX; i = str_find(text, STR("${"))) {
        buf_add(&out, str_sub(text, 0, i));
        buf_add(&out, STR("$${"));
        text = str_sub(text, i + 2, text.n - i - 2);
    }
    buf_add(&out, text);
    return arena_str(memory, buf_str(&out));
}

void convert_set(const struct convert_reader *r, const char *path, struct tree *value)
{
    struct str whole = arena_printf(r->memory, "spec.%s", path);
    tree_set_at(r->memory, r->c->object, whole.p, value);
}

void convert_set_text(const struct convert_reader *r, const char *path, struct str value)
{
    convert_set(r, path, tree_str(r->memory, value));
}

void convert_set_at_once(const struct convert_reader *r, const struct jval *at, struct str about,
                         int64_t n)
{
    struct arena *m = r->memory;
    struct tree *limit = tree_obj(m);
    struct tree *selector = tree_at(r->c->object, "spec.nodeSeries.selector");
    if (n <= 1) {
        return; /* that is the default of both */
    }
    convert_set(r, "rollout.maxConcurrent", tree_i64(m, n));
    tree_set(m, limit, STR("apiVersion"), tree_str(m, STR(MAINTENANCE_API_VERSION)));
    tree_set(m, limit, STR("kind"), tree_str(m, STR("MaintenanceLimit")));
    tree_set_at(m, limit, "metadata.name", tree_clone(m, tree_at(r->c->object, "metadata.name")));
    tree_set_at(m, limit, "spec.type", tree_str(m, STR("node")));
    tree_set_at(m, limit, "spec.limit", tree_i64(m, 100));
    tree_set_at(m, limit, "spec.maxCount", tree_i64(m, n));
    if (selector != NULL) {
        tree_set_at(m, limit, "spec.selector", tree_clone(m, selector));
    }
    r->c->limit = limit;
    convert_note(r, CONVERT_LOOK, at, about,
                 "the MaintenanceLimit counts whatever disturbs these nodes; leave it out if they "
                 "have one already (without any, one visit goes at a time)");
}

static void expression_add(const struct selector_term *t, struct tree *list, struct arena *memory)
{
    bool some = t->op != SELECTOR_EXISTS && t->op != SELECTOR_ABSENT;
    const char *op = t->op == SELECTOR_EXISTS                                   ? "Exists"
                     : t->op == SELECTOR_ABSENT                                 ? "DoesNotExist"
                     : t->op == SELECTOR_NOT_EQUALS || t->op == SELECTOR_NOT_IN ? "NotIn"
                                                                                : "In";
    struct tree *e = tree_obj(memory);
    struct tree *values = tree_arr(memory);
    tree_set(memory, e, STR("key"), tree_str(memory, t->key));
    tree_set(memory, e, STR("operator"), tree_str(memory, str_from(op)));
    for (uint32_t i = 0; some && i < t->n; i++) {
        tree_add(values, tree_str(memory, t->values[i]));
    }
    if (some) {
        tree_set(memory, e, STR("values"), values);
    }
    tree_add(list, e);
}

struct tree *convert_selector(const struct convert_reader *r, const struct jval *at,
                              struct str about, struct str text)
{
    struct selector s;
    struct err why = { 0 };
    struct tree *labels = tree_obj(r->memory);
    struct tree *expressions = tree_arr(r->memory);
    struct tree *result = tree_obj(r->memory);
    if (selector_parse(text, r->memory, &s, &why) < 0) {
        (void)convert_wrong(r, at,
                            STR_FMT " '" STR_FMT "': want a label selector such as "
                                    "app=shop,tier in (a,b) (%s)",
                            STR_ARG(about), STR_ARG(text), why.msg);
        return NULL;
    }
    for (uint32_t i = 0; i < s.n; i++) {
        const struct selector_term *t = &s.terms[i];
        if (t->op == SELECTOR_GREATER || t->op == SELECTOR_LESS) {
            (void)convert_wrong(r, at,
                                STR_FMT " '" STR_FMT "': want a label selector without "
                                        "< and >, which a LabelSelector does not have",
                                STR_ARG(about), STR_ARG(text));
            return NULL;
        }
        bool equals = t->op == SELECTOR_EQUALS || t->op == SELECTOR_DOUBLE_EQUALS;
        if (equals && tree_get(labels, t->key) == NULL) {
            tree_set(r->memory, labels, t->key, tree_str(r->memory, t->values[0]));
        } else {
            expression_add(t, expressions, r->memory);
        }
    }
    if (labels->n > 0) {
        tree_set(r->memory, result, STR("matchLabels"), labels);
    }
    if (expressions->n > 0) {
        tree_set(r->memory, result, STR("matchExpressions"), expressions);
    }
    return result;
}

struct tree *convert_selector_object(const struct convert_reader *r, const struct jval *at,
                                     struct str about)
{
    struct selector s;
    struct err why = { 0 };
    struct tree *result = tree_obj(r->memory);
    if (selector_from_jval(at, r->memory, &s, &why) < 0) {
        (void)convert_wrong(r, at,
                            STR_FMT ": want matchLabels and matchExpressions, as in a Deployment "
                                    "(%s)",
                            STR_ARG(about), why.msg);
        return NULL;
    }
    JVAL_EACH (at, member) { /* an empty list is refused by the API server, and means nothing */
        bool known = str_eq(jval_key(member), STR("matchLabels")) ||
                     str_eq(jval_key(member), STR("matchExpressions"));
        if (known && jval_kind(member) != JNULL && member->n > 0) {
            tree_set(r->memory, result, jval_key(member), tree_from(r->memory, member));
        }
    }
    return result;
}

/* ── Windows ─────────────────────────────────────────────────────────────────────────────────── */

int convert_day(const struct convert_reader *r, const struct jval *at, struct str about,
                struct str text, unsigned *days)
{
    static const char *const names[] = { "monday", "tuesday",  "wednesday", "thursday",
                                         "friday", "saturday", "sunday" };
    uint32_t number;
    if (str_to_u32(text, &number) && number < ARRAY_LEN(names)) {
        *days |= 1u << (number + 6) % 7; /* theirs begins with Sunday */
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct str name = str_from(names[i]);
        if (str_eq_fold(text, name) || str_eq_fold(text, str_sub(name, 0, 3)) ||
            str_eq_fold(text, str_sub(name, 0, 2))) {
            *days |= 1u << i;
            return 0;
        }
    }
    return convert_wrong(r, at, STR_FMT " '" STR_FMT "': want a day such as mon, monday, mo or 1",
                         STR_ARG(about), STR_ARG(text));
}

static bool digits(struct str text, size_t least, size_t most, uint32_t below, uint32_t *ret)
{
    return text.n >= least && text.n <= most && text.p[0] != '+' && str_to_u32(text, ret) &&
           *ret < below;
}

/* What Go reads as 15:04, 15:04:05, 03:04pm, 15, 03pm or 3pm: the second of the day. */
static bool clock_read(struct str text, uint32_t *ret)
{
    uint32_t part[3] = { 0 };
    struct str rest = text;
    struct str piece;
    bool pm = str_cut_suffix(rest, STR("pm"), &rest);
    bool half = pm || str_cut_suffix(rest, STR("am"), &rest);
    size_t n = 0;
    while (n < 3 && rest.n > 0 && str_split_next(&rest, ':', &piece)) {
        /* Go wants two digits for minutes and seconds, and takes one or two for the hour. */
        if (!digits(piece, n == 0 ? 1 : 2, 2, n > 0 ? 60 : half ? 13 : 24, &part[n])) {
            return false;
        }
        n++;
    }
    if (n == 0 || rest.n > 0 || str_ends(text, STR(":")) || (half && (part[0] == 0 || n == 3))) {
        return false;
    }
    uint32_t hour = half ? part[0] % 12 + (pm ? 12 : 0) : part[0];
    *ret = hour * 3600 + part[1] * 60 + part[2];
    return true;
}

static struct tree *clock_tree(uint32_t second, struct arena *memory)
{
    return tree_str(memory, arena_printf(memory, "%02u:%02u", second / 3600, second / 60 % 60));
}

static int hours_check(const struct convert_reader *r, const struct convert_hours *h,
                       uint32_t *start, uint32_t *end)
{
    const struct {
        struct str text;
        const char *what;
        uint32_t *ret;
    } ends[] = { { h->start, "start", start }, { h->end, "end", end } };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (!clock_read(ends[i].text, ends[i].ret)) {
            return convert_wrong(r, h->at,
                                 STR_FMT ": %s time '" STR_FMT "': want a time such as 22:00, "
                                         "22:00:30, 10:00pm, 22 or 10pm",
                                 STR_ARG(h->about), ends[i].what, STR_ARG(ends[i].text));
        }
    }
    if (h->days == 0) {
        return convert_wrong(r, h->at,
                             STR_FMT ": no day is left on which it opens: want days "
                                     "such as mon,tue",
                             STR_ARG(h->about));
    }
    if (r->list->zone_is_known != NULL && !r->list->zone_is_known(r->list->ctx, h->zone)) {
        return convert_wrong(r, h->at,
                             STR_FMT ": time zone '" STR_FMT "': want a name such as "
                                     "Europe/Berlin, or UTC",
                             STR_ARG(h->about), STR_ARG(h->zone));
    }
    return 0;
}

int convert_window(const struct convert_reader *r, const struct convert_hours *h)
{
    uint32_t start = 0;
    uint32_t end = 0;
    struct tree *days = tree_arr(r->memory);
    struct convert_hours utc = *h;
    utc.zone = h->zone.n > 0 ? h->zone : STR("UTC");
    int result = hours_check(r, &utc, &start, &end);
    if (result < 0) {
        return result;
    }
    if (start % 60 != 0 || (end % 60 != 0 && end % 60 != 59)) {
        convert_note(r, CONVERT_LOOK, h->at, h->about,
                     "windows have whole minutes: it is now from "
                     "%02u:%02u to %02u:%02u",
                     start / 3600, start / 60 % 60, end / 3600, end / 60 % 60);
    }
    start -= start % 60;
    /* The last second counts there: to 23:59:59, or 23:59, is to the end of the day. */
    end = end >= DAY_SECONDS - 60 ? DAY_SECONDS : end % 60 == 59 ? end + 1 : end - end % 60;
    if (h->days == EVERY_DAY && start == 0 && end == DAY_SECONDS) {
        return 0; /* always */
    }
    if (start == end) {
        return convert_wrong(r, h->at,
                             STR_FMT ": start and end are the same: want an end after "
                                     "the start",
                             STR_ARG(h->about));
    }
    for (size_t i = 0; i < ARRAY_LEN(day_names); i++) {
        if ((h->days & 1u << i) != 0) {
            tree_add(days, tree_str(r->memory, str_from(day_names[i])));
        }
    }
    if (end < start && h->days != EVERY_DAY) {
        convert_note(r, CONVERT_LOOK, h->at, h->about,
                     "a window over midnight belongs to the day on which it starts; the original "
                     "looks at the day of the moment, and so was open early on its first day and "
                     "shut early after its last");
    }
    convert_set(r, "window.days", days);
    convert_set(r, "window.from", clock_tree(start, r->memory));
    convert_set(r, "window.to", clock_tree(end, r->memory));
    if (!str_eq(utc.zone, STR("UTC"))) {
        convert_set_text(r, "window.timeZone", utc.zone);
    }
    return 0;
}

/* ── Output ──────────────────────────────────────────────────────────────────────────────────── */

/* A name or value from the file must not end its comment. */
static void comment_add(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        buf_add_char(out, c < ' ' || c == 0x7f ? ' ' : text.p[i]);
    }
}

static void notes_add(const struct convert *c, enum convert_weight weight, const char *title,
                      struct buf *out)
{
    bool first = true;
    for (uint32_t i = 0; i < c->note_n; i++) {
        if (c->notes[i].weight == weight) {
            buf_printf(out, "%s#   ", first ? title : "");
            comment_add(c->notes[i].about, out);
            buf_add(out, STR(": "));
            comment_add(c->notes[i].text, out);
            buf_add(out, STR("\n"));
            first = false;
        }
    }
}

void convert_print(const struct convert *c, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    buf_add(out, STR("# From "));
    comment_add(c->source, out);
    buf_add(out, STR("\n"));
    notes_add(c, CONVERT_LOST, "# Not carried over:\n", out);
    notes_add(c, CONVERT_LOOK, "# To look at:\n", out);
    int r = json_parse(tree_json(&tmp, c->object), JSON_GO, &tmp, &object, &err);
    ASSERT(r == 0); /* we have just written it */
    yaml_write(object, out);
    if (c->limit != NULL) {
        r = json_parse(tree_json(&tmp, c->limit), JSON_GO, &tmp, &object, &err);
        ASSERT(r == 0);
        buf_add(out, STR("---\n"));
        yaml_write(object, out);
    }
}
