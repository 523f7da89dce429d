/* One notification from the read of its Node to its end, and what all senders share. */
#include "profile/notify/notify.h"

#include "base/alloc.h"
#include "format/template.h"
#include "profile/notify/notify_call.h"

#define EXPLAIN_MAX 200u /* of a stranger's answer; more is a page and not a reason */

static const struct notify_sender *const senders[] = {
    &notify_mail,
    &notify_slack,
    &notify_slack_thread,
    &notify_webhook,
};

void notifier_init(struct notifier *notifier, struct loop *loop, struct client *client,
                   struct outbound *outbound)
{
    *notifier = (struct notifier){ .loop = loop, .client = client, .outbound = outbound };
    list_init(&notifier->calls);
}

const struct plugin_value *notify_call_value(const struct notify_call *call, const char *key)
{
    return plugin_get(call->plugin, call->values, key);
}

int notify_call_render(struct notify_call *call, const char *key, struct str *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf out = { .max = NOTIFY_TEXT_MAX };
    struct template *t = NULL;
    int r = template_parse(notify_call_value(call, key)->text, &call->memory, &t, err);
    if (r == 0) {
        r = template_render(t, &call->root, &out, err);
    }
    if (r < 0) {
        return err_wrap(err, "template of '%s'", key);
    }
    if (out.full) {
        return err_set(err, ERR_LIMIT, "template of '%s': found more than %zu bytes, want fewer",
                       key, out.max);
    }
    *ret = arena_str(&call->memory, buf_str(&out));
    return 0;
}

static void on_api_reply(void *ctx, const struct api_reply *reply)
{
    struct notify_call *call = ctx;
    call->api = NULL;
    call->on_api(call, reply);
}

void notify_call_api(struct notify_call *call, const struct api_request *request,
                     api_on_reply on_reply)
{
    ASSERT(call->api == NULL && call->outbound == NULL);
    call->on_api = on_reply;
    call->verb = request->verb;
    call->api = api_send(call->notifier->client->api, request, on_api_reply, call);
}

static void on_wire_reply(void *ctx, const struct outbound_reply *reply)
{
    struct notify_call *call = ctx;
    call->outbound = NULL;
    call->on_wire(call, reply);
}

void notify_call_http(struct notify_call *call, const struct outbound_request *request,
                      outbound_on_reply on_reply)
{
    ASSERT(call->api == NULL && call->outbound == NULL);
    call->on_wire = on_reply;
    call->outbound = outbound_http(call->notifier->outbound, request, on_wire_reply, call);
}

void notify_call_mail(struct notify_call *call, const struct outbound_mail *mail,
                      outbound_on_reply on_reply)
{
    ASSERT(call->api == NULL && call->outbound == NULL);
    call->on_wire = on_reply;
    call->outbound = outbound_mail(call->notifier->outbound, mail, on_wire_reply, call);
}

static void on_call_timer(void *ctx)
{
    struct notify_call *call = ctx;
    call->on_timer(call);
}

void notify_call_wait(struct notify_call *call, usec_t at,
                      void (*on_timer)(struct notify_call *call))
{
    call->on_timer = on_timer;
    loop_timer_set(&call->timer, at);
}

void notify_call_explain(const struct outbound_reply *reply, const char *who, struct err *ret)
{
    if (reply->err != NULL) {
        *ret = *reply->err;
        return;
    }
    struct str line;
    struct str rest;
    (void)str_cut(str_trim(reply->body), STR("\n"), &line, &rest); /* one line or several */
    line = str_sub(str_trim(line), 0, EXPLAIN_MAX);
    bool later = reply->status == 429 || reply->status == 503;
    (void)err_set(ret, later ? ERR_BUSY : ERR_DENIED, "%s answered %d%s" STR_FMT, who,
                  reply->status, line.n > 0 ? ": " : "", STR_ARG(line));
}

static void notify_call_free(struct notify_call *call)
{
    const struct notify_sender *sender = call->sender;
    struct notifier *notifier = call->notifier;
    if (call->api != NULL) {
        api_cancel(notifier->client->api, call->api);
    }
    if (call->outbound != NULL) {
        outbound_cancel(notifier->outbound, call->outbound);
    }
    list_del(&call->link);
    loop_timer_done(&call->timer);
    arena_done(&call->memory);
    alloc_free(call);
    if (sender->wake == NULL) {
        return;
    }
    LIST_EACH (&notifier->calls, item) {
        struct notify_call *other = CONTAINER_OF(item, struct notify_call, link);
        if (other->sender == sender) {
            sender->wake(other);
        }
    }
}

void notify_call_end(struct notify_call *call, const struct err *err, usec_t retry_after)
{
    notify_on_done on_done = call->on_done;
    void *ctx = call->ctx;
    struct err copy = { 0 };
    if (err != NULL) {
        copy = *err; /* it may live in the call */
    }
    notify_call_free(call);
    on_done(ctx, err != NULL ? &copy : NULL, MIN(retry_after, NOTIFY_RETRY_AFTER_MAX));
}

void notify_call_end_by_status(struct notify_call *call, const struct outbound_reply *reply,
                               const char *who)
{
    struct err err = { 0 };
    if (reply->status >= 200 && reply->status < 300) {
        notify_call_end(call, NULL, 0);
        return;
    }
    notify_call_explain(reply, who, &err);
    notify_call_end(call, &err, reply->retry_after);
}

