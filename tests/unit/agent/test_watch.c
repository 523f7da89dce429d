/* Real inotify on a temporary folder: the kernel has queued an event before the call that causes it
 * is back, so nothing here waits. */
#include "agent/watch.h"

#include <unistd.h>

#include "tests/lib/agent_fixture.h"

struct fixture {
    struct agent_fixture machine;
    struct watch *watch;
    uint32_t changed; /* bits of owners */
    uint32_t writing;
    uint32_t blind;
};

static void on_news(void *ctx, uint32_t owner, enum watch_news news)
{
    struct fixture *f = ctx;
    if (news == WATCH_WRITING) {
        f->writing |= 1u << owner;
    } else {
        f->changed |= 1u << owner;
    }
}

static void fixture_init(struct fixture *f, uint32_t watches_max)
{
    struct err err = { 0 };
    *f = (struct fixture){ 0 };
    agent_fixture_init(&f->machine);
    struct watch_spec spec = {
        .root = &f->machine.root, .on_news = on_news, .ctx = f, .watches_max = watches_max
    };
    f->watch = watch_new(&spec, &err);
    CHECK(f->watch != NULL);
}

static void fixture_done(struct fixture *f)
{
    watch_free(f->watch);
    agent_fixture_done(&f->machine);
}

/* The owners that something was told of since the last call. */
static uint32_t told(struct fixture *f)
{
    f->changed = 0;
    f->writing = 0;
    watch_read(f->watch, WATCH_SOURCE_FILES);
    return f->changed | f->writing;
}

static const char *outside(struct fixture *f, const char *path)
{
    return agent_outside(&f->machine, path);
}

static void count_blind(void *ctx, uint32_t owner, const char *why)
{
    struct fixture *f = ctx;
    CHECK(why != NULL);
    f->blind |= 1u << owner;
}

static uint32_t blind(struct fixture *f)
{
    f->blind = 0;
    watch_each_blind(f->watch, count_blind, f);
    return f->blind;
}

TEST(watch_tells_of_each_way_to_change_a_file)
{
    struct fixture f;
    fixture_init(&f, 0);
    agent_write(&f.machine, "/etc/a", "a");
    agent_write(&f.machine, "/etc/b", "b");
    watch_add(f.watch, 0, WATCH_PATH, STR("/etc/a"));
    CHECK_EQ(told(&f), 0);
    agent_write(&f.machine, "/etc/a", "changed in place");
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(f.changed, 1);
    CHECK_EQ(chmod(outside(&f, "/etc/a"), 0600), 0);
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(rename(outside(&f, "/etc/b"), outside(&f, "/etc/a")), 0);
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/etc/a", "the new file is watched, too");
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(unlink(outside(&f, "/etc/a")), 0);
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/etc/a", "made again");
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/etc/other", "nobody's business");
    CHECK_EQ(told(&f), 0);
    CHECK_EQ(rename(outside(&f, "/etc/a"), outside(&f, "/etc/away")), 0);
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/etc/away", "not ours any more");
    CHECK_EQ(told(&f), 0);
    fixture_done(&f);
}

TEST(watch_knows_a_file_that_is_still_being_written)
{
    struct fixture f;
    fixture_init(&f, 0);
    agent_write(&f.machine, "/etc/a", "a");
    watch_add(f.watch, 0, WATCH_PATH, STR("/etc/a"));
    FILE *file = fopen(outside(&f, "/etc/a"), "a");
    CHECK(file != NULL);
    CHECK(fputs("more", file) >= 0);
    CHECK_EQ(fflush(file), 0);
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(f.writing, 1);
    CHECK_EQ(f.changed, 0);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(f.changed, 1);
    fixture_done(&f);
}

