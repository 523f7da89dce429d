/* verb_patch: PATCH: JSON, merge and strategic patches, and server-side apply. */
#include "format/jsonpatch.h"
#include "format/mergepatch.h"
#include "sandbox/apiserver/apply.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/strategic.h"

enum patch_type { PATCH_NONE, PATCH_JSON, PATCH_MERGE, PATCH_STRATEGIC, PATCH_APPLY };

static enum patch_type patch_type(struct str content_type)
{
    struct str type;
    struct str rest;
    (void)str_cut(content_type, STR(";"), &type, &rest); /* parameters do not matter */
    type = str_trim(type);
    if (str_eq(type, STR("application/json-patch+json"))) {
        return PATCH_JSON;
    }
    if (str_eq(type, STR("application/merge-patch+json"))) {
        return PATCH_MERGE;
    }
    if (str_eq(type, STR("application/strategic-merge-patch+json"))) {
        return PATCH_STRATEGIC;
    }
    return str_eq(type, STR("application/apply-patch+yaml")) ? PATCH_APPLY : PATCH_NONE;
}

static struct status *patch_json(struct request_ctx *c, struct tree **obj, const struct tree *patch)
{
    struct err err = { 0 };
    if (tree_kind(patch) != JARR) {
        return status_bad_request(c->a, "error decoding patch: json: cannot unmarshal object into "
                                        "Go value of type []handlers.jsonPatchOp");
    }
    switch (jsonpatch_apply(*obj, patch, c->a, obj, &err)) {
    case 0:
        return NULL;
    case -ERR_INVALID:
        return status_bad_request(c->a, "%s", err.msg);
    case -ERR_LIMIT:
        return status_new(c->a, 413, "RequestEntityTooLarge", arena_printf(c->a, "%s", err.msg));
    default:
        return status_generic(c->a, 422, "Invalid",
                              STR("the server rejected our request due to an error in our "
                                  "request"));
    }
}

static struct status *patch_strategic(struct request_ctx *c, struct tree *obj,
                                      const struct tree *patch)
{
    struct err err = { 0 };
    const struct tree *schema = types_builtin_kind(&c->s->types, c->kind->group, c->kind->kind);
    int r = strategic_merge(&c->s->types, schema, c->a, obj, patch, &err);
    if (r == -ERR_PROTO) {
        return status_internal(c->a, arena_str(c->a, str_from(err.msg)));
    }
    return r < 0 ? status_bad_request(c->a, "%s", err.msg) : NULL;
}

static struct status *patch_apply(struct request_ctx *c, enum patch_type type, struct tree **obj)
{
    struct tree *patch;
    struct err err = { 0 };
    if (tree_parse(c->request->body, c->a, &patch, &err) < 0) {
        return status_bad_request(c->a, "error decoding patch: %s", err.msg);
    }
    if (type == PATCH_JSON) {
        return patch_json(c, obj, patch);
    }
    if (tree_kind(patch) != JOBJ) {
        return status_bad_request(c->a,
                                  "error decoding patch: json: cannot unmarshal %s into Go value "
                                  "of type map[string]interface {}",
                                  jkind_name(tree_kind(patch)));
    }
    if (type == PATCH_STRATEGIC) {
        return patch_strategic(c, *obj, patch);
    }
    return mergepatch_apply(*obj, patch, c->a, obj, &err) < 0
               ? status_bad_request(c->a, "error decoding patch: %s", err.msg)
               : NULL;
}

static struct status *patch_unsupported(struct request_ctx *c)
{
    return status_new(c->a, 415, "UnsupportedMediaType",
                      STR("the body of the request was in an unknown format - accepted media types "
                          "include: application/json-patch+json, application/merge-patch+json, "
                          "application/apply-patch+yaml"));
}

static struct status *apply_options(struct request_ctx *c)
{
    static const struct kind options = { .group = STR_INIT("meta.k8s.io"),
                                         .kind = STR_INIT("PatchOptions"),
                                         .group_kind = STR_INIT("PatchOptions.meta.k8s.io") };
    struct status *list = NULL;
    if (c->route.params.field_manager.n == 0) {
        cause_add(&list, c->a, CAUSE_REQUIRED, STR("fieldManager"),
                  STR("Required value: is required for apply patch"));
    }
    return status_invalid(list, &options, STR(""));
}

