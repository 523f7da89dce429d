#include "calendar/elapsed.h"

#define SEC_NS 1000000000
#define SEC_US 1000000

static struct elapsed elapsed_of(int64_t sec, int64_t nsec)
{
    int64_t carry = nsec / SEC_NS - (nsec % SEC_NS < 0 ? 1 : 0);
    return (struct elapsed){ .sec = sec + carry, .nsec = (int32_t)(nsec - carry * SEC_NS) };
}

struct elapsed elapsed_from_ns(int64_t ns)
{
    return elapsed_of(ns / SEC_NS, ns % SEC_NS);
}

int64_t elapsed_to_ns(struct elapsed a)
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

struct elapsed elapsed_between(struct timestamp from, struct timestamp to)
{
    return elapsed_of(to.sec - from.sec, (int64_t)to.nsec - from.nsec);
}

struct elapsed elapsed_sub(struct elapsed a, struct elapsed b)
{
    return elapsed_of(a.sec - b.sec, (int64_t)a.nsec - b.nsec);
}

int elapsed_cmp(struct elapsed a, struct elapsed b)
{
    if (a.sec != b.sec) {
        return a.sec < b.sec ? -1 : 1;
    }
    return (a.nsec > b.nsec) - (a.nsec < b.nsec);
}

struct timestamp elapsed_after(struct timestamp from, struct elapsed a)
{
    struct elapsed sum = elapsed_of(from.sec + a.sec, (int64_t)from.nsec + a.nsec);
    return (struct timestamp){ .sec = sum.sec, .nsec = sum.nsec };
}

int elapsed_order(struct timestamp a, struct timestamp b)
{
    return elapsed_cmp((struct elapsed){ .sec = a.sec, .nsec = a.nsec },
                       (struct elapsed){ .sec = b.sec, .nsec = b.nsec });
}

usec_t elapsed_wake(struct timestamp s)
{
    usec_t wall;
    if (__builtin_mul_overflow(s.sec, (int64_t)SEC_US, &wall) ||
        __builtin_add_overflow(wall, (int64_t)((s.nsec + 999) / 1000), &wall)) {
        return s.sec < 0 ? INT64_MIN : USEC_NEVER;
    }
    return wall;
}
