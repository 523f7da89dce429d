/* /proc/modules, modules.builtin, /proc/swaps and mountinfo: what is found is what was looked for.
 */
#include "agent/kernel_tables.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str name;
    struct kernel_module module;
    struct kernel_mount mount;
    struct str path;
    if (!str_cut(text, STR("\n"), &name, &text)) {
        return;
    }
    if (kernel_module_find(text, name, &module)) {
        ASSERT(kernel_module_same(module.name, name));
        ASSERT(kernel_module_find(text, module.name, &module));
    }
    if (kernel_module_is_builtin(text, name)) {
        ASSERT(str_contains(text, STR(".ko")));
    }
    if (kernel_mount_find(text, name, &memory, &mount)) {
        ASSERT(str_eq(mount.path, name) && mount.type.n > 0 && mount.device.n > 0);
        ASSERT(kernel_options_have(mount.options, mount.options) ||
               str_contains(mount.options, STR(",")));
    }
    for (uint32_t n = 0; kernel_swap_next(&text, &memory, &path) && n < 100; n++) {
        ASSERT(path.n > 0 && path.p[0] == '/');
    }
}
