#include "bridge/bridge_internal.h"
#include "drain/pod.h"
#include "format/json_items.h"
#include "format/label_pack.h"

#define SURVEY_PODS_MAX 500u /* a node has some hundred; one with more is not empty */
#define SURVEY_SPACES_PAGE 500u
#define SURVEY_PAGES_MAX 20u /* of namespaces; where there are more, nobody can tell */
#define SURVEY_BYTES_MAX ((size_t)8 * 1024 * 1024) /* of their labels, likewise */

/* `found` is what keeps the Node from counting as drained. NULL: the look was cut short, and what
 * the one before found is still all that is known. */
static void survey_end(struct crossing *x, const struct err *found)
{
    struct berth *at = x->berth;
    crossing_free(x);
    if (at == NULL) {
        return;
    }
    if (found != NULL) {
        buf_reset(&at->undrained);
        buf_add(&at->undrained, str_from(found->msg));
    }
    berth_mark(at);
}

static bool survey_goes_on(const struct crossing *x)
{
    const struct link *link = x->yard->link;
    return x->berth != NULL && link != NULL && link_fresh(link);
}

static void survey_refused(const char *what, const struct api_reply *reply, struct err *ret)
{
    client_explain(reply->status, reply->body, reply->err, ret);
    (void)err_wrap(ret, "%s cannot be listed", what);
}

/* ── pods ──────────────────────────────────────────────────────────────────────────────────── */

/* Pods and what they are judged by. */
struct survey {
    const struct drain_rules *book; /* NULL: the Node is drained as any other */
    const struct map *spaces;       /* their labels, packed; NULL: nobody asks for them */
};

/* Whether the first rule that matches the pod leaves it where it is. */
static bool survey_rule_skips(const struct survey *s, struct str space, const struct drain_pod *pod)
{
    struct str *labels = s->spaces == NULL ? NULL : map_find(s->spaces, space);
    const struct drain_rule *rule = NULL;
    const struct drain_rule_pod which = {
        .pod = drain_pod_lookup,
        .pod_ctx = (void *)(uintptr_t)pod,
        .space = labels == NULL ? NULL : label_pack_find,
        .space_ctx = labels,
    };
    return drain_rules_find(s->book, &which, &rule) == 0 && rule != NULL &&
           rule->behavior == DRAIN_RULE_SKIP;
}

/* Whether a drain leaves the pod where it is. What it waits for is not gone while the object
 * exists, and with a rulebook finished pods are taken away like others. */
static bool survey_stays(const struct survey *s, struct str space, const struct drain_pod *pod)
{
    if (s->book == NULL) {
        return pod->finished || drain_pod_is_skipped(pod);
    }
    if (pod->mirror || (pod->daemonset && !pod->finished)) {
        return true;
    }
    if (pod->drain_label != DRAIN_LABEL_NONE) {
        return pod->drain_label == DRAIN_LABEL_SKIP;
    }
    return survey_rule_skips(s, space, pod);
}

/* 0 when a drain would take nothing away; also an error when that cannot be told. */
static int survey_walk(const struct survey *s, struct str body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct json_items split;
    struct str item;
    int more;
    json_items_init(&split, body);
    while ((more = json_items_next(&split, &item, err)) > 0) {
        const struct jval *object = NULL;
        void *projection = NULL;
        if (json_parse(item, 0, &tmp, &object, err) < 0 ||
            drain_pod_kind.project(NULL, object, &tmp, &projection, err) < 0) {
            return err_wrap(err, "its pods cannot be read");
        }
        struct str space = jval_str(jval_at(object, "metadata.namespace"));
        if (!survey_stays(s, space, projection)) {
            return err_set(err, ERR_BUSY, "pod '" STR_FMT "/" STR_FMT "' is still there",
                           STR_ARG(space), STR_ARG(jval_str(jval_at(object, "metadata.name"))));
        }
    }
    const struct jval *metadata = NULL;
    if (more < 0 || json_parse(split.metadata, 0, &tmp, &metadata, err) < 0) {
        return err_wrap(err, "its pods cannot be read");
    }
    return jval_str(jval_get(metadata, STR("continue"))).n == 0
               ? 0
               : err_set(err, ERR_LIMIT, "it has more than %u pods", SURVEY_PODS_MAX);
}

/* The book as it is now: while rules are not known, or cannot be used, nothing is drained. */
static int survey_judge(struct crossing *x, struct str body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct berth_book book;
    berth_book(x->berth, &tmp, &book);
    if (book.asked && !book.known) {
        return err_set(err, ERR_NOTFOUND, STR_FMT, STR_ARG(book.trouble));
    }
    if (book.asked && book.book.error.n > 0) {
        return err_set(err, ERR_INVALID, "its drain rules cannot be used: " STR_FMT,
                       STR_ARG(book.book.error));
    }
    const struct survey s = {
        .book = book.asked ? &book.book : NULL,
        .spaces = x->paged ? &x->spaces : NULL,
    };
    return survey_walk(&s, body, err);
}

