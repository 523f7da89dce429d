/* kernelArg, reboot and assert: what is only noted, and what is only looked at. */
#include <unistd.h>

#include "tests/lib/agent_fixture.h"

#define OTHER "resources: [{name: other, type: file, path: /other, content: x}]"
#define MARK "*** System restart required ***\n"

/* ── kernelArg ─────────────────────────────────────────────────────────────────────────────── */

#define GRUB(words) "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"" words "\"\n"
#define MADE(words) "menuentry 'x' {\n\tlinux /vmlinuz root=/dev/a ro " words "\n}\n"

static void with_grub(struct agent_fixture *f)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/update-grub",
          .files = { { "/boot/grub/grub.cfg", MADE("quiet mitigations=off") } } },
        { 0 },
    };
    agent_write(f, "/usr/sbin/update-grub", "");
    agent_write(f, "/etc/default/grub", GRUB("quiet"));
    agent_write(f, "/boot/grub/grub.cfg", MADE("quiet"));
    agent_write(f, "/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/a ro quiet\n");
    f->plays = plays;
    f->on_command = agent_play;
}

static const char yaml[] = "resources: [{name: a, type: kernelArg, arg: mitigations, value: "
                           "'off', meta: {onRemove: Restore}}]";

TEST(kernel_arg_is_configured_made_and_waits_for_a_reboot)
{
    static const struct agent_play back[] = {
        { .words = "/usr/sbin/update-grub", .files = { { "/boot/grub/grub.cfg", MADE("quiet") } } },
        { 0 },
    };
    struct agent_fixture f;
    agent_fixture_init(&f);
    with_grub(&f);
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    f.rules.allowed = DISRUPTION_VISIT;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/default/grub"), GRUB("quiet mitigations=off"));
    CHECK_STR(agent_read(&f, "/run/reboot-required"), MARK);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_EQ(f.command_n, 1);
    /* The machine has been rebooted. */
    CHECK_EQ(unlink(agent_outside(&f, "/run/reboot-required")), 0);
    agent_write(&f, "/proc/cmdline", "root=/dev/a ro quiet mitigations=off\n");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_STR(agent_read(&f, "/run/reboot-required"), "(none)");
    f.plays = back;
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/default/grub"), "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=quiet\n");
    CHECK_STR(agent_read(&f, "/run/reboot-required"), MARK);
    agent_fixture_done(&f);
}

static void judge_nothing(struct agent_fixture *f UNUSED)
{
}

static void judge_arg(struct agent_fixture *f)
{
    CHECK(converge_is_good(&f->converge));
    CHECK_STR(agent_read(f, "/etc/default/grub"), GRUB("quiet mitigations=off"));
    CHECK_STR(agent_read(f, "/boot/grub/grub.cfg"), MADE("quiet mitigations=off"));
    CHECK_STR(agent_read(f, "/run/reboot-required"), MARK);
}

TEST(kernel_arg_is_everywhere_wherever_the_agent_is_killed)
{
    agent_kill_everywhere(yaml, with_grub, judge_nothing, judge_arg);
}

/* ── reboot ────────────────────────────────────────────────────────────────────────────────── */

TEST(reboot_is_noted_when_something_has_changed)
{
    static const char restart[] =
        "resources:\n"
        "- {name: conf, type: file, path: /conf, content: x, notifies: [restart]}\n"
        "- {name: restart, type: reboot}\n";
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_noop(&f, restart);
    CHECK_STR(agent_read(&f, "/run/reboot-required"), "(none)");
    agent_run(&f, restart);
    CHECK_STR(agent_said(&f, "restart"), "Ok, refreshed");
    CHECK_STR(agent_read(&f, "/run/reboot-required"), MARK);
    CHECK_EQ(unlink(agent_outside(&f, "/run/reboot-required")), 0);
    agent_run(&f, restart);
    CHECK_STR(agent_said(&f, "restart"), "Ok");
    CHECK_STR(agent_read(&f, "/run/reboot-required"), "(none)");
    agent_run(&f, "resources: [{name: a, type: reboot, state: required}]");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/run/reboot-required"), MARK);
    agent_fixture_done(&f);
}

/* ── assert ────────────────────────────────────────────────────────────────────────────────── */

static void play_script(struct agent_fixture *f, const struct command_spec *command,
                        struct command_result *ret)
{
    (void)f;
    CHECK_STR(command->argv[0], "/bin/sh");
    ret->exit_code = str_eq(command->input, STR("good")) ? 0 : 3;
    ret->out = STR("no disk\n");
}

static void play_unit(struct agent_fixture *f, const struct unit_request *request,
                      struct unit_reply *ret)
{
    (void)f;
    CHECK_EQ(request->verb, UNIT_LOOK); /* nothing else is ever asked for */
    *ret = (struct unit_reply){ .load = STR("loaded"),
                                .active = STR("active"),
                                .file = STR("enabled") };
}

