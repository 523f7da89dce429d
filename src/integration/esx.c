/*
 * esx: nodes that are virtual machines on ESX hosts. vCenters say which hosts go into maintenance
 * mode; their nodes are labelled, drained and shut down, and come back with their host.
 *
 * What is to be done is decided by esx_decide.h; this file collects the facts, and acts. Zones do
 * not wait for each other: each has its vCenter, with a session and a rhythm of its own.
 */
#include "base/alloc.h"
#include "base/timestamp.h"
#include "format/json.h"
#include "format/label_syntax.h"
#include "integration/esx_config.h"
#include "integration/esx_decide.h"
#include "integration/integration_node.h"
#include "integration/providers.h"
#include "integration/vcenter.h"
#include "kinds/keys.h"

#define ESX_SILENT_PERIODS 3     /* a vCenter that does not answer for so long is unknown */
#define ESX_RETRY_MIN SECONDS(2) /* of a call about a machine that failed */
#define ESX_RETRY_MAX MINUTES(5)
#define ESX_TRUE_TEXT STR("true")
#define ESX_CORDON_OTHERS STR("others")

struct esx {
    struct integration *in;
    struct map zones;               /* name → struct esx_zone */
    struct map hosts;               /* "zone/host" → struct esx_host */
    struct integration_nodes nodes; /* of struct esx_node by its `common` */
    bool told;                      /* all readings were told of */
    struct metric *up;
    struct metric *requests;
    struct metric *logins;
    struct metric *seconds;
};

/* A zone that the configuration has credentials for. */
struct esx_zone {
    struct esx *e;
    struct vcenter vcenter;
    struct str name; /* borrowed: from its end */
    usec_t started;  /* monotonic: what was read before does not count; 0 = nothing was asked for */
    usec_t next;     /* monotonic: the next reading */
    usec_t check_at; /* monotonic: machines that are waited for are looked at then */
    usec_t known_at; /* of the inventory that the index is of */
    usec_t told_at;  /* and of the one that was told of */
    struct arena memory;
    struct map hosts; /* name → struct esx_entry */
    struct map vms;
    bool configured;   /* in the configuration that is in force */
    uint64_t requests; /* and logins that the metrics have been told of */
    uint64_t logins;
    struct activity_note note;
    char name_bytes[];
};

/* What an inventory has under a name. */
struct esx_entry {
    uint32_t at; /* the first */
    uint32_t n;
};

struct esx_host {
    struct str zone; /* borrowed: from `key` */
    struct str name;
    enum esx_mode mode; /* as last logged */
    struct list nodes;  /* struct esx_node by its link */
    char key[];
};

struct esx_node {
    struct integration_node common;
    struct esx *e;
    struct esx_host *host;
    struct list link; /* in its host */
    struct vcenter_call *call;
    enum vim25_power_call called;
    bool asked;
    bool switched_on;
    enum vim25_fault refusal;
    usec_t retry_at;
    struct backoff backoff;
};

static struct esx_node *esx_node_of(struct integration_node *common)
{
    return CONTAINER_OF(common, struct esx_node, common);
}

/* ── what is to be looked at ───────────────────────────────────────────────────────────────── */

static void esx_host_mark(struct esx_host *h)
{
    LIST_EACH (&h->nodes, link) {
        integration_node_mark(&CONTAINER_OF(link, struct esx_node, link)->common);
    }
}

static void esx_zone_mark(struct esx_zone *z)
{
    MAP_EACH (&z->e->hosts, entry) {
        struct esx_host *h = map_item_value(entry);
        if (str_eq(h->zone, z->name)) {
            esx_host_mark(h);
        }
    }
    integration_wake(z->e->in);
}

/* ── zones ─────────────────────────────────────────────────────────────────────────────────── */

static void esx_index_add(struct map *map, struct arena *memory, struct str name, uint32_t at)
{
    struct esx_entry *entry = map_find(map, name);
    if (entry == NULL) {
        entry = ARENA_NEW(memory, struct esx_entry);
        entry->at = at;
        (void)map_put(map, name, entry); /* it was not there */
    }
    entry->n++;
}

/* Names of strangers: the maps have keys of their own. */
static void esx_zone_index(struct esx_zone *z)
{
    const struct vim25_objects *known = &z->vcenter.inventory;
    struct loop *loop = z->e->in->core->loop;
    if (z->known_at == z->vcenter.read_at) {
        return;
    }
    z->known_at = z->vcenter.read_at;
    map_done(&z->hosts);
    map_done(&z->vms);
    arena_reset(&z->memory);
    map_init(&z->hosts, loop_random(loop), loop_random(loop));
    map_init(&z->vms, loop_random(loop), loop_random(loop));
    for (uint32_t i = 0; i < known->host_n; i++) {
        esx_index_add(&z->hosts, &z->memory, known->hosts[i].name, i);
    }
    for (uint32_t i = 0; i < known->vm_n; i++) {
        esx_index_add(&z->vms, &z->memory, known->vms[i].name, i);
    }
}

