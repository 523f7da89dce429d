/*
 * oracle: jansson's opinion of a JSON text, to compare ours with.
 */
#pragma once

#include "format/json.h"

enum oracle_verdict {
    ORACLE_AGREES,
    ORACLE_DISAGREES, /* one takes the text and the other does not, or the values differ */
    ORACLE_UNSURE,    /* beyond what either of the two can say: numbers too large, NUL */
};

/* `root` is what json_parse made of `text`, NULL when it refused it. */
enum oracle_verdict oracle_compare_json(struct str text, const struct jval *root);
