/*
 * http_documents: what the connections of one server are sending, and how much memory that takes.
 *
 * A document is held once, however many connections send it, and counted once. It goes into their
 * buffers by reference and is let go when the last byte of the last of them is gone.
 */
#pragma once

#include "base/list.h"
#include "base/shared_bytes.h"

struct evbuffer;

struct http_documents {
    struct list all;
    size_t bytes; /* of all documents */
};

void http_documents_init(struct http_documents *d);
/* Every buffer that has some of its bytes must be gone. */
void http_documents_done(struct http_documents *d);

/* Appends the document to a buffer. */
void http_documents_add(struct http_documents *d, struct evbuffer *to,
                        struct shared_bytes *document);
