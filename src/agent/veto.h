/*
 * veto: what the owner of a machine forbids, whatever a list says: /etc/drydock/policy.conf.
 *
 *     # one rule a line
 *     deny type mount
 *     allow type file          (of types, only those that are allowed)
 *     deny path /etc/ssh*
 *     deny exec                (programs that a list brings)
 *     deny reboot
 *     mode noop                (say what would be done, do nothing)
 *
 * A file that cannot be read or followed forbids everything: a slip of the pen must not open what
 * was meant to be shut.
 */
#pragma once

#include "agent/resource.h"

#define VETO_PATH "/etc/drydock/policy.conf"

enum veto_kind { VETO_TYPE, VETO_PLACE, VETO_EXEC, VETO_REBOOT };

struct veto_rule {
    enum veto_kind kind;
    bool allow;
    struct str what; /* a type or a pattern of paths */
    uint32_t line;
};

struct veto {
    struct veto_rule *rules;
    uint32_t rule_n;
    bool noop;
    struct str broken; /* why everything is forbidden; empty = it is not */
};

/* Pure. The texts are copied. */
NODISCARD
int veto_parse(struct str text, struct arena *out, struct veto *ret, struct err *err);
/* The machine's own; nothing is forbidden where there is none. */
struct veto veto_load(struct root *root, struct arena *out);

/* `*ret_why` is a sentence that names the rule. `v` may be NULL. */
bool veto_forbids(const struct veto *v, const struct resource *r, struct arena *out,
                  struct str *ret_why);
