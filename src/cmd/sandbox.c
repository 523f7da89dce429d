/* drydock sandbox: serves a simulated cluster to kubectl and other clients. */
#include <signal.h>
#include <stdio.h>

#include "cmd/commands.h"
#include "sandbox/apiserver/http_front.h"
#include "cmd/sandbox_kubeconfig.h"
#include "host/file.h"
#include "host/http_server.h"
#include "host/loop.h"
#include "host/pki.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/scaled_loop.h"
#include "sandbox/world/world.h"

#define SANDBOX_BOOT                                                                               \
    SECONDS(5)                   /* of machines that join; who waits at a terminal waits for real  \
                                  */
#define SANDBOX_GRACE SECONDS(2) /* answers are made in microseconds; only their sending waits */

struct sandbox_options {
    struct str listen;
    struct str kubeconfig;
    struct str world;
    uint32_t nodes;
    uint32_t zones;
    double speed;
    uint64_t seed;
    bool tls;
    bool bare;
};

static const struct option sandbox_flags[] = {
    { .name = "listen",
      .kind = OPTION_TEXT,
      OPTION(struct sandbox_options, listen),
      .value = "ADDRESS",
      .initial = "127.0.0.1:0",
      .help = "where the API is served; port 0 takes a free one" },
    { .name = "nodes",
      .kind = OPTION_U32,
      OPTION(struct sandbox_options, nodes),
      .value = "N",
      .initial = "3",
      .help = "nodes the world starts with" },
    { .name = "zones",
      .kind = OPTION_U32,
      OPTION(struct sandbox_options, zones),
      .value = "N",
      .initial = "3",
      .help = "availability zones they are spread over" },
    { .name = "world",
      .kind = OPTION_FILE,
      OPTION(struct sandbox_options, world),
      .value = "FILE",
      .help = "YAML that describes the world: its durations, and objects to begin with" },
    { .name = "write-kubeconfig",
      .kind = OPTION_FILE,
      OPTION(struct sandbox_options, kubeconfig),
      .value = "FILE",
      .help = "written when the API is served; kubectl takes it with --kubeconfig" },
    { .name = "speed",
      .kind = OPTION_F64,
      OPTION(struct sandbox_options, speed),
      .value = "X",
      .initial = "1",
      .help = "how much faster than real time the world's clock runs" },
    { .name = "seed",
      .kind = OPTION_U64,
      OPTION(struct sandbox_options, seed),
      .value = "N",
      .initial = "1",
      .help = "of all chance in the world: names, uids, durations" },
    { .name = "tls",
      .kind = OPTION_BOOL,
      OPTION(struct sandbox_options, tls),
      .help = "serve HTTPS; the kubeconfig then carries a CA and a client certificate" },
    { .name = "bare",
      .kind = OPTION_BOOL,
      OPTION(struct sandbox_options, bare),
      .help = "the API alone: no nodes, no controllers, nobody but clients writes" },
};

struct sandbox {
    const struct sandbox_options *options;
    struct loop *loop;
    struct loop *time; /* the world's: `loop` itself, or a faster one on it */
    struct apiserver *server;
    struct world *world;
    struct http_front front;
    struct http_server *http;
    bool stopping;
};

static void sandbox_stopped(void *ctx)
{
    struct sandbox *s = ctx;
    host_loop_stop(s->loop);
}

static void sandbox_on_signal(void *ctx, int signo UNUSED)
{
    struct sandbox *s = ctx;
    if (s->stopping) {
        host_loop_stop(s->loop); /* whoever asks twice does not want to wait */
        return;
    }
    s->stopping = true;
    http_server_stop(s->http, SANDBOX_GRACE, sandbox_stopped, s);
}

static void sandbox_done(struct sandbox *s)
{
    http_server_free(s->http);
    world_free(s->world);
    apiserver_free(s->server);
    if (s->time != s->loop) {
        scaled_loop_free(s->time);
    }
    host_loop_free(s->loop);
}

/* The address as clients use it: all interfaces are reached by the first. */
static struct str sandbox_url(const struct sandbox *s, struct arena *out)
{
    struct str listen = s->options->listen;
    struct str host = str_sub(listen, 0, str_rfind_char(listen, ':'));
    if (host.n == 0 || str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("[::]"))) {
        host = STR("127.0.0.1");
    }
    return arena_printf(out, "http%s://" STR_FMT ":%u", s->options->tls ? "s" : "", STR_ARG(host),
                        http_server_port(s->http));
}

