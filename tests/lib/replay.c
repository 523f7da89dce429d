#include "tests/lib/replay.h"

#include "base/map.h"
#include "format/json_tree.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/apiserver/continue_token.h"
#include "sandbox/sim/virtual_loop.h"

struct replay {
    struct arena arena;
    struct virtual_loop *vloop;
    struct apiserver *server;
    struct map values; /* placeholder → struct str */
    struct buf *out;
    struct str where;
    bool managed; /* managedFields count */
};

static void replay_report(struct replay *p, struct str path, const char *what, struct str have,
                          struct str want)
{
    buf_printf(p->out, STR_FMT " " STR_FMT ": %s: " STR_FMT " want " STR_FMT "\n",
               STR_ARG(p->where), STR_ARG(path), what, STR_ARG(str_sub(have, 0, MIN(have.n, 400u))),
               STR_ARG(str_sub(want, 0, MIN(want.n, 400u))));
}

static const char *const placeholders[] = { "uid-",     "rv-",      "rv",  "time",   "microtime",
                                            "continue", "suffix-5", "age", "address" };

/* The placeholder at the start of `s`, with its brackets; empty when there is none. */
static struct str placeholder_at(struct str s)
{
    size_t end = str_find_char(s, '>');
    if (s.n == 0 || s.p[0] != '<' || end == SIZE_MAX) {
        return STR("");
    }
    struct str name = str_sub(s, 1, end - 1);
    for (size_t i = 0; i < ARRAY_LEN(placeholders); i++) {
        struct str want = str_from(placeholders[i]);
        if (str_eq(name, want) || (str_ends(want, STR("-")) && str_starts(name, want)) ||
            str_starts(name, STR("continue-"))) {
            return str_sub(s, 0, end + 1);
        }
    }
    return STR("");
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static size_t span(struct str s, const char *set)
{
    size_t n = 0;
    while (n < s.n && is_one_of(s.p[n], set)) {
        n++;
    }
    return n;
}

/* How many bytes of `s` have the placeholder's form; 0 = none. */
static size_t placeholder_length(struct str placeholder, struct str s)
{
    if (str_starts(placeholder, STR("<uid"))) {
        return s.n >= 36 && span(s, "0123456789abcdef-") >= 36 ? 36 : 0;
    }
    if (str_starts(placeholder, STR("<rv"))) {
        return span(s, "0123456789");
    }
    if (str_eq(placeholder, STR("<time>"))) {
        return s.n >= 20 && s.p[19] == 'Z' && span(s, "0123456789-T:") == 19 ? 20 : 0;
    }
    if (str_eq(placeholder, STR("<microtime>"))) {
        size_t n = span(s, "0123456789-T:.");
        return n > 20 && n < s.n && s.p[n] == 'Z' ? n + 1 : 0;
    }
    if (str_eq(placeholder, STR("<suffix-5>"))) {
        return span(s, "bcdfghjklmnpqrstvwxz2456789") >= 5 ? 5 : 0;
    }
    if (str_eq(placeholder, STR("<age>"))) {
        bool none = str_starts(s, STR("<invalid>")) || str_starts(s, STR("<unknown>"));
        return none ? sizeof("<invalid>") - 1 : span(s, "0123456789smhdy");
    }
    return s.n; /* whatever is left */
}

static bool placeholder_bind(struct replay *p, struct str placeholder, struct str value)
{
    const struct str *have = map_find(&p->values, placeholder);
    bool numbered = str_contains(placeholder, STR("-")) && !str_starts(placeholder, STR("<suf"));
    if (have != NULL && numbered) {
        return str_eq(*have, value);
    }
    MAP_EACH (&p->values, item) {
        const struct str *other = map_item_value(item);
        if (numbered && str_eq(*other, value)) {
            return false; /* another number stands for another value */
        }
    }
    struct str *copy = ARENA_NEW(&p->arena, struct str);
    *copy = arena_str(&p->arena, value);
    map_put(&p->values, placeholder, copy);
    return true;
}

static bool replay_match_text(struct replay *p, struct str want, struct str have)
{
    while (want.n > 0) {
        struct str placeholder = placeholder_at(want);
        if (placeholder.n == 0) {
            if (have.n == 0 || have.p[0] != want.p[0]) {
                return false;
            }
            want = str_sub(want, 1, want.n - 1);
            have = str_sub(have, 1, have.n - 1);
            continue;
        }
        size_t n = placeholder_length(placeholder, have);
        bool may_be_empty = str_eq(placeholder, STR("<address>"));
        if ((n == 0 && !may_be_empty) || !placeholder_bind(p, placeholder, str_sub(have, 0, n))) {
            return false;
        }
        want = str_sub(want, placeholder.n, want.n - placeholder.n);
        have = str_sub(have, n, have.n - n);
    }
    return have.n == 0;
}

static struct str placeholders_fill(struct replay *p, struct str text)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    while (text.n > 0) {
        struct str placeholder = placeholder_at(text);
        const struct str *value = placeholder.n == 0 ? NULL : map_find(&p->values, placeholder);
        if (value != NULL) {
            buf_add(&out, *value);
            text = str_sub(text, placeholder.n, text.n - placeholder.n);
        } else {
            buf_add_char(&out, text.p[0]);
            text = str_sub(text, 1, text.n - 1);
        }
    }
    return arena_str(&p->arena, buf_str(&out));
}

