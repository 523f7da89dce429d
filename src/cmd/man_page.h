/*
 * man_page: manual pages of section 1, from the same tables that parse the commands.
 */
#pragma once

#include "cmd/command.h"

#define MAN_PAGE_COMMAND "__man" /* the build runs it, nobody else */

/* The page of one command, "drydock-status(1)"; NULL: that of the program, which lists them. */
void man_page_print(const struct command_list *list, const struct command *command,
                    struct buf *out);
/* Prints the page that the words ask for, or with "--list" the names of all commands; answers the
 * exit code. */
int man_page_answer(const struct command_list *list, char *const *words);
