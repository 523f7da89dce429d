/*
 * package: packages of the machine, by apt-get. What is there is read from dpkg's own file, so a
 * look costs milliseconds and takes no lock.
 *
 * A dpkg that was interrupted is told to go on first, because nothing else works until then.
 */
#include "agent/dpkg_status.h"
#include "agent/type/path.h"
#include "agent/type/pods_depend.h"
#include "agent/type/tool.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

#define STATUS_PATH STR("/var/lib/dpkg/status")
#define UPDATES_PATH STR("/var/lib/dpkg/updates")
#define PACKAGES_MAX 200u /* of one resource: the words of one command */
#define OPTIONS_MAX 16u
#define WORK_TIME MINUTES(30) /* downloads and slow maintainer scripts */

static const struct field fields[] = {
    { "package", FIELD_TEXT, .help = "its name, perhaps with `:arch`" },
    { "packages", FIELD_TEXTS, .help = "or: several, in one go" },
    { "state", FIELD_CHOICE, .initial = "installed", .choices = "installed|latest|absent|purged",
      .help = "latest: as new as the package lists of the machine know; purged: its configuration "
              "goes, too" },
    { "version", FIELD_TEXT, .help = "of `package`, to the letter; nothing: any" },
    { "allowDowngrade", FIELD_BOOL, .initial = "false", .help = "`version` may be older" },
    { "hold", FIELD_BOOL,
      .help = "whether others are kept from upgrading it; nothing: it stays as it is" },
    { "recommends", FIELD_BOOL, .initial = "false", .help = "install what it recommends, too" },
    { "noStart", FIELD_BOOL, .initial = "true",
      .help = "its services are neither started nor restarted by the installation; a `service` "
              "does that" },
    { "options", FIELD_TEXTS, .help = "further options of apt-get" },
    { "lockTimeout", FIELD_DURATION, .initial = "5m",
      .help = "how long to wait for another package manager to end" },
};

enum want { WANT_INSTALLED, WANT_LATEST, WANT_ABSENT, WANT_PURGED };

struct item {
    struct str name;
    enum want want;
    struct str version; /* empty = any */
    bool hold_given;
    bool hold;
};

struct wanted {
    struct item *items;
    uint32_t n;
    bool downgrade;
    bool out_of_service; /* pods depend on one of them */
};

/* ── prepare ───────────────────────────────────────────────────────────────────────────────── */

static int add_item(const struct resource *r, struct str name, struct wanted *w, struct err *err)
{
    struct str state = resource_value(r, "state")->text;
    const struct field_value *hold = resource_value(r, "hold");
    if (!dpkg_name_is_good(name)) {
        return err_set(err, ERR_INVALID, "found '" STR_FMT "', want a name such as chrony",
                       STR_ARG(str_sub(name, 0, 64)));
    }
    w->items[w->n++] = (struct item){ .name = name,
                                      .want = str_eq(state, STR("latest"))   ? WANT_LATEST
                                              : str_eq(state, STR("absent")) ? WANT_ABSENT
                                              : str_eq(state, STR("purged")) ? WANT_PURGED
                                                                             : WANT_INSTALLED,
                                      .version = resource_value(r, "version")->text,
                                      .hold_given = hold->given,
                                      .hold = hold->truth };
    w->out_of_service = w->out_of_service || pods_depend_on(name);
    return 0;
}

