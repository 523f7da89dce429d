/* schema_format: what a schema's `pattern` and `format` say about a string (schema.h). */
#include "base/duration.h"
#include "base/timestamp.h"
#include "format/regex.h"
#include "sandbox/apiserver/schema.h"

#define UUID_PATTERN "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
#define IPV4_BYTE "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
#define IPV4_PATTERN "^" IPV4_BYTE "(\\." IPV4_BYTE "){3}$"

bool schema_pattern_matches(struct str pattern, struct str text)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct regex *regex;
    struct err err;
    bool matches = true;
    if (regex_compile(pattern, &tmp, &regex, &err) < 0 ||
        regex_match(regex, text, &tmp, &matches, &err) < 0) {
        return true;
    }
    return matches;
}

static bool is_base64(struct str s)
{
    size_t padding = 0;
    while (s.n > 0 && s.p[s.n - 1] == '=' && padding < 2) {
        s.n--;
        padding++;
    }
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '+' || c == '/')) {
            return false;
        }
    }
    return (s.n + padding) % 4 == 0;
}

static bool is_date(struct str s)
{
    char text[32];
    if (s.n != 10) {
        return false;
    }
    (void)snprintf(text, sizeof(text), STR_FMT "T00:00:00Z", STR_ARG(s)); /* 10 bytes fit */
    struct timestamp stamp;
    struct err err;
    return timestamp_parse(str_from(text), &stamp, &err) == 0;
}

bool schema_format_matches(struct str format, struct str text)
{
    struct err err;
    if (str_eq(format, STR("date-time"))) {
        struct timestamp stamp;
        return timestamp_parse(text, &stamp, &err) == 0;
    }
    if (str_eq(format, STR("date"))) {
        return is_date(text);
    }
    if (str_eq(format, STR("byte"))) {
        return is_base64(text);
    }
    if (str_eq(format, STR("duration"))) {
        int64_t ns;
        return duration_parse(text, &ns, &err) == 0;
    }
    if (str_eq(format, STR("uuid"))) {
        return schema_pattern_matches(STR(UUID_PATTERN), text);
    }
    if (str_eq(format, STR("ipv4"))) {
        return schema_pattern_matches(STR(IPV4_PATTERN), text);
    }
    return true;
}
