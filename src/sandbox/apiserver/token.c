#include "sandbox/apiserver/token.h"

#include "base/base64.h"
#include "base/timestamp.h"
#include "format/digest.h"

#define TOKEN_HEADER STR("{\"alg\":\"HS256\",\"kid\":\"sandbox\"}")
#define TOKEN_SECONDS 3600 /* when the request does not say */
#define TOKEN_SECONDS_MIN 600
#define TOKEN_SECONDS_MAX ((int64_t)1 << 32)

/* ── the text ──────────────────────────────────────────────────────────────────────────────── */

/* Base64 for addresses (RFC 4648 §5) without padding, as JWTs have it. */
static struct str base64url_encode(struct arena *a, struct str bytes)
{
    struct str plain = base64_encode(a, bytes);
    char *text = arena_alloc(a, plain.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < plain.n && plain.p[i] != '='; i++) {
        char c = plain.p[i];
        text[n++] = (char)(c == '+' ? '-' : c == '/' ? '_' : c);
    }
    return (struct str){ .p = text, .n = n };
}

static bool base64url_decode(struct arena *a, struct str text, struct str *ret)
{
    char *plain = arena_alloc(a, text.n + 4);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        plain[n++] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    while (n % 4 != 0) {
        plain[n++] = '=';
    }
    return base64_decode((struct str){ .p = plain, .n = n }, a, ret);
}

/* The key is drawn with the first token, so that runs without tokens draw the same numbers. */
static struct str token_sign(struct apiserver *s, struct str text, struct arena *a)
{
    if (!s->token_key_set) {
        for (size_t i = 0; i < sizeof(s->token_key); i++) {
            s->token_key[i] = (char)rng_below(&s->rng, 256);
        }
        s->token_key_set = true;
    }
    unsigned char hash[SHA256_BYTES];
    sha256_hmac((struct str){ .p = s->token_key, .n = sizeof(s->token_key) }, text, hash);
    return base64url_encode(
        a, arena_str(a, (struct str){ .p = (const char *)hash, .n = sizeof(hash) }));
}

static struct str token_make(struct request_ctx *c, const struct object *account,
                             const struct tree *audiences, int64_t seconds)
{
    struct arena *a = c->a;
    int64_t now = loop_wall(c->s->loop) / SECONDS(1);
    struct str user = arena_printf(a, "system:serviceaccount:" STR_FMT ":" STR_FMT,
                                   STR_ARG(account->namespace), STR_ARG(account->name));
    struct tree *claims = tree_obj(a);
    tree_set(a, claims, STR("aud"), tree_clone(a, audiences));
    tree_set(a, claims, STR("exp"), tree_i64(a, now + seconds));
    tree_set(a, claims, STR("iat"), tree_i64(a, now));
    tree_set(a, claims, STR("iss"), tree_str(a, TOKEN_AUDIENCE));
    tree_set(a, claims, STR("jti"), tree_str(a, apiserver_uid(c->s, a)));
    struct tree *own = tree_obj(a); /* its key has a dot */
    tree_set(a, claims, STR("kubernetes.io"), own);
    tree_set(a, own, STR("namespace"), tree_str(a, account->namespace));
    tree_set_at(a, own, "serviceaccount.name", tree_str(a, account->name));
    tree_set_at(a, own, "serviceaccount.uid",
                tree_str(a, jval_str(jval_get(account->metadata, STR("uid")))));
    tree_set(a, claims, STR("nbf"), tree_i64(a, now));
    tree_set(a, claims, STR("sub"), tree_str(a, user));
    struct str text =
        arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(base64url_encode(a, TOKEN_HEADER)),
                     STR_ARG(base64url_encode(a, tree_json(a, claims))));
    return arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(text), STR_ARG(token_sign(c->s, text, a)));
}

static bool token_is_for(const struct jval *audiences, struct str audience)
{
    JVAL_EACH (audiences, one) {
        if (str_eq(jval_str(one), audience)) {
            return true;
        }
    }
    return false;
}

bool token_verify(struct apiserver *s, struct str token, struct str audience, struct arena *out,
                  struct str *ret_user)
{
    struct str header;
    struct str payload;
    struct str signature;
    struct str json;
    const struct jval *claims;
    struct err err = { 0 };
    if (!str_cut(token, STR("."), &header, &payload) ||
        !str_cut(payload, STR("."), &payload, &signature) || !s->token_key_set) {
        return false;
    }
    struct str text = str_sub(token, 0, header.n + 1 + payload.n);
    /* A simulated server protects nothing: the comparison need not take constant time. */
    if (!str_eq(signature, token_sign(s, text, out)) || !base64url_decode(out, payload, &json) ||
        json_parse(json, 0, out, &claims, &err) < 0) {
        return false;
    }
    int64_t until = 0;
    const struct jval *own = jval_get(claims, STR("kubernetes.io"));
    const struct jval *account =
        apiserver_find(s, STR(""), STR("serviceaccounts"), jval_str(jval_at(own, "namespace")),
                       jval_str(jval_at(own, "serviceaccount.name")));
    *ret_user = jval_str(jval_get(claims, STR("sub")));
    return jval_i64(jval_get(claims, STR("exp")), &until) && loop_wall(s->loop) < SECONDS(until) &&
           token_is_for(jval_get(claims, STR("aud")), audience) && account != NULL &&
           str_eq(jval_str(jval_at(account, "metadata.uid")),
                  jval_str(jval_at(own, "serviceaccount.uid")));
}

