/* dispatch: takes a request, finds the kind and the verb it means, and writes the reply. */
#include "sandbox/apiserver/auth.h"
#include "sandbox/apiserver/discovery.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/encode.h"
#include "sandbox/apiserver/token.h"

void reply_text(struct request_ctx *c, int code, struct str text)
{
    c->reply->status = code;
    c->reply->content_type = STR("text/plain; charset=utf-8");
    c->reply->body = text;
}

void reply_tree(struct request_ctx *c, int code, const struct tree *tree)
{
    c->reply->status = code;
    c->reply->content_type = STR("application/json");
    c->reply->body = tree_json(c->a, tree);
}

static struct encoder request_encoder(const struct request_ctx *c)
{
    return (struct encoder){ .server = c->s,
                             .kind = c->kind,
                             .form = c->form,
                             .include_object = c->route.params.include_object };
}

/* The real server's internal name of the kind, which one of its messages contains. */
static struct str reply_content_type(const struct request_ctx *c)
{
    struct str group;
    struct str rest;
    if (kind_is(c->kind, KIND_CUSTOM)) {
        return STR("unstructured.Unstructured");
    }
    (void)str_cut(c->kind->group, STR("."), &group, &rest); /* "apps" has no more */
    bool core = group.n == 0 || str_eq(group, STR("events"));
    return arena_printf(c->a, STR_FMT "." STR_FMT, STR_ARG(core ? STR("core") : group),
                        STR_ARG(c->kind->kind));
}

/* True when the Accept header asks for metadata of a list where there is one object, or the other
 * way round. The reply is then an error, although a write has been done. */
static bool accept_misfits_verb(struct request_ctx *c, bool list)
{
    bool misfits = c->form == (list ? FORM_METADATA : FORM_METADATA_LIST);
    if (!misfits) {
        return false;
    }
    struct status *status =
        kind_is(c->kind, KIND_CUSTOM) && !list
            ? status_internal(c->a, STR("content is not a list"))
            : status_new(c->a, 406, "NotAcceptable",
                         arena_printf(c->a,
                                      "you requested PartialObjectMetadata%s, but the requested "
                                      "object is %sa list (*" STR_FMT "%s)",
                                      list ? "" : "List", list ? "" : "not ",
                                      STR_ARG(reply_content_type(c)), list ? "List" : ""));
    reply_tree(c, status->code, status_tree(status, c->a));
    return true;
}

static void reply_json(struct request_ctx *c, int code, struct str text)
{
    c->reply->status = code;
    c->reply->content_type = STR("application/json");
    c->reply->body = text;
}

void reply_object(struct request_ctx *c, int code, const struct object *o)
{
    struct encoder encoder = request_encoder(c);
    if (!accept_misfits_verb(c, /* list= */ false)) {
        reply_json(c, code, arena_str(c->a, encode_event(&encoder, o, 0, c->a)));
    }
}

void reply_unstored(struct request_ctx *c, int code, struct tree *object)
{
    struct encoder encoder = request_encoder(c);
    if (!accept_misfits_verb(c, /* list= */ false)) {
        reply_json(c, code, encode_tree(&encoder, object, c->a));
    }
}

void reply_list(struct request_ctx *c, const struct encode_list *list)
{
    struct encoder encoder = request_encoder(c);
    if (!accept_misfits_verb(c, /* list= */ true)) {
        reply_json(c, 200, encode_list(&encoder, list, c->a));
    }
}

void reply_add_warning(struct request_ctx *c, struct str text)
{
    CLEANUP(buf_done)
    struct buf quoted = { 0 };
    json_quote(&quoted, text);
    c->reply->warning = c->reply->warning.n == 0
                            ? arena_printf(c->a, "299 - " STR_FMT, STR_ARG(buf_str(&quoted)))
                            : arena_printf(c->a, STR_FMT ", 299 - " STR_FMT,
                                           STR_ARG(c->reply->warning), STR_ARG(buf_str(&quoted)));
}

enum accept_match { ACCEPT_MISMATCH, ACCEPT_UNKNOWN_AS, ACCEPT_MATCH };

