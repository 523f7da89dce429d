#include "integration/esx_decide.h"

#include "tests/check.h"

static const struct vim25_ref host_ref = { STR_INIT("HostSystem"), STR_INIT("host-1") };
static struct vim25_ref task_ref = { STR_INIT("Task"), STR_INIT("task-1") };
static struct vim25_ref alarm_ref = { STR_INIT("Alarm"), STR_INIT("alarm-1") };

TEST(esx_mode_is_alarm_first_then_maintenance_then_its_task)
{
    static const struct {
        bool known, in_maintenance;
        const char *alarm; /* triggered */
        const char *task, *state;
        enum esx_mode mode;
    } cases[] = {
        { true, false, NULL, NULL, NULL, ESX_FALSE },
        { true, true, NULL, NULL, NULL, ESX_TRUE },
        { false, true, NULL, NULL, NULL, ESX_UNKNOWN },
        { true, true, "Host hardware", NULL, NULL, ESX_ALARM },
        { true, false, "Host hardware", NULL, NULL, ESX_ALARM },
        { true, false, "host hardware", NULL, NULL, ESX_FALSE },
        { true, false, NULL, "EnterMaintenanceMode_Task", "running", ESX_TRUE },
        { true, false, NULL, "EnterMaintenanceMode_Task", "success", ESX_FALSE },
        { true, false, NULL, "EnterMaintenanceMode_Task", "queued", ESX_FALSE },
        { true, false, NULL, "ExitMaintenanceMode_Task", "running", ESX_FALSE },
    };
    struct str alarms[] = { STR("Other"), STR("Host hardware") };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct vim25_task task = { .ref = task_ref,
                                   .name = str_from(cases[i].task),
                                   .state = str_from(cases[i].state) };
        struct vim25_alarm alarm = { .ref = alarm_ref, .name = str_from(cases[i].alarm) };
        struct vim25_objects known = {
            .tasks = &task, .task_n = 1, .alarms = &alarm, .alarm_n = 1
        };
        struct vim25_host host = {
            .ref = host_ref,
            .known = cases[i].known,
            .in_maintenance = cases[i].in_maintenance,
            .tasks = &task_ref,
            .task_n = cases[i].task != NULL ? 1 : 0,
            .alarms = &alarm_ref,
            .alarm_n = cases[i].alarm != NULL ? 1 : 0,
        };
        struct esx_host_facts facts = {
            .host = &host, .known = &known, .alarms = alarms, .alarm_n = 2
        };
        check_case((int64_t)i);
        CHECK_EQ(esx_decide_mode(&facts), cases[i].mode);
    }
    check_case(-1);
    CHECK_EQ(esx_decide_mode(&(struct esx_host_facts){ 0 }), ESX_UNKNOWN);
}

/* A node on its way: letters of `has` are what is there already. */
struct way {
    /* Approved Initiated Cordoned Reserved Drained caLling Others-approved Noted Switched-on */
    const char *has;
    enum esx_mode label, mode;
    uint32_t vm_n;
    enum vim25_power power;
    enum esx_step step;
    bool reserve, drain;
};

static bool has(const struct way *w, char c)
{
    return strchr(w->has, c) != NULL;
}

static struct esx_plan decide_way(const struct way *w, const struct esx_settings *settings,
                                  struct esx_node_facts *facts, usec_t now)
{
    static struct vim25_vm vm;
    struct esx_plan plan;
    vm = (struct vim25_vm){ .power = w->power };
    facts->label = w->label;
    facts->mode = w->mode;
    facts->approved = has(w, 'A');
    facts->all_approved = has(w, 'A') && has(w, 'O');
    facts->initiated = has(w, 'I');
    facts->cordoned = has(w, 'C');
    facts->reserved = has(w, 'R');
    facts->drained = has(w, 'D');
    facts->calling = has(w, 'L');
    facts->switched_on = has(w, 'S');
    if (has(w, 'N')) {
        facts->shutdown_at = now - SECONDS(1);
    }
    facts->vm_n = w->vm_n;
    facts->vm = w->vm_n > 0 ? &vm : NULL;
    esx_decide_node(settings, facts, now, &plan);
    return plan;
}

static const struct esx_settings per_node = { .shutdown_period = SECONDS(1),
                                              .shutdown_timeout = MINUTES(1) };

