/* verb_write: POST and PUT, and what every write shares: metadata, namespaces, validation. */
#include "sandbox/apiserver/apply.h"
#include "sandbox/apiserver/defaults.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/builtin_validate.h"

#define WRITE_NAME_MAX 63u /* generated names: prefixes are cut so that the suffix fits */

/* The object's namespace is the URL's. */
static struct status *write_set_namespace(struct request_ctx *c, struct tree *obj)
{
    struct str given = tree_text_at(obj, "metadata.namespace");
    struct str want = c->route.namespace;
    if (given.n > 0 && !str_eq(given, want)) {
        return status_bad_request(c->a, "the namespace of the provided object does not match the "
                                        "namespace sent on the request");
    }
    if (want.n > 0) {
        tree_set_at(c->a, obj, "metadata.namespace", tree_str(c->a, want));
    }
    return NULL;
}

/* A namespace must exist to be written into, and not be going away to be created in. */
static struct status *write_check_namespace_exists(struct request_ctx *c, struct str name)
{
    if (c->route.namespace.n == 0) {
        return NULL;
    }
    const struct object *ns =
        storage_find(&c->s->storage, c->s->namespaces->store, STR(""), c->route.namespace);
    if (ns == NULL) {
        return status_not_found(c->a, c->s->namespaces, c->route.namespace);
    }
    if (jval_get(ns->metadata, STR("deletionTimestamp")) == NULL) {
        return NULL;
    }
    struct status *s =
        status_forbidden(c->a, c->kind, name,
                         arena_printf(c->a,
                                      "unable to create new content in namespace " STR_FMT
                                      " because it is being terminated",
                                      STR_ARG(c->route.namespace)));
    struct status_cause *cause = ARENA_NEW(c->a, struct status_cause);
    cause->reason = STR("NamespaceTerminating");
    cause->message = arena_printf(c->a, "namespace " STR_FMT " is being terminated",
                                  STR_ARG(c->route.namespace));
    cause->field = STR("metadata.namespace");
    s->first_cause = cause;
    s->last_cause = cause;
    return s;
}

struct status *write_check_namespace(struct request_ctx *c, struct str name)
{
    return write_check_namespace_exists(c, name);
}

/* Events are refused in the name of the group they are stored in. */
static struct status *write_invalid(struct request_ctx *c, struct status *list, struct str name)
{
    const struct kind *kind =
        kind_is(c->kind, KIND_EVENTS_V1) ? kinds_of_store(&c->s->kinds, c->kind->store) : c->kind;
    return status_invalid(list, kind, name);
}

static void write_generate_name(struct request_ctx *c, struct tree *obj)
{
    struct str name = tree_text_at(obj, "metadata.name");
    struct str prefix = tree_text_at(obj, "metadata.generateName");
    if (name.n == 0 && prefix.n > 0) {
        struct str base = str_sub(prefix, 0, MIN(prefix.n, (size_t)WRITE_NAME_MAX - 5));
        tree_set_at(c->a, obj, "metadata.name",
                    tree_str(c->a, arena_concat(c->a, base, apiserver_name_suffix(c->s, c->a))));
    }
}

/* Metadata that only the server sets. */
static void write_set_server_metadata(struct request_ctx *c, struct tree *obj)
{
    static const char *const dropped[] = { "deletionTimestamp", "deletionGracePeriodSeconds",
                                           "generation", "selfLink" };
    struct tree *metadata = tree_make_at(c->a, obj, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++) {
        (void)tree_del(metadata, str_from(dropped[i])); /* absent is as good */
    }
    if (!c->applying) {
        (void)tree_del(metadata, STR("managedFields")); /* kept only where apply needs them */
    }
    tree_set(c->a, metadata, STR("uid"), tree_str(c->a, apiserver_uid(c->s, c->a)));
    tree_set(c->a, metadata, STR("creationTimestamp"), tree_str(c->a, apiserver_time(c->s, c->a)));
    if (kind_is(c->kind, KIND_GENERATION)) {
        tree_set(c->a, metadata, STR("generation"), tree_i64(c->a, 1));
    }
}