/* One media range of an Accept header. */
static enum accept_match dispatch_accept_range(struct request_ctx *c, struct str range)
{
    static const struct {
        struct str name;
        enum reply_form form;
    } forms[] = {
        { STR_INIT("Table"), FORM_TABLE },
        { STR_INIT("PartialObjectMetadata"), FORM_METADATA },
        { STR_INIT("PartialObjectMetadataList"), FORM_METADATA_LIST },
    };
    struct str type;
    struct str rest;
    (void)str_cut(range, STR(";"), &type, &rest); /* most have no parameters */
    type = str_trim(type);
    if (!str_eq(type, STR("application/json")) && !str_eq(type, STR("*/*")) &&
        !str_eq(type, STR("application/*")) && type.n > 0) {
        return ACCEPT_MISMATCH;
    }
    struct str as = STR("");
    struct str group = STR("");
    struct str version = STR("");
    struct str part;
    while (rest.n > 0 && str_split_next(&rest, ';', &part)) {
        struct str name;
        struct str value;
        (void)str_cut(str_trim(part), STR("="), &name, &value); /* flags have no value */
        if (str_eq(name, STR("as"))) {
            as = value;
        } else if (str_eq(name, STR("g"))) {
            group = value;
        } else if (str_eq(name, STR("v"))) {
            version = value;
        }
    }
    if (as.n == 0) {
        return ACCEPT_MATCH;
    }
    bool meta = str_eq(group, STR("meta.k8s.io")) && str_eq(version, STR("v1"));
    for (size_t i = 0; i < ARRAY_LEN(forms) && meta; i++) {
        if (str_eq(as, forms[i].name)) {
            c->form = forms[i].form;
            return ACCEPT_MATCH;
        }
    }
    return ACCEPT_UNKNOWN_AS;
}