TEST(esx_takes_one_step_after_the_other)
{
    static const struct way ways[] = {
        /* Out of maintenance there is nothing to do, whatever was approved. */
        { "AO", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_ON, ESX_STEP_NONE, false, false },
        /* The label is written first. */
        { "AO", ESX_FALSE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_NONE, false, false },
        { "I", ESX_TRUE, ESX_FALSE, 1, VIM25_POWERED_OFF, ESX_STEP_NONE, true, false },
        /* The way down. */
        { "O", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_APPROVAL, false, false },
        { "A", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_RESERVE, true, false },
        { "AR", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_MARK, true, false },
        { "ARC", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_MARK, true, false },
        { "ARI", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_MARK, true, false },
        { "ARIC", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_DRAIN, true, true },
        { "ARIC", ESX_ALARM, ESX_ALARM, 1, VIM25_POWERED_ON, ESX_STEP_DRAIN, true, true },
        { "ARICD", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_NOTE, true, true },
        { "ARICDN", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_SHUTDOWN, true, true },
        { "ARICDL", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_WAIT, true, true },
        { "ARICD", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_OFF, ESX_STEP_OFF, true, true },
        { "ARICD", ESX_TRUE, ESX_TRUE, 0, VIM25_POWERED_OFF, ESX_STEP_PROBLEM, true, true },
        { "ARICD", ESX_TRUE, ESX_TRUE, 2, VIM25_POWERED_OFF, ESX_STEP_PROBLEM, true, true },
        { "ICRD", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, ESX_STEP_APPROVAL, true, false },
        /* A vCenter that is silent stops everything. */
        { "ARICD", ESX_TRUE, ESX_UNKNOWN, 1, VIM25_POWERED_ON, ESX_STEP_NONE, true, false },
        { "I", ESX_UNKNOWN, ESX_UNKNOWN, 1, VIM25_POWERED_OFF, ESX_STEP_NONE, true, false },
        /* The way back, approved or not. */
        { "IC", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_OFF, ESX_STEP_POWER_ON, true, false },
        { "AIC", ESX_FALSE, ESX_FALSE, 1, VIM25_SUSPENDED, ESX_STEP_POWER_ON, true, false },
        { "ICL", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_OFF, ESX_STEP_WAIT, true, false },
        { "IC", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_ON, ESX_STEP_RELEASE, true, false },
        { "ICN", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_ON, ESX_STEP_WAIT, true, true },
        { "ICN", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_OFF, ESX_STEP_POWER_ON, true, false },
        { "ICNS", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_ON, ESX_STEP_RELEASE, true, false },
        { "IC", ESX_FALSE, ESX_FALSE, 2, VIM25_POWERED_OFF, ESX_STEP_PROBLEM, true, false },
        { "C", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_OFF, ESX_STEP_NONE, false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct esx_node_facts facts = { 0 };
        check_case((int64_t)i);
        struct esx_plan plan = decide_way(&ways[i], &per_node, &facts, SECONDS(100));
        CHECK_EQ(plan.step, ways[i].step);
        CHECK_EQ(plan.reserve, ways[i].reserve);
        CHECK_EQ(plan.drain, ways[i].drain);
        CHECK_EQ(plan.error != NULL, ways[i].step == ESX_STEP_PROBLEM);
    }
    check_case(-1);
}

TEST(esx_waits_for_a_whole_host_where_it_is_told_to)
{
    struct esx_settings settings = per_node;
    settings.whole_host = true;
    struct esx_node_facts facts = { 0 };
    const struct way alone = { "AR", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, 0, false, false };
    const struct way all = { "ARO", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, 0, false, false };
    struct esx_plan plan = decide_way(&alone, &settings, &facts, 1);
    CHECK_EQ(plan.step, ESX_STEP_APPROVAL);
    CHECK_STR(plan.words, "waits until all nodes of its host are approved");
    plan = decide_way(&all, &settings, &facts, 1);
    CHECK_EQ(plan.step, ESX_STEP_MARK);
}

TEST(esx_switches_off_what_does_not_end_in_time_or_cannot)
{
    const struct way down = { "ARICD", ESX_TRUE, ESX_TRUE, 1, VIM25_POWERED_ON, 0, false, false };
    struct esx_node_facts facts = { .shutdown_at = SECONDS(100), .asked = true };
    struct esx_plan plan = decide_way(&down, &per_node, &facts, SECONDS(100) + MINUTES(1) - 1);
    CHECK_EQ(plan.step, ESX_STEP_WAIT);
    CHECK_EQ(plan.next, SECONDS(100) + MINUTES(1));
    plan = decide_way(&down, &per_node, &facts, plan.next);
    CHECK_EQ(plan.step, ESX_STEP_POWER_OFF);
    facts = (struct esx_node_facts){ .shutdown_at = 1, .refusal = VIM25_TOOLS_UNAVAILABLE };
    CHECK_EQ(decide_way(&down, &per_node, &facts, SECONDS(1)).step, ESX_STEP_POWER_OFF);
    facts = (struct esx_node_facts){ .shutdown_at = 1,
                                     .refusal = VIM25_NO_PERMISSION,
                                     .retry_at = SECONDS(5) };
    plan = decide_way(&down, &per_node, &facts, SECONDS(1));
    CHECK_EQ(plan.step, ESX_STEP_WAIT);
    CHECK_EQ(plan.next, SECONDS(5));
    CHECK_EQ(decide_way(&down, &per_node, &facts, SECONDS(5)).step, ESX_STEP_SHUTDOWN);
    const struct way back = { "ICD", ESX_FALSE, ESX_FALSE, 1, VIM25_POWERED_ON, 0, false, false };
    facts = (struct esx_node_facts){ .shutdown_at = SECONDS(100) };
    CHECK_EQ(decide_way(&back, &per_node, &facts, SECONDS(101)).step, ESX_STEP_WAIT);
    CHECK_EQ(decide_way(&back, &per_node, &facts, SECONDS(200)).step, ESX_STEP_POWER_OFF);
    facts = (struct esx_node_facts){ .elsewhere = true };
    CHECK_EQ(decide_way(&down, &per_node, &facts, SECONDS(1)).step, ESX_STEP_PROBLEM);
}

/* Whatever is known: a machine goes only if its node is approved, marked, cordoned, reserved and
 * drained while its host is in maintenance; and comes back only with a host that is back. */
PROPERTY(esx_shuts_down_only_what_may_go)
{
    static const char letters[] = "AICRDLO";
    char text[sizeof(letters)] = { 0 };
    size_t n = 0;
    for (size_t i = 0; letters[i] != '\0'; i++) {
        if (rng_chance(rng, 500)) {
            text[n++] = letters[i];
        }
    }
    struct way w = { .has = text,
                     .label = (enum esx_mode)rng_below(rng, 4),
                     .mode = (enum esx_mode)rng_below(rng, 4),
                     .vm_n = rng_below(rng, 3),
                     .power = (enum vim25_power)rng_below(rng, 4) };
    struct esx_settings settings = per_node;
    settings.whole_host = rng_chance(rng, 500);
    struct esx_node_facts facts = { .shutdown_at = rng_chance(rng, 500) ? SECONDS(1) : 0,
                                    .refusal = (enum vim25_fault)rng_below(rng, 8),
                                    .elsewhere = rng_chance(rng, 250) };
    struct esx_plan plan = decide_way(&w, &settings, &facts, SECONDS(rng_below(rng, 200)));
    bool down = plan.step == ESX_STEP_SHUTDOWN || plan.step == ESX_STEP_POWER_OFF;
    bool in = w.mode == ESX_TRUE || w.mode == ESX_ALARM;
    bool ending = w.mode == ESX_FALSE && plan.step == ESX_STEP_POWER_OFF; /* it was told before */
    CHECK(!down || (w.label == w.mode && has(&w, 'I') && (has(&w, 'D') || !has(&w, 'C')) &&
                    !has(&w, 'L') && w.vm_n == 1));
    CHECK(!down || ending || (in && has(&w, 'A') && has(&w, 'C') && has(&w, 'R')));
    CHECK(!down || ending || !settings.whole_host || has(&w, 'O'));
    CHECK(plan.step != ESX_STEP_POWER_ON || (w.mode == ESX_FALSE && has(&w, 'I')));
    CHECK(!down || facts.shutdown_at > 0); /* the Node says so first */
    CHECK(plan.step != ESX_STEP_RELEASE || w.power == VIM25_POWERED_ON);
    CHECK(!has(&w, 'I') || plan.reserve); /* it counts until it is undone */
    CHECK(!plan.drain || (has(&w, 'I') && has(&w, 'C')));
    CHECK(!plan.drain || w.mode == ESX_FALSE || (has(&w, 'R') && has(&w, 'A')));
}
