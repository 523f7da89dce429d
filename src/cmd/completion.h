/*
 * completion: scripts that teach a shell the commands, their flags and what these take, from the
 * same tables that parse them; and the answer to "what may stand here", for the names that only
 * the cluster knows.
 */
#pragma once

#include "cmd/command.h"

#define COMPLETION_SHELLS "bash|zsh|fish"
#define COMPLETION_COMMAND "__complete" /* as cobra's: the scripts run it, nobody else */

/* Whether the shell is one of COMPLETION_SHELLS. */
bool completion_knows(struct str shell);
/* Prints nothing for other shells. */
void completion_print(const struct command_list *list, struct str shell, struct buf *out);

/* Where the names of a cluster come from: adds each that begins with `prefix`, once. `call` has the
 * flags and arguments that are written already. */
typedef void (*completion_source)(const struct command_call *call, unsigned names,
                                  struct str prefix, struct buf *out);

/* What may stand in the place of the last word, a line each, with a tab and its meaning where that
 * helps. The last line is ":4", or ":0" where files may stand too: kubectl and other programs made
 * with cobra read this form. */
void completion_words(const struct command_list *list, char *const *words, completion_source source,
                      struct buf *out);
/* Prints completion_words with the names of the real cluster; answers the exit code. */
int completion_answer(const struct command_list *list, char *const *words);
