/* The methods of nodes, times, durations, quantities and resource lists; declared in
 * template_func.h. */
#include "format/goprintf.h"
#include "format/gotime.h"
#include "format/quantity.h"
#include "format/template.h"
#include "format/template_func.h"

#define DATE_STEP_MAX 1000000 /* AddDate beyond this leaves every calendar */
#define NSEC_SEC 1000000000

static int any_string(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    goprintf_print(&text, c->args, 1, c->tmp);
    *c->ret = govalue_str(arena_str(c->tmp, buf_str(&text)));
    return 0;
}

/* A template changes nothing, so nobody could tell a copy from what it was made of. */
static int any_copy(struct tcall *c)
{
    *c->ret = c->args[0];
    return 0;
}

static int time_format(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    gotime_format(&text, c->args[0].time, c->args[1].text);
    if (text.full) {
        return err_set(c->err, ERR_LIMIT, "a text of more than %zu bytes", TEMPLATE_OUTPUT_MAX);
    }
    *c->ret = govalue_str(arena_str(c->tmp, buf_str(&text)));
    return 0;
}

static struct civil civil_of(const struct tcall *c)
{
    return civil_from_sec(c->args[0].time.sec + c->args[0].time.offset);
}

enum { YEAR, MONTH, DAY, WEEKDAY, HOUR, MINUTE, SECOND, NANOSECOND, YEAR_DAY, UNIX };

static int time_part(struct tcall *c)
{
    struct timestamp time = c->args[0].time;
    struct civil date = civil_of(c);
    const int64_t parts[] = {
        [YEAR] = date.year,       [MONTH] = date.month,   [DAY] = date.day,
        [HOUR] = date.hour,       [MINUTE] = date.minute, [WEEKDAY] = date.weekday,
        [UNIX] = time.sec,        [SECOND] = date.second, [YEAR_DAY] = gotime_year_day(time),
        [NANOSECOND] = time.nsec,
    };
    *c->ret = govalue_i64(parts[c->part]);
    c->ret->type = c->part == MONTH ? &gotype_month : c->part == WEEKDAY ? &gotype_weekday : NULL;
    return 0;
}

static int time_unix_milli(struct tcall *c)
{
    uint64_t whole = (uint64_t)c->args[0].time.sec * 1000; /* far from now it wraps, as in Go */
    *c->ret = govalue_i64((int64_t)(whole + (uint64_t)c->args[0].time.nsec / 1000000));
    return 0;
}

static int time_is_zero(struct tcall *c)
{
    *c->ret = govalue_bool(c->args[0].kind == GO_NIL || timestamp_is_zero(c->args[0].time));
    return 0;
}

static int time_utc(struct tcall *c)
{
    *c->ret = govalue_time(c->args[0].time);
    c->ret->time.offset = 0;
    return 0;
}

static int time_add(struct tcall *c)
{
    struct timestamp time = c->args[0].time;
    int64_t nsec = time.nsec + c->args[1].number % NSEC_SEC;
    time.sec += c->args[1].number / NSEC_SEC + (nsec >= NSEC_SEC ? 1 : 0) - (nsec < 0 ? 1 : 0);
    time.nsec = (int32_t)((nsec + NSEC_SEC) % NSEC_SEC);
    *c->ret = govalue_time(time);
    return 0;
}

static int time_add_date(struct tcall *c)
{
    struct civil date = civil_of(c);
    for (uint32_t i = 1; i < 4; i++) {
        if (c->args[i].number > DATE_STEP_MAX || c->args[i].number < -DATE_STEP_MAX) {
            return err_set(c->err, ERR_INVALID, "found %lld, want at most %d of them",
                           (long long)c->args[i].number, DATE_STEP_MAX);
        }
    }
    int64_t month = date.month - 1 + c->args[2].number;
    int64_t years = month >= 0 ? month / 12 : (month - 11) / 12;
    date.year += c->args[1].number + years;
    date.month = (int)(month - years * 12) + 1;
    date.day += (int)c->args[3].number;
    struct timestamp time = c->args[0].time;
    time.sec = civil_to_sec(&date) - time.offset;
    *c->ret = govalue_time(time);
    return 0;
}

static int stamp_cmp(struct timestamp a, struct timestamp b)
{
    int order = (a.sec > b.sec) - (a.sec < b.sec);
    return order != 0 ? order : (a.nsec > b.nsec) - (a.nsec < b.nsec);
}

