/* user, group and sshKey: which tools of the machine are run, and what comes back. */
#include <unistd.h>

#include "tests/lib/agent_fixture.h"

#define OTHER "resources: [{name: other, type: file, path: /other, content: x}]"
#define ROOT_USER "root:x:0:0:root:/root:/bin/sh\n"
#define BOB "bob:x:1000:1000:Bob:/home/bob:/bin/sh\n"

static void machine(struct agent_fixture *f, const char *passwd, const char *group,
                    const char *shadow)
{
    agent_fixture_init(f);
    agent_write(f, "/etc/passwd", passwd);
    agent_write(f, "/etc/group", group);
    agent_write(f, "/etc/shadow", shadow);
    f->on_command = agent_play;
}

/* ── group ─────────────────────────────────────────────────────────────────────────────────── */

TEST(group_is_made_filled_and_taken_back)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/groupadd -r -g 200 storage",
          .files = { { "/etc/group", "root:x:0:\nstorage:x:200:\n" } } },
        { .words = "/usr/bin/gpasswd -a bob storage",
          .files = { { "/etc/group", "root:x:0:\nstorage:x:200:bob\n" } } },
        { .words = "/usr/sbin/groupdel storage", .files = { { "/etc/group", "root:x:0:\n" } } },
        { 0 },
    };
    static const char yaml[] = "resources: [{name: a, type: group, group: storage, gid: 200, "
                               "members: [bob], system: true, meta: {onRemove: Restore}}]";
    struct agent_fixture f;
    machine(&f, ROOT_USER BOB, "root:x:0:\n", "");
    f.plays = plays;
    agent_noop(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Noop");
    CHECK_EQ(f.command_n, 0);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_EQ(f.command_n, 2);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_EQ(f.command_n, 2);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 3);
    CHECK_STR(agent_read(&f, "/etc/group"), "root:x:0:\n");
    agent_fixture_done(&f);
}

TEST(group_that_was_there_keeps_what_others_did)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/groupmod -g 201 storage",
          .files = { { "/etc/group", "storage:x:201:eve\n" } } },
        { .words = "/usr/bin/gpasswd -a bob storage",
          .files = { { "/etc/group", "storage:x:201:eve,bob\n" } } },
        { .words = "/usr/sbin/groupmod -g 200 storage",
          .files = { { "/etc/group", "storage:x:200:eve,bob,new\n" } } },
        { .words = "/usr/bin/gpasswd -d bob storage",
          .files = { { "/etc/group", "storage:x:200:eve,new\n" } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f, ROOT_USER BOB, "storage:x:200:eve\n", "");
    f.plays = plays;
    agent_run(&f, "resources: [{name: a, type: group, group: storage, gid: 201, "
                  "members: [eve, bob], meta: {onRemove: Restore}}]");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_write(&f, "/etc/group", "storage:x:201:eve,bob,new\n");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/group"), "storage:x:200:eve,new\n");
    agent_fixture_done(&f);
}

TEST(group_that_is_removed_comes_back_with_its_members)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/groupdel storage", .files = { { "/etc/group", "" } } },
        { .words = "/usr/sbin/groupadd -g 200 storage",
          .files = { { "/etc/group", "storage:x:200:\n" } } },
        { .words = "/usr/bin/gpasswd -a bob storage",
          .files = { { "/etc/group", "storage:x:200:bob\n" } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f, ROOT_USER BOB, "storage:x:200:bob\n", "");
    f.plays = plays;
    agent_run(&f, "resources: [{name: a, type: group, group: storage, state: absent, "
                  "meta: {onRemove: Restore}}]");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/group"), "storage:x:200:bob\n");
    agent_fixture_done(&f);
}

TEST(accounts_tools_that_fail_or_do_nothing_are_told)
{
    static const struct agent_play fails[] = {
        { .words = "/usr/sbin/groupadd -g 200 storage",
          .exit_code = 4,
          .out = "groupadd: GID '200' already exists\n" },
        { 0 },
    };
    static const struct agent_play idle[] = { { .words = "/usr/sbin/groupadd -g 200 storage" },
                                              { 0 } };
    static const char yaml[] = "resources: [{name: a, type: group, group: storage, gid: 200}]";
    struct agent_fixture f;
    machine(&f, ROOT_USER, "other:x:200:\n", "");
    f.plays = fails;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Failed: '/usr/sbin/groupadd' failed (exit code 4): groupadd: "
                                   "GID '200' already exists");
    f.plays = idle;
    f.command_n = 0;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Failed: state is still 'absent', want 'present'");
    CHECK_EQ(f.command_n, 1);
    agent_fixture_done(&f);
}

