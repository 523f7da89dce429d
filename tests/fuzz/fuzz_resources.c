/* A list of resources: reading it ends with a list in which every resource is right or has a
 * problem, and each that is right is read again the same from its own text. */
#include "agent/graph.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct ydoc doc;
    struct resource_list list;
    struct graph graph;
    if (ydoc_parse(text, &memory, &doc, &err) < 0 ||
        resource_list_read(&doc, &memory, &list, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < list.n && i < 100; i++) {
        const struct resource *r = &list.items[i];
        struct resource again = { 0 };
        ASSERT(r->name.n > 0 && r->id.n > 0);
        ASSERT((r->problem.n == 0) == (resource_read_json(r->json, &memory, &again, &err) == 0));
        ASSERT(str_eq(r->id, again.id) && str_eq(r->json, again.json));
    }
    if (graph_build(&list, &memory, &graph, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
    }
}
