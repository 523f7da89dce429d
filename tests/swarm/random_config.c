#include "tests/swarm/random_config.h"

static const char *const state_names[STATE_COUNT] = {
    [STATE_OPERATIONAL] = "operational",
    [STATE_REQUIRED] = "maintenance-required",
    [STATE_MAINTENANCE] = "in-maintenance",
};

const char *blueprint_state_name(enum blueprint_state state)
{
    return state_names[state];
}

bool blueprint_state_find(struct str name, enum blueprint_state *ret)
{
    for (unsigned i = 0; i < STATE_COUNT; i++) {
        if (str_eq(str_from(state_names[i]), name)) {
            *ret = (enum blueprint_state)i;
            return true;
        }
    }
    return false;
}

const struct blueprint_step *blueprint_step_find(const struct blueprint *b, uint32_t profile,
                                                 enum blueprint_state from, enum blueprint_state to)
{
    const struct blueprint_profile *p = &b->profiles[profile];
    for (uint32_t i = 0; i < p->step_n; i++) {
        if (p->steps[i].from == from && p->steps[i].to == to) {
            return &p->steps[i];
        }
    }
    return NULL;
}

bool blueprint_profile_find(const struct blueprint *b, struct str name, uint32_t *ret)
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
    return rng_chance(rng, per_mille) ? BIT(bit) : 0;
}

static uint32_t draw_notify(struct rng *rng, uint32_t per_mille)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < BLUEPRINT_NOTICES; i++) {
        bits |= draw_bit(rng, per_mille, i);
    }
    return bits;
}

static uint32_t draw_way_in(struct rng *rng, const struct blueprint_wish *wish)
{
    uint32_t asks = draw_bit(rng, 250, ASKS_WINDOW) | draw_bit(rng, 200, ASKS_STAGGER) |
                    draw_bit(rng, 150, ASKS_WAIT) | draw_bit(rng, 100, ASKS_WAIT_EXCLUDE) |
                    draw_bit(rng, 150, ASKS_READY) | draw_bit(rng, 100, ASKS_COUNT) |
                    draw_bit(rng, 100, ASKS_ANY) | draw_bit(rng, 100, ASKS_PROMETHEUS) |
                    draw_bit(rng, 60, ASKS_NEWER);
    if (wish->limited) {
        uint32_t both = BIT(ASKS_LIMIT_0) | BIT(ASKS_LIMIT_1);
        asks |= rng_chance(rng, 400) ? both : BIT(ASKS_LIMIT_0 + rng_below(rng, 2));
    }
    return asks;
}

static void draw_profile(struct blueprint_profile *p, struct rng *rng,
                         const struct blueprint_wish *wish)
{
    bool direct = rng_chance(rng, 150);
    uint32_t way_in = draw_way_in(rng, wish);
    uint32_t drain =
        wish->drains || rng_chance(rng, 250) ? BIT(DOES_DRAIN) : draw_bit(rng, 400, DOES_CORDON);
    uint32_t mark = draw_bit(rng, 300, DOES_MARK);
    bool at_entry = rng_chance(rng, 300);
    uint32_t does = at_entry ? 0 : drain | mark;
    p->enter[STATE_MAINTENANCE] = at_entry ? drain | mark : 0;
    if (direct) {
        way_in &= ~BIT(ASKS_PODS);
        p->steps[p->step_n++] = (struct blueprint_step){ STATE_OPERATIONAL, STATE_MAINTENANCE,
                                                         way_in | BIT(ASKS_NEED), does };
    } else {
        way_in |= draw_bit(rng, 800, ASKS_APPROVED) | draw_bit(rng, 80, ASKS_PODS);
        p->steps[p->step_n++] =
            (struct blueprint_step){ STATE_OPERATIONAL, STATE_REQUIRED,
                                     BIT(ASKS_NEED) | draw_bit(rng, 150, ASKS_WAIT), 0 };
        p->steps[p->step_n++] = (struct blueprint_step){ STATE_REQUIRED, STATE_MAINTENANCE,
                                                         way_in | BIT(ASKS_NEED), does };
        p->steps[p->step_n++] =
            (struct blueprint_step){ STATE_REQUIRED, STATE_OPERATIONAL, BIT(ASKS_DONE), 0 };
    }
    p->steps[p->step_n++] = (struct blueprint_step){
        STATE_MAINTENANCE, STATE_OPERATIONAL, BIT(ASKS_DONE) | draw_bit(rng, 200, ASKS_READY),
        (drain != 0 ? BIT(DOES_UNCORDON) : 0) | (mark != 0 ? BIT(DOES_UNMARK) : 0)
    };
    p->notify[STATE_REQUIRED] = draw_notify(rng, 250);
    p->notify[STATE_MAINTENANCE] = draw_notify(rng, 250);
}

