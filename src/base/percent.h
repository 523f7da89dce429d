/*
 * percent: percent-encoding of URLs (RFC 3986 §2.1), for paths and for form values.
 */
#pragma once

#include "base/buf.h"

/* One segment of a path; a slash in the text does not end the segment. */
void percent_add_segment(struct buf *out, struct str text);
/* One value of a query or form, as Go's url.QueryEscape has it: a space becomes '+'. */
void percent_add_form(struct buf *out, struct str text);
