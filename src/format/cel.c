#include "format/cel.h"

#include <math.h>

#include "base/duration.h"
#include "base/timestamp.h"
#include "base/utf8.h"
#include "format/cel_internal.h"
#include "format/gofloat.h"
#include "format/regex.h"

enum cel_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_DOUBLE,
    VALUE_TEXT,
    VALUE_DURATION, /* nanoseconds */
    VALUE_TIMESTAMP,
    VALUE_LIST,   /* of the expression's own */
    VALUE_OBJECT, /* a JSON object, or array, with its schema */
    VALUE_ARRAY,
};

static const char *const kind_names[] = { "null",     "bool",      "int",  "double", "string",
                                          "duration", "timestamp", "list", "map",    "list" };

struct cel_value {
    enum cel_kind kind;
    bool truth;
    int64_t integer; /* INT, DURATION */
    double number;
    struct str text;
    struct timestamp time;
    const struct cel_value *items; /* LIST */
    uint32_t n;
    const struct tree *tree; /* OBJECT, ARRAY */
    const struct tree *schema;
};

/* A macro's variable; they stand in each other. */
struct cel_scope {
    const struct cel_scope *up;
    struct str name;
    struct cel_value value;
};

struct cel_run {
    const struct cel_input *input;
    struct arena *a;
    uint32_t steps;
    struct err *err;
};

static int run_fail(struct cel_run *run, const char *what)
{
    return err_set(run->err, ERR_INVALID, "%s", what);
}

static int run_no_overload(struct cel_run *run)
{
    return run_fail(run, "no such overload");
}

/* ── values of the object ──────────────────────────────────────────────────────────────────── */

static struct cel_value value_bool(bool truth)
{
    return (struct cel_value){ .kind = VALUE_BOOL, .truth = truth };
}

static struct cel_value value_int(int64_t n)
{
    return (struct cel_value){ .kind = VALUE_INT, .integer = n };
}

/* A text is what its format says, where it is one. */
static struct cel_value value_of_text(struct str text, const struct tree *schema)
{
    struct cel_value value = { .kind = VALUE_TEXT, .text = text };
    struct str format = tree_text(tree_get(schema, STR("format")));
    struct err ignored = { 0 };
    if (str_eq(format, STR("date-time")) && timestamp_parse(text, &value.time, &ignored) == 0) {
        value.kind = VALUE_TIMESTAMP;
    } else if (str_eq(format, STR("duration")) &&
               duration_parse(text, &value.integer, &ignored) == 0) {
        value.kind = VALUE_DURATION;
    }
    return value;
}

static struct cel_value value_of_tree(const struct tree *t, const struct tree *schema)
{
    struct cel_value value = { .tree = t, .schema = schema };
    switch (tree_kind(t)) {
    case JNULL:
        return (struct cel_value){ .kind = VALUE_NULL };
    case JBOOL:
        return value_bool(t->truth);
    case JSTR:
        return value_of_text(t->text, schema);
    case JNUM:
        if (!str_eq(tree_text(tree_get(schema, STR("type"))), STR("number")) &&
            tree_number(t, &value.integer)) {
            return value_int(value.integer);
        }
        (void)str_to_f64(t->text, &value.number); /* a number of JSON is one */
        value.kind = VALUE_DOUBLE;
        return value;
    case JARR:
        value.kind = VALUE_ARRAY;
        return value;
    case JOBJ:
        break;
    }
    value.kind = VALUE_OBJECT;
    return value;
}

static const struct tree *schema_below(const struct tree *schema, struct str key)
{
    const struct tree *member = tree_get(tree_get(schema, STR("properties")), key);
    return member != NULL ? member : tree_get(schema, STR("additionalProperties"));
}

static bool value_member(const struct cel_value *object, struct str key, struct cel_value *ret)
{
    const struct tree *member = tree_get(object->tree, key);
    if (member == NULL) {
        return false;
    }
    *ret = value_of_tree(member, schema_below(object->schema, key));
    return true;
}

/* How many elements a list, or keys a map, has. */
static bool value_count(const struct cel_value *value, uint32_t *ret)
{
    bool counted =
        value->kind == VALUE_LIST || value->kind == VALUE_ARRAY || value->kind == VALUE_OBJECT;
    *ret = value->kind == VALUE_LIST ? value->n : counted ? value->tree->n : 0;
    return counted;
}

