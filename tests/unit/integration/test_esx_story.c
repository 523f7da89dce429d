/*
 * Two controllers, a cluster, hosts that come and go, and a vCenter: random stories in virtual
 * time, with crashes, frozen leaders and bad networks. After each call about a machine it is
 * checked that the machine was allowed to go.
 */
#include "integration/integration.h"
#include "kinds/keys.h"
#include "sandbox/sim/outbound.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"

#define SEEDS 20u
#define HOSTS 2u
#define NODES 6u
#define CONTROLLERS 2u
#define WALL SECONDS(1767323045)

static const char config_text[] =
    "intervals:\n  check: {period: 10s, jitter: 0.1}\n"
    "  podEviction: {period: 5s, timeout: 5m}\n  vmShutdown: {period: 2s, timeout: 20s}\n"
    "vCenters:\n  templateUrl: https://vcenter-$AZ\n"
    "  credentials: {a: {username: user, password: secret}}\n";

struct process {
    struct story *story;
    uint32_t index;
    uint32_t incarnation;
    char identity[32];
    struct loop *view;
    struct faults faults;
    struct api *api;
    struct outbound *outbound;
    struct core *core; /* NULL: it does not run */
    struct integrations integrations;
};

struct story {
    struct rng rng;
    struct virtual_loop *time;
    struct apiserver *server;
    struct world *world;
    struct inbox inbox;
    struct arena memory;
    struct buf text;
    struct process processes[CONTROLLERS];
    bool maintenance[HOSTS];
    bool on[NODES];
    bool deaf[NODES];   /* its system does not end when it is asked to */
    usec_t ends[NODES]; /* when it will be off, having been asked; 0 = it was not */
    bool session;
    uint32_t downs; /* machines that went */
    uint32_t ups;
    char violation[256]; /* the first */
};

/* ── the cluster ───────────────────────────────────────────────────────────────────────────── */

static void story_send(struct story *s, const char *method, const char *path, struct str body)
{
    struct apiserver_reply reply = { 0 };
    apiserver_handle(
        s->server,
        &(struct apiserver_request){
            .method = str_from(method),
            .path = str_from(path),
            .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
            .body = body,
        },
        &s->memory, &reply);
    CHECK(reply.status >= 200 && reply.status < 300);
}

static const struct jval *story_node(struct story *s, uint32_t i)
{
    struct str name = arena_printf(&s->memory, "node-%03u", i + 1);
    const struct jval *node = apiserver_find(s->server, STR(""), STR("nodes"), STR(""), name);
    CHECK(node != NULL);
    return node;
}

static bool label_is(const struct jval *node, struct str key, const char *value)
{
    return str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), key)), str_from(value));
}

static bool is_initiated(const struct jval *node)
{
    return str_eq(jval_str(jval_get(jval_at(node, "metadata.annotations"), KEY_ESX_INITIATED)),
                  STR("true"));
}

static bool is_cordoned(const struct jval *node)
{
    return jval_bool(jval_at(node, "spec.unschedulable"), false);
}

struct pod_count {
    struct str node;
    uint32_t n;
};

static void count_pod(void *ctx, const struct jval *pod)
{
    struct pod_count *count = ctx;
    count->n += str_eq(jval_str(jval_at(pod, "spec.nodeName")), count->node) ? 1 : 0;
}

static void violate(struct story *s, const char *what, uint32_t vm)
{
    if (s->violation[0] == '\0') {
        (void)snprintf(s->violation, sizeof(s->violation), "node-%03u: %s", vm + 1, what);
    }
}

/* A machine is about to go: may it? */
static void check_down(struct story *s, uint32_t vm)
{
    const struct jval *node = story_node(s, vm);
    struct pod_count count = { .node = arena_printf(&s->memory, "node-%03u", vm + 1) };
    apiserver_each(s->server, STR(""), STR("pods"), STR("default"), count_pod, &count);
    if (!label_is(node, KEY_ESX_REBOOT_OK, "true")) {
        violate(s, "its machine goes without approval", vm);
    } else if (!is_initiated(node) || !is_cordoned(node)) {
        violate(s, "its machine goes before the node says so", vm);
    } else if (count.n > 0) {
        violate(s, "its machine goes with pods on it", vm);
    } else if (!label_is(node, KEY_ESX_MODE, "true") &&
               jval_get(jval_at(node, "metadata.annotations"), KEY_ESX_SHUTDOWN) == NULL) {
        violate(s, "its machine goes though its host is not in maintenance", vm);
    }
}

