#include "kinds/visit_record.h"

#include "tests/check.h"

static const char full[] =
    "{\"format\":1,\"id\":\"u1\",\"nodeUID\":\"n1\",\"request\":{\"name\":\"mr-1\",\"uid\":\"u1\","
    "\"grant\":3},\"phase\":\"Rebooting\",\"phaseTime\":\"2026-11-18T02:00:00Z\",\"deadline\":"
    "\"2026-11-18T02:20:00Z\",\"cordon\":\"Ours\",\"drain\":{\"timeoutSeconds\":900,"
    "\"gracePeriodSeconds\":5,\"podSelector\":\"a=b\",\"keepUnmanagedPods\":true,\"onTimeout\":"
    "\"Proceed\"},\"minReadySeconds\":60,\"rebootTimeoutSeconds\":1200,\"bootID\":\"b1\","
    "\"rebootID\":\"u1-"
    "reboot\",\"expired\":true,\"keepCordon\":true,\"onFailure\":\"Uncordon\",\"failure\":"
    "\"NotReady\",\"message\":\"why\","
    "\"runs\":[{\"maintenance\":\"patches\",\"maintenanceUID\":\"m1\",\"operation\":\"apt\","
    "\"revision\":\"r1\",\"attempt\":2,\"tick\":\"2026-11-18T01:00:00Z\",\"reboot\":\"IfRequired\","
    "\"rebootRequired\":true,\"phase\":\"Failed\",\"since\":\"2026-11-18T02:01:00Z\",\"reason\":"
    "\"ExitCode\",\"message\":\"no space\"}]}";

static bool read_text(const char *text, struct arena *a, struct visit_record *ret)
{
    const struct jval *v;
    struct err err = { 0 };
    CHECK_EQ(json_parse(str_from(text), 0, a, &v, &err), 0);
    return visit_record_read(v, a, ret);
}

TEST(visit_record_reads_what_it_prints)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct visit_record v;
    CHECK(read_text(full, &a, &v));
    CHECK_EQ(v.phase, VISIT_REBOOTING);
    CHECK_EQ(v.drain.timeout, MINUTES(15));
    CHECK_EQ(v.runs[0].attempt, 2);
    struct json_writer w = json_writer_on(&out);
    visit_record_print(&v, &w);
    CHECK_STR(buf_str(&out), full);
    struct visit_record copy;
    visit_record_copy(&v, &a, &copy);
    CHECK(visit_record_same(&v, &copy));
    copy.runs[0].phase = VISIT_RUN_SUCCEEDED;
    CHECK(!visit_record_same(&v, &copy));
}

TEST(visit_record_does_not_guess_what_another_version_meant)
{
    static const char *const strange[] = {
        "{\"format\":2,\"id\":\"u\",\"phase\":\"Running\",\"cordon\":\"None\",\"runs\":[]}",
        "{\"format\":1,\"id\":\"u\",\"phase\":\"Dancing\",\"cordon\":\"None\",\"runs\":[]}",
        "{\"format\":1,\"id\":\"u\",\"phase\":\"Running\",\"cordon\":\"Half\",\"runs\":[]}",
        "{\"format\":1,\"id\":\"u\",\"phase\":\"Running\",\"cordon\":\"None\",\"runs\":[{}]}",
        "{\"format\":1,\"phase\":\"Running\",\"cordon\":\"None\",\"runs\":7}",
        "{}",
    };
    for (uint32_t i = 0; i < ARRAY_LEN(strange); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct visit_record v;
        check_case(i);
        CHECK(read_text(strange[i], &a, &v));
        CHECK_EQ(v.phase, VISIT_UNKNOWN);
    }
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct visit_record v;
    CHECK(!read_text("null", &a, &v));
}
