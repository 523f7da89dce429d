/* Whatever a NodeSeries holds, it is read; without a problem its terms say something. */
#include "format/glob.h"
#include "kinds/node_series.h"
#include "tests/fuzz/target.h"

static void check_terms(const struct series_term *terms, uint32_t n)
{
    struct err err = { 0 };
    ASSERT(n <= SERIES_TERMS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct series_term *t = &terms[i];
        ASSERT(t->has_selector || t->names.n > 0 || t->globs.n > 0 || t->has_facts);
        ASSERT(!t->has_selector || t->selector.n > 0);
        for (uint32_t g = 0; g < t->globs.n; g++) {
            int r = glob_check(t->globs.items[g], &err);
            ASSERT(r == 0);
        }
    }
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct node_series s;
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    node_series_read(object, &a, &s);
    ASSERT((s.problem.reason.n > 0) == (s.problem.field.n > 0));
    if (s.problem.reason.n == 0) {
        ASSERT(s.spec.given && (!s.spec.sample.given || s.spec.sample.n > 0));
        check_terms(s.spec.include, s.spec.include_n);
        check_terms(s.spec.exclude, s.spec.exclude_n);
    }
}
