/* The main function of drydock-agent: makes a machine what a file of resources says. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agent/converge.h"
#include "agent/type_reference.h"
#include "cmd/command.h"
#include "cmd/version.h"
#include "host/file.h"
#include "host/launcher.h"
#include "host/loop.h"
#include "host/no_exec.h"
#include "host/systemd.h"

#define OUTPUT_MAX ((size_t)16 * 1024 * 1024) /* of 10,000 resources with all their differences */

struct agent_flags {
    struct str once;
    struct str root;
    struct str state_dir;
    struct str output;
    struct str allow;
    bool noop;
    bool reference;
    bool version;
};

static const struct option agent_options[] = {
    { "once", OPTION_FILE, OPTION(struct agent_flags, once), "FILE", NULL, NULL,
      "a list of resources, as YAML or JSON: make the machine so, and end" },
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
      "how the result is printed", .also = "output" },
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

static int converge(const struct agent_flags *flags, const struct graph *graph, struct root *root,
                    struct launcher *launcher, struct err *err)
{
    struct loop *loop = host_loop_new();
    struct programs programs = { .launcher = launcher, .loop = loop };
    struct arena tmp = { 0 };
    struct systemd *systemd = systemd_new(loop, socket_path(flags->root, &tmp));
    struct converge c;
    arena_done(&tmp);
    struct converge_spec spec = {
        .loop = loop,
        .root = root,
        .graph = graph,
        .rules = { .noop = flags->noop,
                   .allowed = str_eq(flags->allow, STR("none"))     ? DISRUPTION_NONE
                              : str_eq(flags->allow, STR("window")) ? DISRUPTION_WINDOW
                                                                    : DISRUPTION_VISIT },
        .state_dir = flags->state_dir,
        .runner = { .run = program_run, .ctx = &programs },
        .units = systemd_units(systemd),
        .on_idle = on_idle,
        .ctx = loop,
    };
    int r = converge_start(&c, &spec, err);
    if (r == 0) {
        CLEANUP(buf_done)
        struct buf out = { .max = OUTPUT_MAX };
        host_loop_run(loop);
        if (str_eq(flags->output, STR("json"))) {
            converge_print_json(&c, &out);
        } else {
            converge_print_text(&c, &out);
        }
        print(stdout, &out);
        r = converge_is_good(&c) ? COMMAND_OK : COMMAND_FAILED;
        converge_done(&c);
    }
    systemd_free(systemd);
    host_loop_free(loop);
    return r;
}

static int once(const struct agent_flags *flags)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct resource_list list;
    struct graph graph;
    struct root root;
    struct launcher *launcher;
    struct err err = { 0 };
    if (launcher_new(flags->root, &launcher, &err) < 0) {
        return fail(flags->once, &err);
    }
    /* Before the first byte of others is read. */
    if (no_exec_enter(&err) < 0 || read_graph(flags->once, &memory, &list, &graph, &err) < 0 ||
        root_open(&root, flags->root, &err) < 0) {
        launcher_free(launcher);
        return fail(flags->once, &err);
    }
    root.read_only = flags->noop;
    int r = field_check_path(flags->state_dir, &err);
    r = r < 0 ? err_wrap(&err, "flag '--state-dir'")
              : converge(flags, &graph, &root, launcher, &err);
    root_done(&root);
    launcher_free(launcher);
    return r < 0 ? fail(flags->once, &err) : r;
}

static void help(struct buf *out)
{
    buf_add(out, STR("usage: drydock-agent --once FILE [flags]\n\n"));
    options_wrap(STR("Makes this machine what a list of resources says: files, folders, links and "
                     "the like. What is right already is left alone, so a second run changes "
                     "nothing. What was there before is kept, and comes back when the resource is "
                     "taken off the list and asks for that.\n\n"
                     "The exit code is 0 when everything is right, would be changed (--noop) or is "
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
    } else if (args->count > 0 || flags->once.n == 0) {
        (void)fprintf(stderr,
                      "drydock-agent: want --once FILE; 'drydock-agent --help' says more\n");
        return COMMAND_USAGE;
    } else {
        return once(flags);
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