void blueprint_make(struct blueprint *b, uint64_t seed, const struct blueprint_wish *wish)
{
    struct rng rng;
    rng_init(&rng, seed ^ 0xb1ce9917ULL);
    *b = (struct blueprint){ .profile_n = wish->profiles };
    for (uint32_t i = 0; i < b->profile_n; i++) {
        draw_profile(&b->profiles[i], &rng, wish);
    }
    for (uint32_t i = 0; i < BLUEPRINT_LIMITS; i++) {
        struct blueprint_limit *limit = &b->limits[i];
        limit->max = wish->tight ? 1 : 1 + rng_below(&rng, 3);
        limit->by_zone = rng_chance(&rng, 400);
        limit->profile = rng_chance(&rng, 250) ? (int32_t)rng_below(&rng, b->profile_n) : -1;
        limit->skip_after = rng_chance(&rng, 150) ? rng_usec(&rng, 20, 600) * SECONDS(1) : 0;
    }
    for (uint32_t i = 0; i < BLUEPRINT_NOTICES; i++) {
        b->notices[i].kind = rng_below(&rng, 3);
        b->notices[i].schedule = rng_chance(&rng, 600)   ? NOTICE_AT_ENTRY
                                 : rng_chance(&rng, 700) ? NOTICE_ONCE
                                                         : NOTICE_DAILY;
    }
    uint32_t day = BLUEPRINT_DAY_START / 60;
    b->window_open = day - 20 + rng_below(&rng, 40);
    b->window_close = b->window_open + 5 + rng_below(&rng, 60);
    b->wait = rng_usec(&rng, 5, 240) * SECONDS(1);
    b->stagger = rng_usec(&rng, 5, 120) * SECONDS(1);
    b->stagger_parallel = 1 + rng_below(&rng, 2);
    b->force = rng_chance(&rng, 100);
}

/* ── printing ──────────────────────────────────────────────────────────────────────────────── */

static const char *const check_names[ASKS] = {
    [ASKS_NEED] = "need_p%u",   [ASKS_DONE] = "!need_p%u",        [ASKS_APPROVED] = "approved",
    [ASKS_LIMIT_0] = "limit0",  [ASKS_LIMIT_1] = "limit1",        [ASKS_WINDOW] = "window",
    [ASKS_WAIT] = "pause",      [ASKS_WAIT_EXCLUDE] = "workdays", [ASKS_STAGGER] = "stagger",
    [ASKS_COUNT] = "count",     [ASKS_READY] = "ready",           [ASKS_ANY] = "any",
    [ASKS_PROMETHEUS] = "load", [ASKS_NEWER] = "newer",           [ASKS_PODS] = "pods",
};

static void print_asks(uint32_t asks, uint32_t profile, struct buf *out)
{
    const char *gap = "";
    for (unsigned i = 0; i < ASKS; i++) {
        if ((asks & BIT(i)) == 0) {
            continue;
        }
        buf_add(out, str_from(gap));
        if (i == ASKS_NEED || i == ASKS_DONE) {
            buf_printf(out, "%sneed_p%u", i == ASKS_DONE ? "!" : "", profile);
        } else {
            buf_add(out, str_from(check_names[i]));
        }
        gap = " && ";
    }
}

static void print_does(const char *key, uint32_t does, struct buf *out)
{
    static const char *const names[] = {
        [DOES_CORDON] = "cordon",
        [DOES_DRAIN] = "drain",
        [DOES_UNCORDON] = "uncordon",
        [DOES_MARK] = "label && annotation && finalizer",
        [DOES_UNMARK] = "unlabel && unannotation && unfinalizer",
    };
    const char *gap = "";
    if (does == 0) {
        return;
    }
    buf_printf(out, ", %s: \"", key);
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        if ((does & BIT(i)) != 0) {
            buf_printf(out, "%s%s", gap, names[i]);
            gap = " && ";
        }
    }
    buf_add(out, STR("\""));
}

