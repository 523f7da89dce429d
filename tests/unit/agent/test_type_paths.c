/* file, directory and symlink: check, apply, verify, noop, restore, kills. */
#include <fcntl.h>
#include <unistd.h>

#include "tests/lib/agent_fixture.h"

TEST(file_is_made_with_content_owner_and_mode)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/etc");
    static const char yaml[] =
        "resources: [{name: a, type: file, path: /etc/a, content: \"hi\\n\", mode: '0640'}]";
    struct str before = agent_tree(&f);
    agent_noop(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Noop");
    CHECK_STR(agent_tree(&f), before);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/etc/a"), "hi\n");
    CHECK_EQ(agent_mode(&f, "/etc/a"), 0640);
    before = agent_tree(&f);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    CHECK_STR(agent_tree(&f), before);
    agent_fixture_done(&f);
}

TEST(file_repairs_each_property_alone)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    static const char yaml[] =
        "resources: [{name: a, type: file, path: /etc/a, content: abc, mode: '0600'}]";
    agent_write(&f, "/etc/a", "abc");
    agent_run(&f, yaml);
    CHECK_STR(f.converge.vertices[0].differences[0].property, "mode");
    CHECK_STR(f.converge.vertices[0].differences[0].was, "0644");
    CHECK_EQ(f.converge.vertices[0].difference_n, 1);
    agent_write(&f, "/etc/a", "abd");
    agent_run(&f, yaml);
    CHECK_STR(f.converge.vertices[0].differences[0].property, "content");
    CHECK_EQ(f.converge.vertices[0].difference_n, 1);
    CHECK_EQ(agent_mode(&f, "/etc/a"), 0600);
    CHECK_STR(agent_read(&f, "/etc/a"), "abc");
    agent_fixture_done(&f);
}

TEST(file_keeps_what_is_not_said)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "content stays");
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, mode: '0600'}]");
    CHECK_STR(agent_read(&f, "/etc/a"), "content stays");
    CHECK_EQ(agent_mode(&f, "/etc/a"), 0600);
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, content: new}]");
    CHECK_EQ(agent_mode(&f, "/etc/a"), 0600);
    agent_fixture_done(&f);
}

TEST(file_takes_owners_by_the_machines_own_names)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    struct str passwd = arena_printf(&f.memory, "me:x:%u:%u::/:/bin/sh\n", geteuid(), getegid());
    struct str group = arena_printf(&f.memory, "mine:x:%u:\n", getegid());
    agent_write(&f, "/etc/passwd", passwd.p);
    agent_write(&f, "/etc/group", group.p);
    agent_run(&f, "resources:\n"
                  "- {name: a, type: file, path: /etc/a, content: x, owner: me, group: mine}\n"
                  "- {name: b, type: file, path: /etc/b, content: x, owner: nobody-here}\n");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    CHECK_STR(agent_said(&f, "b"),
              "Failed: field 'owner': there is no 'nobody-here' in /etc/passwd");
    CHECK_STR(agent_read(&f, "/etc/b"), "(none)");
    if (geteuid() == 0) {
        agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, owner: 1234, group: 5}]");
        struct stat st;
        CHECK_EQ(stat(agent_outside(&f, "/etc/a"), &st), 0);
        CHECK_EQ(st.st_uid, 1234);
        CHECK_EQ(st.st_gid, 5);
    }
    agent_fixture_done(&f);
}

TEST(file_has_the_content_of_another)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/usr/share/a", "from there");
    static const char yaml[] = "resources: [{name: a, type: file, path: /a, source: /usr/share/a}]";
    agent_run(&f, yaml);
    CHECK_STR(agent_read(&f, "/a"), "from there");
    agent_write(&f, "/usr/share/a", "changed there");
    agent_run(&f, yaml);
    CHECK_STR(agent_read(&f, "/a"), "changed there");
    CHECK_EQ(unlink(agent_outside(&f, "/usr/share/a")), 0);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Failed: field 'source': there is no file '/usr/share/a'");
    agent_fixture_done(&f);
}

TEST(file_is_removed_and_stays_removed)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "x");
    CHECK_EQ(symlink("nowhere", agent_outside(&f, "/etc/b")), 0);
    static const char yaml[] = "resources:\n"
                               "- {name: a, type: file, path: /etc/a, state: absent}\n"
                               "- {name: b, type: file, path: /etc/b, state: absent}\n"
                               "- {name: c, type: file, path: /none/c, state: absent}\n";
    agent_run(&f, yaml);
    CHECK_STR(agent_read(&f, "/etc/a"), "(none)");
    CHECK_STR(agent_link(&f, "/etc/b"), "(none)");
    CHECK_STR(agent_said(&f, "c"), "Ok");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "a"), "Ok");
    agent_fixture_done(&f);
}

