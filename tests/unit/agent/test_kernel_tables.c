#include "agent/kernel_tables.h"

#include "tests/check.h"

TEST(kernel_modules_have_dashes_or_underscores)
{
    struct str modules = STR("br_netfilter 32768 0 - Live 0x0\n"
                             "bridge 311296 2 br_netfilter, Live 0x0\n"
                             "broken 1\n");
    struct kernel_module m;
    CHECK(kernel_module_find(modules, STR("br-netfilter"), &m));
    CHECK_EQ(m.users, 0);
    CHECK(kernel_module_find(modules, STR("bridge"), &m));
    CHECK_EQ(m.users, 2);
    CHECK(!kernel_module_find(modules, STR("netfilter"), &m));
    CHECK(!kernel_module_find(modules, STR("broken"), &m));
    struct str builtin = STR("kernel/fs/ext4/ext4.ko\nkernel/crypto/sha256-generic.ko\n");
    CHECK(kernel_module_is_builtin(builtin, STR("sha256_generic")));
    CHECK(!kernel_module_is_builtin(builtin, STR("generic")));
    CHECK(!kernel_module_is_builtin(STR("kernel/ext4"), STR("ext4")));
}

TEST(kernel_swaps_are_paths)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str rest = STR("Filename\t\t\tType\tSize\n/dev/dm-1   partition 1 0 -2\n"
                          "/swap\\040file file 1 0 -3\n");
    struct str path;
    CHECK(kernel_swap_next(&rest, &memory, &path));
    CHECK_STR(path, "/dev/dm-1");
    CHECK(kernel_swap_next(&rest, &memory, &path));
    CHECK_STR(path, "/swap file");
    CHECK(!kernel_swap_next(&rest, &memory, &path));
}

TEST(kernel_mounts_of_one_path_are_seen_from_above)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str text =
        STR("22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
            "36 22 98:0 /sub /mnt/a\\040b rw,noatime master:1 shared:7 - ext4 /dev/sda1 rw\n"
            "37 36 0:40 / /mnt/a\\040b ro,nosuid - tmpfs tmpfs rw,size=1k\n"
            "38 36 0:40 / /short ro\n");
    struct kernel_mount m;
    CHECK(kernel_mount_find(text, STR("/mnt/a b"), &memory, &m));
    CHECK_STR(m.type, "tmpfs");
    CHECK_STR(m.device, "tmpfs");
    CHECK_STR(m.options, "ro,nosuid");
    CHECK_STR(m.super_options, "rw,size=1k");
    CHECK(kernel_mount_find(text, STR("/"), &memory, &m));
    CHECK_STR(m.device, "/dev/vda1");
    CHECK(!kernel_mount_find(text, STR("/mnt"), &memory, &m));
    CHECK(!kernel_mount_find(text, STR("/short"), &memory, &m));
    CHECK(kernel_options_have(STR("ro,nosuid"), STR("nosuid")));
    CHECK(!kernel_options_have(STR("ro,nosuid"), STR("suid")));
}
