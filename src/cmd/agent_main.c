/* The main function of drydock-agent: makes a machine what a file of resources says, once or as
 * long as it runs. */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/desired_file.h"
#include "agent/realtime.h"
#include "agent/type_reference.h"
#include "cmd/command.h"
#include "cmd/version.h"
#include "host/fd_watch.h"
#include "host/file.h"
#include "host/launcher.h"
#include "host/loop.h"
#include "host/no_exec.h"
#include "host/systemd.h"

#define OUTPUT_MAX ((size_t)16 * 1024 * 1024) /* of 10,000 resources with all their differences */

struct agent_flags {
    struct str once;
    struct str file;
    struct str root;
    struct str state_dir;
    struct str output;
    struct str allow;
    struct str log_format;
    usec_t audit;
    bool noop;
    bool reference;
    bool version;
};

static const struct option agent_options[] = {
    { "once", OPTION_FILE, OPTION(struct agent_flags, once), "FILE", NULL, NULL,
      "a list of resources, as YAML or JSON: make the machine so, and end" },
    { "file", OPTION_FILE, OPTION(struct agent_flags, file), "FILE", NULL, NULL,
      "such a list: make the machine so, keep it so until a signal comes, and follow the file" },
    { "noop", OPTION_BOOL, OPTION(struct agent_flags, noop), NULL, NULL, NULL,
      "say what would be done, and change nothing" },
    { "allow", OPTION_CHOICE, OPTION(struct agent_flags, allow), NULL, "visit", "none|window|visit",
      "how disruptive a change may be: not at all, as in a maintenance window, or as on a node "
      "that "
      "is out of service; what is more is deferred" },
    { "root", OPTION_FILE, OPTION(struct agent_flags, root), "DIR", "/", NULL,
      "the file tree to work on" },
    { "state-dir", OPTION_FILE, OPTION(struct agent_flags, state_dir), "DIR",
      "/var/lib/drydock/agent", NULL, "where journal and originals are kept, below --root" },
    { "o", OPTION_CHOICE, OPTION(struct agent_flags, output), NULL, "text", "text|json",
      "how the result of --once is printed", .also = "output" },
    { "audit", OPTION_DURATION, OPTION(struct agent_flags, audit), "DURATION", "6h", NULL,
      "with --file: how often everything is looked at, give or take a fifth, beside what events "
      "tell; 0: never" },
    { "log-format", OPTION_CHOICE, OPTION(struct agent_flags, log_format), NULL, "text",
      "text|json", "with --file: what is done is told on the standard output, a line each" },
    { "reference", OPTION_BOOL, OPTION(struct agent_flags, reference), NULL, NULL, NULL,
      "print the reference page of all types of resources" },
    { "version", OPTION_BOOL, OPTION(struct agent_flags, version), NULL, NULL, NULL,
      "print the version" },
};
static const struct option_table agent_table = { .options = agent_options,
                                                 .count = ARRAY_LEN(agent_options) };

static void print(FILE *to, const struct buf *text)
{
    (void)fwrite(text->p, 1, text->n, to); /* nobody is left to tell if it is gone */
}

static int fail(struct str file, const struct err *err)
{
    if (err->pos.line > 0) {
        (void)fprintf(stderr, "drydock-agent: " STR_FMT ":%u:%u: %s\n", STR_ARG(file),
                      err->pos.line, err->pos.column, err->msg);
    } else {
        (void)fprintf(stderr, "drydock-agent: %s\n", err->msg);
    }
    return COMMAND_FAILED;
}

static int read_graph(struct str file, struct arena *out, struct resource_list *list,
                      struct graph *ret, struct err *err)
{
    struct str text;
    struct ydoc doc;
    int r = file_read(file, CONFIG_FILE_BYTES_MAX, out, &text, err);
    r = r < 0 ? r : ydoc_parse(text, out, &doc, err);
    r = r < 0 ? r : resource_list_read(&doc, out, list, err);
    return r < 0 ? r : graph_build(list, out, ret, err);
}

/* Programs are started by a process that was made before anything else. */
struct programs {
    struct launcher *launcher;
    struct loop *loop;
    void (*on_end)(void *ctx, const struct command_result *result);
    void *ctx;
};

static void on_program_end(void *ctx, const struct launcher_result *result)
{
    struct programs *p = ctx;
    struct command_result told = { .exit_code = result->exit_code,
                                   .timed_out = result->timed_out,
                                   .out = result->out };
    p->on_end(p->ctx, &told);
}

