#include "format/semver.h"

static bool is_number(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') {
            return false;
        }
    }
    return true;
}

static bool is_identifier(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char lower = (char)(s.p[i] | 0x20);
        bool letter = lower >= 'a' && lower <= 'z';
        bool digit = s.p[i] >= '0' && s.p[i] <= '9';
        if (!letter && !digit && s.p[i] != '-') {
            return false;
        }
    }
    return true;
}

static int read_u64(struct str digits, uint64_t *ret, struct err *err)
{
    if (digits.n == 0) {
        return err_set(err, ERR_INVALID, "A number is missing");
    }
    if (!str_to_u64(digits, ret)) {
        return err_set(err, ERR_INVALID, "Number \"" STR_FMT "\" does not fit 64 bits",
                       STR_ARG(digits));
    }
    return 0;
}

/* `name` begins the sentence about leading zeros; within a sentence it is written small. */
static int read_part(struct str digits, const char *name, uint64_t *ret, struct err *err)
{
    if (!is_number(digits)) {
        return err_set(err, ERR_INVALID,
                       "Invalid character(s) found in %c%s number \"" STR_FMT "\"", name[0] | 0x20,
                       name + 1, STR_ARG(digits));
    }
    if (digits.n > 1 && digits.p[0] == '0') {
        return err_set(err, ERR_INVALID,
                       "%s number must not contain leading zeroes \"" STR_FMT "\"", name,
                       STR_ARG(digits));
    }
    return read_u64(digits, ret, err);
}

static int check_prerelease(struct str identifier, struct err *err)
{
    uint64_t number;
    if (identifier.n == 0) {
        return err_set(err, ERR_INVALID, "Prerelease is empty");
    }
    if (is_number(identifier)) {
        if (identifier.n > 1 && identifier.p[0] == '0') {
            return err_set(err, ERR_INVALID,
                           "Numeric PreRelease version must not contain leading zeroes \"" STR_FMT
                           "\"",
                           STR_ARG(identifier));
        }
        return read_u64(identifier, &number, err);
    }
    if (!is_identifier(identifier)) {
        return err_set(err, ERR_INVALID, "Invalid character(s) found in prerelease \"" STR_FMT "\"",
                       STR_ARG(identifier));
    }
    return 0;
}

static int check_build(struct str identifier, struct err *err)
{
    if (identifier.n == 0) {
        return err_set(err, ERR_INVALID, "Build meta data is empty");
    }
    if (!is_identifier(identifier)) {
        return err_set(err, ERR_INVALID,
                       "Invalid character(s) found in build meta data \"" STR_FMT "\"",
                       STR_ARG(identifier));
    }
    return 0;
}

static int check_each(struct str dotted, int (*check)(struct str, struct err *), struct err *err)
{
    struct str identifier;
    int r = 0;
    while (r == 0 && str_split_next(&dotted, '.', &identifier)) {
        r = check(identifier, err);
    }
    return r;
}

int semver_parse(struct str text, struct semver *ret, struct err *err)
{
    struct semver v = { 0 };
    struct str major;
    struct str minor;
    struct str patch;
    if (text.n == 0) {
        return err_set(err, ERR_INVALID, "Version string empty");
    }
    if (!str_cut(text, STR("."), &major, &minor) || !str_cut(minor, STR("."), &minor, &patch)) {
        return err_set(err, ERR_INVALID, "No Major.Minor.Patch elements found");
    }
    bool has_build = str_cut(patch, STR("+"), &patch, &v.build);
    bool has_prerelease = str_cut(patch, STR("-"), &patch, &v.prerelease);
    int r = read_part(major, "Major", &v.major, err);
    if (r == 0) {
        r = read_part(minor, "Minor", &v.minor, err);
    }
    if (r == 0) {
        r = read_part(patch, "Patch", &v.patch, err);
    }
    if (r == 0 && has_prerelease) {
        r = check_each(v.prerelease, check_prerelease, err);
    }
    if (r == 0 && has_build) {
        r = check_each(v.build, check_build, err);
    }
    if (r == 0) {
        *ret = v;
    }
    return r;
}

static int cmp_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Numbers come before words. Without leading zeros, the longer of two numbers is the larger. */
static int cmp_identifier(struct str a, struct str b)
{
    bool a_number = is_number(a);
    bool b_number = is_number(b);
    if (a_number != b_number) {
        return a_number ? -1 : 1;
    }
    if (a_number && a.n != b.n) {
        return cmp_u64(a.n, b.n);
    }
    int r = str_cmp(a, b);
    return r < 0 ? -1 : r > 0 ? 1 : 0;
}

static int cmp_prerelease(struct str a, struct str b)
{
    if (a.n == 0 || b.n == 0) {
        return a.n == b.n ? 0 : a.n == 0 ? 1 : -1;
    }
    for (;;) {
        struct str left;
        struct str right;
        bool more_left = str_split_next(&a, '.', &left);
        bool more_right = str_split_next(&b, '.', &right);
        if (!more_left || !more_right) {
            return more_left ? 1 : more_right ? -1 : 0;
        }
        int r = cmp_identifier(left, right);
        if (r != 0) {
            return r;
        }
    }
}

int semver_cmp(const struct semver *a, const struct semver *b)
{
    int r = cmp_u64(a->major, b->major);
    if (r == 0) {
        r = cmp_u64(a->minor, b->minor);
    }
    if (r == 0) {
        r = cmp_u64(a->patch, b->patch);
    }
    return r != 0 ? r : cmp_prerelease(a->prerelease, b->prerelease);
}