/* ── user ──────────────────────────────────────────────────────────────────────────────────── */

TEST(user_is_made_after_its_groups_and_taken_back)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/groupadd storage",
          .files = { { "/etc/group", "root:x:0:\nstorage:x:200:\n" } } },
        { .words = "/usr/sbin/useradd -m -u 2001 -s /bin/sh -c Backup, daily -G storage backup",
          .files = { { "/etc/passwd",
                       ROOT_USER "backup:x:2001:2001:Backup, daily:/home/backup:/bin/sh\n" },
                     { "/etc/group", "root:x:0:\nstorage:x:200:backup\nbackup:x:2001:\n" },
                     { "/etc/shadow", "backup:!:19000:0:99999:7:::\n" } } },
        { .words = "/usr/sbin/userdel backup", .files = { { "/etc/passwd", ROOT_USER } } },
        { .words = "/usr/sbin/groupdel storage", .files = { { "/etc/group", "root:x:0:\n" } } },
        { 0 },
    };
    /* The group stands behind; who is in it says that it comes first. */
    static const char yaml[] =
        "resources:\n"
        "- {name: user, type: user, user: backup, uid: 2001, shell: /bin/sh, comment: 'Backup, "
        "daily', groups: [storage], locked: true, meta: {onRemove: Restore}}\n"
        "- {name: group, type: group, group: storage, meta: {onRemove: Restore}}\n";
    struct agent_fixture f;
    machine(&f, ROOT_USER, "root:x:0:\n", "");
    f.plays = plays;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "group"), "Ok, changed");
    CHECK_STR(agent_said(&f, "user"), "Ok, changed");
    agent_run(&f, yaml);
    CHECK_EQ(engine_count(&f.converge.engine).changed, 0);
    CHECK_EQ(f.command_n, 2);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/passwd"), ROOT_USER);
    agent_fixture_done(&f);
}

TEST(user_is_changed_by_one_usermod_and_changed_back)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/usermod -g 50 -s /bin/false -a -G storage -L bob",
          .files = { { "/etc/passwd", ROOT_USER "bob:x:1000:50:Bob:/home/bob:/bin/false\n" },
                     { "/etc/group", "staff:x:50:\nstorage:x:200:bob\nold:x:201:bob\n" },
                     { "/etc/shadow", "bob:!$y$x:1::::::\n" } } },
        { .words = "/usr/bin/gpasswd -d bob old",
          .files = { { "/etc/group", "staff:x:50:\nstorage:x:200:bob\nold:x:201:\n" } } },
        { .words = "/usr/sbin/usermod -g 1000 -s /bin/sh -a -G old -U bob",
          .files = { { "/etc/passwd", ROOT_USER BOB },
                     { "/etc/group", "staff:x:50:\nstorage:x:200:bob\nold:x:201:bob\n" },
                     { "/etc/shadow", "bob:$y$x:1::::::\n" } } },
        { .words = "/usr/bin/gpasswd -d bob storage",
          .files = { { "/etc/group", "staff:x:50:\nstorage:x:200:\nold:x:201:bob\n" } } },
        { 0 },
    };
    static const char yaml[] =
        "resources: [{name: a, type: user, user: bob, uid: 1000, group: staff, groups: [storage], "
        "exclusive: true, shell: /bin/false, locked: true, meta: {onRemove: Restore}}]";
    struct agent_fixture f;
    machine(&f, ROOT_USER BOB, "staff:x:50:\nstorage:x:200:\nold:x:201:bob\n",
            "bob:$y$x:1::::::\n");
    f.plays = plays;
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_run(&f, yaml);
    CHECK_EQ(f.command_n, 2);
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 4);
    CHECK_STR(agent_read(&f, "/etc/passwd"), ROOT_USER BOB);
    CHECK_STR(agent_read(&f, "/etc/group"), "staff:x:50:\nstorage:x:200:\nold:x:201:bob\n");
    agent_fixture_done(&f);
}