/* ── the request ───────────────────────────────────────────────────────────────────────────── */

static struct status *token_invalid(struct request_ctx *c, int64_t seconds, const char *why)
{
    static const struct kind request = { .group = STR_INIT("authentication.k8s.io"),
                                         .kind = STR_INIT("TokenRequest"),
                                         .group_kind =
                                             STR_INIT("TokenRequest.authentication.k8s.io") };
    struct status *list = NULL;
    cause_add(&list, c->a, CAUSE_INVALID, STR("spec.expirationSeconds"),
              arena_printf(c->a, "Invalid value: %lld: %s", (long long)seconds, why));
    return status_invalid(list, &request, STR(""));
}

static struct status *token_read_request(struct request_ctx *c, struct tree **ret)
{
    struct err err = { 0 };
    struct status *status = decode_body(c, STR("TokenRequest"), ret);
    if (status != NULL) {
        return status;
    }
    struct str kind = tree_text_at(*ret, "kind");
    if (kind.n > 0 && !str_eq(kind, STR("TokenRequest"))) {
        return status_bad_request(
            c->a, STR_FMT " in version \"" STR_FMT "\" cannot be handled as a TokenRequest",
            STR_ARG(kind), STR_ARG(tree_text_at(*ret, "apiVersion")));
    }
    const struct tree *schema =
        types_builtin_kind(&c->s->types, STR("authentication.k8s.io"), STR("TokenRequest"));
    return types_check(&c->s->types, schema, *ret, &err) < 0
               ? status_bad_request(c->a, "%s", err.msg)
               : NULL;
}

static void token_reply(struct request_ctx *c, const struct object *account, struct tree *audiences,
                        int64_t seconds)
{
    struct arena *a = c->a;
    char until[TIMESTAMP_TEXT_MAX];
    struct tree *t = tree_obj(a);
    tree_set(a, t, STR("kind"), tree_str(a, STR("TokenRequest")));
    tree_set(a, t, STR("apiVersion"), tree_str(a, STR("authentication.k8s.io/v1")));
    tree_set_at(a, t, "metadata.name", tree_str(a, account->name));
    tree_set_at(a, t, "metadata.namespace", tree_str(a, account->namespace));
    tree_set_at(a, t, "metadata.uid",
                tree_str(a, jval_str(jval_get(account->metadata, STR("uid")))));
    tree_set_at(a, t, "metadata.creationTimestamp", tree_str(a, apiserver_time(c->s, a)));
    tree_set_at(a, t, "spec.audiences", audiences);
    tree_set_at(a, t, "spec.expirationSeconds", tree_i64(a, seconds));
    tree_set_at(a, t, "spec.boundObjectRef", tree_null(a));
    tree_set_at(a, t, "status.token", tree_str(a, token_make(c, account, audiences, seconds)));
    tree_set_at(
        a, t, "status.expirationTimestamp",
        tree_str(a, timestamp_print_seconds(loop_wall(c->s->loop) + SECONDS(seconds), until)));
    reply_tree(c, 201, t);
}

struct status *verb_token(struct request_ctx *c)
{
    struct tree *body = NULL;
    struct status *status = token_read_request(c, &body);
    if (status != NULL) {
        return status;
    }
    const struct object *account = request_find_object(c);
    if (account == NULL) {
        return status_not_found(c->a, c->kind, c->route.name);
    }
    int64_t seconds = TOKEN_SECONDS;
    (void)tree_number(tree_at(body, "spec.expirationSeconds"), &seconds); /* else that */
    if (seconds < TOKEN_SECONDS_MIN) {
        return token_invalid(c, seconds, "may not specify a duration less than 10 minutes");
    }
    if (seconds > TOKEN_SECONDS_MAX) {
        return token_invalid(c, seconds, "may not specify a duration larger than 2^32 seconds");
    }
    struct tree *audiences = tree_at(body, "spec.audiences");
    if (tree_kind(audiences) != JARR || audiences->n == 0) {
        audiences = tree_arr(c->a);
        tree_add(audiences, tree_str(c->a, TOKEN_AUDIENCE));
    } else {
        audiences = tree_clone(c->a, audiences);
    }
    token_reply(c, account, audiences, seconds);
    return NULL;
}
