/*
 * secret_source: a secret text from a file or from a Secret, read when it is needed and wiped as
 * soon as it has been used.
 *
 * Level-triggered: secret_source_get answers with the text, says that it is being read (on_ready is
 * called when that has ended), or says what is wrong. Nothing of the text is ever part of a
 * message.
 */
#pragma once

#include "kube/client.h"
#include "port/files.h"

#define SECRET_SOURCE_BYTES_MAX                                                                    \
    ((size_t)64 * 1024) /* an INI file with a password has 500 bytes                               \
                         */
#define SECRET_SOURCE_RETRY_MIN SECONDS(2)
#define SECRET_SOURCE_RETRY_MAX MINUTES(2) /* somebody may have to make the Secret first */

/* Where it is: in a key of a Secret, if `name` is set, or in a file. */
struct secret_source_place {
    struct str namespace;
    struct str name;
    struct str key;
    struct str file;
};

struct secret_source {
    struct client *client;     /* borrowed */
    const struct files *files; /* borrowed; NULL: files cannot be read here */
    void (*on_ready)(void *ctx);
    void *ctx;
    struct arena where; /* of `place` */
    struct secret_source_place place;
    struct api_call *call; /* the Secret is being read */
    struct arena memory;   /* of `text`; wiped */
    struct str text;
    struct backoff backoff;
    usec_t retry_at; /* monotonic: it is not read before */
    struct err err;  /* of the last try; code 0 = none */
};

/* `on_ready` comes from the loop. */
void secret_source_init(struct secret_source *c, struct client *client, const struct files *files,
                        void (*on_ready)(void *ctx), void *ctx);
/* Wipes; accepts a zeroed one. */
void secret_source_done(struct secret_source *c);
/* Texts are copied. The same place again changes nothing, and answers false; another one is read at
 * once. */
bool secret_source_set_place(struct secret_source *c, const struct secret_source_place *place);

/* 0: `*ret` is the text, until secret_source_wipe. -ERR_BUSY: it is being read. Otherwise `err`
 * says what is wrong, and it is tried again from c->retry_at on, when it is asked for. */
NODISCARD
int secret_source_get(struct secret_source *c, struct str *ret, struct err *err);
/* It has been used, or it was refused: the next secret_source_get reads it again. */
void secret_source_wipe(struct secret_source *c);
/* "Secret 'namespace/name'" or "file 'path'", for messages. */
struct str secret_source_where(const struct secret_source *c, struct arena *out);
