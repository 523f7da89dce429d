/* service: a unit of systemd that runs or does not, and is started with the machine or is not. */
#include "agent/type/pods_depend.h"
#include "agent/type/type.h"
#include "agent/type/unit_ask.h"
#include "base/buf.h"
#include "format/json_writer.h"

static const struct field fields[] = {
    { "unit", FIELD_TEXT, .required = true, .help = "its name; .service need not be written" },
    { "state", FIELD_CHOICE, .initial = "running", .choices = "running|stopped|unmanaged",
      .help = "unmanaged: either will do" },
    { "enabled", FIELD_SCALAR,
      .help = "true: it is started with the machine; false: it is not; masked: nothing can start "
              "it; nothing: any of these" },
    { "onRefresh", FIELD_CHOICE, .initial = "Restart",
      .choices = "Restart|ReloadOrRestart|TryRestart|None",
      .help = "what is done when something that notifies it has changed" },
    { "startTimeout", FIELD_DURATION, .initial = "90s", .help = "how long a start may take" },
    { "resetFailed", FIELD_BOOL, .initial = "true",
      .help = "a unit that failed too often is given another try" },
};

enum enabled { ENABLED_ANY, ENABLED_TRUE, ENABLED_FALSE, ENABLED_MASKED };

struct service {
    struct str unit;
    struct str state;
    enum enabled enabled;
    bool out_of_service; /* pods depend on it: it is not stopped under them */
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct service *s = ARENA_NEW(p->out, struct service);
    struct str name = resource_value(r, "unit")->text;
    struct str enabled = resource_value(r, "enabled")->text;
    if (!unit_full_name(name, p->out, &s->unit)) {
        return err_set(err, ERR_INVALID,
                       "field 'unit': found '" STR_FMT "', want a name such as chrony.service",
                       STR_ARG(str_sub(name, 0, 64)));
    }
    s->state = resource_value(r, "state")->text;
    s->enabled = str_eq(enabled, STR("true"))     ? ENABLED_TRUE
                 : str_eq(enabled, STR("false"))  ? ENABLED_FALSE
                 : str_eq(enabled, STR("masked")) ? ENABLED_MASKED
                                                  : ENABLED_ANY;
    if (s->enabled == ENABLED_ANY && resource_value(r, "enabled")->given) {
        return err_set(err, ERR_INVALID,
                       "field 'enabled': found '" STR_FMT "', want true, false or masked",
                       STR_ARG(str_sub(enabled, 0, 64)));
    }
    if (s->enabled == ENABLED_MASKED && str_eq(s->state, STR("running"))) {
        return err_set(err, ERR_INVALID, "field 'enabled': found 'masked' beside 'state: running'");
    }
    if (resource_value(r, "startTimeout")->number == 0) {
        return err_set(err, ERR_INVALID, "field 'startTimeout': want it above 0");
    }
    s->out_of_service = pods_depend_on(s->unit);
    p->resource->prepared = s;
    p->resource->id = arena_printf(p->out, "service:" STR_FMT, STR_ARG(s->unit));
    struct str path = arena_printf(p->out, "/etc/systemd/system/" STR_FMT, STR_ARG(s->unit));
    struct str package;
    resource_uses(p, "path", path);
    resource_uses(p, "below", arena_printf(p->out, STR_FMT ".d", STR_ARG(path)));
    if (str_cut_suffix(s->unit, STR(".service"), &package)) {
        resource_uses(p, "package", package); /* which often has that name */
    }
    return 0;
}

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

static bool is_one_of(struct str word, const char *list)
{
    struct str rest = str_from(list);
    struct str one;
    while (str_split_next(&rest, '|', &one)) {
        if (str_eq(one, word)) {
            return true;
        }
    }
    return false;
}

/* What is on its way to be so is not drift. */
static bool state_is_right(const struct service *s, const struct unit_reply *found)
{
    if (str_eq(s->state, STR("running"))) {
        return is_one_of(found->active, "active|activating|reloading|refreshing");
    }
    return str_eq(s->state, STR("unmanaged")) ||
           is_one_of(found->active, "inactive|failed|deactivating");
}

/* Units without [Install] are neither; they start when somebody needs them. */
static bool enabled_is_right(enum enabled want, struct str file)
{
    switch (want) {
    case ENABLED_TRUE:
        return is_one_of(file, "enabled|static|indirect|alias|generated|transient");
    case ENABLED_FALSE:
        return is_one_of(file, "disabled|static|indirect|generated|transient|masked|");
    case ENABLED_MASKED:
        return str_eq(file, STR("masked"));
    default:
        return true;
    }
}

static int check(struct resource_call *call, struct err *err)
{
    const struct service *s = call->resource->prepared;
    const struct unit_reply *found;
    enum disruption disturbing = s->out_of_service ? DISRUPTION_VISIT : DISRUPTION_WINDOW;
    int r = unit_look(call, s->unit, &found, err);
    if (r != 0) {
        return r;
    }
    if (!state_is_right(s, found)) {
        resource_differs(call, "state",
                         str_eq(found->load, STR("loaded")) ? found->active : found->load,
                         s->state);
        if (str_eq(s->state, STR("stopped"))) {
            call->disruption = disturbing;
        }
    }
    if (!enabled_is_right(s->enabled, found->file)) {
        resource_differs(call, "enabled", found->file.n > 0 ? found->file : STR("(none)"),
                         resource_value(call->resource, "enabled")->text);
    }
    if (found->need_reload) {
        resource_differs(call, "files", STR("changed"), STR("read"));
    }
    bool refresh = call->refresh &&
                   !str_eq(resource_value(call->resource, "onRefresh")->text, STR("None")) &&
                   is_one_of(found->active, "active|activating|reloading");
    call->disruption = refresh ? disturbing : call->disruption;
    return 0;
}

