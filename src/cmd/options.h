/*
 * options: a command's flags as one table, which parses them, prints their help and completes them
 * in a shell.
 *
 * Flags are written as Go's flag package takes them, so that command lines of the original systems
 * go on working: -x v, -x=v, --x v, --x=v, and for booleans only --x or --x=true. A flag of one
 * letter may have its value behind it, as kubectl's have: -ojson. Flags may stand before and after
 * arguments; "--" ends them. Values land in the command's own struct, at the offset that the table
 * names.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define OPTIONS_COLUMNS 80u /* help is never wider: it is read in small windows */

enum option_kind {
    OPTION_TEXT,     /* struct str */
    OPTION_FILE,     /* struct str; the shell completes paths */
    OPTION_CHOICE,   /* struct str, one of `choices` */
    OPTION_BOOL,     /* bool */
    OPTION_I32,      /* int32_t */
    OPTION_U32,      /* uint32_t */
    OPTION_U64,      /* uint64_t */
    OPTION_F64,      /* double */
    OPTION_DURATION, /* usec_t, from Go's text */
};

struct option {
    const char *name; /* without dashes */
    enum option_kind kind;
    size_t offset;
    const char *value;   /* what the help calls the value: "ADDRESS"; not for booleans */
    const char *initial; /* the default, as a user would write it; NULL or "" = zero */
    const char *choices; /* OPTION_CHOICE: "text|json" */
    const char *help;
    const char *also; /* a second name, without dashes: the long one of a letter; NULL = none */
};

#define OPTION(type, member) .offset = offsetof(type, member)

struct option_table {
    const struct option *options;
    uint32_t count;
};

struct option_args {
    struct str *items; /* what is no flag; borrowed: from argv */
    uint32_t count;
    uint32_t before_dashes; /* how many stood before "--"; UINT32_MAX = it was not there */
    bool help;              /* -h or --help was there: nothing else counts then */
};

/* Fills `config` with defaults, then with what `argv` says (without the command's own name). A
 * flag that is not in the table is -ERR_INVALID and named in the message. */
NODISCARD
int options_parse(const struct option_table *table, char *const *argv, struct arena *out,
                  void *config, struct option_args *ret, struct err *err);

/* By either of its names; NULL: the table has none. */
const struct option *options_find(const struct option_table *table, struct str name);

/* What stands before a flag's name: "-" before a letter, "--" before a word. */
const char *option_dashes(const char *name);

/* The flags with their defaults and explanations. */
void options_help(const struct option_table *table, struct buf *out);

/* `text` in lines of at most OPTIONS_COLUMNS, each after `indent` spaces, blank lines kept. */
void options_wrap(struct str text, uint32_t indent, struct buf *out);
