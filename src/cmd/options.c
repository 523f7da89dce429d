#include "cmd/options.h"

#include "base/closest.h"
#include "base/duration.h"

#define OPTIONS_HELP_COLUMN 30u /* where explanations start */

const char *option_dashes(const char *name)
{
    return name[1] == '\0' ? "-" : "--";
}

const struct option *options_find(const struct option_table *table, struct str name)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct option *o = &table->options[i];
        if (str_eq(str_from(o->name), name) ||
            (o->also != NULL && str_eq(str_from(o->also), name))) {
            return o;
        }
    }
    return NULL;
}

/* What strconv.ParseBool takes. */
static bool option_truth(struct str text, bool *ret)
{
    static const struct {
        const char *text;
        bool truth;
    } words[] = {
        { "1", true },    { "t", true },      { "T", true },      { "true", true },
        { "TRUE", true }, { "True", true },   { "0", false },     { "f", false },
        { "F", false },   { "false", false }, { "FALSE", false }, { "False", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(text, str_from(words[i].text))) {
            *ret = words[i].truth;
            return true;
        }
    }
    return false;
}

static bool option_is_choice(const struct option *o, struct str text)
{
    struct str rest = str_from(o->choices);
    struct str piece;
    while (str_split_next(&rest, '|', &piece)) {
        if (str_eq(piece, text)) {
            return true;
        }
    }
    return false;
}

static bool option_i32(struct str text, int32_t *ret)
{
    int64_t n;
    if (!str_to_i64(text, &n) || n < INT32_MIN || n > INT32_MAX) {
        return false;
    }
    *ret = (int32_t)n;
    return true;
}

static int option_store(const struct option *o, struct str text, void *config, struct err *err)
{
    void *at = (char *)config + o->offset;
    const char *want = NULL;
    switch (o->kind) {
    case OPTION_TEXT:
    case OPTION_FILE:
        *(struct str *)at = text;
        break;
    case OPTION_CHOICE:
        if (!option_is_choice(o, text)) {
            return err_set(err, ERR_INVALID, "flag '%s%s': found '" STR_FMT "', want one of %s",
                           option_dashes(o->name), o->name, STR_ARG(text), o->choices);
        }
        *(struct str *)at = text;
        break;
    case OPTION_BOOL:
        want = option_truth(text, at) ? NULL : "true or false";
        break;
    case OPTION_I32:
        want = option_i32(text, at) ? NULL : "a whole number";
        break;
    case OPTION_U32:
        want = str_to_u32(text, at) ? NULL : "a whole number";
        break;
    case OPTION_U64:
        want = str_to_u64(text, at) ? NULL : "a whole number";
        break;
    case OPTION_F64:
        want = str_to_f64(text, at) ? NULL : "a number";
        break;
    case OPTION_DURATION: {
        int64_t ns;
        struct err why = { 0 };
        if (duration_parse(text, &ns, &why) == 0) {
            *(usec_t *)at = ns / 1000;
        } else {
            want = "a duration such as 1h30m or 200ms";
        }
        break;
    }
    }
    if (want != NULL) {
        return err_set(err, ERR_INVALID, "flag '%s%s': found '" STR_FMT "', want %s",
                       option_dashes(o->name), o->name, STR_ARG(text), want);
    }
    return 0;
}

static void options_fill(const struct option_table *table, void *config)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct option *o = &table->options[i];
        struct err err = { 0 };
        if (o->initial != NULL && o->initial[0] != '\0') {
            int r = option_store(o, str_from(o->initial), config, &err);
            ASSERT(r == 0); /* a default that its own kind refuses is a mistake in the table */
        }
    }
}

/* The flag that was mistyped; STR_NONE: no flag is near. */
static struct str options_closest(const struct option_table *table, struct str name)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str *names = ARENA_ARRAY(&tmp, struct str, (size_t)table->count * 2 + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        names[n++] = str_from(table->options[i].name);
        if (table->options[i].also != NULL) {
            names[n++] = str_from(table->options[i].also);
        }
    }
    return closest_find(name, names, n); /* the names are the table's own */
}

/* "-ojson": a flag of one letter with its value behind it, as kubectl takes it. */
static const struct option *options_find_joined(const struct option_table *table, struct str word,
                                                struct str *ret_value)
{
    if (word.n < 3 || word.p[1] == '-') {
        return NULL;
    }
    const struct option *o = options_find(table, str_sub(word, 1, 1));
    if (o == NULL || o->kind == OPTION_BOOL) {
        return NULL;
    }
    *ret_value = str_sub(word, 2, word.n - 2);
    return o;
}

