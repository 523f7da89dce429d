#include "calendar/elapsed.h"

#define SEC_NS 1000000000
#define SEC_US 1000000

static struct lapse lapse_of(int64_t sec, int64_t nsec)
{
    int64_t carry = nsec / SEC_NS - (nsec % SEC_NS < 0 ? 1 : 0);
    return (struct lapse){ .sec = sec + carry, .nsec = (int32_t)(nsec - carry * SEC_NS) };
}

struct lapse lapse_from_ns(int64_t ns)
{
    return lapse_of(ns / SEC_NS, ns % SEC_NS);
}

int64_t lapse_to_ns(struct lapse a)
{
    int64_t ns;
    if (a.sec < 0) {
        /* Towards zero first: the smallest number has no room for its rounded down seconds. */
        a.sec++;
        a.nsec -= SEC_NS;
    }
    if (__builtin_mul_overflow(a.sec, (int64_t)SEC_NS, &ns) ||
        __builtin_add_overflow(ns, (int64_t)a.nsec, &ns)) {
        return a.sec < 0 ? INT64_MIN : INT64_MAX;
    }
    return ns;
}

struct lapse lapse_between(struct timestamp from, struct timestamp to)
{
    return lapse_of(to.sec - from.sec, (int64_t)to.nsec - from.nsec);
}

struct lapse lapse_sub(struct lapse a, struct lapse b)
{
    return lapse_of(a.sec - b.sec, (int64_t)a.nsec - b.nsec);
}

int lapse_cmp(struct lapse a, struct lapse b)
{
    if (a.sec != b.sec) {
        return a.sec < b.sec ? -1 : 1;
    }
    return (a.nsec > b.nsec) - (a.nsec < b.nsec);
}

struct timestamp lapse_after(struct timestamp from, struct lapse a)
{
    struct lapse sum = lapse_of(from.sec + a.sec, (int64_t)from.nsec + a.nsec);
    return (struct timestamp){ .sec = sum.sec, .nsec = sum.nsec };
}

int lapse_order(struct timestamp a, struct timestamp b)
{
    return lapse_cmp((struct lapse){ .sec = a.sec, .nsec = a.nsec },
                     (struct lapse){ .sec = b.sec, .nsec = b.nsec });
}

usec_t lapse_wake(struct timestamp s)
{
    usec_t wall;
    if (__builtin_mul_overflow(s.sec, (int64_t)SEC_US, &wall) ||
        __builtin_add_overflow(wall, (int64_t)((s.nsec + 999) / 1000), &wall)) {
        return s.sec < 0 ? INT64_MIN : USEC_NEVER;
    }
    return wall;
}
