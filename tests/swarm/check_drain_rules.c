#include "tests/swarm/check_drain_rules.h"

enum expected_behavior { EXPECT_DRAIN, EXPECT_SKIP, EXPECT_WAIT };

struct known_rules {
    const char *text;
    bool blocks_all; /* may be sent away */
    struct {
        enum expected_behavior behavior;
        int order;
    } by_app[CHECK_DRAIN_RULES_APPS];
};

#define RULE_JSON(name, behavior, more, pods)                                                      \
    "{\"name\":\"" name "\",\"behavior\":\"" behavior "\"" more ",\"pods\":[{" pods "}]}"
#define APP_SELECTOR(app) "\"selector\":\"app=" app "\""
#define TEAM_SELECTOR(team) ",\"namespaceSelector\":\"team=" team "\""

/* The namespace of all pods has the label team=a. */
static const struct known_rules known_rules[] = {
    { "[]", false, { { 0 } } },
    { "[" RULE_JSON("1", "Drain", ",\"order\":-1", APP_SELECTOR("r0")) "," RULE_JSON(
          "2", "Drain", ",\"order\":5", APP_SELECTOR("r1")) "]",
      false,
      { { EXPECT_DRAIN, -1 }, { EXPECT_DRAIN, 5 }, { EXPECT_DRAIN, 0 } } },
    { "[" RULE_JSON("1", "Skip", "", APP_SELECTOR("r0")) "," RULE_JSON(
          "2", "Drain", ",\"order\":7",
          APP_SELECTOR("r0")) "," RULE_JSON("3", "Drain", ",\"order\":3", APP_SELECTOR("r2")) "]",
      false,
      { { EXPECT_SKIP, 0 }, { EXPECT_DRAIN, 0 }, { EXPECT_DRAIN, 3 } } },
    { "[" RULE_JSON("1", "Drain", ",\"order\":4",
                    APP_SELECTOR("r0") TEAM_SELECTOR(
                        "a")) "," RULE_JSON("2", "Skip", "",
                                            APP_SELECTOR("r1") TEAM_SELECTOR("b")) "]",
      false,
      { { EXPECT_DRAIN, 4 }, { EXPECT_DRAIN, 0 }, { EXPECT_DRAIN, 0 } } },
    { "[" RULE_JSON("1", "WaitCompleted", "", APP_SELECTOR("r1")) "," RULE_JSON(
          "2", "Drain", ",\"order\":-2",
          APP_SELECTOR("r2")) "," RULE_JSON("3", "Drain", ",\"order\":2", APP_SELECTOR("r0")) "]",
      false,
      { { EXPECT_DRAIN, 2 }, { EXPECT_WAIT, 0 }, { EXPECT_DRAIN, -2 } } },
    { "{\"error\":\"rule '1' cannot be read\"}", true, { { 0 } } },
};

#define KNOWN_RULES ((uint32_t)ARRAY_LEN(known_rules))

/* A node's books, the latest last. */
struct check_drain_rules_node {
    struct {
        uint32_t known; /* KNOWN_RULES: none */
        usec_t since;
    } history[CHECK_DRAIN_RULES_HISTORY];
    uint32_t n;
};

struct check_drain_rules_pod {
    usec_t at;
};

uint32_t check_drain_rules_count(void)
{
    return KNOWN_RULES;
}

struct str check_drain_rules_text(uint32_t known)
{
    return known < KNOWN_RULES ? str_from(known_rules[known].text) : STR_NONE;
}

static bool has_wait_rule(const struct known_rules *b)
{
    bool any = false;
    for (uint32_t i = 0; i < CHECK_DRAIN_RULES_APPS; i++) {
        any = any || b->by_app[i].behavior == EXPECT_WAIT;
    }
    return any;
}

bool check_drain_rules_may_block(uint32_t known)
{
    return known < KNOWN_RULES &&
           (known_rules[known].blocks_all || has_wait_rule(&known_rules[known]));
}

void check_drain_rules_done(struct check_drain_rules *r)
{
    map_done(&r->nodes);
    map_done(&r->bound);
    arena_done(&r->memory);
}

static uint32_t known_rules_of(const struct jval *node)
{
    const struct jval *text =
        jval_get(jval_at(node, "metadata.annotations"), CHECK_DRAIN_RULES_KEY);
    for (uint32_t i = 0; text != NULL && i < KNOWN_RULES; i++) {
        if (str_eq(jval_str(text), str_from(known_rules[i].text))) {
            return i;
        }
    }
    return KNOWN_RULES;
}

static void remember_node(struct check_drain_rules *r, const struct apiserver_commit *commit,
                          usec_t now)
{
    uint32_t known = commit->now == NULL ? KNOWN_RULES : known_rules_of(commit->now);
    struct check_drain_rules_node *node = map_find(&r->nodes, commit->name);
    if (node == NULL) {
        node = ARENA_NEW(&r->memory, struct check_drain_rules_node);
        node->history[node->n].known = KNOWN_RULES;
        node->history[node->n++].since = 0;
        (void)map_put(&r->nodes, arena_str(&r->memory, commit->name), node); /* it was not there */
    }
    if (node->history[node->n - 1].known == known) {
        return;
    }
    if (node->n == CHECK_DRAIN_RULES_HISTORY) {
        memmove(&node->history[0], &node->history[1],
                (CHECK_DRAIN_RULES_HISTORY - 1) * sizeof(node->history[0]));
        node->n--;
    }
    node->history[node->n].known = known;
    node->history[node->n++].since = now;
}

