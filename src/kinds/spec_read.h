/*
 * spec_read: what our kinds read alike: label selectors of their specs, and their status.
 */
#pragma once

#include "format/selector.h"

/* False if there is none, or if it is wrong: then *ret_problem says why. */
bool spec_read_selector(const struct jval *v, struct arena *out, struct selector *ret,
                        struct str *ret_problem);
/* The object's status as JSON; "{}" if it has none. */
struct str spec_read_status(const struct jval *object, struct arena *out);
