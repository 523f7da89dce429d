#include "bridge/workload_request.h"

#include "tests/check.h"

static const struct workload_request *read_one(struct arena *a, const char *text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *ret = NULL;
    CHECK_EQ(json_parse(str_from(text), 0, a, &object, &err), 0);
    CHECK_EQ(workload_request_kind.project(NULL, object, a, &ret, &err), 0);
    return ret;
}

#define OURS                                                                                       \
    "\"labels\":{\"maintenancerequests.repairman.k8s.io/clientname\":\"cluster-api-bridge\"},"     \
    "\"annotations\":{\"drydock.dev/bridge-request\":\"u-1\"}"

TEST(workload_request_reads_what_is_ours_and_for_a_node)
{
    static const struct {
        const char *text;
        const char *node;
        const char *request;
        enum workload_request_state state;
        bool open;
    } rows[] = {
        { "{\"metadata\":{" OURS "},\"spec\":{\"type\":\"node\",\"name\":\"n1\"}}", "n1", "u-1",
          WORKLOAD_REQUEST_PENDING, true },
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"Approved\"}}",
          "n1", "u-1", WORKLOAD_REQUEST_APPROVED, true },
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"InProgress\"}}",
          "n1", "u-1", WORKLOAD_REQUEST_IN_PROGRESS, true },
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"Completed\"}}",
          "n1", "u-1", WORKLOAD_REQUEST_COMPLETED, false },
        /* A word that nobody knows grants nothing. */
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"approved\"}}",
          "n1", "u-1", WORKLOAD_REQUEST_PENDING, true },
        { "{\"metadata\":{" OURS "},\"spec\":{\"type\":\"deployment\",\"name\":\"n1\"}}", "", "",
          WORKLOAD_REQUEST_PENDING, false },
        { "{\"metadata\":{\"annotations\":{\"drydock.dev/bridge-request\":\"u-1\"}},"
          "\"spec\":{\"type\":\"node\",\"name\":\"n1\"}}",
          "n1", "", WORKLOAD_REQUEST_PENDING, false },
        { "{\"metadata\":{},\"spec\":7}", "", "", WORKLOAD_REQUEST_PENDING, false },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_case((int64_t)i);
        const struct workload_request *p = read_one(&a, rows[i].text);
        CHECK_STR(p->node, rows[i].node);
        CHECK_STR(p->request, rows[i].request);
        CHECK_EQ(p->state, rows[i].state);
        CHECK_EQ(workload_request_is_open(p), rows[i].open);
    }
    check_case(-1);
}

TEST(workload_request_prints_what_it_reads)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct workload_request_spec ask = {
        .name = STR("mr-1-1"),
        .node = STR("n\"1"),
        .request = STR("u-1/3"),
        .reason = STR("why not"),
    };
    workload_request_print_new(&ask, &out);
    buf_add_char(&out, '\0');
    const struct workload_request *p = read_one(&a, out.p);
    CHECK_STR(p->node, ask.node);
    CHECK_STR(p->request, ask.request);
    CHECK_EQ(p->state, WORKLOAD_REQUEST_PENDING);
    buf_reset(&out);
    workload_request_print_state(&(struct workload_request){ .uid = STR("p-1") }, 7,
                                 WORKLOAD_REQUEST_IN_PROGRESS, &out);
    CHECK_STR(buf_str(&out), "{\"metadata\":{\"uid\":\"p-1\",\"resourceVersion\":\"7\"},"
                             "\"spec\":{\"state\":\"InProgress\"}}");
}