static void esx_zone_on_change(void *ctx)
{
    struct esx_zone *z = ctx;
    esx_zone_index(z);
    esx_zone_mark(z);
}

static bool esx_zone_wants_host(void *ctx, struct str host)
{
    const struct esx_zone *z = ctx;
    CLEANUP(buf_done)
    struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(z->name), STR_ARG(host));
    return map_find(&z->e->hosts, buf_str(&key)) != NULL;
}

static struct esx_zone *esx_zone_new(struct esx *e, struct str name)
{
    struct esx_zone *z = alloc_bytes(sizeof(*z) + name.n);
    memcpy(z->name_bytes, name.p, name.n);
    z->name = (struct str){ .p = z->name_bytes, .n = name.n };
    z->e = e;
    vcenter_init(&z->vcenter, e->in->core->loop, e->in->outbound,
                 &(struct vcenter_hooks){ .on_change = esx_zone_on_change,
                                          .wants_host = esx_zone_wants_host,
                                          .ctx = z });
    (void)map_put(&e->zones, z->name, z); /* it was not there */
    return z;
}

/* Calls about its machines are forgotten with it. */
static void esx_zone_free(struct esx_zone *z)
{
    MAP_EACH (&z->e->nodes.by_name, entry) {
        struct esx_node *n = esx_node_of(map_item_value(entry));
        if (n->call != NULL && n->call->v == &z->vcenter) {
            vcenter_power_cancel(STEAL(n->call));
        }
    }
    (void)map_del(&z->e->zones, z->name); /* it is freed here */
    vcenter_done(&z->vcenter);
    map_done(&z->hosts);
    map_done(&z->vms);
    arena_done(&z->memory);
    activity_note_done(&z->note);
    alloc_free(z);
}

static bool esx_zone_is_used(const struct esx_zone *z)
{
    MAP_EACH (&z->e->hosts, entry) {
        if (str_eq(((const struct esx_host *)map_item_value(entry))->zone, z->name)) {
            return true;
        }
    }
    return false;
}

/* What an integration tells of a zone, and what goes wrong there. */
static void esx_zone_tell(struct esx_zone *z)
{
    struct integration *in = z->e->in;
    const struct vcenter *v = &z->vcenter;
    usec_t wall = loop_wall(in->core->loop);
    if (v->err.code == 0) {
        if (v->read_at > 0 && z->told_at != v->read_at) {
            z->told_at = v->read_at;
            z->e->told = false;
            activity_did(&z->note, wall, "read %u hosts and %u virtual machines of zone " STR_FMT,
                         v->inventory.host_n, v->inventory.vm_n, STR_ARG(z->name));
        }
        return;
    }
    struct err err = v->err;
    (void)err_wrap(&err, "vCenter of zone '" STR_FMT "'", STR_ARG(z->name));
    if (activity_failed(&z->note, wall, str_from(err.msg))) {
        integration_failed(in, &err);
    }
}

/* Who has not led for a while, or was stopped, knows what was so then: it reads again first. */
static void esx_zone_notice_gap(struct esx_zone *z, usec_t now)
{
    const struct esx_config *config = z->e->in->config;
    if (z->started > 0 && now > z->next + config->period &&
        !mutated(z->e->in->core->config.mutations, MUTATION_ESX_READ_LONG_AGO)) {
        z->started = now;
        z->next = now;
    }
}

/* The rhythm: from start to start, with a random part. */
static void esx_zone_step(struct esx_zone *z, usec_t now)
{
    const struct esx_config *config = z->e->in->config;
    struct loop *loop = z->e->in->core->loop;
    esx_zone_tell(z);
    if (!esx_zone_is_used(z)) {
        return;
    }
    if (now >= z->next) {
        double part = (double)(loop_random(loop) % 1000) / 1000.0;
        z->started = z->started > 0 ? z->started : now;
        z->next = now + config->period +
                  (usec_t)((double)config->period * MIN(config->jitter, 1.0) * part);
        vcenter_read(&z->vcenter);
    }
    integration_wake_at(z->e->in, z->next);
}

