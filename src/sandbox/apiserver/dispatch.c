#include "sandbox/apiserver/auth.h"
#include "sandbox/apiserver/discovery.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/encode.h"
#include "sandbox/apiserver/token.h"

void call_text(struct call *c, int code, struct str text)
{
    c->reply->status = code;
    c->reply->content_type = STR("text/plain; charset=utf-8");
    c->reply->body = text;
}

void call_tree(struct call *c, int code, const struct tree *tree)
{
    c->reply->status = code;
    c->reply->content_type = STR("application/json");
    c->reply->body = tree_json(c->a, tree);
}

static struct show call_show(const struct call *c)
{
    return (struct show){ .server = c->s,
                          .kind = c->kind,
                          .output = c->output,
                          .include_object = c->route.params.include_object };
}

/* What the kind is called inside the real server, which says so in a message. */
static struct str call_type(const struct call *c)
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

/* True when the form that was asked for does not fit, and the answer says so. What was asked to be
 * done has been done. */
static bool call_misfits(struct call *c, bool list)
{
    bool misfits = c->output == (list ? OUTPUT_METADATA : OUTPUT_METADATA_LIST);
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
                                      list ? "" : "List", list ? "" : "not ", STR_ARG(call_type(c)),
                                      list ? "List" : ""));
    call_tree(c, status->code, status_tree(status, c->a));
    return true;
}

static void call_text_json(struct call *c, int code, struct str text)
{
    c->reply->status = code;
    c->reply->content_type = STR("application/json");
    c->reply->body = text;
}

void call_object(struct call *c, int code, const struct object *o)
{
    struct show show = call_show(c);
    if (!call_misfits(c, /* list= */ false)) {
        call_text_json(c, code, arena_str(c->a, show_event(&show, o, 0, c->a)));
    }
}

void call_unstored(struct call *c, int code, struct tree *object)
{
    struct show show = call_show(c);
    if (!call_misfits(c, /* list= */ false)) {
        call_text_json(c, code, show_tree(&show, object, c->a));
    }
}

void call_list(struct call *c, const struct show_list *list)
{
    struct show show = call_show(c);
    if (!call_misfits(c, /* list= */ true)) {
        call_text_json(c, 200, show_list(&show, list, c->a));
    }
}

void call_warn(struct call *c, struct str text)
{
    CLEANUP(buf_done)
    struct buf quoted = { 0 };
    json_quote(&quoted, text);
    c->reply->warning = c->reply->warning.n == 0
                            ? arena_printf(c->a, "299 - " STR_FMT, STR_ARG(buf_str(&quoted)))
                            : arena_printf(c->a, STR_FMT ", 299 - " STR_FMT,
                                           STR_ARG(c->reply->warning), STR_ARG(buf_str(&quoted)));
}

enum accepted { ACCEPT_NO, ACCEPT_UNKNOWN_FORM, ACCEPT_YES };

/* One media range of an Accept header. */
static enum accepted accept_range(struct call *c, struct str range)
{
    static const struct {
        struct str name;
        enum output output;
    } forms[] = {
        { STR_INIT("Table"), OUTPUT_TABLE },
        { STR_INIT("PartialObjectMetadata"), OUTPUT_METADATA },
        { STR_INIT("PartialObjectMetadataList"), OUTPUT_METADATA_LIST },
    };
    struct str type;
    struct str rest;
    (void)str_cut(range, STR(";"), &type, &rest); /* most have no parameters */
    type = str_trim(type);
    if (!str_eq(type, STR("application/json")) && !str_eq(type, STR("*/*")) &&
        !str_eq(type, STR("application/*")) && type.n > 0) {
        return ACCEPT_NO;
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
        return ACCEPT_YES;
    }
    bool meta = str_eq(group, STR("meta.k8s.io")) && str_eq(version, STR("v1"));
    for (size_t i = 0; i < ARRAY_LEN(forms) && meta; i++) {
        if (str_eq(as, forms[i].name)) {
            c->output = forms[i].output;
            return ACCEPT_YES;
        }
    }
    return ACCEPT_UNKNOWN_FORM;
}

