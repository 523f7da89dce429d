#include "tests/swarm/random_config.h"

static const char *const state_names[CONFIG_STATE_COUNT] = {
    [CONFIG_STATE_OPERATIONAL] = "operational",
    [CONFIG_STATE_REQUIRED] = "maintenance-required",
    [CONFIG_STATE_MAINTENANCE] = "in-maintenance",
};

const char *random_config_state_name(enum random_config_state state)
{
    return state_names[state];
}

bool random_config_state_find(struct str name, enum random_config_state *ret)
{
    for (unsigned i = 0; i < CONFIG_STATE_COUNT; i++) {
        if (str_eq(str_from(state_names[i]), name)) {
            *ret = (enum random_config_state)i;
            return true;
        }
    }
    return false;
}

const struct random_config_step *random_config_step_find(const struct random_config *b,
                                                         uint32_t profile,
                                                         enum random_config_state from,
                                                         enum random_config_state to)
{
    const struct random_config_profile *p = &b->profiles[profile];
    for (uint32_t i = 0; i < p->step_n; i++) {
        if (p->steps[i].from == from && p->steps[i].to == to) {
            return &p->steps[i];
        }
    }
    return NULL;
}

bool random_config_profile_find(const struct random_config *b, struct str name, uint32_t *ret)
{
    if (name.n != 2 || name.p[0] != 'p' || name.p[1] < '0') {
        return false;
    }
    *ret = (uint32_t)(name.p[1] - '0');
    return *ret < b->profile_n;
}

/* ── drawing ───────────────────────────────────────────────────────────────────────────────── */

static uint32_t draw_bit(struct rng *rng, uint32_t per_mille, unsigned bit)
{
    return rng_chance(rng, per_mille) ? CONFIG_BIT(bit) : 0;
}

static uint32_t draw_notify(struct rng *rng, uint32_t per_mille)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < RANDOM_CONFIG_NOTIFICATIONS; i++) {
        bits |= draw_bit(rng, per_mille, i);
    }
    return bits;
}

static uint32_t draw_entry_checks(struct rng *rng,
                                  const struct random_config_options *config_options)
{
    uint32_t checks =
        draw_bit(rng, 250, CONFIG_CHECK_WINDOW) | draw_bit(rng, 200, CONFIG_CHECK_STAGGER) |
        draw_bit(rng, 150, CONFIG_CHECK_WAIT) | draw_bit(rng, 100, CONFIG_CHECK_WAIT_EXCLUDE) |
        draw_bit(rng, 150, CONFIG_CHECK_READY) | draw_bit(rng, 100, CONFIG_CHECK_NODE_COUNT) |
        draw_bit(rng, 100, CONFIG_CHECK_ANY_LABEL) | draw_bit(rng, 300, CONFIG_CHECK_PROMETHEUS) |
        draw_bit(rng, 60, CONFIG_CHECK_SEMVER);
    if (config_options->limited) {
        uint32_t both = CONFIG_BIT(CONFIG_CHECK_LIMIT_0) | CONFIG_BIT(CONFIG_CHECK_LIMIT_1);
        checks |=
            rng_chance(rng, 400) ? both : CONFIG_BIT(CONFIG_CHECK_LIMIT_0 + rng_below(rng, 2));
    }
    return checks;
}

