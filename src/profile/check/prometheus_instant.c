/* prometheusInstant: the expression holds for the result of a Prometheus query. The answer is the
 * same for every node, so the query is sent once for all.
 *
 * An answer that is older than the refresh interval does not count: what was true then may not be
 * true now. A node that holds its grant is an exception. It was granted on an answer that was asked
 * for after the grant was recorded; it goes on until a newer answer says otherwise. */
#include "format/gofloat.h"
#include "format/gval.h"

#include "profile/check/check_plugin.h"

struct instant {
    struct str url;
    struct str query;
    struct str text;
    struct gval expr;
    struct str broken; /* why the expression cannot be used; empty = it can */
};

static const void *prepare(const struct check_prepare_input *input)
{
    struct err err = { 0 };
    const struct plugin_value *expr = check_value(input, "expr");
    struct instant *prepared = ARENA_NEW(input->out, struct instant);
    prepared->url = check_value(input, "url")->text;
    prepared->query = check_value(input, "query")->text;
    prepared->text = expr->text;
    /* A bad expression does not fail the configuration, as with the original: the check does. */
    if (gval_parse(prepared->text, input->out, &prepared->expr, &err) < 0) {
        prepared->broken = arena_str(input->out, str_from(err.msg));
        problems_warn(input->problems, expr->pos, "key 'expr': %s", err.msg);
    }
    return prepared;
}

static void explain(const struct check_input *in, const struct instant *prepared,
                    const struct facts_prometheus *fact, struct check_verdict *ret)
{
    struct check_info info;
    bool value = fact->known && fact->error.n == 0;
    check_info_begin(&info);
    jw_pair(&info.json, "expr", prepared->text);
    jw_pair(&info.json, "query", prepared->query);
    jw_pair(&info.json, "url", prepared->url);
    if (value) {
        check_info_f64(&info, "value", fact->value);
    }
    if (fact->warning_n > 0) {
        jw_key(&info.json, STR("warns"));
        jw_strs(&info.json, fact->warnings, fact->warning_n);
    }
    ret->info = check_info_end(&info, in->out);
    char number[GOFLOAT_TEXT_MAX];
    if (!fact->known) {
        ret->reason = STR("Prometheus has not answered yet");
    } else if (ret->answer == CHECK_PENDING) {
        usec_t age = timestamp_to_usec(in->now) - fact->asked;
        ret->reason = arena_printf(
            in->out, "the value was " STR_FMT ", " STR_FMT " ago; Prometheus is asked again",
            STR_ARG(gofloat_print(fact->value, number)),
            STR_ARG(check_duration_text(in->out, MAX(age, (usec_t)0) * 1000)));
    } else if (ret->answer == CHECK_ERROR) {
        ret->reason = STR("it cannot be told from what Prometheus answered");
    } else {
        ret->reason = arena_printf(in->out, "the value is " STR_FMT ", so " STR_FMT " %s",
                                   STR_ARG(gofloat_print(fact->value, number)),
                                   STR_ARG(check_quote_text(in->out, prepared->text)),
                                   ret->answer == CHECK_PASS ? "holds" : "does not hold");
    }
}

static void evaluate(const struct check_input *in, const struct instant *prepared,
                     const struct facts_prometheus *fact, bool due, struct check_verdict *ret)
{
    struct err err = { 0 };
    bool holds = false;
    bool stale = due && !in->granted && !mutated(in->mutations, MUTATION_STALE_ANSWERS);
    if (!fact->known) {
        ret->answer = CHECK_PENDING;
    } else if (fact->error.n > 0) {
        check_fail_with(in, ret, STR_FMT, STR_ARG(fact->error));
    } else if (stale) {
        ret->answer = CHECK_PENDING;
    } else if (prepared->broken.n > 0) {
        check_fail_with(in, ret, STR_FMT, STR_ARG(prepared->broken));
    } else if (gval_eval(&prepared->expr, fact->value, in->out, &holds, &err) < 0) {
        check_fail_with(in, ret, "failed to evaluate prometheus expression: %s", err.msg);
    } else {
        ret->answer = holds ? CHECK_PASS : CHECK_FAIL;
    }
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct instant *prepared = check_prepared(in, index);
    struct facts_prometheus fact = facts_prometheus(in->facts, index);
    bool due = check_needs_refresh(in, fact.known, fact.asked, fact.answered, ret);
    evaluate(in, prepared, &fact, due, ret);
    if (due) {
        check_want(in, ret, &(struct facts_want){ .kind = FACTS_PROMETHEUS, .index = index });
    }
    if (in->explain) {
        explain(in, prepared, &fact, ret);
    }
}

const struct check_plugin check_prometheus_instant = {
    .name = "prometheusInstant",
    .prepare = prepare,
    .run = run,
};
