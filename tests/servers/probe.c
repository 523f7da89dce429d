/*
 * notify-probe FILE INSTANCE…: sends one message for each instance named, one after the other, as
 * the controller would, and prints "sent" or "failed: why" for each.
 *
 * The wire is the real one, set up from the environment; the cluster is a sandbox with one node,
 * "node-1", that lives as long as the probe.
 */
#include "host/file.h"
#include "host/loop.h"
#include "host/outbound.h"
#include "profile/notify/notify.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"

#include <stdio.h>
#include <stdlib.h>

struct probe {
    bool done;
};

static void on_done(void *ctx, const struct err *err, usec_t retry_after)
{
    struct probe *p = ctx;
    if (err == NULL) {
        (void)printf("sent\n");
    } else {
        (void)printf("failed: %s (retry after %lld s)\n", err->msg,
                     (long long)(retry_after / SECONDS(1)));
    }
    p->done = true;
}

static const char *env_of(void *ctx UNUSED, const char *name)
{
    return getenv(name);
}

static void make_node(struct apiserver *server)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = STR("POST"),
        .path = STR("/api/v1/nodes"),
        .content_type = STR("application/json"),
        .body = STR("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-1\","
                    "\"annotations\":{\"odd\":\"ü \\\"<&>\\\"\"}}}"),
    };
    apiserver_handle(server, &request, &tmp, &reply);
    ASSERT(reply.status == 201);
}

static void send_all(const struct config *config, char **names, int n)
{
    struct loop *loop = host_loop_new();
    struct apiserver *server = apiserver_new(loop, 1);
    struct api *api = sim_api_new(loop, server, NULL);
    struct outbound *outbound =
        host_outbound_new(loop, &(struct host_outbound_config){
                                    .env = env_of, .ca_file = str_from(getenv("SSL_CERT_FILE")) });
    struct client client;
    struct notifier door;
    client_init(&client, loop, api);
    notifier_init(&door, loop, &client, outbound);
    make_node(server);
    const struct notify_facts facts = {
        .node = STR("node-1"),
        .state = STR("in-maintenance"),
        .profile = STR("reboot"),
        .in_maintenance = true,
        .last_transition = { .sec = 1772438400 },
    };
    for (int i = 0; i < n; i++) {
        const struct config_instance *instance =
            config_find_instance(config, PLUGIN_NOTIFY, str_from(names[i]));
        ASSERT(instance != NULL);
        struct probe probe = { 0 };
        (void)notify_send(&door, instance, &facts, on_done, &probe);
        while (!probe.done) {
            host_loop_turn(loop, SECONDS(1));
        }
    }
    host_outbound_free(outbound);
    sim_api_free(api);
    apiserver_free(server);
    host_loop_free(loop);
}

int main(int argc, char **argv)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct problems problems = { .out = &memory };
    struct config config;
    struct err err = { 0 };
    struct str text;
    if (argc < 3) {
        (void)fprintf(stderr, "notify-probe FILE INSTANCE…\n");
        return 2;
    }
    if (file_read(str_from(argv[1]), UCFG_BYTES_MAX, &memory, &text, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    if (config_load(text, (struct ucfg_env){ 0 }, &memory, &config, &problems) < 0) {
        (void)fprintf(stderr, STR_FMT "\n", STR_ARG(problems.items[0].text));
        return 1;
    }
    send_all(&config, argv + 2, argc - 2);
    return 0;
}
