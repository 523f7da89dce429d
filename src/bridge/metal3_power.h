/*
 * metal3_power: when a Metal3 host is switched off for the maintenance of its Machine, and on
 * again.
 *
 * Pure, as rules.h. The bridge's reboot annotation has a suffix, so Metal3 keeps the host off for
 * as long as the annotation is there. The annotation is set only while the Machine is approved, and
 * removed in every other case, also when the Machine is gone. Removing it switches the host on, so
 * the caller decides only while all Machines and Clusters are known.
 *
 * Several Machines may name one host, by mistake or on purpose. A host belongs to the Machine whose
 * infrastructure object its consumerRef names, and no other may switch it off. The annotation
 * belongs to the Machine that KEY_REBOOT_OWNER names, and no other Machine changes it.
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

enum metal3_id_form { METAL3_ID_NONE, METAL3_ID_NAMED, METAL3_ID_UID };

/* A provider id of Metal3: "metal3://namespace/host/machine", or the old "metal3://<UID>". */
struct metal3_id {
    enum metal3_id_form form;
    struct str namespace;
    struct str name;
    struct str uid;
};
struct metal3_id metal3_id_parse(struct str provider_id);

/* Whose verdict counts for a host: of the Machines that name it, that with the greatest claim.
 * Where an owner is named (KEY_REBOOT_OWNER) but is not among all Machines there are, or where our
 * annotation is there and no Machine names the host, it is that of no Machine (NULL). */
enum power_rank {
    POWER_RANK_NONE,     /* it does not name the host */
    POWER_RANK_PROVIDER, /* its provider id does, and nothing else speaks for it */
    POWER_RANK_CONSUMER, /* the host's consumerRef names its infrastructure object */
    POWER_RANK_OWNER,    /* it was switched off for this one; whatever its provider id says now */
};
enum power_rank power_rank(const struct machine *m, const struct metal3_host *host);

struct power_facts {
    const struct machine *machine;  /* NULL = the host's owner is gone */
    const struct cluster *cluster;  /* of the machine; NULL = there is none */
    const struct metal3_host *host; /* NULL = the one that the machine names is not there */
    /* With require_drained: the Node is cordoned, and no pod is left that a drain would take away.
     * It counts before the host is switched off. Afterwards its Node may not be there to be asked,
     * and a host must not start while somebody works on it. */
    bool drained;
    struct str not_drained_why; /* why not, half a sentence; empty = not read yet */
};

struct power_verdict {
    struct meta_patch host;
    struct meta_patch machine; /* KEY_POWER */
    /* Why the host is not switched off: "NotProvisioned"; or "Off". A constant. */
    const char *reason;
    struct str message; /* a sentence */
};

/* Texts live in `out`, or are borrowed from the facts. */
void power_decide(const struct power_options *options, const struct power_facts *facts,
                  struct arena *out, struct power_verdict *ret);