static int program_run(void *ctx, const struct command_spec *command,
                       void (*on_end)(void *ctx, const struct command_result *result),
                       void *end_ctx, struct err *err)
{
    static const struct str base[] = {
        STR_INIT("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        STR_INIT("LANG=C.UTF-8"),
    };
    struct programs *p = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str *env = ARENA_ARRAY(&tmp, struct str, command->env_n + ARRAY_LEN(base));
    memcpy(env, base, sizeof(base));
    for (uint32_t i = 0; i < command->env_n; i++) {
        env[ARRAY_LEN(base) + i] = command->env[i];
    }
    struct launcher_command wanted = { .argv = command->argv,
                                       .argv_n = command->argv_n,
                                       .env = env,
                                       .env_n = command->env_n + (uint32_t)ARRAY_LEN(base),
                                       .cwd = command->cwd,
                                       .input = command->input,
                                       .uid = command->uid,
                                       .gid = command->gid,
                                       .time_max = command->time_max };
    p->on_end = on_end;
    p->ctx = end_ctx;
    return launcher_run(p->launcher, p->loop, &wanted, on_program_end, p, err);
}

static void on_idle(void *ctx)
{
    host_loop_stop(ctx);
}

static struct str socket_path(struct str root, struct arena *out)
{
    return str_eq(root, STR("/")) ? STR(SYSTEMD_SOCKET)
                                  : arena_concat(out, root, STR(SYSTEMD_SOCKET));
}

/* What both ways of running stand on. */
struct machine {
    struct launcher *launcher;
    struct root root;
    struct loop *loop;
    struct programs programs;
    struct systemd *systemd;
};

static void machine_done(struct machine *m)
{
    if (m->loop != NULL) {
        systemd_free(m->systemd);
        host_loop_free(m->loop);
        root_done(&m->root);
    }
    launcher_free(m->launcher);
}

static int machine_open(struct machine *m, const struct agent_flags *flags, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    *m = (struct machine){ 0 };
    int r = launcher_new(flags->root, &m->launcher, err);
    /* Before the first byte of others is read. */
    r = r < 0 ? r : no_exec_enter(err);
    if (r < 0) {
        return r;
    }
    if (field_check_path(flags->state_dir, err) < 0) {
        return err_wrap(err, "flag '--state-dir'");
    }
    r = root_open(&m->root, flags->root, err);
    if (r < 0) {
        return r;
    }
    m->root.read_only = flags->noop;
    m->loop = host_loop_new();
    m->programs = (struct programs){ .launcher = m->launcher, .loop = m->loop };
    m->systemd = systemd_new(m->loop, socket_path(flags->root, &tmp));
    return 0;
}

static struct engine_rules rules_of(const struct agent_flags *flags, int64_t retries)
{
    return (struct engine_rules){
        .noop = flags->noop,
        .allowed = str_eq(flags->allow, STR("none"))     ? DISRUPTION_NONE
                   : str_eq(flags->allow, STR("window")) ? DISRUPTION_WINDOW
                                                         : DISRUPTION_VISIT,
        .retries = retries,
    };
}

static int converge(const struct agent_flags *flags, const struct graph *graph, struct machine *m,
                    struct err *err)
{
    struct converge c;
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct veto veto = veto_load(&m->root, &memory);
    struct engine_rules rules = rules_of(flags, /* retries= */ 0);
    rules.noop = rules.noop || veto.noop;
    m->root.read_only = rules.noop;
    struct converge_spec spec = {
        .loop = m->loop,
        .root = &m->root,
        .graph = graph,
        .rules = rules,
        .veto = &veto,
        .state_dir = flags->state_dir,
        .runner = { .run = program_run, .ctx = &m->programs },
        .units = systemd_units(m->systemd),
        .on_idle = on_idle,
        .ctx = m->loop,
    };
    int r = converge_start(&c, &spec, err);
    if (r < 0) {
        return r;
    }
    CLEANUP(buf_done)
    struct buf out = { .max = OUTPUT_MAX };
    host_loop_run(m->loop);
    if (str_eq(flags->output, STR("json"))) {
        converge_print_json(&c, &out);
    } else {
        converge_print_text(&c, &out);
    }
    print(stdout, &out);
    r = converge_is_good(&c) ? COMMAND_OK : COMMAND_FAILED;
    converge_done(&c);
    return r;
}

static int once(const struct agent_flags *flags)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(machine_done)
    struct machine m;
    struct resource_list list;
    struct graph graph;
    struct err err = { 0 };
    int r = machine_open(&m, flags, &err);
    r = r < 0 ? r : read_graph(flags->once, &memory, &list, &graph, &err);
    r = r < 0 ? r : converge(flags, &graph, &m, &err);
    return r < 0 ? fail(flags->once, &err) : r;
}

/* ── as long as it runs ────────────────────────────────────────────────────────────────────── */

