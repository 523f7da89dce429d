#include "integration/vcenter.h"

#include "base/alloc.h"
#include "base/map.h"

#define VCENTER_COOKIE STR("vmware_soap_session")
#define VCENTER_COOKIE_MAX 1024u /* a session id has 40 bytes */
#define VCENTER_READ_TIMEOUT SECONDS(60)
#define VCENTER_TASK_WAIT_MIN MSECONDS(250)
#define VCENTER_TASK_WAIT_MAX SECONDS(4)
#define VCENTER_TASKS_MAX 2000u /* of all hosts together, whose state is asked for */

static void vcenter_step(struct vcenter *v);

/* ── requests and answers ──────────────────────────────────────────────────────────────────── */

static struct outbound_call *vcenter_send(struct vcenter *v, const struct buf *body,
                                          outbound_on_reply on_reply, void *ctx)
{
    CLEANUP(buf_done)
    struct buf cookie = { 0 };
    struct outbound_header headers[] = {
        { STR("Content-Type"), VIM25_CONTENT_TYPE },
        { STR("SOAPAction"), VIM25_ACTION },
        { STR("Cookie"), STR_NONE },
    };
    if (v->cookie.n > 0) {
        buf_printf(&cookie, STR_FMT "=" STR_FMT, STR_ARG(VCENTER_COOKIE), STR_ARG(v->cookie));
        headers[2].value = buf_str(&cookie);
    }
    v->requests++;
    return outbound_http(v->outbound,
                         &(struct outbound_request){
                             .method = STR("POST"),
                             .url = v->config.url,
                             .headers = headers,
                             .header_n = v->cookie.n > 0 ? 3 : 2,
                             .body = buf_str(body),
                             .reply_header = STR("Set-Cookie"),
                             .timeout = VCENTER_READ_TIMEOUT,
                             .reply_max = XML_BYTES_MAX,
                             .insecure = v->config.insecure,
                         },
                         on_reply, ctx);
}

/* Faults come with status 500. */
static int vcenter_parse(const struct outbound_reply *reply, struct arena *out,
                         struct vim25_answer *ret, struct err *err)
{
    if (reply->err != NULL) {
        *err = *reply->err;
        return -(int)err->code;
    }
    if (reply->status != 200 && reply->status != 500) {
        return err_set(err, reply->status == 401 || reply->status == 403 ? ERR_DENIED : ERR_PROTO,
                       "the vCenter answered with status %d", reply->status);
    }
    int r = vim25_parse(reply->body, out, ret, err);
    if (r < 0) {
        return reply->status == 500
                   ? err_set(err, ERR_PROTO, "the vCenter answered with status 500")
                   : r;
    }
    return 0;
}

static int vcenter_fault(const struct vim25_answer *answer, struct err *err)
{
    enum err_code code = answer->fault == VIM25_INVALID_LOGIN ||
                                 answer->fault == VIM25_NO_PERMISSION ||
                                 answer->fault == VIM25_NOT_AUTHENTICATED
                             ? ERR_DENIED
                         : answer->fault == VIM25_OBJECT_GONE ? ERR_NOTFOUND
                                                              : ERR_INVALID;
    return err_set(err, code, "the vCenter refuses: " STR_FMT, STR_ARG(answer->fault_text));
}

/* ── the session ───────────────────────────────────────────────────────────────────────────── */

static void vcenter_forget_session(struct vcenter *v)
{
    arena_wipe(&v->session);
    v->service = (struct vim25_service){ 0 };
    v->cookie = STR_NONE;
    v->view = (struct vim25_ref){ 0 };
    v->begun = false;
    v->token = STR_NONE;
}

static struct vim25_ref vcenter_keep_ref(struct vcenter *v, struct vim25_ref ref)
{
    return (struct vim25_ref){ .type = arena_str(&v->session, ref.type),
                               .id = arena_str(&v->session, ref.id) };
}

static int vcenter_on_content(struct vcenter *v, const struct vim25_answer *answer, struct err *err)
{
    struct vim25_service service;
    int r = vim25_read_service(answer, &service, err);
    if (r < 0) {
        return r;
    }
    v->service = (struct vim25_service){
        .root = vcenter_keep_ref(v, service.root),
        .property_collector = vcenter_keep_ref(v, service.property_collector),
        .view_manager = vcenter_keep_ref(v, service.view_manager),
        .session_manager = vcenter_keep_ref(v, service.session_manager),
        .version = arena_str(&v->session, service.version),
    };
    return 0;
}

