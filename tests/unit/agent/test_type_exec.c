/* exec, and the validation of files: what is run, when, and what its end means. */
#include <unistd.h>

#include "tests/lib/agent_fixture.h"

/* A script's own text says what it does: "exit N" and "touch PATH". */
static void play(struct agent_fixture *f, const struct command_spec *command,
                 struct command_result *ret)
{
    struct str script = command->argv_n > 1 && str_eq(command->argv[0], STR("/bin/sh"))
                            ? command->input
                            : command->argv[command->argv_n - 1];
    struct str rest;
    uint32_t code;
    if (str_cut_prefix(script, STR("touch "), &rest)) {
        agent_write(f, arena_str(&f->memory, rest).p, "made");
    } else if (str_cut_prefix(script, STR("exit "), &rest) && str_to_u32(rest, &code)) {
        ret->exit_code = (int)code;
        ret->out = STR("it says\nwhy\n");
    } else if (str_eq(script, STR("hang"))) {
        ret->timed_out = true;
        ret->exit_code = 137;
    }
}

TEST(exec_runs_until_what_it_creates_is_there)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/var/cache");
    f.on_command = play;
    static const char yaml[] =
        "resources: [{name: a, type: exec, script: touch /var/cache/a, creates: /var/cache/a}]";
    agent_noop(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Noop");
    CHECK_EQ(f.command_n, 0);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_EQ(f.command_n, 1);
    agent_run(&f, "resources: [{name: a, type: exec, command: [/bin/true], creates: /var/none}]");
    CHECK_STR(agent_said(&f, "a"), "Failed: run is still 'due', want 'done'");
    agent_fixture_done(&f);
}

TEST(exec_asks_its_guards_first)
{
    static const struct {
        const char *guards;
        const char *said;
        uint32_t commands;
    } cases[] = {
        { "unless: exit 0", "Ok", 1 },
        { "onlyIf: exit 1", "Ok", 1 },
        { "onlyIf: exit 0, unless: exit 0", "Ok", 2 },
        { "onlyIf: exit 1, unless: exit 1", "Ok", 1 },
        { "creates: /etc/there, unless: exit 1", "Ok", 0 },
        { "unless: hang", "Failed: it did not end within its 'timeout'", 1 },
        /* Due before and after: unless, the program, unless. */
        { "unless: exit 1", "Failed: run is still 'due', want 'done'", 3 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent_fixture f;
        check_case((int64_t)i);
        agent_fixture_init(&f);
        agent_write(&f, "/etc/there", "");
        f.on_command = play;
        agent_run(&f, arena_printf(&f.memory,
                                   "resources: [{name: a, type: exec, command: [/bin/true], %s}]",
                                   cases[i].guards)
                          .p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
        CHECK_EQ(f.command_n, cases[i].commands);
        agent_fixture_done(&f);
    }
    check_case(-1);
}

TEST(exec_that_only_listens_runs_when_it_is_notified)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/etc");
    f.on_command = play;
    static const char yaml[] =
        "resources:\n"
        "- {name: config, type: file, path: /etc/config, content: new, notifies: [reload]}\n"
        "- {name: reload, type: exec, script: touch /etc/reloaded, refreshOnly: true}\n";
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "reload"), "Ok, refreshed");
    CHECK_STR(agent_read(&f, "/etc/reloaded"), "made");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "reload"), "Ok");
    CHECK_EQ(f.command_n, 1);
    /* It disturbs: where that is not allowed the mark stays until it is. */
    agent_write(&f, "/etc/config", "drifted");
    f.rules.allowed = DISRUPTION_NONE;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "config"), "Ok, changed");
    CHECK_STR(agent_said(&f, "reload"), "Deferred");
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "config"), "Ok");
    CHECK_STR(agent_said(&f, "reload"), "Ok, refreshed");
    CHECK_EQ(f.command_n, 2);
    agent_fixture_done(&f);
}

