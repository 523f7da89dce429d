#include "agent/kernel_cmdline.h"

#include "agent/fstab.h"
#include "agent/text_edit.h"
#include "base/buf.h"

bool kernel_cmdline_next(struct str *rest, struct str *ret)
{
    struct str s = str_trim(*rest);
    bool quoted = false;
    size_t i = 0;
    for (; i < s.n && (quoted || (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\n')); i++) {
        quoted = quoted != (s.p[i] == '"');
    }
    *ret = str_sub(s, 0, i);
    *rest = str_sub(s, i, s.n - i);
    return i > 0;
}

static bool is_of(struct str word, struct str name)
{
    return str_starts(word, name) && (word.n == name.n || word.p[name.n] == '=');
}

bool kernel_cmdline_find(struct str text, struct str name, struct str *ret_word)
{
    struct str word;
    bool found = false;
    while (kernel_cmdline_next(&text, &word)) {
        if (is_of(word, name)) {
            *ret_word = word;
            found = true;
        }
    }
    return found;
}

static void add_word(struct str word, struct buf *out)
{
    if (word.n > 0) {
        buf_printf(out, "%s" STR_FMT, out->n > 0 ? " " : "", STR_ARG(word));
    }
}

struct str kernel_cmdline_edit(struct str text, struct str name, struct str wanted,
                               struct arena *out)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    struct str word;
    bool placed = false;
    while (kernel_cmdline_next(&text, &word)) {
        if (!is_of(word, name)) {
            add_word(word, &edited);
        } else if (!placed) {
            add_word(wanted, &edited);
            placed = true;
        }
    }
    if (!placed) {
        add_word(wanted, &edited);
    }
    return arena_str(out, buf_str(&edited));
}

bool kernel_cmdline_of_grub(struct str config, struct str *ret)
{
    static const struct str commands[] = { STR_INIT("linux"), STR_INIT("linuxefi"),
                                           STR_INIT("linux16") };
    struct str raw;
    while (text_next_line(&config, &raw)) {
        struct str rest = text_chomp(raw);
        struct str command;
        struct str kernel;
        if (!fstab_next_word(&rest, &command) || !fstab_next_word(&rest, &kernel)) {
            continue;
        }
        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
            if (str_eq(command, commands[i])) {
                *ret = str_trim(rest);
                return true;
            }
        }
    }
    return false;
}
