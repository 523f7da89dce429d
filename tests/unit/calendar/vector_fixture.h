/*
 * vector_fixture: the recorded cases of the original's checks and schedules, and how their YAML
 * becomes what calendar/ takes. Where a text is refused, `bad` is set and the first complaint is in
 * `err`.
 */
#pragma once

#include "base/duration.h"
#include "calendar/day.h"
#include "format/yaml.h"
#include "tests/vectors.h"

struct schedule_config {
    const struct jval *root;
    bool invalid;
    struct err err;
};

static inline void schedule_parse(struct schedule_config *c, const struct jval *one,
                                  struct arena *a)
{
    struct ydoc doc;
    *c = (struct schedule_config){ 0 };
    CHECK_EQ(ydoc_parse(jval_str(jval_get(one, STR("config"))), a, &doc, &c->err), 0);
    c->root = doc.root;
}

static inline void schedule_check(struct schedule_config *c, int r)
{
    c->invalid = c->invalid || r < 0;
}

static inline struct str schedule_scalar(const struct jval *v)
{
    return jval_kind(v) == JNUM ? (struct str){ .p = v->p, .n = v->n } : jval_str(v);
}

static inline uint8_t schedule_weekdays(struct schedule_config *c, const char *key)
{
    const struct jval *v = jval_get(c->root, str_from(key));
    uint8_t set = 0;
    int weekday = 0;
    if (jval_kind(v) == JSTR) {
        schedule_check(c, day_parse_weekday(jval_str(v), &weekday, &c->err));
        return (uint8_t)(1u << weekday);
    }
    JVAL_EACH (v, item) {
        schedule_check(c, day_parse_weekday(jval_str(item), &weekday, &c->err));
        set = (uint8_t)(set | 1u << weekday);
    }
    return set;
}

static inline uint32_t schedule_time_of_day(struct schedule_config *c, const char *key)
{
    uint32_t sec = 0;
    schedule_check(
        c, day_parse_clock(schedule_scalar(jval_get(c->root, str_from(key))), &sec, &c->err));
    return sec;
}

/* A text, as the checks have it: a number without a unit is refused. */
static inline int64_t schedule_duration(struct schedule_config *c, const char *key)
{
    int64_t ns = 0;
    schedule_check(c,
                   duration_parse(schedule_scalar(jval_get(c->root, str_from(key))), &ns, &c->err));
    return ns;
}

/* A typed value, as the schedules have it: a number counts seconds, none at all is the default. */
static inline int64_t schedule_duration_or(struct schedule_config *c, const char *key,
                                           int64_t fallback)
{
    const struct jval *v = jval_get(c->root, str_from(key));
    int64_t sec = 0;
    if (v == NULL) {
        return fallback;
    }
    return jval_i64(v, &sec) ? sec * 1000000000 : schedule_duration(c, key);
}

static inline struct timestamp schedule_timestamp(const struct jval *one, const char *key)
{
    struct timestamp s = { 0 };
    struct err err = { 0 };
    CHECK_EQ(timestamp_parse(jval_str(jval_get(one, str_from(key))), &s, &err), 0);
    return s;
}