static void *listen_fd(void *ctx, int fd, void (*fn)(void *ctx), void *fn_ctx)
{
    struct machine *m = ctx;
    return fd_watch_new(m->loop, fd, fn, fn_ctx);
}

static void unlisten_fd(void *ctx, void *listener)
{
    (void)ctx;
    fd_watch_free(listener);
}

static void on_stopped(void *ctx)
{
    struct machine *m = ctx;
    host_loop_stop(m->loop);
}

static void on_signal(void *ctx, int signo)
{
    (void)signo;
    realtime_stop(ctx);
}

static void write_line(void *ctx, struct str line)
{
    (void)ctx;
    ssize_t n = write(STDOUT_FILENO, line.p, line.n);
    (void)n; /* nobody is left to tell if it is gone */
}

static usec_t wall(void *ctx)
{
    return loop_wall(ctx);
}

/* Each parameter of the kernel that is watched holds a descriptor. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* then fewer can be watched, and are polled */
    }
}

static int keep(const struct agent_flags *flags)
{
    CLEANUP(machine_done)
    struct machine m;
    struct err err = { 0 };
    if (machine_open(&m, flags, &err) < 0) {
        return fail(flags->file, &err);
    }
    raise_descriptors();
    struct log log = { .write = write_line,
                       .wall = wall,
                       .wall_ctx = m.loop,
                       .level = LOG_INFO,
                       .format = str_eq(flags->log_format, STR("json")) ? LOG_JSON : LOG_TEXT,
                       .name = STR("agent") };
    struct desired_file *file = desired_file_new(m.loop, flags->file);
    struct realtime_spec spec = {
        .loop = m.loop,
        .root = &m.root,
        .source = desired_file_source(file),
        .rules = rules_of(flags, /* retries= */ -1),
        .runner = { .run = program_run, .ctx = &m.programs },
        .units = systemd_units(m.systemd),
        .state_dir = flags->state_dir,
        .log = &log,
        .audit = flags->audit,
        .listen = listen_fd,
        .unlisten = unlisten_fd,
        .on_stopped = on_stopped,
        .ctx = &m,
    };
    struct realtime *r = realtime_new(&spec, &err);
    if (r != NULL) {
        host_loop_on_signal(m.loop, SIGTERM, on_signal, r);
        host_loop_on_signal(m.loop, SIGINT, on_signal, r);
        host_loop_run(m.loop);
        log_info(&log, "stopped");
        realtime_free(r);
    }
    desired_file_free(file);
    return r != NULL ? COMMAND_OK : fail(flags->file, &err);
}

static void help(struct buf *out)
{
    buf_add(out, STR("usage: drydock-agent --once FILE | --file FILE [flags]\n\n"));
    options_wrap(STR("Makes this machine what a list of resources says: files, folders, links and "
                     "the like. What is right already is left alone, so a second run changes "
                     "nothing. What was there before is kept, and comes back when the resource is "
                     "taken off the list and asks for that.\n\n"
                     "--once does it and ends. --file stays: what somebody changes is changed back "
                     "at once, a new content of the file is adopted, and SIGTERM ends it after the "
                     "work under way.\n\n"
                     "The exit code of --once is 0 when everything is right, would be changed "
                     "(--noop) or is "
                     "deferred (--allow), and 1 when something failed."),
                 0, out);
    buf_add(out, STR("\nflags:\n"));
    options_help(&agent_table, out);
}

static int run(const struct agent_flags *flags, const struct option_args *args)
{
    CLEANUP(buf_done)
    struct buf out = { .max = OUTPUT_MAX };
    if (args->help) {
        help(&out);
    } else if (flags->version) {
        struct command_list list = { .commit = version_commit };
        command_version(&list, &out);
    } else if (flags->reference) {
        type_reference_print(&out);
    } else if (args->count > 0 || (flags->once.n == 0) == (flags->file.n == 0)) {
        (void)fprintf(stderr, "drydock-agent: want --once FILE or --file FILE; 'drydock-agent "
                              "--help' says more\n");
        return COMMAND_USAGE;
    } else {
        return flags->once.n > 0 ? once(flags) : keep(flags);
    }
    print(stdout, &out);
    return COMMAND_OK;
}

int main(int argc, char **argv)
{
    (void)argc;
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct agent_flags flags = { 0 };
    struct option_args args = { 0 };
    struct err err = { 0 };
    (void)signal(SIGPIPE, SIG_IGN); /* whoever reads our output may go */
    (void)umask(022);               /* modes are what resources say, whoever started us */
    if (options_parse(&agent_table, argv + 1, &memory, &flags, &args, &err) < 0) {
        (void)fprintf(stderr, "drydock-agent: %s\n", err.msg);
        return COMMAND_USAGE;
    }
    return run(&flags, &args);
}