/* One flag at `*argv`; moves on to its value where that is the next word. */
static int options_take(const struct option_table *table, char *const **argv, void *config,
                        struct err *err)
{
    struct str word = str_from(**argv);
    struct str name = word;
    if (!str_cut_prefix(word, STR("--"), &name)) {
        (void)str_cut_prefix(word, STR("-"), &name);
    }
    struct str value;
    bool joined = str_cut(name, STR("="), &name, &value);
    if (name.n == 0 || name.p[0] == '-') {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is no flag", STR_ARG(word));
    }
    const struct option *o = options_find(table, name);
    if (o == NULL) {
        struct str near = options_closest(table, name);
        o = near.n == 0 ? options_find_joined(table, word, &value) : NULL;
        if (o == NULL) {
            return err_set(err, ERR_INVALID, "unknown flag '--" STR_FMT "'%s" STR_FMT "%s",
                           STR_ARG(name), near.n > 0 ? ", did you mean '--" : "", STR_ARG(near),
                           near.n > 0 ? "'?" : "");
        }
        joined = true;
    }
    if (!joined && o->kind == OPTION_BOOL) {
        value = STR("true");
    } else if (!joined) {
        if ((*argv)[1] == NULL) {
            return err_set(err, ERR_INVALID, "flag '%s%s' needs a value: %s",
                           option_dashes(o->name), o->name,
                           o->kind == OPTION_CHOICE ? o->choices : o->value);
        }
        (*argv)++;
        value = str_from(**argv);
    }
    return option_store(o, value, config, err);
}

static bool options_asks_help(const struct option_table *table, struct str word)
{
    static const char *const words[] = { "-h", "--h", "-help", "--help" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(word, str_from(words[i]))) {
            struct str name = word;
            while (str_cut_prefix(name, STR("-"), &name)) {
            }
            return options_find(table, name) == NULL;
        }
    }
    return false;
}

int options_parse(const struct option_table *table, char *const *argv, struct arena *out,
                  void *config, struct option_args *ret, struct err *err)
{
    options_fill(table, config);
    uint32_t words = 0;
    while (argv[words] != NULL) {
        words++;
    }
    struct option_args args = { .items = ARENA_ARRAY(out, struct str, words + 1),
                                .before_dashes = UINT32_MAX };
    bool flags = true;
    for (; *argv != NULL; argv++) {
        struct str word = str_from(*argv);
        if (flags && str_eq(word, STR("--"))) {
            flags = false;
            args.before_dashes = args.count;
        } else if (flags && options_asks_help(table, word)) {
            args.help = true;
            break;
        } else if (flags && word.n > 1 && word.p[0] == '-') {
            int r = options_take(table, &argv, config, err);
            if (r < 0) {
                return r;
            }
        } else {
            args.items[args.count++] = word;
        }
    }
    *ret = args;
    return 0;
}

/* Columns a text takes: characters, as our own texts are UTF-8 without wide or combining ones. */
static uint32_t options_width(struct str s)
{
    uint32_t width = 0;
    for (size_t i = 0; i < s.n; i++) {
        width += ((unsigned char)s.p[i] & 0xc0u) != 0x80u;
    }
    return width;
}

static void options_pad(struct buf *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_add_char(out, ' ');
    }
}

/* One paragraph; the first line starts at `at`, where the cursor stands, later ones at `indent`. */
static void options_flow(struct str text, uint32_t at, uint32_t indent, struct buf *out)
{
    struct str word;
    bool first = true;
    while (str_split_next(&text, ' ', &word)) {
        uint32_t width = options_width(word);
        if (!first && at + 1 + width > OPTIONS_COLUMNS) {
            buf_add_char(out, '\n');
            options_pad(out, indent);
            at = indent;
        } else if (!first) {
            buf_add_char(out, ' ');
            at++;
        }
        buf_add(out, word);
        at += width;
        first = false;
    }
    buf_add_char(out, '\n');
}

void options_wrap(struct str text, uint32_t indent, struct buf *out)
{
    struct str line;
    while (str_split_next(&text, '\n', &line)) {
        if (line.n > 0) {
            options_pad(out, indent);
        }
        options_flow(line, indent, indent, out);
    }
}

void options_help(const struct option_table *table, struct buf *out)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct option *o = &table->options[i];
        CLEANUP(buf_done)
        struct buf left = { .max = 200 };
        CLEANUP(buf_done)
        struct buf right = { .max = 1000 };
        buf_printf(&left, "  %s%s", option_dashes(o->name), o->name);
        if (o->also != NULL) {
            buf_printf(&left, ", %s%s", option_dashes(o->also), o->also);
        }
        if (o->kind != OPTION_BOOL) {
            buf_printf(&left, " %s", o->kind == OPTION_CHOICE ? o->choices : o->value);
        }
        buf_printf(&right, "%s", o->help);
        if (o->initial != NULL && o->initial[0] != '\0') {
            buf_printf(&right, " (default %s)", o->initial);
        }
        buf_add(out, buf_str(&left));
        uint32_t width = options_width(buf_str(&left));
        if (width + 2 > OPTIONS_HELP_COLUMN) {
            buf_add_char(out, '\n');
            width = 0;
        }
        options_pad(out, OPTIONS_HELP_COLUMN - width);
        options_flow(buf_str(&right), OPTIONS_HELP_COLUMN, OPTIONS_HELP_COLUMN, out);
    }
}