TEST(file_follows_a_link_only_when_it_is_told_to)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/run/real", "old");
    agent_mkdir(&f, "/etc");
    CHECK_EQ(symlink("../run/real", agent_outside(&f, "/etc/a")), 0);
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, content: new}]");
    CHECK_STR(agent_said(&f, "a"), "Failed: '/etc/a' is a symbolic link; want a file, or "
                                   "'followSymlink: true'");
    CHECK_STR(agent_vertex(&f, "a")->reason, "UnsafePath");
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, content: new, "
                  "followSymlink: true}]");
    CHECK_STR(agent_read(&f, "/run/real"), "new");
    CHECK_STR(agent_link(&f, "/etc/a"), "../run/real");
    agent_fixture_done(&f);
}

TEST(file_in_a_folder_of_others_needs_leave)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/tmp");
    CHECK_EQ(chmod(agent_outside(&f, "/tmp"), 01777), 0);
    agent_run(&f, "resources: [{name: a, type: file, path: /tmp/a, content: x}]");
    CHECK_STR(agent_vertex(&f, "a")->reason, "UnsafePath");
    agent_run(&f, "resources: [{name: a, type: file, path: /tmp/a, content: x, "
                  "meta: {unsafePath: Allow}}]");
    CHECK_STR(agent_said(&f, "a"), "Ok, changed");
    agent_fixture_done(&f);
}

TEST(file_without_a_folder_says_so)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_run(&f, "resources: [{name: a, type: file, path: /none/a, content: x}]");
    CHECK_STR(agent_said(&f, "a"), "Failed: there is no folder for '/none/a'");
    agent_fixture_done(&f);
}

/* ── kills ─────────────────────────────────────────────────────────────────────────────────── */

static const char everything[] =
    "resources:\n"
    "- {name: dir, type: directory, path: /srv/x/y, mode: '0750'}\n"
    "- {name: a, type: file, path: /etc/a, content: new-content, mode: '0600'}\n"
    "- {name: b, type: file, path: /etc/b, state: absent}\n"
    "- {name: link, type: symlink, path: /etc/link, target: new-target}\n"
    "- {name: in, type: file, path: /srv/x/y/in, content: inside}\n";

static void with_old(struct agent_fixture *f)
{
    agent_write(f, "/etc/a", "old");
    agent_write(f, "/etc/b", "old");
    CHECK_EQ(symlink("old-target", agent_outside(f, "/etc/link")), 0);
}

static void judge_left(struct agent_fixture *f)
{
    struct str a = agent_read(f, "/etc/a");
    struct str b = agent_read(f, "/etc/b");
    struct str link = agent_link(f, "/etc/link");
    struct str in = agent_read(f, "/srv/x/y/in");
    CHECK(str_eq(a, STR("old")) ? agent_mode(f, "/etc/a") == 0644
                                : str_eq(a, STR("new-content")) && agent_mode(f, "/etc/a") == 0600);
    CHECK(str_eq(b, STR("old")) || str_eq(b, STR("(none)")));
    CHECK(str_eq(link, STR("old-target")) || str_eq(link, STR("new-target")));
    CHECK(str_eq(in, STR("(none)")) || str_eq(in, STR("inside")));
}

static void judge_after(struct agent_fixture *f)
{
    CHECK(converge_is_good(&f->converge));
    CHECK_STR(agent_read(f, "/etc/a"), "new-content");
    CHECK_EQ(agent_mode(f, "/etc/a"), 0600);
    CHECK_STR(agent_read(f, "/etc/b"), "(none)");
    CHECK_STR(agent_link(f, "/etc/link"), "new-target");
    CHECK_STR(agent_read(f, "/srv/x/y/in"), "inside");
    CHECK_EQ(agent_mode(f, "/srv/x/y"), 0750);
    /* Nothing is left beside. */
    CHECK_STR(agent_read(f, "/etc/.a.drydock"), "(none)");
    CHECK_STR(agent_link(f, "/etc/.link.drydock"), "(none)");
    CHECK_STR(agent_read(f, "/srv/x/y/.in.drydock"), "(none)");
}

TEST(files_are_old_or_new_wherever_the_agent_is_killed)
{
    agent_kill_everywhere(everything, with_old, judge_left, judge_after);
}

