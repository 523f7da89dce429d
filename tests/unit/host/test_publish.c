#include "host/publish.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/file.h"
#include "tests/check.h"

TEST(file_replace_replaces_a_file_as_a_whole)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    char folder[] = "/tmp/drydock-publish.XXXXXX";
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
