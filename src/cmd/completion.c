#include "cmd/completion.h"

#define EACH_COMMAND(list, c) for (const struct command *const *c = (list)->items; *c != NULL; c++)

static bool takes_files(const struct command *c)
{
    return c->args != NULL && str_contains(str_from(c->args), STR("FILE"));
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
        buf_printf(out, "    %s:-%s|%s:--%s", command->name, o->name, command->name, o->name);
        if (o->also != NULL) {
            buf_printf(out, "|%s:-%s|%s:--%s", command->name, o->also, command->name, o->also);
        }
        buf_add(out, STR(") "));
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
                     "  local command=${COMP_WORDS[1]} flags='' files='' names=''\n"
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
            buf_printf(out, "%s%s ", option_dashes(o->name), o->name);
            if (o->also != NULL) {
                buf_printf(out, "%s%s ", option_dashes(o->also), o->also);
            }
        }
        buf_printf(out, "--help' files='%s' names='%s' ;;\n", takes_files(*c) ? "yes" : "",
                   (*c)->names != NULL ? "yes" : "");
    }
    buf_add(out, STR("  esac\n"
                     "  case $cur in\n"
                     "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")) ;;\n"
                     "    *) if [ -n \"$names\" ]; then\n"
                     "         # The cluster is asked; what begins with ':' is for kubectl.\n"
                     "         COMPREPLY=($(\"${COMP_WORDS[0]}\" " COMPLETION_COMMAND
                     " \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null | cut -f1 | grep -v '^:'))\n"
                     "       elif [ -n \"$files\" ]; then\n"
                     "         COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                     "       fi ;;\n"
                     "  esac\n"
                     "}\n"
                     "complete -o filenames -F _drydock drydock kubectl-drydock\n"));
}

/* ── zsh ───────────────────────────────────────────────────────────────────────────────────── */

#define ZSH_SPECIAL "[]:\\"
#define ZSH_QUOTE "'\\''"

static void zsh_option(const struct option *o, const char *name, struct buf *out)
{
    buf_printf(out, "        '%s%s%s[", option_dashes(name), name,
               o->kind == OPTION_BOOL ? "" : "=");
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
                "_drydock_names() {\n"
                "  local -a names\n"
                "  names=(${(f)\"$(drydock " COMPLETION_COMMAND
                " \"${(@)words[1,CURRENT]}\" 2>/dev/null)\"})\n"
                "  names=(${${names:#:*}%%$'\\t'*})\n"
                "  compadd -a names\n"
                "}\n"
                "_drydock() {\n"
                "  local curcontext=$curcontext state line\n"
                "  local -a commands\n"
                "  commands=(\n"));
    EACH_COMMAND(list, c)
    {
        zsh_describe((*c)->name, (*c)->summary, out);
    }
    for (size_t i = 0; i < ARRAY_LEN(command_builtins); i++) {
        zsh_describe(command_builtins[i].name, command_builtins[i].summary, out);
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
            const struct option *o = &(*c)->options.options[i];
            zsh_option(o, o->name, out);
            if (o->also != NULL) {
                zsh_option(o, o->also, out);
            }
        }
        buf_printf(out, "        '--help[print its help]'%s ;;\n",
                   takes_files(*c)       ? " '*:file:_files'"
                   : (*c)->names != NULL ? " '*: :_drydock_names'"
                                         : "");
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
    const char *names[] = { o->name, o->also };
    buf_printf(out, "complete -c drydock -n '__fish_seen_subcommand_from %s'", c->name);
    for (size_t i = 0; i < ARRAY_LEN(names) && names[i] != NULL; i++) {
        buf_printf(out, " -%c %s", names[i][1] == '\0' ? 's' : 'l', names[i]);
    }
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
    for (size_t i = 0; i < ARRAY_LEN(command_builtins); i++) {
        fish_command(command_builtins[i].name, command_builtins[i].summary, out);
    }
    EACH_COMMAND(list, c)
    {
        for (uint32_t i = 0; i < (*c)->options.count; i++) {
            fish_option(*c, &(*c)->options.options[i], out);
        }
        if (takes_files(*c)) {
            buf_printf(out, "complete -c drydock -n '__fish_seen_subcommand_from %s' -F\n",
                       (*c)->name);
        } else if ((*c)->names != NULL) {
            buf_printf(out,
                       "complete -c drydock -n '__fish_seen_subcommand_from %s' -a "
                       "'(drydock " COMPLETION_COMMAND
                       " (commandline -opc)[2..] (commandline -ct) 2>/dev/null "
                       "| string match -v \":*\")'\n",
                       (*c)->name);
        }
    }
    buf_add(out, STR("complete -c drydock -n '__fish_seen_subcommand_from completion' -a '"));
    add_words(COMPLETION_SHELLS, out);
    buf_add(out, STR("'\ncomplete -c drydock -n '__fish_seen_subcommand_from help' -a '"));
    bash_names(list, out);
    buf_add(out, STR("'\n"));
}

static const struct {
    const char *name;
    void (*print)(const struct command_list *list, struct buf *out);
} shells[] = {
    { "bash", bash_print },
    { "zsh", zsh_print },
    { "fish", fish_print },
};

bool completion_knows(struct str shell)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (str_eq(shell, str_from(shells[i].name))) {
            return true;
        }
    }
    return false;
}

void completion_print(const struct command_list *list, struct str shell, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (str_eq(shell, str_from(shells[i].name))) {
            shells[i].print(list, out);
        }
    }
}
