/*
 * json_fields: reading what drydock's own programs print for each other, member by member.
 *
 * Reading goes on behind what is missing: a newer program may say more, an older one less. Only
 * what has another meaning than we know is refused. Texts are copied to `out`.
 */
#pragma once

#include "format/json.h"

struct json_fields {
    struct arena *out;
    struct err *err;
};

struct str jr_text(const struct json_fields *in, const struct jval *v, const char *key);
bool jr_bool(const struct jval *v, const char *key);
uint32_t jr_u32(const struct jval *v, const char *key, uint32_t absent);

/* RFC 3339, wall clock; its error names the member. */
NODISCARD
int jr_time(const struct json_fields *in, const struct jval *v, const char *key, usec_t absent,
            usec_t *ret);

/* How many parts an array or object has, 0 when it is neither; more than `most` are refused, not
 * cut off. */
NODISCARD
int jr_count(const struct json_fields *in, const struct jval *list, uint32_t most, uint32_t *ret);
