/* stagger: nodes go one after the other. Each takes a Lease, and the next node waits until the
 * Lease has expired. */
#include "profile/check/check_plugin.h"

#include "calendar/elapsed.h"

struct stagger {
    struct str name;
    uint32_t parallel;
};

static const void *prepare(const struct check_prepare_input *input)
{
    struct stagger *prepared = ARENA_NEW(input->out, struct stagger);
    int64_t parallel = check_value(input, "parallel")->number;
    prepared->name = check_value(input, "leaseName")->text;
    prepared->parallel = (uint32_t)MAX(MIN(parallel, (int64_t)FACTS_LEASES_MAX), (int64_t)0);
    return prepared;
}

/* While the node holds its grant, the Lease that it took itself does not hold it back (P7). */
static bool is_own(const struct check_input *in, const struct facts_lease *lease)
{
    return in->granted && lease->complete && str_eq(lease->holder, in->edit->name);
}

static double seconds_left(const struct check_input *in, const struct facts_lease *lease)
{
    struct elapsed span = elapsed_between(
        in->now, elapsed_after(lease->renewed, (struct elapsed){ .sec = lease->duration_s }));
    return (double)span.sec + (double)span.nsec / 1e9;
}

/* Looks at one lease; false when the answer is found. */
static bool read_lease(const struct check_input *in, uint32_t index, uint32_t i, bool *stale,
                       struct check_verdict *ret)
{
    struct facts_lease lease = facts_stagger(in->facts, index, i);
    usec_t now = timestamp_to_usec(in->now);
    *stale = check_needs_refresh(in, lease.known, lease.asked, lease.asked, ret) || *stale;
    if (!lease.known) {
        ret->answer = CHECK_PENDING;
        return false;
    }
    if (lease.error.n > 0) {
        check_fail_with(in, ret, STR_FMT, STR_ARG(lease.error));
        return false;
    }
    if (!lease.absent && !lease.complete) {
        const struct stagger *prepared = check_prepared(in, index);
        check_fail_with(in, ret, "lease '" STR_FMT "-%u' lacks its times: another's object?",
                        STR_ARG(str_sub(prepared->name, 0, 64)), i);
        return false;
    }
    if (is_own(in, &lease) || facts_lease_is_free(&lease, now)) {
        ret->answer = CHECK_PASS;
        return false;
    }
    ret->next = MIN(ret->next, facts_lease_free_at(&lease, now));
    return true;
}

static void explain(const struct check_input *in, uint32_t index, uint32_t seen,
                    struct check_verdict *ret)
{
    const struct stagger *prepared = check_prepared(in, index);
    if (ret->answer == CHECK_PENDING) {
        ret->reason = STR("the leases have not been read yet");
        return;
    }
    if (ret->answer == CHECK_PASS) {
        struct facts_lease lease = facts_stagger(in->facts, index, seen);
        ret->reason = arena_printf(in->out, "lease " STR_FMT "-%u is %s", STR_ARG(prepared->name),
                                   seen, is_own(in, &lease) ? "the node's own" : "free");
        return;
    }
    if (ret->answer == CHECK_ERROR) {
        return;
    }
    struct check_info info;
    double soonest = 0;
    check_info_begin(&info);
    jw_key(&info.json, STR("availableInSec"));
    jw_arr(&info.json);
    for (uint32_t i = 0; i < seen; i++) {
        struct facts_lease lease = facts_stagger(in->facts, index, i);
        double left = seconds_left(in, &lease);
        soonest = i == 0 ? left : MIN(soonest, left);
        check_info_f64(&info, NULL, left);
    }
    jw_arr_end(&info.json);
    ret->info = check_info_end(&info, in->out);
    if (seen == 0) {
        ret->reason = STR("no node may go: 'parallel' is below 1");
        return;
    }
    struct str left = check_duration_text(in->out, (int64_t)(soonest * 1e9));
    ret->reason =
        seen == 1 ? arena_printf(in->out, "another node went; free in " STR_FMT, STR_ARG(left))
                  : arena_printf(in->out, "all %u leases are taken; the first is free in " STR_FMT,
                                 seen, STR_ARG(left));
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct stagger *prepared = check_prepared(in, index);
    bool stale = false;
    uint32_t seen = 0;
    while (seen < prepared->parallel && read_lease(in, index, seen, &stale, ret)) {
        seen++;
    }
    if (stale) {
        check_want(
            in, ret,
            &(struct facts_want){ .kind = FACTS_STAGGER, .index = index, .node = in->edit->name });
    }
    if (in->explain) {
        explain(in, index, seen, ret);
    }
}

const struct check_plugin check_stagger = {
    .name = "stagger",
    .prepare = prepare,
    .run = run,
};
