/* Finds the checks that block a transition, and writes a node's report as JSON. */
#include "profile/node_report.h"

#include "base/timestamp.h"
#include "format/check_expr.h"

static const struct str answer_names[] = {
    [CHECK_FAIL] = STR_INIT("fail"),
    [CHECK_PASS] = STR_INIT("pass"),
    [CHECK_ERROR] = STR_INIT("error"),
    [CHECK_PENDING] = STR_INIT("pending"),
};

struct str node_report_answer_name(enum check_answer answer)
{
    ASSERT((size_t)answer < ARRAY_LEN(answer_names));
    return answer_names[answer];
}

/* ── which checks block a transition ───────────────────────────────────────────────────────── */

static bool find_check(void *ctx, struct str name, uint32_t *ret_index)
{
    const struct node_report_transition *t = ctx;
    for (uint32_t i = 0; i < t->check_n; i++) {
        if (str_eq(t->checks[i].name, name)) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static bool node_value(const struct node_report_transition *t, const struct check_expr *e,
                       uint32_t at)
{
    const struct check_expr_node *node = &e->nodes[at];
    switch (node->kind) {
    case CHECK_EXPR_NAME:
        return t->checks[e->vars[node->var].index].answer == CHECK_PASS;
    case CHECK_EXPR_CONSTANT:
        return node->value;
    case CHECK_EXPR_NOT:
        return !node_value(t, e, node->right);
    case CHECK_EXPR_AND:
        return node_value(t, e, node->left) && node_value(t, e, node->right);
    case CHECK_EXPR_OR:
        return node_value(t, e, node->left) || node_value(t, e, node->right);
    }
    return false;
}

/* Depth is bounded by CHECK_EXPR_NODES_MAX, and evaluation by its square. */
static void mark_node(struct node_report_transition *t, const struct check_expr *e, uint32_t at,
                      bool want)
{
    const struct check_expr_node *node = &e->nodes[at];
    if (node_value(t, e, at) == want || node->kind == CHECK_EXPR_CONSTANT) {
        return;
    }
    if (node->kind == CHECK_EXPR_NAME) {
        t->checks[e->vars[node->var].index].holds = true;
    } else if (node->kind == CHECK_EXPR_NOT) {
        mark_node(t, e, node->right, !want);
    } else {
        mark_node(t, e, node->left, want);
        mark_node(t, e, node->right, want);
    }
}

/* How a check stands in an expression. */
#define PLAIN 1u
#define NEGATED 2u

static void find_signs(const struct check_expr *e, uint32_t at, uint8_t sign, uint8_t *signs)
{
    const struct check_expr_node *node = &e->nodes[at];
    switch (node->kind) {
    case CHECK_EXPR_NAME:
        signs[e->vars[node->var].index] |= sign;
        break;
    case CHECK_EXPR_CONSTANT:
        break;
    case CHECK_EXPR_NOT:
        find_signs(e, node->right, sign == PLAIN ? NEGATED : PLAIN, signs);
        break;
    case CHECK_EXPR_AND:
    case CHECK_EXPR_OR:
        find_signs(e, node->left, sign, signs);
        find_signs(e, node->right, sign, signs);
        break;
    }
}

static void mark_transition(struct node_report_transition *t, struct arena *tmp)
{
    bool unsure = false;
    struct check_expr e;
    struct err err = { 0 };
    struct instance_names names = { .find = find_check, .ctx = t, .kind = "check" };
    uint8_t *signs = ARENA_ARRAY(tmp, uint8_t, t->check_n + 1);
    /* A text that is not an expression marks nothing. */
    bool read = check_expr_parse(t->expression, &names, tmp, &e, &err) == 0 && e.n > 0;
    if (read) {
        find_signs(&e, e.n - 1, PLAIN, signs);
    }
    for (uint32_t i = 0; i < t->check_n; i++) {
        enum check_answer answer = t->checks[i].answer;
        t->checks[i].negated = signs[i] == NEGATED;
        t->checks[i].holds = answer == CHECK_ERROR || answer == CHECK_PENDING;
        unsure = unsure || t->checks[i].holds;
    }
    /* Whatever the others say, nothing passes before those that are unsure are known. */
    if (read && !t->chain_passed && !unsure) {
        mark_node(t, &e, e.n - 1, true);
    }
}

struct str node_report_held(const struct node_report *r, const struct node_report_profile *p,
                            const struct node_report_transition *t)
{
    if (!t->passed || t->target != PROFILE_STATE_MAINTENANCE) {
        return t->held;
    }
    bool drained_first = r->draining.running && p->doing.n > 0 && str_eq(p->doing, r->drain);
    return r->waits.n > 0 ? r->waits : drained_first ? STR("the node is drained first") : t->held;
}

struct str node_report_check_label(const struct node_report_check *c, struct arena *out)
{
    return c->negated ? arena_concat(out, STR("!"), c->name) : c->name;
}

enum check_answer node_report_check_meaning(const struct node_report_check *c)
{
    return !c->negated || (c->answer != CHECK_PASS && c->answer != CHECK_FAIL) ? c->answer
           : c->answer == CHECK_PASS                                           ? CHECK_FAIL
                                                                               : CHECK_PASS;
}

void node_report_mark_blocking(struct node_report *r)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t i = 0; i < r->profile_n; i++) {
        for (uint32_t k = 0; k < r->profiles[i].transition_n; k++) {
            mark_transition(&r->profiles[i].transitions[k], &tmp);
            arena_reset(&tmp);
        }
    }
}

