#include "kinds/spec_read.h"

#include <stdarg.h>

#include "base/duration.h"
#include "format/json_writer.h"
#include "format/label_syntax.h"

bool spec_read_selector(const struct jval *v, struct arena *out, struct selector *ret,
                        struct str *ret_problem)
{
    struct err err = { 0 };
    if (v == NULL || jval_kind(v) == JNULL) {
        return false;
    }
    if (selector_from_jval(v, out, ret, &err) < 0) {
        *ret_problem = arena_str(out, str_from(err.msg));
        return false;
    }
    return true;
}

static struct str json_of(const struct jval *v, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_val(&w, v);
    return arena_str(out, buf_str(&text));
}

struct str spec_read_status(const struct jval *object, struct arena *out)
{
    const struct jval *status = jval_get(object, STR("status"));
    return jval_kind(status) == JOBJ ? json_of(status, out) : STR("{}");
}

struct spec_meta spec_read_meta(const struct jval *object, struct arena *out)
{
    const struct jval *meta = jval_get(object, STR("metadata"));
    struct spec_meta m = {
        .name = arena_str(out, jval_str(jval_get(meta, STR("name")))),
        .namespace = arena_str(out, jval_str(jval_get(meta, STR("namespace")))),
        .uid = arena_str(out, jval_str(jval_get(meta, STR("uid")))),
        .version = arena_str(out, jval_str(jval_get(meta, STR("resourceVersion")))),
        .created = jval_time(jval_get(meta, STR("creationTimestamp")), 0),
        .deleting = jval_str(jval_get(meta, STR("deletionTimestamp"))).n > 0,
    };
    (void)jval_i64(jval_get(meta, STR("generation")), &m.generation); /* absent: 0 */
    return m;
}

struct spec_node spec_root(struct spec_reader *reader, const struct jval *object, const char *key)
{
    return (
        struct spec_node){ .reader = reader, .key = key, .value = jval_get(object, str_from(key)) };
}

struct spec_node spec_member(const struct spec_node *parent, const char *key)
{
    const struct jval *v = jval_get(parent->value, str_from(key));
    return (struct spec_node){ .reader = parent->reader,
                               .parent = parent,
                               .key = key,
                               .value = jval_kind(v) == JNULL ? NULL : v };
}

struct spec_node spec_element(const struct spec_node *list, const struct jval *v, uint32_t index)
{
    return (struct spec_node){ .reader = list->reader, .parent = list, .index = index, .value = v };
}

bool spec_has(const struct spec_node *at, const char *key)
{
    return spec_member(at, key).value != NULL;
}

static void path_add(const struct spec_node *at, struct buf *out)
{
    if (at->parent != NULL) {
        path_add(at->parent, out);
    }
    if (at->key == NULL) {
        buf_printf(out, "[%u]", at->index);
    } else {
        buf_printf(out, "%s%s", out->n > 0 ? "." : "", at->key);
    }
}

static struct str found_text(const struct jval *v, struct arena *out)
{
    if (v == NULL) {
        return STR_NONE;
    }
    struct str text = json_of(v, out);
    if (text.n <= SPEC_FOUND_MAX) {
        return text;
    }
    size_t n = SPEC_FOUND_MAX;
    while (n > 0 && ((unsigned char)text.p[n] & 0xc0u) == 0x80u) {
        n--; /* not inside a character */
    }
    return arena_concat(out, str_sub(text, 0, n), STR("…"));
}

void spec_wrong(const struct spec_node *at, const char *reason, const char *wanted_fmt, ...)
{
    struct spec_problem *p = &at->reader->problem;
    if (p->reason.n > 0) {
        return;
    }
    CLEANUP(buf_done)
    struct buf path = { 0 };
    CLEANUP(buf_done)
    struct buf wanted = { 0 };
    va_list args;
    va_start(args, wanted_fmt);
    buf_vprintf(&wanted, wanted_fmt, args);
    va_end(args);
    path_add(at, &path);
    *p = (struct spec_problem){
        .reason = str_from(reason),
        .field = arena_str(at->reader->out, buf_str(&path)),
        .found = found_text(at->value, at->reader->out),
        .wanted = arena_str(at->reader->out, buf_str(&wanted)),
    };
}

