/* Namespaces and rights that are missing: the status says what, and the work begins once it is
 * there. */
#include "tests/unit/operation/operations_fixture.h"

#define SAY                                                                                        \
    "  operations:\n"                                                                              \
    "  - {name: say, type: one-shot, script: echo hello}\n"

static void check_names(struct str text, const char *part)
{
    if (!str_contains(text, str_from(part))) {
        check_fail(__FILE__, __LINE__, "'" STR_FMT "' does not name %s", STR_ARG(text), part);
    }
}

TEST(prerequisites_name_a_namespace_that_is_missing)
{
    static const struct {
        const char *namespace;
        const char *flag;
    } cases[] = {
        { "drydock-system", "--system-namespace" },
        { "drydock-jobs", "--jobs-namespace" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 3);
        const char *path = arena_printf(&x.memory, "/api/v1/namespaces/%s", cases[i].namespace).p;
        (void)operations_http(&x, 0, "DELETE", path, STR(""));
        operations_run(&x, MINUTES(1));
        operations_maintain(&x, "hello", SAY);
        operations_run(&x, MINUTES(5));
        CHECK_STR(operations_text(&x, "hello", "status.phase"), "Waiting");
        CHECK_STR(operations_text(&x, "hello", "status.reason"), "NamespaceMissing");
        CHECK_STR(operations_condition(&x, "hello", "Stalled"), "True/NamespaceMissing");
        CHECK_STR(operations_condition(&x, "hello", "Ready"), "False/NamespaceMissing");
        struct str message = operations_message(&x, "hello", "Progressing");
        check_names(message, cases[i].flag);
        check_names(message,
                    arena_printf(&x.memory, "kubectl create namespace %s", cases[i].namespace).p);
        CHECK_EQ(x.jobs_made, 0);
        (void)operations_http(
            &x, 201, "POST", "/api/v1/namespaces",
            arena_printf(&x.memory, "{\"metadata\":{\"name\":\"%s\"}}", cases[i].namespace));
        operations_run(&x, MINUTES(15));
        CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
        CHECK_STR(operations_condition(&x, "hello", "Stalled"), "False/NotStalled");
        operations_end(&x);
    }
    check_case(-1);
}

TEST(prerequisites_are_tried_again_in_the_next_window)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    (void)operations_http(&x, 0, "DELETE", "/api/v1/namespaces/drydock-system", STR(""));
    operations_maintain(&x, "hello",
                        "  window: {days: [Mon, Tue], from: '00:00', to: '00:30'}\n" SAY);
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "NamespaceMissing");
    operations_run(&x, HOURS(2)); /* the window is closed, and nothing is tried */
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "WaitingWindow");
    (void)operations_http(&x, 201, "POST", "/api/v1/namespaces",
                          STR("{\"metadata\":{\"name\":\"drydock-system\"}}"));
    operations_run(&x, DAYS(1));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(prerequisites_name_a_right_to_read_that_is_missing)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_crash(&x);
    x.door.path = "/apis/batch/v1/namespaces/drydock-jobs/jobs";
    operations_start(&x);
    operations_maintain(&x, "hello", SAY);
    operations_run(&x, MINUTES(2));
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "Forbidden");
    CHECK_STR(operations_condition(&x, "hello", "Stalled"), "True/Forbidden");
    struct str message = operations_message(&x, "hello", "Stalled");
    check_names(message, "Jobs cannot be read");
    check_names(message, "drydock rbac operations");
    CHECK_EQ(x.requests_made, 0);
    struct str version =
        arena_str(&x.memory, operations_text(&x, "hello", "metadata.resourceVersion"));
    operations_run(&x, MINUTES(10)); /* it is told once */
    CHECK(str_eq(operations_text(&x, "hello", "metadata.resourceVersion"), version));
    x.door.path = NULL;
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(operations_condition(&x, "hello", "Accepted"), "True/Valid");
    operations_end(&x);
}

TEST(prerequisites_name_a_right_that_is_lost_and_keep_what_was_known)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "hello", SAY);
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_crash(&x);
    x.door.path = "/apis/drydock.dev/v1alpha1/nodeseries";
    operations_start(&x);
    operations_run(&x, MINUTES(2));
    CHECK_STR(operations_condition(&x, "hello", "Stalled"), "True/Forbidden");
    CHECK_STR(operations_condition(&x, "hello", "Complete"), "True/Done");
    CHECK_STR(operations_text(&x, "hello", "status.progress"), "2/2");
    x.door.path = NULL;
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_EQ(x.jobs_made, 2);
    operations_end(&x);
}