/* ── /api/v1/info ──────────────────────────────────────────────────────────────────────────── */

/* The members of `info` with "error" at its place among the sorted keys. */
static void info_with_error(struct json_writer *w, const struct jval *info, struct str error)
{
    bool said = false;
    jw_obj(w);
    JVAL_EACH (info, member) {
        int order = str_cmp(jval_key(member), STR("error"));
        if (!said && order >= 0) {
            jw_pair(w, "error", error);
            said = true;
        }
        if (order != 0) {
            jw_key(w, jval_key(member));
            jw_val(w, member);
        }
    }
    if (!said) {
        jw_pair(w, "error", error);
    }
    jw_obj_end(w);
}

/* What a plugin gave is never trusted to be JSON: one bad value (a NaN) must not spoil the whole
 * document, as it did for the original. */
void node_report_print_check_info(const struct node_report_check *c, struct json_writer *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *info = NULL;
    struct err err = { 0 };
    if (c->info.n > 0 &&
        (json_parse(c->info, 0, &tmp, &info, &err) < 0 || jval_kind(info) != JOBJ)) {
        jw_obj(w);
        jw_pair(w, "invalid", c->info);
        jw_obj_end(w);
    } else if (c->answer == CHECK_ERROR) {
        info_with_error(w, info, c->error);
    } else if (info == NULL) {
        jw_raw(w, STR("{}"));
    } else {
        jw_raw(w, c->info);
    }
}

/* Each check under its name, sorted by it as Go sorts the keys of a map. */
static void print_chain_info(struct json_writer *w, const struct node_report_transition *t)
{
    jw_obj(w);
    struct str last = STR_NONE;
    for (uint32_t printed = 0; printed < t->check_n; printed++) {
        const struct node_report_check *least = NULL;
        for (uint32_t i = 0; i < t->check_n; i++) {
            const struct node_report_check *c = &t->checks[i];
            if ((printed == 0 || str_cmp(c->name, last) > 0) &&
                (least == NULL || str_cmp(c->name, least->name) < 0)) {
                least = c;
            }
        }
        if (least == NULL) {
            break; /* a name that is there twice */
        }
        last = least->name;
        jw_key(w, least->name);
        jw_obj(w);
        jw_pair(w, "id", least->type);
        jw_pair_bool(w, "passed", least->answer == CHECK_PASS);
        jw_key(w, STR("info"));
        node_report_print_check_info(least, w);
        jw_obj_end(w);
    }
    jw_obj_end(w);
}

