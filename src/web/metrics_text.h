/*
 * metrics_text: prints metrics in the Prometheus text format 0.0.4.
 */
#pragma once

#include "base/metric.h"

#define METRICS_TEXT_CONTENT_TYPE STR("text/plain; version=0.0.4; charset=utf-8")

/* Runs the registry's collectors, then writes all families in the order of their registration. */
void metrics_text_print(struct metrics *m, struct buf *out);