static int check_together(const struct resource *r, struct err *err)
{
    const struct field_value *version = resource_value(r, "version");
    struct str state = resource_value(r, "state")->text;
    bool installed = str_eq(state, STR("installed"));
    if (resource_value(r, "package")->given == resource_value(r, "packages")->given) {
        return err_set(err, ERR_INVALID, "fields 'package' and 'packages': want one of them");
    }
    if (resource_value(r, "packages")->item_n > PACKAGES_MAX ||
        resource_value(r, "options")->item_n > OPTIONS_MAX) {
        return err_set(err, ERR_LIMIT, "want at most %u packages and %u options", PACKAGES_MAX,
                       OPTIONS_MAX);
    }
    if (version->given && (!installed || !resource_value(r, "package")->given ||
                           !dpkg_version_is_good(version->text))) {
        return err_set(
            err, ERR_INVALID,
            "field 'version': want a version such as 1.2-3, beside 'package' and 'state: "
            "installed'");
    }
    if (resource_value(r, "hold")->truth && !installed && !str_eq(state, STR("latest"))) {
        return err_set(err, ERR_INVALID, "field 'hold': found true beside 'state: " STR_FMT "'",
                       STR_ARG(state));
    }
    return 0;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    const struct field_value *one = resource_value(r, "package");
    const struct field_value *many = resource_value(r, "packages");
    struct wanted *w = ARENA_NEW(p->out, struct wanted);
    int result = check_together(r, err);
    if (result < 0) {
        return result;
    }
    w->items = ARENA_ARRAY(p->out, struct item, many->item_n + 1);
    w->downgrade = resource_value(r, "allowDowngrade")->truth;
    if (one->given && add_item(r, one->text, w, err) < 0) {
        return err_wrap(err, "field 'package'");
    }
    struct str list = one->text;
    for (uint32_t i = 0; i < many->item_n; i++) {
        if (add_item(r, many->items[i], w, err) < 0) {
            return err_wrap(err, "field 'packages'");
        }
        list = arena_printf(p->out, STR_FMT "%s" STR_FMT, STR_ARG(list), i > 0 ? "," : "",
                            STR_ARG(many->items[i]));
    }
    p->resource->prepared = w;
    p->resource->id = arena_printf(p->out, "package:" STR_FMT, STR_ARG(str_sub(list, 0, 128)));
    p->resource->provides =
        one->given ? arena_printf(p->out, "package:" STR_FMT, STR_ARG(one->text)) : STR_NONE;
    resource_uses(p, "below", STR("/etc/apt"));
    return 0;
}

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

static int read_status(struct resource_call *call, struct str *ret, struct err *err)
{
    bool exists;
    *ret = STR("");
    int r = root_slurp(call->root, STATUS_PATH, 0, call->tmp, ret, &exists, err);
    return r < 0 || exists ? r
                           : err_set(err, ERR_NOTFOUND,
                                     "there is no /var/lib/dpkg/status; only machines with apt are "
                                     "served");
}

static bool is_right(const struct item *item, const struct dpkg_package *found)
{
    switch (item->want) {
    case WANT_ABSENT:
        return found->state.n == 0 || str_eq(found->state, STR("config-files")) ||
               str_eq(found->state, STR("not-installed"));
    case WANT_PURGED:
        return found->state.n == 0 || str_eq(found->state, STR("not-installed"));
    default:
        return dpkg_is_installed(found) &&
               (item->version.n == 0 || str_eq(item->version, found->version));
    }
}

static bool hold_is_right(const struct item *item, const struct dpkg_package *found)
{
    return !item->hold_given || item->hold == str_eq(found->want, STR("hold"));
}

static struct dpkg_package find(struct str status, const struct item *item)
{
    struct dpkg_package found = { 0 };
    (void)dpkg_find(status, item->name, &found); /* zero without one */
    return found;
}

/* ── check ─────────────────────────────────────────────────────────────────────────────────── */

static void tell_item(struct resource_call *call, const struct item *item, struct str status)
{
    struct dpkg_package found = find(status, item);
    struct str was = dpkg_is_installed(&found) ? found.version
                     : found.state.n > 0       ? found.state
                                               : STR("absent");
    if (!is_right(item, &found)) {
        struct str want =
            item->version.n > 0 ? item->version : resource_value(call->resource, "state")->text;
        resource_differs(
            call, "package",
            arena_printf(call->tmp, STR_FMT " " STR_FMT, STR_ARG(item->name), STR_ARG(was)),
            arena_printf(call->tmp, STR_FMT " " STR_FMT, STR_ARG(item->name), STR_ARG(want)));
    }
    if (!hold_is_right(item, &found)) {
        resource_differs(call, "hold", item->hold ? STR("false") : STR("true"),
                         item->hold ? STR("true") : STR("false"));
    }
}

