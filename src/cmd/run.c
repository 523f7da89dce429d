/* drydock run: runs a command on approval of a MaintenanceRequest, and completes the request when
 * the command has ended. */
#include "cmd/commands.h"
#include "cmd/request_create.h"
#include "host/loop.h"
#include "kinds/keys.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REASON_MAX 1024u      /* as the CRD has it */
#define CHILD_LOOK SECONDS(1) /* a SIGCHLD ends a turn by itself; this is for one that was lost */
/* Completing is tried for long: a request that is left open blocks the node and a slot. */
#define COMPLETE_RETRY_TIME MINUTES(15)
#define WITHDRAW_RETRY_TIME SECONDS(10)
#define EXIT_SIGNAL 128 /* as shells have it */
#define EXIT_NO_EXEC 126
#define EXIT_NO_COMMAND 127

extern char **environ;

enum run_phase {
    RUN_WAITING, /* a signal means: give up */
    RUN_WORKING, /* signals are the command's */
    RUN_ENDING,  /* the first signal is ignored: what was taken is given back */
};

struct run {
    struct request_cli cli;
    enum run_phase phase;
    pid_t child; /* while it runs */
    int signo;   /* the last one; 0 = none in this phase */
    int signals; /* in this phase */
};

static bool run_leaving(void *ctx)
{
    const struct run *r = ctx;
    return r->phase == RUN_WAITING ? r->signals > 0 : r->phase == RUN_ENDING && r->signals > 1;
}

static void run_enter(struct run *r, enum run_phase phase)
{
    r->phase = phase;
    r->signo = 0;
    r->signals = 0;
}

static void run_on_signal(void *ctx, int signo)
{
    struct run *r = ctx;
    if (signo == SIGCHLD) {
        return; /* it has ended the turn, which is all */
    }
    r->signo = signo;
    r->signals++;
    /* What a terminal sends to its foreground reaches the command without our help. */
    bool typed = (signo == SIGINT || signo == SIGQUIT) && isatty(STDIN_FILENO) != 0;
    if (r->phase == RUN_WORKING && !typed) {
        (void)kill(r->child, signo); /* it may have ended just now */
    }
}

static void run_catch(struct run *r)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD };
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        host_loop_on_signal(r->cli.session.loop, signals[i], run_on_signal, r);
    }
}

/* ── the command ───────────────────────────────────────────────────────────────────────────── */

static int run_spawn(struct run *r, const struct command_call *call)
{
    uint32_t words = call->arg_count - 1;
    char **argv = ARENA_ARRAY(&r->cli.memory, char *, words + 1);
    for (uint32_t i = 0; i < words; i++) {
        /* Arguments come from argv, where they may be written to. */
        argv[i] = (char *)(uintptr_t)call->args[i + 1].p;
    }
    posix_spawnattr_t attributes;
    sigset_t defaults;
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE); /* we ignore it, the command must not */
    int e = posix_spawnattr_init(&attributes);
    if (e == 0) {
        (void)posix_spawnattr_setsigdefault(&attributes, &defaults); /* both take any value */
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        e = posix_spawnp(&r->child, argv[0], NULL, &attributes, argv, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    return e;
}

/* Runs it to its end; answers its exit code as a shell would. */
static int run_work(struct run *r, const struct command_call *call)
{
    run_enter(r, RUN_WORKING);
    int e = run_spawn(r, call);
    if (e != 0) {
        struct str text =
            arena_printf(&r->cli.memory, STR_FMT ": %s", STR_ARG(call->args[1]), strerror(e));
        request_cli_note(&r->cli, text);
        return e == ENOENT ? EXIT_NO_COMMAND : EXIT_NO_EXEC;
    }
    int status = 0;
    pid_t ended = 0;
    while (ended == 0 || (ended < 0 && errno == EINTR)) {
        ended = waitpid(r->child, &status, WNOHANG);
        if (ended == 0) {
            host_loop_turn(r->cli.session.loop, CHILD_LOOK);
        }
    }
    ASSERT(ended == r->child); /* nobody else reaps our children */
    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ── around it ─────────────────────────────────────────────────────────────────────────────── */

/* Nobody will use the approval, so nobody shall wait for us. A request that was there before is
 * another's to withdraw. */
static int run_give_up(struct run *r, const struct maintenance_request *request, bool created,
                       int code)
{
    struct err err = { 0 };
    int signo = r->signo;
    if (!created) {
        return signo != 0 ? EXIT_SIGNAL + signo : code;
    }
    run_enter(r, RUN_ENDING);
    r->cli.session.blocking_api.retry_time = WITHDRAW_RETRY_TIME;
    int k = actor_withdraw(&r->cli.actor, request->name, &err);
    if (k < 0 && k != -ACTOR_REFUSED && k != -ERR_NOTFOUND) {
        (void)err_wrap(&err, "request '" STR_FMT "' is left behind", STR_ARG(request->name));
        request_cli_note(&r->cli, str_from(err.msg));
    }
    return signo != 0 ? EXIT_SIGNAL + signo : code;
}

static int run_complete(struct run *r, const struct maintenance_request *request, int code)
{
    struct err err = { 0 };
    struct str told = arena_printf(&r->cli.memory, "%d", code);
    run_enter(r, RUN_ENDING);
    r->cli.session.blocking_api.retry_time = COMPLETE_RETRY_TIME;
    int k = actor_complete(&r->cli.actor, request->name, told, &err);
    if (k == 0) {
        return code;
    }
    (void)err_wrap(&err,
                   "the command has ended with exit code %d, but request '" STR_FMT
                   "' could not be completed",
                   code, STR_ARG(request->name));
    request_cli_note(&r->cli, str_from(err.msg));
    /* A request that is over, or gone, holds nothing any more. */
    bool over = k == -ACTOR_REFUSED || k == -ERR_NOTFOUND;
    return code != 0 || over ? code : COMMAND_FAILED;
}

/* The command line, as far as it fits. */
static struct str run_reason(struct run *r, const struct command_call *call)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    const struct request_create_flags *flags = call->config;
    if (flags->reason.n > 0) {
        return flags->reason;
    }
    for (uint32_t i = 1; i < call->arg_count; i++) {
        buf_add(&text, i > 1 ? STR(" ") : STR_NONE);
        buf_add(&text, call->args[i]);
    }
    size_t n = MIN(text.n, (size_t)REASON_MAX);
    while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xc0u) == 0x80u) {
        n--; /* never half a character */
    }
    return arena_str(&r->cli.memory, str_sub(buf_str(&text), 0, n));
}