enum { BEFORE = -1, EQUAL, AFTER };

static int time_compare(struct tcall *c)
{
    *c->ret = govalue_bool(stamp_cmp(c->args[0].time, c->args[1].time) == c->part);
    return 0;
}

/* As in Go, a difference that does not fit is the largest that does. */
static int time_sub(struct tcall *c)
{
    struct timestamp a = c->args[0].time;
    struct timestamp b = c->args[1].time;
    int64_t ns;
    if (__builtin_mul_overflow(a.sec - b.sec, (int64_t)NSEC_SEC, &ns) ||
        __builtin_add_overflow(ns, (int64_t)a.nsec - b.nsec, &ns)) {
        ns = a.sec < b.sec ? INT64_MIN : INT64_MAX;
    }
    *c->ret = govalue_i64(ns);
    c->ret->type = &gotype_duration;
    return 0;
}

/* `part` is the unit in seconds. Whole ones and the rest apart, or the last digit is another. */
static int duration_in(struct tcall *c)
{
    int64_t unit = (int64_t)c->part * NSEC_SEC;
    int64_t ns = c->args[0].number;
    int64_t whole = ns / unit;
    double amount = (double)whole + (double)(ns % unit) / (double)unit;
    *c->ret = (struct govalue){ .kind = GO_FLOAT, .parts = { amount } };
    return 0;
}

static int quantity_read(struct tcall *c, struct quantity *ret)
{
    return quantity_parse(c->args[0].text, ret, c->err);
}

static int quantity_whole(struct tcall *c, bool (*read)(const struct quantity *, int64_t *))
{
    struct quantity q;
    int64_t value = 0;
    int r = quantity_read(c, &q);
    if (r < 0) {
        return r;
    }
    if (!read(&q, &value)) {
        return err_set(c->err, ERR_INVALID, "quantity '" STR_FMT "' is too large for a number",
                       STR_ARG(c->args[0].text));
    }
    *c->ret = govalue_i64(value);
    return 0;
}

static int quantity_of_value(struct tcall *c)
{
    return quantity_whole(c, quantity_value);
}

static int quantity_of_milli(struct tcall *c)
{
    return quantity_whole(c, quantity_milli);
}

static int quantity_is_zero(struct tcall *c)
{
    struct quantity q;
    int r = quantity_read(c, &q);
    *c->ret = govalue_bool(r == 0 && quantity_sign(&q) == 0);
    return r;
}

static int quantity_of_sign(struct tcall *c)
{
    struct quantity q;
    int r = quantity_read(c, &q);
    *c->ret = govalue_i64(r == 0 ? quantity_sign(&q) : 0);
    return r;
}

enum { CPU, MEMORY, PODS, STORAGE, EPHEMERAL };

static int resource_get(struct tcall *c)
{
    static const struct str names[] = {
        [CPU] = STR_INIT("cpu"),
        [MEMORY] = STR_INIT("memory"),
        [PODS] = STR_INIT("pods"),
        [STORAGE] = STR_INIT("storage"),
        [EPHEMERAL] = STR_INIT("ephemeral-storage"),
    };
    if (!govalue_member(&c->args[0], names[c->part], c->tmp, c->ret)) {
        *c->ret = govalue_from(gotype_resources.item, NULL, c->tmp);
    }
    return 0;
}

