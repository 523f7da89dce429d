/* kernelModule, swap and mount: the running kernel and the files of the next start. */
#include <unistd.h>

#include "tests/lib/agent_fixture.h"

#define OTHER "resources: [{name: other, type: file, path: /other, content: x}]"

static void machine(struct agent_fixture *f)
{
    static const char *const tools[] = { "/usr/sbin/modprobe", "/usr/sbin/swapon",
                                         "/usr/sbin/swapoff" };
    agent_fixture_init(f);
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        agent_write(f, tools[i], "");
    }
    agent_write(f, "/proc/modules", "");
    agent_write(f, "/proc/sys/kernel/osrelease", "6.1.0\n");
    agent_write(f, "/lib/modules/6.1.0/modules.builtin", "kernel/fs/ext4/ext4.ko\n");
    agent_write(f, "/proc/swaps", "Filename Type\n");
    agent_write(f, "/proc/1/mountinfo", "22 1 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n");
    f->on_command = agent_play;
}

/* ── kernelModule ──────────────────────────────────────────────────────────────────────────── */

#define NETFILTER "br_netfilter 32768 0 - Live 0x0\n"

TEST(kernel_module_is_loaded_before_its_sysctls_and_unloaded_again)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/modprobe br_netfilter a=1 b=2",
          .files = { { "/proc/modules", NETFILTER },
                     { "/proc/sys/net/bridge/bridge-nf-call-iptables", "0\n" } } },
        { .words = "/usr/sbin/modprobe -r br_netfilter", .files = { { "/proc/modules", "" } } },
        { 0 },
    };
    static const char yaml[] =
        "resources:\n"
        "- {name: call, type: sysctl, key: net.bridge.bridge-nf-call-iptables, value: 1, persist: "
        "false}\n"
        "- {name: module, type: kernelModule, module: br_netfilter, options: a=1  b=2, meta: "
        "{onRemove: Restore}}\n";
    struct agent_fixture f;
    machine(&f);
    f.plays = plays;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "module"), "Ok, changed");
    CHECK_STR(agent_said(&f, "call"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/modules-load.d/drydock-br_netfilter.conf"), "br_netfilter\n");
    CHECK_STR(agent_read(&f, "/etc/modprobe.d/drydock-br_netfilter.conf"),
              "options br_netfilter a=1  b=2\n");
    agent_run(&f, yaml);
    CHECK_EQ(engine_count(&f.converge.engine).changed, 0);
    CHECK_EQ(f.command_n, 1);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 2);
    CHECK_STR(agent_read(&f, "/etc/modules-load.d/drydock-br_netfilter.conf"), "(none)");
    CHECK_STR(agent_read(&f, "/etc/modprobe.d/drydock-br_netfilter.conf"), "(none)");
    agent_fixture_done(&f);
}

TEST(kernel_module_that_is_used_stays_loaded_when_it_is_taken_off)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/modprobe bridge",
          .files = { { "/proc/modules", "bridge 311296 1 br_netfilter, Live 0x0\n" } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f);
    f.plays = plays;
    agent_run(&f, "resources: [{name: a, type: kernelModule, module: bridge, "
                  "meta: {onRemove: Restore}}]");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 1);
    agent_fixture_done(&f);
}

TEST(kernel_module_is_blocked_in_a_window)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/modprobe -r br_netfilter", .files = { { "/proc/modules", "" } } },
        { .words = "/usr/sbin/modprobe br_netfilter", .files = { { "/proc/modules", NETFILTER } } },
        { 0 },
    };
    static const char yaml[] = "resources: [{name: a, type: kernelModule, module: br_netfilter, "
                               "state: blocked, meta: {onRemove: Restore}}]";
    struct agent_fixture f;
    machine(&f);
    agent_write(&f, "/proc/modules", NETFILTER);
    f.plays = plays;
    f.rules.allowed = DISRUPTION_NONE;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/modprobe.d/drydock-br_netfilter.conf"),
              "blacklist br_netfilter\ninstall br_netfilter /bin/false\n");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/proc/modules"), NETFILTER);
    agent_fixture_done(&f);
}

static void with_module(struct agent_fixture *f)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/modprobe overlay",
          .files = { { "/proc/modules", "overlay 1 0 - Live 0x0\n" } } },
        { 0 },
    };
    agent_write(f, "/usr/sbin/modprobe", "");
    agent_write(f, "/proc/modules", "");
    f->plays = plays;
    f->on_command = agent_play;
}

static void judge_nothing(struct agent_fixture *f UNUSED)
{
}

static void judge_module(struct agent_fixture *f)
{
    CHECK(converge_is_good(&f->converge));
    CHECK_STR(agent_read(f, "/etc/modules-load.d/drydock-overlay.conf"), "overlay\n");
    CHECK_STR(agent_read(f, "/proc/modules"), "overlay 1 0 - Live 0x0\n");
}

