/* The gates `pods` (enough of them are ready) and `blockingPods` (none runs on the machine). */
#include "operation/operations_internal.h"

#define READY_PERCENT 100

static struct str pods_namespace(const struct gate_question *q)
{
    uint32_t i = 0;
    JVAL_EACH (jval_get(q->fields, STR("namespaces")), namespace) {
        if (i++ == q->namespace) {
            return jval_str(namespace);
        }
    }
    return STR_NONE;
}

void gate_pods_ask(struct gate_question *q)
{
    struct str namespace = pods_namespace(q);
    buf_reset(&q->path);
    buf_add(&q->path, STR("/api/v1"));
    if (namespace.n > 0) {
        buf_add(&q->path, STR("/namespaces/"));
        client_add_segment(&q->path, namespace);
    }
    buf_add(&q->path, STR("/pods?limit=" GATE_PAGE));
    if (q->selector.n > 0) {
        gate_question_add(q, "labelSelector", q->selector);
    }
    if (q->kind == GATE_BLOCKING_PODS) {
        gate_question_add(q, "fieldSelector",
                          arena_printf(&q->o->tmp, "spec.nodeName=" STR_FMT, STR_ARG(q->machine)));
    }
    if (q->page.n > 0) {
        gate_question_add(q, "continue", buf_str(&q->page));
    }
    gate_question_get(q);
}

static bool pod_has_ended(const struct jval *pod)
{
    struct str phase = jval_str(jval_at(pod, "status.phase"));
    return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

/* One that is being deleted will not be there much longer. */
static bool pod_is_ready(const struct jval *pod)
{
    if (jval_str(jval_at(pod, "metadata.deletionTimestamp")).n > 0) {
        return false;
    }
    JVAL_EACH (jval_at(pod, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Ready"))) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

static void pods_count(struct gate_question *q, const struct jval *pod)
{
    if (pod_has_ended(pod)) {
        return;
    }
    bool good = q->kind == GATE_PODS && pod_is_ready(pod);
    q->tally.seen++;
    q->tally.good += good ? 1 : 0;
    if (!good && q->tally.bad.n == 0) {
        struct str namespace = jval_str(jval_at(pod, "metadata.namespace"));
        struct str name = jval_str(jval_at(pod, "metadata.name"));
        buf_printf(&q->tally.bad, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
    }
}

static void pods_judge(struct gate_question *q)
{
    const struct gate_tally *t = &q->tally;
    int64_t wanted = READY_PERCENT;
    struct str bad = buf_str(&t->bad);
    (void)jval_i64(jval_get(q->fields, STR("minReadyPercent")), &wanted); /* otherwise all */
    if (q->kind == GATE_BLOCKING_PODS) {
        if (t->seen == 0) {
            gate_question_answer(q, GATE_PASSES, "%s", "");
        } else {
            gate_question_answer(q, GATE_REFUSES,
                                 "%u pods that block it run on the machine, such as " STR_FMT,
                                 t->seen, STR_ARG(bad));
        }
    } else if (t->seen == 0 && wanted > 0) {
        /* A selector with a mistake in it must not open the gate. */
        gate_question_answer(q, GATE_REFUSES, "no pod matches '" STR_FMT "'", STR_ARG(q->selector));
    } else if ((int64_t)t->good * READY_PERCENT < (int64_t)t->seen * wanted) {
        gate_question_answer(q, GATE_REFUSES,
                             "%u of %u pods are ready and %lld%% are wanted; not ready is " STR_FMT,
                             t->good, t->seen, (long long)wanted, STR_ARG(bad));
    } else {
        gate_question_answer(q, GATE_PASSES, "%s", "");
    }
}

void gate_pods_read(struct gate_question *q, const struct jval *list)
{
    JVAL_EACH (jval_get(list, STR("items")), pod) {
        pods_count(q, pod);
    }
    buf_reset(&q->page);
    buf_add(&q->page, jval_str(jval_at(list, "metadata.continue")));
    q->namespace += q->page.n == 0 ? 1 : 0;
    if (q->page.n > 0 || pods_namespace(q).n > 0) {
        gate_pods_ask(q);
    } else {
        pods_judge(q);
    }
}
