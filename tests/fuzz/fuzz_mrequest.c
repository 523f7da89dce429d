/* Whatever a MaintenanceRequest holds, it is read; what is written as its status is read back as
 * what it was, and written again it is the same text. */
#include "kinds/maintenance_request.h"
#include "tests/fuzz/target.h"

static const struct maintenance_request *read_object(const struct jval *object, struct arena *a)
{
    struct err err = { 0 };
    void *ret = NULL;
    int r = mrequest_kind.project(NULL, object, a, &ret, &err);
    ASSERT(r == 0);
    return ret;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf first = { 0 };
    CLEANUP(buf_done)
    struct buf second = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    const struct maintenance_request *m = read_object(object, &a);
    ASSERT(mrequest_kind.same(m, read_object(object, &a)));
    ASSERT(m->has_spec || m->state == MR_STATE_ABSENT);
    ASSERT(m->status.limit_n <= MREQUEST_LIMITS_MAX && m->status.blocked_n <= MREQUEST_BLOCKED_MAX);
    struct str reason = STR_NONE;
    struct str words = mrequest_invalid(m, &reason);
    ASSERT((words.n > 0) == (reason.n > 0));
    ASSERT(words.n > 0 || (m->type_known && m->target.n > 0));

    mrequest_print_status(&m->status, STR_NONE, &first);
    int r = json_parse(buf_str(&first), 0, &a, &object, &err);
    ASSERT(r == 0);
    const struct maintenance_request *again = read_object(object, &a);
    ASSERT(again->status.phase == m->status.phase && again->status.step == m->status.step);
    ASSERT(again->status.limit_n == m->status.limit_n);
    mrequest_print_status(&again->status, STR_NONE, &second);
    ASSERT(str_eq(buf_str(&first), buf_str(&second)));
}
