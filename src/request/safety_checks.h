/*
 * safety_checks: the extra checks of a limit before a node is handed out (R18), on live reads.
 *
 *   PodDisruptionBudgets  every pod that would have to go has a budget that allows it
 *   ControlPlaneQuorum    a control-plane node goes only while most of its kind stay
 *   WorkloadLimits        no workload under a limit of its own becomes unavailable beyond it when
 *                         the pods go that are on the node now
 *
 * What cannot be read is not safe: nothing is granted on a guess (R14).
 */
#pragma once

#include "kube/client.h"
#include "kube/store.h"
#include "ledger/arbiter.h"

struct safety_checks;

struct safety_spec {
    struct client *client;         /* borrowed */
    const struct store *nodes;     /* borrowed: kube/node.h projections */
    const struct arbiter *arbiter; /* borrowed */
    struct str node;               /* copied */
    uint32_t checks;               /* SAFETY_… */
};

/* `on_done` comes from the loop, once: NULL when all have passed, or why not. The handle is to be
 * freed afterwards, not from within. */
struct safety_checks *safety_new(const struct safety_spec *spec,
                                 void (*on_done)(void *ctx, const struct err *err), void *ctx);
/* After a refusal: whether what refused would pass now, as far as that is known without asking the
 * server; false where only the server knows. */
bool safety_would_pass_now(const struct safety_checks *s);
void safety_free(struct safety_checks *s); /* stops it; accepts NULL */
