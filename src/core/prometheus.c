#include "core/prometheus.h"

#include "base/percent.h"
#include "format/gofloat.h"

#define PROMETHEUS_TEXT_MAX 200u /* of Prometheus' error messages, which repeat the query */

void prometheus_add_form(struct buf *out, struct str query, usec_t wall)
{
    buf_add(out, STR("query="));
    percent_add_form(out, query);
    buf_printf(out, "&time=%lld", (long long)(wall / SECONDS(1)));
    unsigned micro = (unsigned)(wall % SECONDS(1));
    unsigned digits = 6;
    for (; micro > 0 && micro % 10 == 0; micro /= 10) {
        digits--;
    }
    if (micro > 0) {
        buf_printf(out, ".%0*u", (int)digits, micro);
    }
}

void prometheus_add_url(struct buf *out, struct str base, const char *path, struct str form)
{
    struct str own_query;
    (void)str_cut(base, STR("#"), &base, &(struct str){ 0 });
    (void)str_cut(base, STR("?"), &base, &own_query);
    while (str_cut_suffix(base, STR("/"), &base)) {
    }
    buf_add(out, base);
    buf_add(out, str_from(path));
    if (own_query.n > 0 || form.n > 0) {
        buf_add_char(out, '?');
        buf_add(out, own_query);
        buf_add(out, own_query.n > 0 && form.n > 0 ? STR("&") : STR(""));
        buf_add(out, form);
    }
}

static int prometheus_refusal(int status, const struct jval *root, struct err *err)
{
    struct str type = jval_str(jval_get(root, STR("errorType")));
    struct str text = jval_str(jval_get(root, STR("error")));
    enum err_code code = status / 100 == 5 ? ERR_BUSY : ERR_INVALID;
    if (type.n == 0 && text.n == 0) {
        return err_set(err, code, "prometheus answered %d", status);
    }
    type = str_sub(type, 0, PROMETHEUS_TEXT_MAX);
    text = str_sub(text, 0, PROMETHEUS_TEXT_MAX);
    return err_set(err, code, "prometheus answered %d: " STR_FMT ": " STR_FMT, status,
                   STR_ARG(type), STR_ARG(text));
}

int prometheus_parse(int status, struct str body, struct arena *out, const struct jval **ret,
                     struct err *err)
{
    const struct jval *root = NULL;
    struct err broken = { 0 };
    int r = json_parse(body, JSON_GO, out, &root, &broken);
    if (status / 100 != 2) {
        return prometheus_refusal(status, root, err);
    }
    if (r < 0 || jval_kind(root) != JOBJ) {
        return err_set(err, ERR_PROTO, "the answer of prometheus is no JSON object");
    }
    *ret = root;
    return 0;
}

int prometheus_data(int status, const struct jval *root, const struct jval **ret, struct err *err)
{
    if (!str_eq(jval_str(jval_get(root, STR("status"))), STR("success"))) {
        return prometheus_refusal(status, root, err);
    }
    *ret = jval_get(root, STR("data"));
    return 0;
}

bool prometheus_sample(const struct jval *sample, double *ret)
{
    bool pair = jval_kind(sample) == JARR && sample->n == 2;
    return pair && gofloat_parse(jval_str(jval_next(sample, jval_first(sample))), ret);
}
