#include "bridge/cluster.h"

#include "tests/check.h"

static const struct cluster *read_cluster(struct arena *out, const char *text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *ret = NULL;
    CHECK_EQ(json_parse(str_from(text), 0, out, &object, &err), 0);
    CHECK_EQ(cluster_kind.project(NULL, object, out, &ret, &err), 0);
    return ret;
}

TEST(cluster_reads_both_versions)
{
    static const struct {
        const char *text;
        struct cluster wanted;
    } cases[] = {
        { "{}", { .paused = false } },
        { "{\"metadata\":{\"uid\":\"u\"}}", { .uid = STR_INIT("u") } },
        { "{\"spec\":{\"paused\":true}}", { .paused = true } },
        { "{\"spec\":{\"paused\":false}}", { .paused = false } },
        { "{\"spec\":{\"paused\":\"true\"}}", { .paused = false } },
        { "{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":\"\"}}}",
          { .paused = true } },
        { "{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":\"false\"}}}",
          { .paused = true } },
        { "{\"metadata\":{\"deletionTimestamp\":\"2026-03-01T10:00:00Z\"}}", { .deleting = true } },
        { "{\"metadata\":{\"deletionTimestamp\":null}}", { .paused = false } },
        { "{\"status\":{\"initialization\":{\"infrastructureProvisioned\":true}}}",
          { .provisioned = true } },
        { "{\"status\":{\"infrastructureReady\":true}}", { .provisioned = true } },
        { "{\"status\":{\"infrastructureReady\":1,\"initialization\":[]}}", { .paused = false } },
        { "{\"metadata\":7,\"spec\":[],\"status\":\"x\"}", { .paused = false } },
        { "[]", { .paused = false } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct cluster *c = read_cluster(&a, cases[i].text);
        CHECK(cluster_kind.same(c, &cases[i].wanted));
    }
    check_case(-1);
}

TEST(cluster_tells_what_decisions_use_from_the_rest)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct cluster *plain = read_cluster(&a, "{\"metadata\":{\"uid\":\"u\"}}");
    CHECK(cluster_kind.same(
        plain, read_cluster(&a, "{\"metadata\":{\"uid\":\"u\",\"annotations\":{\"a\":\"b\"}}}")));
    const struct cluster *labelled =
        read_cluster(&a, "{\"metadata\":{\"uid\":\"u\",\"labels\":{\"a\":\"b\",\"c\":\"\"}}}");
    CHECK_STR(labelled->labels, "a=b\nc=\n");
    CHECK(!cluster_kind.same(plain, labelled));
    const struct cluster others[] = {
        { .uid = STR("v") },
        { .uid = STR("u"), .paused = true },
        { .uid = STR("u"), .deleting = true },
        { .uid = STR("u"), .provisioned = true },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CHECK(!cluster_kind.same(plain, &others[i]));
    }
    CHECK(cluster_kind.namespaced);
}