static int run_all(struct run *r, const struct command_call *call)
{
    struct request_cli *a = &r->cli;
    struct err err = { 0 };
    struct maintenance_request request;
    bool created;
    usec_t until = request_cli_deadline(a);
    if (request_create_send(a, call->args[0], run_reason(r, call), &request, &created, &err) < 0) {
        return r->signo != 0 ? EXIT_SIGNAL + r->signo : request_cli_fail(a, &err);
    }
    int k = actor_begin(&a->actor, until, &a->memory, &request, &err);
    if (k == -ACTOR_REFUSED) {
        return request_cli_fail(a, &err); /* it is over, or another's work: nothing of it is ours */
    }
    if (k < 0) {
        int code = request_cli_fail(a, &err);
        return run_give_up(r, &request, created, code);
    }
    return run_complete(r, &request, run_work(r, call));
}

static int run_run(const struct command_call *call)
{
    struct run r = { 0 };
    int code = request_create_open(&r.cli, call);
    if (code == COMMAND_OK) {
        r.cli.session.leaving = run_leaving;
        r.cli.session.ctx = &r;
        run_catch(&r);
        code = run_all(&r, call);
    }
    request_cli_close(&r.cli);
    return code;
}

/* `run worker-7` and `run -- echo` say which of the two is missing. */
static int run_check(const struct command_call *call, struct err *err)
{
    if (call->arg_count == 0) {
        return err_set(err, ERR_INVALID, "want a node and a command: NODE -- COMMAND…");
    }
    if (call->before_dashes == 0) {
        return err_set(err, ERR_INVALID,
                       "the node is missing: want NODE before '--', found the command '" STR_FMT
                       "' alone",
                       STR_ARG(call->args[0]));
    }
    if (call->arg_count == 1) {
        return err_set(err, ERR_INVALID,
                       "there is no command to run on '" STR_FMT "': want " STR_FMT " -- COMMAND…",
                       STR_ARG(call->args[0]), STR_ARG(call->args[0]));
    }
    if (call->before_dashes != UINT32_MAX && call->before_dashes > 1) {
        return err_set(err, ERR_INVALID,
                       "unexpected argument '" STR_FMT "' before '--': want NODE -- COMMAND…",
                       STR_ARG(call->args[1]));
    }
    return 0;
}

static const struct option run_options[] = {
    REQUEST_CREATE_OPTIONS,
    REQUEST_CLI_CLUSTER_OPTIONS(struct request_create_flags),
};

const struct command command_run = {
    .name = "run",
    .args = "NODE -- COMMAND…",
    .summary = "run a command that disturbs a node when it may",
    .text =
        "Asks for the node, waits for the approval, has InProgress acknowledged, runs the "
        "command and completes the request. The command has this terminal; signals are passed "
        "on to it. How it ended is told in the request, as annotation " KEY_EXIT_CODE_TEXT ".\n\n"
        "  drydock run worker-7 --reason 'new kernel' -- ssh worker-7 reboot\n\n"
        "An approval that is withdrawn before the command starts is waited for again. Who "
        "interrupts the wait, or lets --timeout pass, withdraws the request that it made.\n\n"
        "Exit code: the command's own, or 128 and the number of the signal that ended it; 126 "
        "and 127 when it cannot be run. Without the command having run: 1: something failed. "
        "2: the command line is wrong. 3: --timeout has passed. 4: the request was closed, or "
        "is in progress already.",
    .options = { .options = run_options, .count = ARRAY_LEN(run_options) },
    .config_size = sizeof(struct request_create_flags),
    .args_min = 2,
    .args_max = UINT32_MAX,
    .check = run_check,
    .run = run_run,
    .names = request_create_names,
};
