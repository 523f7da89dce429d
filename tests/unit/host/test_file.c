#include "host/file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

TEST(file_read_gives_the_whole_and_stops_at_the_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct str text = STR("untouched");
    char path[] = "/tmp/drydock-file-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    (void)close(fd);
    CHECK_EQ(file_read(str_from(path), 9, &a, &text, &err), -ERR_LIMIT);
    CHECK_STR(text, "untouched");
    CHECK(str_ends(str_from(err.msg), STR("': is longer than 9 bytes")));
    CHECK_EQ(file_read(str_from(path), 10, &a, &text, &err), 0);
    CHECK_STR(text, "0123456789");
    CHECK_EQ(text.p[10], '\0');

    struct file_mark before;
    struct file_mark after;
    CHECK_EQ(file_mark(str_from(path), &before, &err), 0);
    CHECK_EQ(before.size, 10);
    CHECK_EQ(truncate(path, 3), 0);
    CHECK_EQ(file_mark(str_from(path), &after, &err), 0);
    CHECK(!file_mark_eq(&before, &after));
    (void)unlink(path);
}

TEST(file_read_names_what_is_no_file)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct str text;
    CHECK_EQ(file_read(STR("/nonexistent"), 10, &a, &text, &err), -ERR_NOTFOUND);
    CHECK_STR(err.msg, "file '/nonexistent': No such file or directory");
    CHECK_EQ(file_read(STR("/tmp"), 10, &a, &text, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "file '/tmp': is a directory");
    CHECK_EQ(file_read(STR_NONE, 10, &a, &text, &err), -ERR_INVALID);
    CHECK_EQ(file_read(STR("a\0b"), 10, &a, &text, &err), -ERR_INVALID);
    char path[] = "/tmp/drydock-fifo-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    struct str fifo = arena_printf(&a, "%s/fifo", path);
    CHECK_EQ(mkfifo(fifo.p, 0600), 0);
    CHECK_EQ(file_read(fifo, 10, &a, &text, &err), 0); /* nobody writes: it is empty, no wait */
    CHECK_EQ(text.n, 0);
    (void)unlink(fifo.p);
    (void)rmdir(path);
}

TEST(file_replace_replaces_a_file_as_a_whole)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    char folder[] = "/tmp/drydock-file.XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    struct str path = arena_printf(&a, "%s/config", folder);
    CHECK_EQ(file_replace(path, STR("one, and longer"), &err), 0);
    CHECK_EQ(file_replace(path, STR("two"), &err), 0);
    struct str got;
    CHECK_EQ(file_read(path, 100, &a, &got, &err), 0);
    CHECK_STR(got, "two");
    struct stat st;
    CHECK_EQ(stat(path.p, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    CHECK_EQ(unlink(path.p), 0);
    CHECK_EQ(rmdir(folder), 0); /* nothing is left beside it */
}

TEST(file_replace_names_the_file_it_cannot_write)
{
    struct err err = { 0 };
    CHECK_EQ(file_replace(STR("/nowhere/at/all"), STR("x"), &err), -ERR_NOTFOUND);
    CHECK_STR(err.msg, "write '/nowhere/at/all': No such file or directory");
}
