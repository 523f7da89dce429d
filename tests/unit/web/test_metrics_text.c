#include "web/metrics_text.h"

#include <math.h>

#include "tests/check.h"

static const double bounds[] = { 0.005, 1, 2.5 };

static void set_gauge(void *ctx)
{
    metric_set(ctx, 41.5);
}

TEST(metrics_text_print_writes_the_text_format)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    metrics_init(&m);
    struct metric *c = metrics_family(&m, &(struct metric_spec){ .name = "requests_total",
                                                                 .help = "All\\of\nthem.",
                                                                 .labels = { "verb", "code" } });
    metric_add(metric_series(c, (struct str[]){ STR("GET"), STR("200") }), 12);
    metric_add(metric_series(c, (struct str[]){ STR("a\"b\\c\nd"), STR("") }), 0.25);
    struct metric *g = metrics_family(
        &m, &(struct metric_spec){ .name = "level", .help = "Now.", .kind = METRIC_GAUGE });
    struct metric *h = metrics_family(&m, &(struct metric_spec){ .name = "took_seconds",
                                                                 .help = "Time.",
                                                                 .kind = METRIC_HISTOGRAM,
                                                                 .labels = { "step" },
                                                                 .buckets = bounds,
                                                                 .bucket_count = 3 });
    struct metric_series *s = metric_series(h, (struct str[]){ STR("x") });
    metric_observe(s, 0.001);
    metric_observe(s, 2);
    metric_observe(s, 9);
    (void)metrics_family(
        &m, &(struct metric_spec){ .name = "unseen", .help = "Not yet.", .labels = { "a" } });
    metrics_on_collect(&m, set_gauge, metric_series(g, NULL));
    metrics_text_print(&m, &out);
    CHECK_STR(buf_str(&out), "# HELP requests_total All\\\\of\\nthem.\n"
                             "# TYPE requests_total counter\n"
                             "requests_total{verb=\"GET\",code=\"200\"} 12\n"
                             "requests_total{verb=\"a\\\"b\\\\c\\nd\",code=\"\"} 0.25\n"
                             "# HELP level Now.\n"
                             "# TYPE level gauge\n"
                             "level 41.5\n"
                             "# HELP took_seconds Time.\n"
                             "# TYPE took_seconds histogram\n"
                             "took_seconds_bucket{step=\"x\",le=\"0.005\"} 1\n"
                             "took_seconds_bucket{step=\"x\",le=\"1\"} 1\n"
                             "took_seconds_bucket{step=\"x\",le=\"2.5\"} 2\n"
                             "took_seconds_bucket{step=\"x\",le=\"+Inf\"} 3\n"
                             "took_seconds_sum{step=\"x\"} 11.001\n"
                             "took_seconds_count{step=\"x\"} 3\n");
}

TEST(metrics_text_print_knows_numbers_that_are_none)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    metrics_init(&m);
    struct metric *g = metrics_family(
        &m,
        &(struct metric_spec){ .name = "g", .help = "", .kind = METRIC_GAUGE, .labels = { "n" } });
    metric_set(metric_series(g, (struct str[]){ STR("a") }), (double)NAN);
    metric_set(metric_series(g, (struct str[]){ STR("b") }), (double)INFINITY);
    metric_set(metric_series(g, (struct str[]){ STR("c") }), -(double)INFINITY);
    metric_set(metric_series(g, (struct str[]){ STR("d") }), 1.0 / 3);
    metric_set(metric_series(g, (struct str[]){ STR("e") }), 1.7e300);
    metrics_text_print(&m, &out);
    CHECK(str_contains(buf_str(&out), STR("g{n=\"a\"} NaN\ng{n=\"b\"} +Inf\ng{n=\"c\"} -Inf\n")));
    CHECK(str_contains(buf_str(&out), STR("g{n=\"d\"} 0.3333333333333333\ng{n=\"e\"} 1.7e+300\n")));
}
