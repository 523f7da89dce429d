#include "format/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct regex {
    pcre2_code *code;
};

static void *take(PCRE2_SIZE size, void *arena)
{
    return arena_alloc(arena, size);
}

static void leave(void *memory, void *arena)
{
    (void)memory; /* goes with its arena */
    (void)arena;
}

/* The offset of the first construct that RE2 does not have, or SIZE_MAX. */
static size_t find_foreign(struct str pattern)
{
    bool in_class = false;
    for (size_t i = 0; i < pattern.n; i++) {
        struct str rest = str_sub(pattern, i, pattern.n - i);
        if (rest.p[0] == '\\') {
            if (rest.n > 1 && strchr("123456789gkKGXRHNVh", rest.p[1]) != NULL) {
                return i;
            }
            i++;
        } else if (in_class) {
            in_class = rest.p[0] != ']';
        } else if (rest.p[0] == '[') {
            in_class = true;
            /* A ']' that comes first is a member of its class. */
            i += rest.n > 1 && rest.p[1] == '^' ? 1 : 0;
            i += i + 1 < pattern.n && pattern.p[i + 1] == ']' ? 1 : 0;
        } else if (str_starts(rest, STR("(*"))) {
            return i;
        } else if (str_starts(rest, STR("(?")) && rest.n > 2) {
            bool name = rest.p[2] == '<' && rest.n > 3 && rest.p[3] != '=' && rest.p[3] != '!';
            bool long_name = rest.p[2] == 'P' && rest.n > 3 && rest.p[3] == '<';
            if (!name && !long_name && strchr(":imsU-", rest.p[2]) == NULL) {
                return i;
            }
        }
    }
    return SIZE_MAX;
}

int regex_compile(struct str pattern, struct arena *out, struct regex **ret, struct err *err)
{
    if (pattern.n > REGEX_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "a regular expression has at most %u bytes",
                       REGEX_BYTES_MAX);
    }
    size_t foreign = find_foreign(pattern);
    if (foreign != SIZE_MAX) {
        return err_set(err, ERR_INVALID,
                       "regular expression '" STR_FMT "': what begins at byte %zu is not supported",
                       STR_ARG(pattern), foreign + 1);
    }
    pcre2_general_context *memory = pcre2_general_context_create(take, leave, out);
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t flags = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY |
                     PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)(pattern.n > 0 ? pattern.p : ""), pattern.n,
                                         flags, &code, &at, context);
    if (compiled == NULL) {
        PCRE2_UCHAR why[120];
        (void)pcre2_get_error_message(code, why, sizeof(why)); /* cut where it is too long */
        return err_set(err, ERR_INVALID, "regular expression '" STR_FMT "': %s at byte %zu",
                       STR_ARG(pattern), (const char *)why, at + 1);
    }
    struct regex *regex = ARENA_NEW(out, struct regex);
    regex->code = compiled;
    *ret = regex;
    return 0;
}

int regex_match(const struct regex *regex, struct str text, struct arena *tmp, bool *ret,
                struct err *err)
{
    pcre2_general_context *memory = pcre2_general_context_create(take, leave, tmp);
    pcre2_match_context *context = pcre2_match_context_create(memory);
    (void)pcre2_set_match_limit(context, REGEX_STEPS_MAX);
    (void)pcre2_set_depth_limit(context, REGEX_DEPTH_MAX);
    (void)pcre2_set_heap_limit(context, REGEX_HEAP_KIB_MAX);
    pcre2_match_data *data = pcre2_match_data_create(1, memory);
    int r = pcre2_match(regex->code, (PCRE2_SPTR)(text.n > 0 ? text.p : ""), text.n, 0, 0, data,
                        context);
    if (r < 0 && r != PCRE2_ERROR_NOMATCH) {
        return err_set(err, ERR_LIMIT, "matching the regular expression takes too long");
    }
    *ret = r >= 0;
    return 0;
}
