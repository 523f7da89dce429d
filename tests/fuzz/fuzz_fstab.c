/* fstab: a line that is put in is found and says what was asked for, putting it in again changes
 * nothing, and what was there comes back. */
#include "agent/fstab.h"
#include "tests/fuzz/target.h"

static void fuzz_key(const struct fstab_key *key, const struct fstab_entry *entry, struct str text,
                     struct arena *memory)
{
    struct fstab_entry found;
    struct str lines = fstab_lines(key, text, memory);
    struct str with = fstab_edit(key, entry, text, memory);
    ASSERT(fstab_find(key, with, memory, &found));
    ASSERT(str_eq(found.device, entry->device) && str_eq(found.path, entry->path));
    ASSERT(str_eq(found.type, entry->type) && str_eq(found.options, entry->options));
    ASSERT(str_eq(fstab_edit(key, entry, with, memory), with));
    struct str without = fstab_edit(key, NULL, with, memory);
    ASSERT(!fstab_find(key, without, memory, &found));
    ASSERT(str_eq(fstab_edit(key, NULL, text, memory), fstab_restore(key, STR(""), text, memory)));
    struct str back = fstab_restore(key, lines, with, memory);
    ASSERT(str_eq(fstab_lines(key, back, memory), lines));
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str path;
    struct fstab_entry found;
    struct str rest = text;
    for (uint32_t n = 0; fstab_next(&rest, &memory, &found) && n < 100; n++) {
        ASSERT(found.raw.p >= text.p && found.raw.p + found.raw.n <= text.p + text.n);
    }
    if (!str_cut(text, STR("\n"), &path, &text) || path.n == 0) {
        return;
    }
    struct fstab_entry mount = {
        .device = STR("/dev/a b"), .path = path, .type = STR("ext4"), .options = STR("ro")
    };
    fuzz_key(&(struct fstab_key){ .path = path }, &mount, text, &memory);
    struct fstab_entry swap = {
        .device = path, .path = STR("none"), .type = STR("swap"), .options = STR("sw")
    };
    fuzz_key(&(struct fstab_key){ .swap = true, .device = path }, &swap, text, &memory);
    fuzz_key(&(struct fstab_key){ .swap = true }, &swap, text, &memory);
}