/* A request's body with every placeholder replaced by what it is bound to. */
static void placeholders_fill_tree(struct replay *p, struct tree *t)
{
    if (tree_kind(t) == JSTR) {
        t->text = placeholders_fill(p, t->text);
    }
    TREE_EACH (t, child) {
        placeholders_fill_tree(p, child);
    }
}

static struct str tree_to_text(struct replay *p, const struct tree *t)
{
    return t == NULL ? STR("nothing") : tree_json(&p->arena, t);
}

static void replay_compare(struct replay *p, struct str path, const struct tree *want,
                           const struct tree *have);

/* managedFields are another recording's matter, and the sentences that describe columns are each
 * server's own. */
static bool replay_ignores(const struct replay *p, struct str path, struct str key)
{
    size_t dot = str_rfind_char(path, '.');
    struct str last = dot == SIZE_MAX ? path : str_sub(path, dot + 1, path.n - dot - 1);
    bool column = str_starts(last, STR("columnDefinitions["));
    return (!p->managed && str_eq(key, STR("managedFields"))) ||
           (column && str_eq(key, STR("description")));
}

static void replay_compare_members(struct replay *p, struct str path, const struct tree *want,
                                   const struct tree *have)
{
    TREE_EACH (want, member) {
        if (replay_ignores(p, path, member->key)) {
            continue;
        }
        const struct tree *other = tree_get(have, member->key);
        struct str below =
            arena_printf(&p->arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(member->key));
        if (other == NULL) {
            replay_report(p, below, "is missing", STR(""), tree_to_text(p, member));
        } else {
            replay_compare(p, below, member, other);
        }
    }
    TREE_EACH (have, member) {
        if (!replay_ignores(p, path, member->key) && tree_get(want, member->key) == NULL) {
            replay_report(
                p,
                arena_printf(&p->arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(member->key)),
                "should not be there", tree_to_text(p, member), STR("nothing"));
        }
    }
}

static void replay_compare(struct replay *p, struct str path, const struct tree *want,
                           const struct tree *have)
{
    if (tree_kind(want) == JOBJ && tree_kind(have) == JOBJ) {
        replay_compare_members(p, path, want, have);
        return;
    }
    if (tree_kind(want) == JARR && tree_kind(have) == JARR) {
        if (want->n != have->n) {
            replay_report(p, path, "has another length", tree_to_text(p, have),
                          tree_to_text(p, want));
            return;
        }
        uint32_t i = 0;
        TREE_EACH (want, item) {
            replay_compare(p, arena_printf(&p->arena, STR_FMT "[%u]", STR_ARG(path), i), item,
                           tree_index(have, i));
            i++;
        }
        return;
    }
    bool text = tree_kind(want) == JSTR && tree_kind(have) == JSTR;
    if (text ? !replay_match_text(p, tree_text(want), tree_text(have)) : !tree_eq(want, have)) {
        replay_report(p, path, "is", tree_to_text(p, have), tree_to_text(p, want));
    }
}

static struct str entry_name(const struct tree *entry)
{
    static const char *const paths[] = { "metadata.name", "name", "resource", "subresource" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct str name = tree_text_at(entry, paths[i]);
        if (name.n > 0) {
            return name;
        }
    }
    return STR("");
}

