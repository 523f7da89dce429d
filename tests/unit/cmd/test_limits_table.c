#include "cmd/limits_table.h"

#include "tests/check.h"

#define LIMITS                                                                                     \
    "[{\"metadata\":{\"name\":\"node\"},\"spec\":{\"limit\":5},\"status\":{\"type\":\"node\","     \
    "\"limit\":2,\"nominal\":2,\"population\":40,\"granted\":1,\"waiting\":2,"                     \
    "\"unavailableCount\":0,\"reservations\":[{\"requestUID\":\"u\",\"requestName\":\"mr-a-1\","   \
    "\"target\":\"worker-1\",\"grantedTime\":\"2026-01-02T03:04:05Z\",\"state\":\"InProgress\"}]"  \
    "}},"                                                                                          \
    "{\"metadata\":{\"name\":\"db\"},\"spec\":{\"type\":\"statefulset\"}},"                        \
    "{\"metadata\":{\"name\":\"gpu\"},\"spec\":{\"paused\":true},\"status\":{\"nominal\":1}}]"
#define REQUESTS                                                                                   \
    "[{\"metadata\":{\"name\":\"z\",\"resourceVersion\":\"1\"},"                                   \
    "\"spec\":{\"name\":\"worker-3\",\"type\":\"node\"},\"status\":{\"queuePosition\":2,"          \
    "\"limits\":[\"node\"],"                                                                       \
    "\"reason\":\"LimitReached\"}},"                                                               \
    "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},"                                    \
    "\"spec\":{\"name\":\"old\",\"type\":\"node\",\"state\":\"Completed\"}},"                      \
    "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"1\",\"labels\":{"                         \
    "\"maintenancerequests.repairman.k8s.io/clientname\":\"me\"}},"                                \
    "\"spec\":{\"name\":\"worker-2\",\"type\":\"node\",\"state\":\"Pending\"},\"status\":{"        \
    "\"queuePosition\":1,\"reason\":\"LimitReached\",\"limits\":[\"node\"],\"queuedTime\":\"2026-" \
    "01-02T04:04:05Z\",\"message\":\"limit 'node' allows 2 of 40 "                                 \
    "and has given both away, to worker-1 and to worker-9\"}}]"

static struct limits_table parse(struct arena *a, const char *limits, const char *requests)
{
    struct limits_table q = { .now = SECONDS(1767323045) + HOURS(2) }; /* 2026-01-02T05:04:05Z */
    struct err err = { 0 };
    CHECK_EQ(json_parse(str_from(limits), 0, a, &q.limits, &err), 0);
    CHECK_EQ(json_parse(str_from(requests), 0, a, &q.requests, &err), 0);
    return q;
}

TEST(limits_table_shows_limits_holders_and_the_queue_in_order)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct limits_table q = parse(&a, LIMITS, REQUESTS);
    limits_table_print_text(&q, &out);
    CHECK_STR(buf_str(&out),
              "limit  type         allowed  held  unavailable  waiting\n"
              "db     statefulset  -        0     -            0        not computed\n"
              "gpu    -            1 of 0   0     0            0        paused\n"
              "node   node         2 of 40  1     0            2        open\n"
              "\n"
              "held (1)\n"
              "  worker-1  mr-a-1, InProgress for 2h; under node\n"
              "\n"
              "queue (2)\n"
              "  worker-2  1. b of me for 1h: limit 'node' allows 2 of 40 and has given both\n"
              "            away, to worker-1 and to worker-9\n"
              "            until the limit allows more again\n"
              "  worker-3  2. z: LimitReached\n"
              "            until the limit allows more again\n");
}

TEST(limits_table_says_that_there_are_no_limits)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct limits_table q = parse(&a, "[]", "[]");
    limits_table_print_text(&q, &out);
    CHECK_STR(buf_str(&out), "There are no limits: every request is granted.\n");
}

TEST(limits_table_prints_what_is_alive_as_one_list)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct jval *root = NULL;
    struct err err = { 0 };
    const struct limits_table q = parse(&a, LIMITS, REQUESTS);
    limits_table_print_json(&q, &out);
    CHECK_EQ(json_parse(buf_str(&out), 0, &a, &root, &err), 0);
    CHECK_EQ(jval_get(root, STR("items"))->n, 3 + 2);
}
