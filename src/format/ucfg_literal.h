/*
 * ucfg_literal: what the text behind a variable means: 007 is a number, on a boolean, "a,b" a list.
 *
 * It is go-ucfg's small language, read anew after all variables have been replaced, which is why a
 * password with a comma has to be quoted.
 */
#pragma once

#include "format/ucfg_value.h"

#define UCFG_LITERAL_DEPTH_MAX 32u /* of [ and {; people write one */

/* `objects`: {k: v} is a mapping; not where the whole value is one variable of the environment. */
NODISCARD
int ucfg_literal_parse(struct str text, bool objects, struct arena *out, struct ucfg_value *ret,
                       struct err *err);
