/* request_body: what a client sent, as a tree: JSON, YAML, or protobuf for the kinds that have it.
 */
#include "base/hex.h"
#include "format/yaml.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/protobuf_body.h"

#define BODY_SHOWN 30u /* bytes of a body that a message repeats */

enum body_form { BODY_JSON, BODY_YAML, BODY_PROTOBUF, BODY_UNKNOWN };

static enum body_form body_form(const struct request_ctx *c)
{
    static const struct {
        struct str type;
        enum body_form form;
    } forms[] = {
        { STR_INIT(""), BODY_JSON },
        { STR_INIT("application/json"), BODY_JSON },
        { STR_INIT("application/yaml"), BODY_YAML },
        { STR_INIT("application/apply-patch+yaml"), BODY_YAML },
        { STR_INIT("application/vnd.kubernetes.protobuf"), BODY_PROTOBUF },
    };
    struct str type;
    struct str rest;
    (void)str_cut(c->request->content_type, STR(";"), &type, &rest); /* parameters do not matter */
    type = str_trim(type);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (str_eq_fold(type, forms[i].type)) {
            return forms[i].form;
        }
    }
    return BODY_UNKNOWN;
}

static struct status *body_unsupported(struct request_ctx *c, bool protobuf)
{
    return status_new(
        c->a, 415, "UnsupportedMediaType",
        arena_concat(c->a,
                     STR("the body of the request was in an unknown format - "
                         "accepted media types include: application/json, "
                         "application/yaml"),
                     protobuf ? STR(", application/vnd.kubernetes.protobuf") : STR("")));
}

/* The beginning of a body, in hexadecimal digits where it is no JSON. */
static struct str body_summary(struct request_ctx *c)
{
    struct str body = c->request->body;
    struct str shown = str_sub(body, 0, MIN(body.n, (size_t)BODY_SHOWN));
    const char *more = body.n > BODY_SHOWN ? " ..." : "";
    if (body.n == 0) {
        return STR("<empty>");
    }
    if (body.p[0] == '{') {
        return arena_printf(c->a, STR_FMT "%s", STR_ARG(shown), more);
    }
    CLEANUP(buf_done)
    struct buf digits = { 0 };
    hex_add(&digits, (const unsigned char *)shown.p, shown.n, /* upper= */ false);
    return arena_printf(c->a, STR_FMT "%s", STR_ARG(buf_str(&digits)), more);
}

static struct status *body_unrecognized(struct request_ctx *c, struct str expected, const char *why)
{
    if (str_eq(expected, STR("DeleteOptions"))) {
        return status_bad_request(c->a, "%s", why);
    }
    return status_bad_request(
        c->a, "the object provided is unrecognized (must be of type " STR_FMT "): %s (" STR_FMT ")",
        STR_ARG(expected), why, STR_ARG(body_summary(c)));
}

static struct status *body_read_protobuf(struct request_ctx *c, struct str expected,
                                         struct tree **ret)
{
    struct err err = { 0 };
    struct protobuf_kind kind = { .api_version = c->kind->api_version, .kind = expected };
    if (protobuf_body_read(c->request->body, c->a, &kind, ret, &err) == 0) {
        return NULL;
    }
    if (kind.kind.n == 0) {
        return body_unrecognized(c, expected, err.msg);
    }
    struct str group;
    struct str version;
    if (!str_cut(kind.api_version, STR("/"), &group, &version)) {
        version = group;
    }
    return status_bad_request(
        c->a, STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT ": %s",
        STR_ARG(kind.kind), STR_ARG(version), STR_ARG(expected), err.msg);
}

static struct status *body_read_json(struct request_ctx *c, struct str expected, struct tree **ret)
{
    CLEANUP(arena_done)
    struct arena tape = { 0 };
    struct err err = { 0 };
    const struct jval *root;
    static const char *const found[] = { "null", "bool", "number", "string", "array" };
    struct str why;
    if (json_parse(c->request->body, 0, &tape, &root, &err) < 0) {
        bool cut = str_contains(str_from(err.msg), STR("found the end"));
        why = cut ? STR("unexpected end of JSON input") : str_from(err.msg);
    } else if (jval_kind(root) == JOBJ) {
        *ret = tree_view(c->a, root, c->request->body);
        return NULL;
    } else {
        why = arena_printf(c->a,
                           "json: cannot unmarshal %s into Go value of type struct { APIVersion "
                           "string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
                           "\"json:\\\"kind,omitempty\\\"\" }",
                           found[jval_kind(root)]);
    }
    why = arena_printf(c->a, "couldn't get version/kind; json parse error: " STR_FMT, STR_ARG(why));
    return body_unrecognized(c, expected, why.p);
}

struct status *decode_body(struct request_ctx *c, struct str expected, struct tree **ret)
{
    /* A custom resource's own objects have no protobuf; options of a DELETE have. */
    bool own = str_eq(expected, c->kind->kind);
    bool protobuf = !kind_is(c->kind, KIND_CUSTOM) || !own;
    struct err err = { 0 };
    struct ydoc doc;
    *ret = NULL;
    switch (body_form(c)) {
    case BODY_PROTOBUF:
        return protobuf ? body_read_protobuf(c, expected, ret) : body_unsupported(c, protobuf);
    case BODY_YAML:
        if (ydoc_parse(c->request->body, c->a, &doc, &err) < 0) {
            return status_bad_request(c->a, "error decoding YAML: %s", err.msg);
        }
        *ret = tree_from(c->a, doc.root);
        return tree_kind(*ret) == JOBJ ? NULL
                                       : body_unrecognized(c, expected, "YAML holds no object");
    case BODY_JSON:
        return body_read_json(c, expected, ret);
    case BODY_UNKNOWN:
        break;
    }
    return body_unsupported(c, protobuf);
}

struct status *decode_request_body(struct request_ctx *c, struct tree **ret)
{
    struct status *status = decode_body(c, c->kind->kind, ret);
    if (status != NULL) {
        return status;
    }
    struct str kind = tree_text_at(*ret, "kind");
    struct str api_version = tree_text_at(*ret, "apiVersion");
    if (kind.n == 0 || api_version.n == 0) {
        if (kind_is(c->kind, KIND_CUSTOM) && kind.n == 0) {
            return status_bad_request(
                c->a, "Object 'Kind' is missing in '" STR_FMT "'",
                STR_ARG(str_sub(c->request->body, 0, MIN(c->request->body.n, (size_t)200))));
        }
        tree_set(c->a, *ret, STR("kind"), tree_str(c->a, c->kind->kind));
        tree_set(c->a, *ret, STR("apiVersion"), tree_str(c->a, c->kind->api_version));
        return NULL;
    }
    if (!str_eq(kind, c->kind->kind) || !str_eq(api_version, c->kind->api_version)) {
        struct str version = api_version;
        struct str group = STR("");
        struct str rest;
        if (str_cut(api_version, STR("/"), &group, &rest)) {
            version = rest;
        }
        return status_bad_request(
            c->a,
            STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT
                    ": converting (" STR_FMT "." STR_FMT ") to (" STR_FMT "." STR_FMT
                    "): unknown conversion",
            STR_ARG(kind), STR_ARG(version), STR_ARG(c->kind->kind), STR_ARG(version),
            STR_ARG(kind), STR_ARG(c->kind->group.n == 0 ? STR("core") : c->kind->group),
            STR_ARG(c->kind->kind));
    }
    return NULL;
}
