/*
 * query: the parameters of an address, "?node=worker-1&format=text".
 */
#pragma once

#include "base/arena.h"

/* The value of a key, decoded; empty when it is not there. What is no escape is itself. */
struct str query_param(struct str query, struct str key, struct arena *out);

/* How a report is answered. */
enum query_format {
    QUERY_FORMAT_JSON,
    QUERY_FORMAT_TEXT, /* for people: lines of 80 columns, or as query_columns says */
    QUERY_FORMAT_WIDE, /* the same with lines of any length and nothing left out */
};

/* The parameter `format`: json, text or wide; JSON without it. False: it has another value. */
bool query_format(struct str query, enum query_format *ret);
/* What an answer looks like. */
struct query_form {
    enum query_format format;
    uint32_t columns; /* of QUERY_FORMAT_TEXT; 0 = 80 */
};

/* The parameter `columns`: how wide the reader's terminal is, for format=text. 0: it is not there,
 * or no number that a terminal has. */
#define QUERY_COLUMNS_MIN 40u
#define QUERY_COLUMNS_MAX 500u
uint32_t query_columns(struct str query);
#define QUERY_FORMAT_ERROR STR("want format=json, format=text or format=wide")
