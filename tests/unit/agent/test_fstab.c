#include "agent/fstab.h"

#include "tests/check.h"

static const char text[] = "# what is mounted\n"
                           "UUID=1\t/\text4 errors=remount-ro 0 1\n"
                           "LABEL=d  /srv/a\\040b   xfs  noatime 0 2 # ours\n"
                           "/swapfile none swap sw 0 0\n"
                           "/dev/sdb2 none swap sw,pri=5 0 0\n"
                           "nonsense\n";

TEST(fstab_entries_are_read_with_their_escapes)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct fstab_entry e;
    struct str rest = STR(text);
    CHECK(fstab_next(&rest, &memory, &e));
    CHECK_STR(e.device, "UUID=1");
    CHECK_STR(e.options, "errors=remount-ro");
    CHECK(fstab_next(&rest, &memory, &e));
    CHECK_STR(e.path, "/srv/a b");
    CHECK_STR(e.raw, "LABEL=d  /srv/a\\040b   xfs  noatime 0 2 # ours\n");
    CHECK(fstab_next(&rest, &memory, &e));
    CHECK(fstab_next(&rest, &memory, &e));
    CHECK(!fstab_next(&rest, &memory, &e));
    rest = STR("tmpfs /tmp tmpfs");
    CHECK(fstab_next(&rest, &memory, &e));
    CHECK_STR(e.options, "defaults");
}

TEST(fstab_edits_one_line_and_leaves_the_rest)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct fstab_key key = { .path = STR("/srv/a b") };
    struct fstab_entry e = {
        .device = STR("LABEL=d"), .path = key.path, .type = STR("xfs"), .options = STR("noatime")
    };
    CHECK_STR(fstab_edit(&key, &e, STR(text), &memory), text);
    e.options = STR("ro");
    CHECK_STR(fstab_edit(&key, &e, STR(text), &memory),
              "# what is mounted\nUUID=1\t/\text4 errors=remount-ro 0 1\n"
              "LABEL=d /srv/a\\040b xfs ro 0 0\n"
              "/swapfile none swap sw 0 0\n/dev/sdb2 none swap sw,pri=5 0 0\nnonsense\n");
    CHECK_STR(fstab_edit(&key, &e, STR("a /b c"), &memory),
              "a /b c\nLABEL=d /srv/a\\040b xfs ro 0 0\n");
    CHECK_STR(fstab_edit(&key, NULL, STR("a /srv/a\\040b c\n# b\na /srv/a\\040b d\n"), &memory),
              "# b\n");
}

TEST(fstab_gives_back_all_swap)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct fstab_key all = { .swap = true };
    struct fstab_key one = { .swap = true, .device = STR("/swapfile") };
    struct str lines = fstab_lines(&all, STR(text), &memory);
    CHECK_STR(lines, "/swapfile none swap sw 0 0\n/dev/sdb2 none swap sw,pri=5 0 0\n");
    CHECK_STR(fstab_lines(&one, STR(text), &memory), "/swapfile none swap sw 0 0\n");
    CHECK_STR(fstab_edit(&all, NULL, STR(text), &memory),
              "# what is mounted\nUUID=1\t/\text4 errors=remount-ro 0 1\n"
              "LABEL=d  /srv/a\\040b   xfs  noatime 0 2 # ours\nnonsense\n");
    CHECK_STR(fstab_restore(&all, lines, STR("# a\n"), &memory),
              "# a\n/swapfile none swap sw 0 0\n/dev/sdb2 none swap sw,pri=5 0 0\n");
}
