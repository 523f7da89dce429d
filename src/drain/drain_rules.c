#include "drain/drain_rules.h"

#include "format/json_writer.h"
#include "format/label_pack.h"

#define DRAIN_RULE_PODS_MAX 32u /* as Cluster API's own schema has it */
#define DRAIN_RULES_MAX 4096u   /* more do not fit into DRAIN_RULES_BYTES_MAX */

static const struct str behavior_names[] = {
    [DRAIN_RULE_DRAIN] = STR_INIT("Drain"),
    [DRAIN_RULE_SKIP] = STR_INIT("Skip"),
    [DRAIN_RULE_WAIT_COMPLETED] = STR_INIT("WaitCompleted"),
};

/* ── what both forms share ─────────────────────────────────────────────────────────────────── */

static int drain_rule_read_behavior(struct str text, struct drain_rule *rule, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(behavior_names); i++) {
        if (str_eq(text, behavior_names[i])) {
            rule->behavior = (enum drain_rule_behavior)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "behavior: '" STR_FMT "' is none of Drain, Skip and WaitCompleted",
                   STR_ARG(text));
}

/* Only pods that are evicted have an order. Cluster API ignores the order of other rules. */
static int drain_rule_read_order(const struct jval *order, struct drain_rule *rule, struct err *err)
{
    int64_t n = 0;
    if (jval_kind(order) == JNULL) {
        return 0;
    }
    if (!jval_i64(order, &n) || n < INT32_MIN || n > INT32_MAX) {
        return err_set(err, ERR_INVALID, "order: a whole number of 32 bits is wanted");
    }
    rule->order = rule->behavior == DRAIN_RULE_DRAIN ? (int32_t)n : 0;
    return 0;
}

typedef int selector_reader(const struct jval *v, struct arena *out, struct selector *ret,
                            struct err *err);

static int drain_rule_read_pods(const struct jval *pods, selector_reader *read, struct arena *out,
                                struct drain_rule *rule, struct err *err)
{
    if (jval_kind(pods) == JNULL) {
        return 0;
    }
    if (jval_kind(pods) != JARR || pods->n > DRAIN_RULE_PODS_MAX) {
        return err_set(err, ERR_INVALID, "pods: a list of at most %u selectors is wanted",
                       DRAIN_RULE_PODS_MAX);
    }
    rule->pods = ARENA_ARRAY(out, struct drain_rule_pods, MAX(pods->n, 1u));
    JVAL_EACH (pods, entry) {
        struct drain_rule_pods *at = &rule->pods[rule->n];
        if (jval_kind(entry) != JOBJ) {
            return err_set(err, ERR_INVALID, "pods[%u]: an object is wanted", rule->n);
        }
        if (read(jval_get(entry, STR("selector")), out, &at->pods, err) < 0) {
            return err_wrap(err, "pods[%u].selector", rule->n);
        }
        if (read(jval_get(entry, STR("namespaceSelector")), out, &at->namespaces, err) < 0) {
            return err_wrap(err, "pods[%u].namespaceSelector", rule->n);
        }
        rule->n++;
    }
    return 0;
}

/* ── a MachineDrainRule ────────────────────────────────────────────────────────────────────── */

int drain_rule_read_selector(const struct jval *v, struct arena *out, struct selector *ret,
                             struct err *err)
{
    if (jval_kind(v) == JNULL) {
        *ret = (struct selector){ 0 };
        return 0;
    }
    return selector_from_jval(v, out, ret, err);
}

int drain_rule_read(struct str name, const struct jval *spec, struct arena *out,
                    struct drain_rule *ret, struct err *err)
{
    struct drain_rule rule = { .name = arena_str(out, name) };
    const struct jval *drain = jval_get(spec, STR("drain"));
    struct str behavior = jval_str(jval_get(drain, STR("behavior")));
    int r = drain_rule_read_behavior(behavior, &rule, err);
    if (r == 0) {
        r = drain_rule_read_order(jval_get(drain, STR("order")), &rule, err);
    }
    if (r < 0) {
        return err_wrap(err, "spec.drain");
    }
    if (drain_rule_read_pods(jval_get(spec, STR("pods")), drain_rule_read_selector, out, &rule,
                             err) < 0) {
        return err_wrap(err, "spec");
    }
    *ret = rule;
    return 0;
}

/* ── the annotation ────────────────────────────────────────────────────────────────────────── */

static int read_selector_text(const struct jval *v, struct arena *out, struct selector *ret,
                              struct err *err)
{
    if (jval_kind(v) == JNULL) {
        *ret = (struct selector){ 0 };
        return 0;
    }
    if (jval_kind(v) != JSTR) {
        return err_set(err, ERR_INVALID, "a selector as text is wanted, not %s",
                       jkind_name(jval_kind(v)));
    }
    return selector_parse(jval_str(v), out, ret, err);
}