/* ── the vCenter ───────────────────────────────────────────────────────────────────────────── */

/* Systems take their time to end. */
static void story_settle(struct story *s)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (s->ends[i] > 0 && virtual_loop_now(s->time) >= s->ends[i]) {
            s->ends[i] = 0;
            s->on[i] = false;
            s->downs++;
        }
    }
}

static void answer_inventory(struct story *s)
{
    buf_add(&s->text, STR("<R><returnval>"));
    for (uint32_t i = 0; i < HOSTS; i++) {
        buf_printf(&s->text,
                   "<objects><obj type=\"HostSystem\">host-%u</obj><propSet><name>name</name>"
                   "<val>esx-%u</val></propSet><propSet><name>runtime.inMaintenanceMode</name>"
                   "<val>%s</val></propSet></objects>",
                   i, i, s->maintenance[i] ? "true" : "false");
    }
    for (uint32_t i = 0; i < NODES; i++) {
        buf_printf(&s->text,
                   "<objects><obj type=\"VirtualMachine\">vm-%u</obj><propSet><name>name</name>"
                   "<val>node-%03u</val></propSet><propSet><name>runtime.powerState</name>"
                   "<val>%s</val></propSet><propSet><name>runtime.host</name>"
                   "<val type=\"HostSystem\">host-%u</val></propSet></objects>",
                   i, i + 1, s->on[i] ? "poweredOn" : "poweredOff", i % HOSTS);
    }
    buf_add(&s->text, STR("</returnval></R>"));
}

static void answer_fault(struct story *s, const char *name, struct inbox_answer *ret)
{
    ret->status = 500;
    buf_printf(&s->text, "<Fault><detail><%sFault/></detail></Fault>", name);
}

static void answer_power(struct story *s, struct str method, struct str body,
                         struct inbox_answer *ret)
{
    size_t at = str_find(body, STR("\">vm-"));
    uint32_t vm = (uint32_t)(body.p[at + 5] - '0');
    bool up = str_eq(method, STR("PowerOnVM_Task"));
    CHECK(vm < NODES);
    if (s->on[vm] == up) {
        answer_fault(s, "InvalidPowerState", ret);
        return;
    }
    if (up) {
        s->ups++;
        s->on[vm] = true;
    } else {
        check_down(s, vm);
        if (!str_eq(method, STR("ShutdownGuest"))) {
            s->ends[vm] = 0;
            s->on[vm] = false;
            s->downs++;
        } else if (!s->deaf[vm] && s->ends[vm] == 0) {
            s->ends[vm] = virtual_loop_now(s->time) + MSECONDS(1 + rng_below(&s->rng, 18000));
        }
    }
    buf_add(&s->text, STR("<R><returnval type=\"Task\">task-1</returnval></R>"));
}

static void answer(void *ctx, const struct inbox_message *message, struct inbox_answer *ret)
{
    struct story *s = ctx;
    struct str body = message->request.body;
    story_settle(s);
    struct str rest = str_sub(body, str_find(body, STR("<Body><")) + 7, SIZE_MAX);
    struct str method = str_sub(rest, 0, str_find_char(rest, ' '));
    buf_reset(&s->text);
    buf_add(&s->text, STR("<Envelope><Body>"));
    if (str_eq(method, STR("RetrieveServiceContent"))) {
        buf_add(&s->text,
                STR("<R><returnval><rootFolder type=\"F\">r</rootFolder><propertyCollector "
                    "type=\"P\">p</propertyCollector><viewManager type=\"V\">v</viewManager>"
                    "<sessionManager type=\"S\">s</sessionManager></returnval></R>"));
    } else if (str_eq(method, STR("Login"))) {
        s->session = true;
        ret->header = STR("vmware_soap_session=\"1\"; Path=/");
        buf_add(&s->text, STR("<R><returnval/></R>"));
    } else if (!s->session) {
        answer_fault(s, "NotAuthenticated", ret);
    } else if (str_eq(method, STR("CreateContainerView"))) {
        buf_add(&s->text, STR("<R><returnval type=\"ContainerView\">view</returnval></R>"));
    } else if (str_contains(body, STR("<obj type=\"Task\">"))) {
        buf_add(&s->text, STR("<R><returnval><objects><obj type=\"Task\">task-1</obj><propSet>"
                              "<name>info.state</name><val>success</val></propSet></objects>"
                              "</returnval></R>"));
    } else if (str_eq(method, STR("RetrievePropertiesEx"))) {
        answer_inventory(s);
    } else if (str_eq(method, STR("Logout"))) {
        buf_add(&s->text, STR("<R/>"));
    } else {
        answer_power(s, method, body, ret);
    }
    buf_add(&s->text, STR("</Body></Envelope>"));
    ret->body = buf_str(&s->text);
}

