#include "tests/unit/operation/operations_fixture.h"

TEST(operations_run_a_script_on_every_node_one_at_a_time)
{
    struct operations_fixture x;
    operations_begin(&x, 4);
    operations_maintain(&x, "hello",
                        "  disruption: {cordon: Always}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: echo hello}\n");
    operations_run(&x, MINUTES(15));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(operations_text(&x, "hello", "status.progress"), "4/4");
    CHECK_STR(operations_condition(&x, "hello", "Complete"), "True/Done");
    CHECK_EQ(x.jobs_made, 4);
    CHECK_EQ(x.requests_made, 4);
    CHECK_EQ(x.cordoned_most, 1);
    CHECK_EQ(x.cordoned, 0);
    CHECK(x.state_writes <= 4 * 6);
    operations_end(&x);
}