/* Set-Cookie: vmware_soap_session="…"; Path=/; HttpOnly; Secure */
static int vcenter_on_login(struct vcenter *v, const struct outbound_reply *reply, struct err *err)
{
    struct str pair;
    struct str rest;
    struct str name;
    struct str value;
    (void)str_cut(reply->header, STR(";"), &pair, &rest); /* the rest is for browsers */
    if (!str_cut(pair, STR("="), &name, &value) || !str_eq(str_trim(name), VCENTER_COOKIE) ||
        value.n == 0 || value.n > VCENTER_COOKIE_MAX) {
        return err_set(err, ERR_PROTO, "the vCenter accepts the login and gives no session");
    }
    v->cookie = arena_str(&v->session, str_trim(value));
    v->logins++;
    v->refused = false;
    backoff_reset(&v->login_backoff);
    return 0;
}

static int vcenter_on_view(struct vcenter *v, const struct vim25_answer *answer, struct err *err)
{
    struct vim25_ref view;
    int r = vim25_read_ref(answer, &view, err);
    if (r == 0) {
        v->view = vcenter_keep_ref(v, view);
    }
    return r;
}

static void vcenter_on_logout(void *ctx UNUSED, const struct outbound_reply *reply UNUSED)
{
    /* A session that is not ended expires by itself. */
}

static void vcenter_log_out(struct vcenter *v)
{
    if (v->cookie.n > 0) {
        CLEANUP(buf_done)
        struct buf body = { 0 };
        vim25_print_logout(&body, &v->service);
        (void)vcenter_send(v, &body, vcenter_on_logout, NULL);
    }
    vcenter_forget_session(v);
}

/* ── the inventory ─────────────────────────────────────────────────────────────────────────── */

static bool vcenter_wants_tasks(const struct vcenter *v, const struct vim25_host *host)
{
    return !host->in_maintenance && v->hooks.wants_host(v->hooks.ctx, host->name);
}

/* Tasks of hosts that may be about to enter maintenance mode, and alarms, each once. */
static uint32_t vcenter_list_details(const struct vcenter *v, struct arena *out,
                                     struct vim25_ref **ret)
{
    CLEANUP(map_done)
    struct map seen = { 0 };
    struct vim25_ref *refs = NULL;
    uint32_t n = 0;
    uint32_t cap = 0;
    for (uint32_t i = 0; i < v->objects.host_n; i++) {
        const struct vim25_host *host = &v->objects.hosts[i];
        for (uint32_t k = 0; k < host->task_n && vcenter_wants_tasks(v, host); k++) {
            if (n < VCENTER_TASKS_MAX &&
                map_put(&seen, host->tasks[k].id, (void *)(uintptr_t)v) == NULL) {
                ARENA_GROW(out, refs, n, cap);
                refs[n++] = host->tasks[k];
            }
        }
        for (uint32_t k = 0; v->config.alarms && k < host->alarm_n; k++) {
            if (v->hooks.wants_host(v->hooks.ctx, host->name) && n < VCENTER_TASKS_MAX &&
                map_put(&seen, host->alarms[k].id, (void *)(uintptr_t)v) == NULL) {
                ARENA_GROW(out, refs, n, cap);
                refs[n++] = host->alarms[k];
            }
        }
    }
    *ret = refs;
    return n;
}

static void vcenter_finish(struct vcenter *v)
{
    arena_done(&v->known);
    v->known = v->reading;
    v->reading = (struct arena){ 0 };
    v->inventory = v->objects;
    v->objects = (struct vim25_objects){ 0 };
    v->wanted = false;
    v->begun = false;
    v->read_at = v->asked_at;
    v->took = loop_now(v->loop) - v->asked_at;
    v->err = (struct err){ 0 };
    v->failing_since = 0;
    backoff_reset(&v->backoff);
    v->hooks.on_change(v->hooks.ctx);
}

static void vcenter_on_reply(void *ctx, const struct outbound_reply *reply);

