#include "calendar/zone.h"

#include "calendar/posix_tz.h"

#define HEADER_BYTES 44
#define OFFSET_MIN (-90000) /* RFC 8536 section 3.2: the range that other readers accept */
#define OFFSET_MAX 93600

struct zone {
    int64_t *at; /* transitions, ascending */
    uint8_t *to; /* the kind that begins there */
    uint32_t n;
    struct posix_tz_kind *kinds; /* the first is also that before all transitions */
    bool ruled;                  /* there is a footer */
    struct posix_tz rule;
};

struct zone_counts {
    uint32_t isut, isstd, leap, time, kind, chars;
};

static uint64_t zone_number(const char *p, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | (uint8_t)p[i];
    }
    return value;
}

/* Takes a header and says how long the block behind it is, at `width` bytes a time. */
static int zone_read_header(struct str *rest, size_t width, struct zone_counts *c, size_t *ret_n,
                            struct err *err)
{
    if (rest->n < HEADER_BYTES || !str_starts(*rest, STR("TZif"))) {
        return err_set(err, ERR_INVALID, "time zone: found no 'TZif' header, want a TZif file");
    }
    if (rest->p[4] < '2') {
        return err_set(err, ERR_INVALID, "time zone: found version 1, want 2 or later");
    }
    uint32_t *fields[] = { &c->isut, &c->isstd, &c->leap, &c->time, &c->kind, &c->chars };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        *fields[i] = (uint32_t)zone_number(rest->p + 20 + 4 * i, 4);
    }
    size_t n = c->time * (width + 1) + c->kind * (size_t)6 + c->chars + c->leap * (width + 4) +
               c->isstd + c->isut;
    if (n > rest->n - HEADER_BYTES) {
        return err_set(err, ERR_INVALID, "time zone: found %zu bytes, want %zu: cut off",
                       rest->n - HEADER_BYTES, n);
    }
    *rest = str_sub(*rest, HEADER_BYTES, rest->n - HEADER_BYTES);
    *ret_n = n;
    return 0;
}

static int zone_read_kinds(struct zone *z, const struct zone_counts *c, const char *p,
                           struct arena *out, struct err *err)
{
    struct str names = arena_str(out, (struct str){ .p = p + c->kind * (size_t)6, .n = c->chars });
    z->kinds = ARENA_ARRAY(out, struct posix_tz_kind, c->kind);
    for (uint32_t i = 0; i < c->kind; i++, p += 6) {
        int32_t offset = (int32_t)zone_number(p, 4);
        uint8_t name = (uint8_t)p[5];
        if (offset <= OFFSET_MIN || offset >= OFFSET_MAX || name >= c->chars) {
            return err_set(err, ERR_INVALID,
                           "time zone: kind %u: want an offset of about a day at most, and a name",
                           i);
        }
        struct str rest = str_sub(names, name, names.n - name);
        size_t end = str_find_char(rest, '\0');
        z->kinds[i] = (struct posix_tz_kind){ .offset = offset,
                                              .dst = p[4] != 0,
                                              .name = str_sub(rest, 0, MIN(end, rest.n)) };
    }
    return 0;
}

static int zone_read_table(struct zone *z, const struct zone_counts *c, const char *p,
                           struct arena *out, struct err *err)
{
    if (c->leap != 0) {
        return err_set(err, ERR_INVALID, "time zone: found leap seconds, want a zone without");
    }
    if (c->kind == 0 || c->kind > 256 || c->chars == 0) {
        return err_set(
            err, ERR_INVALID,
            "time zone: found %u kinds of time with %u bytes of names, want 1 to 256 kinds",
            c->kind, c->chars);
    }
    z->n = c->time;
    z->at = ARENA_ARRAY(out, int64_t, c->time + (size_t)1);
    z->to = ARENA_ARRAY(out, uint8_t, c->time + (size_t)1);
    for (uint32_t i = 0; i < c->time; i++) {
        z->at[i] = (int64_t)zone_number(p + i * (size_t)8, 8);
        z->to[i] = (uint8_t)p[c->time * (size_t)8 + i];
        if ((i > 0 && z->at[i] <= z->at[i - 1]) || z->to[i] >= c->kind) {
            return err_set(err, ERR_INVALID,
                           "time zone: transition %u: want ascending times of "
                           "known kinds",
                           i);
        }
    }
    return zone_read_kinds(z, c, p + c->time * (size_t)9, out, err);
}