/* Drops empty and null members of the metadata, which patches and encoders leave behind. */
static void write_drop_empty_metadata(struct tree *obj)
{
    struct tree *metadata = tree_get(obj, STR("metadata"));
    TREE_EACH (metadata, member) {
        bool container = tree_kind(member) == JOBJ || tree_kind(member) == JARR;
        if (tree_kind(member) == JNULL || (container && member->n == 0)) {
            tree_remove(metadata, member);
        }
    }
}

/* Stores the next version of an object and answers with it. */
static void write_store(struct request_ctx *c, int code, struct tree *obj, struct str manager)
{
    uint64_t rv = storage_next_rv(&c->s->storage);
    struct object *o = object_new(c->kind->store, obj, rv, manager, c->a);
    object_ref(o);
    storage_put(&c->s->storage, o);
    reply_object(c, code, o);
    object_unref(o);
}

struct status *write_create(struct request_ctx *c, struct tree *obj)
{
    struct status *status = write_set_namespace(c, obj);
    if (status != NULL) {
        return status;
    }
    if (tree_text_at(obj, "metadata.resourceVersion").n > 0) {
        return status_internal(c->a,
                               STR("resourceVersion should not be set on objects to be created"));
    }
    (void)tree_del_at(obj, "metadata.resourceVersion"); /* may be there and empty */
    status = decode_object(c, obj);
    if (status != NULL) {
        return status;
    }
    convert_to_stored(c->kind, &c->s->kinds, obj, c->a);
    write_generate_name(c, obj);
    struct str name = tree_text_at(obj, "metadata.name");
    status = write_check_namespace_exists(c, name);
    if (status != NULL) {
        return status;
    }
    write_set_server_metadata(c, obj);
    write_drop_empty_metadata(obj);
    defaults_create(c->kind, obj, c->a);
    defaults_apply(c->kind, obj, c->a);
    struct status *list = NULL;
    builtin_validate_create(&list, c->kind, obj, c->a);
    decode_validate_custom(c, NULL, obj, &list);
    if (list != NULL) {
        return write_invalid(c, list, name);
    }
    if (storage_find(&c->s->storage, c->kind->store, c->route.namespace, name) != NULL) {
        return status_already_exists(c->a, c->kind, name);
    }
    if (c->dry_run) {
        reply_unstored(c, 201, obj);
        return NULL;
    }
    write_store(c, 201, obj, c->manager);
    return NULL;
}

struct status *verb_create(struct request_ctx *c)
{
    struct tree *obj;
    struct status *status = decode_request_body(c, &obj);
    return status != NULL ? status : write_create(c, obj);
}

/* The object's key in the real server's etcd, which some messages contain. */
static struct str write_registry_key(struct request_ctx *c, const struct object *o)
{
    struct str resource = c->kind->plural;
    if (str_eq(c->kind->plural, STR("nodes"))) {
        resource = STR("minions");
    } else if (kind_is(c->kind, KIND_CUSTOM)) {
        resource = arena_printf(c->a, STR_FMT "/" STR_FMT, STR_ARG(c->kind->group),
                                STR_ARG(c->kind->plural));
    }
    return arena_printf(c->a, "/registry/" STR_FMT "/" STR_FMT, STR_ARG(resource), STR_ARG(o->key));
}