static void print_info_transition(struct json_writer *w, const struct node_report_transition *t)
{
    jw_obj(w);
    jw_pair_bool(w, "passed", t->passed);
    jw_pair(w, "target", profile_state_name(t->target));
    jw_key(w, STR("chain"));
    jw_obj(w);
    jw_pair_bool(w, "passed", t->chain_passed);
    jw_key(w, STR("info"));
    print_chain_info(w, t);
    jw_pair(w, "expression", t->expression);
    jw_obj_end(w);
    jw_pair(w, "error", t->error);
    jw_obj_end(w);
}

static void print_info_profile(struct json_writer *w, const struct node_report_profile *p)
{
    jw_obj(w);
    jw_key(w, STR("applied"));
    jw_obj(w);
    jw_pair(w, "next", profile_state_name(p->next));
    jw_key(w, STR("transitions"));
    jw_arr(w);
    for (uint32_t i = 0; i < p->transition_n; i++) {
        print_info_transition(w, &p->transitions[i]);
    }
    jw_arr_end(w);
    jw_pair(w, "error", p->error);
    jw_obj_end(w);
    jw_pair(w, "name", p->name);
    jw_pair(w, "state", profile_state_name(p->state));
    jw_obj_end(w);
}

static void print_labels(struct json_writer *w, const struct node_report *r)
{
    jw_key(w, STR("labels"));
    jw_obj(w);
    for (uint32_t i = 0; i < r->label_n; i++) {
        jw_key(w, r->labels[i].key);
        jw_str(w, r->labels[i].value);
    }
    jw_obj_end(w);
}

static struct str time_text(usec_t wall, char text[TIMESTAMP_TEXT_MAX])
{
    struct str ret;
    struct err err = { 0 };
    if (wall == 0 || timestamp_print(timestamp_from_usec(wall), text, &ret, &err) < 0) {
        return STR("0001-01-01T00:00:00Z"); /* Go's zero time, for what is unknown or beyond */
    }
    return ret;
}

void node_report_print_info(const struct node_report *r, struct json_writer *w)
{
    char text[TIMESTAMP_TEXT_MAX];
    jw_obj(w);
    jw_pair(w, "node", r->node);
    jw_key(w, STR("profiles"));
    jw_arr(w);
    for (uint32_t i = 0; i < r->profile_n; i++) {
        print_info_profile(w, &r->profiles[i]);
    }
    jw_arr_end(w);
    print_labels(w, r);
    jw_pair(w, "updated", time_text(r->updated, text));
    jw_obj_end(w);
}

/* ── the whole document ────────────────────────────────────────────────────────────────────── */

static void print_check(struct json_writer *w, const struct node_report_check *c)
{
    jw_obj(w);
    jw_pair(w, "name", c->name);
    jw_pair(w, "type", c->type);
    jw_pair(w, "answer", node_report_answer_name(c->answer));
    jw_pair_bool(w, "holds", c->holds);
    if (c->negated) {
        jw_pair_bool(w, "negated", true);
    }
    jw_pair(w, "reason", c->reason);
    jw_pair(w, "error", c->error);
    jw_pair_time(w, "next", c->next);
    jw_key(w, STR("info"));
    node_report_print_check_info(c, w);
    jw_obj_end(w);
}

