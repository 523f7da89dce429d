#include "agent/graph.h"

#include "tests/lib/agent_fixture.h"

static struct str order_of(struct agent_fixture *f, const char *yaml)
{
    struct err err = { 0 };
    struct ydoc doc;
    struct str text = STR("");
    CHECK_EQ(ydoc_parse(str_from(yaml), &f->memory, &doc, &err), 0);
    CHECK_EQ(resource_list_read(&doc, &f->memory, &f->resources, &err), 0);
    CHECK_EQ(graph_build(&f->resources, &f->memory, &f->graph, &err), 0);
    for (uint32_t i = 0; i < f->resources.n; i++) {
        text = arena_printf(&f->memory, STR_FMT "%s" STR_FMT, STR_ARG(text), i > 0 ? " " : "",
                            STR_ARG(f->resources.items[f->graph.order[i]].name));
    }
    return text;
}

TEST(graph_keeps_the_order_of_the_document_where_nothing_else_is_said)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    CHECK_STR(order_of(&f, "resources:\n"
                           "- {name: c, type: file, path: /c}\n"
                           "- {name: a, type: file, path: /a}\n"
                           "- {name: b, type: file, path: /b}\n"),
              "c a b");
    CHECK_STR(order_of(&f, "resources:\n"
                           "- {name: c, type: file, path: /c, requires: [b]}\n"
                           "- {name: a, type: file, path: /a}\n"
                           "- {name: b, type: file, path: /b, notifies: [a]}\n"),
              "b c a");
    agent_fixture_done(&f);
}

TEST(graph_puts_folders_before_what_is_in_them)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    CHECK_STR(order_of(&f, "resources:\n"
                           "- {name: deep, type: file, path: /srv/a/b/c}\n"
                           "- {name: link, type: symlink, path: /srv/a/l, target: x}\n"
                           "- {name: a, type: directory, path: /srv/a}\n"
                           "- {name: srv, type: directory, path: /srv}\n"),
              "srv a deep link");
    /* Not the folder of a name that only begins alike. */
    CHECK_STR(order_of(&f, "resources:\n"
                           "- {name: file, type: file, path: /srv/ab}\n"
                           "- {name: a, type: directory, path: /srv/a}\n"),
              "file a");
    /* Whoever writes the opposite gets it. */
    CHECK_STR(order_of(&f, "resources:\n"
                           "- {name: file, type: file, path: /srv/a}\n"
                           "- {name: srv, type: directory, path: /srv, requires: [file]}\n"),
              "file srv");
    agent_fixture_done(&f);
}

TEST(graph_names_the_members_of_a_circle)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    CHECK_STR(agent_refused(&f, "resources:\n"
                                "- {name: out, type: file, path: /o, requires: [a]}\n"
                                "- {name: a, type: file, path: /a, requires: [b]}\n"
                                "- {name: b, type: file, path: /b, requires: [c]}\n"
                                "- {name: c, type: file, path: /c, requires: [a]}\n"),
              "resources go in a circle: 'a' waits for 'b' waits for 'c' waits for 'a'");
    CHECK_STR(agent_refused(&f, "resources:\n"
                                "- {name: a, type: file, path: /a, notifies: [b]}\n"
                                "- {name: b, type: file, path: /b, notifies: [a]}\n"),
              "resources go in a circle: 'a' waits for 'b' waits for 'a'");
    CHECK_STR(agent_refused(&f, "resources: [{name: a, type: file, path: /a, requires: [a]}]"),
              "resources go in a circle: 'a' waits for 'a'");
    agent_fixture_done(&f);
}

TEST(graph_refuses_two_resources_for_one_thing)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    CHECK_STR(agent_refused(&f, "resources:\n"
                                "- {name: a, type: file, path: /etc/x}\n"
                                "- {name: b, type: file, path: /etc/x}\n"),
              "resources 'a' and 'b' are for the same thing, file:/etc/x");
    agent_fixture_done(&f);
}

TEST(graph_makes_a_problem_of_a_name_that_nobody_has)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_run(&f, "resources:\n"
                  "- {name: a, type: file, path: /a, content: x, requires: [nobody]}\n"
                  "- {name: b, type: file, path: /b, content: x}\n");
    CHECK_STR(agent_said(&f, "a"), "Failed: field 'requires': there is no resource 'nobody'");
    CHECK_STR(agent_said(&f, "b"), "Ok, changed");
    agent_fixture_done(&f);
}

/* Whatever the edges are, everything comes once and behind what it waits for. */
PROPERTY(graph_order_obeys_every_edge)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct resource items[24] = { 0 };
    struct str names[24][3];
    uint32_t n = 1 + rng_below(rng, ARRAY_LEN(items));
    uint32_t shuffled[24];
    for (uint32_t i = 0; i < n; i++) {
        shuffled[i] = i;
    }
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = rng_below(rng, i);
        uint32_t swap = shuffled[i - 1];
        shuffled[i - 1] = shuffled[k];
        shuffled[k] = swap;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct resource *r = &items[shuffled[i]];
        r->name = arena_printf(&memory, "r%u", shuffled[i]);
        r->id = r->name;
        for (uint32_t k = 0; k < 3 && i > 0; k++) {
            names[i][k] = arena_printf(&memory, "r%u", shuffled[rng_below(rng, i)]);
        }
        r->requires_names = names[i];
        r->requires_n = i > 0 ? rng_below(rng, 4) : 0;
    }
    struct resource_list list = { .items = items, .n = n };
    struct graph graph;
    struct err err = { 0 };
    CHECK_EQ(graph_build(&list, &memory, &graph, &err), 0);
    bool seen[24] = { false };
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = graph.order[i];
        CHECK(!seen[v]);
        seen[v] = true;
        for (uint32_t k = 0; k < graph.vertices[v].requires.n; k++) {
            CHECK(seen[graph.vertices[v].requires.items[k]]);
        }
    }
}