/* The next request of the line, by what is there already. False: all has been read. */
static bool vcenter_print_next(struct vcenter *v, struct buf *body)
{
    if (v->service.session_manager.id.n == 0) {
        v->stage = VCENTER_CONTENT;
        vim25_print_service_content(body);
    } else if (v->cookie.n == 0) {
        v->stage = VCENTER_LOGIN;
        vim25_print_login(body, &v->service, v->config.user, v->config.password);
    } else if (v->view.id.n == 0) {
        v->stage = VCENTER_VIEW;
        vim25_print_create_view(body, &v->service);
    } else if (!v->begun) {
        v->stage = VCENTER_PAGE;
        v->begun = true;
        v->asked_at = loop_now(v->loop);
        arena_done(&v->reading);
        v->objects = (struct vim25_objects){ 0 };
        vim25_print_inventory(body, &v->service, v->view);
    } else if (v->token.n > 0) {
        vim25_print_next_page(body, &v->service, v->token); /* of the stage that has begun */
    } else if (v->stage == VCENTER_PAGE) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct vim25_ref *refs = NULL;
        uint32_t n = vcenter_list_details(v, &tmp, &refs);
        if (n == 0) {
            return false;
        }
        v->stage = VCENTER_DETAILS;
        vim25_print_objects(body, &v->service, refs, n);
    } else {
        return false;
    }
    return true;
}

static void vcenter_step(struct vcenter *v)
{
    if (!v->wanted || v->call != NULL || v->config.url.n == 0) {
        return;
    }
    if (v->retry_at > loop_now(v->loop)) {
        loop_timer_set(&v->timer, v->retry_at);
        return;
    }
    CLEANUP(buf_done)
    struct buf body = { 0 };
    if (!vcenter_print_next(v, &body)) {
        vcenter_finish(v);
        return;
    }
    v->call = vcenter_send(v, &body, vcenter_on_reply, v);
    if (body.n > 0) {
        explicit_bzero(body.p, body.n); /* a password may be in it */
    }
}

static void vcenter_on_timer(void *ctx)
{
    vcenter_step(ctx);
}

static int vcenter_take(struct vcenter *v, const struct outbound_reply *reply,
                        const struct vim25_answer *answer, struct err *err)
{
    switch (v->stage) {
    case VCENTER_CONTENT:
        return vcenter_on_content(v, answer, err);
    case VCENTER_LOGIN:
        return vcenter_on_login(v, reply, err);
    case VCENTER_VIEW:
        return vcenter_on_view(v, answer, err);
    case VCENTER_PAGE:
    case VCENTER_DETAILS:
        return vim25_read_objects(answer, &v->reading, &v->objects, &v->token, err);
    }
    ASSERT(false);
    return 0;
}

static void vcenter_fail(struct vcenter *v, const struct err *err)
{
    usec_t now = loop_now(v->loop);
    v->err = *err;
    v->failing_since = v->failing_since > 0 ? v->failing_since : now;
    v->begun = false;
    v->token = STR_NONE;
    v->retry_at =
        now + backoff_next(v->refused ? &v->login_backoff : &v->backoff, loop_random(v->loop));
    v->hooks.on_change(v->hooks.ctx);
}

/* The session is over, or the view went with it: once a reading that is no failure. */
static bool vcenter_renew(struct vcenter *v, enum vim25_fault fault)
{
    bool over = fault == VIM25_NOT_AUTHENTICATED ||
                (fault == VIM25_OBJECT_GONE && v->stage >= VCENTER_VIEW);
    if (!over || v->stage == VCENTER_LOGIN) {
        return false;
    }
    bool again = !v->renewed;
    vcenter_forget_session(v);
    v->renewed = true;
    return again;
}

static void vcenter_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct vcenter *v = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct vim25_answer answer = { 0 };
    struct err err = { 0 };
    v->call = NULL;
    int r = vcenter_parse(reply, &tmp, &answer, &err);
    if (r == 0 && answer.fault != VIM25_OK) {
        if (vcenter_renew(v, answer.fault)) {
            vcenter_step(v);
            return;
        }
        v->refused = v->stage == VCENTER_LOGIN &&
                     (answer.fault == VIM25_INVALID_LOGIN || answer.fault == VIM25_NO_PERMISSION);
        r = vcenter_fault(&answer, &err);
    }
    r = r < 0 ? r : vcenter_take(v, reply, &answer, &err);
    if (r < 0) {
        vcenter_fail(v, &err);
    }
    vcenter_step(v); /* sets the timer after a failure */
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

