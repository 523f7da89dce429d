#include "agent/text_edit.h"

#include "base/buf.h"
#include "format/regex.h"

#define NO_LINE UINT32_MAX

bool text_next_line(struct str *rest, struct str *ret)
{
    if (rest->n == 0) {
        return false;
    }
    size_t end = str_find_char(*rest, '\n');
    size_t n = end == SIZE_MAX ? rest->n : end + 1;
    *ret = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->n - n);
    return true;
}

struct str text_chomp(struct str line)
{
    struct str rest;
    (void)str_cut_suffix(line, STR("\n"), &rest); /* the last line may have no end */
    return rest;
}

void text_add_line(struct buf *out, struct str line)
{
    if (out->n > 0 && out->p[out->n - 1] != '\n') {
        buf_add_char(out, '\n');
    }
    buf_add(out, line);
    buf_add_char(out, '\n');
}

/* Adds lines that are as they are; the last of the text may have no end. */
static void add_raw(struct buf *out, struct str line)
{
    if (out->n > 0 && out->p[out->n - 1] != '\n' && line.n > 0) {
        buf_add_char(out, '\n');
    }
    buf_add(out, line);
}

/* ── line ──────────────────────────────────────────────────────────────────────────────────── */

static int line_matches(const struct regex *regex, struct str line, struct arena *tmp, bool *ret,
                        struct err *err)
{
    return regex_match(regex, line, tmp, ret, err);
}

struct line_places {
    uint32_t match;  /* the last that matches `match` */
    uint32_t equal;  /* the first that is equal */
    uint32_t anchor; /* as the position asks for */
    uint32_t n;
};

static int find_places(const struct text_line *spec, struct str text, struct arena *tmp,
                       struct line_places *ret, struct err *err)
{
    *ret = (struct line_places){ .match = NO_LINE, .equal = NO_LINE, .anchor = NO_LINE };
    struct str raw;
    while (text_next_line(&text, &raw)) {
        struct str line = text_chomp(raw);
        bool match = false;
        bool anchor = false;
        int r = spec->match != NULL ? line_matches(spec->match, line, tmp, &match, err) : 0;
        if (r == 0 && spec->anchor != NULL) {
            r = line_matches(spec->anchor, line, tmp, &anchor, err);
        }
        if (r < 0) {
            return r;
        }
        ret->match = match ? ret->n : ret->match;
        ret->equal = ret->equal == NO_LINE && str_eq(line, spec->line) ? ret->n : ret->equal;
        if (anchor && (spec->position == TEXT_AFTER || ret->anchor == NO_LINE)) {
            ret->anchor = ret->n;
        }
        ret->n++;
    }
    return 0;
}

int text_line_find(const struct text_line *spec, struct str text, struct arena *tmp,
                   struct str *ret, bool *ret_found, struct err *err)
{
    struct line_places places;
    int r = find_places(spec, text, tmp, &places, err);
    uint32_t wanted = places.match != NO_LINE ? places.match : places.equal;
    struct str raw;
    *ret_found = false;
    for (uint32_t i = 0; r == 0 && text_next_line(&text, &raw); i++) {
        if (i == wanted) {
            *ret = text_chomp(raw);
            *ret_found = true;
        }
    }
    return r;
}

static int remove_lines(const struct text_line *spec, struct str text, struct arena *tmp,
                        struct buf *out, struct err *err)
{
    struct str raw;
    while (text_next_line(&text, &raw)) {
        struct str line = text_chomp(raw);
        bool gone = spec->match == NULL && str_eq(line, spec->line);
        int r = spec->match != NULL ? line_matches(spec->match, line, tmp, &gone, err) : 0;
        if (r < 0) {
            return r;
        }
        if (!gone) {
            buf_add(out, raw);
        }
    }
    return 0;
}

/* Before which line a new one is put; places.n is the end. */
static uint32_t new_place(const struct text_line *spec, const struct line_places *places)
{
    switch (spec->position) {
    case TEXT_START:
        return 0;
    case TEXT_AFTER:
        return places->anchor + 1;
    case TEXT_BEFORE:
        return places->anchor;
    default:
        return places->n;
    }
}

