/* Whatever a NodeOperationTemplate holds, it is read; without a problem each parameter has a good
 * name and a value or the duty to be given one. */
#include "kinds/node_operation_template.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct node_operation_template t;
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    node_operation_template_read(object, &a, &t);
    ASSERT((t.problem.reason.n > 0) == (t.problem.field.n > 0));
    ASSERT(t.parameter_n <= TEMPLATE_PARAMETERS_MAX);
    if (t.problem.reason.n > 0) {
        return;
    }
    ASSERT(t.types != 0 && t.payload_json.n > 0);
    for (uint32_t i = 0; i < t.parameter_n; i++) {
        const struct template_parameter *p = &t.parameters[i];
        ASSERT(p->name.n > 0 && (p->required || p->default_json.n > 0));
        ASSERT((p->pattern != NULL) == (p->pattern_text.n > 0));
    }
}
