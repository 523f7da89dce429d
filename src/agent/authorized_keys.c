#include "agent/authorized_keys.h"

#include "agent/text_edit.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/map.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static struct str skip_spaces(struct str s)
{
    size_t i = 0;
    while (i < s.n && is_space(s.p[i])) {
        i++;
    }
    return str_sub(s, i, s.n - i);
}

/* Up to the next space that is not in quotes, as sshd reads options. */
static struct str take_word(struct str *rest)
{
    bool quoted = false;
    size_t i = 0;
    for (; i < rest->n && (quoted || !is_space(rest->p[i])); i++) {
        if (rest->p[i] == '\\' && i + 1 < rest->n && rest->p[i + 1] == '"') {
            i++;
        } else if (rest->p[i] == '"') {
            quoted = !quoted;
        }
    }
    i = MIN(i, rest->n);
    struct str word = str_sub(*rest, 0, i);
    *rest = skip_spaces(str_sub(*rest, i, rest->n - i));
    return word;
}

static bool is_type(struct str word)
{
    static const struct str prefixes[] = {
        STR_INIT("ssh-"),
        STR_INIT("ecdsa-sha2-"),
        STR_INIT("sk-ssh-"),
        STR_INIT("sk-ecdsa-sha2-"),
    };
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (word.n > prefixes[i].n && str_starts(word, prefixes[i])) {
            return true;
        }
    }
    return false;
}

bool authorized_key_read(struct str line, struct authorized_key *ret)
{
    struct authorized_key key = { 0 };
    struct str rest = str_trim(line);
    if (rest.n == 0 || rest.p[0] == '#') {
        return false;
    }
    key.type = take_word(&rest);
    if (!is_type(key.type)) {
        key.options = key.type;
        key.type = take_word(&rest);
    }
    key.blob = take_word(&rest);
    key.comment = rest;
    if (!is_type(key.type) || key.blob.n == 0) {
        return false;
    }
    *ret = key;
    return true;
}

/* The key begins with the length and the name of its type: a cut or mixed up one does not. */
static bool blob_is_good(const struct authorized_key *key, struct arena *tmp)
{
    struct str bytes;
    if (!base64_decode(key->blob, tmp, &bytes) || bytes.n < 5 + key->type.n) {
        return false;
    }
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t n = ((size_t)p[0] << 24) | ((size_t)p[1] << 16) | ((size_t)p[2] << 8) | p[3];
    return n == key->type.n && str_eq(str_sub(bytes, 4, n), key->type);
}

int authorized_key_parse(struct str text, struct arena *tmp, struct authorized_key *ret,
                         struct err *err)
{
    struct authorized_key key;
    if (str_find_char(text, '\n') != SIZE_MAX || str_find_char(text, '\0') != SIZE_MAX ||
        !authorized_key_read(text, &key) || key.options.n > 0 || !blob_is_good(&key, tmp)) {
        return err_set(err, ERR_INVALID,
                       "found '" STR_FMT "', want one line as ssh-keygen prints it: the type, the "
                       "key in base64, perhaps a comment",
                       STR_ARG(str_sub(text, 0, 64)));
    }
    *ret = key;
    return 0;
}

bool authorized_options_are_good(struct str options)
{
    struct str rest = options;
    struct str word = take_word(&rest);
    return options.n > 0 && rest.n == 0 && word.n == options.n && !is_type(word) &&
           word.p[0] != '#' && str_find_char(options, '\n') == SIZE_MAX &&
           str_find_char(options, '\0') == SIZE_MAX;
}

static bool is_same(const struct authorized_key *a, const struct authorized_key *b)
{
    return str_eq(a->type, b->type) && str_eq(a->blob, b->blob);
}

bool authorized_keys_find(const struct authorized_key *key, struct str text, struct str *ret_line)
{
    struct str raw;
    struct authorized_key other;
    while (text_next_line(&text, &raw)) {
        if (authorized_key_read(text_chomp(raw), &other) && is_same(key, &other)) {
            *ret_line = text_chomp(raw);
            return true;
        }
    }
    return false;
}

static struct str line_of(const struct authorized_key *key, struct arena *out)
{
    return arena_printf(out, STR_FMT "%s" STR_FMT " " STR_FMT "%s" STR_FMT, STR_ARG(key->options),
                        key->options.n > 0 ? " " : "", STR_ARG(key->type), STR_ARG(key->blob),
                        key->comment.n > 0 ? " " : "", STR_ARG(key->comment));
}

struct str authorized_keys_edit(const struct authorized_keys_edit *edit, struct str text,
                                struct arena *out)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    struct str raw;
    bool there = edit->absent;
    while (text_next_line(&text, &raw)) {
        struct authorized_key other;
        bool is_key = authorized_key_read(text_chomp(raw), &other);
        bool ours = is_key && is_same(&edit->key, &other);
        if ((ours && there) || (is_key && !ours && edit->exclusive)) {
            continue; /* it goes, or was there before */
        }
        if (ours && edit->options_given && !str_eq(other.options, edit->key.options)) {
            text_add_line(&edited, line_of(&edit->key, out));
        } else {
            buf_add(&edited, raw);
        }
        there = there || ours;
    }
    if (!there) {
        text_add_line(&edited, line_of(&edit->key, out));
    }
    return arena_str(out, buf_str(&edited));
}

struct str authorized_keys_restore(const struct authorized_key *key, struct str line,
                                   struct str others, struct str text, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    CLEANUP(map_done)
    struct map known = { 0 };
    struct str raw;
    struct authorized_key other;
    bool back = line.n == 0;
    while (text_next_line(&text, &raw)) {
        bool is_key = authorized_key_read(text_chomp(raw), &other);
        if (is_key) {
            (void)map_put(&known, other.blob, &known); /* that it is there is all */
        }
        if (!is_key || !is_same(key, &other)) {
            buf_add(&edited, raw);
        } else if (!back) {
            text_add_line(&edited, line);
            back = true;
        }
    }
    if (!back) {
        text_add_line(&edited, line);
    }
    while (text_next_line(&others, &raw)) {
        if (authorized_key_read(text_chomp(raw), &other) && !is_same(key, &other) &&
            map_find(&known, other.blob) == NULL) {
            text_add_line(&edited, text_chomp(raw));
        }
    }
    return arena_str(out, buf_str(&edited));
}