static void add_command(const struct resource_call *call, struct tool *t)
{
    static const struct str base[] = {
        STR_INIT("/usr/bin/apt-get"),
        STR_INIT("-q"),
        STR_INIT("-y"),
        STR_INIT("-o"),
        STR_INIT("Dpkg::Options::=--force-confdef"),
        STR_INIT("-o"),
        STR_INIT("Dpkg::Options::=--force-confold"),
        STR_INIT("-o"),
    };
    static const struct str quiet[] = {
        STR_INIT("DEBIAN_FRONTEND=noninteractive"), STR_INIT("APT_LISTCHANGES_FRONTEND=none"),
        STR_INIT("NEEDRESTART_SUSPEND=1"),
        STR_INIT("SYSTEMD_OFFLINE=1"), /* systemctl of maintainer scripts starts nothing */
    };
    const struct field_value *options = resource_value(call->resource, "options");
    usec_t lock = resource_value(call->resource, "lockTimeout")->number;
    for (size_t i = 0; i < ARRAY_LEN(base); i++) {
        tool_add(t, base[i]);
    }
    tool_add(t,
             arena_printf(call->tmp, "DPkg::Lock::Timeout=%lld", (long long)(lock / SECONDS(1))));
    if (!resource_value(call->resource, "recommends")->truth) {
        tool_add(t, STR("--no-install-recommends"));
    }
    if (resource_value(call->resource, "hold")->given) {
        tool_add(t, STR("--allow-change-held-packages")); /* it is our own; others' count */
    }
    for (uint32_t i = 0; i < options->item_n; i++) {
        tool_add(t, options->items[i]);
    }
    bool no_start = resource_value(call->resource, "noStart")->truth;
    t->env = quiet;
    t->env_n = (uint32_t)ARRAY_LEN(quiet) - (no_start ? 0 : 1);
    t->time_max = WORK_TIME + lock;
}

static int ask_simulation(struct resource_call *call, const void *ctx, struct tool *ret,
                          struct err *err)
{
    const struct wanted *w = ctx;
    (void)err; /* nothing can fail here */
    add_command(call, ret);
    tool_add(ret, STR("--simulate"));
    tool_add(ret, STR("install"));
    for (uint32_t i = 0; i < w->n; i++) {
        tool_add(ret, w->items[i].name);
    }
    return 0;
}

/* What is newer is known only to apt. */
static int check_latest(struct resource_call *call, const struct wanted *w, struct err *err)
{
    int r = tool_run_all(call, ask_simulation, w, err);
    for (uint32_t i = 0; r == 0 && i < w->n; i++) {
        if (apt_would_install(call->result->out, w->items[i].name)) {
            resource_differs(call, "package", w->items[i].name,
                             arena_printf(call->tmp, STR_FMT " latest", STR_ARG(w->items[i].name)));
        }
    }
    return r;
}

static int check(struct resource_call *call, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    struct str status;
    int r = read_status(call, &status, err);
    for (uint32_t i = 0; r == 0 && i < w->n; i++) {
        tell_item(call, &w->items[i], status);
    }
    if (r == 0 && call->difference_n == 0 && w->n > 0 && w->items[0].want == WANT_LATEST) {
        r = check_latest(call, w, err);
    }
    if (r == 0 && call->difference_n > 0) {
        call->disruption = w->out_of_service ? DISRUPTION_VISIT : DISRUPTION_WINDOW;
    }
    return r;
}

/* ── apply ─────────────────────────────────────────────────────────────────────────────────── */

static int is_interrupted(struct resource_call *call, struct str status, bool *ret, struct err *err)
{
    struct str *names;
    uint32_t n;
    int r = root_list(call->root, UPDATES_PATH, 0, call->tmp, &names, &n, err);
    *ret = r == 0 && (n > 0 || dpkg_is_interrupted(status));
    return r;
}

static void ask_configure(struct tool *ret)
{
    static const struct str env[] = { STR_INIT("DEBIAN_FRONTEND=noninteractive") };
    tool_add(ret, STR("/usr/bin/dpkg"));
    tool_add(ret, STR("--force-confdef"));
    tool_add(ret, STR("--force-confold"));
    tool_add(ret, STR("--configure"));
    tool_add(ret, STR("-a"));
    ret->env = env;
    ret->env_n = (uint32_t)ARRAY_LEN(env);
    ret->time_max = WORK_TIME;
}

/* One command for all packages that are to be installed, and one for those that are to go. */
static bool ask_change(struct resource_call *call, const struct wanted *w, struct str status,
                       bool gone, struct tool *ret)
{
    uint32_t n = 0;
    struct tool t = { 0 };
    add_command(call, &t);
    if (w->downgrade && !gone) {
        tool_add(&t, STR("--allow-downgrades"));
    }
    bool purge = w->n > 0 && w->items[0].want == WANT_PURGED;
    tool_add(&t, !gone ? STR("install") : purge ? STR("purge") : STR("remove"));
    for (uint32_t i = 0; i < w->n; i++) {
        const struct item *item = &w->items[i];
        struct dpkg_package found = find(status, item);
        bool goes = item->want == WANT_ABSENT || item->want == WANT_PURGED;
        bool latest = item->want == WANT_LATEST && call->memory == NULL;
        if (goes != gone || (!latest && is_right(item, &found))) {
            continue;
        }
        tool_add(&t, item->version.n > 0 ? arena_printf(call->tmp, STR_FMT "=" STR_FMT,
                                                        STR_ARG(item->name), STR_ARG(item->version))
                                         : item->name);
        n++;
    }
    if (n > 0) {
        *ret = t;
        call->memory = gone ? NULL : call->tmp; /* noted: what was installed now is the latest */
    }
    return n > 0;
}