TEST(user_that_is_removed_comes_back_with_its_password)
{
    static const struct agent_play plays[] = {
        { .words = "/usr/sbin/userdel bob",
          .files = { { "/etc/passwd", ROOT_USER },
                     { "/etc/group", "bob:x:1000:\nold:x:201:\n" },
                     { "/etc/shadow", "" } } },
        { .words = "/usr/sbin/useradd -m -u 1000 -g 1000 -d /home/bob -s /bin/sh -c Bob -G old bob",
          .files = { { "/etc/passwd", ROOT_USER BOB },
                     { "/etc/group", "bob:x:1000:\nold:x:201:bob\n" },
                     { "/etc/shadow", "bob:!:1::::::\n" } } },
        { .words = "/usr/sbin/chpasswd -e", .files = { { "/etc/shadow", "bob:$y$x:1::::::\n" } } },
        { 0 },
    };
    struct agent_fixture f;
    machine(&f, ROOT_USER BOB, "bob:x:1000:\nold:x:201:bob\n", "bob:$y$x:1::::::\n");
    f.plays = plays;
    agent_run(&f, "resources: [{name: a, type: user, user: bob, state: absent, "
                  "meta: {onRemove: Restore}}]");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_EQ(f.command_n, 3);
    CHECK_STR(f.command_input, "bob:$y$x\n");
    agent_fixture_done(&f);
}

TEST(accounts_name_what_is_wrong)
{
    static const struct {
        const char *resource;
        const char *said;
    } cases[] = {
        { "{name: a, type: group, group: -x}",
          "Failed: field 'group': found '-x', want 1 to 32 of a-z, 0-9, '_' and '-', not digits "
          "alone" },
        { "{name: a, type: group, group: x, gid: -1}",
          "Failed: field 'gid': found -1, want 0 to 4294967293" },
        { "{name: a, type: group, group: x, gid: 1, state: absent}",
          "Failed: field 'state': found 'absent' beside 'gid' or 'members'" },
        { "{name: a, type: group, group: x, members: [a b]}",
          "Failed: field 'members': found 'a b', want 1 to 32 of a-z, 0-9, '_' and '-', not digits "
          "alone" },
        { "{name: a, type: user, user: Bob}",
          "Failed: field 'user': found 'Bob', want 1 to 32 of a-z, 0-9, '_' and '-', not digits "
          "alone" },
        { "{name: a, type: user, user: bob, uid: -5}",
          "Failed: field 'uid': found '-5', want 0 to 4294967293" },
        { "{name: a, type: user, user: bob, comment: 'a:b'}",
          "Failed: field 'comment': want it on one line and without ':'" },
        { "{name: a, type: user, user: bob, group: none}",
          "Failed: field 'group': there is no 'none' in /etc/group" },
        { "{name: a, type: user, user: bob, shell: /bin/sh, state: absent}",
          "Failed: field 'state': found 'absent' beside 'shell'" },
        { "{name: a, type: user, user: none, state: absent}", "Ok" },
        { "{name: a, type: sshKey, user: bob, key: ssh-ed25519 AAAA}",
          "Failed: field 'key': found 'ssh-ed25519 AAAA', want one line as ssh-keygen prints it: "
          "the type, the key in base64, perhaps a comment" },
    };
    struct agent_fixture f;
    machine(&f, ROOT_USER BOB, "root:x:0:\n", "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        agent_run(&f, arena_printf(&f.memory, "resources: [%s]", cases[i].resource).p);
        CHECK_STR(agent_said(&f, "a"), cases[i].said);
    }
    check_case(-1);
    agent_fixture_done(&f);
}

/* ── sshKey ────────────────────────────────────────────────────────────────────────────────── */

#define KEY "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0mJmZp0gq2zkPpB8jYk0mVr8pH7o3E8r2M0w1c5x7Q"
#define OTHER_KEY                                                                                  \
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA other"
#define SSH_KEY(more)                                                                              \
    "resources: [{name: a, type: sshKey, user: me, key: " KEY " me" more                           \
    ", meta: {onRemove: Restore}}]"

/* An account of whoever runs the test, or of another one if that is root. */
static uint32_t account_of_test(void)
{
    return geteuid() == 0 ? 4242 : geteuid();
}

