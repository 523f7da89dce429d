/*
 * What happens to ESX hosts, their vCenter and the nodes on them.
 */
#include "kinds/keys.h"
#include "tests/swarm/actions.h"

#define LIMITS_PATH "/apis/repairman.k8s.io/v1/maintenancelimits"

static struct str esx_node(struct sim_run *t, uint32_t vm)
{
    return arena_printf(&t->tmp, "node-%03u", vm + 1);
}

static void esx_set_label(struct sim_run *t, uint32_t vm, struct str key, struct str value)
{
    sim_run_set_node_meta(t, esx_node(t, vm), "labels", key, value);
}

/* The Node says on which host its machine is. */
static void esx_name_host(struct sim_run *t, uint32_t vm)
{
    esx_set_label(t, vm, KEY_ESX_HOST, arena_printf(&t->tmp, "esx-%u", t->vcenter.vms[vm].host));
}

static void esx_on_power(void *ctx, uint32_t vm, enum sim_vcenter_power what)
{
    static const char *const words[] = { "on", "off", "asked to end" };
    struct sim_run *t = ctx;
    if (t->verbose) {
        (void)fprintf(stderr, "%12.3f s machine %u is %s\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, vm + 1, words[what]);
    }
    check_esx_on_power(&t->esx, vm, what, virtual_loop_now(t->vloop));
    /* People change their minds, too, while a system ends. */
    if (what == SIM_VCENTER_SHUTDOWN && t->next_action < t->scenario->n &&
        rng_chance(&t->vcenter.rng, 200)) {
        sim_vcenter_set_maintenance(&t->vcenter, t->vcenter.vms[vm].host, false);
    }
}

void sim_run_init_esx(struct sim_run *t)
{
    struct rng rng;
    rng_init(&rng, t->scenario->seed ^ 0xbb67ae85ULL);
    sim_vcenter_init(&t->vcenter, t->vloop, t->scenario->seed, t->scenario->nodes);
    t->vcenter.on_power = esx_on_power;
    t->vcenter.ctx = t;
    t->inbox.script = sim_vcenter_answer;
    t->inbox.ctx = &t->vcenter;
    t->esx = (struct check_esx){
        .basic = &t->basic,
        .server = t->server,
        .vcenter = &t->vcenter,
        .on = true,
        .whole_host = rng_chance(&rng, 250),
        .limit = rng_chance(&rng, 500) ? 1 + rng_below(&rng, 2) : 0,
    };
    if (t->esx.limit > 0) {
        sim_run_install_crds(t);
        struct str body =
            arena_printf(&t->tmp,
                         "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
                         "\"metadata\":{\"name\":\"hosts\"},\"spec\":{\"type\":\"node\","
                         "\"limit\":0,\"minimum\":%u,\"maxCount\":%u}}",
                         t->esx.limit, t->esx.limit);
        int status = sim_run_admin_request(t, "POST", STR(LIMITS_PATH), API_JSON, body);
        ASSERT(status == 201);
    }
    for (uint32_t i = 0; i < t->scenario->nodes; i++) {
        esx_name_host(t, i);
        esx_set_label(t, i, KEY_ZONE, STR("qa-a"));
    }
}

void sim_run_esx_action(struct sim_run *t, const struct action *action)
{
    uint32_t vm = action->pick % t->scenario->nodes;
    uint32_t host = action->pick % SIM_VCENTER_HOSTS;
    const struct sim_vcenter_vm *machine = &t->vcenter.vms[vm];
    switch (action->kind) {
    case ACTION_ESX_HOST:
        sim_vcenter_set_maintenance(&t->vcenter, host, !t->vcenter.hosts[host].maintenance);
        break;
    case ACTION_ESX_APPROVE:
        esx_set_label(t, vm, KEY_ESX_REBOOT_OK, STR("true"));
        break;
    case ACTION_ESX_UNAPPROVE:
        esx_set_label(t, vm, KEY_ESX_REBOOT_OK, STR_NONE);
        break;
    case ACTION_ESX_MOVE:
        sim_vcenter_settle(&t->vcenter);
        if (machine->on && machine->ends == 0) {
            sim_vcenter_move(&t->vcenter, vm);
        }
        if (action->variant % 2 == 0) {
            esx_name_host(t, vm); /* otherwise nobody tells the node */
        }
        break;
    case ACTION_ESX_SESSION:
        t->vcenter.session = false;
        break;
    default:
        ASSERT(action->kind == ACTION_ESX_VCENTER_DOWN);
        t->vcenter.down = true;
        t->vcenter_up_at = virtual_loop_now(t->vloop) + action->duration;
    }
}

usec_t sim_run_next_esx_event(const struct sim_run *t)
{
    return MIN(t->vcenter_up_at, t->hosts_back_at);
}

void sim_run_esx_due(struct sim_run *t, usec_t now)
{
    if (t->vcenter_up_at <= now) {
        t->vcenter_up_at = USEC_NEVER;
        t->vcenter.down = false;
    }
    if (t->hosts_back_at <= now) {
        t->hosts_back_at = USEC_NEVER;
        check_esx_host_is_free(&t->esx, 0);
        for (uint32_t i = 0; i < SIM_VCENTER_HOSTS; i++) {
            sim_vcenter_set_maintenance(&t->vcenter, i, false);
        }
    }
}

/* One host goes once more, with everybody's consent, and comes back. */
void sim_run_recover_esx(struct sim_run *t)
{
    usec_t now = virtual_loop_now(t->vloop);
    t->vcenter_up_at = t->vcenter.down ? now : USEC_NEVER;
    t->hosts_back_at = now + t->scenario->calm / 2;
    for (uint32_t i = 0; i < SIM_VCENTER_HOSTS; i++) {
        sim_vcenter_set_maintenance(&t->vcenter, i, i == 0);
    }
    for (uint32_t i = 0; i < t->scenario->nodes; i++) {
        if (t->vcenter.vms[i].host != i % SIM_VCENTER_HOSTS) {
            sim_vcenter_move(&t->vcenter, i); /* pods have to go somewhere */
        }
        esx_name_host(t, i);
        esx_set_label(t, i, KEY_ESX_REBOOT_OK, STR("true"));
        sim_run_cordon(t, esx_node(t, i), false); /* what others cordoned; ours comes again */
    }
    sim_run_esx_due(t, now);
}
