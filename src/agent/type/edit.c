#include "agent/type/edit.h"

#include "agent/type/path.h"
#include "base/buf.h"
#include "format/json_writer.h"

int edit_prepare(struct resource_prepare *p, struct str path, struct err *err)
{
    if (path_is_kernels(path)) {
        return err_set(err, ERR_INVALID, "field 'path': '" STR_FMT "' is the kernel's",
                       STR_ARG(path));
    }
    resource_uses(p, "path", path);
    return 0;
}

struct edit edit_of_fields(const struct resource *r, edit_fn fn, const void *ctx, bool absent)
{
    return (struct edit){ .path = resource_value(r, "path")->text,
                          .fn = fn,
                          .ctx = ctx,
                          .create = resource_value(r, "create")->truth,
                          .missing_is_right = absent };
}

int edit_check_own(struct resource_call *call, struct err *err)
{
    return edit_check(call, call->resource->prepared, err);
}

int edit_apply_own(struct resource_call *call, struct err *err)
{
    return edit_apply(call, call->resource->prepared, err);
}

/* The file behind a link of root's is meant: /etc/resolv.conf and its like are links. */
static int look(struct resource_call *call, struct str path, struct path_state *ret,
                struct str *ret_text, struct err *err)
{
    *ret_text = STR("");
    int r = path_look(call, path, ROOT_WALK_FOLLOW, ret, err);
    if (r == 0 && ret->exists) {
        r = root_read(&ret->place, call->tmp, ret_text, err);
        if (r < 0) {
            root_place_done(&ret->place);
        }
    }
    return r;
}

int edit_read(struct resource_call *call, struct str path, struct str *ret, bool *ret_exists,
              struct err *err)
{
    struct path_state state;
    int r = look(call, path, &state, ret, err);
    if (r == 0) {
        *ret_exists = state.exists;
        root_place_done(&state.place);
    }
    return r;
}

static int missing(const struct edit *edit, const struct path_state *state, struct err *err)
{
    return state->exists || edit->create || edit->missing_is_right
               ? 0
               : err_set(err, ERR_NOTFOUND,
                         "there is no file '" STR_FMT "'; 'create: true' makes it",
                         STR_ARG(edit->path));
}

int edit_check(struct resource_call *call, const struct edit *edit, struct err *err)
{
    struct path_state state;
    struct str text;
    struct str want;
    int r = look(call, edit->path, &state, &text, err);
    if (r < 0) {
        return r;
    }
    r = missing(edit, &state, err);
    if (r == 0 && (state.exists || !edit->missing_is_right)) {
        r = edit->fn(call, edit->ctx, text, &want, err);
        if (r == 0) {
            path_compare_content(call, text, want);
        }
    }
    root_place_done(&state.place);
    return r;
}

static int write_text(struct resource_call *call, const struct edit *edit,
                      const struct path_state *state, struct str text, struct err *err)
{
    struct path_owner owner = { .uid = UINT32_MAX, .gid = UINT32_MAX };
    if (state->place.dir < 0) {
        return err_set(err, ERR_NOTFOUND, "there is no folder for '" STR_FMT "'",
                       STR_ARG(edit->path));
    }
    if (text.n == 0 && edit->remove_empty) {
        return root_remove(call->root, &state->place, false, err);
    }
    struct root_file file = path_file(call, &owner, state, text);
    return root_replace(call->root, &state->place, &file, err);
}

int edit_apply(struct resource_call *call, const struct edit *edit, struct err *err)
{
    struct path_state state;
    struct str text;
    struct str want;
    int r = look(call, edit->path, &state, &text, err);
    if (r < 0) {
        return r;
    }
    r = missing(edit, &state, err);
    if (r == 0 && (state.exists || !edit->missing_is_right)) {
        r = edit->fn(call, edit->ctx, text, &want, err);
        if (r == 0 && !(state.exists && str_eq(text, want))) {
            r = write_text(call, edit, &state, want, err);
        }
    }
    root_place_done(&state.place);
    return r;
}

void edit_save(struct resource_call *call, const struct edit_original *o, struct original *ret)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    jw_obj(&w);
    jw_pair_bool(&w, "had", o->had);
    jw_pair(&w, "text", o->text);
    jw_pair_bool(&w, "file", o->file);
    jw_obj_end(&w);
    ret->json = arena_str(call->tmp, buf_str(&json));
}

int edit_load(struct resource_call *call, const struct original *original,
              struct edit_original *ret, struct err *err)
{
    const struct jval *v = NULL;
    *ret = (struct edit_original){ 0 };
    if (original == NULL) {
        ret->file = true; /* what is removed is the part, not the file of others */
        return 0;
    }
    int r = json_parse(original->json, JSON_GO, call->tmp, &v, err);
    ret->had = jval_bool(jval_get(v, STR("had")), false);
    ret->text = jval_str(jval_get(v, STR("text")));
    ret->file = jval_bool(jval_get(v, STR("file")), true);
    return r;
}

int edit_restore(struct resource_call *call, const struct edit_original *o, edit_fn fn,
                 const void *ctx, struct err *err)
{
    struct edit edit = { .path = resource_value(call->resource, "path")->text,
                         .fn = fn,
                         .ctx = ctx,
                         .missing_is_right = true,
                         .remove_empty = !o->file };
    return edit_apply(call, &edit, err);
}
