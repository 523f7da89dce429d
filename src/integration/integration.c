#include "integration/integration.h"

#include "base/alloc.h"
#include "integration/providers.h"

#define PROBLEMS_SHOWN 20u

/* Another provider is its file and its line here. */
const struct integration_provider *const integration_providers[] = {
    &integration_esx,
    &integration_kubernikus,
};
const uint32_t integration_provider_n = ARRAY_LEN(integration_providers);
_Static_assert(ARRAY_LEN(integration_providers) <= INTEGRATIONS_MAX, "they have their places");

const struct integration_provider *integration_find_provider(struct str name)
{
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        if (str_eq(str_from(integration_providers[i]->name), name)) {
            return integration_providers[i];
        }
    }
    return NULL;
}

static struct str base_name(struct str path)
{
    struct str rest = path;
    struct str name = path;
    while (str_split_next(&rest, '/', &name)) {
    }
    return name;
}

const struct integration_provider *integration_provider_of_file(struct str path)
{
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        if (str_eq(base_name(str_from(integration_providers[i]->file)), base_name(path))) {
            return integration_providers[i];
        }
    }
    return NULL;
}

int integration_load(const struct integration_provider *provider, struct str text,
                     struct ucfg_env env, struct arena *out, void **ret, struct problems *problems)
{
    struct ucfg u;
    void *config = arena_alloc(out, provider->config_size);
    if (ucfg_load(text, env, out, &u, problems) == 0) {
        provider->read(&u, config, problems);
    }
    problems_sort(problems);
    if (problems->errors > 0) {
        return -ERR_INVALID;
    }
    *ret = config;
    return 0;
}

/* ── configuration ─────────────────────────────────────────────────────────────────────────── */

static void active_free(struct integration_active *a)
{
    if (a != NULL) {
        arena_wipe(&a->memory); /* passwords are in it */
        alloc_free(a);
    }
}

static void integration_reject(struct integration *in, struct str file, struct str why)
{
    bool is_new = !str_eq(buf_str(&in->config_error), why);
    buf_reset(&in->file);
    buf_add(&in->file, file);
    metric_set(in->config_valid, 0);
    if (!is_new) {
        return;
    }
    buf_reset(&in->config_error);
    buf_add(&in->config_error, why);
    log_error(in->core->log, "Failed to parse configuration file",
              KV_TEXT("integration", in->provider->name), KV_STR("error", why),
              KV_TEXT("in_force", in->active == NULL ? "nothing" : "the configuration before"));
}

/* One problem a line: "kubernikus.yaml:3:5: …"; the errors, or the warnings. */
static void print_problems(const struct problems *problems, struct str file, bool warnings,
                           struct buf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < problems->n && n < PROBLEMS_SHOWN; i++) {
        const struct problem *p = &problems->items[i];
        if (p->warning != warnings) {
            continue;
        }
        n++;
        buf_add(out, out->n > 0 ? STR("\n") : STR(""));
        buf_add(out, file);
        if (p->pos.line > 0) {
            buf_printf(out, ":%u:%u", p->pos.line, p->pos.column);
        }
        buf_add(out, STR(": "));
        buf_add(out, p->text);
    }
}

void integration_configure_failed(struct integration *in, struct str file, const struct err *err)
{
    integration_reject(in, file, str_from(err->msg));
}

int integration_configure(struct integration *in, struct str file, struct str text,
                          struct ucfg_env env)
{
    struct integration_active *a = ALLOC_NEW(struct integration_active);
    struct problems problems = { .out = &a->memory };
    CLEANUP(buf_done)
    struct buf said = { 0 };
    int r = integration_load(in->provider, text, env, &a->memory, &a->config, &problems);
    print_problems(&problems, file, /* warnings= */ r == 0, &said);
    if (r < 0) {
        integration_reject(in, file, buf_str(&said));
        active_free(a);
        return r;
    }
    struct integration_active *old = in->active;
    in->active = a;
    in->config = a->config;
    in->loaded = loop_wall(in->core->loop);
    buf_reset(&in->file);
    buf_add(&in->file, file);
    buf_reset(&in->config_error);
    metric_set(in->config_valid, 1);
    log_info(in->core->log, "configuration is in force", KV_TEXT("integration", in->provider->name),
             KV_STR("file", file));
    if (said.n > 0) {
        log_warn(in->core->log, "the configuration may not mean what it was meant to",
                 KV_TEXT("integration", in->provider->name), KV_STR("what", buf_str(&said)));
    }
    if (in->provider->configure != NULL) {
        in->provider->configure(in);
    }
    active_free(old);
    integration_wake(in);
    return 0;
}