/* Machines that are shutting down are looked at every vmShutdown.period, all by one request. */
static void esx_zone_check_vms(struct esx_zone *z, usec_t now)
{
    const struct esx_config *config = z->e->in->config;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct vim25_ref *refs = NULL;
    uint32_t n = 0;
    uint32_t cap = 0;
    MAP_EACH (&z->e->nodes.by_name, item) {
        const struct esx_node *node = esx_node_of(map_item_value(item));
        const struct esx_entry *entry = map_find(&z->vms, node->common.name);
        if (node->asked && str_eq(node->host->zone, z->name) && entry != NULL &&
            z->vcenter.inventory.vms[entry->at].power != VIM25_POWERED_OFF) {
            ARENA_GROW(&tmp, refs, n, cap);
            refs[n++] = z->vcenter.inventory.vms[entry->at].ref;
        }
    }
    if (n == 0) {
        z->check_at = 0;
        return;
    }
    if (z->check_at == 0) {
        z->check_at = now + config->shutdown_period;
    } else if (now >= z->check_at) {
        (void)vcenter_check_vms(&z->vcenter, refs, n); /* or in the next period */
        z->check_at = now + config->shutdown_period;
    }
    integration_wake_at(z->e->in, z->check_at);
}

/* ── facts ─────────────────────────────────────────────────────────────────────────────────── */

/* What is known of a host; `*ret_problem` says why it is not. False: it is not known yet. */
static bool esx_host_facts(struct esx *e, const struct esx_host *h, struct esx_host_facts *ret,
                           const char **ret_problem)
{
    const struct esx_config *config = e->in->config;
    const struct esx_zone *z = map_find(&e->zones, h->zone);
    *ret = (struct esx_host_facts){ .alarms = config->alarms.items, .alarm_n = config->alarms.n };
    if (z == NULL) {
        *ret_problem = "the configuration has no credentials for the zone of its host";
        return true;
    }
    const struct vcenter *v = &z->vcenter;
    usec_t silent = loop_now(e->in->core->loop) - MAX(v->read_at, z->started);
    if (v->failing_since > 0 && (v->refused || silent > ESX_SILENT_PERIODS * config->period)) {
        *ret_problem = "the vCenter of its host does not answer as it should";
        return true;
    }
    if (v->read_at == 0 || v->read_at < z->started) {
        return false;
    }
    const struct esx_entry *entry = map_find(&z->hosts, h->name);
    if (entry == NULL || entry->n != 1) {
        *ret_problem = entry == NULL ? "its vCenter has no host of that name"
                                     : "its vCenter has several hosts of that name";
        return true;
    }
    ret->host = &v->inventory.hosts[entry->at];
    ret->known = &v->inventory;
    if (!ret->host->known) {
        *ret_problem = "its vCenter does not say whether the host is in maintenance mode";
    }
    return true;
}

static bool esx_label_is_true(const struct node *node, struct str key)
{
    return str_eq(node_label(node, key), ESX_TRUE_TEXT);
}

static bool esx_is_initiated(const struct node *node)
{
    return str_eq(node_annotation(node, KEY_ESX_INITIATED), ESX_TRUE_TEXT);
}

static bool esx_host_is_approved(const struct esx *e, const struct esx_host *h)
{
    LIST_EACH (&h->nodes, link) {
        const struct esx_node *n = CONTAINER_OF(link, struct esx_node, link);
        const struct store_item *item = store_find(&e->in->core->nodes.store, n->common.name);
        if (item != NULL && !esx_label_is_true(item->object, KEY_ESX_REBOOT_OK)) {
            return false;
        }
    }
    return true;
}

static enum esx_mode esx_label_mode(const struct node *node)
{
    struct str text = node_label(node, KEY_ESX_MODE);
    for (enum esx_mode mode = ESX_FALSE; mode <= ESX_ALARM; mode++) {
        if (str_eq(text, esx_mode_text(mode))) {
            return mode;
        }
    }
    return ESX_UNKNOWN;
}

/* When the Node says that its machine was told to end, by this process's clock. */
static usec_t esx_shutdown_at(const struct core *core, const struct node *node)
{
    struct timestamp noted;
    struct err ignored = { 0 };
    if (timestamp_parse(node_annotation(node, KEY_ESX_SHUTDOWN), &noted, &ignored) < 0) {
        return 0;
    }
    usec_t age = server_clock_wall(&core->client.clock) - timestamp_to_usec(noted);
    usec_t at = loop_now(core->loop) - (age > 0 ? age : 0);
    return MAX(at, 1); /* 0 says that there is none */
}