/* The elements of a list, the keys of a map; at most as many as the steps that are left. */
static int value_elements(struct cel_run *run, const struct cel_value *value,
                          const struct cel_value **ret)
{
    uint32_t n;
    if (!value_count(value, &n)) {
        return run_no_overload(run);
    }
    if (n > CEL_STEPS_MAX - run->steps) {
        return err_set(run->err, ERR_LIMIT, "the rule takes too long");
    }
    if (value->kind == VALUE_LIST) {
        *ret = value->items;
        return 0;
    }
    struct cel_value *items = ARENA_ARRAY(run->a, struct cel_value, n + 1u);
    uint32_t i = 0;
    TREE_EACH (value->tree, item) {
        items[i++] = value->kind == VALUE_OBJECT
                         ? (struct cel_value){ .kind = VALUE_TEXT, .text = item->key }
                         : value_of_tree(item, tree_get(value->schema, STR("items")));
    }
    *ret = items;
    return 0;
}

/* ── comparing ─────────────────────────────────────────────────────────────────────────────── */

static bool value_is_number(const struct cel_value *value)
{
    return value->kind == VALUE_INT || value->kind == VALUE_DOUBLE;
}

static double value_number(const struct cel_value *value)
{
    return value->kind == VALUE_INT ? (double)value->integer : value->number;
}

/* -1, 0 or 1; false when the two have no order. */
static bool value_order(const struct cel_value *x, const struct cel_value *y, int *ret)
{
    if (value_is_number(x) && value_is_number(y)) {
        bool whole = x->kind == VALUE_INT && y->kind == VALUE_INT;
        double f = value_number(x);
        double g = value_number(y);
        *ret = whole ? (x->integer > y->integer) - (x->integer < y->integer) : (f > g) - (f < g);
        return true;
    }
    if (x->kind != y->kind) {
        return false;
    }
    switch (x->kind) {
    case VALUE_BOOL:
        *ret = x->truth - y->truth;
        return true;
    case VALUE_TEXT:
        *ret = str_cmp(x->text, y->text);
        return true;
    case VALUE_DURATION:
        *ret = (x->integer > y->integer) - (x->integer < y->integer);
        return true;
    case VALUE_TIMESTAMP:
        *ret = (x->time.sec > y->time.sec) - (x->time.sec < y->time.sec);
        *ret = *ret != 0 ? *ret : (x->time.nsec > y->time.nsec) - (x->time.nsec < y->time.nsec);
        return true;
    case VALUE_NULL:
    case VALUE_LIST:
    case VALUE_OBJECT:
    case VALUE_ARRAY:
    case VALUE_INT:
    case VALUE_DOUBLE:
        break;
    }
    return false;
}

static int value_equal(struct cel_run *run, const struct cel_value *x, const struct cel_value *y,
                       bool *ret)
{
    int order;
    uint32_t n;
    uint32_t m;
    *ret = false;
    if (value_order(x, y, &order)) {
        *ret = order == 0;
        return 0;
    }
    if (x->kind == VALUE_NULL || y->kind == VALUE_NULL) {
        *ret = x->kind == y->kind;
        return 0;
    }
    if (x->tree != NULL && y->tree != NULL) {
        *ret = tree_eq(x->tree, y->tree);
        return 0;
    }
    if (!value_count(x, &n) || !value_count(y, &m) || n != m || x->kind == VALUE_OBJECT ||
        y->kind == VALUE_OBJECT) {
        return 0;
    }
    const struct cel_value *xs;
    const struct cel_value *ys;
    int r = value_elements(run, x, &xs);
    r = r == 0 ? value_elements(run, y, &ys) : r;
    *ret = r == 0;
    for (uint32_t i = 0; i < n && r == 0 && *ret; i++) {
        run->steps++;
        r = value_equal(run, &xs[i], &ys[i], ret);
    }
    return r;
}

/* ── evaluating ────────────────────────────────────────────────────────────────────────────── */

static int evaluate(struct cel_run *run, const struct cel_scope *scope, const struct cel_node *node,
                    struct cel_value *ret);

