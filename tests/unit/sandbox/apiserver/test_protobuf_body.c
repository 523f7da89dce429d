#include "sandbox/apiserver/protobuf_body.h"

#include <dirent.h>

#include "base/base64.h"
#include "tests/check.h"

#define BYTES(literal) ((struct str){ .p = (literal), .n = sizeof(literal) - 1 })

struct body_read {
    struct arena arena;
    struct protobuf_kind kind;
    struct tree *object;
    struct err err;
    int r;
};

static void body_read_done(struct body_read *read)
{
    arena_done(&read->arena);
}

static void body_read(struct body_read *read, struct str body)
{
    *read = (struct body_read){ .kind = { .api_version = STR("v1"), .kind = STR("ConfigMap") } };
    read->r = protobuf_body_read(body, &read->arena, &read->kind, &read->object, &read->err);
}

/* The message in an envelope of that kind. */
static struct str envelope(struct arena *a, const char *api_version, const char *kind,
                           struct str message)
{
    struct str version = str_from(api_version);
    struct str name = str_from(kind);
    CHECK(version.n < 100 && name.n < 100 && message.n < 16384);
    size_t cap = 64 + version.n + name.n + message.n;
    char *bytes = arena_alloc(a, cap);
    size_t n = 0;
    memcpy(bytes, "k8s", 4);
    n += 4;
    bytes[n++] = 0x0a;
    bytes[n++] = (char)(4 + version.n + name.n);
    bytes[n++] = 0x0a;
    bytes[n++] = (char)version.n;
    memcpy(bytes + n, version.p, version.n);
    n += version.n;
    bytes[n++] = 0x12;
    bytes[n++] = (char)name.n;
    memcpy(bytes + n, name.p, name.n);
    n += name.n;
    bytes[n++] = 0x12;
    bytes[n++] = (char)(0x80 | (message.n & 0x7f));
    bytes[n++] = (char)(message.n >> 7);
    memcpy(bytes + n, message.p, message.n);
    return (struct str){ .p = bytes, .n = n + message.n };
}

static void read_as(struct body_read *read, const char *api_version, const char *kind,
                    struct str message)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    *read = (struct body_read){ 0 };
    struct str body = arena_str(&read->arena, envelope(&tmp, api_version, kind, message));
    read->r = protobuf_body_read(body, &read->arena, &read->kind, &read->object, &read->err);
}

/* Neither form has what says nothing: kubectl's JSON has null times, which protobuf leaves out. */
static void drop_nulls(struct tree *t)
{
    TREE_EACH (t, member) {
        if (member->kind == JNULL && t->kind == JOBJ) {
            tree_remove(t, member);
        } else {
            drop_nulls(member);
        }
    }
}

/* What a real kubectl sent in protobuf is what it prints as JSON. */
TEST(protobuf_body_reads_what_kubectl_sends)
{
    const char *root = getenv("CHECK_DATA");
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str folder = arena_printf(&a, "%s/kubectl", root != NULL ? root : "tests/data");
    DIR *dir = opendir(folder.p);
    CHECK(dir != NULL);
    uint32_t n = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (!str_ends(str_from(entry->d_name), STR(".json"))) {
            continue;
        }
        struct tree *recording;
        struct str body;
        struct err err = { 0 };
        struct str text = check_data(arena_printf(&a, "kubectl/%s", entry->d_name).p);
        CHECK_EQ(tree_parse(text, &a, &recording, &err), 0);
        CHECK(base64_decode(tree_text_at(recording, "body"), &a, &body));
        CLEANUP(body_read_done)
        struct body_read read;
        body_read(&read, body);
        CHECK_STR(read.err.msg, "");
        CHECK_EQ(read.r, 0);
        struct tree *want = tree_get(recording, STR("object"));
        if (tree_kind(want) == JOBJ) { /* kubectl does not print a TokenRequest */
            drop_nulls(want);
            drop_nulls(read.object);
            if (!tree_eq(read.object, want)) {
                check_fail(__FILE__, __LINE__, "%s: " STR_FMT "\nwant " STR_FMT, entry->d_name,
                           STR_ARG(tree_json(&a, read.object)), STR_ARG(tree_json(&a, want)));
            }
        }
        n++;
    }
    (void)closedir(dir);
    CHECK(n > 15);
}

TEST(protobuf_body_reads_a_token_request)
{
    struct tree *recording;
    struct str body;
    struct err err = { 0 };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_EQ(tree_parse(check_data("kubectl/token.json"), &a, &recording, &err), 0);
    CHECK(base64_decode(tree_text_at(recording, "body"), &a, &body));
    CLEANUP(body_read_done)
    struct body_read read;
    body_read(&read, body);
    CHECK_EQ(read.r, 0);
    CHECK_STR(tree_json(&a, tree_get(read.object, STR("spec"))),
              "{\"audiences\":[\"a\",\"b\"],\"expirationSeconds\":1800}");
}

