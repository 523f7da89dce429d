#include "sandbox/apiserver/url_route.h"

#include "tests/check.h"

TEST(url_route_takes_urls_apart_as_the_real_server_does)
{
    static const struct {
        const char *url;
        enum url_target target;
        const char *group;
        const char *version;
        const char *namespace;
        const char *plural;
        const char *name;
        const char *subresource;
    } cases[] = {
        { "/", URL_ROOT, "", "", "", "", "", "" },
        { "/nope", URL_UNKNOWN, "", "", "", "", "", "" },
        { "/version", URL_VERSION, "", "", "", "", "", "" },
        { "/readyz/ping", URL_HEALTH, "", "", "", "", "", "" },
        { "/api", URL_API, "", "", "", "", "", "" },
        { "/api/v1", URL_RESOURCES, "", "v1", "", "", "", "" },
        { "/api/v1/", URL_RESOURCES, "", "v1", "", "", "", "" },
        { "/apis", URL_APIS, "", "", "", "", "", "" },
        { "/apis/policy", URL_GROUP, "policy", "", "", "", "", "" },
        { "/apis/policy/v1", URL_RESOURCES, "policy", "v1", "", "", "", "" },
        { "/api/v1/nodes", URL_COLLECTION, "", "v1", "", "nodes", "", "" },
        { "/api/v1/nodes/a%2Fb", URL_OBJECT, "", "v1", "", "nodes", "a/b", "" },
        { "/api/v1/nodes/n1/status", URL_OBJECT, "", "v1", "", "nodes", "n1", "status" },
        { "/api/v1/namespaces", URL_COLLECTION, "", "v1", "", "namespaces", "", "" },
        { "/api/v1/namespaces/a", URL_OBJECT, "", "v1", "", "namespaces", "a", "" },
        { "/api/v1/namespaces/a/status", URL_OBJECT, "", "v1", "", "namespaces", "a", "status" },
        { "/api/v1/namespaces/a/finalize", URL_OBJECT, "", "v1", "", "namespaces", "a",
          "finalize" },
        { "/api/v1/namespaces/a/pods", URL_COLLECTION, "", "v1", "a", "pods", "", "" },
        { "/api/v1/namespaces/a/pods/p/eviction", URL_OBJECT, "", "v1", "a", "pods", "p",
          "eviction" },
        { "/apis/x.io/v1/watch/namespaces/a/things/t", URL_OBJECT, "x.io", "v1", "a", "things", "t",
          "" },
        { "/api/v1/nodes/n1/status/more", URL_UNKNOWN, "", "v1", "", "nodes", "n1", "status" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct url_route r;
        struct err err = { 0 };
        CHECK_EQ(url_route_parse(str_from(cases[i].url), &a, &r, &err), 0);
        CHECK_EQ(r.target, cases[i].target);
        CHECK_STR(r.group, cases[i].group);
        CHECK_STR(r.version, cases[i].version);
        CHECK_STR(r.namespace, cases[i].namespace);
        CHECK_STR(r.plural, cases[i].plural);
        CHECK_STR(r.name, cases[i].name);
        CHECK_STR(r.subresource, cases[i].subresource);
    }
}

TEST(url_route_decodes_queries_and_keeps_the_first_of_two)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct url_route r;
    struct err err = { 0 };
    CHECK_EQ(url_route_parse(STR("/api/v1/pods?limit=5&limit=6&labelSelector=a%3Db%2Cc+in+%28d%29"
                                 "&unknown=1&watch"),
                             &a, &r, &err),
             0);
    CHECK_STR(r.params.limit, "5");
    CHECK_STR(r.params.label_selector, "a=b,c in (d)");
    CHECK(r.params.watch.p != NULL && r.params.watch.n == 0);
    CHECK(r.params.dry_run.p == NULL);
}

TEST(url_route_watch_prefix_is_a_watch)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct url_route r;
    struct err err = { 0 };
    bool watch = false;
    CHECK_EQ(url_route_parse(STR("/api/v1/watch/nodes"), &a, &r, &err), 0);
    CHECK(url_parse_bool(r.params.watch, &watch));
    CHECK(watch);
}

TEST(url_route_names_the_escape_that_does_not_decode)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct url_route r;
    struct err err = { 0 };
    CHECK_EQ(url_route_parse(STR("/api/v1/nodes/%zz"), &a, &r, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "invalid URL escape \"%zz\"");
    CHECK_EQ(url_route_parse(STR("/api?a=%4"), &a, &r, &err), -ERR_INVALID);
}
