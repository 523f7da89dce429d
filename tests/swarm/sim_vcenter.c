#include "tests/swarm/sim_vcenter.h"

#define ENDS_WITHIN_MAX SECONDS(18) /* the story's vmShutdown.timeout is 20 s */

void sim_vcenter_init(struct sim_vcenter *v, struct virtual_loop *vloop, uint64_t seed,
                      uint32_t vm_n)
{
    ASSERT(vm_n <= SIM_VCENTER_VMS_MAX);
    *v = (struct sim_vcenter){ .vloop = vloop, .vm_n = vm_n };
    rng_init(&v->rng, seed ^ 0x6a09e667ULL);
    for (uint32_t i = 0; i < vm_n; i++) {
        v->vms[i] = (struct sim_vcenter_vm){
            .on = true,
            .deaf = rng_chance(&v->rng, 300),
            .no_tools = rng_chance(&v->rng, 150),
            .host = i % SIM_VCENTER_HOSTS,
        };
    }
}

void sim_vcenter_done(struct sim_vcenter *v)
{
    buf_done(&v->text);
}

void sim_vcenter_settle(struct sim_vcenter *v)
{
    for (uint32_t i = 0; i < v->vm_n; i++) {
        struct sim_vcenter_vm *vm = &v->vms[i];
        if (vm->ends > 0 && virtual_loop_now(v->vloop) >= vm->ends) {
            vm->ends = 0;
            vm->on = false;
        }
    }
}

void sim_vcenter_set_maintenance(struct sim_vcenter *v, uint32_t host, bool maintenance)
{
    if (v->hosts[host].maintenance != maintenance) {
        v->hosts[host] = (struct sim_vcenter_host){ maintenance, virtual_loop_now(v->vloop) };
    }
}

void sim_vcenter_move(struct sim_vcenter *v, uint32_t vm)
{
    v->vms[vm].host = (v->vms[vm].host + 1) % SIM_VCENTER_HOSTS;
    v->vms[vm].moved_at = virtual_loop_now(v->vloop);
}

/* ── its interface ─────────────────────────────────────────────────────────────────────────── */

static struct str soap_method(struct str body)
{
    struct str rest = str_sub(body, str_find(body, STR("<Body><")) + 7, SIZE_MAX);
    return str_sub(rest, 0, str_find_char(rest, ' '));
}

bool sim_vcenter_is_power_call(struct str body)
{
    return str_contains(body, STR("<ShutdownGuest ")) ||
           str_contains(body, STR("<PowerOffVM_Task ")) ||
           str_contains(body, STR("<PowerOnVM_Task "));
}

static void answer_inventory(struct sim_vcenter *v)
{
    buf_add(&v->text, STR("<R><returnval>"));
    for (uint32_t i = 0; i < SIM_VCENTER_HOSTS; i++) {
        buf_printf(&v->text,
                   "<objects><obj type=\"HostSystem\">host-%u</obj><propSet><name>name</name>"
                   "<val>esx-%u</val></propSet><propSet><name>runtime.inMaintenanceMode</name>"
                   "<val>%s</val></propSet></objects>",
                   i, i, v->hosts[i].maintenance ? "true" : "false");
    }
    for (uint32_t i = 0; i < v->vm_n; i++) {
        buf_printf(&v->text,
                   "<objects><obj type=\"VirtualMachine\">vm-%02u</obj><propSet><name>name</name>"
                   "<val>node-%03u</val></propSet><propSet><name>runtime.powerState</name>"
                   "<val>%s</val></propSet><propSet><name>runtime.host</name>"
                   "<val type=\"HostSystem\">host-%u</val></propSet></objects>",
                   i, i + 1, v->vms[i].on ? "poweredOn" : "poweredOff", v->vms[i].host);
    }
    buf_add(&v->text, STR("</returnval></R>"));
}

static void answer_fault(struct sim_vcenter *v, const char *name, struct inbox_answer *ret)
{
    ret->status = 500;
    buf_printf(&v->text, "<Fault><detail><%sFault/></detail></Fault>", name);
}

static void answer_power(struct sim_vcenter *v, struct str method, struct str body,
                         struct inbox_answer *ret)
{
    size_t at = str_find(body, STR("\">vm-"));
    uint32_t i = 0;
    bool named = str_to_u32(str_sub(body, at + 5, 2), &i) && i < v->vm_n;
    ASSERT(named);
    struct sim_vcenter_vm *vm = &v->vms[i];
    bool up = str_eq(method, STR("PowerOnVM_Task"));
    bool asks = str_eq(method, STR("ShutdownGuest"));
    if (vm->on == up) {
        answer_fault(v, "InvalidPowerState", ret);
        return;
    }
    v->on_power(v->ctx, i, up ? SIM_VCENTER_ON : asks ? SIM_VCENTER_SHUTDOWN : SIM_VCENTER_OFF);
    if (asks && vm->no_tools) {
        answer_fault(v, "ToolsUnavailable", ret);
        return;
    }
    if (!asks) {
        vm->ends = 0;
        vm->on = up;
    } else if (!vm->deaf && vm->ends == 0) {
        vm->ends = virtual_loop_now(v->vloop) + rng_usec(&v->rng, MSECONDS(1), ENDS_WITHIN_MAX);
    }
    buf_add(&v->text, STR("<R><returnval type=\"Task\">task-1</returnval></R>"));
}

static void answer_session(struct sim_vcenter *v, struct str method, struct str body,
                           struct inbox_answer *ret)
{
    if (str_eq(method, STR("CreateContainerView"))) {
        buf_add(&v->text, STR("<R><returnval type=\"ContainerView\">view</returnval></R>"));
    } else if (str_contains(body, STR("<obj type=\"Task\">"))) {
        buf_add(&v->text, STR("<R><returnval><objects><obj type=\"Task\">task-1</obj><propSet>"
                              "<name>info.state</name><val>success</val></propSet></objects>"
                              "</returnval></R>"));
    } else if (str_eq(method, STR("RetrievePropertiesEx"))) {
        answer_inventory(v);
    } else if (str_eq(method, STR("Logout"))) {
        buf_add(&v->text, STR("<R/>"));
    } else {
        answer_power(v, method, body, ret);
    }
}

void sim_vcenter_answer(void *ctx, const struct inbox_message *message, struct inbox_answer *ret)
{
    struct sim_vcenter *v = ctx;
    struct str body = message->request.body;
    struct str method = soap_method(body);
    sim_vcenter_settle(v);
    if (v->down) {
        ret->status = rng_chance(&v->rng, 500) ? 0 : 503;
        ret->body = STR("not now");
        return;
    }
    buf_reset(&v->text);
    buf_add(&v->text, STR("<Envelope><Body>"));
    if (str_eq(method, STR("RetrieveServiceContent"))) {
        buf_add(&v->text,
                STR("<R><returnval><rootFolder type=\"F\">r</rootFolder><propertyCollector "
                    "type=\"P\">p</propertyCollector><viewManager type=\"V\">v</viewManager>"
                    "<sessionManager type=\"S\">s</sessionManager></returnval></R>"));
    } else if (str_eq(method, STR("Login"))) {
        v->session = true;
        ret->header = STR("vmware_soap_session=\"1\"; Path=/");
        buf_add(&v->text, STR("<R><returnval/></R>"));
    } else if (!v->session) {
        answer_fault(v, "NotAuthenticated", ret);
    } else {
        answer_session(v, method, body, ret);
    }
    buf_add(&v->text, STR("</Body></Envelope>"));
    ret->body = buf_str(&v->text);
}
