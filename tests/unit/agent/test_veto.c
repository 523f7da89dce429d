#include "agent/veto.h"

#include "tests/lib/agent_fixture.h"

static const char list[] =
    "resources:\n"
    "- {name: file, type: file, path: /etc/app/a, content: x}\n"
    "- {name: checked, type: file, path: /srv/b, content: x, validate: [/bin/true]}\n"
    "- {name: run, type: exec, script: 'true', creates: /srv/none}\n"
    "- {name: user, type: group, group: dd}\n"
    "- {name: reboot, type: reboot}\n"
    "- {name: next, type: file, path: /srv/next, content: x, requires: [file]}\n";

/* Names of those that a policy forbids, with spaces between. */
static struct str forbidden(const char *policy, struct arena *memory)
{
    struct err err = { 0 };
    struct ydoc doc;
    struct resource_list resources;
    struct veto veto;
    struct str names = STR("");
    struct str why;
    CHECK_EQ(ydoc_parse(str_from(list), memory, &doc, &err), 0);
    CHECK_EQ(resource_list_read(&doc, memory, &resources, &err), 0);
    if (veto_parse(str_from(policy), memory, &veto, &err) < 0) {
        check_fail(__FILE__, __LINE__, "refused: %s", err.msg);
    }
    for (uint32_t i = 0; i < resources.n; i++) {
        CHECK_STR(resources.items[i].problem, "");
        if (veto_forbids(&veto, &resources.items[i], memory, &why)) {
            CHECK(why.n > 0);
            names = arena_printf(memory, STR_FMT STR_FMT " ", STR_ARG(names),
                                 STR_ARG(resources.items[i].name));
        }
    }
    return names;
}

TEST(veto_forbids_what_its_rules_say)
{
    static const struct {
        const char *policy;
        const char *forbidden;
    } cases[] = {
        { "", "" },
        { "# deny exec\n\n", "" },
        { "deny type file", "file checked next " },
        { "deny exec\ndeny reboot\n", "checked run reboot " },
        { "  deny\tpath  /etc/app/*  ", "file " },
        { "deny path /srv/*", "checked run next " },
        { "deny path /etc/group", "user " }, /* which groups are in */
        { "allow type file\nallow type group\n", "run reboot " },
        { "allow type file\ndeny path /srv/b\n", "checked run user reboot " },
        { "mode noop", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        check_case((int)i);
        CHECK_STR(forbidden(cases[i].policy, &memory), cases[i].forbidden);
    }
}

TEST(veto_refuses_what_it_does_not_know)
{
    static const struct {
        const char *policy;
        const char *message;
    } cases[] = {
        { "deny type fil", "line 1: found type 'fil', want one of the agent's; did you mean "
                           "'file'?" },
        { "\ndeny path etc", "line 2: found path 'etc', want it to begin with /" },
        { "allow exec", "line 1: found 'allow exec', want 'allow type TYPE', 'deny type TYPE', "
                        "'deny path PATTERN', 'deny exec', 'deny reboot' or 'mode noop'" },
        { "deny exec now", "line 1: found 'deny exec now', want 'allow type TYPE', 'deny type "
                           "TYPE', 'deny path PATTERN', 'deny exec', 'deny reboot' or 'mode "
                           "noop'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        struct veto veto;
        struct err err = { 0 };
        check_case((int)i);
        CHECK(veto_parse(str_from(cases[i].policy), &memory, &veto, &err) < 0);
        CHECK_STR(err.msg, cases[i].message);
    }
}

TEST(veto_of_a_file_that_others_may_write_forbids_all)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    CHECK_STR(veto_load(&f.root, &f.memory).broken, "");
    agent_write(&f, VETO_PATH, "deny reboot\n");
    struct veto veto = veto_load(&f.root, &f.memory);
    CHECK_STR(veto.broken, "");
    CHECK_EQ(veto.rule_n, 1);
    CHECK_EQ(chmod(agent_outside(&f, VETO_PATH), 0666), 0);
    CHECK_STR(veto_load(&f.root, &f.memory).broken,
              VETO_PATH " cannot be followed, so it forbids all: others than root may write it "
                        "(owner 0, mode 0666)");
    agent_fixture_done(&f);
}
