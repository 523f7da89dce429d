#include "cmd/report_output.h"
#include "tests/check.h"

static void check_output(const char *form, enum report_about about, const char *body,
                         const char *want)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct err err = { 0 };
    CHECK_EQ(
        report_output_add(str_from(form), about, /* colour= */ false, str_from(body), &out, &err),
        0);
    CHECK_STR(buf_str(&out), want);
}

TEST(report_output_prints_each_form)
{
    check_output("text", REPORT_ABOUT_NODE, "node a: ready\n", "node a: ready\n");
    check_output("json", REPORT_ABOUT_NODE, "{\"node\":\"a\"}", "{\"node\":\"a\"}\n");
    check_output("yaml", REPORT_ABOUT_NODE, "{\"node\":\"a\",\"ready\":true}",
                 "node: a\nready: true\n");
}

TEST(report_output_names_what_a_document_is_about)
{
    check_output("name", REPORT_ABOUT_NODE, "{\"node\":\"a\"}", "node/a\n");
    check_output("name", REPORT_ABOUT_FLEET,
                 "{\"entries\":[{\"node\":\"a\",\"profile\":\"x\"},{\"node\":\"b\"},"
                 "{\"node\":\"a\",\"profile\":\"y\"}]}",
                 "node/a\nnode/b\n");
    check_output("name", REPORT_ABOUT_FLEET, "{\"entries\":[]}", "");
    check_output("name", REPORT_ABOUT_REQUEST,
                 "{\"claims\":[{\"name\":\"mr-1\"},{\"name\":\"x\"}]}",
                 "maintenancerequest.repairman.k8s.io/mr-1\n");
    check_output("name", REPORT_ABOUT_LIMIT, "{\"limits\":[{\"name\":\"workers\"}]}",
                 "maintenancelimit.repairman.k8s.io/workers\n");
    check_output("name", REPORT_ABOUT_MAINTENANCE,
                 "{\"maintenances\":[{\"name\":\"patches\"}],\"windows\":[]}",
                 "nodemaintenance.drydock.dev/patches\n");
    check_output("name", REPORT_ABOUT_MACHINE, "{\"name\":\"m-1\"}",
                 "machine.cluster.x-k8s.io/m-1\n");
}

TEST(report_output_refuses_what_is_no_document)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct err err = { 0 };
    CHECK_EQ(report_output_add(STR("yaml"), REPORT_ABOUT_NODE, false, STR("<html>"), &out, &err),
             -ERR_INVALID);
    CHECK(str_contains(str_from(err.msg), STR("the answer cannot be read")));
}
