#include "tests/swarm/check_drain_rules.h"

enum fate { FATE_DRAIN, FATE_SKIP, FATE_WAIT };

struct book {
    const char *text;
    bool nothing; /* may be sent away */
    struct {
        enum fate fate;
        int order;
    } of[RULES_APPS];
};

#define RULE(name, behavior, more, pods)                                                           \
    "{\"name\":\"" name "\",\"behavior\":\"" behavior "\"" more ",\"pods\":[{" pods "}]}"
#define OF(app) "\"selector\":\"app=" app "\""
#define IN(team) ",\"namespaceSelector\":\"team=" team "\""

/* The namespace of all pods has the label team=a. */
static const struct book books[] = {
    { "[]", false, { { 0 } } },
    { "[" RULE("1", "Drain", ",\"order\":-1", OF("r0")) "," RULE("2", "Drain", ",\"order\":5",
                                                                 OF("r1")) "]",
      false,
      { { FATE_DRAIN, -1 }, { FATE_DRAIN, 5 }, { FATE_DRAIN, 0 } } },
    { "[" RULE("1", "Skip", "", OF("r0")) "," RULE("2", "Drain", ",\"order\":7", OF("r0")) "," RULE(
          "3", "Drain", ",\"order\":3", OF("r2")) "]",
      false,
      { { FATE_SKIP, 0 }, { FATE_DRAIN, 0 }, { FATE_DRAIN, 3 } } },
    { "[" RULE("1", "Drain", ",\"order\":4", OF("r0") IN("a")) "," RULE("2", "Skip", "",
                                                                        OF("r1") IN("b")) "]",
      false,
      { { FATE_DRAIN, 4 }, { FATE_DRAIN, 0 }, { FATE_DRAIN, 0 } } },
    { "[" RULE("1", "WaitCompleted", "",
               OF("r1")) "," RULE("2", "Drain", ",\"order\":-2",
                                  OF("r2")) "," RULE("3", "Drain", ",\"order\":2", OF("r0")) "]",
      false,
      { { FATE_DRAIN, 2 }, { FATE_WAIT, 0 }, { FATE_DRAIN, -2 } } },
    { "{\"error\":\"rule '1' cannot be read\"}", true, { { 0 } } },
};

#define BOOKS ((uint32_t)ARRAY_LEN(books))

/* A node's books, the latest last. */
struct rules_node {
    struct {
        uint32_t book; /* BOOKS: none */
        usec_t since;
    } had[RULES_HISTORY];
    uint32_t n;
};

struct rules_pod {
    usec_t at;
};

uint32_t rules_count(void)
{
    return BOOKS;
}

struct str rules_text(uint32_t book)
{
    return book < BOOKS ? str_from(books[book].text) : STR_NONE;
}

static bool waits(const struct book *b)
{
    bool any = false;
    for (uint32_t i = 0; i < RULES_APPS; i++) {
        any = any || b->of[i].fate == FATE_WAIT;
    }
    return any;
}

bool rules_blocks(uint32_t book)
{
    return book < BOOKS && (books[book].nothing || waits(&books[book]));
}

void rules_done(struct rules *r)
{
    map_done(&r->nodes);
    map_done(&r->bound);
    arena_done(&r->memory);
}

static uint32_t book_of(const struct jval *node)
{
    const struct jval *text = jval_get(jval_at(node, "metadata.annotations"), RULES_KEY);
    for (uint32_t i = 0; text != NULL && i < BOOKS; i++) {
        if (str_eq(jval_str(text), str_from(books[i].text))) {
            return i;
        }
    }
    return BOOKS;
}

static void note_node(struct rules *r, const struct apiserver_commit *commit, usec_t now)
{
    uint32_t book = commit->now == NULL ? BOOKS : book_of(commit->now);
    struct rules_node *node = map_find(&r->nodes, commit->name);
    if (node == NULL) {
        node = ARENA_NEW(&r->memory, struct rules_node);
        node->had[node->n].book = BOOKS;
        node->had[node->n++].since = 0;
        (void)map_put(&r->nodes, arena_str(&r->memory, commit->name), node); /* it was not there */
    }
    if (node->had[node->n - 1].book == book) {
        return;
    }
    if (node->n == RULES_HISTORY) {
        memmove(&node->had[0], &node->had[1], (RULES_HISTORY - 1) * sizeof(node->had[0]));
        node->n--;
    }
    node->had[node->n].book = book;
    node->had[node->n++].since = now;
}

