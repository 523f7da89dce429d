#include "kinds/request_name.h"

#include "base/buf.h"
#include "format/digest.h"

/* Names and types are compared in any case, so they count in one. */
static void add_lower(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        buf_add_char(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
}

struct str request_target_text(const struct request_target *target, struct arena *out)
{
    bool namespaced = target->namespace.n > 0;
    return arena_printf(out, STR_FMT " " STR_FMT "%s" STR_FMT, STR_ARG(target->type),
                        STR_ARG(target->namespace), namespaced ? "/" : "", STR_ARG(target->name));
}

struct str request_name_stem(struct str client, const struct request_target *target,
                             struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    /* None of the parts may hold a slash, so no two lists of them make one text. */
    buf_add(&text, client);
    buf_add_char(&text, '/');
    add_lower(&text, target->type);
    buf_add_char(&text, '/');
    buf_add(&text, target->namespace);
    buf_add_char(&text, '/');
    add_lower(&text, target->name);
    return arena_printf(out, "mr-%016llx-", (unsigned long long)sha256_u64(buf_str(&text)));
}

uint32_t request_name_number(struct str name, struct str stem)
{
    struct str rest;
    uint32_t number = 0;
    if (!str_cut_prefix(name, stem, &rest) || !str_to_u32(rest, &number)) {
        return 0;
    }
    return number;
}
