#include "agent/fstab.h"

#include "agent/text_edit.h"
#include "base/buf.h"

bool fstab_next_word(struct str *rest, struct str *ret)
{
    struct str s = str_trim(*rest);
    size_t i = 0;
    while (i < s.n && s.p[i] != ' ' && s.p[i] != '\t') {
        i++;
    }
    *ret = str_sub(s, 0, i);
    *rest = str_sub(s, i, s.n - i);
    return i > 0;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

struct str fstab_unescape(struct str word, struct arena *out)
{
    if (str_find_char(word, '\\') == SIZE_MAX) {
        return word;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (size_t i = 0; i < word.n; i++) {
        const char *p = word.p + i;
        if (p[0] == '\\' && i + 3 < word.n && is_octal(p[1]) && is_octal(p[2]) && is_octal(p[3])) {
            buf_add_char(&text, (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0')));
            i += 3;
        } else {
            buf_add_char(&text, p[0]);
        }
    }
    return arena_str(out, buf_str(&text));
}

static void add_escaped(struct str word, struct buf *out)
{
    for (size_t i = 0; i < word.n; i++) {
        unsigned char c = (unsigned char)word.p[i];
        if (c <= ' ' || c == '\\' || (c == '#' && i == 0)) {
            buf_printf(out, "\\%03o", c);
        } else {
            buf_add_char(out, word.p[i]);
        }
    }
}

static bool read_entry(struct str raw, struct arena *out, struct fstab_entry *ret)
{
    struct fstab_entry entry = { .raw = raw };
    struct str rest = text_chomp(raw);
    struct str words[4] = { 0 };
    uint32_t n = 0;
    while (n < ARRAY_LEN(words) && fstab_next_word(&rest, &words[n])) {
        n++;
    }
    if (n < 3 || words[0].p[0] == '#') {
        return false;
    }
    entry.device = fstab_unescape(words[0], out);
    entry.path = fstab_unescape(words[1], out);
    entry.type = fstab_unescape(words[2], out);
    entry.options = n > 3 ? fstab_unescape(words[3], out) : STR("defaults");
    *ret = entry;
    return true;
}

bool fstab_next(struct str *rest, struct arena *out, struct fstab_entry *ret)
{
    struct str raw;
    while (text_next_line(rest, &raw)) {
        if (read_entry(raw, out, ret)) {
            return true;
        }
    }
    return false;
}

static bool is_meant(const struct fstab_key *key, const struct fstab_entry *entry)
{
    bool swap = str_eq(entry->type, STR("swap"));
    return key->swap ? swap && (key->device.n == 0 || str_eq(key->device, entry->device))
                     : !swap && str_eq(key->path, entry->path);
}

bool fstab_find(const struct fstab_key *key, struct str text, struct arena *out,
                struct fstab_entry *ret)
{
    struct fstab_entry entry;
    while (fstab_next(&text, out, &entry)) {
        if (is_meant(key, &entry)) {
            *ret = entry;
            return true;
        }
    }
    return false;
}

struct str fstab_lines(const struct fstab_key *key, struct str text, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf lines = { 0 };
    struct fstab_entry entry;
    while (fstab_next(&text, out, &entry)) {
        if (is_meant(key, &entry)) {
            text_add_line(&lines, text_chomp(entry.raw));
        }
    }
    return arena_str(out, buf_str(&lines));
}

static struct str print_entry(const struct fstab_entry *entry, struct arena *out)
{
    const struct str words[] = { entry->device, entry->path, entry->type, entry->options };
    CLEANUP(buf_done)
    struct buf line = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        add_escaped(words[i], &line);
        buf_add_char(&line, ' ');
    }
    buf_add(&line, STR("0 0"));
    return arena_str(out, buf_str(&line));
}

static bool says_the_same(const struct fstab_entry *a, const struct fstab_entry *b)
{
    return str_eq(a->device, b->device) && str_eq(a->path, b->path) && str_eq(a->type, b->type) &&
           str_eq(a->options, b->options);
}

/* `lines` take the place of the first that is meant, or stand at the end. */
static void replace(const struct fstab_key *key, const struct fstab_entry *entry, struct str lines,
                    struct str text, struct arena *tmp, struct buf *out)
{
    struct str raw;
    bool placed = lines.n == 0;
    while (text_next_line(&text, &raw)) {
        struct fstab_entry found;
        if (!read_entry(raw, tmp, &found) || !is_meant(key, &found)) {
            buf_add(out, raw);
        } else if (!placed && entry != NULL && says_the_same(entry, &found)) {
            buf_add(out, raw);
            placed = true;
        } else if (!placed) {
            text_add_line(out, text_chomp(lines));
            placed = true;
        }
    }
    if (!placed) {
        text_add_line(out, text_chomp(lines));
    }
}

struct str fstab_edit(const struct fstab_key *key, const struct fstab_entry *entry, struct str text,
                      struct arena *out)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    replace(key, entry, entry != NULL ? print_entry(entry, out) : STR(""), text, out, &edited);
    return arena_str(out, buf_str(&edited));
}

struct str fstab_restore(const struct fstab_key *key, struct str lines, struct str text,
                         struct arena *out)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    replace(key, NULL, lines, text, out, &edited);
    return arena_str(out, buf_str(&edited));
}