static void draw_profile(struct random_config_profile *p, struct rng *rng,
                         const struct random_config_options *config_options)
{
    bool direct = rng_chance(rng, 150);
    uint32_t entry_checks = draw_entry_checks(rng, config_options);
    uint32_t drain = config_options->drains || rng_chance(rng, 250)
                         ? CONFIG_BIT(CONFIG_TRIGGER_DRAIN)
                         : draw_bit(rng, 400, CONFIG_TRIGGER_CORDON);
    uint32_t mark = draw_bit(rng, 300, CONFIG_TRIGGER_MARK);
    bool at_entry = rng_chance(rng, 300);
    uint32_t triggers = at_entry ? 0 : drain | mark;
    p->enter[CONFIG_STATE_MAINTENANCE] = at_entry ? drain | mark : 0;
    if (direct) {
        entry_checks &= ~CONFIG_BIT(CONFIG_CHECK_AFFINITY);
        p->steps[p->step_n++] =
            (struct random_config_step){ CONFIG_STATE_OPERATIONAL, CONFIG_STATE_MAINTENANCE,
                                         entry_checks | CONFIG_BIT(CONFIG_CHECK_NEED), triggers };
    } else {
        entry_checks |=
            draw_bit(rng, 800, CONFIG_CHECK_APPROVED) | draw_bit(rng, 80, CONFIG_CHECK_AFFINITY);
        p->steps[p->step_n++] = (struct random_config_step){
            CONFIG_STATE_OPERATIONAL, CONFIG_STATE_REQUIRED,
            CONFIG_BIT(CONFIG_CHECK_NEED) | draw_bit(rng, 150, CONFIG_CHECK_WAIT), 0
        };
        p->steps[p->step_n++] =
            (struct random_config_step){ CONFIG_STATE_REQUIRED, CONFIG_STATE_MAINTENANCE,
                                         entry_checks | CONFIG_BIT(CONFIG_CHECK_NEED), triggers };
        p->steps[p->step_n++] =
            (struct random_config_step){ CONFIG_STATE_REQUIRED, CONFIG_STATE_OPERATIONAL,
                                         CONFIG_BIT(CONFIG_CHECK_DONE), 0 };
    }
    p->steps[p->step_n++] =
        (struct random_config_step){ CONFIG_STATE_MAINTENANCE, CONFIG_STATE_OPERATIONAL,
                                     CONFIG_BIT(CONFIG_CHECK_DONE) |
                                         draw_bit(rng, 200, CONFIG_CHECK_READY),
                                     (drain != 0 ? CONFIG_BIT(CONFIG_TRIGGER_UNCORDON) : 0) |
                                         (mark != 0 ? CONFIG_BIT(CONFIG_TRIGGER_UNMARK) : 0) };
    p->notify[CONFIG_STATE_REQUIRED] = draw_notify(rng, 250);
    p->notify[CONFIG_STATE_MAINTENANCE] = draw_notify(rng, 250);
}

void random_config_make(struct random_config *b, uint64_t seed,
                        const struct random_config_options *config_options)
{
    struct rng rng;
    rng_init(&rng, seed ^ 0xb1ce9917ULL);
    *b = (struct random_config){ .profile_n = config_options->profiles };
    for (uint32_t i = 0; i < b->profile_n; i++) {
        draw_profile(&b->profiles[i], &rng, config_options);
    }
    for (uint32_t i = 0; i < RANDOM_CONFIG_LIMITS; i++) {
        struct random_config_limit *limit = &b->limits[i];
        limit->max = config_options->tight ? 1 : 1 + rng_below(&rng, 3);
        limit->by_zone = rng_chance(&rng, 400);
        limit->profile = rng_chance(&rng, 250) ? (int32_t)rng_below(&rng, b->profile_n) : -1;
        limit->skip_after = rng_chance(&rng, 150) ? rng_usec(&rng, 20, 600) * SECONDS(1) : 0;
    }
    for (uint32_t i = 0; i < RANDOM_CONFIG_NOTIFICATIONS; i++) {
        b->notifications[i].kind = rng_below(&rng, 3);
        b->notifications[i].schedule = rng_chance(&rng, 600)   ? NOTIFICATION_AT_ENTRY
                                       : rng_chance(&rng, 700) ? NOTIFICATION_ONCE
                                                               : NOTIFICATION_DAILY;
    }
    uint32_t day = RANDOM_CONFIG_DAY_START / 60;
    b->window_open = day - 20 + rng_below(&rng, 40);
    b->window_close = b->window_open + 5 + rng_below(&rng, 60);
    b->wait = rng_usec(&rng, 5, 240) * SECONDS(1);
    b->stagger = rng_usec(&rng, 5, 120) * SECONDS(1);
    b->stagger_parallel = 1 + rng_below(&rng, 2);
    b->force = rng_chance(&rng, 100);
}

/* ── printing ──────────────────────────────────────────────────────────────────────────────── */

static const char *const check_names[CONFIG_CHECK_COUNT] = {
    [CONFIG_CHECK_NEED] = "need_p%u",     [CONFIG_CHECK_DONE] = "!need_p%u",
    [CONFIG_CHECK_APPROVED] = "approved", [CONFIG_CHECK_LIMIT_0] = "limit0",
    [CONFIG_CHECK_LIMIT_1] = "limit1",    [CONFIG_CHECK_WINDOW] = "window",
    [CONFIG_CHECK_WAIT] = "pause",        [CONFIG_CHECK_WAIT_EXCLUDE] = "workdays",
    [CONFIG_CHECK_STAGGER] = "stagger",   [CONFIG_CHECK_NODE_COUNT] = "count",
    [CONFIG_CHECK_READY] = "ready",       [CONFIG_CHECK_ANY_LABEL] = "any",
    [CONFIG_CHECK_PROMETHEUS] = "load",   [CONFIG_CHECK_SEMVER] = "newer",
    [CONFIG_CHECK_AFFINITY] = "pods",
};

