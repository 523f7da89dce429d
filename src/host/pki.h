/*
 * pki: a certificate authority of one's own, in memory, with a server's and an administrator's
 * certificate: for the sandbox, whose clients expect TLS as a cluster has it.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct pki {
    struct str ca_cert; /* all PEM */
    struct str server_cert;
    struct str server_key;
    struct str client_cert; /* of kubernetes-admin in system:masters */
    struct str client_key;
};

/* Valid from an hour before `wall` for a year; the server is localhost, 127.0.0.1 and ::1. The
 * authority's own key is forgotten: nobody can add to it. */
NODISCARD
int pki_make(usec_t wall, struct arena *out, struct pki *ret, struct err *err);
