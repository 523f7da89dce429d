/* waitExclude: the profile has been in its state for long enough, without some weekdays. */
#include "calendar/wait.h"

#include "profile/check/wait_common.h"

static const void *prepare(const struct check_prepare_input *input)
{
    struct wait *wait = ARENA_NEW(input->out, struct wait);
    wait->duration_ns = check_value(input, "duration")->number;
    wait->exclude = (uint8_t)check_value(input, "exclude")->number;
    return wait;
}

const struct check_plugin check_wait_exclude = {
    .name = "waitExclude",
    .prepare = prepare,
    .run = wait_common_run,
};