TEST(assert_says_what_is_not_so_and_blocks_others)
{
    static const struct {
        const char *resource;
        const char *said;
    } cases[] = {
        { "file: {path: /etc/a, content: x}", "Ok" },
        { "file: {path: /etc/a, content: z}, message: we need z",
          "Failed: we need z: file:/etc/a: content is 'line 1: x', want 'line 1: z'" },
        { "file: {path: /etc/a, content: z}, meta: {sensitive: true}",
          "Failed: file:/etc/a: content differs" },
        { "file: {path: /etc/none, state: absent}", "Ok" },
        { "sysctl: {key: vm.swappiness, value: '<=60'}", "Ok" },
        { "sysctl: {key: vm.swappiness, value: 10}",
          "Failed: sysctl:vm/swappiness: runtime is '60', want '10'" },
        { "sysctl: {key: vm.none, value: 10}", "Failed: this kernel has no 'vm.none'" },
        { "kernelModule: {module: overlay, state: unloaded}", "Ok" },
        { "package: {package: chrony}", "Ok" },
        { "package: {package: chrony, version: '5'}",
          "Failed: package:chrony: package is 'chrony 4.3', want 'chrony 5'" },
        { "service: {unit: chrony}", "Ok" },
        { "service: {unit: chrony, enabled: false}",
          "Failed: service:chrony.service: enabled is 'enabled', want 'false'" },
        { "file: {path: /etc/a}, service: {unit: chrony}, exec: good", "Ok" },
        { "service: {unit: chrony}, exec: bad", "Failed: '/bin/sh' failed (exit code 3): no disk" },
        { "exec: good", "Ok" },
        { "exec: bad, message: disks", "Failed: disks: '/bin/sh' failed (exit code 3): no disk" },
        { "file: {path: /etc/a}, exec: bad", "Failed: '/bin/sh' failed (exit code 3): no disk" },
        { "file: {path: /etc/a, contnt: x}",
          "Failed: field 'file': unknown field 'contnt', did you mean 'content'?" },
        { "file: [a]", "Failed: field 'file': found a list, want an object" },
        { "message: x", "Failed: want at least one of 'file', 'sysctl', 'kernelModule', 'package', "
                        "'service' and 'exec'" },
    };
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "x");
    agent_write(&f, "/proc/sys/vm/swappiness", "60\n");
    agent_write(&f, "/proc/modules", "");
    agent_write(&f, "/var/lib/dpkg/status",
                "Package: chrony\nStatus: install ok installed\nVersion: 4.3\n");
    f.on_command = play_script;
    f.on_unit = play_unit;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct str before = agent_tree(&f);
        agent_run(&f, arena_printf(&f.memory, "resources: [{name: a, type: assert, %s}]",
                                   cases[i].resource)
                          .p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
        CHECK_STR(agent_tree(&f), before);
    }
    check_case(-1);
    agent_run(&f, "resources:\n- {name: a, type: assert, exec: bad}\n"
                  "- {name: b, type: file, path: /b, content: x, requires: [a]}\n");
    CHECK_STR(agent_vertex(&f, "a")->reason, "NotMet");
    CHECK_STR(agent_said(&f, "b"), "Blocked: waits for 'a', which is Failed");
    CHECK_STR(agent_read(&f, "/b"), "(none)");
    /* It is looked at after whatever makes it so. */
    agent_run(&f, "resources:\n- {name: a, type: assert, file: {path: /b, content: x}}\n"
                  "- {name: b, type: file, path: /b, content: x}\n");
    CHECK_STR(agent_said(&f, "a"), "Ok");
    agent_fixture_done(&f);
}

TEST(boot_types_name_what_is_wrong)
{
    static const struct {
        const char *resource;
        const char *said;
    } cases[] = {
        { "{name: a, type: kernelArg, arg: 'a b'}",
          "Failed: field 'arg': found 'a b', want a name such as mitigations" },
        { "{name: a, type: kernelArg, arg: a, value: '$(reboot)'}",
          "Failed: field 'value': want letters, digits and _-.,:;/@+%=*, and with 'state: absent' "
          "none" },
        { "{name: a, type: kernelArg, arg: mitigations, value: off}",
          "Failed: field 'value': found a boolean, want text or a number; on, off, yes and no in "
          "quotes" },
        { "{name: a, type: kernelArg, arg: a}",
          "Failed: there is no /etc/default/grub; other boot loaders are not served" },
    };
    struct agent_fixture f;
    agent_fixture_init(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        agent_run(&f, arena_printf(&f.memory, "resources: [%s]", cases[i].resource).p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
    }
    check_case(-1);
    agent_fixture_done(&f);
}
