/*
 * report_colour: colours for a report on a terminal.
 *
 * The server renders the text and knows no terminal, so what deserves a colour is found by the
 * words that reports have at fixed places: answers of checks, verdicts of transitions, headings,
 * errors. Only escape sequences are added; a line without such words stays as it is.
 */
#pragma once

#include "base/buf.h"

void report_colour_add(struct str text, struct buf *out);