static bool ask_hold(const struct wanted *w, struct str status, bool hold, struct tool *ret)
{
    for (uint32_t i = 0; i < w->n; i++) {
        struct dpkg_package found = find(status, &w->items[i]);
        if (w->items[i].hold_given && w->items[i].hold == hold &&
            !hold_is_right(&w->items[i], &found)) {
            if (ret->n == 0) {
                tool_add(ret, STR("/usr/bin/apt-mark"));
                tool_add(ret, hold ? STR("hold") : STR("unhold"));
            }
            tool_add(ret, w->items[i].name);
        }
    }
    return ret->n > 0;
}

static int next(struct resource_call *call, const void *ctx, struct tool *ret, struct err *err)
{
    const struct wanted *w = ctx;
    struct str status;
    bool interrupted;
    int r = read_status(call, &status, err);
    r = r < 0 ? r : is_interrupted(call, status, &interrupted, err);
    if (r < 0) {
        return r;
    }
    if (interrupted && call->step == 0) {
        ask_configure(ret);
        return 0;
    }
    if (!ask_hold(w, status, /* hold= */ false, ret) &&
        !ask_change(call, w, status, /* gone= */ true, ret) &&
        !ask_change(call, w, status, /* gone= */ false, ret)) {
        (void)ask_hold(w, status, /* hold= */ true, ret); /* nothing is left otherwise */
    }
    return 0;
}

static int apply(struct resource_call *call, struct err *err)
{
    return tool_run_all(call, next, call->resource->prepared, err);
}

/* ── originals ─────────────────────────────────────────────────────────────────────────────── */

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct wanted *w = call->resource->prepared;
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer out = json_writer_on(&json);
    struct str status;
    int r = read_status(call, &status, err);
    jw_obj(&out);
    for (uint32_t i = 0; r == 0 && i < w->n; i++) {
        struct dpkg_package found = find(status, &w->items[i]);
        jw_key(&out, w->items[i].name);
        jw_obj(&out);
        jw_pair(&out, "version", dpkg_is_installed(&found) ? found.version : STR(""));
        jw_pair_bool(&out, "hold", str_eq(found.want, STR("hold")));
        jw_obj_end(&out);
    }
    jw_obj_end(&out);
    ret->json = arena_str(call->tmp, buf_str(&json));
    return r;
}

/* What was not there goes; what was there comes back in its version. */
static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct wanted *own = call->resource->prepared;
    const struct jval *was = NULL;
    int r = original == NULL ? 0 : json_parse(original->json, 0, call->tmp, &was, err);
    if (r < 0 || (original == NULL && own->items[0].want >= WANT_ABSENT)) {
        return r; /* what should not be is not brought back by being removed */
    }
    struct wanted w = { .n = own->n, .downgrade = true };
    w.items = ARENA_ARRAY(call->tmp, struct item, own->n);
    for (uint32_t i = 0; i < own->n; i++) {
        const struct jval *old = jval_get(was, own->items[i].name);
        struct str version = jval_str(jval_get(old, STR("version")));
        w.items[i] = (struct item){ .name = own->items[i].name,
                                    .want = version.n > 0 ? WANT_INSTALLED : WANT_ABSENT,
                                    .version = version,
                                    .hold_given = own->items[i].hold_given && version.n > 0,
                                    .hold = jval_bool(jval_get(old, STR("hold")), false) };
    }
    return tool_run_all(call, next, &w, err);
}

const struct resource_type resource_type_package = {
    .name = "package",
    .fields = FIELD_TABLE(fields),
    .help = "packages of a machine with apt; changes wait for a window, those of the kubelet and "
            "of container runtimes until the node is out of service. Package lists are not "
            "updated: that is an `exec`",
    .example = "package: chrony, state: latest",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .path = "/var/lib/dpkg/status" } },
};
