/*
 * esx_decide: what is to be done about the nodes of an ESX host, from what is known. Pure.
 *
 * A host that goes into maintenance mode waits until nothing runs on it. Its nodes are told by a
 * label. A node that somebody has approved is cordoned, drained, and its machine is shut down; a
 * machine whose system does not end in time is switched off. When the host is back, machines that
 * were shut down here are switched on, and their nodes are uncordoned.
 *
 * Each step follows from what the Node object and the vCenter say, so a controller that begins
 * anywhere goes on where the last one stopped. What is irreversible comes last: a machine is shut
 * down only if its Node, as the server has it, says that its host is in maintenance, that it may
 * be, and that this controller began it; if it holds its place under the limits, if its pods are
 * gone, and if the host still is in maintenance. That it was told to end is on the Node before it
 * is: a machine that ends slowly is not taken for one that stays on, when its host is back
 * meanwhile.
 */
#pragma once

#include "base/mutation.h"
#include "integration/vim25.h"

/* What a vCenter says of a host; the values of the label are esx_mode_text's. */
enum esx_mode {
    ESX_UNKNOWN, /* the vCenter cannot be asked, or does not know the host */
    ESX_FALSE,
    ESX_TRUE,  /* in maintenance mode, or on the way there */
    ESX_ALARM, /* an alarm of the configuration is triggered: its nodes leave without grace */
};

struct str esx_mode_text(enum esx_mode mode);

/* What is known of a host. `hosts` have its name; `problem` says why it is ESX_UNKNOWN. */
struct esx_host_facts {
    const struct vim25_host *host;     /* NULL: unknown */
    const struct vim25_objects *known; /* with its tasks and alarms */
    const struct str *alarms;          /* that count, by name */
    uint32_t alarm_n;
};
enum esx_mode esx_decide_mode(const struct esx_host_facts *facts);

struct esx_settings {
    bool whole_host; /* machines are shut down when all nodes of their host are approved */
    usec_t shutdown_period;
    usec_t shutdown_timeout;
};

struct esx_node_facts {
    /* Of the Node, as the server has it. */
    enum esx_mode label; /* ESX_UNKNOWN for any other value, and none */
    bool approved;
    bool initiated; /* a shutdown was begun, and is not undone */
    bool cordoned;
    /* Of the host. */
    enum esx_mode mode;
    bool all_approved;
    /* Of the vCenter. */
    uint32_t vm_n;             /* machines of that name */
    const struct vim25_vm *vm; /* if there is one */
    bool elsewhere;            /* it runs on another host */
    /* Of what is under way. */
    bool reserved; /* it has its place under the limits */
    bool drained;
    bool calling;             /* a call about its machine is in flight */
    usec_t shutdown_at;       /* since when the Node says that it is told to end; 0 = it does not */
    bool asked;               /* its system was, by this controller */
    bool switched_on;         /* it was, by this controller, after it had been off */
    enum vim25_fault refusal; /* of that, the last time */
    usec_t retry_at;          /* nothing is asked of the machine before; monotonic */
};

enum esx_step {
    ESX_STEP_NONE,     /* there is nothing to do */
    ESX_STEP_APPROVAL, /* waits for somebody who allows it */
    ESX_STEP_RESERVE,  /* waits for its place under the limits */
    ESX_STEP_MARK,     /* the Node is to say that it begins, and to be cordoned */
    ESX_STEP_DRAIN,
    ESX_STEP_NOTE,     /* the Node is to say since when its machine is told to end */
    ESX_STEP_SHUTDOWN, /* ask the system to end */
    ESX_STEP_POWER_OFF,
    ESX_STEP_WAIT, /* for the machine, or for the call in flight */
    ESX_STEP_OFF,  /* the machine is off, and stays so */
    ESX_STEP_POWER_ON,
    ESX_STEP_RELEASE, /* the Node is to be uncordoned, and to say that it is over */
    ESX_STEP_PROBLEM, /* `problem` says why nothing can be done */
};

struct esx_plan {
    enum esx_step step;
    bool reserve;      /* it needs its place under the limits, or keeps it */
    bool drain;        /* its pods are to go */
    usec_t next;       /* monotonic: when the answer could change by itself; USEC_NEVER */
    const char *words; /* what it does or waits for */
    const char *error; /* what keeps it from that; NULL = nothing */
};

void esx_decide_node(const struct esx_settings *settings, const struct esx_node_facts *facts,
                     usec_t now, struct esx_plan *ret);

/* The known bugs of base/mutation.h (mutations.c); builds without them have no such functions. */
#ifdef MUTATIONS
void mutate_esx_facts(mutations_t set, usec_t now, struct esx_node_facts *facts);
void mutate_esx_plan(mutations_t set, const struct esx_node_facts *facts, struct esx_plan *plan);
#else
#define mutate_esx_facts(set, now, facts) ((void)0)
#define mutate_esx_plan(set, facts, plan) ((void)0)
#endif
