#include "integration/esx_decide.h"

#define ESX_ENTER_TASK STR("EnterMaintenanceMode_Task")
/* Interfaces older than 5.0, and simulators, call it so. */
#define ESX_ENTER_TASK_SHORT STR("EnterMaintenanceMode")

struct str esx_mode_text(enum esx_mode mode)
{
    static const struct str texts[] = {
        [ESX_UNKNOWN] = STR_INIT("unknown"),
        [ESX_FALSE] = STR_INIT("false"),
        [ESX_TRUE] = STR_INIT("true"),
        [ESX_ALARM] = STR_INIT("alarm"),
    };
    return texts[mode];
}

static bool esx_alarm_counts(const struct esx_host_facts *f, struct vim25_ref alarm)
{
    for (uint32_t i = 0; i < f->known->alarm_n; i++) {
        if (!vim25_ref_eq(f->known->alarms[i].ref, alarm)) {
            continue;
        }
        for (uint32_t k = 0; k < f->alarm_n; k++) {
            if (str_eq(f->alarms[k], f->known->alarms[i].name)) {
                return true;
            }
        }
    }
    return false;
}

/* A host in maintenance mode has left it behind; before, only its task tells. */
static bool esx_is_entering(const struct esx_host_facts *f)
{
    for (uint32_t i = 0; i < f->host->task_n; i++) {
        for (uint32_t k = 0; k < f->known->task_n; k++) {
            const struct vim25_task *task = &f->known->tasks[k];
            if (vim25_ref_eq(task->ref, f->host->tasks[i]) &&
                (str_eq(task->name, ESX_ENTER_TASK) || str_eq(task->name, ESX_ENTER_TASK_SHORT)) &&
                str_eq(task->state, STR("running"))) {
                return true;
            }
        }
    }
    return false;
}

enum esx_mode esx_decide_mode(const struct esx_host_facts *facts)
{
    if (facts->host == NULL || !facts->host->known) {
        return ESX_UNKNOWN;
    }
    for (uint32_t i = 0; i < facts->host->alarm_n; i++) {
        if (esx_alarm_counts(facts, facts->host->alarms[i])) {
            return ESX_ALARM;
        }
    }
    return facts->host->in_maintenance || esx_is_entering(facts) ? ESX_TRUE : ESX_FALSE;
}

static void esx_problem(struct esx_plan *ret, const char *error)
{
    ret->step = ESX_STEP_PROBLEM;
    ret->error = error;
}

/* Whether there is one machine to speak to, and it may be spoken to now. */
static bool esx_has_machine(const struct esx_node_facts *f, usec_t now, struct esx_plan *ret)
{
    if (f->vm_n != 1 || f->vm == NULL) {
        esx_problem(ret, f->vm_n == 0 ? "the vCenter has no virtual machine with the node's name"
                                      : "the vCenter has several virtual machines with the node's "
                                        "name, and expected is one");
        return false;
    }
    if (f->calling || f->retry_at > now) {
        ret->step = ESX_STEP_WAIT;
        ret->next = f->calling ? USEC_NEVER : f->retry_at;
        return false;
    }
    return true;
}

/* The machine is to go: its system is asked first, and has its time. */
static void esx_decide_off(const struct esx_settings *s, const struct esx_node_facts *f, usec_t now,
                           struct esx_plan *ret)
{
    ret->words = "its virtual machine is shut down";
    if (f->vm_n == 1 && f->vm->power == VIM25_POWERED_OFF) {
        ret->step = ESX_STEP_OFF;
        ret->words = "its virtual machine is off until its host is back";
        return;
    }
    if (!esx_has_machine(f, now, ret)) {
        return;
    }
    if (f->elsewhere) {
        esx_problem(ret, "its virtual machine runs on another host, and is left alone");
        return;
    }
    if (f->shutdown_at == 0) {
        ret->step = ESX_STEP_NOTE;
    } else if (now >= f->shutdown_at + s->shutdown_timeout ||
               f->refusal == VIM25_TOOLS_UNAVAILABLE) {
        ret->step = ESX_STEP_POWER_OFF;
        ret->words = "its virtual machine is switched off";
    } else if (!f->asked) {
        ret->step = ESX_STEP_SHUTDOWN;
    } else {
        ret->step = ESX_STEP_WAIT;
        ret->next = f->shutdown_at + s->shutdown_timeout;
    }
}

/* Its host is back, and its machine is on, but was told to end, which it may do at any time: a node
 * that is let go now would lose its machine afterwards. So it is ended first, in its time or by
 * force, as it would have been. */
static void esx_decide_ending(const struct esx_settings *s, const struct esx_node_facts *f,
                              usec_t now, struct esx_plan *ret)
{
    ret->drain = f->cordoned;
    ret->words = "its host is back, and its virtual machine still shuts down";
    if (now < f->shutdown_at + s->shutdown_timeout) {
        ret->step = ESX_STEP_WAIT;
        ret->next = f->shutdown_at + s->shutdown_timeout;
    } else if (f->cordoned && !f->drained) {
        ret->step = ESX_STEP_DRAIN;
    } else if (esx_has_machine(f, now, ret)) {
        ret->step = ESX_STEP_POWER_OFF;
        ret->words = "its virtual machine did not end: it is switched off, and on again";
    }
}

static void esx_decide_start(const struct esx_settings *s, const struct esx_node_facts *f,
                             usec_t now, struct esx_plan *ret)
{
    bool on = f->vm_n == 1 && f->vm->power == VIM25_POWERED_ON;
    ret->words = "its host is back: its virtual machine is switched on";
    if (on && f->shutdown_at > 0 && !f->switched_on) {
        esx_decide_ending(s, f, now, ret);
    } else if (on) {
        ret->step = ESX_STEP_RELEASE;
        ret->words = "its virtual machine is on: the node returns";
    } else if (esx_has_machine(f, now, ret)) {
        ret->step = ESX_STEP_POWER_ON;
    }
}

static void esx_decide_shutdown(const struct esx_settings *s, const struct esx_node_facts *f,
                                usec_t now, struct esx_plan *ret)
{
    if (!f->approved || (s->whole_host && !f->all_approved)) {
        ret->step = ESX_STEP_APPROVAL;
        ret->words = f->approved ? "waits until all nodes of its host are approved"
                                 : "its host is in maintenance: waits for its approval";
        return;
    }
    ret->reserve = true;
    if (!f->reserved) {
        ret->step = ESX_STEP_RESERVE;
        ret->words = "waits for its place under the limits";
        return;
    }
    if (!f->initiated || !f->cordoned) {
        ret->step = ESX_STEP_MARK;
        ret->words = "is cordoned";
        return;
    }
    ret->drain = true;
    if (!f->drained) {
        ret->step = ESX_STEP_DRAIN;
        ret->words = "its pods are evicted";
        return;
    }
    esx_decide_off(s, f, now, ret);
}

void esx_decide_node(const struct esx_settings *settings, const struct esx_node_facts *facts,
                     usec_t now, struct esx_plan *ret)
{
    *ret = (struct esx_plan){
        .step = ESX_STEP_NONE,
        .reserve = facts->initiated, /* until it is undone */
        .next = USEC_NEVER,
        .words = "",
    };
    if (facts->mode == ESX_UNKNOWN) {
        ret->words = facts->initiated ? "waits for what its vCenter says" : "";
        return;
    }
    if (facts->label != facts->mode) {
        return; /* people and profiles are told first */
    }
    if (facts->mode != ESX_FALSE) {
        esx_decide_shutdown(settings, facts, now, ret);
    } else if (facts->initiated) {
        esx_decide_start(settings, facts, now, ret);
    }
}
