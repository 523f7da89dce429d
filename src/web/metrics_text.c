#include "web/metrics_text.h"

#include <math.h>

static const char *const metrics_type_names[] = {
    [METRIC_COUNTER] = "counter",
    [METRIC_GAUGE] = "gauge",
    [METRIC_HISTOGRAM] = "histogram",
};

/* HELP escapes backslash and line feed; a label value also its quote. */
static void metrics_text_escape(struct buf *out, struct str text, bool quote)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\\') {
            buf_add(out, STR("\\\\"));
        } else if (c == '\n') {
            buf_add(out, STR("\\n"));
        } else if (c == '"' && quote) {
            buf_add(out, STR("\\\""));
        } else {
            buf_add_char(out, c);
        }
    }
}

static void metrics_text_number(struct buf *out, double value)
{
    if (isnan(value)) {
        buf_add(out, STR("NaN"));
    } else if (isinf(value)) {
        buf_add(out, value > 0 ? STR("+Inf") : STR("-Inf"));
    } else if (value == floor(value) && fabs(value) < 1e15) {
        buf_printf(out, "%.0f", value);
    } else {
        /* The shortest text that reads back as the same number. */
        for (int digits = 6; digits <= 17; digits++) {
            char text[40];
            int n = snprintf(text, sizeof(text), "%.*g", digits, value);
            struct str printed = { .p = text, .n = (size_t)n };
            double back;
            if (digits == 17 || (str_to_f64(printed, &back) && back == value)) {
                buf_add(out, printed);
                return;
            }
        }
    }
}

/* Up to and with the space before the value. `bound` is the text of the label `le`, or empty. */
static void metrics_text_head(struct buf *out, const struct metric *f,
                              const struct metric_series *s, const char *suffix, struct str bound)
{
    buf_printf(out, "%s%s", f->spec.name, suffix);
    char before = '{';
    for (uint32_t i = 0; i < f->label_count; i++) {
        buf_add_char(out, before);
        buf_printf(out, "%s=\"", f->spec.labels[i]);
        metrics_text_escape(out, s->values[i], /* quote= */ true);
        buf_add_char(out, '"');
        before = ',';
    }
    if (bound.n > 0) {
        buf_add_char(out, before);
        buf_printf(out, "le=\"" STR_FMT "\"", STR_ARG(bound));
        before = ',';
    }
    if (before == ',') {
        buf_add_char(out, '}');
    }
    buf_add_char(out, ' ');
}

static void metrics_text_histogram(struct buf *out, const struct metric *f,
                                   const struct metric_series *s)
{
    uint64_t below = 0;
    for (uint32_t i = 0; i < f->spec.bucket_count; i++) {
        CLEANUP(buf_done)
        struct buf bound = { .max = 64 };
        metrics_text_number(&bound, f->spec.buckets[i]);
        below += s->buckets[i];
        metrics_text_head(out, f, s, "_bucket", buf_str(&bound));
        buf_printf(out, "%llu\n", (unsigned long long)below);
    }
    metrics_text_head(out, f, s, "_bucket", STR("+Inf"));
    buf_printf(out, "%llu\n", (unsigned long long)s->count);
    metrics_text_head(out, f, s, "_sum", STR_NONE);
    metrics_text_number(out, s->sum);
    buf_add_char(out, '\n');
    metrics_text_head(out, f, s, "_count", STR_NONE);
    buf_printf(out, "%llu\n", (unsigned long long)s->count);
}

void metrics_text_print(struct metrics *m, struct buf *out)
{
    metrics_collect(m);
    for (const struct metric *f = m->first; f != NULL; f = f->next) {
        if (f->first == NULL) {
            continue; /* as the Go client does: a family appears with its first series */
        }
        buf_printf(out, "# HELP %s ", f->spec.name);
        metrics_text_escape(out, str_from(f->spec.help), /* quote= */ false);
        buf_printf(out, "\n# TYPE %s %s\n", f->spec.name, metrics_type_names[f->spec.kind]);
        for (const struct metric_series *s = f->first; s != NULL; s = s->next) {
            if (f->spec.kind == METRIC_HISTOGRAM) {
                metrics_text_histogram(out, f, s);
                continue;
            }
            metrics_text_head(out, f, s, "", STR_NONE);
            metrics_text_number(out, s->value);
            buf_add_char(out, '\n');
        }
    }
}