static struct status *call_accept(struct call *c)
{
    struct str accept = c->request->accept;
    struct str range;
    bool unknown_form = false;
    do {
        if (!str_split_next(&accept, ',', &range)) {
            range = STR("");
        }
        enum accepted accepted = accept_range(c, range);
        if (accepted == ACCEPT_YES) {
            return NULL;
        }
        unknown_form = unknown_form || accepted == ACCEPT_UNKNOWN_FORM;
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

static struct status *call_unknown(struct call *c)
{
    return status_generic(c->a, 404, "NotFound",
                          STR("the server could not find the requested resource"));
}

static struct status *call_not_allowed(struct call *c)
{
    return status_generic(c->a, 405, "MethodNotAllowed",
                          STR("the server does not allow this method on the requested resource"));
}

static bool call_is(const struct call *c, const char *method)
{
    return str_eq(c->request->method, str_from(method));
}

static struct status *call_collection(struct call *c)
{
    bool watch = false;
    bool everywhere = kind_is(c->kind, KIND_NAMESPACED) && c->route.namespace.n == 0;
    (void)route_bool(c->route.params.watch, &watch); /* else false */
    if (call_is(c, "GET")) {
        return watch ? verb_watch(c) : verb_list(c);
    }
    if (call_is(c, "POST") && !everywhere) {
        return verb_create(c);
    }
    if (call_is(c, "DELETE") && !everywhere && !kind_is(c->kind, KIND_NO_DELETECOLLECTION)) {
        return verb_delete_collection(c);
    }
    return call_not_allowed(c);
}

static struct status *call_subresource(struct call *c)
{
    bool post = call_is(c, "POST");
    switch (c->subresource) {
    case SUBRESOURCE_EVICTION:
        return post ? verb_evict(c) : call_not_allowed(c);
    case SUBRESOURCE_BINDING:
        return post ? verb_bind(c) : call_not_allowed(c);
    case SUBRESOURCE_SCALE:
        return verb_scale(c);
    case SUBRESOURCE_STATUS:
        break;
    case SUBRESOURCE_FINALIZE:
        return call_is(c, "PUT") ? verb_update(c) : call_not_allowed(c);
    case SUBRESOURCE_TOKEN:
        return post ? verb_token(c) : call_not_allowed(c);
    case SUBRESOURCE_LOG:
        if (call_is(c, "GET") && call_find(c) != NULL) {
            call_text(c, 200, STR("")); /* simulated containers say nothing */
            return NULL;
        }
        return call_find(c) == NULL ? status_not_found(c->a, c->kind, c->route.name)
                                    : call_not_allowed(c);
    default:
        return call_unknown(c);
    }
    if (call_is(c, "GET")) {
        return verb_get(c);
    }
    if (call_is(c, "PUT")) {
        return verb_update(c);
    }
    return call_is(c, "PATCH") ? verb_patch(c) : call_not_allowed(c);
}

static struct status *call_one(struct call *c)
{
    bool watch = false;
    (void)route_bool(c->route.params.watch, &watch); /* else false */
    if (call_is(c, "GET")) {
        return watch ? verb_watch(c) : verb_get(c);
    }
    if (call_is(c, "PUT")) {
        return verb_update(c);
    }
    if (call_is(c, "PATCH")) {
        return verb_patch(c);
    }
    if (call_is(c, "DELETE")) {
        return verb_delete(c);
    }
    if (call_is(c, "POST") && kind_is(c->kind, KIND_CUSTOM)) {
        return verb_create(c);
    }
    return call_not_allowed(c);
}

static struct status *call_options(struct call *c)
{
    const struct params *p = &c->route.params;
    if (p->dry_run.n > 0) {
        if (!str_eq(p->dry_run, STR("All"))) {
            return status_bad_request(
                c->a, "dryRun: Unsupported value: \"" STR_FMT "\": supported values: \"All\"",
                STR_ARG(p->dry_run));
        }
        c->dry_run = true;
    }
    c->manager = p->field_manager;
    if (c->manager.n == 0) {
        struct str rest;
        (void)str_cut(c->request->user_agent, STR("/"), &c->manager, &rest); /* most have one */
    }
    return NULL;
}

static struct status *call_resource(struct call *c)
{
    struct status *status = call_options(c);
    if (status == NULL) {
        status = call_accept(c);
    }
    if (status != NULL) {
        return status;
    }
    if (c->route.target == ROUTE_COLLECTION) {
        return call_collection(c);
    }
    if (c->route.subresource.n == 0) {
        return call_one(c);
    }
    c->subresource = kind_subresource(c->route.subresource);
    return (c->kind->subresources & c->subresource) == 0 ? call_unknown(c) : call_subresource(c);
}

/* What kind the URL means; a group nobody serves is answered by the outermost layer, in plain text.
 */
static struct status *call_route(struct call *c)
{
    const struct route *r = &c->route;
    if (!kinds_has_group(&c->s->kinds, r->group, r->version)) {
        call_text(c, 404, STR("404 page not found\n"));
        return NULL;
    }
    c->kind = kinds_find(&c->s->kinds, r->group, r->version, r->plural);
    struct status *status = auth_check(c);
    if (status != NULL) {
        return status;
    }
    bool namespaced = c->kind != NULL && kind_is(c->kind, KIND_NAMESPACED);
    if (c->kind == NULL || (!namespaced && r->namespace.n > 0) ||
        (namespaced && r->namespace.n == 0 && r->target == ROUTE_OBJECT)) {
        return call_unknown(c);
    }
    return call_resource(c);
}

static struct status *call_dispatch(struct call *c)
{
    enum route_target target = c->route.target;
    if (target == ROUTE_COLLECTION || target == ROUTE_OBJECT) {
        return call_route(c);
    }
    struct status *status = auth_check(c);
    if (status != NULL) {
        return status;
    }
    struct discovery_reply reply;
    if (!discovery_answer(&c->s->kinds, &c->s->types, c->route.path, c->request->accept, c->a,
                          &reply)) {
        call_text(c, 404, STR("404 page not found\n"));
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
    struct call call = { .s = s, .request = request, .reply = ret, .a = out };
    struct err err = { 0 };
    struct status *status;
    s->agent = request->user_agent;
    if (route_parse(request->path, out, &call.route, &err) < 0) {
        status = status_bad_request(out, "%s", err.msg);
    } else {
        status = call_dispatch(&call);
    }
    if (status != NULL) {
        call_tree(&call, status->code, status_tree(status, out));
        ret->retry_after = SECONDS(status->retry_after_seconds);
    }
    s->agent = STR_NONE;
    ASSERT(ret->status != 0);
}
