#include "base/metric.h"

struct metric_collector {
    struct metric_collector *next;
    void (*fn)(void *ctx); /* NULL: taken off */
    void *ctx;
};

void metrics_init(struct metrics *m)
{
    *m = (struct metrics){ .first = NULL };
}

void metrics_done(struct metrics *m)
{
    for (struct metric *f = m->first; f != NULL; f = f->next) {
        map_done(&f->by_values);
    }
    buf_done(&m->key);
    arena_done(&m->memory);
    *m = (struct metrics){ .first = NULL };
}

struct metric *metrics_find(const struct metrics *m, struct str name)
{
    for (struct metric *f = m->first; f != NULL; f = f->next) {
        if (str_eq(str_from(f->spec.name), name)) {
            return f;
        }
    }
    return NULL;
}

struct metric *metrics_family(struct metrics *m, const struct metric_spec *spec)
{
    if (m == NULL) {
        return NULL;
    }
    struct metric *known = metrics_find(m, str_from(spec->name));
    if (known != NULL) {
        ASSERT(known->spec.kind == spec->kind);
        return known;
    }
    ASSERT((spec->kind == METRIC_HISTOGRAM) == (spec->bucket_count > 0));
    ASSERT(spec->bucket_count <= METRIC_BUCKETS_MAX);

    struct metric *f = ARENA_NEW(&m->memory, struct metric);
    f->registry = m;
    f->spec = *spec;
    while (f->label_count < METRIC_LABELS_MAX && spec->labels[f->label_count] != NULL) {
        f->label_count++;
    }
    if (m->last != NULL) {
        m->last->next = f;
    } else {
        m->first = f;
    }
    m->last = f;
    if (f->label_count == 0) {
        (void)metric_series(f, NULL); /* exposed with 0 from the start */
    }
    return f;
}

struct metric_series *metrics_series(struct metrics *m, enum metric_kind kind, const char *name,
                                     const char *help)
{
    const struct metric_spec spec = { .name = name, .help = help, .kind = kind };
    return metric_series(metrics_family(m, &spec), NULL);
}

void metrics_on_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx)
{
    struct metric_collector *c = ARENA_NEW(&m->memory, struct metric_collector);
    *c = (struct metric_collector){ .next = m->collectors, .fn = fn, .ctx = ctx };
    m->collectors = c;
}

void metrics_off_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx)
{
    for (struct metric_collector *c = m->collectors; c != NULL; c = c->next) {
        if (c->fn == fn && c->ctx == ctx) {
            c->fn = NULL;
        }
    }
}

void metrics_collect(struct metrics *m)
{
    for (struct metric_collector *c = m->collectors; c != NULL; c = c->next) {
        if (c->fn != NULL) {
            c->fn(c->ctx);
        }
    }
}

/* Lengths in front, so that no two sets of values share a key whatever bytes they hold. */
static struct str metric_key(struct metric *f, const struct str *values)
{
    struct buf *key = &f->registry->key;
    buf_reset(key);
    for (uint32_t i = 0; i < f->label_count; i++) {
        buf_printf(key, "%zu:", values[i].n);
        buf_add(key, values[i]);
    }
    return buf_str(key);
}

static struct metric_series *metric_intern(struct metric *f, const struct str *values)
{
    struct arena *memory = &f->registry->memory;
    struct metric_series *s = ARENA_NEW(memory, struct metric_series);
    struct str *copies = ARENA_ARRAY(memory, struct str, f->label_count);
    for (uint32_t i = 0; i < f->label_count; i++) {
        copies[i] = arena_str(memory, values[i]);
    }
    s->spec = &f->spec;
    s->values = copies;
    if (f->spec.kind == METRIC_HISTOGRAM) {
        s->buckets = ARENA_ARRAY(memory, uint64_t, f->spec.bucket_count + 1);
    }
    if (f->last != NULL) {
        f->last->next = s;
    } else {
        f->first = s;
    }
    f->last = s;
    f->series_count++;
    (void)map_put(&f->by_values, metric_key(f, values), s); /* it was not there */
    return s;
}

struct metric_series *metric_series(struct metric *f, const struct str *values)
{
    static const struct str none = { NULL, 0 };
    if (f == NULL) {
        return NULL;
    }
    if (values == NULL) {
        ASSERT(f->label_count == 0);
        values = &none;
    }
    struct metric_series *s = map_find(&f->by_values, metric_key(f, values));
    if (s != NULL) {
        return s;
    }
    if (f->series_count < METRIC_SERIES_MAX) {
        return metric_intern(f, values);
    }
    struct str others[METRIC_LABELS_MAX];
    for (uint32_t i = 0; i < METRIC_LABELS_MAX; i++) {
        others[i] = STR(METRIC_OVERFLOW);
    }
    s = map_find(&f->by_values, metric_key(f, others));
    return s != NULL ? s : metric_intern(f, others);
}

void metric_add(struct metric_series *s, double delta)
{
    if (s == NULL) {
        return;
    }
    ASSERT(s->spec->kind == METRIC_GAUGE || (s->spec->kind == METRIC_COUNTER && delta >= 0));
    s->value += delta;
}

void metric_set(struct metric_series *s, double value)
{
    if (s == NULL) {
        return;
    }
    ASSERT(s->spec->kind == METRIC_GAUGE);
    s->value = value;
}

void metric_observe(struct metric_series *s, double value)
{
    if (s == NULL) {
        return;
    }
    ASSERT(s->spec->kind == METRIC_HISTOGRAM);
    uint32_t i = 0;
    while (i < s->spec->bucket_count && value > s->spec->buckets[i]) {
        i++;
    }
    s->buckets[i]++;
    s->count++;
    s->sum += value;
}