/* ── controllers ───────────────────────────────────────────────────────────────────────────── */

static void process_start(struct process *p)
{
    struct story *s = p->story;
    struct integrations_config config = { 0 };
    (void)snprintf(p->identity, sizeof(p->identity), "c%u_%u", p->index, ++p->incarnation);
    p->api = sim_api_new(p->view, s->server, &p->faults);
    p->outbound = sim_outbound_new(p->view, &s->inbox, &p->faults);
    p->core = core_new(&(struct core_config){ .loop = p->view,
                                              .api = p->api,
                                              .identity = str_from(p->identity),
                                              .elect = true,
                                              .limits = { .namespace = STR("default") } });
    config.outbound = p->outbound;
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        config.enabled[i] = strcmp(integration_providers[i]->name, "esx") == 0;
    }
    integrations_init(&p->integrations, p->core, &config);
    struct integration *esx = integrations_find(&p->integrations, STR("esx"));
    CHECK_EQ(
        integration_configure(esx, STR("esx.yaml"), str_from(config_text), (struct ucfg_env){ 0 }),
        0);
    core_start(p->core);
}

static void process_crash(struct process *p)
{
    if (p->core == NULL) {
        return;
    }
    virtual_loop_freeze(p->view, false);
    integrations_done(&p->integrations);
    core_free(STEAL(p->core));
    sim_outbound_free(STEAL(p->outbound));
    sim_api_free(STEAL(p->api));
}

/* ── the story ─────────────────────────────────────────────────────────────────────────────── */

static void story_begin(struct story *s, uint64_t seed)
{
    *s = (struct story){ .time = virtual_loop_new(seed, WALL) };
    rng_init(&s->rng, seed);
    struct loop *root = virtual_loop_root(s->time);
    s->server = apiserver_new(root, seed);
    s->world = world_new(root, s->server, &(struct world_config){ .seed = seed, .nodes = NODES });
    inbox_init(&s->inbox);
    s->inbox.script = answer;
    s->inbox.ctx = s;
    for (uint32_t i = 0; i < NODES; i++) {
        s->on[i] = true;
        s->deaf[i] = rng_chance(&s->rng, 300);
        struct str path = arena_printf(&s->memory, "/api/v1/nodes/node-%03u", i + 1);
        story_send(s, "PATCH", path.p,
                   arena_printf(&s->memory,
                                "{\"metadata\":{\"labels\":{\"kubernetes.cloud.sap/host\":"
                                "\"esx-%u\",\"failure-domain.beta.kubernetes.io/zone\":\"qa-a\"}}}",
                                i % HOSTS));
    }
    story_send(s, "POST", "/apis/apps/v1/namespaces/default/deployments",
               STR("{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":9,\"selector\":"
                   "{\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":"
                   "{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"
                   "}}}}"));
    for (uint32_t i = 0; i < CONTROLLERS; i++) {
        struct process *p = &s->processes[i];
        *p = (struct process){ .story = s, .index = i };
        p->view = virtual_loop_view_new(s->time, 0);
        faults_init(&p->faults, seed + i);
        process_start(p);
    }
}

static void story_run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
}

