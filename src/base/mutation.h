/*
 * mutation: known bugs that a test may switch on, to prove that the swarm finds them.
 *
 * Only builds with the meson option `mutations` have them. In every other build, the product's
 * among them, mutated() is false, the structs have no set of mutations, and no name of a mutation
 * gets into the program: `mutated(set, name)` mentions neither of its arguments.
 * tools/release-check proves it. Each name says what the mutated code does wrong.
 *
 * A struct declares its set with MUTATIONS_FIELD; mutations_copy() hands the set on from one struct
 * to another.
 */
#pragma once

#include "base/defs.h"

#ifdef MUTATIONS

enum mutation {
    MUTATION_SKIP_RV,             /* patches go out without their resourceVersion */
    MUTATION_ACT_WITHOUT_LEASE,   /* sends whether it leads or not */
    MUTATION_LOSE_DELETIONS,      /* a relist keeps what the new list does not have */
    MUTATION_IGNORE_410,          /* an expired resourceVersion is asked for again and again */
    MUTATION_STALE_OVERWRITE,     /* an older watch event overwrites what a reply said */
    MUTATION_NO_RESYNC_AFTER_CUT, /* a watch that broke is not opened again */
    MUTATION_LEASE_BY_WALL_CLOCK, /* judges another's lease by comparing wall clocks */
    MUTATION_LEASE_NEVER_STOPS,   /* holds its lease for ever once it has it, renewed or not */
    MUTATION_DROP_FAILED_NODE,    /* a node whose patch failed is not tried again */
    MUTATION_RELEASE_OTHERS,      /* releases the lease at the end whoever holds it */
    MUTATION_DATA_BYTES_WRONG,    /* writes the data annotation with a space Go would not write */
    MUTATION_GRANT_UNRECORDED,    /* goes into maintenance on a version the ledger does not name */
    MUTATION_FORGET_GRANTS,       /* a new leader does not count what the last one recorded */
    MUTATION_LEDGER_BY_FORCE,     /* records grants whoever has written the Lease meanwhile */
    MUTATION_DRAIN_AT_ONCE,       /* drains before the cordon is on the server */
    MUTATION_PAST_BUDGET,         /* deletes pods that a budget holds, without being asked to */
    MUTATION_UNCORDON_OTHERS,     /* lifts cordons that others made */
    MUTATION_TWO_PROFILES,        /* a node in maintenance goes there by another profile, too */
    MUTATION_WINDOW_IGNORED,      /* goes at any time, whatever the windows say */
    MUTATION_TELL_NOBODY,         /* a message that was refused counts as sent */
    MUTATION_BAD_FILE_STOPS,      /* a configuration that cannot be read ends all work */
    MUTATION_BOOKS_BY_FORCE,      /* writes reservations whoever has written the limit meanwhile */
    MUTATION_RELEASE_EARLY,       /* gives reservations back before the cordon is lifted */
    MUTATION_NO_DOUBLE_CHECK,     /* approves on what was known when the place was reserved */
    MUTATION_NO_LOCK,             /* reserves without the lock of the target */
    MUTATION_PAUSE_IGNORED,       /* grants under limits that are paused */
    MUTATION_ALL_PAUSED_IGNORED,  /* grants and drains while everything is paused */
    MUTATION_TIMEOUT_EARLY,       /* time limits run out at half their time */
    MUTATION_STRIKE_BY_REQUEST,   /* takes away what is there of a request, whatever grant it is */
    MUTATION_FORGED_ADOPTED,      /* believes requests that say themselves that they are granted */
    MUTATION_ORDER_IGNORED,       /* pods go at once, whatever order their rules give them */
    MUTATION_STALE_ANSWERS,       /* goes on what another system said, however long ago */
    MUTATION_MESSAGES_REQUIRED,   /* a message that cannot be sent holds up its profile */
    MUTATION_CORDON_LEFT,         /* a profile that leaves a node leaves its cordon behind */
    /* Of the bridge. */
    MUTATION_HOOK_UNAPPROVED, /* lets a Machine go as soon as its Node has been asked */
    MUTATION_HOOK_AGAIN,      /* puts the hook back on a Machine that it has let go */
    MUTATION_HOOK_AWAY,       /* lets a Machine go whose cluster cannot be asked */
    MUTATION_APPROVED_BEFORE, /* an approval counts whatever request it was given for */
    MUTATION_PAIR_BY_NODE,    /* believes a Node that says whose it is */
    MUTATION_MARKS_STAY,      /* a Machine that is disabled leaves its marks on the Node */
    MUTATION_NODE_BLIND,      /* patches Nodes without their resourceVersion */
    MUTATION_WRITE_PAUSED,    /* writes to what is paused */
    MUTATION_LINK_STALE,      /* Nodes of one server are compared with those of the next */
    MUTATION_LINK_DEAF,       /* a link that has broken counts as one that sees no Node */
    MUTATION_MISSED_ONCE,     /* one read is enough to say that a Node is gone */
    MUTATION_MEMBERS_AT_ONCE, /* members of a control plane do not wait for each other */
    MUTATION_HOLD_EARLY,      /* a deletion is held for half its time limit */
    MUTATION_RULES_LEFT_OUT,  /* asks a Node without the drain rules */
    MUTATION_RULES_OF_ALL,    /* takes the drain rules of other namespaces, too */
    MUTATION_RULES_ONCE,      /* drain rules stay as they were when the Node was asked */
    MUTATION_RULES_STAY,      /* drain rules stay when nobody asks for the Node any more */
    /* Of its Metal3 hosts. */
    MUTATION_HOST_UNAPPROVED,    /* switches a host off as soon as a maintenance is asked for */
    MUTATION_HOST_OF_OTHERS,     /* switches a host off that another Machine has */
    MUTATION_HOST_UNPROVISIONED, /* switches a host off in whatever state it is */
    MUTATION_HOST_UNDRAINED,     /* does not wait for the Node to be drained */
    MUTATION_HOST_UNOWNED,       /* does not say for which Machine a host is off */
    MUTATION_HOST_PAUSED,        /* writes to hosts that are paused */
    MUTATION_HOST_BLIND,         /* patches hosts without their resourceVersion */
    MUTATION_HOST_ON_AWAY,       /* switches a host on when its cluster cannot be asked */
    MUTATION_HOST_NOT_AGAIN,     /* does not put back what somebody took away */
    MUTATION_HOST_LEFT_OFF,      /* leaves a host off whose Machine is gone */
    MUTATION_HOST_STRIPPED,      /* takes away what others have written, too */
    MUTATION_HOST_POWER_STALE,   /* says once whether a host is on */
    /* Of nodes on ESX hosts. */
    MUTATION_ESX_UNAPPROVED,    /* takes every node for approved */
    MUTATION_ESX_ONE_IS_ENOUGH, /* takes one approved node for all of its host */
    MUTATION_ESX_BY_LABEL,      /* believes the label of a node, whatever its vCenter says */
    MUTATION_ESX_UNDRAINED,     /* does not wait for pods */
    MUTATION_ESX_UNMARKED,      /* does not say on the Node that it begins */
    MUTATION_ESX_UNNOTED,       /* does not say on the Node that its machine is told to end */
    MUTATION_ESX_ELSEWHERE,     /* ends machines that run on other hosts */
    MUTATION_ESX_LET_GO,        /* lets a node go whose machine was told to end */
    MUTATION_ESX_LEFT_OFF,      /* leaves machines off when their host is back */
    MUTATION_ESX_ON_TOO_EARLY,  /* switches machines on as soon as they are off */
    MUTATION_ESX_UNRESERVED,    /* takes nodes whatever the limits say */
    MUTATION_ESX_CORDON_OURS,   /* takes every cordon for its own */
    MUTATION_ESX_READ_LONG_AGO, /* goes on what a vCenter said when it last led */
    /* Of NodeMaintenances. */
    MUTATION_VISIT_ANY_TIME,    /* visits begin whatever the windows say */
    MUTATION_VISITS_UNCOUNTED,  /* as many visits at once as there are machines */
    MUTATION_SPREAD_IGNORED,    /* as many visits in one zone as there are places */
    MUTATION_VISIT_UNGRANTED,   /* visits begin before their request is approved */
    MUTATION_RUN_REPEATED,      /* what a machine has done is forgotten */
    MUTATION_JOB_UNRECORDED,    /* acts while the record of it is being written */
    MUTATION_REBOOT_AGAIN,      /* orders one more reboot while the machine settles */
    MUTATION_VISIT_CORDON_LEFT, /* a visit ends and leaves its cordon */
    MUTATION_REQUEST_LEFT,      /* the request of a visit whose Node is gone stays */
    MUTATION_PLACE_LEFT,        /* a visit ends and its place is not given back */
    MUTATION_COUNT,
};

/* A set of mutations, bit by bit. */
__extension__ typedef unsigned __int128 mutations_t;

_Static_assert(MUTATION_COUNT <= 8 * sizeof(mutations_t), "a set has a bit for each");

#define MUTATION_BIT(m) ((mutations_t)1 << (m))

#define MUTATIONS_FIELD mutations_t mutations
#define mutations_copy(to, from) ((void)((to)->mutations = (from)->mutations))

static inline bool mutated(mutations_t set, enum mutation m)
{
    return (set & MUTATION_BIT(m)) != 0;
}

#else

/* A member that declares nothing. */
#define MUTATIONS_FIELD _Static_assert(true, "")
#define mutations_copy(to, from) ((void)0)
#define mutated(set, m) false

#endif
