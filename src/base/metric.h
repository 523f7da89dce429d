/*
 * metric: counters, gauges and histograms, each a family of series told apart by label values.
 *
 * A family's label names are fixed when it is registered. A set of label values is interned the
 * first time it is seen; from then on looking it up and updating it allocate nothing. Families and
 * their series are iterated in the order in which they came, so two expositions of one registry
 * compare line by line. web/metrics_text prints them.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

#define METRIC_LABELS_MAX 4u      /* more dimensions make a table nobody reads */
#define METRIC_BUCKETS_MAX 24u    /* a histogram is a sketch, not a recording */
#define METRIC_SERIES_MAX 10000u  /* label values come from clusters: owners, hosts, profiles */
#define METRIC_OVERFLOW "_others" /* labels of the series that takes what is over the limit */

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_spec {
    const char *name; /* a constant of the program, as are all texts here */
    const char *help;
    enum metric_kind kind;
    const char *labels[METRIC_LABELS_MAX]; /* ends at the first NULL */
    const double *buckets;                 /* METRIC_HISTOGRAM: rising upper bounds, without +Inf */
    uint32_t bucket_count;
};

struct metric_series {
    struct metric_series *next;
    const struct metric_spec *spec;
    const struct str *values; /* as many as the spec has labels */
    double value;             /* counter, gauge */
    double sum;               /* histogram */
    uint64_t count;
    uint64_t *buckets; /* observations up to each bound, and above the one before */
};

struct metric {
    struct metric *next;
    struct metrics *registry; /* borrowed: the registry it is in */
    struct metric_spec spec;
    uint32_t label_count;
    uint32_t series_count;
    struct metric_series *first;
    struct metric_series *last;
    struct map by_values;
};

struct metrics {
    struct arena memory;
    struct metric *first;
    struct metric *last;
    struct buf key; /* working memory of a lookup, kept so that a lookup allocates nothing */
    struct metric_collector *collectors;
};

void metrics_init(struct metrics *m);
void metrics_done(struct metrics *m);

/* Without a registry (`m` NULL) there are no families and no series: all that follows accepts NULL
 * and counts nothing.
 *
 * Registers a family; the same name again answers the family that is there. A family without
 * labels has its one series at once, so that it is exposed with 0 before its first update. */
struct metric *metrics_family(struct metrics *m, const struct metric_spec *spec);
/* A counter or gauge without labels. */
struct metric_series *metrics_series(struct metrics *m, enum metric_kind kind, const char *name,
                                     const char *help);
struct metric *metrics_find(const struct metrics *m, struct str name);

/* `fn` is called before each reading, to set gauges that are cheaper to ask for than to keep. */
void metrics_on_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx);
void metrics_off_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx);
void metrics_collect(struct metrics *m);

/* The series with these label values, made at first sight; good as long as the registry. `values`
 * has as many entries as the family has labels (NULL when it has none). */
struct metric_series *metric_series(struct metric *f, const struct str *values);

void metric_add(struct metric_series *s, double delta); /* a counter takes no negative delta */
void metric_set(struct metric_series *s, double value); /* gauges */
void metric_observe(struct metric_series *s, double value);
