/* line, block, setting, sysctl, hostname and timezone: check, apply, verify, noop, restore, kills.
 */
#include <unistd.h>

#include "tests/lib/agent_fixture.h"

#define OTHER "resources: [{name: other, type: file, path: /other, content: x}]"

static void with_files(struct agent_fixture *f)
{
    agent_write(f, "/etc/hosts", "127.0.0.1 localhost\n192.0.2.1 registry\n");
    agent_write(f, "/etc/conf", "# comment\n[main]\na = 1\n");
    agent_write(f, "/etc/ssh/sshd_config", "Port 22\nMatch User bob\n  Port 1\n");
    agent_write(f, "/proc/sys/vm/swappiness", "60\n");
    agent_write(f, "/proc/sys/net/ipv4/tcp_rmem", "4096\t87380\t6291456\n");
    agent_write(f, "/proc/sys/kernel/hostname", "old\n");
    agent_write(f, "/etc/hostname", "old\n");
    agent_write(f, "/etc/timezone", "Etc/UTC\n");
    agent_write(f, "/usr/share/zoneinfo/Europe/Berlin", "TZif");
    CHECK_EQ(symlink("/usr/share/zoneinfo/Etc/UTC", agent_outside(f, "/etc/localtime")), 0);
    agent_mkdir(f, "/etc/sysctl.d");
}

#define META ", meta: {onRemove: Restore}}\n"
static const char everything[] =
    "resources:\n"
    "- {name: line, type: line, path: /etc/hosts, line: 192.0.2.7 registry, match: ' "
    "registry$'" META
    "- {name: block, type: block, path: /etc/hosts, marker: pool, content: 192.0.2.8 pool" META
    "- {name: ini, type: setting, path: /etc/conf, format: ini, section: main, key: a, value: "
    "2" META "- {name: new, type: setting, path: /etc/new, format: env, key: A, value: x y, "
    "create: true" META "- {name: sshd, type: setting, path: /etc/ssh/sshd_config, format: sshd, "
    "key: PermitRootLogin, value: 'no'" META
    "- {name: swappiness, type: sysctl, key: vm.swappiness, value: 10" META
    "- {name: rmem, type: sysctl, key: net/ipv4/tcp_rmem, value: 4096 87380 6291456" META
    "- {name: name, type: hostname, hostname: node-a" META
    "- {name: zone, type: timezone, zone: Europe/Berlin" META;

static void judge_after(struct agent_fixture *f)
{
    CHECK(converge_is_good(&f->converge));
    CHECK_STR(agent_read(f, "/etc/hosts"),
              "127.0.0.1 localhost\n192.0.2.7 registry\n# BEGIN drydock pool\n192.0.2.8 pool\n"
              "# END drydock pool\n");
    CHECK_STR(agent_read(f, "/etc/conf"), "# comment\n[main]\na = 2\n");
    CHECK_STR(agent_read(f, "/etc/new"), "A=\"x y\"\n");
    CHECK_STR(agent_read(f, "/etc/ssh/sshd_config"),
              "Port 22\nPermitRootLogin no\nMatch User bob\n  Port 1\n");
    CHECK_STR(agent_read(f, "/proc/sys/vm/swappiness"), "10");
    CHECK_STR(agent_read(f, "/proc/sys/net/ipv4/tcp_rmem"), "4096\t87380\t6291456\n");
    CHECK_STR(agent_read(f, "/etc/sysctl.d/90-drydock.conf"),
              "vm.swappiness = 10\nnet/ipv4/tcp_rmem = 4096 87380 6291456\n");
    CHECK_STR(agent_read(f, "/etc/hostname"), "node-a\n");
    CHECK_STR(agent_read(f, "/proc/sys/kernel/hostname"), "node-a");
    CHECK_STR(agent_link(f, "/etc/localtime"), "/usr/share/zoneinfo/Europe/Berlin");
    CHECK_STR(agent_read(f, "/etc/timezone"), "Europe/Berlin\n");
}

