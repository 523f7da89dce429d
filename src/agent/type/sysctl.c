/* sysctl: a parameter of the running kernel, and of the next one. */
#include "agent/setting_edit.h"
#include "agent/type/edit.h"
#include "agent/type/path.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

#define KEY_MAX 256u

static const struct field fields[] = {
    { "key", FIELD_TEXT, .required = true, .help = "its name, with dots or slashes" },
    { "value", FIELD_SCALAR, .required = true,
      .help = "what it is; several numbers with spaces between; `>=N` and `<=N` accept more" },
    { "runtime", FIELD_BOOL, .initial = "true", .help = "set it in the running kernel" },
    { "persist", FIELD_BOOL, .initial = "true", .help = "write it down for the next start" },
    { "file", FIELD_PATH, .initial = "/etc/sysctl.d/90-drydock.conf", .help = "where to" },
    { "ignoreMissing", FIELD_BOOL, .initial = "false",
      .help = "a kernel that does not have it is right" },
};

enum bound { BOUND_EXACT, BOUND_LEAST, BOUND_MOST };

struct sysctl {
    struct str path; /* below /proc/sys */
    enum bound bound;
    int64_t limit;    /* of a bound */
    struct str value; /* to be written */
    struct setting_key key;
};

/* Dots divide as slashes do; in "net.ipv4.conf.eth0/1.x" a slash stands for the dot of a name, as
 * sysctl(8) has it. */
static bool make_path(struct str key, struct arena *out, struct str *ret)
{
    bool slashes = false;
    size_t dot = str_find_char(key, '.');
    size_t slash = str_find_char(key, '/');
    slashes = slash != SIZE_MAX && (dot == SIZE_MAX || slash < dot);
    struct str path = arena_printf(out, "/proc/sys/" STR_FMT, STR_ARG(key));
    char *p = (char *)(uintptr_t)path.p; /* just made, and nobody else's */
    struct err ignored = { 0 };
    for (size_t i = strlen("/proc/sys/"); i < path.n && !slashes; i++) {
        p[i] = p[i] == '.' ? '/' : p[i] == '/' ? '.' : p[i];
    }
    *ret = path;
    return key.n > 0 && key.n <= KEY_MAX && field_check_path(path, &ignored) == 0;
}

static int read_value(struct str text, struct sysctl *ret, struct err *err)
{
    struct str rest;
    ret->value = text;
    if (str_cut_prefix(text, STR(">="), &rest)) {
        ret->bound = BOUND_LEAST;
    } else if (str_cut_prefix(text, STR("<="), &rest)) {
        ret->bound = BOUND_MOST;
    } else {
        return 0;
    }
    ret->value = str_trim(rest);
    return str_to_i64(ret->value, &ret->limit)
               ? 0
               : err_set(err, ERR_INVALID,
                         "field 'value': found '" STR_FMT "', want a number behind it",
                         STR_ARG(str_sub(text, 0, 64)));
}

/* Parameters that a kernel has only with a module. */
static void use_module(struct resource_prepare *p, struct str path)
{
    static const struct {
        struct str prefix;
        struct str module;
    } known[] = {
        { STR_INIT("/proc/sys/net/bridge/"), STR_INIT("br_netfilter") },
        { STR_INIT("/proc/sys/net/netfilter/nf_conntrack"), STR_INIT("nf_conntrack") },
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_starts(path, known[i].prefix)) {
            resource_uses(p, "module", known[i].module);
        }
    }
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str key = resource_value(r, "key")->text;
    struct sysctl *s = ARENA_NEW(p->out, struct sysctl);
    if (!make_path(key, p->out, &s->path)) {
        return err_set(err, ERR_INVALID,
                       "field 'key': found '" STR_FMT "', want a name such as vm.swappiness",
                       STR_ARG(str_sub(key, 0, 64)));
    }
    s->key = (struct setting_key){ .format = SETTING_KV, .name = key, .separator = STR(" = ") };
    int result = read_value(resource_value(r, "value")->text, s, err);
    result = result < 0 ? result : setting_check(&s->key, s->value, err);
    if (result < 0) {
        return result;
    }
    if (s->value.n == 0) {
        return err_set(err, ERR_INVALID, "field 'value': found nothing, want a value");
    }
    p->resource->prepared = s;
    p->resource->id =
        arena_printf(p->out, "sysctl:" STR_FMT, STR_ARG(str_sub(s->path, 10, s->path.n - 10)));
    use_module(p, s->path);
    if (resource_value(r, "persist")->truth) {
        resource_uses(p, "path", resource_value(r, "file")->text);
    }
    return 0;
}

/* Tabs and spaces are the same to the kernel: "4096\t87380\t6291456". */
static bool same_words(struct str a, struct str b)
{
    for (;;) {
        a = str_trim(a);
        b = str_trim(b);
        if (a.n == 0 || b.n == 0) {
            return a.n == b.n;
        }
        size_t i = 0;
        while (i < a.n && a.p[i] != ' ' && a.p[i] != '\t' && a.p[i] != '\n') {
            i++;
        }
        size_t k = 0;
        while (k < b.n && b.p[k] != ' ' && b.p[k] != '\t' && b.p[k] != '\n') {
            k++;
        }
        if (!str_eq(str_sub(a, 0, i), str_sub(b, 0, k))) {
            return false;
        }
        a = str_sub(a, i, a.n - i);
        b = str_sub(b, k, b.n - k);
    }
}

