/* drydock demo: plays a story on a simulated cluster, in the terminal and on the dashboard. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/textwrap.h"
#include "cmd/commands.h"
#include "demo/screen.h"
#include "demo/script.h"
#include "host/http_server.h"
#include "host/loop.h"
#include "sandbox/sim/scaled_loop.h"

#define DEMO_FRAME MSECONDS(200)  /* between two drawings of the screen */
#define DEMO_SPEED_WATCHED 4.0    /* slow enough to follow */
#define DEMO_SPEED_UNWATCHED 15.0 /* a pipeline waits for the end, not for the view */
#define DEMO_REAL_MAX SECONDS(58) /* without a terminal it ends within a minute */

struct demo_options {
    struct str listen;
    double speed;
    uint64_t seed;
};

static const struct option demo_flags[] = {
    { .name = "listen",
      .kind = OPTION_TEXT,
      OPTION(struct demo_options, listen),
      .value = "ADDRESS",
      .initial = "127.0.0.1:8080",
      .help = "where the dashboard is served; a free port is taken if that one is in use" },
    { .name = "speed",
      .kind = OPTION_F64,
      OPTION(struct demo_options, speed),
      .value = "X",
      .initial = "0",
      .help = "how much faster than real time it runs; 0 means 4 in a terminal, otherwise 15" },
    { .name = "seed",
      .kind = OPTION_U64,
      OPTION(struct demo_options, seed),
      .value = "N",
      .initial = "1",
      .help = "of all chance in the demo's world" },
};

struct demo {
    struct loop *loop;
    struct loop *time;
    struct script script;
    struct screen screen;
    struct web *web;
    struct http_server *http;
    struct loop_timer frame; /* draws, and notices the end */
    usec_t began;
    bool watched; /* by somebody at a terminal */
    bool late;    /* DEMO_REAL_MAX is over, and the script is not */
};

static void demo_milestone(void *ctx, usec_t wall, struct str text)
{
    struct demo *d = ctx;
    if (d->watched) {
        screen_add(&d->screen, wall, text);
        return;
    }
    CLEANUP(buf_done)
    struct buf line = { 0 };
    struct textwrap wrap = { .out = &line, .columns = SCREEN_COLUMNS, .hang = 10 };
    screen_clock(&line, wall);
    wrap.column = (uint32_t)line.n;
    textwrap_add(&wrap, STR("  "));
    textwrap_add(&wrap, text);
    textwrap_end(&wrap);
    (void)fwrite(line.p, 1, line.n, stdout);
    (void)fflush(stdout);
}

static void demo_frame(void *ctx)
{
    struct demo *d = ctx;
    usec_t now = loop_now(d->loop);
    if (d->watched) {
        CLEANUP(buf_done)
        struct buf out = { 0 };
        screen_draw(&d->screen, &d->script, &out);
        (void)fwrite(out.p, 1, out.n, stdout);
        (void)fflush(stdout);
    } else if (now - d->began > DEMO_REAL_MAX && !d->script.over) {
        demo_milestone(d, loop_wall(d->time), STR("this machine is too slow for the story"));
        d->late = true;
    }
    /* A person ends the demo with Ctrl-C; without a terminal it ends with the script. */
    if (!d->watched && (d->script.over || d->late)) {
        host_loop_stop(d->loop);
        return;
    }
    loop_timer_set(&d->frame, now + DEMO_FRAME);
}

static void demo_on_signal(void *ctx, int signo UNUSED)
{
    struct demo *d = ctx;
    host_loop_stop(d->loop);
}

/* The port that was asked for, or a free one beside it. */
static int demo_listen(struct demo *d, struct str listen, struct arena *memory, struct err *err)
{
    struct http_server_config config = { .listen = listen };
    d->http = http_server_new(d->loop, &config, web_handle, d->web, err);
    struct str host = listen;
    size_t colon = str_rfind_char(listen, ':');
    if (colon != SIZE_MAX) {
        host = str_sub(listen, 0, colon);
    }
    if (d->http == NULL && err->os == EADDRINUSE) {
        config.listen = arena_printf(memory, STR_FMT ":0", STR_ARG(host));
        *err = (struct err){ 0 };
        d->http = http_server_new(d->loop, &config, web_handle, d->web, err);
    }
    if (d->http == NULL) {
        return -(int)err->code;
    }
    if (host.n == 0 || str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("[::]"))) {
        host = STR("127.0.0.1");
    }
    d->screen.url =
        arena_printf(memory, "http://" STR_FMT ":%u/", STR_ARG(host), http_server_port(d->http));
    return 0;
}

