/* How wait and waitExclude decide. */
#include "profile/check/wait_common.h"

#include "calendar/wait.h"

#define SEC_NS INT64_C(1000000000)

static struct str wait_common_reason(const struct check_input *in, const struct wait *wait,
                                     const struct wait_answer *answer)
{
    struct str all = check_duration_text(in->out, wait->duration_ns);
    const char *counted = wait->exclude != 0 ? " that count" : "";
    if (answer->passed) {
        return arena_printf(in->out, "more than " STR_FMT "%s have passed", STR_ARG(all), counted);
    }
    int64_t since = 0;
    if (__builtin_sub_overflow(wait->duration_ns, answer->remaining_ns, &since) || since < 0) {
        since = 0; /* what is not counted may be more than what has passed */
    }
    return arena_printf(in->out, STR_FMT " of " STR_FMT "%s have passed",
                        STR_ARG(check_duration_text(in->out, since)), STR_ARG(all), counted);
}

void wait_common_run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct wait *wait = check_prepared(in, index);
    struct wait_answer answer = wait_at(wait, in->transition, in->now);
    ret->answer = answer.passed ? CHECK_PASS : CHECK_FAIL;
    ret->next = answer.next;
    if (!in->explain) {
        return;
    }
    ret->reason = wait_common_reason(in, wait, &answer);
    if (!answer.passed) {
        struct check_info info;
        check_info_begin(&info);
        /* As Go's Duration.Seconds(): its last digits are those of this sum. */
        int64_t whole = answer.remaining_ns / SEC_NS;
        int64_t rest = answer.remaining_ns % SEC_NS;
        check_info_f64(&info, "remaining_seconds", (double)whole + (double)rest / 1e9);
        ret->info = check_info_end(&info, in->out);
    }
}
