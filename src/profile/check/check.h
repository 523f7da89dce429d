/*
 * check: one plugin a file; each answers for one node whether it passes, why, and when the answer
 * could change by itself.
 *
 * Checks are pure: they read the edited node, the fleet, the facts and the time. Facts that have to
 * be asked for (Prometheus, Leases, pods) they name as a want; until the answer is there the
 * verdict is PENDING, which does not pass. Texts are made only when
 * somebody will read them (`explain`), for most decisions are made for nobody's eyes.
 */
#pragma once

#include "base/mutation.h"
#include "profile/config.h"
#include "profile/facts.h"
#include "profile/fleet.h"
#include "profile/node_edit.h"

enum check_answer {
    CHECK_FAIL,
    CHECK_PASS,
    CHECK_ERROR,   /* it is not known, `error` says why. The chain fails */
    CHECK_PENDING, /* not known yet, and wanted. The chain does not pass, without an error */
};

struct check_input {
    const struct config *config;
    const struct node_edit *edit;
    const struct fleet *fleet;
    const struct facts *facts;
    struct str profile;          /* whose transition it is */
    enum profile_state state;    /* of that profile */
    struct timestamp transition; /* when it came into that state */
    struct timestamp now;        /* UTC */
    bool granted; /* the ledger holds a grant of this node for this profile: limits and
                   * staggers that it took do not hold it back */
    bool explain; /* make info and reason */
    struct arena *out;
    MUTATIONS_FIELD;
};

struct check_verdict {
    enum check_answer answer;
    usec_t next;      /* wall time; USEC_NEVER: not before something is observed */
    struct str error; /* CHECK_ERROR, explain or not: one line */
    struct str info;  /* explain: a JSON object as /api/v1/info shows it, keys sorted; empty = {} */
    struct str reason; /* explain: in words, with current numbers, for people; may be empty */
    struct facts_want *wants; /* what would have to be asked for, or asked for again */
    uint32_t want_n;
    bool reads_pods;      /* it looked at the pods of the node itself */
    uint64_t limit_group; /* maxMaintenance, passing or not: a hash of the instance and the group;
                           * nodes that wait for the same group wait in one queue */
};

/* `index` is that of config->instances[PLUGIN_CHECK]. */
void check_run(const struct check_input *in, uint32_t index, struct check_verdict *ret);

/* maxMaintenance: how many more nodes of the group may go into maintenance now (may be negative).
 * `*ret_next` is when that number could grow by itself (skipAfter). */
int64_t check_group_left(const struct check_input *in, uint32_t index, usec_t *ret_next);
/* maxMaintenance: the labels that make the node's group, "zone=a,pool=b"; empty: all nodes are one
 * group. */
struct str check_group_text(const struct check_input *in, uint32_t index);