static struct govalue notify_call_struct(struct notify_call *call, const struct gomember *members,
                                         uint32_t n)
{
    struct gomember *copy = ARENA_ARRAY(&call->memory, struct gomember, n);
    memcpy(copy, members, n * sizeof(*members));
    return govalue_struct(copy, n);
}

/* What templates see, under the names of the original. */
static void notify_call_make_root(struct notify_call *call, const struct jval *node)
{
    const struct notify_facts *f = &call->facts;
    const struct gomember profile[] = {
        { STR("Current"), govalue_str(f->profile_current) },
        { STR("Last"), govalue_str(f->profile_last) },
    };
    const struct gomember root[] = {
        { STR("State"), govalue_str(f->state) },
        { STR("Profile"),
          govalue_str_with(f->profile,
                           notify_call_struct(call, profile, ARRAY_LEN(profile)).members,
                           ARRAY_LEN(profile)) },
        { STR("Node"), govalue_from(&gotype_node, node, &call->memory) },
        { STR("Reason"), govalue_str(f->reason) },
        { STR("Request"), govalue_str(f->request) },
        { STR("InMaintenance"), govalue_bool(f->in_maintenance) },
        { STR("LogDetails"), govalue_bool(f->log_details) },
        { STR("LastTransition"), govalue_time(f->last_transition) },
    };
    call->root = notify_call_struct(call, root, ARRAY_LEN(root));
}

static void notify_call_hand_over(struct notify_call *call, const struct jval *node)
{
    struct err err = { 0 };
    notify_call_make_root(call, node);
    if (call->sender->send(call, &err) < 0) {
        notify_call_end(call, &err, 0);
    }
}

static void on_node(void *ctx, const struct api_reply *reply)
{
    struct notify_call *call = ctx;
    struct client *client = call->notifier->client;
    struct err err = { 0 };
    const struct jval *node = NULL;
    enum retry_verdict verdict = client_note(client, API_GET, reply);
    if (verdict != RETRY_DONE) {
        usec_t wait = MAX(client_open_at(client) - loop_now(call->notifier->loop), (usec_t)0);
        client_explain(reply->status, reply->body, reply->err, &err);
        (void)err_wrap(&err, "node '" STR_FMT "'", STR_ARG(call->facts.node));
        notify_call_end(call, &err, MAX(reply->retry_after, wait));
        return;
    }
    struct str body = arena_str(&call->memory, reply->body);
    if (json_parse(body, JSON_GO, &call->memory, &node, &err) < 0) {
        (void)err_wrap(&err, "node '" STR_FMT "'", STR_ARG(call->facts.node));
        notify_call_end(call, &err, 0);
        return;
    }
    notify_call_hand_over(call, node);
}

static void notify_call_begin(struct notify_call *call)
{
    struct client *client = call->notifier->client;
    struct err err = { 0 };
    if (call->facts.node.n == 0) {
        notify_call_hand_over(call, NULL); /* every field of the Node is zero */
        return;
    }
    if (!client_open(client)) {
        (void)err_set(&err, ERR_BUSY, "the API server asked to be left alone for a while");
        notify_call_end(call, &err, client_open_at(client) - loop_now(call->notifier->loop));
        return;
    }
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/nodes/"));
    client_add_segment(&path, call->facts.node);
    struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    notify_call_api(call, &request, on_node);
}

static void copy_values(struct notify_call *call, const struct plugin_value *from)
{
    uint32_t n = call->plugin->key_n;
    call->values = ARENA_ARRAY(&call->memory, struct plugin_value, n);
    for (uint32_t i = 0; i < n; i++) {
        struct plugin_value *v = &call->values[i];
        *v = from[i];
        v->text = arena_str(&call->memory, from[i].text);
        v->items = ARENA_ARRAY(&call->memory, struct str, from[i].item_n);
        for (uint32_t j = 0; j < from[i].item_n; j++) {
            v->items[j] = arena_str(&call->memory, from[i].items[j]);
        }
        v->dates = NULL;
        v->cron = NULL;
    }
}

static void copy_facts(struct notify_call *call, const struct notify_facts *facts)
{
    struct notify_facts *f = &call->facts;
    *f = *facts;
    struct str *const texts[] = { &f->node,         &f->state,  &f->profile, &f->profile_current,
                                  &f->profile_last, &f->reason, &f->request };
    if (f->profile_current.n == 0) {
        f->profile_current = f->profile;
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *texts[i] = arena_str(&call->memory, *texts[i]);
    }
}

struct notify_call *notify_send(struct notifier *notifier, const struct config_instance *instance,
                                const struct notify_facts *facts, notify_on_done on_done, void *ctx)
{
    struct notify_call *call = ALLOC_NEW(struct notify_call);
    for (size_t i = 0; i < ARRAY_LEN(senders); i++) {
        if (str_eq(str_from(senders[i]->name), str_from(instance->plugin->name))) {
            call->sender = senders[i];
        }
    }
    ASSERT(call->sender != NULL);
    call->notifier = notifier;
    call->plugin = instance->plugin;
    call->instance = arena_str(&call->memory, instance->name);
    call->on_done = on_done;
    call->ctx = ctx;
    copy_values(call, instance->values);
    copy_facts(call, facts);
    loop_timer_init(&call->timer, notifier->loop, on_call_timer, call);
    list_add(&notifier->calls, &call->link);
    notify_call_wait(call, loop_now(notifier->loop), notify_call_begin);
    return call;
}

void notify_cancel(struct notify_call *call)
{
    notify_call_free(call);
}
