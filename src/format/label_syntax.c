#include "format/label_syntax.h"

#define LABEL_NAME_MAX 63u
#define LABEL_VALUE_MAX 63u
#define SUBDOMAIN_MAX 253u

#define NAME_RULE                                                                                  \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define VALUE_RULE                                                                                 \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', " \
    " or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define SUBDOMAIN_RULE                                                                             \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

/* Alphanumeric at both ends, with '-', '_' and '.' between. */
static bool label_is_name(struct str s)
{
    if (s.n == 0 || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1])) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!is_alnum(c) && c != '-' && c != '_' && c != '.') {
            return false;
        }
    }
    return true;
}

static bool label_is_subdomain(struct str s)
{
    struct str rest = s.n > 0 ? s : STR("");
    struct str part;
    while (str_split_next(&rest, '.', &part)) {
        if (part.n == 0 || !is_lower_alnum(part.p[0]) || !is_lower_alnum(part.p[part.n - 1])) {
            return false;
        }
        for (size_t i = 0; i < part.n; i++) {
            if (!is_lower_alnum(part.p[i]) && part.p[i] != '-') {
                return false;
            }
        }
    }
    return true;
}

static void label_complain(struct buf *why, const char *subject, const char *what)
{
    if (why->n > 0) {
        buf_add(why, STR("; "));
    }
    buf_printf(why, "%s%s", subject, what);
}

static bool label_subdomain(struct str name, const char *subject, struct buf *why)
{
    bool good = true;
    if (name.n > SUBDOMAIN_MAX) {
        label_complain(why, subject, "must be no more than 253 bytes");
        good = false;
    }
    if (!label_is_subdomain(name)) {
        label_complain(why, subject, SUBDOMAIN_RULE);
        good = false;
    }
    return good;
}

bool label_key_check(struct str key, struct buf *why)
{
    size_t before = why->n;
    struct str prefix;
    struct str name;
    bool has_prefix = str_cut(key, STR("/"), &prefix, &name);
    if (!has_prefix) {
        name = key;
    } else if (str_find_char(name, '/') != SIZE_MAX) {
        label_complain(why, "a qualified name ",
                       NAME_RULE " with an optional DNS subdomain prefix and '/' (e.g. "
                                 "'example.com/MyName')");
        return false;
    } else if (prefix.n == 0) {
        label_complain(why, "prefix part ", "must be non-empty");
    } else {
        (void)label_subdomain(prefix, "prefix part ", why); /* `why` has grown if it is wrong */
    }
    if (name.n == 0) {
        label_complain(why, "name part ", "must be non-empty");
    } else if (name.n > LABEL_NAME_MAX) {
        label_complain(why, "name part ", "must be no more than 63 bytes");
    }
    if (!label_is_name(name)) {
        label_complain(why, "name part ", NAME_RULE);
    }
    return why->n == before;
}

bool label_value_check(struct str value, struct buf *why)
{
    bool good = true;
    if (value.n > LABEL_VALUE_MAX) {
        label_complain(why, "", "must be no more than 63 bytes");
        good = false;
    }
    if (value.n > 0 && !label_is_name(value)) {
        label_complain(why, "", VALUE_RULE);
        good = false;
    }
    return good;
}

bool label_subdomain_check(struct str name, struct buf *why)
{
    return label_subdomain(name, "", why);
}
