/*
 * yaml_scalar: what a YAML 1.1 scalar means, as yaml.v2 resolves it: yes and off are booleans,
 * 0x1F, 0o17, 017, 0b11 and 1_000 are integers, 2026-01-02 is a string.
 */
#pragma once

#include "format/json.h"

struct yscalar {
    enum jkind kind;
    bool truth;      /* JBOOL */
    struct str text; /* JSTR: content; JNUM: a JSON number, with one of ".eE" if it is a float */
};

/* `tag` is empty for a plain scalar without one; "!!str" and "tag:yaml.org,2002:str" are the same.
 * Infinities and NaN, which JSON does not have, become the strings that Go prints. Fails when the
 * text is not what its tag says. */
NODISCARD
int yscalar_resolve(struct str text, struct str tag, struct arena *out, struct yscalar *ret,
                    struct err *err);