static void print_step_checks(uint32_t checks, uint32_t profile, struct buf *out)
{
    const char *gap = "";
    for (unsigned i = 0; i < CONFIG_CHECK_COUNT; i++) {
        if ((checks & CONFIG_BIT(i)) == 0) {
            continue;
        }
        buf_add(out, str_from(gap));
        if (i == CONFIG_CHECK_NEED || i == CONFIG_CHECK_DONE) {
            buf_printf(out, "%sneed_p%u", i == CONFIG_CHECK_DONE ? "!" : "", profile);
        } else {
            buf_add(out, str_from(check_names[i]));
        }
        gap = " && ";
    }
}

static void print_step_triggers(const char *key, uint32_t triggers, struct buf *out)
{
    static const char *const names[] = {
        [CONFIG_TRIGGER_CORDON] = "cordon",
        [CONFIG_TRIGGER_DRAIN] = "drain",
        [CONFIG_TRIGGER_UNCORDON] = "uncordon",
        [CONFIG_TRIGGER_MARK] = "label && annotation && finalizer",
        [CONFIG_TRIGGER_UNMARK] = "unlabel && unannotation && unfinalizer",
    };
    const char *gap = "";
    if (triggers == 0) {
        return;
    }
    buf_printf(out, ", %s: \"", key);
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        if ((triggers & CONFIG_BIT(i)) != 0) {
            buf_printf(out, "%s%s", gap, names[i]);
            gap = " && ";
        }
    }
    buf_add(out, STR("\""));
}

static void print_checks(const struct random_config *b, struct buf *out)
{
    buf_add(out, STR("  check:\n"));
    for (uint32_t i = 0; i < b->profile_n; i++) {
        buf_printf(out,
                   "  - {name: need_p%u, type: hasLabel, config: {key: example.com/need-p%u, "
                   "value: 'true'}}\n",
                   i, i);
    }
    for (uint32_t i = 0; i < RANDOM_CONFIG_LIMITS; i++) {
        const struct random_config_limit *limit = &b->limits[i];
        buf_printf(out, "  - {name: limit%u, type: maxMaintenance, config: {max: %u", i,
                   limit->max);
        if (limit->by_zone) {
            buf_add(out, STR(", groupBy: [topology.kubernetes.io/zone]"));
        }
        if (limit->profile >= 0) {
            buf_printf(out, ", profile: p%d", limit->profile);
        }
        if (limit->skip_after > 0) {
            buf_printf(out, ", skipAfter: %llds", (long long)(limit->skip_after / SECONDS(1)));
        }
        buf_add(out, STR("}}\n"));
    }
    buf_printf(
        out,
        "  - {name: approved, type: hasAnnotation, config: {key: example.com/approved}}\n"
        "  - {name: window, type: timeWindow, config: {start: '%02u:%02u', end: "
        "'%02u:%02u', weekdays: [mon, tue, wed, thu, fri, sat, sun]}}\n"
        "  - {name: pause, type: wait, config: {duration: %llds}}\n"
        "  - {name: workdays, type: waitExclude, config: {duration: %llds, exclude: [sun]}}\n"
        "  - {name: stagger, type: stagger, config: {duration: %llds, leaseName: stagger, "
        "leaseNamespace: default, parallel: %u}}\n",
        b->window_open / 60, b->window_open % 60, b->window_close / 60, b->window_close % 60,
        (long long)(b->wait / SECONDS(1)), (long long)(b->wait / SECONDS(1)),
        (long long)(b->stagger / SECONDS(1)), b->stagger_parallel);
    buf_add(out,
            STR("  - {name: count, type: nodeCount, config: {count: 2}}\n"
                "  - {name: ready, type: condition, config: {type: Ready, status: \"True\"}}\n"
                "  - {name: any, type: anyLabel, config: {key: example.com/go}}\n"
                "  - {name: load, type: prometheusInstant, config: {url: 'http://prometheus:9090', "
                "query: load, expr: 'value < 5'}}\n"
                "  - {name: newer, type: clusterSemver, config: {key: example.com/version}}\n"
                "  - {name: pods, type: affinity, config: {minOperational: 1}}\n"));
}

