/*
 * terminal: whether somebody reads along at a terminal, how wide it is, and whether it may be
 * coloured.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TERMINAL_COLUMNS 80u /* where nothing else is known; nothing is made for less */

/* The width of the terminal behind a descriptor, at least TERMINAL_COLUMNS; 0: it is none. */
uint32_t terminal_columns(int fd);
/* The descriptor is a terminal that knows colours, and NO_COLOR does not forbid them. */
bool terminal_colour(int fd);
