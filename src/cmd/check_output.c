#include "cmd/check_output.h"

#include "base/utf8.h"

#define GUTTER 9u /* "  1234 | " */
#define LEAD 24u  /* characters kept before the place in a line that is too long */

static struct str source_line(struct str text, uint32_t number)
{
    struct str rest = text;
    struct str line = STR("");
    (void)str_cut_prefix(rest, STR("\xef\xbb\xbf"), &rest);
    for (uint32_t i = 0; i < number; i++) {
        if (!str_split_next(&rest, '\n', &line)) {
            return STR("");
        }
    }
    (void)str_cut_suffix(line, STR("\r"), &line);
    return line;
}

/* One character that takes one column: what a terminal would act on is shown as '?'. */
static void add_character(struct str character, uint32_t point, struct buf *out)
{
    if (point == '\t') {
        buf_add_char(out, ' ');
    } else if (point < 0x20 || (point >= 0x7f && point < 0xa0)) {
        buf_add_char(out, '?');
    } else {
        buf_add(out, character);
    }
}

/* The characters from `first` on, at most `most`. */
static void add_part(struct str line, uint32_t first, uint32_t most, struct buf *out)
{
    uint32_t column = 0;
    while (line.n > 0 && column < first + most) {
        uint32_t point = 0;
        size_t n = utf8_decode(line, &point);
        if (column >= first) {
            add_character(str_sub(line, 0, n > 0 ? n : 1), n > 0 ? point : 0, out);
        }
        n = n > 0 ? n : 1;
        line = str_sub(line, n, line.n - n);
        column++;
    }
}

static uint32_t characters(struct str line)
{
    uint32_t n = 0;
    for (size_t i = 0; i < line.n; i++) {
        n += ((unsigned char)line.p[i] & 0xc0u) != 0x80u;
    }
    return n;
}

static void add_source(struct str text, struct pos pos, struct buf *out)
{
    struct str line = source_line(text, pos.line);
    uint32_t length = characters(line);
    uint32_t room = CHECK_OUTPUT_COLUMNS - GUTTER;
    uint32_t at = pos.column > 0 ? pos.column - 1 : 0;
    uint32_t first = length > room && at >= room - 1 ? at - LEAD : 0;
    buf_printf(out, "%6u | %s", pos.line, first > 0 ? "…" : "");
    uint32_t indent = at - first;
    if (first > 0) {
        indent++;
        room--;
    }
    bool cut = length - MIN(first, length) > room;
    add_part(line, first, cut ? room - 1 : room, out);
    buf_add(out, cut ? STR("…\n") : STR("\n"));
    buf_printf(out, "%6s | %*s^\n", "", (int)indent, "");
}

void check_output_problems(struct str path, struct str text, const struct problems *problems,
                           struct buf *out)
{
    for (uint32_t i = 0; i < problems->n; i++) {
        const struct problem *p = &problems->items[i];
        const char *kind = p->warning ? "warning: " : "";
        if (p->pos.line == 0) {
            buf_printf(out, STR_FMT ": %s" STR_FMT "\n", STR_ARG(path), kind, STR_ARG(p->text));
            continue;
        }
        buf_printf(out, STR_FMT ":%u:%u: %s" STR_FMT "\n", STR_ARG(path), p->pos.line,
                   p->pos.column, kind, STR_ARG(p->text));
        if (text.p != NULL) {
            add_source(text, p->pos, out);
        }
    }
    if (problems->more > 0) {
        buf_printf(out, STR_FMT ": and %u problems more\n", STR_ARG(path), problems->more);
    }
}

static void add_count(uint32_t n, const char *noun, const char *behind, struct buf *out)
{
    buf_printf(out, "%u %s%s%s", n, noun, n == 1 ? "" : "s", behind);
}

void check_output_valid(struct str path, const struct config *config, struct buf *out)
{
    buf_printf(out, STR_FMT ": fine, ", STR_ARG(path));
    add_count(config->profile_n, "profile", ", ", out);
    add_count(config->instances[PLUGIN_CHECK].n, "check", ", ", out);
    add_count(config->instances[PLUGIN_TRIGGER].n, "trigger", ", ", out);
    add_count(config->instances[PLUGIN_NOTIFY].n, "notification", "\n", out);
}
