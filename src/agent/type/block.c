/* block: lines of a text file between two marks. */
#include "agent/text_edit.h"
#include "agent/type/edit.h"
#include "agent/type/type.h"

static const struct field fields[] = {
    { "path", FIELD_PATH, .required = true, .help = "the file" },
    { "marker", FIELD_TEXT, .required = true,
      .help =
          "the name of the block; its marks are `# BEGIN drydock NAME` and `# END drydock NAME`" },
    { "content", FIELD_TEXT, .help = "the lines between the marks" },
    { "comment", FIELD_TEXT, .initial = "#", .help = "how the file begins a comment" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
    { "position", FIELD_CHOICE, .initial = "End", .choices = "End|Start",
      .help = "where a new block is put" },
    { "create", FIELD_BOOL, .initial = "false", .help = "make the file if it is missing" },
};

static bool is_one_line(struct str s)
{
    return s.n > 0 && str_find_char(s, '\n') == SIZE_MAX && str_find_char(s, '\0') == SIZE_MAX;
}

/* What is to be, and how the text is edited for that. */
struct part {
    struct edit edit; /* first: edit_check_own and edit_apply_own find it */
    struct text_block spec;
};

static int edit_block(struct resource_call *call, const void *ctx, struct str text, struct str *ret,
                      struct err *err)
{
    return text_block_edit(ctx, text, call->tmp, ret, err);
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str marker = resource_value(r, "marker")->text;
    struct str comment = resource_value(r, "comment")->text;
    struct part *part = ARENA_NEW(p->out, struct part);
    struct text_block *spec = &part->spec;
    if (!is_one_line(marker) || !is_one_line(comment)) {
        return err_set(err, ERR_INVALID, "fields 'marker' and 'comment': want one line each");
    }
    spec->begin =
        arena_printf(p->out, STR_FMT " BEGIN drydock " STR_FMT, STR_ARG(comment), STR_ARG(marker));
    spec->end =
        arena_printf(p->out, STR_FMT " END drydock " STR_FMT, STR_ARG(comment), STR_ARG(marker));
    spec->content = resource_value(r, "content")->text;
    spec->absent = resource_is_absent(r);
    spec->at_start = str_eq(resource_value(r, "position")->text, STR("Start"));
    if (spec->absent == resource_value(r, "content")->given) {
        return err_set(err, ERR_INVALID,
                       "field 'content': want it, and with 'state: absent' want it not");
    }
    if (spec->content.n > 0 && !str_ends(spec->content, STR("\n"))) {
        spec->content = arena_concat(p->out, spec->content, STR("\n"));
    }
    struct str rest = spec->content;
    struct str raw;
    while (text_next_line(&rest, &raw)) {
        if (str_eq(text_chomp(raw), spec->begin) || str_eq(text_chomp(raw), spec->end)) {
            return err_set(err, ERR_INVALID, "field 'content': want it without the marks");
        }
    }
    part->edit = edit_of_fields(r, edit_block, spec, spec->absent);
    p->resource->prepared = part;
    return edit_prepare(p, resource_value(r, "path")->text, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    struct edit_original o = { 0 };
    struct str text;
    int r = edit_read(call, resource_value(call->resource, "path")->text, &text, &o.file, err);
    r = r < 0 ? r
              : text_block_find(&((const struct part *)call->resource->prepared)->spec, text,
                                &o.text, &o.had, err);
    edit_save(call, &o, ret);
    return r;
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    struct edit_original o;
    int r = edit_load(call, original, &o, err);
    if (r < 0) {
        return r;
    }
    struct text_block spec = ((const struct part *)call->resource->prepared)->spec;
    spec.content = o.text;
    spec.absent = !o.had;
    return edit_restore(call, &o, edit_block, &spec, err);
}

const struct resource_type resource_type_block = {
    .name = "block",
    .fields = FIELD_TABLE(fields),
    .identity = { "path", "marker" },
    .help = "lines of a text file between two marks; the rest of the file is anybody's",
    .example = "path: /etc/hosts, marker: registry, content: \"192.0.2.7 registry\\n\"",
    .prepare = prepare,
    .check = edit_check_own,
    .apply = edit_apply_own,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .field = "path" } },
};
