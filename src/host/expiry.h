/*
 * expiry: when the credentials end with which a cluster is reached, as far as they say so
 * themselves.
 *
 * For metrics and alerts alone: nothing is decided by it, since the server is who judges.
 */
#pragma once

#include "host/cluster_access.h"

/* Wall time; 0 = it does not say. */
usec_t expiry_of_token(struct str token);     /* the claim `exp` of a JWT */
usec_t expiry_of_certificate(struct str pem); /* the first certificate's end */

struct expiry {
    usec_t token;
    usec_t certificate;
};

/* Of what the access names now: a token file is read, a plugin is not run. */
struct expiry expiry_of_access(const struct cluster_access *access);
