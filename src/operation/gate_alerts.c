/* The gate `alerts`: whether Prometheus or Alertmanager (API v2) has an alert that counts. */
#include "core/prometheus.h"
#include "format/regex.h"
#include "operation/operations_internal.h"

#define ALERTS_SHOWN_MAX 5u

struct alerts_filter {
    struct regex *ignore; /* NULL: none */
    struct regex *only;
    bool firing_only;
    bool honour_silences;
};

static int alerts_filter_read(const struct gate_question *q, struct arena *out,
                              struct alerts_filter *ret, struct err *err)
{
    struct str ignore = jval_str(jval_get(q->fields, STR("ignore")));
    struct str only = jval_str(jval_get(q->fields, STR("only")));
    int r = 0;
    *ret = (struct alerts_filter){
        .firing_only = jval_bool(jval_get(q->fields, STR("firingOnly")), true),
        .honour_silences = jval_bool(jval_get(q->fields, STR("honourSilences")), true),
    };
    r = ignore.n > 0 ? regex_compile(ignore, out, &ret->ignore, err) : 0;
    return r == 0 && only.n > 0 ? regex_compile(only, out, &ret->only, err) : r;
}

/* Prometheus says "pending" or "firing"; Alertmanager, where only firing ones arrive, "active",
 * "suppressed" for one that is silenced or inhibited, and "unprocessed". */
static bool alert_state_counts(const struct alerts_filter *f, const struct jval *alert)
{
    struct str state = jval_str(jval_get(alert, STR("state")));
    state = state.n > 0 ? state : jval_str(jval_at(alert, "status.state"));
    if (str_eq(state, STR("pending"))) {
        return !f->firing_only;
    }
    return !(str_eq(state, STR("suppressed")) && f->honour_silences);
}

/* A name that cannot be matched within limits counts: what is not known to be harmless stops. */
static bool alert_name_counts(const struct alerts_filter *f, struct str name, struct arena *tmp)
{
    struct err err = { 0 };
    bool ignored = false;
    bool meant = true;
    if (f->ignore != NULL && regex_match(f->ignore, name, tmp, &ignored, &err) < 0) {
        ignored = false;
    }
    if (f->only != NULL && regex_match(f->only, name, tmp, &meant, &err) < 0) {
        meant = true;
    }
    return meant && !ignored;
}

static void alerts_judge(struct gate_question *q, const struct alerts_filter *f,
                         const struct jval *alerts, struct arena *tmp)
{
    CLEANUP(buf_done)
    struct buf names = { 0 };
    uint32_t n = 0;
    JVAL_EACH (alerts, alert) {
        struct str name = jval_str(jval_at(alert, "labels.alertname"));
        if (alert_state_counts(f, alert) && alert_name_counts(f, name, tmp)) {
            if (n < ALERTS_SHOWN_MAX) {
                buf_printf(&names, "%s" STR_FMT, n > 0 ? ", " : "", STR_ARG(name));
            }
            n++;
        }
    }
    if (n == 0) {
        gate_question_answer(q, GATE_PASSES, "%s", "");
    } else {
        gate_question_answer(q, GATE_REFUSES, "%u alerts are there: " STR_FMT "%s", n,
                             STR_ARG(buf_str(&names)), n > ALERTS_SHOWN_MAX ? ", …" : "");
    }
}

/* The list of alerts in either form. */
static int alerts_find(const struct gate_question *q, int status, struct str body,
                       struct arena *out, const struct jval **ret, struct err *err)
{
    const struct jval *root = NULL;
    const struct jval *data = NULL;
    if (q->second) {
        if (status / 100 != 2) {
            return err_set(err, ERR_INVALID, "the server answered %d", status);
        }
        int r = json_parse(body, JSON_GO, out, &root, err);
        data = root;
        if (r < 0) {
            return r;
        }
    } else {
        int r = prometheus_parse(status, body, out, &root, err);
        r = r < 0 ? r : prometheus_data(status, root, &data, err);
        if (r < 0) {
            return r;
        }
        data = jval_get(data, STR("alerts"));
    }
    if (jval_kind(data) != JARR) {
        return err_set(err, ERR_PROTO, "the answer has no list of alerts");
    }
    *ret = data;
    return 0;
}

void gate_alerts_hear(struct gate_question *q, int status, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct alerts_filter filter;
    const struct jval *alerts = NULL;
    struct err err = { 0 };
    if (alerts_filter_read(q, &tmp, &filter, &err) < 0 ||
        alerts_find(q, status, body, &tmp, &alerts, &err) < 0) {
        gate_question_answer(q, GATE_REFUSES, "it cannot be asked: %s", err.msg);
    } else {
        alerts_judge(q, &filter, alerts, &tmp);
    }
}