TEST(edits_converge_once_and_come_back)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    with_files(&f);
    struct str before = agent_tree(&f);
    agent_noop(&f, everything);
    CHECK_EQ(engine_count(&f.converge.engine).states[VERTEX_NOOP], 9);
    CHECK_STR(agent_tree(&f), before);
    agent_run(&f, everything);
    judge_after(&f);
    before = agent_tree(&f);
    agent_run(&f, everything);
    CHECK_EQ(engine_count(&f.converge.engine).changed, 0);
    CHECK_STR(agent_tree(&f), before);
    /* What others have added since stays. */
    agent_write(&f, "/etc/conf", "# comment\n[main]\na = 2\nb = 3\n");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/hosts"), "127.0.0.1 localhost\n192.0.2.1 registry\n");
    CHECK_STR(agent_read(&f, "/etc/conf"), "# comment\n[main]\na = 1\nb = 3\n");
    CHECK_STR(agent_read(&f, "/etc/new"), "(none)");
    CHECK_STR(agent_read(&f, "/etc/ssh/sshd_config"), "Port 22\nMatch User bob\n  Port 1\n");
    CHECK_STR(agent_read(&f, "/proc/sys/vm/swappiness"), "60");
    CHECK_STR(agent_read(&f, "/etc/sysctl.d/90-drydock.conf"), "(none)");
    CHECK_STR(agent_read(&f, "/etc/hostname"), "old\n");
    CHECK_STR(agent_read(&f, "/proc/sys/kernel/hostname"), "old");
    CHECK_STR(agent_link(&f, "/etc/localtime"), "/usr/share/zoneinfo/Etc/UTC");
    CHECK_STR(agent_read(&f, "/etc/timezone"), "Etc/UTC\n");
    agent_fixture_done(&f);
}

static bool is_one_of(struct str s, const char *a, const char *b)
{
    return str_eq(s, str_from(a)) || str_eq(s, str_from(b));
}

static void judge_left(struct agent_fixture *f)
{
    CHECK(is_one_of(agent_read(f, "/etc/conf"), "# comment\n[main]\na = 1\n",
                    "# comment\n[main]\na = 2\n"));
    CHECK(is_one_of(agent_read(f, "/etc/hostname"), "old\n", "node-a\n"));
    CHECK(is_one_of(agent_read(f, "/etc/timezone"), "Etc/UTC\n", "Europe/Berlin\n"));
    CHECK(is_one_of(agent_read(f, "/etc/new"), "(none)", "A=\"x y\"\n"));
    CHECK(is_one_of(agent_read(f, "/etc/ssh/sshd_config"), "Port 22\nMatch User bob\n  Port 1\n",
                    "Port 22\nPermitRootLogin no\nMatch User bob\n  Port 1\n"));
}

TEST(edits_are_old_or_new_wherever_the_agent_is_killed)
{
    agent_kill_everywhere(everything, with_files, judge_left, judge_after);
}

