/* line: one line of a text file. */
#include "agent/text_edit.h"
#include "agent/type/edit.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/regex.h"

static const struct field fields[] = {
    { "path", FIELD_PATH, .required = true, .help = "the file" },
    { "line", FIELD_TEXT, .help = "the whole line" },
    { "match", FIELD_REGEX,
      .help =
          "the last line that matches becomes `line`, or with `state: absent` all that match go" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
    { "position", FIELD_CHOICE, .initial = "End", .choices = "End|Start|After|Before",
      .help = "where a new line is put" },
    { "anchor", FIELD_REGEX, .help = "behind the last or before the first line that matches" },
    { "create", FIELD_BOOL, .initial = "false", .help = "make the file if it is missing" },
};

static enum text_position read_position(struct str text)
{
    return str_eq(text, STR("Start"))    ? TEXT_START
           : str_eq(text, STR("After"))  ? TEXT_AFTER
           : str_eq(text, STR("Before")) ? TEXT_BEFORE
                                         : TEXT_END;
}

static int compile(const struct resource *r, const char *name, struct arena *out,
                   const struct regex **ret, struct err *err)
{
    const struct field_value *value = resource_value(r, name);
    struct regex *regex = NULL;
    int result = value->given ? regex_compile(value->text, out, &regex, err) : 0;
    *ret = regex;
    return result;
}

/* Each run would add one more. */
static int check_match(const struct text_line *spec, struct arena *tmp, struct err *err)
{
    bool matches = true;
    int r = spec->match != NULL && !spec->absent
                ? regex_match(spec->match, spec->line, tmp, &matches, err)
                : 0;
    return r == 0 && !matches
               ? err_set(err, ERR_INVALID, "field 'match': want it to match 'line', too")
               : r;
}

/* What is to be, and how the text is edited for that. */
struct part {
    struct edit edit; /* first: edit_check_own and edit_apply_own find it */
    struct text_line spec;
};

static int edit_line(struct resource_call *call, const void *ctx, struct str text, struct str *ret,
                     struct err *err)
{
    return text_line_edit(ctx, text, call->tmp, ret, err);
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    const struct field_value *line = resource_value(r, "line");
    struct part *part = ARENA_NEW(p->out, struct part);
    struct text_line *spec = &part->spec;
    spec->line = line->text;
    spec->absent = resource_is_absent(r);
    spec->position = read_position(resource_value(r, "position")->text);
    int result = compile(r, "match", p->out, &spec->match, err);
    result = result < 0 ? result : compile(r, "anchor", p->out, &spec->anchor, err);
    if (result < 0) {
        return result;
    }
    if (!line->given && (spec->match == NULL || !spec->absent)) {
        return err_set(err, ERR_INVALID, "field 'line': found nothing, want the line");
    }
    if (str_find_char(line->text, '\n') != SIZE_MAX ||
        str_find_char(line->text, '\0') != SIZE_MAX) {
        return err_set(err, ERR_INVALID, "field 'line': want one line, without its end");
    }
    if ((spec->position == TEXT_AFTER || spec->position == TEXT_BEFORE) != (spec->anchor != NULL)) {
        return err_set(
            err, ERR_INVALID,
            "field 'anchor': want it with the positions After and Before, and only then");
    }
    part->edit = edit_of_fields(r, edit_line, spec, spec->absent);
    p->resource->prepared = part;
    result = check_match(spec, p->out, err);
    return result < 0 ? result : edit_prepare(p, resource_value(r, "path")->text, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct text_line *spec = &((const struct part *)call->resource->prepared)->spec;
    struct edit_original o = { 0 };
    struct str text;
    int r = edit_read(call, resource_value(call->resource, "path")->text, &text, &o.file, err);
    r = r < 0 ? r : text_line_find(spec, text, call->tmp, &o.text, &o.had, err);
    edit_save(call, &o, ret);
    return r;
}

/* Only our own line is touched: what others have written since stays. */
static int restore_line(struct resource_call *call, const void *ctx, struct str text,
                        struct str *ret, struct err *err)
{
    const struct text_line *spec = &((const struct part *)call->resource->prepared)->spec;
    const struct edit_original *o = ctx;
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct str rest = text;
    struct str raw;
    bool done = false;
    (void)err; /* nothing can fail here */
    while (text_next_line(&rest, &raw)) {
        bool ours = !spec->absent && !done && str_eq(text_chomp(raw), spec->line);
        if (ours && o->had) {
            text_add_line(&out, o->text);
        } else if (!ours) {
            buf_add(&out, raw);
        }
        done = done || ours;
    }
    if (spec->absent && o->had) {
        text_add_line(&out, o->text);
    }
    *ret = arena_str(call->tmp, buf_str(&out));
    return 0;
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    struct edit_original o;
    int r = edit_load(call, original, &o, err);
    if (r < 0 || (((const struct part *)call->resource->prepared)->spec.absent && !o.had)) {
        return r;
    }
    return edit_restore(call, &o, restore_line, &o, err);
}

const struct resource_type resource_type_line = {
    .name = "line",
    .fields = FIELD_TABLE(fields),
    .identity = { "path", "line" },
    .help = "one line of a text file; the rest of the file is anybody's",
    .example = "path: /etc/hosts, line: 192.0.2.7 registry, match: ' registry$'",
    .prepare = prepare,
    .check = edit_check_own,
    .apply = edit_apply_own,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .field = "path" } },
};
