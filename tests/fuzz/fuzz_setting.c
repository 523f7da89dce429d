/* A format, a key, a value and a file: what is set is found, setting it again changes nothing,
 * removing it removes it, and lines of others stay. */
#include "agent/setting_edit.h"
#include "agent/text_edit.h"
#include "tests/fuzz/target.h"

/* No line is lost but those that hold the key. */
static uint32_t count_lines(struct str text)
{
    uint32_t n = 0;
    struct str line;
    while (text_next_line(&text, &line)) {
        n++;
    }
    return n;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct str head;
    struct str name;
    struct str value;
    struct str found;
    if (!str_cut(text, STR("\n"), &head, &text) || head.n == 0) {
        return;
    }
    struct setting_key key = { .format = (enum setting_format)((unsigned char)head.p[0] % 4) };
    (void)str_cut(str_sub(head, 1, head.n - 1), STR("|"), &name, &value); /* or it is empty */
    (void)str_cut(name, STR("/"), &key.section, &key.name);
    key.section = key.format == SETTING_INI ? key.section : STR("");
    key.separator = key.format == SETTING_SSHD ? STR(" ") : STR("=");
    if (setting_check(&key, value, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    struct str once;
    struct str twice;
    if (setting_set(&key, value, text, &memory, &once, &err) < 0) {
        return;
    }
    ASSERT(setting_find(&key, once, &memory, &found) && str_eq(found, value));
    ASSERT(setting_set(&key, value, once, &memory, &twice, &err) == 0 && str_eq(once, twice));
    ASSERT(count_lines(once) >= count_lines(text));
    ASSERT(setting_remove(&key, once, &memory, &twice, &err) == 0);
    ASSERT(!setting_find(&key, twice, &memory, &found));
}
