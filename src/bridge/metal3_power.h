/*
 * metal3_power: when a Metal3 host is switched off for the maintenance of its Machine, and on again.
 *
 * Pure, as rules.h. Our annotation has a suffix, so Metal3 keeps the host off for as long as it is
 * there. It is put only while the Machine is approved, and is taken away in every other case, also
 * when the Machine is gone. To take it away is to switch the host on, so it follows from facts
 * alone: whoever asks knows all Machines and Clusters, or does not ask.
 *
 * Several Machines may name one host, by mistake or on purpose. A host belongs to the Machine whose
 * infrastructure object its consumerRef names, and no other may switch it off. The annotation
 * belongs to the Machine that KEY_REBOOT_OWNER names: no other touches it, so two that want
 * different things never fight over a switch.
 */
#pragma once

#include "bridge/metal3_host.h"
#include "bridge/cluster.h"
#include "bridge/metadata_patch.h"
#include "bridge/machine.h"
#include "bridge/workload_node.h"

struct power_options {
    bool any_machine;     /* --metal3-require-enabled=false: as the original, whoever asks */
    bool require_drained; /* --metal3-require-drained */
};

enum power_form { POWER_NONE, POWER_NAMED, POWER_UID };

/* A provider id of Metal3: "metal3://namespace/host/machine", or the old "metal3://<UID>". */
struct power_host {
    enum power_form form;
    struct str space;
    struct str name;
    struct str uid;
};
struct power_host power_host_of(struct str provider);

/* Whose verdict counts for a host: of the Machines that name it, that with the greatest claim.
 * Where an owner is named (KEY_REBOOT_OWNER) but is not among all Machines there are, or where our
 * annotation is there and no Machine names the host, it is that of no Machine (NULL). */
enum power_claim {
    POWER_CLAIM_NONE,     /* it does not name the host */
    POWER_CLAIM_PROVIDER, /* its provider id does, and nothing else speaks for it */
    POWER_CLAIM_CONSUMER, /* the host's consumerRef names its infrastructure object */
    POWER_CLAIM_OWNER,    /* it was switched off for this one; whatever its provider id says now */
};
enum power_claim power_claim(const struct machine *m, const struct bmhost *host);

struct power_facts {
    const struct machine *machine; /* NULL = the host's owner is gone */
    const struct cluster *cluster; /* of the machine; NULL = there is none */
    const struct bmhost *host;     /* NULL = the one that the machine names is not there */
    /* With require_drained: the Node is cordoned, and no pod is left that a drain would take away.
     * It counts before the host is switched off. Afterwards its Node may not be there to be asked,
     * and a host must not start while somebody works on it. */
    bool drained;
    struct str undrained; /* why not, half a sentence; empty = nobody has looked yet */
};

struct power_verdict {
    struct edit host;
    struct edit machine; /* KEY_POWER */
    /* Why the host is not switched off: "NotProvisioned"; or "Off". A constant. */
    const char *reason;
    struct str message; /* a sentence */
};

/* Texts live in `out`, or are borrowed from the facts. */
void power_decide(const struct power_options *options, const struct power_facts *facts,
                  struct arena *out, struct power_verdict *ret);
