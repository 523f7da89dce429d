#include "agent/root.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/lib/agent_fixture.h"

static int walk(struct agent_fixture *f, const char *path, unsigned flags, struct err *err)
{
    struct root_place place = ROOT_PLACE_NONE;
    *err = (struct err){ 0 };
    int r = root_walk(&f->root, str_from(path), flags, &place, err);
    root_place_done(&place);
    return r;
}

TEST(root_walks_only_where_nobody_else_may_write)
{
    struct agent_fixture f;
    struct err err;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/srv/open/in");
    CHECK_EQ(chmod(agent_outside(&f, "/srv/open"), 0777), 0);
    CHECK_EQ(walk(&f, "/srv/open", 0, &err), 0); /* in a folder that is closed */
    CHECK_EQ(walk(&f, "/srv/open/file", 0, &err), -ERR_DENIED);
    CHECK_STR(err.msg,
              "path '/srv/open/file': others may write into the folder 'open' (mode 0777)");
    CHECK_EQ(walk(&f, "/srv/open/in/file", 0, &err), -ERR_DENIED);
    /* A sticky folder does not keep others from making names first. */
    CHECK_EQ(chmod(agent_outside(&f, "/srv/open"), 01777), 0);
    CHECK_EQ(walk(&f, "/srv/open/file", 0, &err), -ERR_DENIED);
    CHECK_EQ(chmod(agent_outside(&f, "/srv/open"), 0775), 0);
    CHECK_EQ(walk(&f, "/srv/open/file", 0, &err), -ERR_DENIED);
    CHECK_EQ(walk(&f, "/srv/open/file", ROOT_WALK_UNSAFE, &err), 0);
    CHECK_EQ(walk(&f, "/srv/none/file", 0, &err), -ERR_NOTFOUND);
    CHECK_STR(err.msg, "path '/srv/none/file': there is no folder 'none'");
    agent_write(&f, "/srv/file", "x");
    CHECK_EQ(walk(&f, "/srv/file/x", 0, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "path '/srv/file/x': 'file' is no folder");
    agent_fixture_done(&f);
}

TEST(root_refuses_folders_and_links_of_other_users)
{
    struct agent_fixture f;
    struct err err;
    agent_fixture_init(&f);
    if (geteuid() != 0) {
        agent_fixture_done(&f);
        return; /* nobody but root can give things away */
    }
    agent_mkdir(&f, "/home/bob");
    agent_mkdir(&f, "/etc");
    CHECK_EQ(symlink("/etc", agent_outside(&f, "/home/link")), 0);
    CHECK_EQ(walk(&f, "/home/link/x", 0, &err), 0);
    CHECK_EQ(lchown(agent_outside(&f, "/home/link"), 1234, 1234), 0);
    CHECK_EQ(chown(agent_outside(&f, "/home/bob"), 1234, 1234), 0);
    CHECK_EQ(walk(&f, "/home/bob/x", 0, &err), -ERR_DENIED);
    CHECK_STR(err.msg, "path '/home/bob/x': the folder 'bob' belongs to user 1234, want root");
    CHECK_EQ(walk(&f, "/home/link/x", 0, &err), -ERR_DENIED);
    CHECK_STR(err.msg, "path '/home/link/x': the link 'link' belongs to user 1234, want root");
    CHECK_EQ(walk(&f, "/home/link", ROOT_WALK_FOLLOW, &err), -ERR_DENIED);
    agent_fixture_done(&f);
}

TEST(root_follows_links_of_its_own_and_never_leaves)
{
    struct agent_fixture f;
    struct err err;
    struct root_place place;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/usr/lib/deep");
    agent_mkdir(&f, "/etc");
    CHECK_EQ(symlink("usr/lib", agent_outside(&f, "/lib")), 0);
    CHECK_EQ(symlink("/etc", agent_outside(&f, "/usr/lib/deep/etc")), 0);
    CHECK_EQ(symlink("../../../../../../../../etc", agent_outside(&f, "/up")), 0);
    CHECK_EQ(symlink("loop", agent_outside(&f, "/loop")), 0);
    CHECK_EQ(symlink("/proc/self/root/etc", agent_outside(&f, "/magic")), 0);
    const char *const same[] = { "/lib/deep/etc/x", "/up/x", "/etc/x" };
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        check_case((int64_t)i);
        struct root_file file = { .content = STR("x"), .uid = f.root.uid, .gid = UINT32_MAX };
        file.mode = 0644;
        CHECK_EQ(root_walk(&f.root, str_from(same[i]), 0, &place, &err), 0);
        CHECK_EQ(root_replace(&f.root, &place, &file, &err), 0);
        root_place_done(&place);
        CHECK_STR(agent_read(&f, "/etc/x"), "x");
        CHECK_EQ(unlink(agent_outside(&f, "/etc/x")), 0);
    }
    check_case(-1);
    CHECK_EQ(walk(&f, "/loop/x", 0, &err), -ERR_LIMIT);
    CHECK_EQ(walk(&f, "/loop", ROOT_WALK_FOLLOW, &err), -ERR_LIMIT);
    CHECK_EQ(walk(&f, "/loop", 0, &err), 0);                /* the last name is not followed */
    CHECK_EQ(walk(&f, "/magic/x", 0, &err), -ERR_NOTFOUND); /* there is no /proc in this tree */
    agent_fixture_done(&f);
}