TEST(edits_name_what_is_wrong)
{
    static const struct {
        const char *resource;
        const char *said;
    } cases[] = {
        { "{name: a, type: line, path: /none, line: x}",
          "Failed: there is no file '/none'; 'create: true' makes it" },
        { "{name: a, type: line, path: /none, line: x, state: absent}", "Ok" },
        { "{name: a, type: line, path: /a}", "Failed: field 'line': found nothing, want the line" },
        { "{name: a, type: line, path: /a, line: \"x\\ny\"}",
          "Failed: field 'line': want one line, without its end" },
        { "{name: a, type: line, path: /a, line: x, match: q}",
          "Failed: field 'match': want it to match 'line', too" },
        { "{name: a, type: line, path: /a, line: x, position: After}",
          "Failed: field 'anchor': want it with the positions After and Before, and only then" },
        { "{name: a, type: line, path: /a, line: x, create: true, position: After, anchor: q}",
          "Failed: field 'anchor': no line matches" },
        { "{name: a, type: block, path: /a, marker: m}",
          "Failed: field 'content': want it, and with 'state: absent' want it not" },
        { "{name: a, type: setting, path: /a, format: toml, key: a, value: 1}",
          "Failed: field 'format': found 'toml', want one of ini, env, kv, sshd" },
        { "{name: a, type: setting, path: /a, format: kv, key: a}",
          "Failed: field 'value': want it, and with 'state: absent' want it not" },
        { "{name: a, type: setting, path: /a, format: kv, section: s, key: a, value: 1}",
          "Failed: field 'section': want it with 'format: ini' only" },
        { "{name: a, type: sysctl, key: vm.none, value: 1}",
          "Failed: this kernel has no 'vm.none'" },
        { "{name: a, type: sysctl, key: vm.none, value: 1, ignoreMissing: true}", "Ok" },
        { "{name: a, type: sysctl, key: ../../etc/passwd, value: 1}",
          "Failed: field 'key': found '../../etc/passwd', want a name such as vm.swappiness" },
        { "{name: a, type: sysctl, key: vm.swappiness, value: '>=many'}",
          "Failed: field 'value': found '>=many', want a number behind it" },
        { "{name: a, type: hostname, hostname: a_b}",
          "Failed: field 'hostname': found 'a_b', want 1 to 64 letters, digits, dots and dashes" },
        { "{name: a, type: timezone, zone: Europe/Berln}",
          "Failed: this machine knows no zone 'Europe/Berln'" },
        { "{name: a, type: timezone, zone: ../../etc}",
          "Failed: field 'zone': found '../../etc', want a name such as Europe/Berlin" },
    };
    struct agent_fixture f;
    agent_fixture_init(&f);
    with_files(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        agent_run(&f, arena_printf(&f.memory, "resources: [%s]", cases[i].resource).p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
    }
    check_case(-1);
    agent_fixture_done(&f);
}

TEST(sysctl_accepts_what_is_within_a_bound)
{
    static const struct {
        const char *value;
        const char *runtime;
    } cases[] = {
        { "'>=50'", "60\n" }, { "'>=60'", "60\n" }, { "'>=61'", "61" },
        { "'<=60'", "60\n" }, { "'<=59'", "59" },   { "60", "60\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent_fixture f;
        check_case((int64_t)i);
        agent_fixture_init(&f);
        with_files(&f);
        agent_run(&f, arena_printf(&f.memory,
                                   "resources: [{name: a, type: sysctl, key: vm.swappiness, "
                                   "value: %s, persist: false}]",
                                   cases[i].value)
                          .p);
        CHECK(converge_is_good(&f.converge));
        CHECK_STR(agent_read(&f, "/proc/sys/vm/swappiness"), cases[i].runtime);
        CHECK_STR(agent_read(&f, "/etc/sysctl.d/90-drydock.conf"), "(none)");
        agent_fixture_done(&f);
    }
    check_case(-1);
}

TEST(edits_keep_owner_and_mode_and_follow_links_of_root)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/run/resolv.conf", "nameserver 192.0.2.1\n");
    CHECK_EQ(chmod(agent_outside(&f, "/run/resolv.conf"), 0600), 0);
    agent_mkdir(&f, "/etc");
    CHECK_EQ(symlink("../run/resolv.conf", agent_outside(&f, "/etc/resolv.conf")), 0);
    agent_run(&f, "resources: [{name: a, type: line, path: /etc/resolv.conf, "
                  "line: options edns0}]");
    CHECK_STR(agent_read(&f, "/run/resolv.conf"), "nameserver 192.0.2.1\noptions edns0\n");
    CHECK_EQ(agent_mode(&f, "/run/resolv.conf"), 0600);
    CHECK_STR(agent_link(&f, "/etc/resolv.conf"), "../run/resolv.conf");
    agent_fixture_done(&f);
}