int zone_parse(struct str bytes, struct arena *out, const struct zone **ret, struct err *err)
{
    struct zone *z = ARENA_NEW(out, struct zone);
    struct zone_counts counts = { 0 };
    size_t n = 0;
    if (bytes.n > ZONE_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "time zone: found %zu bytes, want %zu at most", bytes.n,
                       ZONE_BYTES_MAX);
    }
    int r = zone_read_header(&bytes, 4, &counts, &n, err);
    if (r < 0) {
        return r;
    }
    bytes = str_sub(bytes, n, bytes.n - n); /* the first block is for readers of version 1 */
    r = zone_read_header(&bytes, 8, &counts, &n, err);
    if (r < 0) {
        return r;
    }
    r = zone_read_table(z, &counts, bytes.p, out, err);
    if (r < 0) {
        return r;
    }
    struct str footer = str_sub(bytes, n, bytes.n - n);
    z->ruled = footer.n > 2;
    if (!str_cut_prefix(footer, STR("\n"), &footer) ||
        !str_cut_suffix(footer, STR("\n"), &footer) ||
        (footer.n > 0 && !posix_tz_parse(arena_str(out, footer), &z->rule))) {
        struct str shown = str_sub(footer, 0, 64);
        return err_set(err, ERR_INVALID,
                       "time zone: rule '" STR_FMT "': want one as in 'CET-1CEST,M3.5.0,M10.5.0/3'",
                       STR_ARG(shown));
    }
    *ret = z;
    return 0;
}

struct zone_span zone_at(const struct zone *z, int64_t sec)
{
    ASSERT(sec > -ZONE_SEC_MAX && sec < ZONE_SEC_MAX);
    struct zone_span span = { .from = INT64_MIN, .until = INT64_MAX, .name = STR("UTC") };
    if (z == NULL) {
        return span;
    }
    uint32_t low = 0; /* how many transitions there are up to `sec` */
    for (uint32_t high = z->n; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (z->at[middle] <= sec) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct posix_tz_kind *kind = &z->kinds[low > 0 ? z->to[low - 1] : 0];
    span.before = kind->offset;
    if (low == z->n && z->ruled) {
        struct posix_tz_span rule = posix_tz_at(&z->rule, sec);
        span.from = rule.from;
        span.until = rule.until;
        span.before = rule.before;
        kind = rule.kind;
    }
    if (low < z->n) {
        span.until = z->at[low];
    }
    if (low > 0 && z->at[low - 1] >= span.from) {
        span.from = z->at[low - 1];
        span.before = z->kinds[low > 1 ? z->to[low - 2] : 0].offset;
    }
    span.offset = kind->offset;
    span.dst = kind->dst;
    span.name = kind->name;
    ASSERT(span.from <= sec && sec < span.until);
    return span;
}

struct zone_instants zone_instants(const struct zone *z, int64_t local)
{
    struct zone_instants found = { .fit = ZONE_GAP };
    int n = 0;
    for (int64_t sec = local - OFFSET_MAX; sec <= local - OFFSET_MIN;) {
        struct zone_span span = zone_at(z, sec);
        int64_t instant = local - span.offset;
        if (instant >= span.from && instant < span.until) {
            found.first = n == 0 ? instant : found.first;
            found.last = instant;
            n++;
        } else if (n == 0 && instant < span.from && local - span.before >= span.from) {
            found.first = span.from;
            found.last = span.from;
        }
        sec = span.until;
    }
    if (n > 0) {
        found.fit = n == 1 ? ZONE_ONCE : ZONE_FOLD;
    }
    return found;
}

struct zone_pace zone_pace(const struct zone *z, int64_t sec)
{
    struct zone_span span = zone_at(z, sec);
    int64_t back = (int64_t)span.before - span.offset; /* how far the clocks were put back */
    /* Unsigned: the first span begins as long ago as a number can say. */
    if (back > 0 && (uint64_t)sec - (uint64_t)span.from < (uint64_t)back) {
        return (struct zone_pace){ .stands = true,
                                   .local = span.from + span.before - 1,
                                   .until = MIN(span.until, span.from + back) };
    }
    return (struct zone_pace){ .local = sec + span.offset, .until = span.until };
}
