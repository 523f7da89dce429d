/*
 * crd_install: brings the CRDs of this program to a cluster, or brings those that are there up to
 * date.
 *
 * Each is read first and written only if something differs: whoever runs it again, or in several
 * replicas at once, changes nothing, and needs no right to write what is there already. A write of
 * an existing one carries its resourceVersion. It is done when the server serves all of them. What
 * may pass is tried again for ever; what the server refuses ends it.
 */
#pragma once

#include "kube/client.h"

#define CRD_INSTALL_POLL_BASE                                                                      \
    MSECONDS(100) /* a new CRD is served some 100 ms after its creation                            \
                   */
#define CRD_INSTALL_POLL_MAX SECONDS(5)

struct crd_install;

struct crd_install_config {
    struct client *client; /* borrowed */
    /* Once, from the loop; NULL when all are served. The message says what is missing. */
    void (*on_done)(void *ctx, const struct err *err);
    /* A CRD was created or changed; may be NULL. */
    void (*on_written)(void *ctx, struct str name, bool created);
    void *ctx;
};

struct crd_install *crd_install_new(const struct crd_install_config *config);
/* Also from inside on_done. Accepts NULL. */
void crd_install_free(struct crd_install *i);
