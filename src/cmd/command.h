/*
 * command: one subcommand of drydock, as a table entry.
 *
 * To add one: a file in cmd/ that defines a `const struct command`, a line in this header and a
 * line in cmd/main.c. Parsing, help, completion and the exit codes of bad command lines come with
 * the table.
 */
#pragma once

#include "cmd/options.h"

enum command_exit {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1, /* it was asked for something sensible and could not do it */
    COMMAND_USAGE = 2,  /* the command line is wrong */
};

struct command_list;

/* Names that a shell can complete; several may do at one place. */
enum command_names {
    COMMAND_NAMES_NODES = 1 << 0,
    COMMAND_NAMES_REQUESTS = 1 << 1, /* live ones, by their name and by their node */
    COMMAND_NAMES_LIMITS = 1 << 2,
    COMMAND_NAMES_MACHINES = 1 << 3, /* "namespace/name" */
    COMMAND_NAMES_KINDS = 1 << 4,    /* the words of `explain` */
    COMMAND_NAMES_MAINTENANCES = 1 << 5,
};

struct command_call {
    const struct command *command;
    const char *program;             /* "drydock", or "kubectl drydock" */
    const struct command_list *list; /* all commands */
    void *config;                    /* of command->config_size, filled from the flags */
    const struct str *args;          /* what is no flag; NUL-terminated, as they come from argv */
    uint32_t arg_count;              /* within the command's bounds */
    uint32_t before_dashes; /* how many of them stood before "--"; UINT32_MAX = it was not there */
    struct arena *memory;   /* lives as long as the call */
};

struct command {
    const char *name;
    const char *args;    /* how the usage line names them: "FILE…"; NULL = none */
    const char *summary; /* one line, for the list of commands */
    const char *text;    /* for its own help; lines are wrapped, blank lines kept */
    struct option_table options;
    size_t config_size;
    uint32_t args_min;
    uint32_t args_max;
    /* Refuses arguments that are wrong beyond their number; may be NULL. Comes before their number
     * is looked at. */
    int (*check)(const struct command_call *call, struct err *err);
    int (*run)(const struct command_call *call); /* answers the exit code */
    /* Which names may stand behind the arguments that are there, as COMMAND_NAMES_… in one; NULL:
     * none that a cluster would know. */
    unsigned (*names)(const struct command_call *call);
};

/* What the table answers beside the commands. */
struct command_builtin {
    const char *name;
    const char *summary;
};
#define COMMAND_BUILTIN_COUNT 3
extern const struct command_builtin command_builtins[COMMAND_BUILTIN_COUNT];

/* The value of --context, or without it that of the environment variable KUBECONTEXT. */
struct str command_kubecontext(struct str flag);
/* Prints "program command: text" to stderr and answers COMMAND_FAILED. */
int command_fail(const struct command_call *call, const struct err *err);

/* All commands, in the order in which help lists them; ends with NULL. */
struct command_list {
    const struct command *const *items;
    const char *commit; /* what the program was built from; NULL or "" = unknown */
};

/* NULL: there is no such command. */
const struct command *command_find(const struct command_list *list, struct str name);

/* Finds the command of the first argument, or that of the program's name, parses and runs it;
 * answers the exit code. */
int command_main(const struct command_list *list, char *const *argv);

/* "drydock 1.2.3 (commit)", as a line. */
void command_version(const struct command_list *list, struct buf *out);

/* Help of all commands, or of one. */
void command_list_help(const struct command_list *list, const char *program, struct buf *out);
void command_help(const struct command *command, const char *program, struct buf *out);