/* ── apply ─────────────────────────────────────────────────────────────────────────────────── */

static enum unit_verb next_enabled(const struct service *s, const struct unit_reply *found)
{
    if (enabled_is_right(s->enabled, found->file)) {
        return UNIT_LOOK;
    }
    bool masked = str_eq(found->file, STR("masked"));
    return s->enabled == ENABLED_MASKED ? UNIT_MASK
           : masked                     ? UNIT_UNMASK
           : s->enabled == ENABLED_TRUE ? UNIT_ENABLE
                                        : UNIT_DISABLE;
}

static enum unit_verb next(struct resource_call *call, const struct unit_reply *found,
                           const void *ctx)
{
    const struct service *s = ctx;
    if (found->need_reload ||
        (str_eq(found->load, STR("not-found")) && !unit_was_ordered(call, UNIT_RELOAD_MANAGER))) {
        return UNIT_RELOAD_MANAGER;
    }
    enum unit_verb verb = next_enabled(s, found);
    if (verb != UNIT_LOOK || state_is_right(s, found)) {
        return verb;
    }
    if (str_eq(s->state, STR("stopped"))) {
        return UNIT_STOP;
    }
    bool again = str_eq(found->active, STR("failed")) &&
                 resource_value(call->resource, "resetFailed")->truth &&
                 !unit_was_ordered(call, UNIT_RESET_FAILED);
    return again ? UNIT_RESET_FAILED : UNIT_START;
}

static int run_all(struct resource_call *call, const struct service *s, unit_next_fn fn,
                   struct err *err)
{
    return unit_run_all(call, s->unit, resource_value(call->resource, "startTimeout")->number, fn,
                        s, err);
}

static int apply(struct resource_call *call, struct err *err)
{
    int r = run_all(call, call->resource->prepared, next, err);
    /* One that was just started has read what has changed. */
    call->refreshed = call->refreshed || (r == 0 && unit_was_ordered(call, UNIT_START));
    return r;
}

static enum unit_verb next_refresh(struct resource_call *call, const struct unit_reply *found,
                                   const void *ctx)
{
    const struct service *s = ctx;
    struct str how = resource_value(call->resource, "onRefresh")->text;
    if (found->need_reload) {
        return UNIT_RELOAD_MANAGER;
    }
    if (str_eq(how, STR("None"))) {
        return UNIT_LOOK;
    }
    /* One that is not to run is not started by news. */
    return !str_eq(s->state, STR("running")) || str_eq(how, STR("TryRestart")) ? UNIT_TRY_RESTART
           : str_eq(how, STR("Restart"))                                       ? UNIT_RESTART
                                         : UNIT_RELOAD_OR_RESTART;
}

static int refresh(struct resource_call *call, struct err *err)
{
    return run_all(call, call->resource->prepared, next_refresh, err);
}

/* ── originals ─────────────────────────────────────────────────────────────────────────────── */

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct service *s = call->resource->prepared;
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    const struct unit_reply *found;
    int r = unit_look(call, s->unit, &found, err);
    if (r != 0) {
        return r;
    }
    jw_obj(&w);
    jw_pair_bool(&w, "running", is_one_of(found->active, "active|activating|reloading"));
    jw_pair(&w, "file", found->file);
    jw_obj_end(&w);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return 0;
}

/* A service cannot be removed, only its unit: without an original it stays as it is. */
static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct service *own = call->resource->prepared;
    const struct jval *was = NULL;
    if (original == NULL) {
        return 0;
    }
    int r = json_parse(original->json, 0, call->tmp, &was, err);
    if (r < 0) {
        return r;
    }
    struct str file = jval_str(jval_get(was, STR("file")));
    struct service s = *own;
    s.state = str_eq(own->state, STR("unmanaged"))              ? own->state
              : jval_bool(jval_get(was, STR("running")), false) ? STR("running")
                                                                : STR("stopped");
    s.enabled = own->enabled == ENABLED_ANY    ? ENABLED_ANY
                : str_eq(file, STR("enabled")) ? ENABLED_TRUE
                : str_eq(file, STR("masked"))  ? ENABLED_MASKED
                                               : ENABLED_FALSE;
    return run_all(call, &s, next, err);
}

const struct resource_type resource_type_service = {
    .name = "service",
    .fields = FIELD_TABLE(fields),
    .help = "a service or another unit of systemd: whether it runs, and whether it is started with "
            "the machine; restarts and stops wait for a window, those of the kubelet and of "
            "container runtimes until the node is out of service",
    .example = "unit: chrony, enabled: true",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .refresh = refresh,
    .watch = { { .kind = WATCH_CLOCK } },
};
