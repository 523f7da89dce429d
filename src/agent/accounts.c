#include "agent/accounts.h"

#define PARTS_MAX 10u
#define NAME_MAX_BYTES 32u

/* The parts of the next line that could be an entry; false at the end. */
static bool next_parts(struct str *rest, struct str parts[PARTS_MAX], uint32_t *ret_n)
{
    struct str line;
    while (rest->n > 0 && str_split_next(rest, '\n', &line)) {
        if (line.n == 0 || line.p[0] == '#' || line.p[0] == '+' || line.p[0] == '-' ||
            line.p[0] == ':') {
            continue;
        }
        uint32_t n = 0;
        while (n < PARTS_MAX && str_split_next(&line, ':', &parts[n])) {
            n++;
        }
        *ret_n = n;
        return true;
    }
    return false;
}

bool account_next(struct str *rest, struct account *ret)
{
    struct str parts[PARTS_MAX];
    uint32_t n;
    while (next_parts(rest, parts, &n)) {
        struct account a = { .name = parts[0] };
        if (n == 7 && str_to_u32(parts[2], &a.uid) && str_to_u32(parts[3], &a.gid)) {
            a.comment = parts[4];
            a.home = parts[5];
            a.shell = parts[6];
            *ret = a;
            return true;
        }
    }
    return false;
}

bool account_group_next(struct str *rest, struct account_group *ret)
{
    struct str parts[PARTS_MAX];
    uint32_t n;
    while (next_parts(rest, parts, &n)) {
        struct account_group g = { .name = parts[0] };
        if (n == 4 && str_to_u32(parts[2], &g.gid)) {
            g.members = parts[3];
            *ret = g;
            return true;
        }
    }
    return false;
}

bool account_shadow_next(struct str *rest, struct account_shadow *ret)
{
    struct str parts[PARTS_MAX];
    uint32_t n;
    while (next_parts(rest, parts, &n)) {
        if (n >= 2) {
            *ret = (struct account_shadow){ .name = parts[0], .hash = parts[1] };
            return true;
        }
    }
    return false;
}

bool account_find(struct str passwd, struct str name, struct account *ret)
{
    struct account a;
    while (account_next(&passwd, &a)) {
        if (str_eq(a.name, name)) {
            *ret = a;
            return true;
        }
    }
    return false;
}

bool account_find_uid(struct str passwd, uint32_t uid, struct account *ret)
{
    struct account a;
    while (account_next(&passwd, &a)) {
        if (a.uid == uid) {
            *ret = a;
            return true;
        }
    }
    return false;
}

bool account_group_find(struct str groups, struct str name, struct account_group *ret)
{
    struct account_group g;
    while (account_group_next(&groups, &g)) {
        if (str_eq(g.name, name)) {
            *ret = g;
            return true;
        }
    }
    return false;
}

bool account_group_find_gid(struct str groups, uint32_t gid, struct account_group *ret)
{
    struct account_group g;
    while (account_group_next(&groups, &g)) {
        if (g.gid == gid) {
            *ret = g;
            return true;
        }
    }
    return false;
}

bool account_shadow_find(struct str shadow, struct str name, struct account_shadow *ret)
{
    struct account_shadow s;
    while (account_shadow_next(&shadow, &s)) {
        if (str_eq(s.name, name)) {
            *ret = s;
            return true;
        }
    }
    return false;
}

bool account_group_has(const struct account_group *group, struct str member)
{
    struct str rest = group->members;
    struct str name;
    while (str_split_next(&rest, ',', &name)) {
        if (name.n > 0 && str_eq(name, member)) {
            return true;
        }
    }
    return false;
}

bool account_name_is_good(struct str name)
{
    if (name.n == 0 || name.n > NAME_MAX_BYTES || name.p[0] == '-') {
        return false;
    }
    bool digits = true;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool digit = c >= '0' && c <= '9';
        bool good = digit || (c >= 'a' && c <= 'z') || c == '_' || c == '-' ||
                    (c == '$' && i + 1 == name.n && i > 0);
        if (!good) {
            return false;
        }
        digits = digits && digit;
    }
    return !digits; /* a name of digits would be taken for a number */
}

bool account_number_is_good(int64_t number)
{
    return number >= 0 && number < (int64_t)UINT32_MAX - 1;
}

bool account_text_is_good(struct str text)
{
    bool good = true;
    for (size_t i = 0; i < text.n && good; i++) {
        unsigned char c = (unsigned char)text.p[i];
        good = c >= 0x20 && c != 0x7f && c != ':';
    }
    return good;
}