static void esx_node_facts(const struct esx_node *n, const struct node *node, enum esx_mode mode,
                           const struct vim25_host *host, struct esx_node_facts *ret)
{
    const struct esx *e = n->e;
    const struct esx_zone *z = map_find(&e->zones, n->host->zone);
    const struct esx_entry *entry = z == NULL ? NULL : map_find(&z->vms, n->common.name);
    *ret = (struct esx_node_facts){
        .label = esx_label_mode(node),
        .approved = esx_label_is_true(node, KEY_ESX_REBOOT_OK),
        .initiated = esx_is_initiated(node),
        .cordoned = node->unschedulable,
        .mode = mode,
        .all_approved = esx_host_is_approved(e, n->host),
        .vm_n = entry == NULL ? 0 : entry->n,
        .vm = entry == NULL ? NULL : &z->vcenter.inventory.vms[entry->at],
        .reserved = n->common.reserved,
        .drained = n->common.drain != NULL && drain_is_done(n->common.drain),
        .calling = n->call != NULL,
        .shutdown_at = esx_shutdown_at(e->in->core, node),
        .asked = n->asked,
        .switched_on = n->switched_on,
        .refusal = n->refusal,
        .retry_at = n->retry_at,
    };
    ret->elsewhere = ret->vm != NULL && ret->vm->host.id.n > 0 && host != NULL &&
                     !vim25_ref_eq(ret->vm->host, host->ref);
}

/* ── machines ──────────────────────────────────────────────────────────────────────────────── */

static struct vim25_vm *esx_node_vm(const struct esx_node *n)
{
    struct esx_zone *z = map_find(&n->e->zones, n->host->zone);
    const struct esx_entry *entry = z == NULL ? NULL : map_find(&z->vms, n->common.name);
    return entry == NULL ? NULL : &z->vcenter.inventory.vms[entry->at];
}

static void esx_node_fail(struct esx_node *n, const struct err *err)
{
    struct core *core = n->e->in->core;
    if (activity_failed(&n->common.note, loop_wall(core->loop), str_from(err->msg))) {
        log_error(core->log, "failed to handle the virtual machine of a node",
                  KV_STR("node", n->common.name), KV_STR("host", n->host->name), KV_ERR(err));
    }
}

static void esx_node_on_power(void *ctx, const struct vcenter_result *result)
{
    struct esx_node *n = ctx;
    struct core *core = n->e->in->core;
    usec_t now = loop_now(core->loop);
    struct vim25_vm *vm = esx_node_vm(n);
    n->call = NULL;
    n->refusal = result->fault;
    if (result->err.code == 0) {
        backoff_reset(&n->backoff);
        n->retry_at = 0;
        n->asked = n->asked || n->called == VIM25_SHUTDOWN_GUEST;
        n->switched_on = n->called == VIM25_POWER_ON;
        if (n->called != VIM25_SHUTDOWN_GUEST && vm != NULL) {
            vm->power = n->called == VIM25_POWER_ON ? VIM25_POWERED_ON : VIM25_POWERED_OFF;
        }
        activity_did(&n->common.note, loop_wall(core->loop), "%s of its virtual machine",
                     vim25_power_call_name(n->called));
        log_info(core->log, "virtual machine", KV_STR("node", n->common.name),
                 KV_TEXT("did", vim25_power_call_name(n->called)));
    } else if (result->fault == VIM25_TOOLS_UNAVAILABLE && n->called == VIM25_SHUTDOWN_GUEST) {
        n->retry_at = 0; /* it is switched off instead, at once */
        log_info(core->log, "virtual machine has no tools", KV_STR("node", n->common.name));
    } else {
        n->retry_at = now + backoff_next(&n->backoff, loop_random(core->loop));
        esx_node_fail(n, &result->err);
    }
    if (result->fault == VIM25_WRONG_POWER_STATE || result->fault == VIM25_NOT_AUTHENTICATED) {
        struct esx_zone *z = map_find(&n->e->zones, n->host->zone);
        if (z != NULL) {
            z->next = now; /* what is known of it is old */
        }
    }
    integration_node_mark(&n->common);
}

static void esx_node_power(struct esx_node *n, enum vim25_power_call what)
{
    struct esx_zone *z = map_find(&n->e->zones, n->host->zone);
    const struct vim25_vm *vm = esx_node_vm(n);
    ASSERT(z != NULL && vm != NULL && n->call == NULL);
    if (!core_may_act(n->e->in->core)) {
        return;
    }
    n->called = what;
    n->call = vcenter_power(&z->vcenter, what, vm->ref, esx_node_on_power, n);
    if (n->call == NULL) {
        /* There is no session: the next reading makes one. */
        n->retry_at = loop_now(n->e->in->core->loop) + ESX_RETRY_MIN;
        vcenter_read(&z->vcenter);
        integration_node_again_at(&n->common, n->retry_at);
    }
}