static struct status *dispatch_accept(struct request_ctx *c)
{
    struct str accept = c->request->accept;
    struct str range;
    bool unknown_form = false;
    do {
        if (!str_split_next(&accept, ',', &range)) {
            range = STR("");
        }
        enum accept_match accepted = dispatch_accept_range(c, range);
        if (accepted == ACCEPT_MATCH) {
            return NULL;
        }
        unknown_form = unknown_form || accepted == ACCEPT_UNKNOWN_AS;
    } while (accept.p != NULL);
    if (unknown_form) {
        return status_new(c->a, 406, "NotAcceptable",
                          STR("only the following media types are accepted: application/json, "
                              "application/yaml, application/vnd.kubernetes.protobuf"));
    }
    return status_generic(
        c->a, 406, "NotAcceptable",
        STR("406: Not Acceptable\n\nAvailable representations: application/json, "
            "application/yaml, application/vnd.kubernetes.protobuf, "
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"));
}

static struct status *dispatch_not_found(struct request_ctx *c)
{
    return status_generic(c->a, 404, "NotFound",
                          STR("the server could not find the requested resource"));
}

static struct status *dispatch_method_not_allowed(struct request_ctx *c)
{
    return status_generic(c->a, 405, "MethodNotAllowed",
                          STR("the server does not allow this method on the requested resource"));
}

static bool method_is(const struct request_ctx *c, const char *method)
{
    return str_eq(c->request->method, str_from(method));
}

static struct status *dispatch_collection(struct request_ctx *c)
{
    bool watch = false;
    bool everywhere = kind_is(c->kind, KIND_NAMESPACED) && c->route.namespace.n == 0;
    (void)url_parse_bool(c->route.params.watch, &watch); /* else false */
    if (kind_is(c->kind, KIND_REVIEW)) {
        return method_is(c, "POST") ? verb_review(c) : dispatch_method_not_allowed(c);
    }
    if (method_is(c, "GET")) {
        return watch ? verb_watch(c) : verb_list(c);
    }
    if (method_is(c, "POST") && !everywhere) {
        return verb_create(c);
    }
    if (method_is(c, "DELETE") && !everywhere && !kind_is(c->kind, KIND_NO_DELETECOLLECTION)) {
        return verb_delete_collection(c);
    }
    return dispatch_method_not_allowed(c);
}

static struct status *dispatch_subresource(struct request_ctx *c)
{
    bool post = method_is(c, "POST");
    switch (c->subresource) {
    case SUBRESOURCE_EVICTION:
        return post ? verb_evict(c) : dispatch_method_not_allowed(c);
    case SUBRESOURCE_BINDING:
        return post ? verb_bind(c) : dispatch_method_not_allowed(c);
    case SUBRESOURCE_SCALE:
        return verb_scale(c);
    case SUBRESOURCE_STATUS:
        break;
    case SUBRESOURCE_FINALIZE:
        return method_is(c, "PUT") ? verb_update(c) : dispatch_method_not_allowed(c);
    case SUBRESOURCE_TOKEN:
        return post ? verb_token(c) : dispatch_method_not_allowed(c);
    case SUBRESOURCE_LOG:
        if (method_is(c, "GET") && request_find_object(c) != NULL) {
            reply_text(c, 200, STR("")); /* simulated containers write no log */
            return NULL;
        }
        return request_find_object(c) == NULL ? status_not_found(c->a, c->kind, c->route.name)
                                              : dispatch_method_not_allowed(c);
    default:
        return dispatch_not_found(c);
    }
    if (method_is(c, "GET")) {
        return verb_get(c);
    }
    if (method_is(c, "PUT")) {
        return verb_update(c);
    }
    return method_is(c, "PATCH") ? verb_patch(c) : dispatch_method_not_allowed(c);
}

static struct status *dispatch_object(struct request_ctx *c)
{
    bool watch = false;
    (void)url_parse_bool(c->route.params.watch, &watch); /* else false */
    if (kind_is(c->kind, KIND_REVIEW)) {
        return dispatch_not_found(c);
    }
    if (method_is(c, "GET")) {
        return watch ? verb_watch(c) : verb_get(c);
    }
    if (method_is(c, "PUT")) {
        return verb_update(c);
    }
    if (method_is(c, "PATCH")) {
        return verb_patch(c);
    }
    if (method_is(c, "DELETE")) {
        return verb_delete(c);
    }
    if (method_is(c, "POST") && kind_is(c->kind, KIND_CUSTOM)) {
        return verb_create(c);
    }
    return dispatch_method_not_allowed(c);
}

static struct status *dispatch_read_options(struct request_ctx *c)
{
    const struct url_params *p = &c->route.params;
    struct status *status = options_check_write(c);
    if (status != NULL) {
        return status;
    }
    c->dry_run = p->dry_run.n > 0;
    c->manager = p->field_manager;
    if (c->manager.n == 0) {
        struct str rest;
        (void)str_cut(c->request->user_agent, STR("/"), &c->manager, &rest); /* most have one */
    }
    return NULL;
}

static struct status *dispatch_resource(struct request_ctx *c)
{
    struct status *status = dispatch_read_options(c);
    if (status == NULL) {
        status = dispatch_accept(c);
    }
    if (status != NULL) {
        return status;
    }
    if (c->route.target == URL_COLLECTION) {
        return dispatch_collection(c);
    }
    if (c->route.subresource.n == 0) {
        return dispatch_object(c);
    }
    c->subresource = kind_subresource(c->route.subresource);
    return (c->kind->subresources & c->subresource) == 0 ? dispatch_not_found(c)
                                                         : dispatch_subresource(c);
}

/* The kind that the URL means. The real server answers for an unknown group in plain text. */
static struct status *dispatch_route(struct request_ctx *c)
{
    const struct url_route *r = &c->route;
    if (!kinds_has_group(&c->s->kinds, r->group, r->version)) {
        reply_text(c, 404, STR("404 page not found\n"));
        return NULL;
    }
    c->kind = kinds_find(&c->s->kinds, r->group, r->version, r->plural);
    struct status *status = auth_check(c);
    if (status != NULL) {
        return status;
    }
    bool namespaced = c->kind != NULL && kind_is(c->kind, KIND_NAMESPACED);
    if (c->kind == NULL || (!namespaced && r->namespace.n > 0) ||
        (namespaced && r->namespace.n == 0 && r->target == URL_OBJECT)) {
        return dispatch_not_found(c);
    }
    return dispatch_resource(c);
}

static struct status *dispatch_request(struct request_ctx *c)
{
    enum url_target target = c->route.target;
    if (target == URL_COLLECTION || target == URL_OBJECT) {
        return dispatch_route(c);
    }
    struct status *status = auth_check(c);
    if (status != NULL) {
        return status;
    }
    struct discovery_reply reply;
    if (!discovery_answer(&c->s->kinds, &c->s->types, c->route.path, c->request->accept, c->a,
                          &reply)) {
        reply_text(c, 404, STR("404 page not found\n"));
        return NULL;
    }
    c->reply->status = 200;
    c->reply->content_type = reply.content_type;
    c->reply->body = reply.body;
    return NULL;
}

void apiserver_handle(struct apiserver *s, const struct apiserver_request *request,
                      struct arena *out, struct apiserver_reply *ret)
{
    *ret = (struct apiserver_reply){ 0 };
    struct request_ctx call = { .s = s, .request = request, .reply = ret, .a = out };
    struct err err = { 0 };
    struct status *status;
    s->agent = request->user_agent;
    if (url_route_parse(request->path, out, &call.route, &err) < 0) {
        status = status_bad_request(out, "%s", err.msg);
    } else {
        status = dispatch_request(&call);
    }
    if (status != NULL) {
        reply_tree(&call, status->code, status_tree(status, out));
        ret->retry_after = SECONDS(status->retry_after_seconds);
    }
    s->agent = STR_NONE;
    ASSERT(ret->status != 0);
}