static int sandbox_serve(struct sandbox *s, struct arena *memory, struct err *err)
{
    const struct sandbox_options *o = s->options;
    /* Nobody attacks it, and its clients may be slow: tests stop and starve them. */
    struct http_server_config config = { .listen = o->listen,
                                         .held_bytes_max = (size_t)1024 * 1024 * 1024,
                                         .line_time_max = HTTP_REQUEST_TIME_MAX,
                                         .stall_time_max = SECONDS(30) };
    struct pki pki;
    if (o->tls) {
        int r = pki_make(loop_wall(s->loop), memory, &pki, err);
        if (r < 0) {
            return r;
        }
        config.tls_cert = pki.server_cert;
        config.tls_key = pki.server_key;
        config.tls_client_ca = pki.ca_cert;
    }
    s->http = http_server_new(s->loop, &config, http_front_handle, &s->front, err);
    if (s->http == NULL) {
        return -(int)err->code;
    }
    struct str url = sandbox_url(s, memory);
    if (o->kubeconfig.n > 0) {
        struct str text = kubeconfig_file_text(url, o->tls ? &pki : NULL, memory);
        int r = file_replace(o->kubeconfig, text, err);
        if (r < 0) {
            return r;
        }
    }
    (void)printf("serving " STR_FMT ", %u nodes%s" STR_FMT "\n", STR_ARG(url),
                 s->world == NULL ? 0 : world_node_count(s->world),
                 o->kubeconfig.n > 0 ? ", kubeconfig " : "", STR_ARG(o->kubeconfig));
    (void)fflush(stdout);
    return 0;
}

static int sandbox_populate(struct sandbox *s, struct arena *memory, struct err *err)
{
    const struct sandbox_options *o = s->options;
    if (o->bare) {
        return 0;
    }
    struct world_config config = {
        .seed = o->seed,
        .nodes = o->nodes,
        .zones = o->zones,
        .heartbeats = WORLD_HEARTBEATS_BOTH,
        .boot = SANDBOX_BOOT,
    };
    struct str *objects = NULL;
    uint32_t n = 0;
    if (o->world.n > 0) {
        struct str text;
        int r = file_read(o->world, CONFIG_FILE_BYTES_MAX, memory, &text, err);
        if (r == 0) {
            r = world_file_read(text, memory, &config, &objects, &n, err);
        }
        if (r < 0) {
            return err_wrap(err, "world '" STR_FMT "'", STR_ARG(o->world));
        }
    }
    s->world = world_new(s->time, s->server, &config);
    return world_create_objects(s->world, objects, n, err);
}

static int sandbox_run(const struct command_call *call)
{
    const struct sandbox_options *o = call->config;
    struct err err = { 0 };
    const char *wrong = !(o->speed > 0 && o->speed <= SCALED_LOOP_SPEED_MAX) ? "speed"
                        : o->nodes > WORLD_NODES_MAX                         ? "nodes"
                        : o->zones < 1 || o->zones > WORLD_ZONES_MAX         ? "zones"
                                                                             : NULL;
    if (wrong != NULL) {
        (void)err_set(
            &err, ERR_INVALID,
            "flag '--%s' is out of its bounds: nodes 0 to %u, zones 1 to %u, speed above 0 to %.0f",
            wrong, WORLD_NODES_MAX, WORLD_ZONES_MAX, SCALED_LOOP_SPEED_MAX);
        (void)command_fail(call, &err);
        return COMMAND_USAGE;
    }
    CLEANUP(sandbox_done)
    struct sandbox s = { .options = o, .loop = host_loop_new() };
    s.time = o->speed == 1 ? s.loop : scaled_loop_new(s.loop, o->speed);
    s.server = apiserver_new(s.time, o->seed);
    http_front_init(&s.front, s.loop, s.server);
    s.front.certificates = o->tls;
    s.front.speed = o->speed;
    if (sandbox_populate(&s, call->memory, &err) < 0) {
        return command_fail(call, &err);
    }
    if (sandbox_serve(&s, call->memory, &err) < 0) {
        return command_fail(call, &err);
    }
    host_loop_on_signal(s.loop, SIGTERM, sandbox_on_signal, &s);
    host_loop_on_signal(s.loop, SIGINT, sandbox_on_signal, &s);
    host_loop_run(s.loop);
    return COMMAND_OK;
}

const struct command command_sandbox = {
    .name = "sandbox",
    .summary = "serve a simulated cluster: an API server and a world of nodes",
    .text = "Serves the Kubernetes API from memory, with simulated nodes behind it, for kubectl "
            "and any other client. Nothing is kept: the world ends with the process.",
    .options = { .options = sandbox_flags, .count = ARRAY_LEN(sandbox_flags) },
    .config_size = sizeof(struct sandbox_options),
    .run = sandbox_run,
};