TEST(root_keeps_away_from_the_kernels_files)
{
    struct root root;
    struct err err = { 0 };
    struct root_place place;
    CHECK_EQ(root_open(&root, STR("/"), &err), 0);
    CHECK_EQ(root_walk(&root, STR("/proc/version"), 0, &place, &err), -ERR_DENIED);
    CHECK(str_contains(str_from(err.msg), STR("is the kernel's")));
    CHECK_EQ(root_walk(&root, STR("/proc/version"), ROOT_WALK_KERNEL, &place, &err), 0);
    root_place_done(&place);
    /* /proc/self is a link of the kernel's, and so are those below it. */
    CHECK(root_walk(&root, STR("/proc/self/root/etc/x"), ROOT_WALK_KERNEL, &place, &err) < 0);
    root_done(&root);
}

TEST(root_replace_sets_owner_mode_and_attributes_before_the_name)
{
    struct agent_fixture f;
    struct err err = { 0 };
    struct root_place place;
    char value[16] = "";
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "old");
    bool attributes =
        setxattr(agent_outside(&f, "/etc/a"), "user.note", "kept", 4, 0) == 0; /* not on tmpfs */
    struct root_file file = { .content = STR("new"), .uid = f.root.uid, .gid = UINT32_MAX };
    file.mode = 0640;
    file.keep_xattrs = true;
    CHECK_EQ(root_walk(&f.root, STR("/etc/a"), 0, &place, &err), 0);
    CHECK_EQ(root_write_beside(&f.root, &place, &file, &err), 0);
    CHECK_STR(root_beside(&place, &f.memory), "/etc/.a.drydock");
    CHECK_STR(agent_read(&f, "/etc/a"), "old");
    CHECK_STR(agent_read(&f, "/etc/.a.drydock"), "new");
    CHECK_EQ(agent_mode(&f, "/etc/.a.drydock"), 0640);
    CHECK_EQ(root_take_place(&f.root, &place, &file, &err), 0);
    CHECK_STR(agent_read(&f, "/etc/a"), "new");
    CHECK_STR(agent_read(&f, "/etc/.a.drydock"), "(none)");
    if (attributes) {
        CHECK_EQ(getxattr(agent_outside(&f, "/etc/a"), "user.note", value, sizeof(value)), 4);
        CHECK_STR(value, "kept");
    }
    root_place_done(&place);
    agent_fixture_done(&f);
}

TEST(root_reads_no_pipe_and_no_folder)
{
    struct agent_fixture f;
    struct err err = { 0 };
    struct root_place place;
    struct str text;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/etc");
    CHECK_EQ(mkfifo(agent_outside(&f, "/etc/pipe"), 0600), 0);
    CHECK_EQ(root_walk(&f.root, STR("/etc/pipe"), 0, &place, &err), 0);
    CHECK_EQ(root_read(&place, &f.memory, &text, &err), -ERR_INVALID); /* and does not wait */
    root_place_done(&place);
    CHECK_EQ(root_walk(&f.root, STR("/etc"), 0, &place, &err), 0);
    CHECK_EQ(root_read(&place, &f.memory, &text, &err), -ERR_INVALID);
    root_place_done(&place);
    agent_fixture_done(&f);
}

TEST(root_lists_names_in_order)
{
    struct agent_fixture f;
    struct err err = { 0 };
    struct str *names;
    uint32_t n;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/b", "");
    agent_write(&f, "/etc/a", "");
    agent_write(&f, "/etc/.c", "");
    CHECK_EQ(root_list(&f.root, STR("/etc"), 0, &f.memory, &names, &n, &err), 0);
    CHECK_EQ(n, 3);
    CHECK_STR(names[0], ".c");
    CHECK_STR(names[1], "a");
    CHECK_STR(names[2], "b");
    CHECK_EQ(root_list(&f.root, STR("/none/x"), 0, &f.memory, &names, &n, &err), 0);
    CHECK_EQ(n, 0);
    agent_fixture_done(&f);
}
