#include "tests/lib/notify_fixture.h"

#include "tests/check.h"

#define MESSENGER_START SECONDS(1772438400) /* 2026-03-02 08:00 UTC */

void notify_fixture_init(struct notify_fixture *m, const char *type, const char *config)
{
    *m = (struct notify_fixture){ 0 };
    m->time = virtual_loop_new(1, MESSENGER_START);
    faults_init(&m->api_faults, 1);
    faults_init(&m->outbound_faults, 2);
    m->server = apiserver_new(virtual_loop_root(m->time), 1);
    m->api = sim_api_new(virtual_loop_root(m->time), m->server, &m->api_faults);
    client_init(&m->client, virtual_loop_root(m->time), m->api);
    inbox_init(&m->inbox);
    m->outbound = sim_outbound_new(virtual_loop_root(m->time), &m->inbox, &m->outbound_faults);
    notifier_init(&m->door, virtual_loop_root(m->time), &m->client, m->outbound);
    m->facts = (struct notify_facts){
        .node = STR("node-1"),
        .state = STR("in-maintenance"),
        .profile = STR("reboot"),
        .profile_last = STR("patch"),
        .in_maintenance = true,
        .last_transition = timestamp_from_usec(MESSENGER_START - MINUTES(5)),
    };
    struct str yaml = arena_printf(&m->memory,
                                   "intervals: {requeue: 1m}\n"
                                   "instances:\n"
                                   "  notify:\n"
                                   "  - type: %s\n"
                                   "    name: it\n"
                                   "    schedule: {type: oneshot, config: {}}\n"
                                   "    config: %s\n",
                                   type, config);
    struct problems problems = { .out = &m->memory };
    int r = config_load(yaml, (struct ucfg_env){ 0 }, &m->memory, &m->config, &problems);
    CHECK_STR(problems.n > 0 && r < 0 ? problems.items[0].text : STR(""), "");
    (void)notify_fixture_request(
        m, "POST", "/api/v1/nodes", 201,
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-1\","
        "\"annotations\":{\"pool\":\"a<b>&\"}}}");
}

void notify_fixture_done(struct notify_fixture *m)
{
    while (!list_empty(&m->door.calls)) {
        struct list *first = m->door.calls.next;
        notify_cancel((struct notify_call *)(void *)first); /* the link is its first member */
    }
    sim_outbound_free(m->outbound);
    sim_api_free(m->api);
    faults_done(&m->outbound_faults);
    faults_done(&m->api_faults);
    apiserver_free(m->server);
    inbox_done(&m->inbox);
    virtual_loop_free(m->time);
    arena_done(&m->memory);
}

static void on_done(void *ctx, const struct err *err, usec_t retry_after)
{
    struct notify_fixture *m = ctx;
    if (err == NULL) {
        m->sent++;
    } else {
        m->failed++;
        m->err = *err;
    }
    m->retry_after = retry_after;
}

struct notify_call *notify_fixture_send(struct notify_fixture *m)
{
    const struct config_instance *instance =
        config_find_instance(&m->config, PLUGIN_NOTIFY, STR("it"));
    CHECK(instance != NULL);
    return notify_send(&m->door, instance, &m->facts, on_done, m);
}

void notify_fixture_run(struct notify_fixture *m, usec_t time)
{
    (void)virtual_loop_run(m->time, virtual_loop_now(m->time) + time);
}

void notify_fixture_deliver(struct notify_fixture *m)
{
    uint32_t before = m->sent + m->failed;
    (void)notify_fixture_send(m);
    CHECK_EQ(m->sent + m->failed, before); /* never from inside */
    for (int i = 0; i < 60000 && m->sent + m->failed == before; i++) {
        notify_fixture_run(m, MSECONDS(10));
    }
    CHECK_EQ(m->sent + m->failed, before + 1);
}

struct str notify_fixture_request(struct notify_fixture *m, const char *method, const char *path,
                                  int status, const char *body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = str_from(body),
    };
    struct apiserver_reply reply = { 0 };
    apiserver_handle(m->server, &request, &m->memory, &reply);
    CHECK_EQ(reply.status, status);
    return reply.body;
}

const struct inbox_message *notify_fixture_message(struct notify_fixture *m, uint32_t i)
{
    const struct inbox_message *message = inbox_at(&m->inbox, i);
    if (message == NULL) {
        check_fail(__FILE__, __LINE__, "message %u of %u has not arrived", i, m->inbox.n);
    }
    return message;
}