TEST(watch_waits_for_folders_that_are_missing_and_follows_those_that_move)
{
    struct fixture f;
    fixture_init(&f, 0);
    watch_add(f.watch, 0, WATCH_PATH, STR("/srv/a/b/file"));
    watch_add(f.watch, 1, WATCH_PATH, STR("/etc/x"));
    agent_mkdir(&f.machine, "/srv");
    CHECK_EQ(told(&f), 1);
    agent_mkdir(&f.machine, "/srv/a/b"); /* two at once: the second is found by the walk */
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/srv/a/b/file", "x");
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(rename(outside(&f, "/srv/a"), outside(&f, "/srv/moved")), 0);
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/srv/moved/b/file", "elsewhere");
    CHECK_EQ(told(&f), 0);
    CHECK_EQ(rename(outside(&f, "/srv/moved"), outside(&f, "/srv/a")), 0);
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/srv/a/b/file", "back");
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(unlink(outside(&f, "/srv/a/b/file")), 0);
    CHECK_EQ(rmdir(outside(&f, "/srv/a/b")), 0);
    CHECK_EQ(told(&f), 1);
    agent_write(&f.machine, "/srv/a/b/file", "again");
    CHECK_EQ(told(&f), 1);
    CHECK_EQ(blind(&f), 0);
    fixture_done(&f);
}

TEST(watch_follows_links_and_stays_below_the_root)
{
    struct fixture f;
    fixture_init(&f, 0);
    agent_write(&f.machine, "/data/one/file", "1");
    agent_write(&f.machine, "/data/two/file", "2");
    agent_mkdir(&f.machine, "/etc");
    CHECK_EQ(symlink("/data/one", outside(&f, "/etc/current")), 0);
    CHECK_EQ(symlink("./current/file", outside(&f, "/etc/link")), 0);
    watch_add(f.watch, 0, WATCH_PATH, STR("/etc/current/file"));
    watch_add(f.watch, 1, WATCH_LINK, STR("/etc/link"));
    watch_add(f.watch, 2, WATCH_PATH, STR("/etc/link"));
    agent_write(&f.machine, "/data/one/file", "x");
    CHECK_EQ(told(&f), 1 | 4);
    agent_write(&f.machine, "/data/two/file", "x");
    CHECK_EQ(told(&f), 0);
    CHECK_EQ(symlink("/data/two", outside(&f, "/etc/new")), 0);
    CHECK_EQ(rename(outside(&f, "/etc/new"), outside(&f, "/etc/current")), 0);
    (void)told(&f); /* the link alone does not lead through that name */
    agent_write(&f.machine, "/data/two/file", "y");
    CHECK_EQ(told(&f), 1 | 4);
    agent_write(&f.machine, "/data/one/file", "y");
    CHECK_EQ(told(&f), 0);
    CHECK_EQ(unlink(outside(&f, "/etc/link")), 0);
    CHECK_EQ(told(&f), 2 | 4);
    fixture_done(&f);
}

TEST(watch_tells_of_a_folder_itself_and_not_of_what_is_in_it)
{
    struct fixture f;
    fixture_init(&f, 0);
    agent_mkdir(&f.machine, "/srv/d");
    watch_add(f.watch, 0, WATCH_PATH, STR("/srv/d"));
    agent_write(&f.machine, "/srv/d/file", "x");
    CHECK_EQ(chmod(outside(&f, "/srv/d/file"), 0600), 0);
    CHECK_EQ(told(&f), 0);
    CHECK_EQ(chmod(outside(&f, "/srv/d"), 0700), 0);
    CHECK_EQ(told(&f), 1);
    fixture_done(&f);
}

