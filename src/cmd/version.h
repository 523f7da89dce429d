/*
 * version: the commit that the program was built from.
 *
 * The build writes version.c from version.c.in and links it with main.c only, so that a commit
 * compiles one small file again.
 */
#pragma once

/* "4ac92e4c", "4ac92e4c-dirty" with changes that are not committed, "" without git. */
extern const char version_commit[];