/* A message with each form that a field may have, and the JSON it stands for. */
static const struct field_case {
    const char *about;
    const char *api_version;
    const char *kind;
    struct str message;
    const char *json; /* without apiVersion and kind */
} field_cases[] = {
    { "a time has whole seconds", "v1", "ConfigMap",
      STR_INIT("\x0a\x08\x42\x06\x08\x80\xc2\xaf\xf0\x05"),
      "{\"metadata\":{\"creationTimestamp\":\"2020-01-01T00:00:00Z\"}}" },
    { "a time of no bytes is none", "v1", "ConfigMap", STR_INIT("\x0a\x02\x42\x00"),
      "{\"metadata\":{}}" },
    { "a micro time has six digits", "coordination.k8s.io/v1", "Lease",
      STR_INIT("\x12\x0c\x22\x0a\x08\x80\xc2\xaf\xf0\x05\x10\xc0\x84\x3d"),
      "{\"spec\":{\"renewTime\":\"2020-01-01T00:00:00.001000Z\"}}" },
    { "a pointer keeps its zero", "apps/v1", "Deployment", STR_INIT("\x12\x04\x08\x00\x28\x00"),
      "{\"spec\":{\"replicas\":0}}" },
    { "a negative number", "scheduling.k8s.io/v1", "PriorityClass",
      STR_INIT("\x10\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "{\"value\":-5}" },
    { "int or string: a number", "policy/v1", "PodDisruptionBudget",
      STR_INIT("\x12\x08\x0a\x06\x08\x00\x10\x03\x1a\x00"), "{\"spec\":{\"minAvailable\":3}}" },
    { "int or string: a text", "policy/v1", "PodDisruptionBudget",
      STR_INIT("\x12\x0b\x1a\x09\x08\x01\x10\x00\x1a\x03"
               "50%"),
      "{\"spec\":{\"maxUnavailable\":\"50%\"}}" },
    { "bytes are base64", "v1", "Secret", STR_INIT("\x12\x07\x0a\x01k\x12\x02\x00\xff"),
      "{\"data\":{\"k\":\"AP8=\"}}" },
    { "a map's empty value", "v1", "ConfigMap", STR_INIT("\x12\x03\x0a\x01k"),
      "{\"data\":{\"k\":\"\"}}" },
    { "of two entries the later one", "v1", "ConfigMap",
      STR_INIT("\x12\x06\x0a\x01k\x12\x01"
               "a\x12\x06\x0a\x01l\x12\x01"
               "b\x12\x06\x0a\x01k\x12\x01"
               "c"),
      "{\"data\":{\"k\":\"c\",\"l\":\"b\"}}" },
    { "quantities in a map", "v1", "Node",
      STR_INIT("\x1a\x0d\x0a\x0b\x0a\x03"
               "cpu\x12\x04\x0a\x02"
               "4k"),
      "{\"status\":{\"capacity\":{\"cpu\":\"4k\"}}}" },
    { "an embedded message", "v1", "Pod",
      STR_INIT("\x12\x0b\x0a\x09\x0a\x01v\x12\x04\x12\x02\x0a\x00"),
      "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}" },
    { "a packed list", "v1", "Pod", STR_INIT("\x12\x08\x72\x06\x22\x04\x01\x02\xac\x02"),
      "{\"spec\":{\"securityContext\":{\"supplementalGroups\":[1,2,300]}}}" },
    { "a list that is not packed", "v1", "Pod", STR_INIT("\x12\x06\x72\x04\x20\x01\x20\x02"),
      "{\"spec\":{\"securityContext\":{\"supplementalGroups\":[1,2]}}}" },
    { "two parts of one message", "v1", "ConfigMap",
      STR_INIT("\x0a\x03\x0a\x01"
               "a\x0a\x03\x1a\x01"
               "b"),
      "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}" },
    { "of two texts the later one", "v1", "ConfigMap",
      STR_INIT("\x0a\x05\x0a\x01"
               "a\x0a\x00"),
      "{\"metadata\":{}}" },
    { "a field that nobody knows", "v1", "ConfigMap",
      STR_INIT("\xfa\x01\x02xx\x0a\x03\x0a\x01"
               "a"),
      "{\"metadata\":{\"name\":\"a\"}}" },
    { "JSON in a message", "apps/v1", "ControllerRevision",
      STR_INIT("\x12\x09\x0a\x07{\"a\":1}\x18\x02"), "{\"data\":{\"a\":1},\"revision\":2}" },
    { "options of a deletion", "apps/v1", "DeleteOptions",
      STR_INIT("\x08\x00\x2a\x03"
               "All"),
      "{\"gracePeriodSeconds\":0,\"dryRun\":[\"All\"]}" },
    { "a kind of a version that has no table", "apps/v1beta1", "Deployment", STR_INIT("\x0a\x00"),
      "{}" },
};

TEST(protobuf_body_reads_each_type_of_field)
{
    for (size_t i = 0; i < ARRAY_LEN(field_cases); i++) {
        CLEANUP(body_read_done)
        struct body_read read;
        check_case((int64_t)i);
        read_as(&read, field_cases[i].api_version, field_cases[i].kind, field_cases[i].message);
        CHECK_STR(read.err.msg, "");
        CHECK_STR(tree_text_at(read.object, "kind"), field_cases[i].kind);
        (void)tree_del(read.object, STR("kind"));
        (void)tree_del(read.object, STR("apiVersion"));
        CHECK_STR(tree_json(&read.arena, read.object), field_cases[i].json);
    }
    check_case(-1);
}

/* The three places of a CRD's schema that hold one thing or another, and numbers with a fraction.
 */
TEST(protobuf_body_reads_the_schema_of_a_crd)
{
    static const struct {
        struct str schema;
        const char *json;
    } cases[] = {
        { STR_INIT("\xf2\x01\x02\x08\x01"), "{\"additionalProperties\":true}" },
        { STR_INIT("\xf2\x01\x02\x08\x00"), "{\"additionalProperties\":false}" },
        { STR_INIT("\xf2\x01\x08\x08\x01\x12\x04\x2a\x02xy"),
          "{\"additionalProperties\":{\"type\":\"xy\"}}" },
        { STR_INIT("\xc2\x01\x06\x0a\x04\x2a\x02xy"), "{\"items\":{\"type\":\"xy\"}}" },
        { STR_INIT("\xc2\x01\x06\x12\x04\x2a\x02xy"), "{\"items\":[{\"type\":\"xy\"}]}" },
        { STR_INIT("\x82\x02\x08\x0a\x01"
                   "d\x12\x03\x12\x01"
                   "e"),
          "{\"dependencies\":{\"d\":[\"e\"]}}" },
        { STR_INIT("\x42\x05\x0a\x03\"x\""), "{\"default\":\"x\"}" },
        { STR_INIT("\x49\x00\x00\x00\x00\x00\x00\xf8\x3f"), "{\"maximum\":1.5}" },
        { STR_INIT("\x59\x00\x00\x00\x00\x80\x84\x2e\x41"), "{\"minimum\":1000000}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(body_read_done)
        struct body_read read;
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        check_case((int64_t)i);
        struct str schema = cases[i].schema;
        struct str message =
            arena_printf(&tmp, "\x12%c\x3a%c\x22%c\x0a%c", (char)(schema.n + 6),
                         (char)(schema.n + 4), (char)(schema.n + 2), (char)schema.n);
        read_as(&read, "apiextensions.k8s.io/v1", "CustomResourceDefinition",
                arena_concat(&tmp, message, schema));
        CHECK_STR(read.err.msg, "");
        struct tree *version = tree_index(tree_at(read.object, "spec.versions"), 0);
        CHECK_STR(tree_json(&tmp, tree_at(version, "schema.openAPIV3Schema")), cases[i].json);
    }
    check_case(-1);
}

TEST(protobuf_body_refuses_what_is_none)
{
    static const struct {
        struct str body;
        const char *message;
    } cases[] = {
        { STR_INIT(""), "empty data" },
        { STR_INIT("k8s\0"), "empty body" },
        { STR_INIT("k8s"), "provided data does not appear to be a protobuf message, expected "
                           "prefix [107 56 115 0]" },
        { STR_INIT("{}"), "provided data does not appear to be a protobuf message, expected "
                          "prefix [107 56 115 0]" },
        { STR_INIT("k8s\0\x0a\xff"), "unexpected EOF" },
        { STR_INIT("k8s\0\x0a\x06\x0a\x01\xff\x12\x01K\x12\x00"),
          "apiVersion or kind is no valid UTF-8" },
        { STR_INIT("k8s\0\x12\x02\x08\x01"), "proto: wrong wireType = 0 for field ObjectMeta" },
        { STR_INIT("k8s\0\x12\x05\x0a\x03\x52\x01x"),
          "proto: wrong wireType = 2 for field DeletionGracePeriodSeconds" },
        { STR_INIT("k8s\0\x12\x04\x10\x01\x18\x01"), "proto: wrong wireType = 0 for field Data" },
        { STR_INIT("k8s\0\x12\x06\x0a\x04\x0a\x02n\xff"), "name: the text is no valid UTF-8" },
        { STR_INIT("k8s\0\x12\x05\x12\x03\x0a\x01\xff"), "data: the text is no valid UTF-8" },
        { STR_INIT("k8s\0\x12\x0b\x0a\x09\x42\x07\x08\x80\x83\xd1\xff\xaf\x07"),
          "a time is outside of the years 1 to 9999" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(body_read_done)
        struct body_read read;
        check_case((int64_t)i);
        body_read(&read, cases[i].body);
        CHECK(read.r < 0);
        CHECK_STR(read.err.msg, cases[i].message);
    }
    check_case(-1);
}

/* Every prefix of a body is refused or read, and never read past its end. */
TEST(protobuf_body_may_end_anywhere)
{
    struct tree *recording;
    struct str body;
    struct err err = { 0 };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_EQ(tree_parse(check_data("kubectl/deployment.json"), &a, &recording, &err), 0);
    CHECK(base64_decode(tree_text_at(recording, "body"), &a, &body));
    for (size_t n = 0; n < body.n; n++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        char *copy = arena_alloc(&tmp, n + 1);
        memcpy(copy, body.p, n);
        CLEANUP(body_read_done)
        struct body_read read;
        body_read(&read, (struct str){ .p = copy, .n = n });
        CHECK(read.r < 0 || n > 4);
    }
}

/* A schema in a schema in a schema …: a stranger's body must not exhaust the stack. */
TEST(protobuf_body_bounds_its_depth)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str schema = STR("");
    for (uint32_t i = 0; i < PROTOBUF_BODY_DEPTH_MAX + 5; i++) { /* not: a schema */
        CHECK(schema.n < 16000);
        struct str head = arena_printf(&a, "\xe2\x01%c%c", (char)(0x80 | (schema.n & 0x7f)),
                                       (char)(schema.n >> 7 == 0 ? 0x80 : schema.n >> 7));
        if (schema.n >> 7 == 0) { /* two bytes for the length, whatever it is */
            char *bytes = arena_alloc(&a, 4);
            memcpy(bytes, "\xe2\x01", 2);
            bytes[2] = (char)(0x80 | schema.n);
            bytes[3] = 0;
            head = (struct str){ .p = bytes, .n = 4 };
        }
        schema = arena_concat(&a, head, schema);
    }
    char *head = arena_alloc(&a, 16);
    size_t n = 0;
    static const char tags[] = { 0x12, 0x3a, 0x22, 0x0a };
    for (size_t i = 0; i < sizeof(tags); i++) {
        size_t length = schema.n + 3 * (sizeof(tags) - 1 - i);
        head[n++] = tags[i];
        head[n++] = (char)(0x80 | (length & 0x7f));
        head[n++] = (char)(length >> 7);
    }
    CLEANUP(body_read_done)
    struct body_read read;
    read_as(&read, "apiextensions.k8s.io/v1", "CustomResourceDefinition",
            arena_concat(&a, (struct str){ .p = head, .n = n }, schema));
    CHECK_EQ(read.r, -ERR_LIMIT);
    CHECK_STR(read.err.msg, "messages nest deeper than 100 levels");
}

/* A map of many entries is read in time that grows with its size alone. */
TEST(protobuf_body_reads_large_maps)
{
    enum { ENTRIES = 100000, EACH = 9 };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    char *bytes = arena_alloc(&a, 16 + (size_t)ENTRIES * EACH);
    uint32_t length = ENTRIES * EACH;
    size_t n = 0;
    memcpy(bytes, "k8s\0\x12", 5);
    n += 5;
    while (length >= 0x80) {
        bytes[n++] = (char)(0x80 | (length & 0x7f));
        length >>= 7;
    }
    bytes[n++] = (char)length;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        memcpy(bytes + n, "\x12\x07\x0a\x05", 4);
        for (uint32_t digit = 0, rest = i; digit < 5; digit++, rest /= 10) {
            bytes[n + 4 + digit] = (char)('0' + rest % 10);
        }
        n += EACH;
    }
    CLEANUP(body_read_done)
    struct body_read read;
    body_read(&read, (struct str){ .p = bytes, .n = n });
    CHECK_EQ(read.r, 0);
    CHECK_EQ(tree_get(read.object, STR("data"))->n, ENTRIES);
}