void vcenter_init(struct vcenter *v, struct loop *loop, struct outbound *outbound,
                  const struct vcenter_hooks *hooks)
{
    *v = (struct vcenter){
        .loop = loop,
        .outbound = outbound,
        .hooks = *hooks,
        .backoff = { .base = VCENTER_RETRY_MIN, .max = VCENTER_RETRY_MAX },
        .login_backoff = { .base = VCENTER_LOGIN_RETRY_MIN, .max = VCENTER_LOGIN_RETRY_MAX },
    };
    list_init(&v->calls);
    loop_timer_init(&v->timer, loop, vcenter_on_timer, v);
}

static void vcenter_cancel(struct vcenter *v)
{
    if (v->call != NULL) {
        outbound_cancel(v->outbound, STEAL(v->call));
    }
    if (v->check != NULL) {
        outbound_cancel(v->outbound, STEAL(v->check));
    }
}

void vcenter_done(struct vcenter *v)
{
    if (v->loop == NULL) {
        return;
    }
    vcenter_cancel(v);
    while (!list_empty(&v->calls)) {
        vcenter_power_cancel(CONTAINER_OF(v->calls.next, struct vcenter_call, link));
    }
    vcenter_log_out(v);
    loop_timer_done(&v->timer);
    arena_done(&v->reading);
    arena_done(&v->known);
    arena_wipe(&v->memory);
    *v = (struct vcenter){ 0 };
}

void vcenter_configure(struct vcenter *v, const struct vcenter_config *config)
{
    bool same = str_eq(config->url, v->config.url) && str_eq(config->user, v->config.user) &&
                str_eq(config->password, v->config.password) &&
                config->insecure == v->config.insecure;
    v->config.alarms = config->alarms;
    if (same) {
        return;
    }
    vcenter_cancel(v);
    vcenter_log_out(v);
    bool other = !str_eq(config->url, v->config.url);
    arena_wipe(&v->memory);
    v->config = *config;
    v->config.url = arena_str(&v->memory, config->url);
    v->config.user = arena_str(&v->memory, config->user);
    v->config.password = arena_str(&v->memory, config->password);
    if (other) {
        arena_done(&v->known);
        v->inventory = (struct vim25_objects){ 0 };
        v->read_at = 0;
    }
    v->refused = false;
    v->retry_at = 0;
    backoff_reset(&v->backoff);
    backoff_reset(&v->login_backoff);
    vcenter_step(v);
}

void vcenter_read(struct vcenter *v)
{
    if (!v->wanted) {
        v->wanted = true;
        v->renewed = false;
        vcenter_step(v);
    }
}

/* ── machines that are waited for ──────────────────────────────────────────────────────────── */

static void vcenter_on_check(void *ctx, const struct outbound_reply *reply)
{
    struct vcenter *v = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct vim25_answer answer = { 0 };
    struct vim25_objects objects = { 0 };
    struct str token;
    struct err ignored = { 0 };
    v->check = NULL;
    /* What fails here is found by the next reading of the inventory, which also tells of it. */
    if (vcenter_parse(reply, &tmp, &answer, &ignored) < 0 || answer.fault != VIM25_OK ||
        vim25_read_objects(&answer, &tmp, &objects, &token, &ignored) < 0) {
        return;
    }
    for (uint32_t i = 0; i < objects.vm_n; i++) {
        for (uint32_t k = 0; k < v->inventory.vm_n; k++) {
            if (vim25_ref_eq(objects.vms[i].ref, v->inventory.vms[k].ref)) {
                v->inventory.vms[k].power = objects.vms[i].power;
            }
        }
    }
    v->hooks.on_change(v->hooks.ctx);
}

bool vcenter_check_vms(struct vcenter *v, const struct vim25_ref *vms, uint32_t n)
{
    if (v->check != NULL || v->cookie.n == 0 || n == 0) {
        return false;
    }
    CLEANUP(buf_done)
    struct buf body = { 0 };
    vim25_print_objects(&body, &v->service, vms, n);
    v->check = vcenter_send(v, &body, vcenter_on_check, v);
    return true;
}

/* ── power ─────────────────────────────────────────────────────────────────────────────────── */

void vcenter_power_cancel(struct vcenter_call *c)
{
    if (c == NULL) {
        return;
    }
    if (c->call != NULL) {
        outbound_cancel(c->v->outbound, STEAL(c->call));
    }
    list_del(&c->link);
    loop_timer_done(&c->timer);
    arena_done(&c->memory);
    alloc_free(c);
}

