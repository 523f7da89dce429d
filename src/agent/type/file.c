/* file: a regular file with its content, owner and mode. */
#include "agent/type/path.h"
#include "agent/type/type.h"

static const struct field fields[] = {
    { "path", FIELD_PATH, .required = true, .help = "where it is" },
    { "content", FIELD_TEXT, .help = "what is in it, to the byte" },
    { "source", FIELD_PATH, .help = "or: a file of the machine that has the content" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
    PATH_OWNER_FIELDS,
    { "validate", FIELD_TEXTS,
      .help =
          "a program and its arguments that must accept the new file before it takes its place; "
          "`%` stands for the file" },
    { "followSymlink", FIELD_BOOL, .initial = "false",
      .help = "if the path is a symbolic link that root made, the file behind it is meant" },
};

static unsigned walk_flags(const struct resource *r)
{
    return resource_value(r, "followSymlink")->truth ? ROOT_WALK_FOLLOW : 0;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    bool content = resource_value(r, "content")->given;
    bool source = resource_value(r, "source")->given;
    struct str path = resource_value(r, "path")->text;
    if (content && source) {
        return err_set(err, ERR_INVALID, "fields 'content' and 'source': want one of them");
    }
    if (resource_is_absent(r) && (content || source)) {
        return err_set(err, ERR_INVALID, "field 'state': found 'absent' beside a content");
    }
    const struct field_value *validate = resource_value(r, "validate");
    if (validate->given && (validate->item_n == 0 || !str_starts(validate->items[0], STR("/")))) {
        return err_set(err, ERR_INVALID, "field 'validate': want the path of a program first");
    }
    int result = path_prepare(p, path, err);
    if (result < 0) {
        return result;
    }
    if (source) {
        resource_uses(p, "path", resource_value(r, "source")->text);
    }
    path_uses_owner(p);
    return 0;
}

/* What should be in it; `*ret_given` is false when nothing is said about that. */
static int wanted_content(struct resource_call *call, struct str *ret, bool *ret_given,
                          struct err *err)
{
    const struct field_value *content = resource_value(call->resource, "content");
    const struct field_value *source = resource_value(call->resource, "source");
    *ret = content->text;
    *ret_given = content->given || source->given;
    if (!source->given) {
        return 0;
    }
    bool exists;
    int r = root_slurp(call->root, source->text, path_flags(call->resource) | ROOT_WALK_FOLLOW,
                       call->tmp, ret, &exists, err);
    return r < 0 || exists
               ? r
               : err_set(err, ERR_NOTFOUND, "field 'source': there is no file '" STR_FMT "'",
                         STR_ARG(source->text));
}

static int check_type(const struct resource *r, const struct path_state *state, struct err *err)
{
    if (!state->exists || S_ISREG(state->st.st_mode)) {
        return 0;
    }
    if (S_ISLNK(state->st.st_mode)) {
        /* Gone is gone: a link can be removed without asking where it leads. */
        return resource_is_absent(r) ? 0
                                     : err_set(err, ERR_DENIED,
                                               "'" STR_FMT "' is a symbolic link; want a file, or "
                                               "'followSymlink: true'",
                                               STR_ARG(state->place.path));
    }
    return err_set(err, ERR_INVALID, "'" STR_FMT "' is a %s, want a file",
                   STR_ARG(state->place.path),
                   S_ISDIR(state->st.st_mode) ? "folder" : "device, pipe or socket");
}

static int check_present(struct resource_call *call, const struct path_state *state,
                         struct err *err)
{
    struct path_owner owner;
    struct str want;
    struct str was;
    bool given;
    int r = path_owner(call, &owner, err);
    r = r < 0 ? r : wanted_content(call, &want, &given, err);
    if (r < 0) {
        return r;
    }
    if (!state->exists) {
        resource_differs_in_state(call, /* exists= */ false);
        return 0;
    }
    if (given) {
        r = root_read(&state->place, call->tmp, &was, err);
        if (r < 0) {
            return r;
        }
        path_compare_content(call, was, want);
    }
    path_compare_owner(call, &owner, &state->st);
    return 0;
}

static int check(struct resource_call *call, struct err *err)
{
    struct path_state state;
    int r = path_look(call, resource_value(call->resource, "path")->text,
                      walk_flags(call->resource), &state, err);
    if (r < 0) {
        return r;
    }
    r = check_type(call->resource, &state, err);
    if (r == 0 && resource_is_absent(call->resource) && state.exists) {
        resource_differs_in_state(call, /* exists= */ true);
    } else if (r == 0 && !resource_is_absent(call->resource)) {
        r = check_present(call, &state, err);
    }
    root_place_done(&state.place);
    return r;
}

static void ask_validation(struct resource_call *call, struct str beside)
{
    const struct field_value *validate = resource_value(call->resource, "validate");
    struct str *argv = ARENA_ARRAY(call->tmp, struct str, validate->item_n);
    for (uint32_t i = 0; i < validate->item_n; i++) {
        argv[i] = str_eq(validate->items[i], STR("%")) ? beside : validate->items[i];
    }
    call->command = (struct command_spec){
        .argv = argv, .argv_n = validate->item_n, .uid = call->root->uid, .gid = call->root->gid
    };
}

static int judge_validation(struct resource_call *call, struct err *err)
{
    const struct command_result *result = call->result;
    if (result->exit_code == 0 && !result->timed_out) {
        return 0;
    }
    return err_set(err, ERR_INVALID, "'" STR_FMT "' refuses the new file (%s %d): " STR_FMT,
                   STR_ARG(resource_value(call->resource, "validate")->items[0]),
                   result->timed_out ? "out of time," : "exit code", result->exit_code,
                   STR_ARG(str_sub(str_trim(result->out), 0, 200)));
}

static int apply_present(struct resource_call *call, const struct path_state *state,
                         struct err *err)
{
    struct path_owner owner;
    struct str content;
    bool given;
    int r = path_owner(call, &owner, err);
    r = r < 0 ? r : wanted_content(call, &content, &given, err);
    if (r < 0) {
        return r;
    }
    if (!given && state->exists) {
        r = root_read(&state->place, call->tmp, &content, err);
    }
    if (r < 0) {
        return r;
    }
    struct root_file file = path_file(call, &owner, state, content);
    if (!resource_value(call->resource, "validate")->given) {
        return root_replace(call->root, &state->place, &file, err);
    }
    if (call->step == 0) {
        r = root_write_beside(call->root, &state->place, &file, err);
        ask_validation(call, root_beside(&state->place, call->tmp));
        return r < 0 ? r : RESOURCE_RUN;
    }
    r = judge_validation(call, err);
    if (r < 0) {
        struct err ignored = { 0 };
        int removed = root_remove_beside(call->root, &state->place, &ignored);
        (void)removed; /* the first error counts */
        return r;
    }
    return root_take_place(call->root, &state->place, &file, err);
}

static int apply(struct resource_call *call, struct err *err)
{
    struct path_state state;
    struct str path = resource_value(call->resource, "path")->text;
    int r = path_look(call, path, walk_flags(call->resource), &state, err);
    if (r < 0) {
        return r;
    }
    r = check_type(call->resource, &state, err);
    if (r == 0 && resource_is_absent(call->resource)) {
        r = state.exists ? root_remove(call->root, &state.place, false, err) : 0;
    } else if (r == 0 && state.place.dir < 0) {
        r = err_set(err, ERR_NOTFOUND, "there is no folder for '" STR_FMT "'", STR_ARG(path));
    } else if (r == 0) {
        r = apply_present(call, &state, err);
    }
    root_place_done(&state.place);
    return r;
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    return path_save(call, resource_value(call->resource, "path")->text, walk_flags(call->resource),
                     ret, err);
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    return path_restore(call, resource_value(call->resource, "path")->text,
                        walk_flags(call->resource), original, err);
}

const struct resource_type resource_type_file = {
    .name = "file",
    .fields = FIELD_TABLE(fields),
    .identity = { "path" },
    .help = "a regular file: what is in it, whose it is and who may read it",
    .example = "path: /etc/motd, content: \"Welcome.\\n\", mode: '0644'",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .field = "path" }, { WATCH_PATH, .field = "source" } },
};
