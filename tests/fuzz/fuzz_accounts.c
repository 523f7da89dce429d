/* /etc/passwd, /etc/group and /etc/shadow: every entry is found by its name, and is one of the
 * text's own lines. */
#include "agent/accounts.h"
#include "tests/fuzz/target.h"

static bool is_inside(struct str part, struct str text)
{
    return part.n == 0 || (part.p >= text.p && part.p + part.n <= text.p + text.n);
}

FUZZ_TARGET(text)
{
    struct str rest = text;
    struct account a;
    struct account found;
    for (uint32_t n = 0; account_next(&rest, &a) && n < 100; n++) {
        ASSERT(is_inside(a.name, text) && is_inside(a.shell, text) && a.name.n > 0);
        ASSERT(account_find(text, a.name, &found) && str_eq(found.name, a.name));
        ASSERT(account_find_uid(text, a.uid, &found) && found.uid == a.uid);
    }
    struct account_group g;
    struct account_group other;
    rest = text;
    for (uint32_t n = 0; account_group_next(&rest, &g) && n < 100; n++) {
        ASSERT(is_inside(g.members, text));
        ASSERT(account_group_find(text, g.name, &other) && str_eq(other.name, g.name));
        ASSERT(account_group_find_gid(text, g.gid, &other) && other.gid == g.gid);
        ASSERT(!account_group_has(&g, STR("")));
    }
    struct account_shadow s;
    struct account_shadow same;
    rest = text;
    for (uint32_t n = 0; account_shadow_next(&rest, &s) && n < 100; n++) {
        ASSERT(is_inside(s.hash, text));
        ASSERT(account_shadow_find(text, s.name, &same) && str_eq(same.name, s.name));
    }
    (void)account_name_is_good(text); /* any bytes */
}
