/* Whatever a NodeState holds, it is read; a visit is absent, known or unknown, and what an agent
 * wrote is short and printable. */
#include "kinds/node_state.h"
#include "tests/fuzz/target.h"

static void check_word(struct str word)
{
    ASSERT(word.n <= NODE_STATE_WORD_MAX);
    for (size_t i = 0; i < word.n; i++) {
        ASSERT(word.p[i] >= ' ' && word.p[i] <= '~');
    }
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct node_state s;
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    node_state_read(object, &a, &s);
    ASSERT((s.problem.reason.n > 0) == (s.problem.field.n > 0));
    bool known = s.visit.phase != VISIT_NONE && s.visit.phase != VISIT_UNKNOWN;
    ASSERT(!known || s.visit.id.n > 0);
    ASSERT(s.visit.phase != VISIT_UNKNOWN || s.problem.reason.n > 0);
    ASSERT(s.operation_n <= NODE_STATE_OPERATIONS_MAX && s.visit.run_n <= VISIT_RUNS_MAX);
    check_word(s.agent.version);
    check_word(s.agent.seal_key);
    check_word(s.agent.facts.kernel);
}
