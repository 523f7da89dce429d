#include "agent/setting_edit.h"

#include "agent/text_edit.h"
#include "base/buf.h"

const char *const setting_format_names[SETTING_FORMATS] = {
    [SETTING_INI] = "ini",
    [SETTING_ENV] = "env",
    [SETTING_KV] = "kv",
    [SETTING_SSHD] = "sshd",
};

/* ── lines ─────────────────────────────────────────────────────────────────────────────────── */

enum line_kind { LINE_OTHER, LINE_SECTION, LINE_ENTRY };

struct setting_line {
    enum line_kind kind;
    struct str name;  /* of the section or the key */
    struct str value; /* as it is written, without spaces around it; part of the line */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Without spaces, and without the carriage return that some files have. */
static struct str trim(struct str s)
{
    return str_trim(s);
}

static struct setting_line read_entry(struct str line, struct str separator)
{
    struct setting_line ret = { .kind = LINE_OTHER };
    struct str name;
    struct str value;
    if (str_cut(line, separator, &name, &value) && trim(name).n > 0) {
        ret = (struct setting_line){ .kind = LINE_ENTRY, .name = trim(name), .value = trim(value) };
    }
    return ret;
}

/* "Keyword value" and "Keyword=value": what divides is any run of spaces with at most one '='. */
static struct setting_line read_sshd(struct str line)
{
    size_t i = 0;
    while (i < line.n && !is_space(line.p[i]) && line.p[i] != '=') {
        i++;
    }
    struct str name = str_sub(line, 0, i);
    bool equals = false;
    while (i < line.n && (is_space(line.p[i]) || (line.p[i] == '=' && !equals))) {
        equals = equals || line.p[i] == '=';
        i++;
    }
    struct str value = trim(str_sub(line, i, line.n - i));
    if (str_eq_fold(name, STR("Match"))) {
        return (struct setting_line){ .kind = LINE_SECTION, .name = value };
    }
    return (struct setting_line){ .kind = name.n > 0 ? LINE_ENTRY : LINE_OTHER,
                                  .name = name,
                                  .value = value };
}

static struct setting_line read_line(const struct setting_key *key, struct str raw)
{
    struct str line = trim(raw);
    if (line.n == 0 || line.p[0] == '#' || (line.p[0] == ';' && key->format == SETTING_INI)) {
        return (struct setting_line){ .kind = LINE_OTHER };
    }
    if (key->format == SETTING_INI && line.p[0] == '[') {
        size_t end = str_find_char(line, ']');
        return (struct setting_line){ .kind = end != SIZE_MAX ? LINE_SECTION : LINE_OTHER,
                                      .name = str_sub(line, 1, end == SIZE_MAX ? 0 : end - 1) };
    }
    switch (key->format) {
    case SETTING_SSHD:
        return read_sshd(line);
    case SETTING_ENV: {
        struct str rest;
        struct setting_line entry =
            read_entry(str_cut_prefix(line, STR("export "), &rest) ? rest : line, STR("="));
        return entry;
    }
    case SETTING_KV: {
        /* A separator of spaces divides at any run of them; others may have spaces around. */
        struct str sep = trim(key->separator);
        if (sep.n > 0) {
            return read_entry(line, sep);
        }
        size_t i = 0;
        while (i < line.n && !is_space(line.p[i])) {
            i++;
        }
        return (struct setting_line){ .kind = LINE_ENTRY,
                                      .name = str_sub(line, 0, i),
                                      .value = trim(str_sub(line, i, line.n - i)) };
    }
    default:
        return read_entry(line, STR("="));
    }
}

static bool same_name(const struct setting_key *key, struct str name)
{
    return key->format == SETTING_SSHD ? str_eq_fold(name, key->name) : str_eq(name, key->name);
}

/* ── values ────────────────────────────────────────────────────────────────────────────────── */

static bool is_plain(struct str value)
{
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || strchr("_./:@%+,=-", c) == NULL)) {
            return false;
        }
    }
    return value.n > 0;
}

