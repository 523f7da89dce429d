#include "host/filewatch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/loop.h"
#include "tests/check.h"

#define PATIENCE SECONDS(60) /* a deadline for a loaded machine, not a time anything takes */

struct bench {
    char folder[64]; /* the working directory */
    char before[4096];
    struct loop *loop;
    struct loop_timer quiet;
    bool quiet_over;
    struct filewatch *watch;
    uint32_t changes;
};

static void on_change(void *ctx)
{
    struct bench *b = ctx;
    b->changes++;
}

static void on_quiet(void *ctx)
{
    struct bench *b = ctx;
    b->quiet_over = true;
}

static void bench_begin(struct bench *b)
{
    *b = (struct bench){ .folder = "/tmp/filewatch-XXXXXX" };
    CHECK(getcwd(b->before, sizeof(b->before)) != NULL);
    CHECK(mkdtemp(b->folder) != NULL);
    CHECK_EQ(chdir(b->folder), 0);
    b->loop = host_loop_new();
    loop_timer_init(&b->quiet, b->loop, on_quiet, b);
}

static void bench_watch(struct bench *b, const char *path)
{
    struct err err = { 0 };
    filewatch_free(b->watch);
    b->watch = filewatch_new(b->loop, str_from(path), on_change, b, &err);
    CHECK_STR(err.msg, "");
    CHECK(b->watch != NULL);
    b->changes = 0;
}

static void bench_end(struct bench *b)
{
    static const char *const left[] = { "a",   "b", "dir/a",  "dir/b", "dir", "link",  "x/y/a",
                                        "x/y", "x", "..data", "..1/a", "..1", "..2/a", "..2" };
    filewatch_free(b->watch);
    loop_timer_done(&b->quiet);
    host_loop_free(b->loop);
    for (size_t i = 0; i < ARRAY_LEN(left); i++) {
        (void)remove(left[i]); /* whatever of it is there */
    }
    CHECK_EQ(chdir(b->before), 0);
    CHECK_EQ(rmdir(b->folder), 0);
}

/* Until it has been told once more; a second telling of the same change would be found by the next
 * wait. */
static void expect_change(struct bench *b)
{
    usec_t deadline = loop_now(b->loop) + PATIENCE;
    while (b->changes == 0 && loop_now(b->loop) < deadline) {
        host_loop_turn(b->loop, SECONDS(1));
    }
    CHECK_EQ(b->changes, 1);
    b->changes = 0;
}

/* Long enough for a telling to come that should not. */
static void expect_silence(struct bench *b)
{
    b->quiet_over = false;
    loop_timer_set(&b->quiet, loop_now(b->loop) + 3 * FILEWATCH_SETTLE);
    while (!b->quiet_over) {
        host_loop_turn(b->loop, SECONDS(1));
    }
    CHECK_EQ(b->changes, 0);
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    size_t n = str_from(text).n;
    CHECK_EQ(write(fd, text, n), (ssize_t)n);
    CHECK_EQ(close(fd), 0);
}

TEST(filewatch_sees_a_file_written_in_place)
{
    struct bench b;
    bench_begin(&b);
    put("a", "1");
    bench_watch(&b, "a");
    expect_silence(&b);
    put("a", "2"); /* the same size, perhaps the same time */
    expect_change(&b);
    put("a", "3");
    put("a", "4");
    expect_change(&b); /* once for both */
    expect_silence(&b);
    put("b", "other");
    expect_silence(&b);
    bench_end(&b);
}

TEST(filewatch_sees_a_file_replaced_removed_and_made)
{
    struct bench b;
    bench_begin(&b);
    put("a", "1");
    bench_watch(&b, "./a");
    put("b", "2");
    CHECK_EQ(rename("b", "a"), 0);
    expect_change(&b);
    put("a", "3"); /* the new file is watched, too */
    expect_change(&b);
    CHECK_EQ(unlink("a"), 0);
    expect_change(&b);
    put("a", "4");
    expect_change(&b);
    bench_end(&b);
}

