/* dpkg's status: every entry is one of the text's own, is found by its name, and an installed one
 * is preferred. */
#include "agent/dpkg_status.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    struct str rest = text;
    struct dpkg_package p;
    struct dpkg_package found;
    for (uint32_t n = 0; n < 20 && dpkg_next(&rest, &p); n++) {
        ASSERT(p.name.n > 0 && p.name.p >= text.p && p.name.p + p.name.n <= text.p + text.n);
        if (str_find_char(p.name, ':') == SIZE_MAX) {
            ASSERT(dpkg_find(text, p.name, &found) && str_eq(found.name, p.name));
            ASSERT(!dpkg_is_installed(&p) || dpkg_is_installed(&found));
        }
    }
    (void)dpkg_is_interrupted(text); /* any bytes */
    (void)dpkg_name_is_good(text);
    (void)dpkg_version_is_good(text);
    ASSERT(!apt_would_install(text, STR("")) || str_contains(text, STR("Inst")));
}