/* PUT: 409 when somebody else wrote since the client read. */
static struct status *update_preconditions(struct request_ctx *c, const struct object *old,
                                           const struct tree *obj)
{
    struct str rv = tree_text_at(obj, "metadata.resourceVersion");
    struct str uid = tree_text_at(obj, "metadata.uid");
    if (uid.n > 0 && !str_eq(uid, old->uid)) {
        return status_conflict(
            c->a, c->kind, old->name,
            arena_printf(c->a,
                         "StorageError: invalid object, Code: 4, Key: " STR_FMT
                         ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                         "precondition: " STR_FMT ", UID in object meta: " STR_FMT,
                         STR_ARG(write_registry_key(c, old)), STR_ARG(uid), STR_ARG(old->uid)));
    }
    if (rv.n == 0 && kind_is(c->kind, KIND_CUSTOM)) {
        struct status *list = NULL;
        cause_add(&list, c->a, CAUSE_INVALID, STR("metadata.resourceVersion"),
                  STR("Invalid value: 0: must be specified for an update"));
        /* The real server names the resource instead of the kind in this message only. */
        struct kind as_resource = *c->kind;
        as_resource.group_kind = c->kind->resource;
        as_resource.kind = c->kind->plural;
        return status_invalid(list, &as_resource, old->name);
    }
    return NULL;
}

struct status *write_check_name(struct request_ctx *c, const struct tree *obj)
{
    struct str name = tree_text_at(obj, "metadata.name");
    if (name.n > 0 && !str_eq(name, c->route.name)) {
        return status_bad_request(c->a,
                                  "the name of the object (" STR_FMT
                                  ") does not match the name on the URL (" STR_FMT ")",
                                  STR_ARG(name), STR_ARG(c->route.name));
    }
    return NULL;
}

static bool write_creates_on_update(const struct kind *kind)
{
    return str_eq(kind->kind, STR("Lease")) || str_eq(kind->kind, STR("Event"));
}

struct status *verb_update(struct request_ctx *c)
{
    struct tree *obj;
    struct status *status = decode_request_body(c, &obj);
    if (status == NULL) {
        status = write_check_name(c, obj);
    }
    if (status == NULL) {
        status = write_set_namespace(c, obj);
    }
    if (status == NULL) {
        status = decode_object(c, obj);
    }
    if (status != NULL) {
        return status;
    }
    struct object *old = request_find_object(c);
    if (old == NULL) {
        bool create = write_creates_on_update(c->kind) &&
                      tree_text_at(obj, "metadata.resourceVersion").n == 0;
        return create ? write_create(c, obj) : status_not_found(c->a, c->kind, c->route.name);
    }
    status = update_preconditions(c, old, obj);
    if (status != NULL) {
        return status;
    }
    convert_to_stored(c->kind, &c->s->kinds, obj, c->a);
    return write_update(c, old, obj);
}

static void write_keep_member(struct tree *to, const struct tree *from, const char *member,
                              struct arena *a)
{
    struct tree *value = tree_get(from, str_from(member));
    if (value == NULL) {
        (void)tree_del(to, str_from(member)); /* absent is as good */
    } else {
        tree_set(a, to, str_from(member), tree_twin(a, value));
    }
}

/* Which parts of the new state this request may set, and which stay as they are. */
static struct tree *update_scope(struct request_ctx *c, struct tree *before, struct tree *obj)
{
    static const char *const own[] = { "creationTimestamp",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "generation",
                                       "name",
                                       "namespace" };
    struct tree *metadata = tree_make_at(c->a, obj, "metadata");
    struct tree *kept = tree_get(before, STR("metadata"));
    bool has_status = (c->kind->subresources & SUBRESOURCE_STATUS) != 0;
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        write_keep_member(metadata, kept, own[i], c->a);
    }
    if (tree_get(metadata, STR("uid")) == NULL) {
        write_keep_member(metadata, kept, "uid", c->a);
    }
    if (tree_get(metadata, STR("managedFields")) == NULL) {
        write_keep_member(metadata, kept, "managedFields", c->a);
    }
    if (c->subresource == SUBRESOURCE_STATUS) {
        struct tree *result = tree_twin(c->a, before);
        write_keep_member(result, obj, "status", c->a);
        if (!kind_is(c->kind, KIND_CUSTOM)) {
            write_keep_member(result, obj, "metadata", c->a);
        } else {
            write_keep_member(tree_get(result, STR("metadata")), metadata, "managedFields", c->a);
        }
        return result;
    }
    if (c->subresource == SUBRESOURCE_FINALIZE) {
        struct tree *result = tree_twin(c->a, before);
        write_keep_member(tree_make_at(c->a, result, "spec"), tree_get(obj, STR("spec")),
                          "finalizers", c->a);
        return result;
    }
    if (has_status) {
        write_keep_member(obj, before, "status", c->a);
    }
    return obj;
}

