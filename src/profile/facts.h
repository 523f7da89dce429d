/*
 * facts: what foreign systems answered, as the checks read it: a plain lookup.
 *
 * Who asks them is profile/inquiry.h. A fact that is not known, or is older than the configured
 * refresh interval, is named as a want by the check that needs it; an old answer counts until the
 * new one is there.
 */
#pragma once

#include "base/stamp.h"
#include "base/str.h"

enum facts_kind {
    FACTS_PROMETHEUS, /* by check instance: the answer is the same for every node */
    FACTS_STAGGER,    /* by check instance: its leases */
    FACTS_AFFINITY,   /* by node: whether it runs pods that prefer operational nodes */
};

struct facts_want {
    enum facts_kind kind;
    uint32_t index;  /* of the check instance */
    struct str node; /* FACTS_AFFINITY; borrowed: copied by whoever keeps it */
};

struct facts_prometheus {
    bool known;
    struct str error; /* empty = there is a value */
    double value;
    const struct str *warnings;
    uint32_t warning_n;
    usec_t asked; /* wall time */
};

struct facts_lease {
    bool known;
    bool absent;
    bool complete;    /* renewTime and leaseDurationSeconds are there */
    struct str error; /* it could not be read */
    struct str holder;
    struct stamp renewed;
    int64_t duration_s;
    usec_t asked;
};

struct facts_affinity {
    bool known;
    bool has;
    struct str error;
    usec_t asked;
};

struct facts; /* profile/inquiry.h keeps it */

struct facts_prometheus facts_prometheus(const struct facts *f, uint32_t index);
/* The i-th lease of a stagger. */
struct facts_lease facts_stagger(const struct facts *f, uint32_t index, uint32_t i);
struct facts_affinity facts_affinity(const struct facts *f, struct str node);
