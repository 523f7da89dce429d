#include "agent/resource.h"

#include "agent/type_reference.h"
#include "tests/lib/agent_fixture.h"

static struct str problem(struct arena *memory, const char *resource)
{
    struct ydoc doc;
    struct err err = { 0 };
    struct resource_list list;
    struct str text = arena_printf(memory, "resources:\n- %s\n", resource);
    CHECK_EQ(ydoc_parse(text, memory, &doc, &err), 0);
    CHECK_EQ(resource_list_read(&doc, memory, &list, &err), 0);
    CHECK_EQ(list.n, 1);
    return list.items[0].problem;
}

TEST(resource_names_what_is_wrong_and_what_is_wanted)
{
    static const struct {
        const char *resource;
        const char *problem;
    } cases[] = {
        { "{name: a, type: file, path: /etc/a, content: x}", "" },
        { "{name: a, type: fil, path: /etc/a}", "unknown type 'fil', did you mean 'file'?" },
        { "{name: a, type: quux}", "unknown type 'quux'" },
        { "{name: a}", "unknown type ''" },
        { "{name: a, type: file, path: /etc/a, contents: x}",
          "unknown field 'contents', did you mean 'content'?" },
        { "{name: a, type: file, content: x}",
          "field 'path': found nothing, want an absolute path such as /etc/motd" },
        { "{name: a, type: file, path: etc/a}",
          "field 'path': found 'etc/a', want an absolute path such as /etc/motd" },
        { "{name: a, type: file, path: /etc/../a}",
          "field 'path': found '/etc/../a', want it without '//', '.', '..' and a '/' at its end" },
        { "{name: a, type: file, path: /etc/}",
          "field 'path': found '/etc/', want it without '//', '.', '..' and a '/' at its end" },
        { "{name: a, type: file, path: /proc/sys/a}",
          "field 'path': '/proc/sys/a' is the kernel's; want the resource that is made for it, "
          "such "
          "as sysctl" },
        { "{name: a, type: file, path: /etc/a, mode: 0644}",
          "field 'mode': found a number, want octal digits in quotes such as '0644'" },
        { "{name: a, type: file, path: /etc/a, mode: '0698'}",
          "field 'mode': found '0698', want octal digits in quotes such as '0644'" },
        { "{name: a, type: file, path: /etc/a, mode: '77777'}",
          "field 'mode': found '77777', want octal digits in quotes such as '0644'" },
        { "{name: a, type: file, path: /etc/a, state: gone}",
          "field 'state': found 'gone', want one of present, absent" },
        { "{name: a, type: file, path: /etc/a, content: x, source: /etc/b}",
          "fields 'content' and 'source': want one of them" },
        { "{name: a, type: file, path: /etc/a, content: x, state: absent}",
          "field 'state': found 'absent' beside a content" },
        { "{name: a, type: file, path: /etc/a, followSymlink: maybe}",
          "field 'followSymlink': found a string, want true or false" },
        { "{name: a, type: file, path: /etc/a, requires: b}",
          "field 'requires': found a string, want a list of texts" },
        { "{name: a, type: file, path: /etc/a, requires: [1]}",
          "field 'requires': found a number as element 1, want text" },
        { "{name: a, type: file, path: /etc/a, meta: {noop: 1}}",
          "field 'meta': field 'noop': found a number, want true or false" },
        { "{name: a, type: file, path: /etc/a, meta: {retrys: 1}}",
          "field 'meta': unknown field 'retrys', did you mean 'retries'?" },
        { "{name: a, type: file, path: /etc/a, meta: {retries: -2}}",
          "field 'meta': field 'retries': found -2, want -1 or more" },
        { "{name: a, type: file, path: /etc/a, meta: []}",
          "field 'meta': found a list, want an object" },
        { "{name: a, type: symlink, path: /etc/a, target: ''}",
          "field 'target': found 0 bytes, want a path" },
    };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_STR(problem(&memory, cases[i].resource), cases[i].problem);
    }
    check_case(-1);
}

TEST(resource_list_is_refused_when_the_whole_means_nothing)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    CHECK_STR(agent_refused(&f, "{}"),
              "field 'resources': found nothing, want a list of resources");
    CHECK_STR(agent_refused(&f, "resources: []"),
              "field 'resources': found an empty list, want a list of resources");
    CHECK_STR(agent_refused(&f, "resources: [{name: a}]\nresource: 1"),
              "unknown field 'resource', want 'resources'");
    CHECK_STR(agent_refused(&f, "resources: [{type: file}]"),
              "resources[0]: field 'name': found nothing, want a text of 1 to 253 bytes");
    CHECK_STR(agent_refused(&f, "resources: [{name: a}, {name: a}]"),
              "resource 'a': the name comes twice");
    CHECK_STR(agent_refused(&f, "resources: [7]"), "resources[0]: found a number, want an object");
    agent_fixture_done(&f);
}

TEST(resource_is_read_again_from_its_own_text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct resource r = { 0 };
    struct str json = STR("{\"name\":\"a\",\"type\":\"file\",\"path\":\"/etc/a\",\"content\":\"x\","
                          "\"meta\":{\"onRemove\":\"Restore\"}}");
    CHECK_EQ(resource_read_json(json, &memory, &r, &err), 0);
    CHECK_STR(r.json, json);
    CHECK_STR(r.id, "file:/etc/a");
    CHECK_EQ(r.meta.on_remove, ON_REMOVE_RESTORE);
    CHECK_EQ(resource_read_json(STR("{\"name\":\"a\",\"type\":\"b\"}"), &memory, &r, &err),
             -ERR_INVALID);
}

TEST(type_reference_is_the_page_in_the_documentation)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    type_reference_print(&out);
    /* To mend: build/drydock-agent --reference > docs/agent-resources.md */
    CHECK_STR(check_data("../../docs/agent-resources.md"), buf_str(&out));
}

TEST(resource_types_have_examples_that_are_right)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    for (const struct resource_type *const *t = resource_types; *t != NULL; t++) {
        struct str text =
            arena_printf(&memory, "{name: a, type: %s, %s}", (*t)->name, (*t)->example);
        CHECK_STR(problem(&memory, text.p), "");
    }
}
