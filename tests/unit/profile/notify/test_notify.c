#include "tests/check.h"
#include "tests/lib/notify_fixture.h"

#define HOOK(body) "{url: 'http://h', contentType: text/plain, body: '" body "'}"

TEST(notify_shows_templates_the_node_and_the_facts)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(
        &m, "webhook",
        HOOK("{{ .Node.Name }} {{ .Node.Annotations.pool }} {{ .State }} {{ .Profile }} "
             "{{ .Profile.Current }} {{ .Profile.Last }} {{ .InMaintenance }} "
             "{{ .LogDetails }} {{ .LastTransition.Format \"15:04\" }} "
             "{{ if eq .Profile \"reboot\" }}same{{ end }}"));
    notify_fixture_deliver(&m);
    CHECK_EQ(m.sent, 1);
    CHECK_STR(notify_fixture_message(&m, 0)->request.body,
              "node-1 a<b>& in-maintenance reboot reboot patch true false 07:55 same");
}

/* A configuration may be replaced while a message is under way. */
TEST(notify_copies_what_it_needs)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "webhook", HOOK("{{ .Node.Name }} {{ .State }}"));
    char text[] = "operational";
    m.facts.state = str_from(text);
    (void)notify_fixture_send(&m);
    memset(text, 'x', sizeof(text) - 1);
    struct config_instance *instance = &m.config.instances[PLUGIN_NOTIFY].items[0];
    for (uint32_t i = 0; i < instance->plugin->key_n; i++) {
        instance->values[i] = (struct plugin_value){ .text = STR("gone") };
    }
    notify_fixture_run(&m, SECONDS(5));
    CHECK_EQ(m.sent, 1);
    CHECK_STR(notify_fixture_message(&m, 0)->request.body, "node-1 operational");
    CHECK_STR(notify_fixture_message(&m, 0)->request.url, "http://h");
}

TEST(notify_sends_nothing_when_the_template_fails)
{
    static const struct {
        const char *config;
        const char *error;
    } cases[] = {
        { HOOK("{{ .Nope }}"), "template of 'body': line 1, column 4: found '.Nope', want a field "
                               "that struct has" },
        { HOOK("{{ if }}"),
          "template of 'body': line 1, column 6: found nothing, want a value for if" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(notify_fixture_done)
        struct notify_fixture m;
        notify_fixture_init(&m, "webhook", cases[i].config);
        notify_fixture_deliver(&m);
        CHECK_EQ(m.failed, 1);
        CHECK_STR((const char *)m.err.msg, cases[i].error);
        CHECK_EQ(m.inbox.arrived, 0);
    }
    check_case(-1);
}

TEST(notify_fails_when_the_node_is_gone_or_cannot_be_read)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "webhook", HOOK("x"));
    m.facts.node = STR("node-2");
    notify_fixture_deliver(&m);
    CHECK_EQ(m.err.code, ERR_NOTFOUND);
    CHECK_STR((const char *)m.err.msg,
              "node 'node-2': the server answered 404: nodes \"node-2\" not found");
    m.facts.node = STR("node-1");
    m.api_faults.down = true;
    notify_fixture_deliver(&m);
    CHECK_EQ(m.err.code, ERR_IO);
    CHECK(m.retry_after > 0);
    /* The gate is closed now: nothing is asked, and the caller is told when to come back. */
    uint64_t sent = sim_api_sent(m.api);
    (void)notify_fixture_send(&m);
    notify_fixture_run(&m, MSECONDS(1));
    CHECK_EQ(m.failed, 3);
    CHECK_EQ(m.err.code, ERR_BUSY);
    CHECK(m.retry_after > 0);
    CHECK_EQ(sim_api_sent(m.api), sent);
    m.api_faults.down = false;
    notify_fixture_run(&m, m.retry_after);
    notify_fixture_deliver(&m);
    CHECK_EQ(m.sent, 1);
}

TEST(notify_cancelled_calls_nobody_at_any_step)
{
    for (usec_t after = 0; after < MSECONDS(15); after += MSECONDS(1)) {
        CLEANUP(notify_fixture_done)
        struct notify_fixture m;
        notify_fixture_init(&m, "webhook", HOOK("x"));
        struct notify_call *call = notify_fixture_send(&m);
        notify_fixture_run(&m, after);
        if (m.sent == 0) {
            notify_cancel(call);
            notify_fixture_run(&m, MINUTES(1));
            CHECK_EQ(m.sent + m.failed, 0);
        }
        CHECK(list_empty(&m.door.calls));
    }
}

/* Whatever both networks do, each message ends once, and within its timeouts. */
PROPERTY(notify_ends_every_message_once)
{
    static const char *const plugins[][2] = {
        { "mail", "{address: 'a:25', from: a, to: b, subject: s, message: m}" },
        { "slack", "{hook: 'http://h', channel: c, message: m}" },
        { "webhook", "{url: 'http://h'}" },
        { "slackThread", "{token: t, channel: c, title: t, message: m, leaseName: l, "
                         "leaseNamespace: default, period: 1m}" },
    };
    size_t which = rng_below(rng, ARRAY_LEN(plugins));
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, plugins[which][0], plugins[which][1]);
    rng_init(&m.api_faults.rng, rng_next(rng));
    rng_init(&m.outbound_faults.rng, rng_next(rng));
    faults_randomize(&m.api_faults);
    faults_randomize(&m.outbound_faults);
    for (uint32_t i = 0; i < 5; i++) {
        (void)notify_fixture_send(&m);
    }
    notify_fixture_run(&m, MINUTES(30));
    CHECK_EQ(m.sent + m.failed, 5);
    CHECK(list_empty(&m.door.calls));
    CHECK_EQ(sim_outbound_in_flight(m.outbound), 0);
    CHECK_EQ(sim_api_in_flight(m.api), 0);
}