/* ── turns ─────────────────────────────────────────────────────────────────────────────────── */

void integration_wake_at(struct integration *in, usec_t at)
{
    if (at != USEC_NEVER) {
        loop_timer_pull(&in->timer, at);
    }
}

void integration_wake(struct integration *in)
{
    integration_wake_at(in, loop_now(in->core->loop));
}

usec_t integration_wall(const struct integration *in, usec_t at)
{
    return at == USEC_NEVER ? USEC_NEVER
                            : loop_wall(in->core->loop) + (at - loop_now(in->core->loop));
}

void integration_failed(struct integration *in, const struct err *err)
{
    metric_add(in->failures, 1);
    if (activity_failed(&in->note, loop_wall(in->core->loop), str_from(err->msg))) {
        log_error(in->core->log, "an integration failed",
                  KV_TEXT("integration", in->provider->name), KV_ERR(err));
    }
}

static void integration_on_timer(void *ctx)
{
    struct integration *in = ctx;
    /* Otherwise on_may_act and integration_configure ask again. */
    if (in->config != NULL && in->provider->turn != NULL && core_may_act(in->core)) {
        in->provider->turn(in);
    }
}

/* ── as a part of the core ─────────────────────────────────────────────────────────────────── */

static struct integrations *integrations_of(const struct core_part *p)
{
    return CONTAINER_OF((struct core_part *)(uintptr_t)p, struct integrations, part);
}

static void integrations_on_node(struct core_part *p, struct store_item *item,
                                 const void *before UNUSED, bool gone)
{
    struct integrations *all = integrations_of(p);
    for (uint32_t i = 0; i < all->n; i++) {
        struct integration *in = &all->items[i];
        if (in->provider->on_node != NULL) {
            in->provider->on_node(in, item, gone);
        }
    }
}

static void integrations_on_may_act(struct core_part *p)
{
    struct integrations *all = integrations_of(p);
    for (uint32_t i = 0; i < all->n; i++) {
        integration_wake(&all->items[i]);
    }
}

static bool integrations_is_ready(const struct core_part *p, struct str *ret_why)
{
    struct integrations *all = integrations_of(p);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct integration *in = &all->items[i];
        if (in->active == NULL) {
            buf_reset(&all->why);
            buf_printf(&all->why, "%s has no configuration: " STR_FMT, in->provider->title,
                       STR_ARG(in->config_error.n > 0 ? buf_str(&in->config_error)
                                                      : STR("it has not been read yet")));
            *ret_why = buf_str(&all->why);
            return false;
        }
    }
    return true;
}

static bool integrations_is_busy(const struct core_part *p)
{
    const struct integrations *all = integrations_of(p);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct integration *in = &all->items[i];
        if (in->provider->is_busy != NULL && in->provider->is_busy(in)) {
            return true;
        }
    }
    return false;
}

static bool integrations_disturbs(const struct core_part *p, const struct store_item *item)
{
    const struct integrations *all = integrations_of(p);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct integration *in = &all->items[i];
        if (in->provider->disturbs != NULL && in->provider->disturbs(in, item)) {
            return true;
        }
    }
    return false;
}

static void integrations_on_limits(struct core_part *p)
{
    struct integrations *all = integrations_of(p);
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->items[i].provider->on_limits != NULL) {
            all->items[i].provider->on_limits(&all->items[i]);
        }
    }
}

static const struct core_part_ops integrations_ops = {
    .on_node = integrations_on_node,
    .on_arbiter = integrations_on_limits,
    .on_arbiter_turn = integrations_on_limits,
    .disturbs = integrations_disturbs,
    .on_may_act = integrations_on_may_act,
    .is_ready = integrations_is_ready,
    .is_busy = integrations_is_busy,
};

static void integrations_collect(void *ctx)
{
    struct integrations *all = ctx;
    for (uint32_t i = 0; i < all->n; i++) {
        struct integration *in = &all->items[i];
        metric_set(in->failing, in->note.error.n > 0 ? 1 : 0);
        metric_set(in->last_action, (double)in->note.did_at / (double)SECONDS(1));
        if (in->provider->collect != NULL) {
            in->provider->collect(in);
        }
    }
}