/* ── acting ────────────────────────────────────────────────────────────────────────────────── */

static bool esx_node_confirm(void *ctx UNUSED, const struct jval *node)
{
    return str_eq(jval_str(jval_get(jval_at(node, "metadata.annotations"), KEY_ESX_INITIATED)),
                  ESX_TRUE_TEXT);
}

/* Its place under the limits, as far as the plan needs it. */
static void esx_node_reserve(struct esx_node *n, const struct store_item *item, bool needed,
                             bool initiated, struct str *ret_why)
{
    if (!needed) {
        integration_node_unreserve(&n->common, item);
        return;
    }
    CLEANUP(buf_done)
    struct buf name = { 0 };
    buf_printf(&name, "esx/" STR_FMT, STR_ARG(n->host->name));
    (void)integration_node_reserve(&n->common, item,
                                   &(struct node_reservation_spec){
                                       .name = buf_str(&name),
                                       .already_true = initiated,
                                       .confirm = esx_node_confirm,
                                   },
                                   ret_why); /* n->common.reserved says it */
}

static void esx_node_drain(struct esx_node *n, const struct store_item *item, bool needed,
                           bool at_once)
{
    const struct esx_config *config = n->e->in->config;
    if (!needed) {
        integration_node_stop_drain(&n->common);
        return;
    }
    integration_node_drain(&n->common, item,
                           &(struct integration_drain){
                               .eviction_timeout = config->eviction_timeout,
                               .deletion_timeout = config->deletion_timeout,
                               .force = config->force,
                               .grace = at_once ? 0 : -1,
                           });
}

/* The Node as it is to be. A cordon that was there before is another's: it stays. */
static void esx_node_wish(const struct esx_node_facts *f, const struct node *node,
                          const struct vim25_host *host, enum esx_step step, struct str wall,
                          struct node_write_wish *ret)
{
    CLEANUP(buf_done)
    struct buf ignored = { 0 };
    bool others = str_eq(node_annotation(node, KEY_ESX_CORDON), ESX_CORDON_OTHERS);
    node_write_label(ret, KEY_ESX_MODE, esx_mode_text(f->mode));
    if (host != NULL && host->version.n > 0 && label_value_check(host->version, &ignored)) {
        node_write_label(ret, KEY_ESX_VERSION, host->version);
    }
    if (step == ESX_STEP_MARK) {
        bool was = !f->initiated && f->cordoned;
        node_write_annotation(ret, KEY_ESX_INITIATED, ESX_TRUE_TEXT);
        node_write_annotation(ret, KEY_ESX_CORDON, was ? ESX_CORDON_OTHERS : STR_NONE);
        ret->cordon = NODE_WRITE_CORDON;
    } else if (step == ESX_STEP_NOTE) {
        node_write_annotation(ret, KEY_ESX_SHUTDOWN, wall);
    } else if (step == ESX_STEP_OFF || step == ESX_STEP_POWER_ON) {
        node_write_annotation(ret, KEY_ESX_SHUTDOWN, STR_NONE);
    } else if (step == ESX_STEP_RELEASE) {
        node_write_annotation(ret, KEY_ESX_INITIATED, STR_NONE);
        node_write_annotation(ret, KEY_ESX_CORDON, STR_NONE);
        node_write_annotation(ret, KEY_ESX_SHUTDOWN, STR_NONE);
        ret->cordon = others ? NODE_WRITE_CORDON_KEEP : NODE_WRITE_UNCORDON;
    }
}

static void esx_node_write(struct esx_node *n, const struct store_item *item,
                           const struct node_write_wish *wish, enum esx_step step)
{
    struct core *core = n->e->in->core;
    uint64_t sent = n->common.write.sent;
    enum node_write_result result = node_write_step(&n->common.write, item, wish);
    if (result == NODE_WRITE_WAITS) {
        if (n->common.write.err.code != 0) {
            esx_node_fail(n, &n->common.write.err);
        }
        integration_node_again_at(&n->common, n->common.write.retry_at);
    } else if (n->common.write.sent > sent && (step == ESX_STEP_MARK || step == ESX_STEP_RELEASE)) {
        log_info(core->log,
                 step == ESX_STEP_MARK ? "node leaves with its host" : "node is back with its host",
                 KV_STR("node", n->common.name), KV_STR("host", n->host->name));
    }
}

