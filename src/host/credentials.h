/*
 * credentials: who we are to a cluster, kept fresh.
 *
 * A token file is looked at again every CREDENTIALS_FILE_EVERY and after the server refused what it
 * held. A plugin runs when there is nothing yet, shortly before its answer expires and after a
 * refusal; one run at a time, and whoever asks meanwhile is told to wait. Trouble fails the request
 * that asked; it never ends the process.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "host/cluster_access.h"
#include "port/loop.h"

#define CREDENTIALS_FILE_EVERY SECONDS(10) /* how often a token file is looked at, as client-go */
#define CREDENTIALS_EXEC_MAX SECONDS(60)   /* a person may have to confirm at another device */
#define CREDENTIALS_EXEC_PAUSE SECONDS(5)  /* a failed run is not repeated sooner */
#define CREDENTIALS_EXEC_EARLY SECONDS(60) /* replaced that long before it expires */
#define CREDENTIALS_EXEC_BYTES ((size_t)1024 * 1024) /* of a plugin's answer: two PEM files */

/* One credential; shared by the requests that were sent with it. */
struct credential {
    uint32_t refs;
    uint64_t generation;
    struct arena memory;
    struct str header;        /* "Authorization: …"; empty = none */
    struct str authorization; /* its value */
    struct str cert_pem;
    struct str key_pem;
};

void credential_unref(struct credential *c); /* accepts NULL */

struct credentials;

/* `access` is borrowed for as long. `on_ready` is called from the loop after a take that said
 * ERR_BUSY, when it is worth asking again. */
struct credentials *credentials_new(struct loop *loop, const struct cluster_access *access,
                                    void (*on_ready)(void *ctx), void *ctx);
void credentials_free(struct credentials *c);

/* A reference to what is good now; -ERR_BUSY while a plugin runs. */
NODISCARD
int credentials_take(struct credentials *c, struct credential **ret, struct err *err);

/* The server answered 401 to a request with this credential. */
void credentials_refused(struct credentials *c, const struct credential *used);
