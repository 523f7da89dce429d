/* wait: the profile has been in its state for long enough. */
#include "calendar/wait.h"

#include "profile/check/wait_common.h"

static const void *prepare(const struct check_prepare_input *input)
{
    struct wait *wait = ARENA_NEW(input->out, struct wait);
    wait->duration_ns = check_value(input, "duration")->number;
    return wait;
}

const struct check_plugin check_wait = { .name = "wait",
                                         .prepare = prepare,
                                         .run = wait_common_run };