static void esx_node_tell(struct esx_node *n, const struct esx_plan *plan, struct str why)
{
    struct integration *in = n->e->in;
    usec_t next = plan->next == USEC_NEVER ? USEC_NEVER : integration_wall(in, plan->next);
    if (plan->error != NULL) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_INVALID, "%s", plan->error);
        esx_node_fail(n, &err);
    }
    if (plan->step == ESX_STEP_RESERVE && why.n > 0) {
        activity_waits(&n->common.note, next, "waits for its place under the limits: " STR_FMT,
                       STR_ARG(why));
    } else if (plan->step == ESX_STEP_DRAIN && n->common.drain != NULL) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct str text = drain_text(n->common.drain, &tmp);
        activity_waits(&n->common.note, next, STR_FMT, STR_ARG(text));
    } else {
        activity_waits(&n->common.note, next, "%s", plan->words);
    }
}

static void esx_node_act(struct esx_node *n, const struct esx_plan *plan)
{
    switch (plan->step) {
    case ESX_STEP_SHUTDOWN:
        esx_node_power(n, VIM25_SHUTDOWN_GUEST);
        break;
    case ESX_STEP_POWER_OFF:
        esx_node_power(n, VIM25_POWER_OFF);
        break;
    case ESX_STEP_POWER_ON:
        esx_node_power(n, VIM25_POWER_ON);
        break;
    case ESX_STEP_NONE:
    case ESX_STEP_OFF:
        n->asked = false;
        n->switched_on = false;
        n->refusal = VIM25_OK;
        break;
    case ESX_STEP_RELEASE:
    case ESX_STEP_NOTE:
    case ESX_STEP_APPROVAL:
    case ESX_STEP_RESERVE:
    case ESX_STEP_MARK:
    case ESX_STEP_DRAIN:
    case ESX_STEP_WAIT:
    case ESX_STEP_PROBLEM:
        break;
    }
    if (plan->next != USEC_NEVER) {
        integration_node_again_at(&n->common, plan->next);
    }
}

static void esx_host_log(struct esx *e, struct esx_host *h, enum esx_mode mode, const char *problem)
{
    if (h->mode == mode) {
        return;
    }
    h->mode = mode;
    if (mode == ESX_UNKNOWN) {
        log_warn(e->in->core->log, "the state of an ESX host is unknown", KV_STR("host", h->name),
                 KV_STR("zone", h->zone), KV_TEXT("why", problem != NULL ? problem : ""));
    } else {
        log_info(e->in->core->log, "ESX host", KV_STR("host", h->name), KV_STR("zone", h->zone),
                 KV_STR("in_maintenance", esx_mode_text(mode)));
    }
}

static void esx_node_step(struct integration_node *common, const struct store_item *item)
{
    struct esx_node *n = esx_node_of(common);
    struct esx *e = n->e;
    usec_t now = loop_now(e->in->core->loop);
    const struct esx_config *config = e->in->config;
    const struct esx_settings settings = {
        .whole_host = config->whole_host,
        .shutdown_period = config->shutdown_period,
        .shutdown_timeout = config->shutdown_timeout,
    };
    struct esx_host_facts host;
    struct esx_node_facts facts;
    struct esx_plan plan;
    struct str why = STR_NONE;
    const char *problem = NULL;
    bool known = esx_host_facts(e, n->host, &host, &problem);
    enum esx_mode mode = esx_decide_mode(&host);
    if (known) {
        esx_host_log(e, n->host, mode, problem);
    }
    esx_node_facts(n, item->object, mode, host.host, &facts);
    mutate_esx_facts(e->in->core->config.mutations, now, &facts);
    esx_decide_node(&settings, &facts, now, &plan);
    plan.error = problem != NULL ? problem : plan.error;
    esx_node_reserve(n, item, plan.reserve, facts.initiated, &why);
    if (plan.step == ESX_STEP_RESERVE && n->common.reserved) {
        facts.reserved = true;
        esx_decide_node(&settings, &facts, now, &plan);
    }
    mutate_esx_plan(e->in->core->config.mutations, &facts, &plan);
    esx_node_drain(n, item, plan.drain, facts.mode == ESX_ALARM);
    if (known) {
        char text[TIMESTAMP_TEXT_MAX];
        struct str wall =
            timestamp_print_seconds(server_clock_wall(&e->in->core->client.clock), text);
        struct node_write_wish wish = { 0 };
        esx_node_wish(&facts, item->object, host.host, plan.step, wall, &wish);
        esx_node_write(n, item, &wish, plan.step);
    }
    esx_node_tell(n, &plan, why);
    esx_node_act(n, &plan);
}