static int evaluate_bool(struct cel_run *run, const struct cel_scope *scope,
                         const struct cel_node *node, bool *ret)
{
    struct cel_value value = { 0 };
    int r = evaluate(run, scope, node, &value);
    if (r < 0 || value.kind != VALUE_BOOL) {
        return r < 0 ? r : run_no_overload(run);
    }
    *ret = value.truth;
    return 0;
}

/* Either side may decide alone, also when the other one fails. */
static int evaluate_logic(struct cel_run *run, const struct cel_scope *scope,
                          const struct cel_node *node, struct cel_value *ret)
{
    bool decisive = node->op == CEL_OR;
    bool left = false;
    bool right = false;
    int r = evaluate_bool(run, scope, node->items[0], &left);
    if (r == -ERR_LIMIT || (r == 0 && left == decisive)) {
        *ret = value_bool(left);
        return r;
    }
    struct err failure = *run->err;
    int q = evaluate_bool(run, scope, node->items[1], &right);
    if (q == 0 && r < 0 && right != decisive) {
        *run->err = failure;
        return r;
    }
    *ret = value_bool(right);
    return q;
}

static int evaluate_name(struct cel_run *run, const struct cel_scope *scope, struct str name,
                         struct cel_value *ret)
{
    for (; scope != NULL; scope = scope->up) {
        if (str_eq(scope->name, name)) {
            *ret = scope->value;
            return 0;
        }
    }
    if (str_eq(name, STR("self"))) {
        *ret = value_of_tree(run->input->self, run->input->schema);
        return 0;
    }
    if (str_eq(name, STR("oldSelf")) && run->input->old_self != NULL) {
        *ret = value_of_tree(run->input->old_self, run->input->schema);
        return 0;
    }
    return err_set(run->err, ERR_INVALID, "no such attribute: " STR_FMT, STR_ARG(name));
}

static int evaluate_member(struct cel_run *run, const struct cel_scope *scope,
                           const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value object = { 0 };
    int r = evaluate(run, scope, node->items[0], &object);
    if (r < 0) {
        return r;
    }
    bool found = object.kind == VALUE_OBJECT && value_member(&object, node->text, ret);
    if (node->op == CEL_HAS) {
        *ret = value_bool(found);
        return object.kind == VALUE_OBJECT ? 0 : run_no_overload(run);
    }
    return found ? 0 : err_set(run->err, ERR_INVALID, "no such key: " STR_FMT, STR_ARG(node->text));
}

static int evaluate_index(struct cel_run *run, const struct cel_value *list,
                          const struct cel_value *index, struct cel_value *ret)
{
    uint32_t n;
    if (list->kind == VALUE_OBJECT && index->kind == VALUE_TEXT) {
        return value_member(list, index->text, ret)
                   ? 0
                   : err_set(run->err, ERR_INVALID, "no such key: " STR_FMT, STR_ARG(index->text));
    }
    if (list->kind == VALUE_OBJECT || index->kind != VALUE_INT || !value_count(list, &n)) {
        return run_no_overload(run);
    }
    const struct cel_value *items;
    int r = value_elements(run, list, &items);
    if (r == 0 && (index->integer < 0 || index->integer >= n)) {
        return err_set(run->err, ERR_INVALID, "index out of bounds: %lld",
                       (long long)index->integer);
    }
    if (r == 0) {
        *ret = items[index->integer];
    }
    return r;
}

static int evaluate_in(struct cel_run *run, const struct cel_value *item,
                       const struct cel_value *list, struct cel_value *ret)
{
    uint32_t n;
    const struct cel_value *items;
    int r = value_elements(run, list, &items);
    bool found = false;
    (void)value_count(list, &n); /* value_elements has refused what has none */
    for (uint32_t i = 0; r == 0 && i < n && !found; i++) {
        run->steps++;
        r = value_equal(run, item, &items[i], &found);
    }
    *ret = value_bool(found);
    return r;
}

