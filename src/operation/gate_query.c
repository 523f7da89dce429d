/* The gate `query`: what a PromQL instant query answers. */
#include "core/prometheus.h"
#include "operation/operations_internal.h"

static bool number_compares(struct str op, double found, double wanted)
{
    bool less = found < wanted;
    bool more = found > wanted;
    return str_eq(op, STR("Equals"))      ? !less && !more && found <= wanted
           : str_eq(op, STR("NotEquals")) ? less || more
           : str_eq(op, STR("Gt"))        ? more
           : str_eq(op, STR("Ge"))        ? found >= wanted
           : str_eq(op, STR("Lt"))        ? less
                                          : found <= wanted;
}

/* Each value of the result: those of a vector, or the one of a scalar. */
static void query_compare(struct gate_question *q, const struct jval *data, bool scalar)
{
    const struct jval *compare = jval_get(q->fields, STR("compare"));
    const struct jval *result = jval_get(data, STR("result"));
    struct str op = jval_str(jval_get(compare, STR("op")));
    struct str text = jval_str(jval_get(compare, STR("value")));
    double wanted = 0;
    double found = 0;
    bool readable = str_to_f64(text, &wanted);
    uint32_t n = scalar ? 1 : result->n;
    const struct jval *element = scalar ? result : jval_first(result);
    for (uint32_t i = 0; i < n; i++) {
        const struct jval *sample = scalar ? element : jval_get(element, STR("value"));
        if (!readable || !prometheus_sample(sample, &found) ||
            !number_compares(op, found, wanted)) {
            gate_question_answer(q, GATE_REFUSES,
                                 "a value is %g, and " STR_FMT " " STR_FMT " is wanted", found,
                                 STR_ARG(op), STR_ARG(text));
            return;
        }
        element = scalar ? element : jval_next(result, element);
    }
    if (n == 0) {
        gate_question_answer(q, GATE_REFUSES, "%s", "the query has no result to compare");
    } else {
        gate_question_answer(q, GATE_PASSES, "%s", "");
    }
}

static void query_judge(struct gate_question *q, const struct jval *data)
{
    struct str type = jval_str(jval_get(data, STR("resultType")));
    const struct jval *result = jval_get(data, STR("result"));
    bool scalar = str_eq(type, STR("scalar"));
    bool wants_some = str_eq(jval_str(jval_get(q->fields, STR("expect"))), STR("NonEmpty"));
    if (jval_kind(result) != JARR || !(scalar || str_eq(type, STR("vector")))) {
        gate_question_answer(q, GATE_REFUSES,
                             "the query answers with a " STR_FMT
                             ", and a vector or a scalar is wanted",
                             STR_ARG(type));
    } else if (jval_get(q->fields, STR("compare")) != NULL) {
        query_compare(q, data, scalar);
    } else if (wants_some == (scalar || result->n > 0)) {
        gate_question_answer(q, GATE_PASSES, "%s", "");
    } else if (wants_some) {
        gate_question_answer(q, GATE_REFUSES, "%s", "the query has no result, and one is wanted");
    } else {
        gate_question_answer(q, GATE_REFUSES, "the query has %u results, and none is wanted",
                             scalar ? 1 : result->n);
    }
}

void gate_query_hear(struct gate_question *q, int status, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    const struct jval *data = NULL;
    struct err err = { 0 };
    if (prometheus_parse(status, body, &tmp, &root, &err) < 0 ||
        prometheus_data(status, root, &data, &err) < 0) {
        gate_question_answer(q, GATE_REFUSES, "it cannot be asked: %s", err.msg);
    } else {
        query_judge(q, data);
    }
}
