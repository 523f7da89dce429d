#include "sandbox/apiserver/discovery.h"
#include "tests/check.h"

struct fixture {
    struct arena a;
    struct types types;
    struct kinds kinds;
    struct err err;
};

static struct tree *parsed(struct fixture *f, struct str json)
{
    struct tree *t = NULL;
    CHECK_EQ(tree_parse(json, &f->a, &t, &f->err), 0);
    return t;
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    types_init(&f->types, &f->a);
    kinds_init(&f->kinds);
    const struct tree *prelude = parsed(f, check_data("apiserver/prelude.json"));
    TREE_EACH (tree_get(prelude, STR("requests")), request) {
        const struct tree *body = tree_get(request, STR("body"));
        uint32_t store;
        if (str_eq(tree_text_at(body, "kind"), STR("CustomResourceDefinition"))) {
            CHECK_EQ(kinds_define_crd(&f->kinds, body, &store, &f->err), 0);
        }
    }
}

static void fixture_done(struct fixture *f)
{
    kinds_done(&f->kinds);
    types_done(&f->types);
    arena_done(&f->a);
}

static struct discovery_reply discovery_get(struct fixture *f, struct str path, struct str accept)
{
    struct discovery_reply reply = { 0 };
    CHECK(discovery_answer(&f->kinds, &f->types, path, accept, &f->a, &reply));
    return reply;
}

/* Recorded documents are cut down: each element of a recorded list must be in ours, in order. */
static bool covers(const struct tree *got, const struct tree *want)
{
    if (tree_kind(got) != tree_kind(want)) {
        return false;
    }
    if (want->kind == JARR && tree_kind(tree_first(want)) == JOBJ) {
        const struct tree *at = tree_first(got);
        TREE_EACH (want, item) {
            while (at != NULL && !covers(at, item)) {
                at = tree_sibling(at);
            }
            if (at == NULL) {
                return false;
            }
        }
        return true;
    }
    if (want->kind == JOBJ) {
        TREE_EACH (want, member) {
            if (!covers(tree_get(got, member->key), member)) {
                return false;
            }
        }
        return got->n == want->n;
    }
    bool placeholder = want->kind == JSTR && str_starts(want->text, STR("<"));
    return placeholder || tree_eq(got, want);
}

TEST(discovery_says_what_the_recorded_server_said)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    static const char *const cases[] = {
        "discovery-api",   "discovery-api-v1",           "discovery-apis",
        "discovery-group", "discovery-custom-resources", "discovery-aggregated",
        "version"
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str file = arena_printf(&f.a, "apiserver/%s.json", cases[i]);
        const struct tree *c = parsed(&f, check_data(file.p));
        struct discovery_reply reply = discovery_get(&f, tree_text_at(c, "request.path"),
                                                     tree_text_at(c, "request.headers.Accept"));
        CHECK_STR(reply.content_type, tree_text_at(c, "response.headers.Content-Type"));
        if (!covers(parsed(&f, reply.body), tree_at(c, "response.body"))) {
            check_fail(__FILE__, __LINE__, "%s: " STR_FMT, cases[i], STR_ARG(reply.body));
        }
    }
}

TEST(discovery_answers_health_in_plain_text)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct discovery_reply reply = discovery_get(&f, STR("/readyz"), STR(""));
    CHECK_STR(reply.body, "ok");
    CHECK_STR(reply.content_type, "text/plain; charset=utf-8");
}

TEST(discovery_leaves_other_paths_alone)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    static const char *const paths[] = { "/",
                                         "",
                                         "/api/v2",
                                         "/apis/none",
                                         "/apis/apps/v9",
                                         "/api/v1/nodes",
                                         "/apis/apps/v1/deployments",
                                         "/openapi/v3/apis/none/v1",
                                         "/openapi/v4",
                                         "/apisx" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct discovery_reply reply;
        CHECK(!discovery_answer(&f.kinds, &f.types, str_from(paths[i]), STR(""), &f.a, &reply));
    }
}

static void openapi_check(struct fixture *f, const struct kind *kind)
{
    struct str path = arena_printf(&f->a, "/openapi/v3/%s/" STR_FMT,
                                   kind->group.n > 0 ? "apis" : "api", STR_ARG(kind->api_version));
    const struct tree *document = parsed(f, discovery_get(f, path, STR("application/json")).body);
    const struct tree *schemas = tree_at(document, "components.schemas");
    bool found = false;
    TREE_EACH (schemas, schema) {
        const struct tree *gvk =
            tree_index(tree_get(schema, STR("x-kubernetes-group-version-kind")), 0);
        found = found || str_eq(tree_text_at(gvk, "kind"), kind->kind);
        TREE_EACH (tree_get(schema, STR("properties")), property) {
            struct str target =
                tree_text(tree_get(tree_index(tree_get(property, STR("allOf")), 0), STR("$ref")));
            struct str name;
            if (str_cut_prefix(target, STR("#/components/schemas/"), &name)) {
                CHECK(tree_get(schemas, name) != NULL);
            }
        }
    }
    CHECK(found);
    struct str item = arena_printf(&f->a, "/%s/" STR_FMT "/%s" STR_FMT "/{name}",
                                   kind->group.n > 0 ? "apis" : "api", STR_ARG(kind->api_version),
                                   kind_is(kind, KIND_NAMESPACED) ? "namespaces/{namespace}/" : "",
                                   STR_ARG(kind->plural));
    const struct tree *patch =
        tree_get(tree_get(tree_get(document, STR("paths")), item), STR("patch"));
    CHECK_STR(tree_text_at(tree_index(tree_get(patch, STR("parameters")), 2), "name"),
              "fieldValidation");
}

TEST(discovery_describes_every_kind_in_openapi_v3)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    const struct tree *index = parsed(&f, discovery_get(&f, STR("/openapi/v3"), STR("")).body);
    for (uint32_t i = 0; i < f.kinds.n; i++) {
        const struct kind *kind = f.kinds.items[i];
        struct str key = arena_printf(&f.a, "%s/" STR_FMT, kind->group.n > 0 ? "apis" : "api",
                                      STR_ARG(kind->api_version));
        CHECK(tree_get(tree_get(index, STR("paths")), key) != NULL);
        openapi_check(&f, kind);
    }
}

TEST(discovery_gives_old_clients_an_empty_document)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct str protobuf = STR("application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
    struct discovery_reply reply = discovery_get(&f, STR("/openapi/v2"), protobuf);
    CHECK_STR(reply.content_type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    CHECK_EQ(reply.body.n, 32);
    CHECK_EQ(reply.body.p[6], 21); /* length of the info message */
    CHECK_STR(
        tree_text_at(parsed(&f, discovery_get(&f, STR("/openapi/v2"), STR("")).body), "swagger"),
        "2.0");
}
