/* drydock run-on-host: what the Jobs of NodeMaintenances run: a script on the machine itself, or
 * its reboot. */
#include "cmd/commands.h"
#include "format/json_writer.h"
#include "host/host_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SCRIPT_VARIABLE "DD_SCRIPT"
#define EXIT_NOTHING_TO_DO 77 /* as test drivers have it: the script had no work */

struct run_on_host_flags {
    int32_t target_pid;
    bool reboot;
    struct str expect_boot_id;
    struct str message_file;
};

static const struct option run_on_host_options[] = {
    { "target-pid", OPTION_I32, OPTION(struct run_on_host_flags, target_pid), "PID", "1", NULL,
      "join the namespaces of this process" },
    { "reboot", OPTION_BOOL, OPTION(struct run_on_host_flags, reboot), NULL, NULL, NULL,
      "reboot the machine instead of running something" },
    { "expect-boot-id", OPTION_TEXT, OPTION(struct run_on_host_flags, expect_boot_id), "ID", NULL,
      NULL, "with --reboot: only if the machine still has this boot ID" },
    { "message-file", OPTION_FILE, OPTION(struct run_on_host_flags, message_file), "FILE",
      "/dev/termination-log", NULL,
      "where the result is left for the controller, as JSON; not written if it does not exist" },
};

/* The controller reads this from the pod's status. */
static void message_write(int fd, const struct host_run_result *result)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    jw_pair_i64(&w, "exitCode", result->exit_code);
    jw_pair_bool(&w, "rebootRequired", result->reboot_required);
    jw_pair_bool(&w, "stopped", result->stopped);
    if (result->exit_code != 0 && result->exit_code != EXIT_NOTHING_TO_DO) {
        jw_pair(&w, "output", (struct str){ result->tail, result->tail_n });
    }
    jw_obj_end(&w);
    /* A file of the kubelet's: what cannot be written is missing from a status, no more. */
    ssize_t n = write(fd, buf_str(&out).p, buf_str(&out).n);
    (void)n;
}

static int run_on_host_script(const struct command_call *call, int message)
{
    const struct run_on_host_flags *flags = call->config;
    struct err err = { 0 };
    struct str script = str_from(getenv(SCRIPT_VARIABLE));
    if ((script.n > 0) == (call->arg_count > 0)) {
        (void)err_set(&err, ERR_INVALID,
                      "want a script in the environment variable " SCRIPT_VARIABLE
                      ", or a program behind '--', and not both");
        (void)command_fail(call, &err);
        return COMMAND_USAGE;
    }
    struct host_run_spec spec = { .pid = flags->target_pid, .script = script };
    if (call->arg_count > 0) {
        char **argv = ARENA_ARRAY(call->memory, char *, call->arg_count + 1);
        for (uint32_t i = 0; i < call->arg_count; i++) {
            argv[i] = (char *)(uintptr_t)arena_str(call->memory, call->args[i]).p;
        }
        argv[call->arg_count] = NULL;
        spec.argv = argv;
    }
    struct host_run_result result;
    if (host_run(&spec, &result, &err) < 0) {
        return command_fail(call, &err);
    }
    if (message >= 0) {
        message_write(message, &result);
    }
    return result.exit_code == EXIT_NOTHING_TO_DO ? COMMAND_OK : result.exit_code;
}

static int run_on_host_run(const struct command_call *call)
{
    const struct run_on_host_flags *flags = call->config;
    struct err err = { 0 };
    if (flags->reboot) {
        if (flags->expect_boot_id.n == 0) {
            (void)err_set(&err, ERR_INVALID,
                          "--reboot wants --expect-boot-id, so that an order "
                          "that comes twice is carried out once");
            (void)command_fail(call, &err);
            return COMMAND_USAGE;
        }
        int r = host_reboot(flags->target_pid, flags->expect_boot_id, &err);
        return r == -ERR_GONE ? COMMAND_OK : r < 0 ? command_fail(call, &err) : COMMAND_OK;
    }
    /* Opened here: behind the machine's namespaces it is another file, or none. */
    int message = open(flags->message_file.p, O_WRONLY | O_TRUNC | O_CLOEXEC);
    int code = run_on_host_script(call, message);
    if (message >= 0) {
        (void)close(message); /* see message_write */
    }
    return code;
}

const struct command command_run_on_host = {
    .name = "run-on-host",
    .args = "[-- PROGRAM [ARGUMENT…]]",
    .summary = "run a script on the machine, from inside a privileged pod",
    .text = "Joins the namespaces of the machine's first process and runs there the script of the "
            "environment variable " SCRIPT_VARIABLE ", or the program behind '--', with the "
            "machine's own tools: the image needs no shell. The pod needs hostPID, "
            "privileged and user 0. A script whose first line names no interpreter is run by "
            "/bin/sh.\n\n"
            "The exit code is that of the script; 77, 'nothing to do', becomes 0 and is told in "
            "the message file. 125 and above are those of a shell.",
    .options = { .options = run_on_host_options, .count = ARRAY_LEN(run_on_host_options) },
    .config_size = sizeof(struct run_on_host_flags),
    .args_min = 0,
    .args_max = 64,
    .run = run_on_host_run,
};