void spec_only(const struct spec_node *at, const char *const *keys, uint32_t n)
{
    JVAL_EACH (jval_kind(at->value) == JOBJ ? at->value : NULL, member) {
        uint32_t k = 0;
        while (k < n && !str_eq(jval_key(member), str_from(keys[k]))) {
            k++;
        }
        if (k == n) {
            CLEANUP(buf_done)
            struct buf list = { 0 };
            for (uint32_t i = 0; i < n; i++) {
                buf_printf(&list, "%s%s", i > 0 ? ", " : "", keys[i]);
            }
            spec_wrong(at, "Invalid", "no field '" STR_FMT "' but only " STR_FMT,
                       STR_ARG(jval_key(member)), STR_ARG(buf_str(&list)));
            return;
        }
    }
}

struct str spec_problem_text(const struct spec_problem *p, struct arena *out)
{
    if (p->reason.n == 0) {
        return STR_NONE;
    }
    return arena_printf(out, STR_FMT ": found " STR_FMT ", want " STR_FMT, STR_ARG(p->field),
                        STR_ARG(p->found.n > 0 ? p->found : STR("nothing")), STR_ARG(p->wanted));
}

struct str spec_text(const struct spec_node *at, const char *key)
{
    struct spec_node m = spec_member(at, key);
    if (m.value == NULL) {
        return STR_NONE;
    }
    if (jval_kind(m.value) != JSTR) {
        spec_wrong(&m, "Invalid", "a text");
        return STR_NONE;
    }
    return arena_str(at->reader->out, jval_str(m.value));
}

bool spec_bool(const struct spec_node *at, const char *key, bool otherwise)
{
    struct spec_node m = spec_member(at, key);
    if (m.value != NULL && jval_kind(m.value) != JBOOL) {
        spec_wrong(&m, "Invalid", "true or false");
    }
    return jval_bool(m.value, otherwise);
}

int64_t spec_number(const struct spec_node *at, const char *key, int64_t otherwise, int64_t min,
                    int64_t max)
{
    struct spec_node m = spec_member(at, key);
    int64_t n = 0;
    if (m.value == NULL) {
        return otherwise;
    }
    if (!jval_i64(m.value, &n) || n < min || n > max) {
        spec_wrong(&m, "Invalid", "a whole number from %lld to %lld", (long long)min,
                   (long long)max);
        return otherwise;
    }
    return n;
}

/* Go's durations without signs, fractions and units below a second: what the schema has. */
static bool duration_is_plain(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool unit = c == 'h' || c == 's' || (c == 'm' && (i + 1 == text.n || text.p[i + 1] != 's'));
        if (!unit && (c < '0' || c > '9')) {
            return false;
        }
    }
    return text.n >= 2;
}

usec_t spec_duration(const struct spec_node *at, const char *key, usec_t otherwise)
{
    struct spec_node m = spec_member(at, key);
    struct err err = { 0 };
    int64_t ns = 0;
    if (m.value == NULL) {
        return otherwise;
    }
    struct str text = jval_str(m.value);
    if (!duration_is_plain(text) || duration_parse(text, &ns, &err) < 0) {
        spec_wrong(&m, "Invalid", "a duration such as 90s, 30m, 1h30m; 24h for a day");
        return otherwise;
    }
    return ns / 1000;
}

usec_t spec_time(const struct spec_node *at, const char *key)
{
    struct spec_node m = spec_member(at, key);
    usec_t t = m.value == NULL ? 0 : jval_time(m.value, USEC_NEVER);
    if (t == USEC_NEVER) {
        spec_wrong(&m, "Invalid", "a time such as 2026-11-15T22:00:00Z");
        return 0;
    }
    return t;
}

