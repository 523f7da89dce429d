/*
 * volume_detach: waits until a node's volumes are detached, by its VolumeAttachments.
 *
 * VolumeAttachments cannot be selected by node, so all who wait share one watch of all of them,
 * which runs only while somebody waits; only those of nodes that are waited for are kept. When
 * another node is waited for, the watch begins anew, because what it has seen of that node was not
 * kept.
 *
 * Not waited for: attachments of drivers that are to be ignored, and of volumes that are bound to
 * PersistentVolumeClaims of pods that stay on the node. Which volume that is says the claim, which
 * is read only when other attachments than those of ignored drivers are left. Nothing is ever
 * detached by force.
 */
#pragma once

#include "base/arena.h"
#include "kube/client.h"

struct detaches; /* all waits of one controller */
struct detach;   /* for one node */

struct detaches *detaches_new(struct client *client);
void detaches_free(struct detaches *ds); /* like a crash; accepts NULL */

/* Texts are copied. `on_change` comes from the loop when detach_status has changed. */
struct detach *detach_start(struct detaches *ds, struct str node, const struct str *ignore,
                            uint32_t ignore_n, void (*on_change)(void *ctx), void *ctx);
void detach_stop(struct detach *d); /* accepts NULL */

/* The PersistentVolumeClaims of pods that stay: all of them, between begin and end. */
void detach_pvcs_begin(struct detach *d);
void detach_add_pvc(struct detach *d, struct str namespace, struct str pvc);
void detach_pvcs_end(struct detach *d);
/* Entries of the node's status.volumesAttached: they are waited for, too, except those of
 * attachments that are not waited for. */
void detach_set_volumes(struct detach *d, uint32_t volumes);

/* Lives until the loop runs. */
struct detach_status {
    bool synced;           /* the attachments are known */
    uint32_t left;         /* volumes that are waited for */
    uint32_t ignored;      /* attachments that are not */
    struct str last_error; /* what cannot be read, and why; empty: nothing is wrong */
};
void detach_status(const struct detach *d, struct detach_status *ret);
bool detach_is_done(const struct detach *d);
/* "volume pv-1 (ebs.csi.aws.com)" for `max` at most of those that are waited for, by the names of
 * their attachments; answers how many were given. */
uint32_t detach_waiting_names(const struct detach *d, struct arena *out, struct str *ret,
                              uint32_t max);