static int drain_rules_parse_rule(const struct jval *v, struct arena *out, struct drain_rule *rule,
                                  struct err *err)
{
    rule->name = arena_str(out, jval_str(jval_get(v, STR("name"))));
    int r = drain_rule_read_behavior(jval_str(jval_get(v, STR("behavior"))), rule, err);
    if (r == 0) {
        r = drain_rule_read_order(jval_get(v, STR("order")), rule, err);
    }
    return r < 0
               ? r
               : drain_rule_read_pods(jval_get(v, STR("pods")), read_selector_text, out, rule, err);
}

bool drain_rule_asks_namespaces(const struct drain_rule *rule)
{
    for (uint32_t i = 0; i < rule->n; i++) {
        if (rule->pods[i].namespaces.n > 0) {
            return true;
        }
    }
    return false;
}

static int drain_rules_parse_json(const struct jval *v, struct arena *out,
                                  struct drain_rules *drain_rules, struct err *err)
{
    struct str error = jval_str(jval_get(v, STR("error")));
    if (jval_kind(v) == JOBJ && error.n > 0) {
        drain_rules->error = arena_str(out, error);
        return 0;
    }
    if (jval_kind(v) != JARR || v->n > DRAIN_RULES_MAX) {
        return err_set(err, ERR_INVALID, "a list of at most %u rules is wanted", DRAIN_RULES_MAX);
    }
    drain_rules->rules = ARENA_ARRAY(out, struct drain_rule, MAX(v->n, 1u));
    JVAL_EACH (v, entry) {
        struct drain_rule *rule = &drain_rules->rules[drain_rules->n];
        if (drain_rules_parse_rule(entry, out, rule, err) < 0) {
            return err_wrap(err, "rule %u", drain_rules->n + 1);
        }
        drain_rules->by_namespace = drain_rules->by_namespace || drain_rule_asks_namespaces(rule);
        drain_rules->n++;
    }
    return 0;
}

int drain_rules_parse(struct str text, struct arena *out, struct drain_rules *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *v = NULL;
    struct drain_rules drain_rules = { 0 };
    if (text.n > DRAIN_RULES_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "%zu bytes, at most %u are read", text.n,
                       DRAIN_RULES_BYTES_MAX);
    }
    int r = json_parse(text, 0, &tmp, &v, err);
    if (r == 0) {
        r = drain_rules_parse_json(v, out, &drain_rules, err);
    }
    if (r == 0) {
        *ret = drain_rules;
    }
    return r;
}

static void print_selector(struct json_writer *w, const char *key, const struct selector *s)
{
    if (s->n == 0) {
        return;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    selector_print(s, &text);
    jw_pair(w, key, buf_str(&text));
}

static void print_rule(struct json_writer *w, const struct drain_rule *rule)
{
    jw_obj(w);
    jw_pair(w, "name", rule->name);
    jw_pair(w, "behavior", behavior_names[rule->behavior]);
    if (rule->order != 0) {
        jw_pair_i64(w, "order", rule->order);
    }
    if (rule->n > 0) {
        jw_key(w, STR("pods"));
        jw_arr(w);
        for (uint32_t i = 0; i < rule->n; i++) {
            jw_obj(w);
            print_selector(w, "selector", &rule->pods[i].pods);
            print_selector(w, "namespaceSelector", &rule->pods[i].namespaces);
            jw_obj_end(w);
        }
        jw_arr_end(w);
    }
    jw_obj_end(w);
}

static void print_error(struct buf *out, struct str error)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "error", error);
    jw_obj_end(&w);
}

void drain_rules_print(const struct drain_rules *drain_rules, struct buf *out)
{
    if (drain_rules->error.n > 0) {
        print_error(out, drain_rules->error);
        return;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_arr(&w);
    for (uint32_t i = 0; i < drain_rules->n; i++) {
        print_rule(&w, &drain_rules->rules[i]);
    }
    jw_arr_end(&w);
    if (buf_str(&text).n > DRAIN_RULES_BYTES_MAX) {
        buf_reset(&text);
        buf_printf(&text, "the rules for this node are too many: they do not fit into %u bytes",
                   DRAIN_RULES_BYTES_MAX);
        print_error(out, buf_str(&text));
    } else {
        buf_add(out, buf_str(&text));
    }
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

static bool labels_match(const struct selector *selector, const struct str *labels)
{
    struct str packed = *labels; /* a lookup's context is not const */
    return selector_match(selector, label_pack_find, &packed);
}

int drain_rules_find(const struct drain_rules *drain_rules, const struct str *pod,
                     const struct str *namespace, const struct drain_rule **ret)
{
    for (uint32_t i = 0; i < drain_rules->n; i++) {
        const struct drain_rule *rule = &drain_rules->rules[i];
        bool found = rule->n == 0;
        for (uint32_t j = 0; j < rule->n && !found; j++) {
            const struct drain_rule_pods *at = &rule->pods[j];
            if (!labels_match(&at->pods, pod)) {
                continue;
            }
            if (at->namespaces.n == 0) {
                found = true;
            } else if (namespace == NULL) {
                return -ERR_NOTFOUND;
            } else {
                found = labels_match(&at->namespaces, namespace);
            }
        }
        if (found) {
            *ret = rule;
            return 0;
        }
    }
    *ret = NULL;
    return 0;
}