TEST(kernel_module_is_loaded_wherever_the_agent_is_killed)
{
    agent_kill_everywhere("resources: [{name: a, type: kernelModule, module: overlay}]",
                          with_module, judge_nothing, judge_module);
}

/* ── swap ──────────────────────────────────────────────────────────────────────────────────── */

#define FSTAB "# a\nUUID=1 / ext4 defaults 0 1\n/dev/sdb2 none swap sw,pri=5 0 0\n"

TEST(swap_is_all_off_and_comes_back)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/swapoff -a", .files = { { "/proc/swaps", "Filename Type\n" } } },
        { .words = "/usr/sbin/swapon /dev/sdb2",
          .files = { { "/proc/swaps", "Filename Type\n/dev/sdb2 partition\n" } } },
        { .words = "/usr/sbin/swapon /swap file",
          .files = { { "/proc/swaps",
                       "Filename Type\n/dev/sdb2 partition\n/swap\\040file file\n" } } },
        { 0 },
    };
    static const char yaml[] =
        "resources: [{name: a, type: swap, state: allOff, meta: {onRemove: Restore}}]";
    struct agent_fixture f;
    machine(&f);
    agent_write(&f, "/etc/fstab", FSTAB);
    agent_write(&f, "/proc/swaps", "Filename Type\n/dev/sdb2 partition\n/swap\\040file file\n");
    f.plays = plays;
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    f.rules.allowed = DISRUPTION_VISIT;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/fstab"), "# a\nUUID=1 / ext4 defaults 0 1\n");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_EQ(f.command_n, 1);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 3);
    CHECK_STR(agent_read(&f, "/etc/fstab"), FSTAB);
    agent_fixture_done(&f);
}

TEST(swap_is_on_under_another_name)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/swapon /swap/file",
          .files = { { "/proc/swaps", "Filename Type\n/data/file file\n" } } },
        { .words = "/usr/sbin/swapoff /swap/file",
          .files = { { "/proc/swaps", "Filename Type\n" } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f);
    agent_write(&f, "/data/file", "");
    agent_mkdir(&f, "/etc");
    CHECK_EQ(symlink("data", agent_outside(&f, "/swap")), 0);
    f.plays = plays;
    agent_run(&f, "resources: [{name: a, type: swap, path: /swap/file, state: on, "
                  "meta: {onRemove: Restore}}]");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/fstab"), "/swap/file none swap sw 0 0\n");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/fstab"), "(none)");
    CHECK_STR(agent_read(&f, "/proc/swaps"), "Filename Type\n");
    agent_fixture_done(&f);
}

/* ── mount ─────────────────────────────────────────────────────────────────────────────────── */

#define ROOT_MOUNT "22 1 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n"
#define DATA(options, device)                                                                      \
    ROOT_MOUNT "40 22 8:1 / /srv/data " options " shared:2 - xfs " device " rw\n"

#define MOUNT(more)                                                                                \
    "resources: [{name: a, type: mount, path: /srv/data" more ", meta: {onRemove: Restore}}]"

TEST(mount_is_mounted_and_unmounted_again)
{
    static const struct agent_play plays[] = {
        { .words = "/bin/mount -t xfs -o noatime,nodev LABEL=data /srv/data",
          .files = { { "/proc/1/mountinfo", DATA("rw,nodev,noatime", "/dev/sdb1") } } },
        { .words = "/bin/umount /srv/data", .files = { { "/proc/1/mountinfo", ROOT_MOUNT } } },
        { 0 },
    };
    static const char yaml[] =
        MOUNT(", device: LABEL=data, fsType: xfs, options: [noatime, nodev]");
    struct agent_fixture f;
    machine(&f);
    agent_write(&f, "/etc/fstab", FSTAB);
    agent_mkdir(&f, "/dev/disk/by-label");
    agent_write(&f, "/dev/sdb1", "");
    CHECK_EQ(symlink("../../sdb1", agent_outside(&f, "/dev/disk/by-label/data")), 0);
    f.plays = plays;
    f.rules.allowed = DISRUPTION_NONE;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_EQ(agent_mode(&f, "/srv/data"), 0755);
    CHECK_STR(agent_read(&f, "/etc/fstab"), FSTAB "LABEL=data /srv/data xfs noatime,nodev 0 0\n");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_EQ(f.command_n, 1);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/fstab"), FSTAB);
    CHECK_STR(agent_read(&f, "/proc/1/mountinfo"), ROOT_MOUNT);
    agent_fixture_done(&f);
}