/* ── directory ─────────────────────────────────────────────────────────────────────────────── */

TEST(directory_is_made_with_its_parents_and_repaired)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    static const char yaml[] =
        "resources: [{name: d, type: directory, path: /srv/a/b, mode: '0700'}]";
    agent_noop(&f, yaml);
    CHECK_EQ(agent_mode(&f, "/srv"), 0);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "d"), "Ok, changed");
    CHECK_EQ(agent_mode(&f, "/srv/a"), 0755);
    CHECK_EQ(agent_mode(&f, "/srv/a/b"), 0700);
    CHECK_EQ(chmod(agent_outside(&f, "/srv/a/b"), 0755), 0);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "d"), "Ok, changed");
    CHECK_EQ(agent_mode(&f, "/srv/a/b"), 0700);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "d"), "Ok");
    agent_fixture_done(&f);
}

TEST(directory_without_parents_and_over_a_file_fails)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "x");
    agent_run(&f, "resources:\n"
                  "- {name: d, type: directory, path: /srv/a/b, parents: false}\n"
                  "- {name: e, type: directory, path: /etc/a}\n");
    CHECK_STR(agent_said(&f, "d"), "Failed: there is no folder for '/srv/a/b'");
    CHECK_STR(agent_said(&f, "e"), "Failed: '/etc/a' is there and is no folder");
    agent_fixture_done(&f);
}

TEST(directory_is_removed_only_when_it_is_empty)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/srv/empty");
    agent_write(&f, "/srv/full/x", "x");
    agent_run(&f, "resources:\n"
                  "- {name: empty, type: directory, path: /srv/empty, state: absent}\n"
                  "- {name: full, type: directory, path: /srv/full, state: absent}\n");
    CHECK_STR(agent_said(&f, "empty"), "Ok, changed");
    CHECK_STR(agent_said(&f, "full"), "Failed: remove '/srv/full': Directory not empty");
    agent_fixture_done(&f);
}

TEST(directory_that_was_there_gets_its_mode_back)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/srv/d");
    agent_run(&f, "resources: [{name: d, type: directory, path: /srv/d, mode: '0700', "
                  "meta: {onRemove: Restore}}]");
    CHECK_EQ(agent_mode(&f, "/srv/d"), 0700);
    agent_run(&f, "resources: [{name: a, type: file, path: /a, content: x}]");
    CHECK_EQ(agent_mode(&f, "/srv/d"), 0755);
    agent_fixture_done(&f);
}

/* ── symlink ───────────────────────────────────────────────────────────────────────────────── */

TEST(symlink_is_made_and_repaired)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/etc");
    static const char yaml[] = "resources: [{name: l, type: symlink, path: /etc/l, target: /a/b}]";
    agent_noop(&f, yaml);
    CHECK_STR(agent_link(&f, "/etc/l"), "(none)");
    agent_run(&f, yaml);
    CHECK_STR(agent_link(&f, "/etc/l"), "/a/b");
    CHECK_EQ(unlink(agent_outside(&f, "/etc/l")), 0);
    CHECK_EQ(symlink("other", agent_outside(&f, "/etc/l")), 0);
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "l"), "Ok, changed");
    CHECK_STR(agent_link(&f, "/etc/l"), "/a/b");
    agent_run(&f, yaml);
    CHECK_STR(agent_said(&f, "l"), "Ok");
    agent_fixture_done(&f);
}

TEST(symlink_takes_the_place_of_a_file_only_by_force)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/l", "content");
    agent_mkdir(&f, "/etc/d");
    agent_run(&f, "resources:\n"
                  "- {name: l, type: symlink, path: /etc/l, target: t}\n"
                  "- {name: d, type: symlink, path: /etc/d, target: t, force: true}\n");
    CHECK_STR(agent_said(&f, "l"),
              "Failed: '/etc/l' is a file; want nothing there, or 'force: true'");
    CHECK_STR(agent_said(&f, "d"), "Failed: '/etc/d' is a folder; want nothing there");
    agent_run(&f, "resources: [{name: l, type: symlink, path: /etc/l, target: t, force: true, "
                  "meta: {onRemove: Restore}}]");
    CHECK_STR(agent_link(&f, "/etc/l"), "t");
    agent_run(&f, "resources: [{name: a, type: file, path: /a, content: x}]");
    CHECK_STR(agent_read(&f, "/etc/l"), "content");
    agent_fixture_done(&f);
}