static struct metric_series *integration_series(struct metrics *m, const struct metric_spec *spec,
                                                const char *name)
{
    struct str value = str_from(name);
    return metric_series(metrics_family(m, spec), &value);
}

static void integration_init_metrics(struct integration *in, struct metrics *m)
{
    static const struct metric_spec specs[] = {
        { .name = "drydock_integration_config_valid",
          .help = "1 while the configuration file of an integration is in force.",
          .kind = METRIC_GAUGE,
          .labels = { "integration" } },
        { .name = "drydock_integration_failing",
          .help = "1 while what an integration tried last has failed.",
          .kind = METRIC_GAUGE,
          .labels = { "integration" } },
        { .name = "drydock_integration_last_action_timestamp_seconds",
          .help = "When an integration last did something; 0: not since the start.",
          .kind = METRIC_GAUGE,
          .labels = { "integration" } },
        { .name = "drydock_integration_failures_total",
          .help = "Failures of an integration.",
          .kind = METRIC_COUNTER,
          .labels = { "integration" } },
    };
    in->config_valid = integration_series(m, &specs[0], in->provider->name);
    in->failing = integration_series(m, &specs[1], in->provider->name);
    in->last_action = integration_series(m, &specs[2], in->provider->name);
    in->failures = integration_series(m, &specs[3], in->provider->name);
}

static void integrations_add(struct integrations *all, const struct integration_provider *provider,
                             const struct integrations_config *config)
{
    struct integration *in = &all->items[all->n++];
    *in = (struct integration){
        .provider = provider,
        .all = all,
        .core = all->core,
        .outbound = config->outbound,
        .files = config->files,
    };
    loop_timer_init(&in->timer, all->core->loop, integration_on_timer, in);
    integration_init_metrics(in, all->core->config.metrics);
    for (uint32_t i = 0; i < provider->annotation_n; i++) {
        ASSERT(all->part.annotation_n < ARRAY_LEN(all->annotations));
        all->annotations[all->part.annotation_n++] = provider->annotations[i];
    }
}

void integrations_init(struct integrations *all, struct core *core,
                       const struct integrations_config *config)
{
    *all = (struct integrations){ .core = core };
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        if (config->enabled[i]) {
            integrations_add(all, integration_providers[i], config);
        }
    }
    all->part.annotations = all->annotations;
    core_join(core, &all->part, &integrations_ops);
    if (core->config.metrics != NULL) {
        metrics_on_collect(core->config.metrics, integrations_collect, all);
    }
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->items[i].provider->start != NULL) {
            all->items[i].provider->start(&all->items[i]);
        }
    }
}

void integrations_done(struct integrations *all)
{
    if (all->core == NULL) {
        return;
    }
    if (all->core->config.metrics != NULL) {
        metrics_off_collect(all->core->config.metrics, integrations_collect, all);
    }
    core_leave(&all->part);
    for (uint32_t i = 0; i < all->n; i++) {
        struct integration *in = &all->items[i];
        if (in->provider->stop != NULL) {
            in->provider->stop(in);
        }
        loop_timer_done(&in->timer);
        active_free(in->active);
        activity_note_done(&in->note);
        buf_done(&in->file);
        buf_done(&in->config_error);
    }
    buf_done(&all->why);
    all->core = NULL;
}

struct integration *integrations_find(struct integrations *all, struct str name)
{
    for (uint32_t i = 0; i < all->n; i++) {
        if (str_eq(str_from(all->items[i].provider->name), name)) {
            return &all->items[i];
        }
    }
    return NULL;
}

/* ── what people see ───────────────────────────────────────────────────────────────────────── */

void integrations_each(const struct integrations *all,
                       void (*fn)(void *ctx, const struct activity *activity), void *ctx)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const struct integration *in = &all->items[i];
        struct activity activity;
        activity_read(&in->note, str_from(in->provider->name), &activity);
        if (in->config_error.n > 0) {
            activity.error = buf_str(&in->config_error);
            activity.error_at = loop_wall(in->core->loop);
        }
        fn(ctx, &activity);
    }
}

void integrations_each_of_node(const struct integrations *all, struct str node,
                               void (*fn)(void *ctx, const struct activity *activity), void *ctx)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const struct integration *in = &all->items[i];
        struct activity activity = { 0 };
        if (in->provider->node_activity != NULL &&
            in->provider->node_activity(in, node, &activity)) {
            fn(ctx, &activity);
        }
    }
}