void apply_request_init(struct request_ctx *c, const struct object *old, struct apply_request *ret)
{
    *ret = (struct apply_request){
        .types = &c->s->types,
        .schema = kind_is(c->kind, KIND_CUSTOM)
                      ? c->kind->schema
                      : types_builtin_kind(&c->s->types, c->kind->group, c->kind->kind),
        .api_version = c->kind->api_version,
        .manager = c->manager.n > 0 ? c->manager : STR("unknown"),
        .subresource = c->subresource == SUBRESOURCE_STATUS ? STR("status") : STR(""),
        .has_status = (c->kind->subresources & SUBRESOURCE_STATUS) != 0,
        .time = apiserver_time(c->s, c->a),
        .creator = old == NULL ? STR("") : old->manager,
    };
    (void)url_parse_bool(c->route.params.force, &ret->force); /* else false */
}

static struct status *apply_refused(struct request_ctx *c, int r,
                                    const struct schema_causes *causes, struct str message,
                                    const struct err *err)
{
    if (r == -ERR_INVALID) {
        return status_bad_request(c->a, "%s", err->msg);
    }
    if (r != -ERR_CONFLICT) {
        return status_internal(c->a, arena_str(c->a, str_from(err->msg)));
    }
    struct status *list = NULL;
    for (uint32_t i = 0; i < causes->n; i++) {
        struct str reason = arena_str(c->a, causes->items[i].reason);
        cause_add(&list, c->a, reason.p, causes->items[i].field, causes->items[i].message);
    }
    struct status *status = status_new(c->a, 409, "Conflict", message);
    status->first_cause = list == NULL ? NULL : list->first_cause;
    status->last_cause = list == NULL ? NULL : list->last_cause;
    return status;
}

static struct status *verb_apply(struct request_ctx *c)
{
    struct tree *configuration;
    struct status *status = apply_options(c);
    if (status == NULL) {
        status = decode_request_body(c, &configuration);
    }
    if (status == NULL) {
        status = write_check_name(c, configuration);
    }
    if (status == NULL) {
        status = decode_known_fields(c, configuration);
    }
    if (status != NULL) {
        return status;
    }
    struct object *old = request_find_object(c);
    if (old == NULL && c->subresource != 0) {
        return status_not_found(c->a, c->kind, c->route.name);
    }
    struct apply_request request;
    apply_request_init(c, old, &request);
    struct tree *live = old == NULL ? NULL : object_tree(old, c->a);
    if (live != NULL) {
        convert_from_stored(c->kind, &c->s->kinds, live, c->a);
    }
    struct tree *obj;
    struct schema_causes causes = { 0 };
    struct str message = STR("");
    struct err err = { 0 };
    int r = apply_merge(&request, c->a, live, configuration, &obj, &causes, &message, &err);
    if (r < 0) {
        return apply_refused(c, r, &causes, message, &err);
    }
    c->applying = true;
    if (old == NULL) {
        return write_create(c, obj);
    }
    status = decode_object(c, obj);
    if (status != NULL) {
        return status;
    }
    convert_to_stored(c->kind, &c->s->kinds, obj, c->a);
    return write_update(c, old, obj);
}

struct status *verb_patch(struct request_ctx *c)
{
    enum patch_type type = patch_type(c->request->content_type);
    if (type == PATCH_NONE) {
        return status_generic(c->a, 415, "UnsupportedMediaType",
                              STR("415: Unsupported Media Type"));
    }
    if (type == PATCH_STRATEGIC && kind_is(c->kind, KIND_CUSTOM)) {
        return patch_unsupported(c);
    }
    if (type == PATCH_APPLY) {
        return verb_apply(c);
    }
    struct object *old = request_find_object(c);
    if (old == NULL) {
        return status_not_found(c->a, c->kind, c->route.name);
    }
    struct tree *obj = object_tree_borrowed(old, c->a);
    convert_from_stored(c->kind, &c->s->kinds, obj, c->a);
    struct status *status = patch_apply(c, type, &obj);
    if (status == NULL) {
        status = tree_kind(obj) != JOBJ
                     ? status_bad_request(c->a, "the patch leaves no object behind")
                     : write_check_name(c, obj);
    }
    if (status == NULL) {
        status = decode_object(c, obj);
    }
    if (status != NULL) {
        return status;
    }
    convert_to_stored(c->kind, &c->s->kinds, obj, c->a);
    return write_update(c, old, obj);
}
