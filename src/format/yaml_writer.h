/*
 * yaml_writer: prints a JSON value as YAML in block style, for `-o yaml`.
 *
 * Texts that a YAML 1.1 reader could take for anything else stand in double quotes, so that what is
 * printed reads back as the same value.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"

/* A whole document, with its last line break. */
void yaml_write(const struct jval *value, struct buf *out);