TEST(filewatch_waits_for_folders_that_are_not_there)
{
    struct bench b;
    char path[128];
    bench_begin(&b);
    (void)snprintf(path, sizeof(path), "%s/x//y/./a", b.folder);
    bench_watch(&b, path);
    CHECK_EQ(mkdir("x", 0700), 0);
    expect_silence(&b);
    CHECK_EQ(mkdir("x/y", 0700), 0);
    put("x/y/a", "1");
    expect_change(&b);
    CHECK_EQ(unlink("x/y/a"), 0);
    CHECK_EQ(rmdir("x/y"), 0);
    CHECK_EQ(rmdir("x"), 0);
    expect_change(&b);
    CHECK_EQ(mkdir("x", 0700), 0);
    CHECK_EQ(mkdir("x/y", 0700), 0);
    put("x/y/a", "2");
    expect_change(&b);
    /* A folder moved away takes the file with it. */
    CHECK_EQ(rename("x", "dir"), 0);
    expect_change(&b);
    CHECK_EQ(rename("dir", "x"), 0);
    expect_change(&b);
    bench_end(&b);
}

TEST(filewatch_follows_the_links_of_a_config_map)
{
    struct bench b;
    bench_begin(&b);
    CHECK_EQ(mkdir("..1", 0700), 0);
    CHECK_EQ(mkdir("..2", 0700), 0);
    put("..1/a", "1");
    CHECK_EQ(symlink("..1", "..data"), 0);
    CHECK_EQ(symlink("..data/a", "a"), 0);
    bench_watch(&b, "a");
    put("..2/a", "1"); /* nobody looks at it yet */
    expect_silence(&b);
    CHECK_EQ(symlink("..2", "link"), 0);
    CHECK_EQ(rename("link", "..data"), 0);
    expect_change(&b);
    /* The kubelet removes the old folder afterwards. */
    CHECK_EQ(unlink("..1/a"), 0);
    CHECK_EQ(rmdir("..1"), 0);
    expect_silence(&b);
    CHECK_EQ(mkdir("..1", 0700), 0);
    put("..1/a", "3");
    CHECK_EQ(symlink("..1", "link"), 0);
    CHECK_EQ(rename("link", "..data"), 0);
    expect_change(&b);
    bench_end(&b);
}

TEST(filewatch_survives_links_in_a_circle)
{
    struct bench b;
    bench_begin(&b);
    CHECK_EQ(symlink("b", "a"), 0);
    CHECK_EQ(symlink("a", "b"), 0);
    bench_watch(&b, "a");
    expect_silence(&b);
    CHECK_EQ(unlink("b"), 0);
    put("b", "1");
    expect_change(&b);
    bench_end(&b);
}

TEST(filewatch_tells_of_a_file_that_is_written_without_an_end)
{
    struct bench b;
    bench_begin(&b);
    put("a", "1");
    bench_watch(&b, "a");
    int fd = open("a", O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK(fd >= 0);
    usec_t begin = loop_now(b.loop);
    usec_t last = 0;
    while (b.changes == 0 && loop_now(b.loop) < begin + PATIENCE) {
        host_loop_turn(b.loop, MSECONDS(5));
        if (loop_now(b.loop) >= last + MSECONDS(20)) {
            CHECK_EQ(write(fd, "x", 1), 1);
            last = loop_now(b.loop);
        }
    }
    CHECK_EQ(b.changes, 1);
    CHECK(loop_now(b.loop) - begin >= FILEWATCH_SETTLE);
    CHECK_EQ(close(fd), 0);
    bench_end(&b);
}

static void free_it(void *ctx)
{
    struct bench *b = ctx;
    filewatch_free(STEAL(b->watch));
    b->changes++;
}

TEST(filewatch_may_be_freed_by_whom_it_tells)
{
    struct bench b;
    struct err err = { 0 };
    bench_begin(&b);
    b.watch = filewatch_new(b.loop, STR("a"), free_it, &b, &err);
    CHECK(b.watch != NULL);
    put("a", "1");
    expect_change(&b);
    CHECK(b.watch == NULL);
    bench_end(&b);
    filewatch_free(NULL);
}
