#include "cmd/options.h"

#include "base/duration.h"

#define OPTIONS_HELP_COLUMN 30u /* where explanations start */

static const struct option *options_find(const struct option_table *table, struct str name)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (str_eq(str_from(table->options[i].name), name)) {
            return &table->options[i];
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
            return err_set(err, ERR_INVALID, "flag '--%s': found '" STR_FMT "', want one of %s",
                           o->name, STR_ARG(text), o->choices);
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
        return err_set(err, ERR_INVALID, "flag '--%s': found '" STR_FMT "', want %s", o->name,
                       STR_ARG(text), want);
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

/* How many letters must change to make `a` of `b`, or more than `limit`. */
static uint32_t option_distance(struct str a, struct str b, uint32_t limit)
{
    uint32_t row[64];
    if (a.n >= ARRAY_LEN(row) || b.n >= ARRAY_LEN(row)) {
        return limit + 1;
    }
    for (uint32_t j = 0; j <= b.n; j++) {
        row[j] = j;
    }
    for (uint32_t i = 1; i <= a.n; i++) {
        uint32_t corner = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b.n; j++) {
            uint32_t changed = corner + (a.p[i - 1] == b.p[j - 1] ? 0u : 1u);
            uint32_t moved = MIN(row[j], row[j - 1]) + 1;
            corner = row[j];
            row[j] = MIN(changed, moved);
        }
    }
    return row[b.n];
}

static int options_unknown(const struct option_table *table, struct str name, struct err *err)
{
    const struct option *near = NULL;
    uint32_t nearest = 3; /* further away it is another word, not a slip */
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t far = option_distance(name, str_from(table->options[i].name), nearest);
        if (far < nearest) {
            nearest = far;
            near = &table->options[i];
        }
    }
    if (near != NULL) {
        return err_set(err, ERR_INVALID, "unknown flag '--" STR_FMT "', did you mean '--%s'?",
                       STR_ARG(name), near->name);
    }
    return err_set(err, ERR_INVALID, "unknown flag '--" STR_FMT "'", STR_ARG(name));
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
        return options_unknown(table, name, err);
    }
    if (!joined && o->kind == OPTION_BOOL) {
        value = STR("true");
    } else if (!joined) {
        if ((*argv)[1] == NULL) {
            return err_set(err, ERR_INVALID, "flag '--%s' needs a value: %s", o->name, o->value);
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
    struct option_args args = { .items = ARENA_ARRAY(out, struct str, words + 1) };
    bool flags = true;
    for (; *argv != NULL; argv++) {
        struct str word = str_from(*argv);
        if (flags && str_eq(word, STR("--"))) {
            flags = false;
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
        buf_printf(&left, "  --%s", o->name);
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