static void esx_turn(struct integration *in)
{
    struct esx *e = in->self;
    usec_t now = loop_now(in->core->loop);
    MAP_EACH (&e->zones, entry) {
        esx_zone_notice_gap(map_item_value(entry), now);
    }
    integration_nodes_turn(&e->nodes, esx_node_step);
    bool failing = false;
    uint32_t hosts = 0;
    MAP_EACH (&e->zones, entry) {
        struct esx_zone *z = map_item_value(entry);
        esx_zone_step(z, now);
        esx_zone_check_vms(z, now);
        failing = failing || z->vcenter.err.code != 0;
        hosts += z->vcenter.inventory.host_n;
    }
    if (!failing && hosts > 0 && !e->told) {
        e->told = true;
        activity_did(&in->note, loop_wall(in->core->loop), "read %u hosts of %u vCenters", hosts,
                     map_count(&e->zones));
    }
}

/* ── nodes come and go ─────────────────────────────────────────────────────────────────────── */

static struct esx_host *esx_host_get(struct esx *e, struct str zone, struct str name)
{
    CLEANUP(buf_done)
    struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(zone), STR_ARG(name));
    struct esx_host *h = map_find(&e->hosts, buf_str(&key));
    if (h == NULL) {
        h = alloc_bytes(sizeof(*h) + key.n);
        memcpy(h->key, key.p, key.n);
        h->zone = (struct str){ .p = h->key, .n = zone.n };
        h->name = (struct str){ .p = h->key + zone.n + 1, .n = name.n };
        list_init(&h->nodes);
        (void)map_put(&e->hosts, buf_str(&key), h); /* it was not there */
    }
    return h;
}

static void esx_node_leave_host(struct esx_node *n)
{
    struct esx_host *h = n->host;
    list_del(&n->link);
    n->host = NULL;
    if (list_empty(&h->nodes)) {
        (void)map_del(&n->e->hosts, (struct str){ .p = h->key, .n = h->zone.n + 1 + h->name.n });
        alloc_free(h);
    } else {
        esx_host_mark(h);
    }
}

static void esx_node_free(struct esx_node *n)
{
    esx_node_leave_host(n);
    vcenter_power_cancel(STEAL(n->call));
    integration_node_done(&n->common);
    alloc_free(n);
}

static struct esx_node *esx_node_new(struct esx *e, struct str name)
{
    struct esx_node *n = ALLOC_NEW(struct esx_node);
    n->e = e;
    n->backoff = (struct backoff){ .base = ESX_RETRY_MIN, .max = ESX_RETRY_MAX };
    integration_node_init(&n->common, &e->nodes, name);
    return n;
}

/* A node is on a host if it has both labels; the zone is the last byte of its label. */
static void esx_on_node(struct integration *in, struct store_item *item, bool gone)
{
    struct esx *e = in->self;
    struct integration_node *common = integration_nodes_find(&e->nodes, item->name);
    struct esx_node *n = common == NULL ? NULL : esx_node_of(common);
    struct str host = gone ? STR_NONE : node_label(item->object, KEY_ESX_HOST);
    struct str zone = gone ? STR_NONE : node_label(item->object, KEY_ZONE);
    if (host.n == 0 || zone.n == 0) {
        if (n != NULL) {
            esx_node_free(n);
        }
        return;
    }
    struct esx_host *h = esx_host_get(e, str_sub(zone, zone.n - 1, 1), host);
    if (n == NULL) {
        n = esx_node_new(e, item->name);
    }
    if (n->host != h) {
        if (n->host != NULL) {
            esx_node_leave_host(n);
        }
        n->host = h;
        list_add(&h->nodes, &n->link);
    }
    esx_host_mark(h); /* an approval may concern its other nodes */
}

static bool esx_disturbs(const struct integration *in UNUSED, const struct store_item *item)
{
    return esx_is_initiated(item->object);
}

/* A place under the limits may have come, be it another part's. */
static void esx_on_limits(struct integration *in)
{
    struct esx *e = in->self;
    integration_nodes_on_limits(&e->nodes);
}

/* ── its life ──────────────────────────────────────────────────────────────────────────────── */

