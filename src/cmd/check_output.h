/*
 * check_output: what `drydock check` prints about a file: each problem with its line of the source
 * and a mark under the place, or one line that all is well.
 */
#pragma once

#include "base/buf.h"
#include "profile/config.h"

#define CHECK_OUTPUT_COLUMNS 80u /* a longer line of the source is shown in part */

/* `text` is what the problems were found in; STR_NONE: its lines are not shown. */
void check_output_problems(struct str path, struct str text, const struct problems *problems,
                           struct buf *out);
void check_output_valid(struct str path, const struct config *config, struct buf *out);
