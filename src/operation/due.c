#include "operation/due.h"

/* Whether what the machine has done concerns what is asked for now. */
static bool due_concerns(const struct due_rule *rule, const struct due_history *h)
{
    return h->ended > 0 && h->ended >= rule->rerun_at && str_eq(h->revision, rule->revision) &&
           (!rule->cron || h->tick >= rule->tick);
}

static usec_t due_wait(const struct due_backoff *b, uint32_t failed)
{
    usec_t wait = b->initial;
    for (uint32_t i = 1; i < failed && wait < b->max; i++) {
        wait = b->factor == 0 || wait > b->max / b->factor ? b->max : wait * b->factor;
    }
    return MIN(wait, b->max);
}

/* A failed run: is it repeated, and when? */
static struct due_answer due_after_failure(const struct due_rule *rule, const struct due_history *h,
                                           usec_t now)
{
    struct due_answer a = { .attempt = h->attempts + 1, .next = USEC_NEVER };
    if (h->attempts > rule->retries) {
        a.state = DUE_EXHAUSTED;
        return a;
    }
    usec_t at = h->ended + due_wait(&rule->backoff, h->attempts);
    a.state = now >= at ? DUE_NOW : DUE_BACKOFF;
    a.next = now >= at ? USEC_NEVER : at;
    return a;
}

struct due_answer due_decide(const struct due_rule *rule, const struct due_history *h, usec_t now)
{
    struct due_answer a = { .state = DUE_NOW, .attempt = 1, .next = USEC_NEVER };
    if (rule->cron && rule->tick == 0) {
        a.state = DUE_NOT;
        return a;
    }
    bool concerns = due_concerns(rule, h);
    if (concerns && h->result == DUE_RESULT_SUCCEEDED) {
        a.state = DUE_SUCCEEDED;
    } else if (concerns && h->result == DUE_RESULT_SKIPPED) {
        a.state = DUE_SKIPPED;
    } else if (concerns && h->result == DUE_RESULT_FAILED) {
        a = due_after_failure(rule, h, now);
    } else if (!rule->cron && h->ended >= rule->rerun_at && h->success.n > 0 &&
               str_eq(h->success, rule->revision) && h->result != DUE_RESULT_FAILED) {
        a.state = DUE_SUCCEEDED;
    }
    if (rule->cron && rule->tick_deadline != USEC_NEVER &&
        (a.state == DUE_NOW || a.state == DUE_BACKOFF)) {
        if (now >= rule->tick_deadline) {
            a = (struct due_answer){ .state = DUE_NOT, .missed = true, .next = USEC_NEVER };
        } else {
            a.next = MIN(a.next, rule->tick_deadline);
        }
    }
    return a;
}

usec_t due_latest_tick(const struct cron *cron, const struct zone *zone, usec_t since, usec_t now)
{
    /* From short spans to long ones: a pattern that comes often is found in the first, and one that
     * is found only in a long span comes seldom, so few ticks are walked over. */
    static const usec_t spans[] = { HOURS(1), DAYS(1), DAYS(8), DAYS(32), DAYS(367) };
    for (uint32_t i = 0; i < ARRAY_LEN(spans); i++) {
        usec_t latest = 0;
        usec_t from = MAX(since, now - spans[i]);
        for (usec_t t = cron_next(cron, zone, from); t <= now; t = cron_next(cron, zone, t)) {
            latest = t;
        }
        if (latest > 0 || from == since) {
            return latest;
        }
    }
    return 0;
}
