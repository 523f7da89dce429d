/* Two versions, one a line: each is read back as it was, and their order does not depend on who
 * asks. */
#include "format/semver.h"
#include "tests/fuzz/target.h"

static bool read_version(struct str text, struct semver *ret)
{
    struct err err = { 0 };
    if (semver_parse(text, ret, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return false;
    }
    CLEANUP(buf_done)
    struct buf printed = { 0 };
    buf_printf(&printed, "%llu.%llu.%llu", (unsigned long long)ret->major,
               (unsigned long long)ret->minor, (unsigned long long)ret->patch);
    if (ret->prerelease.n > 0) {
        buf_add_char(&printed, '-');
        buf_add(&printed, ret->prerelease);
    }
    if (ret->build.n > 0) {
        buf_add_char(&printed, '+');
        buf_add(&printed, ret->build);
    }
    ASSERT(str_eq(buf_str(&printed), text));
    return true;
}

FUZZ_TARGET(text)
{
    struct str left;
    struct str right;
    struct semver a;
    struct semver b;
    (void)str_cut(text, STR("\n"), &left, &right); /* without a second line it is empty */
    bool both = read_version(left, &a);
    both = read_version(right, &b) && both;
    if (both) {
        int order = semver_cmp(&a, &b);
        ASSERT(order >= -1 && order <= 1);
        ASSERT(semver_cmp(&b, &a) == -order);
        ASSERT(semver_cmp(&a, &a) == 0);
    }
}
