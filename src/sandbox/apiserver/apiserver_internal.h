/*
 * apiserver_internal: the inside of the API server, shared by the files that make it up. Nobody
 * else includes this.
 *
 * A request is answered inside one call; everything it needs lives in the request's arena. A
 * function that may refuse the request returns a status, NULL when it does not.
 */
#pragma once

#include "base/list.h"
#include "base/rng.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/apiserver/gc.h"
#include "sandbox/apiserver/kind.h"
#include "sandbox/apiserver/url_route.h"
#include "sandbox/apiserver/list_filter.h"
#include "sandbox/apiserver/status.h"
#include "sandbox/apiserver/storage.h"
#include "sandbox/apiserver/builtin_types.h"

struct apiserver {
    struct loop *loop;
    struct rng rng;
    struct kinds kinds;
    struct storage storage;
    struct list ready;             /* watches that may have lines to read */
    struct loop_timer watch_timer; /* notifies their readers */
    struct gc gc;
    struct arena arena; /* what lives as long as the server */
    struct types types;
    struct str token;
    char token_key[32]; /* of service accounts' tokens */
    bool token_key_set; /* there is one */
    struct str agent;   /* of the request that is being answered */
    apiserver_on_commit_fn on_commit;
    void *on_commit_ctx;
    apiserver_on_commit_fn on_commit_check;
    void *on_commit_check_ctx;
    const struct kind *namespaces;
    const struct kind *pods;
    const struct kind *pdbs;
    const struct kind *crds;
};

struct encode_list;

/* In what form objects go out. Of the last two, one is for single objects and for the changes of a
 * watch, the other for lists. */
enum reply_form { FORM_OBJECT, FORM_TABLE, FORM_METADATA, FORM_METADATA_LIST };

struct request_ctx {
    struct apiserver *s;
    const struct apiserver_request *request;
    struct apiserver_reply *reply;
    struct arena *a;
    struct url_route route;
    const struct kind *kind;
    unsigned subresource; /* of enum kind_subresource; 0 = the object itself */
    enum reply_form form;
    bool dry_run;
    bool applying; /* a server-side apply: managedFields are already as they shall be */
    struct str manager;
};

/* Answers. */
void reply_tree(struct request_ctx *c, int code, const struct tree *tree);
void reply_object(struct request_ctx *c, int code, const struct object *o);
/* The same for an object that is stored nowhere, in its stored form. */
void reply_unstored(struct request_ctx *c, int code, struct tree *object);
void reply_list(struct request_ctx *c, const struct encode_list *list);
void reply_text(struct request_ctx *c, int code, struct str text);
void reply_add_warning(struct request_ctx *c, struct str text);

/* The text of an object as the kind asked for shows it. */
struct str convert_json(const struct kind *kind, const struct kinds *kinds, const struct object *o,
                        struct arena *a);
/* Turns a body of the kind asked for into what is stored, and back. */
void convert_to_stored(const struct kind *kind, const struct kinds *kinds, struct tree *t,
                       struct arena *a);
void convert_from_stored(const struct kind *kind, const struct kinds *kinds, struct tree *t,
                         struct arena *a);

/* The verbs: one or two in each verb_*.c. */
struct status *verb_get(struct request_ctx *c);
struct status *verb_list(struct request_ctx *c);
struct status *verb_watch(struct request_ctx *c);
struct status *verb_create(struct request_ctx *c);
struct status *verb_update(struct request_ctx *c);
struct status *verb_patch(struct request_ctx *c);
struct status *verb_delete(struct request_ctx *c);
struct status *verb_delete_collection(struct request_ctx *c);
struct status *verb_evict(struct request_ctx *c);
struct status *verb_bind(struct request_ctx *c);
struct status *verb_scale(struct request_ctx *c);
struct status *verb_review(struct request_ctx *c);

/* 422 for options that the real server refuses: of POST, PUT and PATCH; of DELETE (NULL: it has no
 * body); of a list; of a watch. */
struct status *options_check_write(struct request_ctx *c);
struct status *options_check_delete(struct request_ctx *c, const struct tree *body);
struct status *options_check_list(struct request_ctx *c);
struct status *options_check_watch(struct request_ctx *c);

/* What the verbs share. */
struct object *request_find_object(struct request_ctx *c);
/* The body as an object, whatever the client's form; messages name the `expected` kind. */
struct status *decode_body(struct request_ctx *c, struct str expected, struct tree **ret);
/* The same for an object of the kind that the URL names. */
struct status *decode_request_body(struct request_ctx *c, struct tree **ret);
struct str apiserver_uid(struct apiserver *s, struct arena *a);
struct str apiserver_time(struct apiserver *s, struct arena *a);
struct str apiserver_name_suffix(struct apiserver *s, struct arena *a);

/* Everything about a new object but its storing. */
struct status *write_create(struct request_ctx *c, struct tree *obj);
/* Everything about a change: `obj` is the whole new state. Stores it, or deletes the object when
 * its last finalizer went; `*ret` is what to answer, with a reference of the exchange. */
struct status *write_update(struct request_ctx *c, struct object *old, struct tree *obj);

struct apply_request;
void apply_request_init(struct request_ctx *c, const struct object *old, struct apply_request *ret);
struct status *write_check_name(struct request_ctx *c, const struct tree *obj);
/* Refuses new content in namespaces that are absent or going away. */
struct status *write_check_namespace(struct request_ctx *c, struct str name);

/* What an object of its kind may hold: types and unknown fields, which refuse or warn; custom
 * objects are pruned and get their defaults. `obj` is in the form of the request. */
struct status *decode_object(struct request_ctx *c, struct tree *obj);
/* The types and unknown fields alone: nothing is filled in. */
struct status *decode_known_fields(struct request_ctx *c, struct tree *obj);
/* Custom objects against their schema; `old` NULL: a new object. */
void decode_validate_custom(struct request_ctx *c, const struct tree *old, struct tree *obj,
                            struct status **list);

struct delete_options {
    bool grace_given;
    int64_t grace_seconds;
    struct str uid; /* preconditions; "" = none */
    struct str resource_version;
    struct str propagation; /* "", Background, Foreground, Orphan */
    bool dry_run;
};
struct status *delete_options_read(struct request_ctx *c, const struct tree *body,
                                   struct delete_options *ret);
struct status *delete_preconditions(struct request_ctx *c, const struct object *o,
                                    const struct delete_options *options);
/* Deletes or marks as deleting. `*ret` is the object as it then is (reference for the caller),
 * `*ret_gone` whether it is out of the storage. */
struct status *delete_object(struct request_ctx *c, struct object *o,
                             const struct delete_options *options, struct object **ret,
                             bool *ret_gone);

/* Commits a new state of an existing object from inside (garbage collection, budgets). */
void apiserver_store_object(struct apiserver *s, uint32_t store, struct tree *obj,
                            struct str manager, struct arena *tmp);
/* Takes an object out for good, as its last state says. */
void apiserver_remove_object(struct apiserver *s, const struct object *o, struct tree *last,
                             struct arena *tmp);

void watch_notify_reader(struct apiserver_watch *w);
void watches_wake(struct apiserver *s, uint32_t store);
void watches_end(struct apiserver *s, uint32_t store, bool all);
