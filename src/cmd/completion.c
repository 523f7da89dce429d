#include "cmd/completion.h"

#define EACH_COMMAND(list, c) for (const struct command *const *c = (list)->items; *c != NULL; c++)

/* What the table of commands answers itself. */
static const struct {
    const char *name;
    const char *summary;
} builtins[] = {
    { "completion", "print a script that completes commands" },
    { "version", "print the version" },
    { "help", "print help, or a command's own" },
};

static bool takes_files(const struct command *c)
{
    return c->args != NULL && str_contains(str_from(c->args), STR("FILE"));
}

/* Both are read; this is how people write it. */
static const char *dashes(const struct option *o)
{
    return o->name[1] == '\0' ? "-" : "--";
}

/* The pieces of "a|b", each behind a space but the first. */
static void add_words(const char *choices, struct buf *out)
{
    struct str rest = str_from(choices);
    struct str piece;
    for (bool first = true; str_split_next(&rest, '|', &piece); first = false) {
        buf_printf(out, "%s" STR_FMT, first ? "" : " ", STR_ARG(piece));
    }
}

/* `text` with a backslash before each of `special`; a single quote as `quote`. */
static void add_escaped(const char *text, const char *special, const char *quote, struct buf *out)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'') {
            buf_add(out, str_from(quote));
            continue;
        }
        if (str_find_char(str_from(special), *p) != SIZE_MAX) {
            buf_add_char(out, '\\');
        }
        buf_add_char(out, *p);
    }
}

/* ── bash ──────────────────────────────────────────────────────────────────────────────────── */

/* What may follow a flag: files, the choices, or nothing that a shell could know. */
static void bash_values(const struct command *command, struct buf *out)
{
    for (uint32_t i = 0; i < command->options.count; i++) {
        const struct option *o = &command->options.options[i];
        if (o->kind == OPTION_BOOL) {
            continue;
        }
        buf_printf(out, "    %s:-%s|%s:--%s) ", command->name, o->name, command->name, o->name);
        if (o->kind == OPTION_FILE) {
            buf_add(out, STR("COMPREPLY=($(compgen -f -- \"$cur\")); "));
        } else if (o->kind == OPTION_CHOICE) {
            buf_add(out, STR("COMPREPLY=($(compgen -W '"));
            add_words(o->choices, out);
            buf_add(out, STR("' -- \"$cur\")); "));
        }
        buf_add(out, STR("return ;;\n"));
    }
}

static void bash_names(const struct command_list *list, struct buf *out)
{
    EACH_COMMAND(list, c)
    {
        buf_printf(out, "%s ", (*c)->name);
    }
}