static void story_approve(struct story *s, uint32_t i, bool yes)
{
    struct str path = arena_printf(&s->memory, "/api/v1/nodes/node-%03u", i + 1);
    story_send(s, "PATCH", path.p,
               yes ? STR("{\"metadata\":{\"labels\":{\"cloud.sap/esx-reboot-ok\":\"true\"}}}")
                   : STR("{\"metadata\":{\"labels\":{\"cloud.sap/esx-reboot-ok\":null}}}"));
}

static void story_act(struct story *s)
{
    struct process *p = &s->processes[rng_below(&s->rng, CONTROLLERS)];
    switch (rng_below(&s->rng, 8)) {
    case 0:
    case 1: {
        uint32_t host = rng_below(&s->rng, HOSTS);
        s->maintenance[host] = !s->maintenance[host];
        break;
    }
    case 2:
    case 3:
        story_approve(s, rng_below(&s->rng, NODES), true);
        break;
    case 4:
        process_crash(p);
        process_start(p);
        break;
    case 5:
        virtual_loop_freeze(p->view, !virtual_loop_is_frozen(p->view));
        break;
    case 6:
        faults_randomize(&p->faults);
        break;
    case 7:
        s->session = false;
        break;
    default:
        break;
    }
}

/* All is well again from now on. */
static void story_heal(struct story *s)
{
    for (uint32_t i = 0; i < CONTROLLERS; i++) {
        struct process *p = &s->processes[i];
        virtual_loop_freeze(p->view, false);
        p->faults.calm = true;
        p->faults.down = false;
        p->faults.partitioned = false;
    }
}

static void story_end(struct story *s)
{
    for (uint32_t i = 0; i < CONTROLLERS; i++) {
        process_crash(&s->processes[i]);
    }
    world_free(s->world);
    story_run(s, MINUTES(10)); /* what was in flight arrives */
    for (uint32_t i = 0; i < CONTROLLERS; i++) {
        virtual_loop_view_free(s->processes[i].view);
        faults_done(&s->processes[i].faults);
    }
    inbox_done(&s->inbox);
    apiserver_free(s->server);
    virtual_loop_free(s->time);
    arena_done(&s->memory);
    buf_done(&s->text);
}

static void story_check_back(struct story *s)
{
    story_settle(s);
    for (uint32_t i = 0; i < NODES; i++) {
        const struct jval *node = story_node(s, i);
        if (!s->on[i]) {
            violate(s, "its machine stays off though its host is back", i);
        } else if (is_initiated(node) || is_cordoned(node)) {
            violate(s, "does not come back with its host", i);
        } else if (!label_is(node, KEY_ESX_MODE, "false")) {
            violate(s, "its label is not that of its host", i);
        }
    }
}

/* A host that is back while a system still ends. */
static void story_change_mind(struct story *s)
{
    s->maintenance[1] = true;
    for (uint32_t i = 0; i < 600; i++) {
        story_run(s, MSECONDS(500));
        if (s->ends[1] > 0 || s->ends[3] > 0 || s->ends[5] > 0) {
            return;
        }
    }
}

TEST(esx_machines_go_only_when_they_may_and_come_back_whatever_happens)
{
    uint32_t downs = 0;
    uint32_t ups = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct story s;
        check_case((int64_t)seed);
        story_begin(&s, seed);
        for (uint32_t i = 0; i < 30 && s.violation[0] == '\0'; i++) {
            story_run(&s, MSECONDS(rng_below(&s.rng, 40000)));
            story_act(&s);
        }
        story_heal(&s);
        s.maintenance[0] = true; /* work that can go on goes on */
        for (uint32_t i = 0; i < NODES; i++) {
            story_approve(&s, i, true);
        }
        story_run(&s, MINUTES(15));
        story_settle(&s);
        for (uint32_t i = 0; i < NODES; i += HOSTS) {
            if (s.on[i]) {
                violate(&s, "its machine does not go", i);
            }
        }
        story_change_mind(&s);
        memset(s.maintenance, 0, sizeof(s.maintenance));
        story_run(&s, MINUTES(15));
        story_check_back(&s);
        downs += s.downs;
        ups += s.ups;
        struct str found = arena_str(&s.memory, str_from(s.violation));
        CHECK_STR(found, "");
        story_end(&s);
    }
    check_case(-1);
    CHECK(downs > SEEDS * 3 && ups > SEEDS * 3); /* the stories are about something */
}