static void with_home(struct agent_fixture *f)
{
    uint32_t uid = account_of_test();
    agent_write(f, "/etc/passwd",
                arena_printf(&f->memory, ROOT_USER "me:x:%u:%u::/home/me:/bin/sh\n", uid,
                             geteuid() == 0 ? uid : getegid())
                    .p);
    agent_mkdir(f, "/home/me");
    CHECK_EQ(chown(agent_outside(f, "/home/me"), uid, (gid_t)-1), 0);
}

static uint32_t owner_of(struct agent_fixture *f, const char *path)
{
    struct stat st;
    CHECK_EQ(lstat(agent_outside(f, path), &st), 0);
    return st.st_uid;
}

static void judge_key(struct agent_fixture *f)
{
    CHECK_STR(agent_said(f, "a"), agent_vertex(f, "a")->changed ? "Ok, changed" : "Ok");
    CHECK_STR(agent_read(f, "/home/me/.ssh/authorized_keys"), "restrict " KEY " me\n");
    CHECK_EQ(agent_mode(f, "/home/me/.ssh"), 0700);
    CHECK_EQ(agent_mode(f, "/home/me/.ssh/authorized_keys"), 0600);
    CHECK_EQ(owner_of(f, "/home/me/.ssh"), account_of_test());
    CHECK_EQ(owner_of(f, "/home/me/.ssh/authorized_keys"), account_of_test());
}

static void judge_nothing(struct agent_fixture *f UNUSED)
{
}

TEST(ssh_key_is_the_accounts_wherever_the_agent_is_killed)
{
    agent_kill_everywhere(SSH_KEY(", options: restrict"), with_home, judge_nothing, judge_key);
}

TEST(ssh_key_goes_and_what_it_displaced_comes_back)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    with_home(&f);
    agent_write(&f, "/home/me/.ssh/authorized_keys", "# mine\n" OTHER_KEY "\n");
    CHECK_EQ(chown(agent_outside(&f, "/home/me/.ssh"), account_of_test(), (gid_t)-1), 0);
    agent_run(&f, SSH_KEY(", exclusive: true"));
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/home/me/.ssh/authorized_keys"), "# mine\n" KEY " me\n");
    agent_run(&f, OTHER);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/home/me/.ssh/authorized_keys"), "# mine\n" OTHER_KEY "\n");
    agent_fixture_done(&f);
}

TEST(ssh_key_follows_nothing_that_the_account_has_made)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    with_home(&f);
    agent_write(&f, "/root/.ssh/authorized_keys", "secret\n");
    CHECK_EQ(symlink("/root/.ssh", agent_outside(&f, "/home/me/.ssh")), 0);
    CHECK_EQ(lchown(agent_outside(&f, "/home/me/.ssh"), account_of_test(), (gid_t)-1), 0);
    if (geteuid() == 0) {
        agent_run(&f, SSH_KEY(""));
        CHECK_STR(agent_said(&f, "a"),
                  "Failed: path '/home/me/.ssh/authorized_keys': the link '.ssh' belongs to user "
                  "4242, want root");
    }
    CHECK_EQ(unlink(agent_outside(&f, "/home/me/.ssh")), 0);
    agent_mkdir(&f, "/home/me/.ssh");
    CHECK_EQ(chown(agent_outside(&f, "/home/me/.ssh"), account_of_test(), (gid_t)-1), 0);
    CHECK_EQ(link(agent_outside(&f, "/root/.ssh/authorized_keys"),
                  agent_outside(&f, "/home/me/.ssh/authorized_keys")),
             0);
    agent_run(&f, SSH_KEY(""));
    CHECK_STR(agent_said(&f, "a"), "Failed: '/home/me/.ssh/authorized_keys' is a link, has a "
                                   "second name or belongs to somebody else");
    CHECK_STR(agent_read(&f, "/root/.ssh/authorized_keys"), "secret\n");
    agent_fixture_done(&f);
}

TEST(ssh_key_of_nobody_is_told)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/passwd", ROOT_USER);
    agent_run(&f, SSH_KEY(""));
    CHECK_STR(agent_said(&f, "a"), "Failed: field 'user': there is no 'me' in /etc/passwd");
    agent_run(&f, SSH_KEY(", state: absent"));
    CHECK_STR(agent_said(&f, "a"), "Ok");
    agent_fixture_done(&f);
}