static struct str env_quote(struct str value, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    if (is_plain(value)) {
        return value;
    }
    buf_add_char(&text, '"');
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] != '\0' && strchr("\"\\$`", value.p[i]) != NULL) {
            buf_add_char(&text, '\\');
        }
        buf_add_char(&text, value.p[i]);
    }
    buf_add_char(&text, '"');
    return arena_str(out, buf_str(&text));
}

/* One pair of quotes around the whole is taken away; anything else is taken as it is. */
static struct str env_unquote(struct str value, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    char quote = value.n >= 2 ? value.p[0] : '\0';
    if ((quote != '"' && quote != '\'') || value.p[value.n - 1] != quote) {
        return value;
    }
    for (size_t i = 1; i + 1 < value.n; i++) {
        if (quote == '"' && value.p[i] == '\\' && i + 2 < value.n && value.p[i + 1] != '\0' &&
            strchr("\"\\$`", value.p[i + 1]) != NULL) {
            i++;
        } else if (value.p[i] == quote) {
            return value; /* it ends before: no value that we would write */
        }
        buf_add_char(&text, value.p[i]);
    }
    return arena_str(out, buf_str(&text));
}

static struct str encode(const struct setting_key *key, struct str value, struct arena *out)
{
    return key->format == SETTING_ENV ? env_quote(value, out) : value;
}

static struct str decode(const struct setting_key *key, struct str value, struct arena *out)
{
    return key->format == SETTING_ENV ? env_unquote(value, out) : value;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') {
            return true;
        }
    }
    return false;
}

int setting_check(const struct setting_key *key, struct str value, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (key->name.n == 0 || has_control(key->name) || has_control(key->section)) {
        return err_set(err, ERR_INVALID, "field 'key': want names without control characters");
    }
    if (has_control(value) || (key->format != SETTING_ENV && trim(value).n != value.n)) {
        return err_set(err, ERR_INVALID, "field 'value': want one line without spaces at its ends");
    }
    /* What is written must be read as what was meant. */
    struct str line = arena_printf(&tmp, STR_FMT STR_FMT STR_FMT, STR_ARG(key->name),
                                   STR_ARG(key->separator), STR_ARG(encode(key, value, &tmp)));
    struct setting_line read = read_line(key, line);
    struct str section = arena_printf(&tmp, "[" STR_FMT "]", STR_ARG(key->section));
    bool good = read.kind == LINE_ENTRY && same_name(key, read.name) &&
                str_eq(decode(key, read.value, &tmp), value) && !str_ends(read.value, STR("\\"));
    if (good && key->section.n > 0) {
        read = read_line(key, section);
        good = read.kind == LINE_SECTION && str_eq(read.name, key->section);
    }
    return good
               ? 0
               : err_set(err, ERR_INVALID,
                         "fields 'key' and 'value': '" STR_FMT "' would not be read as it is meant",
                         STR_ARG(str_sub(line, 0, 128)));
}

/* ── the file ──────────────────────────────────────────────────────────────────────────────── */

#define NO_LINE UINT32_MAX

struct setting_places {
    uint32_t entry; /* the one that counts */
    uint32_t
        section_end; /* behind the last line of the section that is not blank; NO_LINE = none */
    uint32_t n;
    struct str value; /* of the entry */
    bool continued;   /* the entry goes on on the next line */
};

static struct setting_places find_places(const struct setting_key *key, struct str text)
{
    struct setting_places ret = { .entry = NO_LINE, .section_end = NO_LINE };
    bool inside = key->section.n == 0;
    bool first_counts = key->format == SETTING_SSHD;
    struct str raw;
    if (inside) {
        ret.section_end = 0;
    }
    for (; text_next_line(&text, &raw); ret.n++) {
        struct setting_line line = read_line(key, raw);
        if (line.kind == LINE_SECTION) {
            inside =
                key->format == SETTING_INI && key->section.n > 0 && str_eq(line.name, key->section);
        }
        if (inside && trim(raw).n > 0) {
            ret.section_end = ret.n + 1;
        }
        bool hit = inside && line.kind == LINE_ENTRY && same_name(key, line.name);
        if (hit && (ret.entry == NO_LINE || !first_counts)) {
            ret.entry = ret.n;
            ret.value = line.value;
            ret.continued = str_ends(line.value, STR("\\"));
        }
    }
    return ret;
}