static int evaluate_compare(struct cel_run *run, enum cel_op op, const struct cel_value *x,
                            const struct cel_value *y, struct cel_value *ret)
{
    int order;
    bool equal;
    if (op == CEL_EQ || op == CEL_NE) {
        int r = value_equal(run, x, y, &equal);
        *ret = value_bool(equal == (op == CEL_EQ));
        return r;
    }
    if (!value_order(x, y, &order)) {
        return run_no_overload(run);
    }
    *ret = value_bool(op == CEL_LT   ? order < 0
                      : op == CEL_LE ? order <= 0
                      : op == CEL_GT ? order > 0
                                     : order >= 0);
    return 0;
}

static int evaluate_whole(struct cel_run *run, enum cel_op op, int64_t x, int64_t y,
                          struct cel_value *ret)
{
    int64_t n = 0;
    bool over = false;
    switch (op) {
    case CEL_ADD:
        over = __builtin_add_overflow(x, y, &n);
        break;
    case CEL_SUBTRACT:
        over = __builtin_sub_overflow(x, y, &n);
        break;
    case CEL_MULTIPLY:
        over = __builtin_mul_overflow(x, y, &n);
        break;
    default:
        if (y == 0) {
            return run_fail(run, op == CEL_DIVIDE ? "division by zero" : "modulus by zero");
        }
        over = x == INT64_MIN && y == -1;
        n = over ? 0 : op == CEL_DIVIDE ? x / y : x % y;
        break;
    }
    *ret = value_int(n);
    return over ? run_fail(run, "integer overflow") : 0;
}

static int evaluate_arithmetic(struct cel_run *run, enum cel_op op, const struct cel_value *x,
                               const struct cel_value *y, struct cel_value *ret)
{
    if (x->kind == VALUE_INT && y->kind == VALUE_INT) {
        return evaluate_whole(run, op, x->integer, y->integer, ret);
    }
    if (x->kind == VALUE_TEXT && y->kind == VALUE_TEXT && op == CEL_ADD) {
        if (x->text.n + y->text.n > CEL_STEPS_MAX) {
            return err_set(run->err, ERR_LIMIT, "the rule takes too long");
        }
        *ret = (struct cel_value){ .kind = VALUE_TEXT,
                                   .text = arena_concat(run->a, x->text, y->text) };
        return 0;
    }
    if (x->kind == VALUE_DOUBLE && y->kind == VALUE_DOUBLE && op != CEL_MODULO) {
        double f = x->number;
        double g = y->number;
        *ret = (struct cel_value){ .kind = VALUE_DOUBLE,
                                   .number = op == CEL_ADD        ? f + g
                                             : op == CEL_SUBTRACT ? f - g
                                             : op == CEL_MULTIPLY ? f * g
                                                                  : f / g };
        return 0;
    }
    if (x->kind == VALUE_DURATION && y->kind == VALUE_DURATION &&
        (op == CEL_ADD || op == CEL_SUBTRACT)) {
        int r = evaluate_whole(run, op, x->integer, y->integer, ret);
        ret->kind = VALUE_DURATION;
        return r;
    }
    return run_no_overload(run);
}

static int evaluate_macro(struct cel_run *run, const struct cel_scope *scope,
                          const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value list = { 0 };
    const struct cel_value *items = NULL;
    uint32_t n;
    int r = evaluate(run, scope, node->items[0], &list);
    r = r == 0 ? value_elements(run, &list, &items) : r;
    if (r != 0) {
        return r;
    }
    (void)value_count(&list, &n); /* value_elements has refused what has none */
    bool filter = str_eq(node->text, STR("filter"));
    bool map = str_eq(node->text, STR("map"));
    struct cel_value *kept = ARENA_ARRAY(run->a, struct cel_value, n + 1u);
    uint32_t kept_n = 0;
    uint32_t yes = 0;
    struct err failure = { 0 };
    for (uint32_t i = 0; i < n && r != -ERR_LIMIT; i++) {
        struct cel_scope inner = { .up = scope, .name = node->name, .value = items[i] };
        bool truth = false;
        int q = map ? evaluate(run, &inner, node->items[1], &kept[kept_n])
                    : evaluate_bool(run, &inner, node->items[1], &truth);
        if (q < 0) {
            r = q;
            failure = *run->err;
            continue;
        }
        yes += truth;
        if (filter && truth) {
            kept[kept_n] = items[i];
        }
        kept_n += map || (filter && truth);
    }
    /* One element decides whether all or one is there, also when others fail. */
    bool decided = (str_eq(node->text, STR("exists")) && yes > 0);
    if (r < 0 && !decided) {
        *run->err = failure;
        return r;
    }
    *ret = filter || map ? (struct cel_value){ .kind = VALUE_LIST, .items = kept, .n = kept_n }
                         : value_bool(str_eq(node->text, STR("all"))          ? yes == n
                                      : str_eq(node->text, STR("exists_one")) ? yes == 1
                                                                              : yes > 0);
    return 0;
}