static void survey_on_pods(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    struct err found = { 0 };
    x->link_call = NULL;
    if (reply->status != 200) {
        survey_refused("its pods", reply, &found);
    } else if (x->berth != NULL) {
        x->berth->drained = survey_judge(x, reply->body, &found) == 0;
        x->berth->surveyed_at = loop_now(x->bridge->loop); /* however long the answer took */
    }
    survey_end(x, &found);
}

static void survey_pods(struct crossing *x)
{
    struct bridge *b = x->bridge;
    buf_reset(&b->path);
    buf_printf(&b->path, "/api/v1/pods?limit=%u&fieldSelector=spec.nodeName%%3D", SURVEY_PODS_MAX);
    client_add_segment(&b->path, x->name);
    const struct api_request request = { .verb = API_GET, .path = buf_str(&b->path) };
    x->link_call = link_send(x->yard->link, &request, survey_on_pods, x);
}

/* ── namespaces ────────────────────────────────────────────────────────────────────────────── */

static void survey_spaces(struct crossing *x, struct str from);

static int survey_take_spaces(struct crossing *x, struct str body, struct arena *tmp,
                              struct str *ret_more, struct err *err)
{
    struct json_items split;
    struct str item;
    int more;
    json_items_init(&split, body);
    while ((more = json_items_next(&split, &item, err)) > 0) {
        const struct jval *object = NULL;
        int r = json_parse(item, 0, tmp, &object, err);
        if (r < 0) {
            return r;
        }
        struct str *kept = ARENA_NEW(&x->memory, struct str);
        *kept = label_pack_keep(jval_at(object, "metadata.labels"), &x->memory);
        /* One that came before is the same one, of the page before. */
        (void)map_put(&x->spaces, jval_str(jval_at(object, "metadata.name")), kept);
    }
    const struct jval *metadata = NULL;
    if (more == 0) {
        more = json_parse(split.metadata, 0, tmp, &metadata, err);
    }
    *ret_more = jval_str(jval_get(metadata, STR("continue")));
    if (more == 0 &&
        (x->memory.total > SURVEY_BYTES_MAX || (ret_more->n > 0 && x->pages >= SURVEY_PAGES_MAX))) {
        return err_set(err, ERR_LIMIT, "they are too many");
    }
    return more;
}

static void survey_on_spaces(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err found = { 0 };
    struct str more = STR_NONE;
    x->link_call = NULL;
    if (reply->status != 200) {
        survey_refused("the namespaces", reply, &found);
    } else if (survey_take_spaces(x, reply->body, &tmp, &more, &found) < 0) {
        (void)err_wrap(&found, "the namespaces cannot be read");
    }
    if (found.code != 0 || !survey_goes_on(x)) {
        survey_end(x, found.code != 0 ? &found : NULL);
    } else if (more.n > 0) {
        survey_spaces(x, more);
    } else {
        x->paged = true;
        survey_pods(x);
    }
}

static void survey_spaces(struct crossing *x, struct str from)
{
    struct bridge *b = x->bridge;
    buf_reset(&b->path);
    buf_printf(&b->path, "/api/v1/namespaces?limit=%u", SURVEY_SPACES_PAGE);
    if (from.n > 0) {
        buf_add(&b->path, STR("&continue="));
        client_add_segment(&b->path, from);
    }
    const struct api_request request = {
        .verb = API_GET,
        .path = buf_str(&b->path),
        .accept = API_METADATA_LIST,
    };
    x->pages++;
    x->link_call = link_send(x->yard->link, &request, survey_on_spaces, x);
}

/* ── the Node ──────────────────────────────────────────────────────────────────────────────── */

static int survey_look_at_node(const struct api_reply *reply, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *node = NULL;
    if (reply->status != 200) {
        client_explain(reply->status, reply->body, reply->err, err);
        return err_wrap(err, "it cannot be read");
    }
    if (json_parse(reply->body, 0, &tmp, &node, err) < 0) {
        return err_wrap(err, "it cannot be read");
    }
    return jval_bool(jval_at(node, "spec.unschedulable"), false)
               ? 0
               : err_set(err, ERR_BUSY, "it is not cordoned");
}

static bool survey_asks_spaces(const struct berth *at)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct berth_book book;
    berth_book(at, &tmp, &book);
    return book.book.by_space;
}

static void survey_on_node(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    struct err found = { 0 };
    bool cordoned = survey_look_at_node(reply, &found) == 0;
    x->link_call = NULL;
    if (x->berth != NULL) {
        x->berth->cordoned = cordoned;
    }
    if (!cordoned || !survey_goes_on(x)) {
        survey_end(x, !cordoned ? &found : NULL);
    } else if (survey_asks_spaces(x->berth)) {
        survey_spaces(x, STR_NONE);
    } else {
        survey_pods(x);
    }
}

void crossing_survey(struct berth *at)
{
    struct bridge *b = at->bridge;
    struct crossing *x = crossing_new(b, CROSSING_SURVEY, at, berth_machine(at)->node);
    x->yard = at->yard;
    map_init(&x->spaces, loop_random(b->loop), loop_random(b->loop));
    crossing_path_node(b, x->name);
    const struct api_request request = { .verb = API_GET, .path = buf_str(&b->path) };
    x->link_call = link_send(at->yard->link, &request, survey_on_node, x);
}