TEST(watch_says_what_it_cannot_see_and_tries_again)
{
    struct fixture f;
    fixture_init(&f, 4); /* of the kernel's: "/", /etc, a, b */
    agent_write(&f.machine, "/etc/a", "x");
    agent_write(&f.machine, "/etc/b", "x");
    agent_write(&f.machine, "/etc/c", "x");
    watch_add(f.watch, 0, WATCH_PATH, STR("/etc/a"));
    watch_add(f.watch, 1, WATCH_PATH, STR("/etc/b"));
    watch_add(f.watch, 2, WATCH_PATH, STR("/etc/c"));
    watch_add(f.watch, 3, WATCH_CLOCK, STR_NONE);
    CHECK_EQ(blind(&f), 4 | 8);
    agent_write(&f.machine, "/etc/b", "y");
    CHECK_EQ(told(&f), 2);
    agent_write(&f.machine, "/etc/c", "y");
    CHECK_EQ(told(&f), 0);
    CHECK_EQ(unlink(outside(&f, "/etc/a")), 0);
    CHECK_EQ(told(&f), 1);
    watch_retry(f.watch);
    CHECK_EQ(blind(&f), 8);
    agent_write(&f.machine, "/etc/c", "z");
    CHECK_EQ(told(&f), 4);
    fixture_done(&f);
}

/* So many events that the kernel drops the rest: fs.inotify.max_queued_events is 16384. */
TEST(watch_looks_at_everything_when_events_were_lost)
{
    struct fixture f;
    char names[2][64];
    fixture_init(&f, 0);
    agent_write(&f.machine, "/etc/a", "x");
    agent_write(&f.machine, "/srv/b", "x");
    watch_add(f.watch, 0, WATCH_PATH, STR("/etc/a"));
    watch_add(f.watch, 1, WATCH_PATH, STR("/srv/b"));
    (void)snprintf(names[0], sizeof(names[0]), "%s", outside(&f, "/etc/x"));
    (void)snprintf(names[1], sizeof(names[1]), "%s", outside(&f, "/etc/y"));
    agent_write(&f.machine, "/etc/x", "x");
    for (int i = 0; i < 10000; i++) {
        CHECK_EQ(rename(names[i % 2], names[1 - i % 2]), 0);
    }
    agent_write(&f.machine, "/etc/a", "this event was dropped");
    CHECK_EQ(told(&f), 1 | 2);
    agent_write(&f.machine, "/srv/b", "and it goes on");
    CHECK_EQ(told(&f), 2);
    fixture_done(&f);
}

TEST(watch_serves_many_paths_of_one_folder)
{
    struct fixture f;
    fixture_init(&f, 0);
    for (uint32_t i = 0; i < 2000; i++) {
        struct str path = arena_printf(&f.machine.memory, "/etc/file-%u", i);
        agent_write(&f.machine, path.p, "x");
        watch_add(f.watch, i % 32, WATCH_PATH, path);
    }
    (void)told(&f); /* of those that were made while the folder was watched */
    agent_write(&f.machine, "/etc/file-1029", "y");
    CHECK_EQ(told(&f), 1u << (1029 % 32));
    agent_write(&f.machine, "/etc/file-2000", "y");
    CHECK_EQ(told(&f), 0);
    fixture_done(&f);
}

TEST(watch_sees_a_parameter_of_the_kernel)
{
    struct agent_fixture machine;
    struct fixture f = { 0 };
    struct err err = { 0 };
    struct root root;
    agent_fixture_init(&machine);
    CHECK_EQ(root_open(&root, STR("/"), &err), 0);
    struct watch_spec spec = { .root = &root, .on_news = on_news, .ctx = &f };
    f.watch = watch_new(&spec, &err);
    CHECK(f.watch != NULL);
    /* A file of /proc that anybody may write without harm: our own. */
    watch_add(f.watch, 0, WATCH_KERNEL, STR("/proc/self/comm"));
    CHECK_EQ(blind(&f), 1); /* a link of a process leads elsewhere for each who follows it */
    struct str path = arena_printf(&machine.memory, "/proc/%d/comm", (int)getpid());
    watch_add(f.watch, 1, WATCH_KERNEL, path);
    FILE *file = fopen(path.p, "w");
    CHECK(file != NULL);
    CHECK(fputs("test", file) >= 0);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(told(&f), 2);
    watch_free(f.watch);
    root_done(&root);
    agent_fixture_done(&machine);
}