static int evaluate_size(struct cel_run *run, const struct cel_value *value, struct cel_value *ret)
{
    uint32_t n;
    int64_t points = 0;
    if (value->kind == VALUE_TEXT) {
        for (struct str rest = value->text; rest.n > 0; points++) {
            uint32_t point;
            size_t bytes = MAX(utf8_decode(rest, &point), (size_t)1);
            rest = str_sub(rest, bytes, rest.n - bytes);
        }
        *ret = value_int(points);
        return 0;
    }
    bool counted = value_count(value, &n);
    *ret = value_int(n);
    return counted ? 0 : run_no_overload(run);
}

static int evaluate_convert(struct cel_run *run, struct str name, const struct cel_value *value,
                            struct cel_value *ret)
{
    char text[GOFLOAT_TEXT_MAX];
    bool timestamp = str_eq(name, STR("timestamp"));
    *ret = *value;
    if (timestamp || str_eq(name, STR("duration"))) {
        ret->kind = timestamp ? VALUE_TIMESTAMP : VALUE_DURATION;
        if (value->kind == ret->kind) {
            return 0;
        }
        if (value->kind != VALUE_TEXT) {
            return run_no_overload(run);
        }
        int r = timestamp ? timestamp_parse(value->text, &ret->time, run->err)
                          : duration_parse(value->text, &ret->integer, run->err);
        return r == 0 ? 0
                      : err_set(run->err, ERR_INVALID,
                                "type conversion error from 'string' to 'google.protobuf.%s'",
                                timestamp ? "Timestamp" : "Duration");
    }
    if (str_eq(name, STR("double")) && value_is_number(value)) {
        *ret = (struct cel_value){ .kind = VALUE_DOUBLE, .number = value_number(value) };
        return 0;
    }
    if (str_eq(name, STR("int")) && value_is_number(value)) {
        bool fits = fabs(value_number(value)) < 9.2e18;
        *ret = value->kind == VALUE_INT ? *value : value_int(fits ? (int64_t)value->number : 0);
        return value->kind == VALUE_INT || fits ? 0 : run_fail(run, "integer overflow");
    }
    if (str_eq(name, STR("string")) && (value_is_number(value) || value->kind == VALUE_TEXT)) {
        ret->kind = VALUE_TEXT;
        ret->text = value->kind == VALUE_TEXT ? value->text
                    : value->kind == VALUE_INT
                        ? arena_printf(run->a, "%lld", (long long)value->integer)
                        : arena_str(run->a, gofloat_print(value->number, text));
        return 0;
    }
    return run_no_overload(run);
}

static int evaluate_method(struct cel_run *run, struct str name, const struct cel_value *target,
                           const struct cel_value *argument, struct cel_value *ret)
{
    if (target->kind != VALUE_TEXT || argument->kind != VALUE_TEXT) {
        return run_no_overload(run);
    }
    if (str_eq(name, STR("matches"))) {
        struct regex *regex;
        bool matches = false;
        int r = regex_compile(argument->text, run->a, &regex, run->err);
        r = r == 0 ? regex_match(regex, target->text, run->a, &matches, run->err) : r;
        *ret = value_bool(matches);
        return r;
    }
    *ret = value_bool(str_eq(name, STR("startsWith")) ? str_starts(target->text, argument->text)
                      : str_eq(name, STR("endsWith")) ? str_ends(target->text, argument->text)
                                                      : str_contains(target->text, argument->text));
    return 0;
}