uint32_t spec_enum(const struct spec_node *at, const char *key, const char *const *names,
                   uint32_t n, uint32_t otherwise)
{
    struct spec_node m = spec_member(at, key);
    if (m.value == NULL) {
        return otherwise;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (jval_kind(m.value) == JSTR && str_eq(jval_str(m.value), str_from(names[i]))) {
            return i;
        }
    }
    CLEANUP(buf_done)
    struct buf list = { 0 };
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    spec_wrong(&m, "Invalid", "one of " STR_FMT, STR_ARG(buf_str(&list)));
    return otherwise;
}

struct spec_share spec_share(const struct spec_node *at, const char *key, uint32_t min)
{
    struct spec_node m = spec_member(at, key);
    struct str digits = STR_NONE;
    int64_t n = 0;
    if (m.value == NULL) {
        return (struct spec_share){ 0 };
    }
    if (jval_kind(m.value) == JNUM && jval_i64(m.value, &n) && n >= min && n <= 100000) {
        return (struct spec_share){ .given = true, .n = (uint32_t)n };
    }
    uint32_t percent = 0;
    if (str_cut_suffix(jval_str(m.value), STR("%"), &digits) && str_to_u32(digits, &percent) &&
        percent >= min && percent <= 100) {
        return (struct spec_share){ .given = true, .percent = true, .n = percent };
    }
    spec_wrong(&m, "Invalid", "a number from %u without quotes, or a percentage such as 10%%", min);
    return (struct spec_share){ 0 };
}

bool spec_is_dns_label(struct str name, size_t max)
{
    CLEANUP(buf_done)
    struct buf why = { 0 };
    return name.n <= max && str_find_char(name, '.') == SIZE_MAX &&
           label_subdomain_check(name, &why);
}

uint32_t spec_share_of(struct spec_share share, uint32_t whole)
{
    if (!share.percent) {
        return share.n;
    }
    return (uint32_t)(((uint64_t)share.n * whole + 99) / 100);
}

struct spec_node spec_next(const struct spec_node *list, const struct spec_node *element)
{
    return spec_element(list, jval_next(list->value, element->value), element->index + 1);
}

struct spec_node spec_first(const struct spec_node *list, uint32_t max)
{
    if (list->value != NULL && (jval_kind(list->value) != JARR || list->value->n > max)) {
        spec_wrong(list, "Invalid", "a list of at most %u", max);
        return spec_element(list, NULL, 0);
    }
    return spec_element(list, jval_first(list->value), 0);
}

uint32_t spec_count(const struct spec_node *list)
{
    return list->value != NULL && jval_kind(list->value) == JARR ? list->value->n : 0;
}

struct spec_texts spec_texts(const struct spec_node *at, const char *key, uint32_t max)
{
    struct spec_node list = spec_member(at, key);
    uint32_t n = 0;
    struct str *items = ARENA_ARRAY(at->reader->out, struct str, spec_count(&list));
    SPEC_EACH(&list, max, item)
    {
        if (jval_kind(item.value) != JSTR) {
            spec_wrong(&item, "Invalid", "a text");
            return (struct spec_texts){ 0 };
        }
        items[n++] = arena_str(at->reader->out, jval_str(item.value));
    }
    return (struct spec_texts){ .items = items, .n = n };
}

bool spec_selector(const struct spec_node *at, const char *key, struct selector *ret)
{
    struct spec_node m = spec_member(at, key);
    struct str problem = STR_NONE;
    bool found = spec_read_selector(m.value, at->reader->out, ret, &problem);
    if (problem.n > 0) {
        spec_wrong(&m, "Invalid", "a label selector: " STR_FMT, STR_ARG(problem));
    } else if (found && ret->n == 0) {
        /* What is emptied on the way must not mean everything. */
        spec_wrong(&m, "Invalid", "matchLabels or matchExpressions");
        return false;
    }
    return found;
}

struct str spec_json(const struct spec_node *at, const char *key)
{
    struct spec_node m = spec_member(at, key);
    return m.value == NULL ? STR_NONE : json_of(m.value, at->reader->out);
}