bool setting_find(const struct setting_key *key, struct str text, struct arena *out,
                  struct str *ret)
{
    struct setting_places places = find_places(key, text);
    if (places.entry == NO_LINE) {
        return false;
    }
    *ret = decode(key, places.value, out);
    return true;
}

static void add_entry(const struct setting_key *key, struct str value, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    text_add_line(out, arena_printf(&tmp, STR_FMT STR_FMT STR_FMT, STR_ARG(key->name),
                                    STR_ARG(key->separator), STR_ARG(value)));
}

/* A raw line with another value: what stands before and behind it stays. */
static void add_changed(const struct setting_key *key, const struct setting_line *line,
                        struct str raw, struct str value, struct buf *out)
{
    if (line->value.n == 0) {
        /* Nothing marks the place of the old one: the line is written anew. */
        add_entry(key, value, out);
        return;
    }
    size_t at = (size_t)(line->value.p - raw.p);
    buf_add(out, str_sub(raw, 0, at));
    buf_add(out, value);
    buf_add(out, str_sub(raw, at + line->value.n, raw.n - at - line->value.n));
}

static void put(const struct setting_key *key, const struct setting_places *places,
                struct str value, struct str text, struct buf *out)
{
    bool change = places->entry != NO_LINE;
    struct str raw;
    uint32_t i = 0;
    for (; text_next_line(&text, &raw); i++) {
        struct setting_line line = read_line(key, raw);
        if (!change && i == places->section_end) {
            add_entry(key, value, out);
        }
        if (change && i == places->entry) {
            add_changed(key, &line, raw, value, out);
        } else {
            buf_add(out, raw);
        }
    }
    if (!change && places->section_end == NO_LINE) {
        struct str blank = out->n > 0 ? STR("\n") : STR("");
        if (out->n > 0 && out->p[out->n - 1] != '\n') {
            buf_add_char(out, '\n');
        }
        buf_printf(out, STR_FMT "[" STR_FMT "]\n", STR_ARG(blank), STR_ARG(key->section));
        add_entry(key, value, out);
    } else if (!change && places->section_end == i) {
        add_entry(key, value, out);
    }
}

static int refuse_continued(const struct setting_places *places, struct err *err)
{
    return places->continued
               ? err_set(err, ERR_INVALID,
                         "line %u: its value goes on on the next line, which is not supported",
                         places->entry + 1)
               : 0;
}

int setting_set(const struct setting_key *key, struct str value, struct str text, struct arena *out,
                struct str *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    struct setting_places places = find_places(key, text);
    int r = refuse_continued(&places, err);
    if (r < 0) {
        return r;
    }
    if (places.entry != NO_LINE && str_eq(decode(key, places.value, out), value)) {
        *ret = text;
        return 0;
    }
    put(key, &places, encode(key, value, out), text, &edited);
    *ret = arena_str(out, buf_str(&edited));
    return 0;
}

int setting_remove(const struct setting_key *key, struct str text, struct arena *out,
                   struct str *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    struct setting_places places = find_places(key, text);
    bool inside = key->section.n == 0;
    struct str raw;
    int r = refuse_continued(&places, err);
    if (r < 0) {
        return r;
    }
    while (text_next_line(&text, &raw)) {
        struct setting_line line = read_line(key, raw);
        if (line.kind == LINE_SECTION) {
            inside =
                key->format == SETTING_INI && key->section.n > 0 && str_eq(line.name, key->section);
        }
        if (!inside || line.kind != LINE_ENTRY || !same_name(key, line.name)) {
            buf_add(&edited, raw);
        }
    }
    *ret = arena_str(out, buf_str(&edited));
    return 0;
}