static void print_transition(struct json_writer *w, const struct node_report *r,
                             const struct node_report_profile *p,
                             const struct node_report_transition *t)
{
    struct str held = node_report_held(r, p, t);
    jw_obj(w);
    jw_pair(w, "target", profile_state_name(t->target));
    jw_pair(w, "expression", t->expression);
    jw_pair_bool(w, "passed", t->passed && held.n == 0);
    jw_pair_bool(w, "chainPassed", t->chain_passed);
    jw_pair(w, "error", t->error);
    jw_pair(w, "held", held);
    jw_pair_time(w, "next", t->next);
    jw_key(w, STR("checks"));
    jw_arr(w);
    for (uint32_t i = 0; i < t->check_n; i++) {
        print_check(w, &t->checks[i]);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

static void print_profile(struct json_writer *w, const struct node_report *r,
                          const struct node_report_profile *p)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    jw_obj(w);
    jw_pair(w, "name", p->name);
    jw_pair(w, "state", profile_state_name(p->state));
    jw_pair(w, "next", profile_state_name(p->next));
    jw_pair_time(w, "since", p->since);
    jw_pair(w, "error", p->error);
    jw_pair(w, "doing", p->doing);
    jw_pair(w, "gist", node_report_summary(r, p, &tmp));
    jw_key(w, STR("transitions"));
    jw_arr(w);
    for (uint32_t i = 0; i < p->transition_n; i++) {
        print_transition(w, r, p, &p->transitions[i]);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

void node_report_print_drain(const struct node_report_drain *d, struct json_writer *w)
{
    if (!d->running) {
        return;
    }
    jw_key(w, STR("draining"));
    jw_obj(w);
    jw_pair_bool(w, "blocked", d->blocked);
    jw_pair_i64(w, "left", d->left);
    jw_pair_some(w, "namespace", d->namespace);
    jw_pair_some(w, "pod", d->pod);
    jw_pair_some(w, "budget", d->pdb);
    jw_pair_some(w, "reason", d->reason);
    jw_pair_time(w, "since", d->since);
    jw_obj_end(w);
}

static void print_claim(struct json_writer *w, const struct node_report_claim *c)
{
    jw_obj(w);
    jw_pair(w, "who", c->who);
    jw_pair_bool(w, "holds", c->holds);
    jw_pair(w, "words", c->words);
    jw_pair(w, "until", c->until);
    jw_pair(w, "limits", c->limits);
    jw_pair_time(w, "since", c->since);
    jw_pair_time(w, "deadline", c->deadline);
    jw_pair_some(w, "atDeadline", c->at_deadline);
    jw_obj_end(w);
}

static void print_unsent(struct json_writer *w, const struct node_report_unsent *u)
{
    jw_obj(w);
    jw_pair(w, "instance", u->instance);
    jw_pair(w, "profile", u->profile);
    jw_pair(w, "state", u->state);
    jw_pair(w, "error", u->error);
    jw_pair_time(w, "next", u->next);
    jw_obj_end(w);
}

static void node_report_print_operations(const struct node_report *r, struct json_writer *w)
{
    if (r->operation_n == 0) {
        return;
    }
    jw_key(w, STR("operations"));
    jw_arr(w);
    for (uint32_t i = 0; i < r->operation_n; i++) {
        const struct node_report_operation *op = &r->operations[i];
        jw_obj(w);
        jw_pair(w, "maintenance", op->maintenance);
        jw_pair(w, "state", op->state);
        jw_pair(w, "words", op->words);
        jw_pair_time(w, "next", op->next);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

void node_report_print_json(const struct node_report *r, struct json_writer *w)
{
    jw_obj(w);
    jw_pair(w, "node", r->node);
    jw_pair(w, "state", r->state);
    jw_pair(w, "error", r->error);
    jw_pair_bool(w, "ready", r->ready);
    jw_pair_bool(w, "cordoned", r->cordoned);
    jw_pair_bool(w, "deleting", r->deleting);
    jw_pair_time(w, "updated", r->updated);
    jw_pair_time(w, "now", r->now);
    jw_pair(w, "waits", r->waits);
    jw_pair(w, "drain", r->drain);
    node_report_print_drain(&r->draining, w);
    jw_pair(w, "orphanCordon", r->orphan);
    print_labels(w, r);
    jw_key(w, STR("unsent"));
    jw_arr(w);
    for (uint32_t i = 0; i < r->unsent_n; i++) {
        print_unsent(w, &r->unsent[i]);
    }
    jw_arr_end(w);
    jw_key(w, STR("claims"));
    jw_arr(w);
    for (uint32_t i = 0; i < r->claim_n; i++) {
        print_claim(w, &r->claims[i]);
    }
    jw_arr_end(w);
    node_report_print_operations(r, w);
    activity_print_list(r->activities, r->activity_n, w);
    jw_key(w, STR("profiles"));
    jw_arr(w);
    for (uint32_t i = 0; i < r->profile_n; i++) {
        print_profile(w, r, &r->profiles[i]);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}
