#include "host/http_documents.h"

#include <event2/buffer.h>

#include "base/alloc.h"

struct http_document {
    struct list link;
    struct http_documents *documents;
    struct shared_bytes *bytes;
    uint32_t readers; /* buffers that have it */
};

void http_documents_init(struct http_documents *d)
{
    *d = (struct http_documents){ 0 };
    list_init(&d->all);
}

void http_documents_done(struct http_documents *d)
{
    ASSERT(list_empty(&d->all) && d->bytes == 0);
}

/* The newest first: a document is mostly added to many buffers in a row. */
static struct http_document *http_document_find(const struct http_documents *d,
                                                const struct shared_bytes *bytes)
{
    for (struct list *item = d->all.prev; item != &d->all; item = item->prev) {
        struct http_document *one = CONTAINER_OF(item, struct http_document, link);
        if (one->bytes == bytes) {
            return one;
        }
    }
    return NULL;
}

/* A buffer has sent all of it, or is gone. */
static void http_document_release(const void *data UNUSED, size_t n UNUSED, void *ctx)
{
    struct http_document *one = ctx;
    if (--one->readers == 0) {
        one->documents->bytes -= one->bytes->bytes.n;
        list_del(&one->link);
        shared_bytes_unref(one->bytes);
        alloc_free(one);
    }
}

void http_documents_add(struct http_documents *d, struct evbuffer *to,
                        struct shared_bytes *document)
{
    struct str bytes = document->bytes;
    if (bytes.n == 0) {
        return;
    }
    struct http_document *one = document->refs > 1 ? http_document_find(d, document) : NULL;
    if (one == NULL) {
        one = ALLOC_NEW(struct http_document);
        one->documents = d;
        one->bytes = shared_bytes_ref(document);
        list_add(&d->all, &one->link);
        d->bytes += bytes.n;
    }
    one->readers++;
    if (evbuffer_add_reference(to, bytes.p, bytes.n, http_document_release, one) != 0) {
        out_of_memory(bytes.n);
    }
}
