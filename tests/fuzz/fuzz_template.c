/* A template gives the same twice, within its limits, and a comment before it changes nothing. */
#include "format/template.h"
#include "tests/fuzz/target.h"

static const char node_text[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"labels\":{\"a\":"
    "\"1\","
    "\"role\":\"worker\"},\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"finalizers\":[\"f\"]},"
    "\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]},\"status\":{\"capacity\":"
    "{\"cpu\":\"7900m\",\"memory\":\"31Gi\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
    "\"True\"}],\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.5\"}]}}";

/* 0, or the error's code; what was printed is in `out`. */
static int run(struct str text, struct arena *a, struct buf *out)
{
    struct err err = { 0 };
    struct template *t;
    const struct jval *node;
    int r = json_parse(STR(node_text), 0, a, &node, &err);
    ASSERT(r == 0);
    struct gomember profile[] = { { STR("Current"), govalue_str(STR("kernel")) },
                                  { STR("Last"), govalue_str(STR("flatcar")) } };
    struct gomember fields[] = {
        { STR("State"), govalue_str(STR("in-maintenance")) },
        { STR("Profile"), govalue_str_with(STR("kernel"), profile, ARRAY_LEN(profile)) },
        { STR("Node"), govalue_from(&gotype_node, node, a) },
        { STR("InMaintenance"), govalue_bool(true) },
        { STR("LogDetails"), govalue_bool(false) },
        { STR("LastTransition"),
          govalue_time((struct timestamp){ .sec = 1767604087, .offset = 7200 }) },
    };
    struct govalue root = govalue_struct(fields, ARRAY_LEN(fields));
    r = template_parse(text, a, &t, &err);
    r = r == 0 ? template_render(t, &root, out, &err) : r;
    ASSERT(r == 0 || (err.msg[0] != '\0' && out->n == 0));
    ASSERT(r == 0 || err.pos.line > 0 || text.n > TEMPLATE_TEXT_MAX);
    ASSERT(out->n <= TEMPLATE_OUTPUT_MAX);
    return r;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf first = { 0 };
    CLEANUP(buf_done)
    struct buf second = { 0 };
    CLEANUP(buf_done)
    struct buf third = { 0 };
    int r = run(text, &a, &first);
    int again = run(text, &a, &second);
    ASSERT(r == again && str_eq(buf_str(&first), buf_str(&second)));
    if (text.n + 8 <= TEMPLATE_TEXT_MAX) {
        int behind = run(arena_concat(&a, STR("{{/**/}}"), text), &a, &third);
        ASSERT(r == behind && str_eq(buf_str(&first), buf_str(&third)));
    }
}