static void demo_summary(struct demo *d)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    script_summary(&d->script, &text);
    (void)printf(STR_FMT "\n", STR_ARG(buf_str(&text)));
}

static void demo_done(struct demo *d)
{
    loop_timer_done(&d->frame);
    web_free(d->web);
    http_server_free(d->http);
    script_done(&d->script);
    scaled_loop_free(d->time);
    host_loop_free(d->loop);
}

static void demo_switch_screen(const struct demo *d, bool on)
{
    if (d->watched) {
        /* The alternate screen keeps what stood in the terminal before. */
        (void)fputs(on ? "\x1b[?1049h\x1b[?25l\x1b[2J" : "\x1b[?25h\x1b[?1049l", stdout);
        (void)fflush(stdout);
    }
}

static int demo_run(const struct command_call *call)
{
    const struct demo_options *o = call->config;
    struct err err = { 0 };
    if (o->speed < 0 || o->speed > SCALED_LOOP_SPEED_MAX) {
        (void)err_set(&err, ERR_INVALID, "flag '--speed': want 0 to %.0f", SCALED_LOOP_SPEED_MAX);
        (void)command_fail(call, &err);
        return COMMAND_USAGE;
    }
    CLEANUP(demo_done)
    struct demo d = { .loop = host_loop_new() };
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    d.watched = isatty(STDOUT_FILENO) == 1 && term != NULL && !str_eq(str_from(term), STR("dumb"));
    d.screen.colour = no_colour == NULL || no_colour[0] == '\0';
    d.screen.speed = o->speed > 0 ? o->speed
                     : d.watched  ? DEMO_SPEED_WATCHED
                                  : DEMO_SPEED_UNWATCHED;
    d.time = scaled_loop_new(d.loop, d.screen.speed);
    scaled_loop_set_wall(d.time, script_start_time(loop_wall(d.loop)));
    script_init(&d.script, d.time, o->seed);
    d.script.on_milestone = demo_milestone;
    d.script.ctx = &d;
    d.web = web_new(d.loop, &d.script.source.web, &d.script.metrics);
    loop_timer_init(&d.frame, d.loop, demo_frame, &d);
    if (demo_listen(&d, o->listen, call->memory, &err) < 0) {
        return command_fail(call, &err);
    }
    if (!d.watched) {
        (void)printf("dashboard at " STR_FMT ", time runs %.0f times as fast\n",
                     STR_ARG(d.screen.url), d.screen.speed);
        (void)fflush(stdout);
    }
    host_loop_on_signal(d.loop, SIGINT, demo_on_signal, &d);
    host_loop_on_signal(d.loop, SIGTERM, demo_on_signal, &d);
    d.began = loop_now(d.loop);
    demo_switch_screen(&d, true);
    script_begin(&d.script);
    loop_timer_set(&d.frame, d.began);
    host_loop_run(d.loop);
    demo_switch_screen(&d, false);
    demo_summary(&d);
    return d.script.failed || d.late ? COMMAND_FAILED : COMMAND_OK;
}

const struct command command_demo = {
    .name = "demo",
    .summary = "watch an OS update of a small cluster, on the real controller",
    .text = "Runs a simulated cluster of 24 nodes, two replicas of the controller and the "
            "dashboard in one process. An OS update is released: mails ask for approval, a window "
            "opens, nodes drain behind their budgets, reboot and return. Meanwhile a node loses "
            "its network, which blocks a drain, and the leader is killed.\n\n"
            "In a terminal it draws a live picture until Ctrl-C. Otherwise it tells the story "
            "line by line within a minute, sums up, and fails if something was not dealt with. "
            "What it runs are docs/examples/os-update.yaml and docs/examples/shop.yaml.",
    .options = { .options = demo_flags, .count = ARRAY_LEN(demo_flags) },
    .config_size = sizeof(struct demo_options),
    .run = demo_run,
};