static void print_checks(const struct blueprint *b, struct buf *out)
{
    buf_add(out, STR("  check:\n"));
    for (uint32_t i = 0; i < b->profile_n; i++) {
        buf_printf(out,
                   "  - {name: need_p%u, type: hasLabel, config: {key: example.com/need-p%u, "
                   "value: 'true'}}\n",
                   i, i);
    }
    for (uint32_t i = 0; i < BLUEPRINT_LIMITS; i++) {
        const struct blueprint_limit *limit = &b->limits[i];
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

static void print_notices(const struct blueprint *b, struct buf *out)
{
    static const char *const kinds[] = {
        "webhook, config: {url: 'https://hook.example/in', body: '%s'}",
        "slack, config: {hook: 'https://slack.example/hook', channel: '#ops', message: '%s'}",
        "mail, config: {address: 'm.example:25', from: a@b, to: [c@d], subject: s, message: '%s'}",
    };
    static const char *const schedules[] = {
        [NOTICE_AT_ENTRY] = "periodic, config: {interval: 12h}",
        [NOTICE_ONCE] = "oneshot, config: {delay: 20s}",
        [NOTICE_DAILY] = "scheduled, config: {instant: '08:10', weekdays: [mon, wed, thu, sun]}",
    };
    buf_add(out, STR("  notify:\n"));
    for (uint32_t i = 0; i < BLUEPRINT_NOTICES; i++) {
        const struct blueprint_notice *notice = &b->notices[i];
        struct str kind = str_from(kinds[notice->kind]);
        struct str head;
        struct str tail;
        (void)str_cut(kind, STR("%s"), &head, &tail); /* each has one */
        buf_printf(out, "  - {name: n%u, type: " STR_FMT, i, STR_ARG(head));
        buf_printf(out,
                   "MSG|n%u|{{ .Node.Name }}|{{ .Profile }}|{{ .State }}|{{ .LastTransition.Format "
                   "\"2006-01-02T15:04:05.999999999Z07:00\" }}|END",
                   i);
        buf_printf(out, STR_FMT ", schedule: {type: %s}}\n", STR_ARG(tail),
                   schedules[notice->schedule]);
    }
}

static void print_triggers(const struct blueprint *b, struct buf *out)
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

static void print_state(const struct blueprint *b, uint32_t profile, enum blueprint_state state,
                        struct buf *out)
{
    const struct blueprint_profile *p = &b->profiles[profile];
    buf_printf(out, "  %s:\n    transitions:%s\n", state_names[state],
               state == STATE_REQUIRED && p->step_n < 4 ? " []" : "");
    for (uint32_t i = 0; i < p->step_n; i++) {
        if (p->steps[i].from == state) {
            buf_add(out, STR("    - {check: \""));
            print_asks(p->steps[i].asks, profile, out);
            buf_printf(out, "\", next: %s", state_names[p->steps[i].to]);
            print_does("trigger", p->steps[i].does, out);
            buf_add(out, STR("}\n"));
        }
    }
    if (p->notify[state] != 0) {
        const char *gap = "";
        buf_add(out, STR("    notify: \""));
        for (uint32_t i = 0; i < BLUEPRINT_NOTICES; i++) {
            if ((p->notify[state] & BIT(i)) != 0) {
                buf_printf(out, "%sn%u", gap, i);
                gap = " && ";
            }
        }
        buf_add(out, STR("\"\n"));
    }
    if (p->enter[state] != 0) {
        CLEANUP(buf_done)
        struct buf enter = { 0 };
        print_does("enter", p->enter[state], &enter);
        buf_printf(out, "    " STR_FMT "\n", STR_ARG(str_sub(buf_str(&enter), 2, enter.n - 2)));
    }
}

void blueprint_print(const struct blueprint *b, struct buf *out)
{
    buf_add(out, STR("intervals: {requeue: 30s}\ninstances:\n"));
    print_notices(b, out);
    print_checks(b, out);
    print_triggers(b, out);
    buf_add(out, STR("profiles:\n"));
    for (uint32_t i = 0; i < b->profile_n; i++) {
        buf_printf(out, "- name: p%u\n", i);
        for (unsigned state = 0; state < STATE_COUNT; state++) {
            print_state(b, i, (enum blueprint_state)state, out);
        }
    }
}