static void remember_pod(struct check_drain_rules *r, const struct apiserver_commit *commit,
                         usec_t now)
{
    struct str uid = jval_str(jval_at(commit->now, "metadata.uid"));
    if (commit->now == NULL || jval_str(jval_at(commit->now, "spec.nodeName")).n == 0 ||
        map_find(&r->bound, uid) != NULL) {
        return;
    }
    struct check_drain_rules_pod *pod = ARENA_NEW(&r->memory, struct check_drain_rules_pod);
    pod->at = now;
    (void)map_put(&r->bound, arena_str(&r->memory, uid), pod); /* it was not there */
}

void check_drain_rules_on_commit(struct check_drain_rules *r, const struct apiserver_commit *commit,
                                 usec_t now)
{
    if (r->on && str_eq(commit->plural, STR("nodes"))) {
        remember_node(r, commit, now);
    } else if (r->on && str_eq(commit->plural, STR("pods"))) {
        remember_pod(r, commit, now);
    }
}

static void behavior_for_pod(const struct known_rules *b, const struct jval *pod,
                             enum expected_behavior *ret, int *ret_order)
{
    struct str app = jval_str(jval_at(pod, "metadata.labels.app"));
    *ret = EXPECT_DRAIN;
    *ret_order = 0;
    if (app.n == 2 && app.p[0] == 'r' && app.p[1] >= '0' &&
        app.p[1] < '0' + (int)CHECK_DRAIN_RULES_APPS) {
        *ret = b->by_app[app.p[1] - '0'].behavior;
        *ret_order = b->by_app[app.p[1] - '0'].order;
    }
}

bool check_drain_rules_skips(const struct check_drain_rules *r, const struct jval *node,
                             const struct jval *pod)
{
    uint32_t known = r->on ? known_rules_of(node) : KNOWN_RULES;
    enum expected_behavior behavior = EXPECT_DRAIN;
    int ignored = 0;
    if (known < KNOWN_RULES) {
        behavior_for_pod(&known_rules[known], pod, &behavior, &ignored);
    }
    return behavior == EXPECT_SKIP;
}

struct order_check {
    const struct check_drain_rules *r;
    const struct known_rules *known;
    struct str node;
    int order;
    usec_t now;
    struct str earlier_pod; /* a pod that has to be gone first */
};

static void order_check_visit(void *ctx, const struct jval *pod)
{
    struct order_check *check = ctx;
    enum expected_behavior behavior = EXPECT_DRAIN;
    int order = 0;
    const struct check_drain_rules_pod *bound =
        map_find(&check->r->bound, jval_str(jval_at(pod, "metadata.uid")));
    behavior_for_pod(check->known, pod, &behavior, &order);
    if (str_eq(jval_str(jval_at(pod, "spec.nodeName")), check->node) && behavior != EXPECT_SKIP &&
        order < check->order && bound != NULL && check->now - bound->at > CHECK_DRAIN_RULES_LAG) {
        check->earlier_pod = jval_str(jval_at(pod, "metadata.name"));
    }
}

/* Why the pod must not be sent away by that book; NULL: it may. */
static const char *eviction_error(const struct check_drain_rules *r, uint32_t known,
                                  const struct jval *pod, usec_t now)
{
    enum expected_behavior behavior = EXPECT_DRAIN;
    struct order_check check = { .r = r, .now = now };
    if (known == KNOWN_RULES) {
        return NULL;
    }
    check.known = &known_rules[known];
    check.node = jval_str(jval_at(pod, "spec.nodeName"));
    behavior_for_pod(check.known, pod, &behavior, &check.order);
    if (check.known->blocks_all) {
        return "although its rules cannot be used";
    }
    if (behavior != EXPECT_DRAIN) {
        return behavior == EXPECT_SKIP ? "which its rules skip" : "which its rules wait for";
    }
    apiserver_each(r->server, STR(""), STR("pods"), STR(""), order_check_visit, &check);
    return check.earlier_pod.n > 0 ? "before those of a lower order are gone" : NULL;
}

void check_drain_rules_on_send(struct check_drain_rules *r, struct str writer, struct str namespace,
                               struct str pod, usec_t now)
{
    const struct jval *object =
        r->on ? apiserver_find(r->server, STR(""), STR("pods"), namespace, pod) : NULL;
    struct str name = jval_str(jval_at(object, "spec.nodeName"));
    const struct check_drain_rules_node *node = name.n > 0 ? map_find(&r->nodes, name) : NULL;
    const char *latest_error = NULL; /* by the latest book */
    bool violated = node != NULL;
    for (uint32_t i = node != NULL ? node->n : 0; i-- > 0 && violated;) {
        const char *error = eviction_error(r, node->history[i].known, object, now);
        latest_error = latest_error == NULL ? error : latest_error;
        violated = error != NULL;
        if (node->history[i].since < now - CHECK_DRAIN_RULES_LAG) {
            break; /* nobody can know those before */
        }
    }
    if (violated) {
        check_violation(r->basic, "B23: " STR_FMT " sends " STR_FMT " away from " STR_FMT ", %s",
                        STR_ARG(writer), STR_ARG(pod), STR_ARG(name), latest_error);
    }
}