static void esx_start(struct integration *in)
{
    static const struct metric_spec specs[] = {
        { .name = "drydock_esx_vcenter_up",
          .help = "1 while the vCenter of a zone answers as it should.",
          .kind = METRIC_GAUGE,
          .labels = { "zone" } },
        { .name = "drydock_esx_vcenter_requests_total",
          .help = "Requests sent to the vCenter of a zone.",
          .kind = METRIC_COUNTER,
          .labels = { "zone" } },
        { .name = "drydock_esx_vcenter_logins_total",
          .help = "Sessions begun with the vCenter of a zone.",
          .kind = METRIC_COUNTER,
          .labels = { "zone" } },
        { .name = "drydock_esx_inventory_seconds",
          .help = "How long the last reading of an inventory took.",
          .kind = METRIC_GAUGE,
          .labels = { "zone" } },
    };
    struct esx *e = ALLOC_NEW(struct esx);
    struct metrics *m = in->core->config.metrics;
    e->in = in;
    integration_nodes_init(&e->nodes, in);
    e->up = metrics_family(m, &specs[0]);
    e->requests = metrics_family(m, &specs[1]);
    e->logins = metrics_family(m, &specs[2]);
    e->seconds = metrics_family(m, &specs[3]);
    in->self = e;
}

static void esx_configure(struct integration *in)
{
    struct esx *e = in->self;
    const struct esx_config *config = in->config;
    MAP_EACH (&e->zones, entry) {
        ((struct esx_zone *)map_item_value(entry))->configured = false;
    }
    for (uint32_t i = 0; i < config->login_n; i++) {
        const struct esx_zone_login *login = &config->logins[i];
        struct esx_zone *z = map_find(&e->zones, login->zone);
        z = z != NULL ? z : esx_zone_new(e, login->zone);
        z->configured = true;
        z->next = 0;
        vcenter_configure(&z->vcenter, &(struct vcenter_config){
                                           .url = login->url,
                                           .user = login->user,
                                           .password = login->password,
                                           .insecure = config->insecure,
                                           .alarms = config->alarms.n > 0,
                                       });
        esx_zone_index(z); /* of another server nothing is known */
    }
    MAP_EACH (&e->zones, entry) {
        struct esx_zone *z = map_item_value(entry);
        if (!z->configured) {
            esx_zone_free(z);
        }
    }
    MAP_EACH (&e->nodes.by_name, entry) {
        integration_node_mark(map_item_value(entry));
    }
}

static bool esx_node_activity(const struct integration *in, struct str node, struct activity *ret)
{
    const struct esx *e = in->self;
    return integration_nodes_activity(&e->nodes, node, ret);
}

static bool esx_is_busy(const struct integration *in)
{
    const struct esx *e = in->self;
    return integration_nodes_are_busy(&e->nodes);
}

static void esx_collect(struct integration *in)
{
    struct esx *e = in->self;
    MAP_EACH (&e->zones, entry) {
        struct esx_zone *z = map_item_value(entry);
        const struct vcenter *v = &z->vcenter;
        metric_set(metric_series(e->up, &z->name), v->read_at > 0 && v->err.code == 0 ? 1 : 0);
        metric_add(metric_series(e->requests, &z->name), (double)(v->requests - z->requests));
        metric_add(metric_series(e->logins, &z->name), (double)(v->logins - z->logins));
        z->requests = v->requests;
        z->logins = v->logins;
        metric_set(metric_series(e->seconds, &z->name), (double)v->took / (double)SECONDS(1));
    }
}

static void esx_stop(struct integration *in)
{
    struct esx *e = in->self;
    MAP_EACH (&e->nodes.by_name, entry) {
        esx_node_free(esx_node_of(map_item_value(entry)));
    }
    MAP_EACH (&e->zones, entry) {
        esx_zone_free(map_item_value(entry));
    }
    integration_nodes_done(&e->nodes);
    map_done(&e->zones);
    map_done(&e->hosts);
    alloc_free(e);
}

static const struct str esx_annotations[] = {
    STR_INIT(KEY_ESX_INITIATED_TEXT),
    STR_INIT(KEY_ESX_CORDON_TEXT),
    STR_INIT(KEY_ESX_SHUTDOWN_TEXT),
    STR_INIT(KEY_DRAIN_RULES_TEXT),
};

const struct integration_provider integration_esx = {
    .name = "esx",
    .title = "ESX",
    .file = "config/esx.yaml",
    .config_size = sizeof(struct esx_config),
    .annotations = esx_annotations,
    .annotation_n = ARRAY_LEN(esx_annotations),
    .read = esx_config_read,
    .start = esx_start,
    .configure = esx_configure,
    .on_node = esx_on_node,
    .turn = esx_turn,
    .disturbs = esx_disturbs,
    .on_limits = esx_on_limits,
    .node_activity = esx_node_activity,
    .is_busy = esx_is_busy,
    .collect = esx_collect,
    .stop = esx_stop,
};
