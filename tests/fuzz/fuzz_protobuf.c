/* A protobuf body: it is refused, or what it gives is JSON that reads back as the same object; and
 * the same bytes give the same object. */
#include "sandbox/apiserver/protobuf_body.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct protobuf_kind kind = { .api_version = STR("v1"), .kind = STR("Pod") };
    struct tree *object;
    if (protobuf_body_read(text, &a, &kind, &object, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    struct tree *again;
    int r = tree_parse(tree_json(&a, object), &a, &again, &err);
    /* Messages may nest less deep than JSON may; JSON in a message stands deeper than alone. */
    ASSERT(r == 0 || r == -ERR_LIMIT);
    ASSERT(r < 0 || tree_eq(object, again));
    struct protobuf_kind same = { .api_version = STR("v1"), .kind = STR("Pod") };
    r = protobuf_body_read(text, &a, &same, &again, &err);
    ASSERT(r == 0);
    ASSERT(tree_identical(object, again));
}