TEST(exec_tells_why_it_failed)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    f.on_command = play;
    agent_run(&f, "resources:\n"
                  "- {name: a, type: exec, script: exit 3, creates: /none}\n"
                  "- {name: b, type: exec, script: exit 3, creates: /none2, "
                  "meta: {sensitive: true}}\n"
                  "- {name: c, type: exec, script: hang, creates: /none3}\n"
                  "- {name: d, type: exec, script: exit 0, creates: /none4, user: nobody-here}\n");
    CHECK_STR(agent_said(&f, "a"), "Failed: exit code 3: it says\nwhy");
    CHECK_STR(agent_said(&f, "b"), "Failed: exit code 3");
    CHECK_STR(agent_said(&f, "c"), "Failed: it did not end within its 'timeout'");
    CHECK_STR(agent_said(&f, "d"),
              "Failed: field 'user': there is no 'nobody-here' in /etc/passwd");
    agent_fixture_done(&f);
}

TEST(exec_names_what_is_wrong)
{
    static const struct {
        const char *fields;
        const char *said;
    } cases[] = {
        { "script: a", "Failed: want one of 'creates', 'onlyIf', 'unless' and 'refreshOnly: true', "
                       "or it would run each time" },
        { "script: a, command: [/b], unless: c",
          "Failed: fields 'command' and 'script': want one of them" },
        { "unless: c", "Failed: fields 'command' and 'script': want one of them" },
        { "command: [ls], unless: c", "Failed: field 'command': want the path of a program first" },
        { "script: a, unless: c, env: [A]", "Failed: field 'env': found 'A', want NAME=value" },
        { "script: a, unless: c, timeout: 0s", "Failed: field 'timeout': want it above 0" },
    };
    struct agent_fixture f;
    agent_fixture_init(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        agent_run(
            &f,
            arena_printf(&f.memory, "resources: [{name: a, type: exec, %s}]", cases[i].fields).p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
    }
    check_case(-1);
    agent_fixture_done(&f);
}

/* ── validate ──────────────────────────────────────────────────────────────────────────────── */

/* Accepts a file that begins with "good". */
static void judge_file(struct agent_fixture *f, const struct command_spec *command,
                       struct command_result *ret)
{
    CHECK_STR(command->argv[0], "/usr/sbin/visudo");
    CHECK_STR(command->argv[1], "-cf");
    CHECK_STR(command->argv[2], "/etc/.sudoers.drydock");
    CHECK_EQ(agent_mode(f, "/etc/.sudoers.drydock"), 0440);
    ret->exit_code = str_starts(agent_read(f, command->argv[2].p), STR("good")) ? 0 : 1;
    ret->out = STR("syntax error\n");
}

#define VALIDATED(content)                                                                         \
    "resources: [{name: a, type: file, path: /etc/sudoers, content: " content ", mode: '0440', "   \
    "validate: [/usr/sbin/visudo, -cf, '%']}]"

TEST(file_takes_its_place_only_when_it_is_valid)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/sudoers", "old");
    f.on_command = judge_file;
    agent_run(&f, VALIDATED("bad"));
    CHECK_STR(agent_said(&f, "a"),
              "Failed: '/usr/sbin/visudo' refuses the new file (exit code 1): syntax error");
    CHECK_STR(agent_read(&f, "/etc/sudoers"), "old");
    CHECK_STR(agent_read(&f, "/etc/.sudoers.drydock"), "(none)");
    agent_run(&f, VALIDATED("good"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/sudoers"), "good");
    uint32_t commands = f.command_n;
    agent_run(&f, VALIDATED("good"));
    CHECK_EQ(f.command_n, commands);
    agent_run(&f, "resources: [{name: a, type: file, path: /a, content: x, validate: [sh]}]");
    CHECK_STR(agent_said(&f, "a"), "Failed: field 'validate': want the path of a program first");
    agent_fixture_done(&f);
}

static void with_sudoers(struct agent_fixture *f)
{
    agent_write(f, "/etc/sudoers", "old");
    f->on_command = judge_file;
}

static void judge_left(struct agent_fixture *f)
{
    struct str content = agent_read(f, "/etc/sudoers");
    CHECK(str_eq(content, STR("old")) || str_eq(content, STR("good")));
}

static void judge_after(struct agent_fixture *f)
{
    CHECK_STR(agent_read(f, "/etc/sudoers"), "good");
    CHECK_STR(agent_read(f, "/etc/.sudoers.drydock"), "(none)");
}

TEST(validated_files_are_old_or_new_wherever_the_agent_is_killed)
{
    agent_kill_everywhere(VALIDATED("good"), with_sudoers, judge_left, judge_after);
}