static bool is_right(const struct sysctl *s, struct str now)
{
    int64_t number;
    if (s->bound == BOUND_EXACT) {
        return same_words(now, s->value);
    }
    return str_to_i64(str_trim(now), &number) &&
           (s->bound == BOUND_LEAST ? number >= s->limit : number <= s->limit);
}

static int read_runtime(struct resource_call *call, struct str *ret, bool *ret_exists,
                        struct err *err)
{
    const struct sysctl *s = call->resource->prepared;
    int r = root_slurp(call->root, s->path, ROOT_WALK_KERNEL | path_flags(call->resource),
                       call->tmp, ret, ret_exists, err);
    if (r == 0 && !*ret_exists && !resource_value(call->resource, "ignoreMissing")->truth) {
        r = err_set(err, ERR_NOTFOUND, "this kernel has no '" STR_FMT "'",
                    STR_ARG(resource_value(call->resource, "key")->text));
    }
    return r;
}

static int edit_file(struct resource_call *call, const void *ctx, struct str text, struct str *ret,
                     struct err *err)
{
    const struct sysctl *s = ctx;
    return setting_set(&s->key, s->value, text, call->tmp, ret, err);
}

static struct edit edit_of(const struct resource *r)
{
    return (struct edit){
        .path = resource_value(r, "file")->text, .fn = edit_file, .ctx = r->prepared, .create = true
    };
}

static int check(struct resource_call *call, struct err *err)
{
    const struct resource *r = call->resource;
    const struct sysctl *s = r->prepared;
    struct str now;
    bool exists;
    int result = read_runtime(call, &now, &exists, err);
    if (result < 0 || !exists) {
        return result;
    }
    if (resource_value(r, "runtime")->truth && !is_right(s, now)) {
        resource_differs(call, "runtime", str_trim(now), resource_value(r, "value")->text);
    }
    if (resource_value(r, "persist")->truth) {
        struct edit edit = edit_of(r);
        result = edit_check(call, &edit, err);
    }
    return result;
}

static int write_runtime(struct resource_call *call, struct str value, struct err *err)
{
    const struct sysctl *s = call->resource->prepared;
    CLEANUP(root_place_done)
    struct root_place place = ROOT_PLACE_NONE;
    int r =
        root_walk(call->root, s->path, ROOT_WALK_KERNEL | path_flags(call->resource), &place, err);
    return r < 0 ? r : root_write_kernel(call->root, &place, value, err);
}

/* The file first: a crash between the two leaves a kernel that the next check repairs. */
static int apply(struct resource_call *call, struct err *err)
{
    const struct resource *r = call->resource;
    const struct sysctl *s = r->prepared;
    struct str now;
    bool exists;
    int result = read_runtime(call, &now, &exists, err);
    if (result == 0 && exists && resource_value(r, "persist")->truth) {
        struct edit edit = edit_of(r);
        result = edit_apply(call, &edit, err);
    }
    if (result == 0 && exists && resource_value(r, "runtime")->truth && !is_right(s, now)) {
        result = write_runtime(call, s->value, err);
    }
    return result;
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct resource *r = call->resource;
    const struct sysctl *s = r->prepared;
    struct edit_original o = { .had = true };
    struct str text;
    struct str now;
    bool exists;
    int result = read_runtime(call, &now, &exists, err);
    result =
        result < 0 ? result : edit_read(call, resource_value(r, "file")->text, &text, &o.file, err);
    if (result == 0) {
        /* The runtime value is the text; a line that was in the file before is not ours to move. */
        struct str line;
        o.text = exists ? str_trim(now) : STR("");
        o.had = setting_find(&s->key, text, call->tmp, &line);
        edit_save(call, &o, ret);
        ret->data = o.had ? line : STR("");
    }
    return result;
}

static int restore_file(struct resource_call *call, const void *ctx, struct str text,
                        struct str *ret, struct err *err)
{
    const struct sysctl *s = call->resource->prepared;
    const struct str *line = ctx;
    return line->n > 0 ? setting_set(&s->key, *line, text, call->tmp, ret, err)
                       : setting_remove(&s->key, text, call->tmp, ret, err);
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct resource *r = call->resource;
    struct edit_original o;
    int result = edit_load(call, original, &o, err);
    struct str line = result == 0 && original != NULL && o.had ? original->data : STR("");
    if (result == 0 && resource_value(r, "persist")->truth) {
        struct edit edit = { .path = resource_value(r, "file")->text,
                             .fn = restore_file,
                             .ctx = &line,
                             .missing_is_right = true,
                             .remove_empty = !o.file };
        result = edit_apply(call, &edit, err);
    }
    if (result == 0 && resource_value(r, "runtime")->truth && o.text.n > 0) {
        result = write_runtime(call, o.text, err);
    }
    return result;
}

static void watch_more(const struct resource *r, watch_add_fn add, void *ctx)
{
    const struct sysctl *s = r->prepared;
    /* It tells by poll(2), also of a change by sethostname(2). */
    bool polled = str_eq(s->path, STR("/proc/sys/kernel/hostname"));
    if (resource_value(r, "runtime")->truth) {
        add(ctx, polled ? WATCH_HOSTNAME : WATCH_KERNEL, s->path);
    }
    if (resource_value(r, "persist")->truth) {
        add(ctx, WATCH_PATH, resource_value(r, "file")->text);
    }
}

const struct resource_type resource_type_sysctl = {
    .name = "sysctl",
    .fields = FIELD_TABLE(fields),
    .identity = { "key" },
    .help = "a parameter of the kernel, now and after the next start",
    .example = "key: vm.max_map_count, value: '>=262144'",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch_more = watch_more,
};