TEST(mount_of_something_else_is_replaced_while_the_node_is_out_of_service)
{
    static const struct agent_play plays[] = {
        { .words = "/bin/umount /srv/data", .files = { { "/proc/1/mountinfo", ROOT_MOUNT } } },
        { .words = "/bin/mount -t xfs -o ro /dev/sdc1 /srv/data",
          .files = { { "/proc/1/mountinfo", DATA("ro", "/dev/sdc1") } } },
        { .words = "/bin/mount -t xfs -o rw /dev/sdb1 /srv/data",
          .files = { { "/proc/1/mountinfo", DATA("rw", "/dev/sdb1") } } },
        { 0 },
    };
    static const char yaml[] =
        MOUNT(", device: /dev/sdc1, fsType: xfs, options: [ro], persist: none");
    struct agent_fixture f;
    machine(&f);
    agent_write(&f, "/proc/1/mountinfo", DATA("rw", "/dev/sdb1"));
    agent_mkdir(&f, "/srv/data");
    f.plays = plays;
    f.rules.allowed = DISRUPTION_WINDOW;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Deferred");
    f.rules.allowed = DISRUPTION_VISIT;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/fstab"), "(none)");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/proc/1/mountinfo"), DATA("rw", "/dev/sdb1"));
    agent_fixture_done(&f);
}

TEST(mount_is_remounted_for_an_option_that_can_be_seen)
{
    static const struct agent_play plays[] = {
        { .words = "/bin/mount -o remount,ro,x-any=1 /srv/data",
          .files = { { "/proc/1/mountinfo", DATA("ro", "/dev/sdb1") } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f);
    agent_write(&f, "/proc/1/mountinfo", DATA("rw", "/dev/sdb1"));
    agent_mkdir(&f, "/srv/data");
    agent_mkdir(&f, "/etc");
    f.plays = plays;
    agent_run(&f, MOUNT(", device: /dev/sdb1, fsType: xfs, options: [ro, x-any=1]"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_EQ(f.command_n, 1);
    agent_fixture_done(&f);
}

TEST(mount_is_absent_now_and_after_the_next_start)
{
    static const struct agent_play plays[] = {
        { .words = "/bin/umount -l /srv/data", .files = { { "/proc/1/mountinfo", ROOT_MOUNT } } },
        { .words = "/bin/mount -t xfs -o rw /dev/sdb1 /srv/data",
          .files = { { "/proc/1/mountinfo", DATA("rw", "/dev/sdb1") } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f);
    agent_write(&f, "/proc/1/mountinfo", DATA("rw", "/dev/sdb1"));
    agent_write(&f, "/etc/fstab", FSTAB "/dev/sdb1 /srv/data xfs nofail 0 2 # ours\n");
    f.plays = plays;
    agent_run(&f, MOUNT(", state: absent, lazy: true"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/fstab"), FSTAB);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/fstab"), FSTAB "/dev/sdb1 /srv/data xfs nofail 0 2 # ours\n");
    CHECK_STR(agent_read(&f, "/proc/1/mountinfo"), DATA("rw", "/dev/sdb1"));
    agent_fixture_done(&f);
}

TEST(kernel_types_name_what_is_wrong)
{
    static const struct {
        const char *resource;
        const char *said;
    } cases[] = {
        { "{name: a, type: kernelModule, module: ../x}",
          "Failed: field 'module': found '../x', want a name such as br_netfilter" },
        { "{name: a, type: kernelModule, module: ext4, state: unloaded}",
          "Failed: 'ext4' is a part of this kernel and cannot go" },
        { "{name: a, type: kernelModule, module: ext4, persist: false}", "Ok" },
        { "{name: a, type: kernelModule, module: x, state: blocked, persist: false}",
          "Failed: field 'persist': want true with 'state: blocked'" },
        { "{name: a, type: kernelModule, module: x, options: \"a\\nb\"}",
          "Failed: field 'options': want one line of NAME=value, with 'state: loaded'" },
        { "{name: a, type: swap}",
          "Failed: field 'path': want it, and with 'state: allOff' want it not" },
        { "{name: a, type: swap, state: allOff}", "Ok" },
        { "{name: a, type: swap, path: /x, state: off}", "Ok" },
        { "{name: a, type: swap, path: /x, state: 'off'}", "Ok" },
        { "{name: a, type: mount, path: /srv/x, state: off}",
          "Failed: field 'state': found a boolean, want one of mounted, present, unmounted, "
          "absent" },
        { "{name: a, type: mount, path: /srv/x}",
          "Failed: fields 'device' and 'fsType': want both with 'state: mounted'" },
        { "{name: a, type: mount, path: /srv/x, device: a, fsType: xfs, state: present, persist: "
          "none}",
          "Failed: field 'persist': want fstab with 'state: present'" },
        { "{name: a, type: mount, path: /srv/x, device: a, fsType: xfs, options: [-o]}",
          "Failed: field 'options': found '-o', want a word" },
        { "{name: a, type: mount, path: /srv/x, state: unmounted}", "Ok" },
    };
    struct agent_fixture f;
    machine(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        agent_run(&f, arena_printf(&f.memory, "resources: [%s]", cases[i].resource).p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
    }
    check_case(-1);
    agent_fixture_done(&f);
}