/* Operators and functions whose operands are all evaluated first. */
static int evaluate_strict(struct cel_run *run, const struct cel_scope *scope,
                           const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value x = { 0 };
    struct cel_value y = { 0 };
    int r = evaluate(run, scope, node->items[0], &x);
    if (r == 0 && node->n > 1) {
        r = evaluate(run, scope, node->items[1], &y);
    }
    if (r < 0) {
        return r;
    }
    switch (node->op) {
    case CEL_NOT:
        *ret = value_bool(!x.truth);
        return x.kind == VALUE_BOOL ? 0 : run_no_overload(run);
    case CEL_NEGATE:
        *ret = x;
        ret->number = -x.number;
        return x.kind == VALUE_DOUBLE ? 0
               : x.kind == VALUE_INT  ? evaluate_whole(run, CEL_SUBTRACT, 0, x.integer, ret)
                                      : run_no_overload(run);
    case CEL_INDEX:
        return evaluate_index(run, &x, &y, ret);
    case CEL_IN:
        return evaluate_in(run, &x, &y, ret);
    case CEL_CALL:
        return str_eq(node->text, STR("size")) ? evaluate_size(run, &x, ret)
                                               : evaluate_convert(run, node->text, &x, ret);
    case CEL_METHOD:
        return node->n == 1 ? evaluate_size(run, &x, ret)
                            : evaluate_method(run, node->text, &x, &y, ret);
    case CEL_ADD:
    case CEL_SUBTRACT:
    case CEL_MULTIPLY:
    case CEL_DIVIDE:
    case CEL_MODULO:
        return evaluate_arithmetic(run, node->op, &x, &y, ret);
    default:
        return evaluate_compare(run, node->op, &x, &y, ret);
    }
}

static int evaluate_list(struct cel_run *run, const struct cel_scope *scope,
                         const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value *items = ARENA_ARRAY(run->a, struct cel_value, node->n + 1u);
    int r = 0;
    for (uint32_t i = 0; i < node->n && r == 0; i++) {
        r = evaluate(run, scope, node->items[i], &items[i]);
    }
    *ret = (struct cel_value){ .kind = VALUE_LIST, .items = items, .n = node->n };
    return r;
}

static int evaluate(struct cel_run *run, const struct cel_scope *scope, const struct cel_node *node,
                    struct cel_value *ret)
{
    bool truth = false;
    if (run->steps >= CEL_STEPS_MAX) {
        return err_set(run->err, ERR_LIMIT, "the rule takes too long");
    }
    run->steps++;
    switch (node->op) {
    case CEL_NULL:
        *ret = (struct cel_value){ .kind = VALUE_NULL };
        return 0;
    case CEL_BOOL:
        *ret = value_bool(node->truth);
        return 0;
    case CEL_INT:
        *ret = value_int(node->integer);
        return 0;
    case CEL_DOUBLE:
        *ret = (struct cel_value){ .kind = VALUE_DOUBLE, .number = node->number };
        return 0;
    case CEL_TEXT:
        *ret = (struct cel_value){ .kind = VALUE_TEXT, .text = node->text };
        return 0;
    case CEL_LIST:
        return evaluate_list(run, scope, node, ret);
    case CEL_NAME:
        return evaluate_name(run, scope, node->text, ret);
    case CEL_MEMBER:
    case CEL_HAS:
        return evaluate_member(run, scope, node, ret);
    case CEL_MACRO:
        return evaluate_macro(run, scope, node, ret);
    case CEL_OR:
    case CEL_AND:
        return evaluate_logic(run, scope, node, ret);
    case CEL_CHOOSE: {
        int r = evaluate_bool(run, scope, node->items[0], &truth);
        return r < 0 ? r : evaluate(run, scope, node->items[truth ? 1 : 2], ret);
    }
    default:
        return evaluate_strict(run, scope, node, ret);
    }
}

int cel_evaluate(const struct cel_program *program, const struct cel_input *input,
                 struct arena *tmp, bool *ret, struct err *err)
{
    struct cel_run run = { .input = input, .a = tmp, .err = err };
    struct cel_value value = { 0 };
    int r = evaluate(&run, NULL, program->root, &value);
    if (r < 0) {
        return r;
    }
    if (value.kind != VALUE_BOOL) {
        return err_set(err, ERR_INVALID, "a rule gives a bool, this one a %s",
                       kind_names[value.kind]);
    }
    *ret = value.truth;
    return 0;
}
