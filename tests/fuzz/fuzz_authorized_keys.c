/* authorized_keys: a key that is put in is found, putting it in again changes nothing, taking it
 * out removes it and no other key. */
#include "agent/authorized_keys.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct authorized_keys_edit edit = { 0 };
    struct str line;
    struct str found;
    if (!str_cut(text, STR("\n"), &line, &text)) {
        return;
    }
    (void)authorized_options_are_good(line); /* any bytes */
    if (authorized_key_parse(line, &memory, &edit.key, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    struct str once = authorized_keys_edit(&edit, text, &memory);
    ASSERT(authorized_keys_find(&edit.key, once, &found));
    ASSERT(str_eq(authorized_keys_edit(&edit, once, &memory), once));
    edit.absent = true;
    struct str without = authorized_keys_edit(&edit, once, &memory);
    ASSERT(!authorized_keys_find(&edit.key, without, &found));
    ASSERT(str_eq(authorized_keys_restore(&edit.key, STR(""), STR(""), once, &memory), without));
    edit.absent = false;
    edit.exclusive = true;
    ASSERT(authorized_keys_find(&edit.key, authorized_keys_edit(&edit, text, &memory), &found));
}
