#include "bridge/workload_request.h"

#include "tests/check.h"

static const struct maintenance_request *read_one(struct arena *a, const char *text)
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

TEST(workload_request_is_open_when_it_is_ours_and_for_a_node)
{
    static const struct {
        const char *text;
        const char *node;
        bool open;
    } rows[] = {
        { "{\"metadata\":{" OURS "},\"spec\":{\"type\":\"node\",\"name\":\"n1\"}}", "n1", true },
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"Approved\"}}",
          "n1", true },
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"InProgress\"}}",
          "n1", true },
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"Completed\"}}",
          "n1", false },
        /* A word that nobody knows grants nothing. */
        { "{\"metadata\":{" OURS
          "},\"spec\":{\"type\":\"node\",\"name\":\"n1\",\"state\":\"approved\"}}",
          "n1", true },
        { "{\"metadata\":{" OURS "},\"spec\":{\"type\":\"deployment\",\"name\":\"n1\"}}", "",
          false },
        { "{\"metadata\":{\"annotations\":{\"drydock.dev/bridge-request\":\"u-1\"}},"
          "\"spec\":{\"type\":\"node\",\"name\":\"n1\"}}",
          "n1", false },
        { "{\"metadata\":{},\"spec\":7}", "", false },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_case((int64_t)i);
        const struct maintenance_request *p = read_one(&a, rows[i].text);
        CHECK_STR(workload_request_node(p), rows[i].node);
        CHECK_EQ(workload_request_is_open(p), rows[i].open);
    }
    check_case(-1);
}