/* Everything but metadata and status. */
static bool update_changes_content(const struct kind *kind, const struct tree *before,
                                   const struct tree *after)
{
    const struct tree *sides[2][2] = { { before, after }, { after, before } };
    bool status_counts = (kind->subresources & SUBRESOURCE_STATUS) == 0;
    for (size_t i = 0; i < 2; i++) {
        TREE_EACH (sides[i][0], member) {
            if (str_eq(member->key, STR("metadata")) ||
                (str_eq(member->key, STR("status")) && !status_counts)) {
                continue;
            }
            const struct tree *other = tree_get(sides[i][1], member->key);
            if (other == NULL || !tree_eq(member, other)) {
                return true;
            }
        }
    }
    return false;
}

static void update_generation(struct request_ctx *c, const struct tree *before, struct tree *after)
{
    int64_t generation;
    if (kind_is(c->kind, KIND_GENERATION) && update_changes_content(c->kind, before, after) &&
        tree_number(tree_at(before, "metadata.generation"), &generation)) {
        tree_set_at(c->a, after, "metadata.generation", tree_i64(c->a, generation + 1));
    }
}

/* Whether a deleting object has neither finalizers nor a grace period left. */
static bool update_completes_deletion(const struct tree *obj)
{
    int64_t grace = 0;
    (void)tree_number(tree_at(obj, "metadata.deletionGracePeriodSeconds"), &grace); /* else 0 */
    return tree_at(obj, "metadata.deletionTimestamp") != NULL && grace == 0 &&
           tree_first(tree_at(obj, "metadata.finalizers")) == NULL &&
           tree_first(tree_at(obj, "spec.finalizers")) == NULL;
}

static struct status *update_validate(struct request_ctx *c, struct tree *before,
                                      struct tree *after, struct str name)
{
    struct status *list = NULL;
    builtin_validate_update(&list, c->kind, before, after, c->a);
    decode_validate_custom(c, before, after, &list);
    return write_invalid(c, list, name);
}

struct status *write_update(struct request_ctx *c, struct object *old, struct tree *obj)
{
    struct str rv = tree_text_at(obj, "metadata.resourceVersion");
    struct str current = str_sub(old->json, old->rv_at, old->rv_n);
    if (rv.n > 0 && !str_eq(rv, current)) {
        return status_modified(c->a, c->kind, old->name);
    }
    struct tree *before = object_tree_borrowed(old, c->a);
    struct tree *after = update_scope(c, before, obj);
    write_drop_empty_metadata(after);
    defaults_apply(c->kind, after, c->a);
    struct status *status = update_validate(c, before, after, old->name);
    if (status != NULL) {
        return status;
    }
    update_generation(c, before, after);
    if (!c->applying && tree_at(before, "metadata.managedFields") != NULL) {
        struct apply_request request;
        apply_request_init(c, old, &request);
        apply_track(&request, c->a, before, after);
    }
    tree_set_at(c->a, after, "metadata.resourceVersion", tree_str(c->a, current));
    bool same = tree_eq(before, after);
    if (update_completes_deletion(after) && !same) {
        struct tree *last = tree_clone(c->a, after);
        reply_unstored(c, 200, after);
        if (!c->dry_run) {
            apiserver_remove_object(c->s, old, last, c->a);
        }
        return NULL;
    }
    if (same || c->dry_run) {
        reply_unstored(c, 200, after);
        return NULL;
    }
    write_store(c, 200, after, old->manager);
    return NULL;
}