/* Leaves of a discovery document what the recording names, in the recording's order. */
static struct tree *discovery_keep_recorded(struct arena *a, const struct tree *want,
                                            const struct tree *have)
{
    if (tree_kind(want) == JOBJ && tree_kind(have) == JOBJ) {
        struct tree *t = tree_obj(a);
        TREE_EACH (have, member) {
            tree_set(a, t, member->key,
                     discovery_keep_recorded(a, tree_get(want, member->key), member));
        }
        return t;
    }
    if (tree_kind(want) == JARR && tree_kind(have) == JARR && entry_name(tree_first(want)).n > 0) {
        struct tree *t = tree_arr(a);
        TREE_EACH (want, wanted) {
            TREE_EACH (have, entry) {
                if (str_eq(entry_name(entry), entry_name(wanted))) {
                    tree_add(t, discovery_keep_recorded(a, wanted, entry));
                }
            }
        }
        return t;
    }
    return tree_clone(a, have);
}

static void replay_send(struct replay *p, const struct tree *request, struct apiserver_reply *ret)
{
    const struct tree *headers = tree_get(request, STR("headers"));
    struct tree *body = tree_get(request, STR("body"));
    bool has_body = tree_kind(body) != JNULL;
    if (has_body) {
        placeholders_fill_tree(p, body);
    }
    struct str text = tree_kind(body) == JSTR ? tree_text(body) : tree_to_text(p, body);
    struct apiserver_request r = {
        .method = tree_text_at(request, "method"),
        .path = placeholders_fill(p, tree_text_at(request, "path")),
        .accept = tree_text(tree_get(headers, STR("Accept"))),
        .content_type = tree_text(tree_get(headers, STR("Content-Type"))),
        .authorization = tree_text(tree_get(headers, STR("Authorization"))),
        .impersonate_user = tree_text(tree_get(headers, STR("Impersonate-User"))),
        .user_agent = STR("conformance"),
        .body = has_body ? text : STR(""),
    };
    if (r.content_type.n == 0 && has_body) {
        r.content_type = STR("application/json");
    }
    apiserver_handle(p->server, &r, &p->arena, ret);
}

static struct tree *replay_decode(struct replay *p, const struct apiserver_reply *reply)
{
    struct tree *t;
    struct err err = { 0 };
    if (!str_starts(reply->content_type, STR("application/json")) ||
        tree_parse(reply->body, &p->arena, &t, &err) < 0) {
        t = tree_str(&p->arena, reply->body);
    }
    return t;
}

static void replay_compare_header(struct replay *p, const struct tree *headers, const char *name,
                                  struct str have)
{
    struct str want = tree_text(tree_get(headers, str_from(name)));
    if (!str_eq(want, have)) {
        replay_report(p, str_from(name), "header is", have, want);
    }
}

static void replay_compare_reply(struct replay *p, const struct tree *response,
                                 const struct apiserver_reply *reply)
{
    int64_t status = 0;
    (void)tree_number(tree_get(response, STR("status")), &status);
    if (status != reply->status) {
        replay_report(p, STR("status"), "is", arena_printf(&p->arena, "%d", reply->status),
                      arena_printf(&p->arena, "%lld", (long long)status));
    }
    const struct tree *headers = tree_get(response, STR("headers"));
    replay_compare_header(p, headers, "Content-Type", reply->content_type);
    replay_compare_header(p, headers, "Warning", reply->warning);
    replay_compare_header(p, headers, "Allow", reply->allow);
    replay_compare_header(p, headers, "Www-Authenticate", reply->www_authenticate);
    replay_compare_header(
        p, headers, "Retry-After",
        reply->retry_after == 0
            ? STR("")
            : arena_printf(&p->arena, "%lld", (long long)(reply->retry_after / SECONDS(1))));
}

static void replay_step(struct replay *p, const struct tree *exchange, const char *where)
{
    struct apiserver_reply reply;
    p->where = str_from(where);
    replay_send(p, tree_get(exchange, STR("request")), &reply);
    const struct tree *response = tree_get(exchange, STR("response"));
    replay_compare_reply(p, response, &reply);
    if (tree_get(response, STR("body")) != NULL) {
        replay_compare(p, STR("body"), tree_get(response, STR("body")), replay_decode(p, &reply));
    }
}