static const struct template_method methods[] = {
    { GO_STRUCT, 0, &gotype_node, STR_INIT("DeepCopy"), "", any_copy },
    { GO_STRUCT, 0, &gotype_node, STR_INIT("DeepCopyObject"), "", any_copy },
    { GO_MAP, 0, &gotype_resources, STR_INIT("DeepCopy"), "", any_copy },
    { GO_QUANTITY, 0, NULL, STR_INIT("DeepCopy"), "", any_copy },
    { GO_TIME, 0, NULL, STR_INIT("Format"), "s", time_format },
    { GO_TIME, 0, NULL, STR_INIT("String"), "", any_string },
    { GO_TIME, YEAR, NULL, STR_INIT("Year"), "", time_part },
    { GO_TIME, MONTH, NULL, STR_INIT("Month"), "", time_part },
    { GO_TIME, DAY, NULL, STR_INIT("Day"), "", time_part },
    { GO_TIME, WEEKDAY, NULL, STR_INIT("Weekday"), "", time_part },
    { GO_TIME, HOUR, NULL, STR_INIT("Hour"), "", time_part },
    { GO_TIME, MINUTE, NULL, STR_INIT("Minute"), "", time_part },
    { GO_TIME, SECOND, NULL, STR_INIT("Second"), "", time_part },
    { GO_TIME, NANOSECOND, NULL, STR_INIT("Nanosecond"), "", time_part },
    { GO_TIME, YEAR_DAY, NULL, STR_INIT("YearDay"), "", time_part },
    { GO_TIME, UNIX, NULL, STR_INIT("Unix"), "", time_part },
    { GO_TIME, 0, NULL, STR_INIT("UnixMilli"), "", time_unix_milli },
    { GO_TIME, 0, NULL, STR_INIT("IsZero"), "", time_is_zero },
    { GO_TIME, 0, NULL, STR_INIT("UTC"), "", time_utc },
    { GO_TIME, 0, NULL, STR_INIT("Add"), "i", time_add },
    { GO_TIME, 0, NULL, STR_INIT("AddDate"), "iii", time_add_date },
    { GO_TIME, BEFORE, NULL, STR_INIT("Before"), "t", time_compare },
    { GO_TIME, AFTER, NULL, STR_INIT("After"), "t", time_compare },
    { GO_TIME, EQUAL, NULL, STR_INIT("Equal"), "t", time_compare },
    { GO_TIME, 0, NULL, STR_INIT("Sub"), "t", time_sub },
    { GO_NIL, 0, NULL, STR_INIT("IsZero"), "", time_is_zero },
    { GO_INT, 0, &gotype_month, STR_INIT("String"), "", any_string },
    { GO_INT, 0, &gotype_weekday, STR_INIT("String"), "", any_string },
    { GO_INT, 0, &gotype_duration, STR_INIT("String"), "", any_string },
    { GO_INT, 3600, &gotype_duration, STR_INIT("Hours"), "", duration_in },
    { GO_INT, 60, &gotype_duration, STR_INIT("Minutes"), "", duration_in },
    { GO_INT, 1, &gotype_duration, STR_INIT("Seconds"), "", duration_in },
    { GO_QUANTITY, 0, NULL, STR_INIT("String"), "", any_string },
    { GO_QUANTITY, 0, NULL, STR_INIT("Value"), "", quantity_of_value },
    { GO_QUANTITY, 0, NULL, STR_INIT("MilliValue"), "", quantity_of_milli },
    { GO_QUANTITY, 0, NULL, STR_INIT("IsZero"), "", quantity_is_zero },
    { GO_QUANTITY, 0, NULL, STR_INIT("Sign"), "", quantity_of_sign },
    { GO_MAP, CPU, &gotype_resources, STR_INIT("Cpu"), "", resource_get },
    { GO_MAP, MEMORY, &gotype_resources, STR_INIT("Memory"), "", resource_get },
    { GO_MAP, PODS, &gotype_resources, STR_INIT("Pods"), "", resource_get },
    { GO_MAP, STORAGE, &gotype_resources, STR_INIT("Storage"), "", resource_get },
    { GO_MAP, EPHEMERAL, &gotype_resources, STR_INIT("StorageEphemeral"), "", resource_get },
};

const struct template_method *template_method_find(const struct govalue *receiver, struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        const struct template_method *m = &methods[i];
        bool fits = m->kind == receiver->kind && (m->type == NULL || m->type == receiver->type);
        /* Of nil pointers only times have a method that takes them. */
        fits = fits && (m->kind != GO_NIL || receiver->type->kind == GO_TIME);
        if (fits && str_eq(m->name, name)) {
            return m;
        }
    }
    return NULL;
}

int template_method_call(const struct template_method *m, struct tcall *c)
{
    size_t wanted = strlen(m->args);
    if (c->n - 1 != wanted) {
        return err_set(c->err, ERR_INVALID, "found %u arguments, want %zu", c->n - 1, wanted);
    }
    for (size_t i = 0; i < wanted; i++) {
        enum gokind kind = m->args[i] == 's' ? GO_STRING : m->args[i] == 'i' ? GO_INT : GO_TIME;
        if (c->args[i + 1].kind != kind) {
            return err_set(c->err, ERR_INVALID, "found %s, want %s",
                           govalue_type_name(&c->args[i + 1]),
                           kind == GO_STRING ? "a string"
                           : kind == GO_INT  ? "a whole number"
                                             : "a time");
        }
    }
    c->part = m->part;
    return m->run(c);
}
