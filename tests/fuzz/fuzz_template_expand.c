/* Whatever a template and its parameters hold, they are expanded into JSON or refused; the result
 * has a revision and a bounded size. */
#include "operation/revision.h"
#include "operation/template_expand.h"
#include "tests/fuzz/target.h"

static bool label(void *ctx UNUSED, struct str key, struct str *ret_value)
{
    *ret_value = key;
    return true;
}

/* A NodeOperationTemplate that has its parameters in `given`. */
FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf given = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    const struct jval *again = NULL;
    struct node_operation_template t;
    const struct node_operation operation = { .name = STR("a") };
    const struct machine machine = { .name = STR("n"), .label = label };
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    node_operation_template_read(object, &a, &t);
    if (t.problem.reason.n > 0) {
        return;
    }
    const struct jval *parameters = jval_get(object, STR("given"));
    struct json_writer w = json_writer_on(&given);
    if (jval_kind(parameters) == JOBJ) {
        jw_val(&w, parameters);
    } else {
        buf_add(&given, STR("{}"));
    }
    for (int i = 0; i < 2; i++) {
        struct str result = STR_NONE;
        struct str revision = STR_NONE;
        const struct run_job_parameter *variables;
        uint32_t variable_n;
        const struct template_expand_input in = { .template = &t,
                                                  .parameters_json = buf_str(&given),
                                                  .version = STR("1"),
                                                  .machine = i == 0 ? NULL : &machine };
        if (template_expand(&in, &a, &result, &err) < 0) {
            continue;
        }
        ASSERT(result.n <= EXPAND_OUTPUT_MAX);
        if (template_variables(&in, &a, &variables, &variable_n, &err) == 0) {
            ASSERT(variable_n <= t.parameter_n);
        }
        int r = json_parse(result, JSON_GO, &a, &again, &err);
        ASSERT(r == 0);
        r = revision_of(&(struct revision_input){ .operation = &operation, .payload_json = result },
                        &a, &revision, &err);
        ASSERT(r < 0 || revision.n == REVISION_HEX);
    }
}