static void bash_print(const struct command_list *list, struct buf *out)
{
    buf_add(out, STR("# bash completion of drydock: source <(drydock completion bash)\n"
                     "_drydock() {\n"
                     "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "  local command=${COMP_WORDS[1]} flags='' files=''\n"
                     "  COMPREPLY=()\n"
                     "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "    COMPREPLY=($(compgen -W '"));
    bash_names(list, out);
    buf_add(out, STR("completion version help' -- \"$cur\"))\n"
                     "    return\n"
                     "  fi\n"
                     "  # --flag=value comes as three words.\n"
                     "  [ \"$cur\" = = ] && cur=\n"
                     "  [ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                     "  case $command:$prev in\n"));
    EACH_COMMAND(list, c)
    {
        bash_values(*c, out);
    }
    buf_add(out, STR("    completion:*) COMPREPLY=($(compgen -W '"));
    add_words(COMPLETION_SHELLS, out);
    buf_add(out, STR("' -- \"$cur\")); return ;;\n"
                     "    help:*) COMPREPLY=($(compgen -W '"));
    bash_names(list, out);
    buf_add(out, STR("' -- \"$cur\")); return ;;\n"
                     "  esac\n"
                     "  case $command in\n"));
    EACH_COMMAND(list, c)
    {
        buf_printf(out, "    %s) flags='", (*c)->name);
        for (uint32_t i = 0; i < (*c)->options.count; i++) {
            const struct option *o = &(*c)->options.options[i];
            buf_printf(out, "%s%s ", dashes(o), o->name);
        }
        buf_printf(out, "--help' files='%s' ;;\n", takes_files(*c) ? "yes" : "");
    }
    buf_add(out, STR("  esac\n"
                     "  case $cur in\n"
                     "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")) ;;\n"
                     "    *) [ -n \"$files\" ] && COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
                     "  esac\n"
                     "}\n"
                     "complete -o filenames -F _drydock drydock kubectl-drydock\n"));
}

/* ── zsh ───────────────────────────────────────────────────────────────────────────────────── */

#define ZSH_SPECIAL "[]:\\"
#define ZSH_QUOTE "'\\''"

static void zsh_option(const struct option *o, struct buf *out)
{
    buf_printf(out, "        '%s%s%s[", dashes(o), o->name, o->kind == OPTION_BOOL ? "" : "=");
    add_escaped(o->help, ZSH_SPECIAL, ZSH_QUOTE, out);
    buf_add_char(out, ']');
    if (o->kind != OPTION_BOOL) {
        buf_add_char(out, ':');
        add_escaped(o->value != NULL ? o->value : o->name, ZSH_SPECIAL, ZSH_QUOTE, out);
        buf_add_char(out, ':');
    }
    if (o->kind == OPTION_FILE) {
        buf_add(out, STR("_files"));
    } else if (o->kind == OPTION_CHOICE) {
        buf_add_char(out, '(');
        add_words(o->choices, out);
        buf_add_char(out, ')');
    }
    buf_add(out, STR("' \\\n"));
}

static void zsh_describe(const char *name, const char *summary, struct buf *out)
{
    buf_printf(out, "    '%s:", name);
    add_escaped(summary, "\\", ZSH_QUOTE, out);
    buf_add(out, STR("'\n"));
}

static void zsh_print(const struct command_list *list, struct buf *out)
{
    buf_add(out,
            STR("#compdef drydock kubectl-drydock\n"
                "# zsh completion of drydock: drydock completion zsh > \"${fpath[1]}/_drydock\"\n"
                "_drydock() {\n"
                "  local curcontext=$curcontext state line\n"
                "  local -a commands\n"
                "  commands=(\n"));
    EACH_COMMAND(list, c)
    {
        zsh_describe((*c)->name, (*c)->summary, out);
    }
    for (size_t i = 0; i < ARRAY_LEN(builtins); i++) {
        zsh_describe(builtins[i].name, builtins[i].summary, out);
    }
    buf_add(out, STR("  )\n"
                     "  _arguments -C '1: :->command' '*:: :->rest'\n"
                     "  case $state in\n"
                     "  command) _describe -t commands command commands ;;\n"
                     "  rest)\n"
                     "    case $words[1] in\n"));
    EACH_COMMAND(list, c)
    {
        buf_printf(out, "    %s)\n      _arguments \\\n", (*c)->name);
        for (uint32_t i = 0; i < (*c)->options.count; i++) {
            zsh_option(&(*c)->options.options[i], out);
        }
        buf_printf(out, "        '--help[print its help]'%s ;;\n",
                   takes_files(*c) ? " '*:file:_files'" : "");
    }
    buf_add(out, STR("    completion) _arguments '1:shell:("));
    add_words(COMPLETION_SHELLS, out);
    buf_add(out, STR(")' ;;\n"
                     "    help) _describe -t commands command commands ;;\n"
                     "    esac ;;\n"
                     "  esac\n"
                     "}\n"
                     "if [ \"$funcstack[1]\" = _drydock ]; then\n"
                     "  _drydock \"$@\"\n"
                     "else\n"
                     "  compdef _drydock drydock kubectl-drydock\n"
                     "fi\n"));
}

/* ── fish ──────────────────────────────────────────────────────────────────────────────────── */

static void fish_describe(const char *text, struct buf *out)
{
    buf_add(out, STR(" -d '"));
    add_escaped(text, "\\", "\\'", out);
    buf_add(out, STR("'\n"));
}

static void fish_command(const char *name, const char *summary, struct buf *out)
{
    buf_printf(out, "complete -c drydock -n __fish_use_subcommand -a %s", name);
    fish_describe(summary, out);
}

static void fish_option(const struct command *c, const struct option *o, struct buf *out)
{
    buf_printf(out, "complete -c drydock -n '__fish_seen_subcommand_from %s' -%c %s", c->name,
               o->name[1] == '\0' ? 's' : 'l', o->name);
    if (o->kind == OPTION_FILE) {
        buf_add(out, STR(" -r -F"));
    } else if (o->kind == OPTION_CHOICE) {
        buf_add(out, STR(" -x -a '"));
        add_words(o->choices, out);
        buf_add_char(out, '\'');
    } else if (o->kind != OPTION_BOOL) {
        buf_add(out, STR(" -x"));
    }
    fish_describe(o->help, out);
}

static void fish_print(const struct command_list *list, struct buf *out)
{
    buf_add(out, STR("# fish completion of drydock: drydock completion fish | source\n"
                     "complete -c drydock -f\n"
                     "complete -c kubectl-drydock -w drydock\n"));
    EACH_COMMAND(list, c)
    {
        fish_command((*c)->name, (*c)->summary, out);
    }
    for (size_t i = 0; i < ARRAY_LEN(builtins); i++) {
        fish_command(builtins[i].name, builtins[i].summary, out);
    }
    EACH_COMMAND(list, c)
    {
        for (uint32_t i = 0; i < (*c)->options.count; i++) {
            fish_option(*c, &(*c)->options.options[i], out);
        }
        if (takes_files(*c)) {
            buf_printf(out, "complete -c drydock -n '__fish_seen_subcommand_from %s' -F\n",
                       (*c)->name);
        }
    }
    buf_add(out, STR("complete -c drydock -n '__fish_seen_subcommand_from completion' -a '"));
    add_words(COMPLETION_SHELLS, out);
    buf_add(out, STR("'\ncomplete -c drydock -n '__fish_seen_subcommand_from help' -a '"));
    bash_names(list, out);
    buf_add(out, STR("'\n"));
}

bool completion_print(const struct command_list *list, struct str shell, struct buf *out)
{
    static const struct {
        const char *name;
        void (*print)(const struct command_list *list, struct buf *out);
    } shells[] = {
        { "bash", bash_print },
        { "zsh", zsh_print },
        { "fish", fish_print },
    };
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (str_eq(shell, str_from(shells[i].name))) {
            shells[i].print(list, out);
            return true;
        }
    }
    return false;
}
