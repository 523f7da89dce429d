/* swap: a device or file that the kernel swaps to, or none at all; now, and by /etc/fstab after the
 * next start. */
#include "agent/kernel_tables.h"
#include "agent/type/fstab_line.h"
#include "agent/type/path.h"
#include "agent/type/tool.h"
#include "agent/type/type.h"
#include "base/buf.h"

#define ACTIVE_MAX 64u /* more than any machine has */

static const struct field fields[] = {
    { "path", FIELD_PATH, .help = "the device or the file; nothing with `allOff`" },
    { "state", FIELD_CHOICE, .initial = "off", .choices = "off|on|allOff",
      .help = "allOff: the machine swaps to nothing" },
    { "persist", FIELD_BOOL, .initial = "true",
      .help = "also after the next start, by a line of /etc/fstab or none" },
};

struct wanted {
    struct str path;
    bool all_off;
    bool on; /* of `path` */
    struct fstab_line line;
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str path = resource_value(r, "path")->text;
    struct str state = resource_value(r, "state")->text;
    struct wanted *w = ARENA_NEW(p->out, struct wanted);
    *w = (struct wanted){
        .path = path,
        .all_off = str_eq(state, STR("allOff")),
        .on = str_eq(state, STR("on")),
        .line = { .key = { .swap = true, .device = path },
                  .wanted = str_eq(state, STR("on")),
                  .any = true,
                  .entry = { .device = path,
                             .path = STR("none"),
                             .type = STR("swap"),
                             .options = STR("sw") } },
    };
    if (w->all_off == (path.n > 0)) {
        return err_set(err, ERR_INVALID,
                       "field 'path': want it, and with 'state: allOff' want it not");
    }
    p->resource->prepared = w;
    p->resource->id = arena_printf(p->out, "swap:" STR_FMT, STR_ARG(path));
    fstab_line_prepare(p);
    if (path.n > 0) {
        resource_uses(p, "path", path);
    }
    return 0;
}

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

struct active {
    struct str paths[ACTIVE_MAX];
    uint32_t n;
};

static int look(struct resource_call *call, struct active *ret, struct err *err)
{
    struct str text = STR("");
    bool exists;
    ret->n = 0;
    int r = root_slurp(call->root, STR("/proc/swaps"), ROOT_WALK_KERNEL, call->tmp, &text, &exists,
                       err);
    while (r == 0 && exists && ret->n < ACTIVE_MAX &&
           kernel_swap_next(&text, call->tmp, &ret->paths[ret->n])) {
        ret->n++;
    }
    return r;
}

static int find_active(struct resource_call *call, const struct active *active, struct str path,
                       bool *ret, struct err *err)
{
    int r = 0;
    *ret = false;
    for (uint32_t i = 0; i < active->n && r == 0 && !*ret; i++) {
        r = path_is_same(call, active->paths[i], path, ret, err);
    }
    return r;
}

static int check(struct resource_call *call, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    struct active active;
    bool found = false;
    int r = look(call, &active, err);
    r = r < 0 || w->all_off ? r : find_active(call, &active, w->path, &found, err);
    if (r < 0) {
        return r;
    }
    found = w->all_off ? active.n > 0 : found;
    if (found != w->on) {
        resource_differs(call, "state", found ? STR("on") : STR("off"),
                         found ? STR("off") : STR("on"));
        call->disruption = DISRUPTION_VISIT;
    }
    return resource_value(call->resource, "persist")->truth ? fstab_line_check(call, &w->line, err)
                                                            : 0;
}

/* ── apply ─────────────────────────────────────────────────────────────────────────────────── */

static int ask(struct resource_call *call, bool on, struct str what, struct tool *ret,
               struct err *err)
{
    static const char *const swapon[] = { "/usr/sbin/swapon", "/sbin/swapon", NULL };
    static const char *const swapoff[] = { "/usr/sbin/swapoff", "/sbin/swapoff", NULL };
    struct str program;
    int r = tool_find(call, on ? swapon : swapoff, &program, err);
    if (r == 0) {
        tool_add(ret, program);
        tool_add(ret, what);
    }
    return r;
}

static int next(struct resource_call *call, const void *ctx, struct tool *ret, struct err *err)
{
    const struct wanted *w = ctx;
    struct active active;
    bool found;
    int r = look(call, &active, err);
    if (r < 0 || (w->all_off && active.n == 0)) {
        return r;
    }
    if (w->all_off) {
        return ask(call, false, STR("-a"), ret, err);
    }
    r = find_active(call, &active, w->path, &found, err);
    return r < 0 || found == w->on ? r : ask(call, w->on, w->path, ret, err);
}

static int apply(struct resource_call *call, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    int r = call->step == 0 && resource_value(call->resource, "persist")->truth
                ? fstab_line_apply(call, &w->line, err)
                : 0;
    return r < 0 ? r : tool_run_all(call, next, w, err);
}

/* ── originals ─────────────────────────────────────────────────────────────────────────────── */

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer out = json_writer_on(&json);
    struct active active;
    bool found = false;
    int r = look(call, &active, err);
    r = r < 0 || w->all_off ? r : find_active(call, &active, w->path, &found, err);
    if (r < 0) {
        return r;
    }
    jw_obj(&out);
    jw_pair_bool(&out, "on", found);
    jw_key(&out, STR("active"));
    jw_strs(&out, active.paths, w->all_off ? active.n : 0);
    r = fstab_line_save(call, &w->line, &out, ret, err);
    jw_obj_end(&out);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return r;
}

/* The first of those that were on and are not. */
static int restore_all_next(struct resource_call *call, const void *ctx, struct tool *ret,
                            struct err *err)
{
    const struct jval *paths = ctx;
    struct active active;
    int r = look(call, &active, err);
    JVAL_EACH (paths, path) {
        bool found = false;
        r = r < 0 ? r : find_active(call, &active, jval_str(path), &found, err);
        if (r < 0 || !found) {
            return r < 0 ? r : ask(call, true, jval_str(path), ret, err);
        }
    }
    return r;
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct wanted *own = call->resource->prepared;
    const struct jval *was = NULL;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    if (r < 0 || (original == NULL && !own->on)) {
        return r; /* to remove what is off means nothing */
    }
    if (call->step == 0 && resource_value(call->resource, "persist")->truth) {
        r = fstab_line_restore(call, &own->line, original, was, err);
    }
    if (r < 0 || own->all_off) {
        return r < 0 ? r : tool_run_all(call, restore_all_next, jval_get(was, STR("active")), err);
    }
    struct wanted w = { .path = own->path, .on = jval_bool(jval_get(was, STR("on")), false) };
    return tool_run_all(call, next, &w, err);
}

const struct resource_type resource_type_swap = {
    .name = "swap",
    .fields = FIELD_TABLE(fields),
    .help = "what the machine swaps to, now and after the next start; a change waits until the "
            "node is out of service",
    .example = "state: allOff",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { .kind = WATCH_SWAPS }, { WATCH_PATH, .path = "/etc/fstab" } },
};