static void vcenter_power_end(struct vcenter_call *c, const struct vcenter_result *result)
{
    void (*on_done)(void *, const struct vcenter_result *) = c->on_done;
    void *ctx = c->ctx;
    vcenter_power_cancel(c);
    on_done(ctx, result);
}

/* An answer without a task, or about it: -1 ends the call with `ret`, 0 goes on waiting. */
static int vcenter_power_take(struct vcenter_call *c, const struct vim25_answer *answer,
                              struct vcenter_result *ret)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct vim25_objects objects = { 0 };
    struct str token;
    struct vim25_ref task;
    if (c->what == VIM25_SHUTDOWN_GUEST) {
        return -1; /* it is done when the machine is off */
    }
    if (c->task.id.n == 0) {
        if (vim25_read_ref(answer, &task, &ret->err) < 0) {
            return -1;
        }
        c->task.type = arena_str(&c->memory, task.type);
        c->task.id = arena_str(&c->memory, task.id);
        return 0;
    }
    if (vim25_read_objects(answer, &tmp, &objects, &token, &ret->err) < 0) {
        return -1;
    }
    if (objects.task_n == 0) {
        (void)err_set(&ret->err, ERR_NOTFOUND, "the vCenter has forgotten the task");
        return -1;
    }
    if (str_eq(objects.tasks[0].state, STR("error"))) {
        (void)err_set(&ret->err, ERR_INVALID, "%s failed: " STR_FMT, vim25_power_call_name(c->what),
                      STR_ARG(objects.tasks[0].error));
    }
    return ret->err.code != 0 || str_eq(objects.tasks[0].state, STR("success")) ? -1 : 0;
}

static void vcenter_power_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct vcenter_call *c = ctx;
    struct vcenter *v = c->v;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct vim25_answer answer = { 0 };
    struct vcenter_result result = { .fault = VIM25_OK };
    c->call = NULL;
    int r = vcenter_parse(reply, &tmp, &answer, &result.err);
    if (r == 0 && answer.fault != VIM25_OK) {
        result.fault = answer.fault;
        r = vcenter_fault(&answer, &result.err);
        if (answer.fault == VIM25_NOT_AUTHENTICATED && v->call == NULL) {
            vcenter_forget_session(v); /* the next reading begins another one */
        }
    }
    if (r < 0 || vcenter_power_take(c, &answer, &result) < 0) {
        vcenter_power_end(c, &result);
        return;
    }
    loop_timer_set(&c->timer, loop_now(v->loop) + c->wait);
    c->wait = MIN(2 * c->wait, VCENTER_TASK_WAIT_MAX);
}

static void vcenter_power_on_timer(void *ctx)
{
    struct vcenter_call *c = ctx;
    struct vcenter *v = c->v;
    struct vcenter_result result = { .fault = VIM25_OTHER_FAULT };
    if (v->cookie.n == 0 || loop_now(v->loop) >= c->give_up_at) {
        (void)err_set(&result.err, ERR_TIMEOUT, "%s: its task does not end",
                      vim25_power_call_name(c->what));
        vcenter_power_end(c, &result);
        return;
    }
    CLEANUP(buf_done)
    struct buf body = { 0 };
    vim25_print_objects(&body, &v->service, &c->task, 1);
    c->call = vcenter_send(v, &body, vcenter_power_on_reply, c);
}

struct vcenter_call *vcenter_power(struct vcenter *v, enum vim25_power_call what,
                                   struct vim25_ref vm,
                                   void (*on_done)(void *ctx, const struct vcenter_result *result),
                                   void *ctx)
{
    if (v->cookie.n == 0) {
        return NULL;
    }
    struct vcenter_call *c = ALLOC_NEW(struct vcenter_call);
    CLEANUP(buf_done)
    struct buf body = { 0 };
    c->v = v;
    c->what = what;
    c->memory.first = 256;
    c->wait = VCENTER_TASK_WAIT_MIN;
    c->give_up_at = loop_now(v->loop) + VCENTER_TASK_TIMEOUT;
    c->on_done = on_done;
    c->ctx = ctx;
    list_add(&v->calls, &c->link);
    loop_timer_init(&c->timer, v->loop, vcenter_power_on_timer, c);
    vim25_print_power_call(&body, what, vm);
    c->call = vcenter_send(v, &body, vcenter_power_on_reply, c);
    return c;
}