static void note_pod(struct rules *r, const struct apiserver_commit *commit, usec_t now)
{
    struct str uid = jval_str(jval_at(commit->now, "metadata.uid"));
    if (commit->now == NULL || jval_str(jval_at(commit->now, "spec.nodeName")).n == 0 ||
        map_find(&r->bound, uid) != NULL) {
        return;
    }
    struct rules_pod *pod = ARENA_NEW(&r->memory, struct rules_pod);
    pod->at = now;
    (void)map_put(&r->bound, arena_str(&r->memory, uid), pod); /* it was not there */
}

void rules_on_commit(struct rules *r, const struct apiserver_commit *commit, usec_t now)
{
    if (r->on && str_eq(commit->plural, STR("nodes"))) {
        note_node(r, commit, now);
    } else if (r->on && str_eq(commit->plural, STR("pods"))) {
        note_pod(r, commit, now);
    }
}

static void fate_of(const struct book *b, const struct jval *pod, enum fate *ret, int *ret_order)
{
    struct str app = jval_str(jval_at(pod, "metadata.labels.app"));
    *ret = FATE_DRAIN;
    *ret_order = 0;
    if (app.n == 2 && app.p[0] == 'r' && app.p[1] >= '0' && app.p[1] < '0' + (int)RULES_APPS) {
        *ret = b->of[app.p[1] - '0'].fate;
        *ret_order = b->of[app.p[1] - '0'].order;
    }
}

bool rules_skips(const struct rules *r, const struct jval *node, const struct jval *pod)
{
    uint32_t book = r->on ? book_of(node) : BOOKS;
    enum fate fate = FATE_DRAIN;
    int ignored = 0;
    if (book < BOOKS) {
        fate_of(&books[book], pod, &fate, &ignored);
    }
    return fate == FATE_SKIP;
}

struct turn {
    const struct rules *r;
    const struct book *book;
    struct str node;
    int order;
    usec_t now;
    struct str before; /* a pod that has to be gone first */
};

static void turn_visit(void *ctx, const struct jval *pod)
{
    struct turn *turn = ctx;
    enum fate fate = FATE_DRAIN;
    int order = 0;
    const struct rules_pod *bound =
        map_find(&turn->r->bound, jval_str(jval_at(pod, "metadata.uid")));
    fate_of(turn->book, pod, &fate, &order);
    if (str_eq(jval_str(jval_at(pod, "spec.nodeName")), turn->node) && fate != FATE_SKIP &&
        order < turn->order && bound != NULL && turn->now - bound->at > RULES_LAG) {
        turn->before = jval_str(jval_at(pod, "metadata.name"));
    }
}

/* Why the pod must not be sent away by that book; NULL: it may. */
static const char *objection(const struct rules *r, uint32_t book, const struct jval *pod,
                             usec_t now)
{
    enum fate fate = FATE_DRAIN;
    struct turn turn = { .r = r, .now = now };
    if (book == BOOKS) {
        return NULL;
    }
    turn.book = &books[book];
    turn.node = jval_str(jval_at(pod, "spec.nodeName"));
    fate_of(turn.book, pod, &fate, &turn.order);
    if (turn.book->nothing) {
        return "although its rules cannot be used";
    }
    if (fate != FATE_DRAIN) {
        return fate == FATE_SKIP ? "which its rules skip" : "which its rules wait for";
    }
    apiserver_each(r->server, STR(""), STR("pods"), STR(""), turn_visit, &turn);
    return turn.before.n > 0 ? "before those of a lower order are gone" : NULL;
}

void rules_on_send(struct rules *r, struct str who, struct str space, struct str pod, usec_t now)
{
    const struct jval *object =
        r->on ? apiserver_find(r->server, STR(""), STR("pods"), space, pod) : NULL;
    struct str name = jval_str(jval_at(object, "spec.nodeName"));
    const struct rules_node *node = name.n > 0 ? map_find(&r->nodes, name) : NULL;
    const char *why = NULL; /* by the latest book */
    bool wrong = node != NULL;
    for (uint32_t i = node != NULL ? node->n : 0; i-- > 0 && wrong;) {
        const char *each = objection(r, node->had[i].book, object, now);
        why = why == NULL ? each : why;
        wrong = each != NULL;
        if (node->had[i].since < now - RULES_LAG) {
            break; /* nobody can know those before */
        }
    }
    if (wrong) {
        promise_break(r->promise, "B-16: " STR_FMT " sends " STR_FMT " away from " STR_FMT ", %s",
                      STR_ARG(who), STR_ARG(pod), STR_ARG(name), why);
    }
}