static bool is_plain_bookmark(const struct tree *event)
{
    const struct tree *annotations = tree_at(event, "object.metadata.annotations");
    return str_eq(tree_text_at(event, "type"), STR("BOOKMARK")) &&
           tree_get(annotations, STR("k8s.io/initial-events-end")) == NULL;
}

static void replay_read_watch(struct replay *p, struct apiserver_watch *watch, struct tree *events)
{
    struct str line;
    bool ended = false;
    for (;;) {
        while (apiserver_watch_next(watch, &p->arena, &line, &ended)) {
            struct tree *event;
            struct err err = { 0 };
            if (tree_parse(line, &p->arena, &event, &err) < 0) {
                replay_report(p, STR("events"), "a line is no JSON", line, STR(""));
            } else if (!is_plain_bookmark(event)) {
                tree_add(events, event);
            }
        }
        if (ended || !virtual_loop_step(p->vloop, virtual_loop_now(p->vloop) + SECONDS(10))) {
            return;
        }
    }
}

static void replay_watch(struct replay *p, const struct tree *recording,
                         struct apiserver_reply *reply)
{
    const struct tree *response = tree_get(recording, STR("response"));
    if (reply->watch == NULL) {
        replay_report(p, STR("events"), "no stream but", reply->body, STR(""));
        return;
    }
    TREE_EACH (tree_get(recording, STR("during")), exchange) {
        replay_step(p, exchange, "during");
    }
    p->where = STR("main");
    struct tree *events = tree_arr(&p->arena);
    replay_read_watch(p, reply->watch, events);
    replay_compare(p, STR("events"), tree_get(response, STR("events")), events);
    apiserver_watch_close(reply->watch);
}

static void replay_main(struct replay *p, struct str name, const struct tree *recording)
{
    struct apiserver_reply reply;
    struct tree *response = tree_get(recording, STR("response"));
    replay_send(p, tree_get(recording, STR("request")), &reply);
    replay_compare_reply(p, response, &reply);
    if (tree_get(response, STR("events")) != NULL) {
        replay_watch(p, recording, &reply);
        return;
    }
    struct tree *want = tree_get(response, STR("body"));
    struct tree *have = replay_decode(p, &reply);
    if (str_starts(name, STR("discovery-"))) {
        have = discovery_keep_recorded(&p->arena, want, have);
    }
    replay_compare(p, STR("body"), want, have);
}

/* The prelude's requests; only their success counts. */
static void replay_prelude(struct replay *p, struct str prelude)
{
    struct tree *t;
    struct err err = { 0 };
    int r = tree_parse(prelude, &p->arena, &t, &err);
    ASSERT(r == 0);
    TREE_EACH (tree_get(t, STR("requests")), request) {
        struct apiserver_reply reply;
        replay_send(p, request, &reply);
        if (reply.status != 201) {
            replay_report(p, STR("prelude"), "is refused", reply.body, STR("201"));
        }
    }
}

void replay_run(struct str name, struct str prelude, struct str recording, struct buf *out)
{
    struct replay p = { .out = out };
    struct tree *t;
    struct err err = { 0 };
    int r = tree_parse(recording, &p.arena, &t, &err);
    ASSERT(r == 0);
    p.vloop = virtual_loop_new(7, SECONDS(1893456000));
    p.server = apiserver_new(virtual_loop_root(p.vloop), 7);
    p.where = STR("prelude");
    replay_prelude(&p, prelude);
    struct continue_token page = { .rv = 1, .start = { .p = "n1\0", .n = 3 } };
    (void)placeholder_bind(&p, STR("<continue-at-rv-1>"), continue_token_print(&page, &p.arena));
    /* Around the request in question who owns which field does not count. */
    TREE_EACH (tree_get(t, STR("setup")), exchange) {
        replay_step(&p, exchange, "setup");
    }
    p.managed = str_starts(name, STR("apply-"));
    p.where = STR("main");
    replay_main(&p, name, t);
    apiserver_check(p.server);
    apiserver_free(p.server);
    virtual_loop_free(p.vloop);
    map_done(&p.values);
    arena_done(&p.arena);
}