static void put_line(const struct text_line *spec, const struct line_places *places,
                     struct str text, struct buf *out)
{
    bool replace = places->match != NO_LINE;
    uint32_t at = replace ? places->match : new_place(spec, places);
    struct str raw;
    for (uint32_t i = 0; text_next_line(&text, &raw); i++) {
        if (i == at && replace && raw.p[raw.n - 1] != '\n') {
            buf_add(out, spec->line); /* the end of the file stays as it is */
        } else if (i == at) {
            text_add_line(out, spec->line);
        }
        if (i != at || !replace) {
            add_raw(out, raw);
        }
    }
    if (at == places->n) {
        text_add_line(out, spec->line);
    }
}

int text_line_edit(const struct text_line *spec, struct str text, struct arena *out,
                   struct str *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    struct line_places places;
    int r = find_places(spec, text, &tmp, &places, err);
    if (r < 0) {
        return r;
    }
    if (spec->absent) {
        r = remove_lines(spec, text, &tmp, &edited, err);
    } else if (places.match == NO_LINE && places.equal != NO_LINE) {
        buf_add(&edited, text);
    } else if (places.match == NO_LINE && places.anchor == NO_LINE &&
               (spec->position == TEXT_AFTER || spec->position == TEXT_BEFORE)) {
        r = err_set(err, ERR_NOTFOUND, "field 'anchor': no line matches");
    } else {
        put_line(spec, &places, text, &edited);
    }
    if (r == 0) {
        *ret = arena_str(out, buf_str(&edited));
    }
    return r;
}

/* ── block ─────────────────────────────────────────────────────────────────────────────────── */

struct block_place {
    bool found;
    size_t begin;   /* where the line of the first mark begins */
    size_t content; /* behind it */
    size_t content_end;
    size_t end; /* behind the line of the second mark */
};

static int find_block(const struct text_block *spec, struct str text, struct block_place *ret,
                      struct err *err)
{
    struct str rest = text;
    struct str raw;
    bool inside = false;
    *ret = (struct block_place){ 0 };
    while (text_next_line(&rest, &raw)) {
        struct str line = text_chomp(raw);
        size_t at = (size_t)(raw.p - text.p);
        if (str_eq(line, spec->begin)) {
            if (inside || ret->found) {
                return err_set(err, ERR_INVALID, "the block begins twice: '" STR_FMT "'",
                               STR_ARG(str_sub(spec->begin, 0, 128)));
            }
            inside = true;
            ret->begin = at;
            ret->content = at + raw.n;
        } else if (inside && str_eq(line, spec->end)) {
            inside = false;
            ret->found = true;
            ret->content_end = at;
            ret->end = at + raw.n;
        }
    }
    return inside ? err_set(err, ERR_INVALID, "the block does not end: want the line '" STR_FMT "'",
                            STR_ARG(str_sub(spec->end, 0, 128)))
                  : 0;
}

int text_block_find(const struct text_block *spec, struct str text, struct str *ret,
                    bool *ret_found, struct err *err)
{
    struct block_place place;
    int r = find_block(spec, text, &place, err);
    if (r == 0) {
        *ret_found = place.found;
        *ret = place.found ? str_sub(text, place.content, place.content_end - place.content)
                           : STR_NONE;
    }
    return r;
}

static void add_block(const struct text_block *spec, struct buf *out)
{
    text_add_line(out, spec->begin);
    buf_add(out, spec->content);
    text_add_line(out, spec->end);
}

int text_block_edit(const struct text_block *spec, struct str text, struct arena *out,
                    struct str *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf edited = { 0 };
    struct block_place place;
    int r = find_block(spec, text, &place, err);
    if (r < 0) {
        return r;
    }
    bool add = !spec->absent && !place.found;
    if (add && spec->at_start) {
        add_block(spec, &edited);
    }
    buf_add(&edited, str_sub(text, 0, place.found ? place.begin : text.n));
    if (place.found && !spec->absent) {
        add_block(spec, &edited);
    }
    if (place.found) {
        buf_add(&edited, str_sub(text, place.end, text.n - place.end));
    }
    if (add && !spec->at_start) {
        add_block(spec, &edited);
    }
    *ret = arena_str(out, buf_str(&edited));
    return 0;
}
