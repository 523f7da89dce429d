/* Which words may stand at a place of a command line, for a shell that asks. */
#include "cmd/completion.h"

#include "cmd/completion_names.h"

#include <stdio.h>

#define COMPLETION_MAX                                                                             \
    ((size_t)4 * 1024 * 1024) /* the names of a large fleet have some 200 KiB                      \
                               */
#define NO_FILES 4            /* cobra.ShellCompDirectiveNoFileComp */
#define FILES 0               /* cobra.ShellCompDirectiveDefault */

static void add_word(struct str word, const char *meaning, struct str prefix, struct buf *out)
{
    if (str_starts(word, prefix)) {
        buf_add(out, word);
        if (meaning != NULL) {
            buf_printf(out, "\t%s", meaning);
        }
        buf_add_char(out, '\n');
    }
}

static void add_choices(const char *choices, struct str prefix, struct buf *out)
{
    struct str rest = str_from(choices);
    struct str piece;
    while (str_split_next(&rest, '|', &piece)) {
        add_word(piece, NULL, prefix, out);
    }
}

static void add_commands(const struct command_list *list, bool builtins, struct str prefix,
                         struct buf *out)
{
    for (const struct command *const *c = list->items; *c != NULL; c++) {
        add_word(str_from((*c)->name), (*c)->summary, prefix, out);
    }
    for (size_t i = 0; builtins && i < COMMAND_BUILTIN_COUNT; i++) {
        add_word(str_from(command_builtins[i].name), command_builtins[i].summary, prefix, out);
    }
}

static void add_flags(const struct command *c, struct str prefix, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t i = 0; i < c->options.count; i++) {
        const struct option *o = &c->options.options[i];
        const char *names[] = { o->name, o->also };
        for (size_t k = 0; k < ARRAY_LEN(names) && names[k] != NULL; k++) {
            struct str word = arena_printf(&tmp, "%s%s", option_dashes(names[k]), names[k]);
            add_word(word, o->help, prefix, out);
        }
    }
    add_word(STR("--help"), "print its help", prefix, out);
}

/* The flag whose value the next word is; NULL: the word before is none. */
static const struct option *flag_before(const struct command *c, struct str word)
{
    struct str name = word;
    if (!str_cut_prefix(word, STR("--"), &name) && !str_cut_prefix(word, STR("-"), &name)) {
        return NULL;
    }
    const struct option *o = options_find(&c->options, name);
    return o != NULL && o->kind != OPTION_BOOL ? o : NULL;
}

/* Arguments: what is before the last word is parsed as the command would. */
static int add_arguments(const struct command_list *list, const struct command *c,
                         char *const *words, uint32_t n, completion_source source, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct option_args args = { 0 };
    char **before = ARENA_ARRAY(&memory, char *, n);
    for (uint32_t i = 1; i + 1 < n; i++) {
        before[i - 1] = words[i];
    }
    void *config = arena_alloc(&memory, MAX(c->config_size, (size_t)1));
    if (options_parse(&c->options, before, &memory, config, &args, &err) < 0) {
        return NO_FILES; /* a line that is wrong already */
    }
    const struct command_call call = {
        .command = c,
        .program = "drydock",
        .list = list,
        .config = config,
        .args = args.items,
        .arg_count = args.count,
        .before_dashes = args.before_dashes,
        .memory = &memory,
    };
    unsigned names = c->names != NULL && args.count < c->args_max ? c->names(&call) : 0;
    struct str prefix = str_from(words[n - 1]);
    if ((names & COMMAND_NAMES_KINDS) != 0) {
        add_choices(COMPLETION_KINDS, prefix, out);
    }
    if (names != 0) {
        source(&call, names, prefix, out);
    }
    bool files = c->args != NULL &&
                 (str_contains(str_from(c->args), STR("FILE")) || args.before_dashes != UINT32_MAX);
    return names == 0 && files ? FILES : NO_FILES;
}

static int add_words_of(const struct command_list *list, char *const *words, uint32_t n,
                        completion_source source, struct buf *out)
{
    struct str first = str_from(words[0]);
    struct str last = str_from(words[n - 1]);
    const struct command *c = command_find(list, first);
    if (c == NULL && n == 2) {
        if (str_eq(first, STR("completion"))) {
            add_choices(COMPLETION_SHELLS, last, out);
        } else if (str_eq(first, STR("help"))) {
            add_commands(list, /* builtins= */ false, last, out);
        }
    }
    if (c == NULL) {
        return NO_FILES;
    }
    const struct option *o = n > 2 ? flag_before(c, str_from(words[n - 2])) : NULL;
    if (o != NULL) {
        if (o->kind == OPTION_CHOICE) {
            add_choices(o->choices, last, out);
        }
        return o->kind == OPTION_FILE ? FILES : NO_FILES;
    }
    if (str_starts(last, STR("-"))) {
        add_flags(c, last, out);
        return NO_FILES;
    }
    return add_arguments(list, c, words, n, source, out);
}

void completion_words(const struct command_list *list, char *const *words, completion_source source,
                      struct buf *out)
{
    uint32_t n = 0;
    int directive = NO_FILES;
    while (words[n] != NULL) {
        n++;
    }
    if (n <= 1) {
        add_commands(list, /* builtins= */ true, n == 0 ? STR_NONE : str_from(words[0]), out);
    } else {
        directive = add_words_of(list, words, n, source, out);
    }
    buf_printf(out, ":%d\n", directive);
}

int completion_answer(const struct command_list *list, char *const *words)
{
    CLEANUP(buf_done)
    struct buf out = { .max = COMPLETION_MAX };
    completion_words(list, words, completion_names_add, &out);
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the shell's business */
    return COMMAND_OK;
}