static void print_notifications(const struct random_config *b, struct buf *out)
{
    static const char *const kinds[] = {
        "webhook, config: {url: 'https://hook.example/in', body: '%s'}",
        "slack, config: {hook: 'https://slack.example/hook', channel: '#ops', message: '%s'}",
        "mail, config: {address: 'm.example:25', from: a@b, to: [c@d], subject: s, message: '%s'}",
    };
    static const char *const schedules[] = {
        [NOTIFICATION_AT_ENTRY] = "periodic, config: {interval: 12h}",
        [NOTIFICATION_ONCE] = "oneshot, config: {delay: 20s}",
        [NOTIFICATION_DAILY] =
            "scheduled, config: {instant: '08:10', weekdays: [mon, wed, thu, sun]}",
    };
    buf_add(out, STR("  notify:\n"));
    for (uint32_t i = 0; i < RANDOM_CONFIG_NOTIFICATIONS; i++) {
        const struct random_config_notification *notification = &b->notifications[i];
        struct str kind = str_from(kinds[notification->kind]);
        struct str head;
        struct str tail;
        (void)str_cut(kind, STR("%s"), &head, &tail); /* each has one */
        buf_printf(out, "  - {name: n%u, type: " STR_FMT, i, STR_ARG(head));
        buf_printf(out,
                   "MSG|n%u|{{ .Node.Name }}|{{ .Profile }}|{{ .State }}|{{ .LastTransition.Format "
                   "\"2006-01-02T15:04:05.999999999Z07:00\" }}|END",
                   i);
        buf_printf(out, STR_FMT ", schedule: {type: %s}}\n", STR_ARG(tail),
                   schedules[notification->schedule]);
    }
}

static void print_triggers(const struct random_config *b, struct buf *out)
{
    buf_printf(out,
               "  trigger:\n"
               "  - {name: cordon, type: eviction, config: {action: cordon}}\n"
               "  - {name: uncordon, type: eviction, config: {action: uncordon}}\n"
               "  - {name: drain, type: eviction, config: {action: drain, evictionTimeout: 2m, "
               "deletionTimeout: 2m, forceEviction: %s}}\n",
               b->force ? "true" : "false");
    buf_add(
        out,
        STR("  - {name: label, type: alterLabel, config: {key: example.com/started, value: a}}\n"
            "  - {name: annotation, type: alterAnnotation, config: {key: example.com/phase, "
            "value: in}}\n"
            "  - {name: finalizer, type: alterFinalizer, config: {key: example.com/hold}}\n"
            "  - {name: unlabel, type: alterLabel, config: {key: example.com/started, "
            "remove: true}}\n"
            "  - {name: unannotation, type: alterAnnotation, config: {key: example.com/phase, "
            "remove: true}}\n"
            "  - {name: unfinalizer, type: alterFinalizer, config: {key: example.com/hold, "
            "remove: true}}\n"));
}

static void print_state(const struct random_config *b, uint32_t profile,
                        enum random_config_state state, struct buf *out)
{
    const struct random_config_profile *p = &b->profiles[profile];
    buf_printf(out, "  %s:\n    transitions:%s\n", state_names[state],
               state == CONFIG_STATE_REQUIRED && p->step_n < 4 ? " []" : "");
    for (uint32_t i = 0; i < p->step_n; i++) {
        if (p->steps[i].from == state) {
            buf_add(out, STR("    - {check: \""));
            print_step_checks(p->steps[i].checks, profile, out);
            buf_printf(out, "\", next: %s", state_names[p->steps[i].to]);
            print_step_triggers("trigger", p->steps[i].triggers, out);
            buf_add(out, STR("}\n"));
        }
    }
    if (p->notify[state] != 0) {
        const char *gap = "";
        buf_add(out, STR("    notify: \""));
        for (uint32_t i = 0; i < RANDOM_CONFIG_NOTIFICATIONS; i++) {
            if ((p->notify[state] & CONFIG_BIT(i)) != 0) {
                buf_printf(out, "%sn%u", gap, i);
                gap = " && ";
            }
        }
        buf_add(out, STR("\"\n"));
    }
    if (p->enter[state] != 0) {
        CLEANUP(buf_done)
        struct buf enter = { 0 };
        print_step_triggers("enter", p->enter[state], &enter);
        buf_printf(out, "    " STR_FMT "\n", STR_ARG(str_sub(buf_str(&enter), 2, enter.n - 2)));
    }
}

void random_config_print(const struct random_config *b, struct buf *out)
{
    buf_add(out, STR("intervals: {requeue: 30s}\ninstances:\n"));
    print_notifications(b, out);
    print_checks(b, out);
    print_triggers(b, out);
    buf_add(out, STR("profiles:\n"));
    for (uint32_t i = 0; i < b->profile_n; i++) {
        buf_printf(out, "- name: p%u\n", i);
        for (unsigned state = 0; state < CONFIG_STATE_COUNT; state++) {
            print_state(b, i, (enum random_config_state)state, out);
        }
    }
}
