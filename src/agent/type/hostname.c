/* hostname: the name of the machine, now and after the next start. */
#include "agent/type/path.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

#define HOSTNAME_MAX 64u /* of Linux */
#define FILE_PATH STR("/etc/hostname")
#define KERNEL_PATH STR("/proc/sys/kernel/hostname")

static const struct field fields[] = {
    { "hostname", FIELD_TEXT, .required = true, .help = "the name: letters, digits, dots, dashes" },
};

static bool is_good(struct str name)
{
    bool good = name.n > 0 && name.n <= HOSTNAME_MAX && name.p[0] != '-' && name.p[0] != '.';
    for (size_t i = 0; i < name.n && good; i++) {
        char c = name.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.';
    }
    return good;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    struct str name = resource_value(p->resource, "hostname")->text;
    if (!is_good(name)) {
        return err_set(err, ERR_INVALID,
                       "field 'hostname': found '" STR_FMT "', want 1 to %u letters, digits, dots "
                       "and dashes",
                       STR_ARG(str_sub(name, 0, 80)), HOSTNAME_MAX);
    }
    p->resource->id = STR("hostname:"); /* a machine has one */
    return 0;
}

static int read_names(struct resource_call *call, struct str *ret_file, struct str *ret_kernel,
                      struct err *err)
{
    bool exists;
    *ret_file = STR("");
    *ret_kernel = STR("");
    int r = root_slurp(call->root, FILE_PATH, path_flags(call->resource), call->tmp, ret_file,
                       &exists, err);
    r = r < 0 ? r
              : root_slurp(call->root, KERNEL_PATH, ROOT_WALK_KERNEL | path_flags(call->resource),
                           call->tmp, ret_kernel, &exists, err);
    *ret_file = str_trim(*ret_file);
    *ret_kernel = str_trim(*ret_kernel);
    return r;
}

static int check(struct resource_call *call, struct err *err)
{
    struct str want = resource_value(call->resource, "hostname")->text;
    struct str file;
    struct str kernel;
    int r = read_names(call, &file, &kernel, err);
    if (r == 0 && !str_eq(file, want)) {
        resource_differs(call, "file", file, want);
    }
    if (r == 0 && !str_eq(kernel, want)) {
        resource_differs(call, "kernel", kernel, want);
    }
    return r;
}

static int set_names(struct resource_call *call, struct str file, struct str kernel,
                     struct err *err)
{
    struct path_state state;
    struct path_owner owner = { .uid = UINT32_MAX, .gid = UINT32_MAX };
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    int r = path_look(call, FILE_PATH, 0, &state, err);
    if (r < 0) {
        return r;
    }
    if (state.place.dir < 0) {
        return err_set(err, ERR_NOTFOUND, "there is no folder for /etc/hostname");
    }
    if (file.n == 0) {
        r = state.exists ? root_remove(call->root, &state.place, false, err) : 0;
    } else {
        struct root_file content =
            path_file(call, &owner, &state, arena_printf(call->tmp, STR_FMT "\n", STR_ARG(file)));
        r = root_replace(call->root, &state.place, &content, err);
    }
    root_place_done(&state.place);
    r = r < 0 || kernel.n == 0
            ? r
            : root_walk(call->root, KERNEL_PATH, ROOT_WALK_KERNEL | path_flags(call->resource),
                        &place, err);
    return r < 0 || kernel.n == 0 ? r : root_write_kernel(call->root, &place, kernel, err);
}

static int apply(struct resource_call *call, struct err *err)
{
    struct str want = resource_value(call->resource, "hostname")->text;
    return set_names(call, want, want, err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    struct str file;
    struct str kernel;
    int r = read_names(call, &file, &kernel, err);
    jw_obj(&w);
    jw_pair(&w, "file", file);
    jw_pair(&w, "kernel", kernel);
    jw_obj_end(&w);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return r;
}

/* A machine cannot be without a name: to remove it means nothing. */
static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct jval *was = NULL;
    if (original == NULL) {
        return 0;
    }
    int r = json_parse(original->json, 0, call->tmp, &was, err);
    return r < 0 ? r
                 : set_names(call, jval_str(jval_get(was, STR("file"))),
                             jval_str(jval_get(was, STR("kernel"))), err);
}

const struct resource_type resource_type_hostname = {
    .name = "hostname",
    .fields = FIELD_TABLE(fields),
    .help = "the name of the machine",
    .example = "hostname: node-a",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .path = "/etc/hostname" }, { .kind = WATCH_HOSTNAME } },
};
