#include "host/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/check.h"
#include "tests/lib/byte_server.h"

struct story {
    struct loop *loop;
    struct arena memory;
    struct child *child;
    struct err err;
    bool ended;
    int exit_code;
    int signo;
    struct str out;
    struct str complaint;
    struct err ended_by;
};

static void on_end(void *ctx, const struct child_result *result)
{
    struct story *s = ctx;
    s->ended = true;
    s->exit_code = result->exit_code;
    s->signo = result->signo;
    s->out = arena_str(&s->memory, result->out);
    s->complaint = arena_str(&s->memory, result->complaint);
    if (result->err != NULL) {
        s->ended_by = *result->err;
    }
}

static const struct str env[] = {
    STR_INIT("PATH=/nowhere"),
    STR_INIT("A=1"),
    STR_INIT("PATH=/usr/bin:/bin"),
    STR_INIT("B=two words"),
};

static int start(struct story *s, const char *script, usec_t time_max, size_t output_max)
{
    const struct str args[] = { STR("-c"), str_from(script), STR("name"), STR("$first arg") };
    struct child_spec spec = {
        .command = STR("sh"),
        .args = args,
        .args_n = ARRAY_LEN(args),
        .env = env,
        .env_n = ARRAY_LEN(env),
        .time_max = time_max,
        .output_max = output_max,
    };
    *s = (struct story){ .loop = host_loop_new() };
    return child_start(s->loop, &spec, on_end, s, &s->child, &s->err);
}

static void run(struct story *s, const char *script, usec_t time_max, size_t output_max)
{
    CHECK_EQ(start(s, script, time_max, output_max), 0);
    CHECK(!s->ended);
    RUN_UNTIL(s->loop, s->ended);
}

static void story_end(struct story *s)
{
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a dead one */
    arena_done(&s->memory);
    host_loop_free(s->loop);
}

TEST(child_hands_over_arguments_and_environment_and_brings_back_both_outputs)
{
    struct story s;
    run(&s, "echo \"$1|$A|$B|$HOME\"; echo oops >&2; cat; exit 3", SECONDS(60), 1000);
    CHECK_STR(s.out, "$first arg|1|two words|\n");
    CHECK_STR(s.complaint, "oops\n");
    CHECK_EQ(s.exit_code, 3);
    CHECK_EQ(s.signo, 0);
    CHECK_EQ(s.ended_by.code, 0);
    story_end(&s);
}

TEST(child_tells_a_signal_from_an_exit)
{
    struct story s;
    run(&s, "kill -TERM $$", SECONDS(60), 1000);
    CHECK_EQ(s.exit_code, -1);
    CHECK_EQ(s.signo, SIGTERM);
    story_end(&s);
}

TEST(child_is_killed_at_its_deadline_with_what_it_started)
{
    struct story s;
    /* Long enough for a shell to come to its echo, also where others want the processor. */
    run(&s, "sleep 1000 & echo $!; wait", SECONDS(3), 1000);
    CHECK_EQ(s.ended_by.code, ERR_TIMEOUT);
    CHECK_EQ(s.signo, SIGKILL);
    uint32_t pid;
    CHECK(str_to_u32(str_trim(s.out), &pid));
    /* Dead or already collected by init; a zombie answers to kill, so ask what it runs. */
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    char text[64] = "";
    RUN_UNTIL(s.loop, ({
                  FILE *f = fopen(path, "r");
                  size_t n = f == NULL ? 0 : fread(text, 1, sizeof(text), f);
                  if (f != NULL) {
                      (void)fclose(f);
                  }
                  n == 0;
              }));
    story_end(&s);
}

TEST(child_that_talks_too_much_is_ended)
{
    struct story s;
    run(&s, "while :; do echo 0123456789; done", SECONDS(60), 10000);
    CHECK_EQ(s.ended_by.code, ERR_LIMIT);
    CHECK_STR(s.ended_by.msg, "it wrote more than 10000 bytes");
    story_end(&s);
}

TEST(child_inherits_neither_descriptors_nor_ignored_signals)
{
    int fd = fcntl(0, F_DUPFD, 77); /* without O_CLOEXEC, above what a shell opens itself */
    CHECK(fd >= 77);
    struct story s;
    run(&s,
        "echo /proc/$$/fd/*; "
        "echo pipe $((0x$(sed -n 's/^SigIgn:\t//p' /proc/$$/status) & 0x1000))",
        SECONDS(60), 10000);
    CHECK(!str_contains(s.out, arena_printf(&s.memory, "/fd/%d", fd)));
    CHECK(str_contains(s.out, STR("pipe 0\n")));
    (void)close(fd);
    story_end(&s);
}

TEST(child_start_names_what_cannot_be_run)
{
    struct story s = { .loop = host_loop_new() };
    struct child_spec spec = {
        .command = STR("no-such-program"), .env = env, .env_n = ARRAY_LEN(env), .time_max = 1
    };
    CHECK_EQ(child_start(s.loop, &spec, on_end, &s, &s.child, &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "executable 'no-such-program' not found in PATH");
    spec.command = STR("/no/such/program");
    CHECK(child_start(s.loop, &spec, on_end, &s, &s.child, &s.err) < 0);
    CHECK_STR(s.err.msg, "cannot run '/no/such/program': No such file or directory");
    spec.command = STR("/dev/null");
    CHECK(child_start(s.loop, &spec, on_end, &s, &s.child, &s.err) < 0);
    CHECK_STR(s.err.msg, "cannot run '/dev/null': Permission denied");
    story_end(&s);
}

TEST(child_stop_ends_it_without_a_callback)
{
    struct story s;
    CHECK_EQ(start(&s, "sleep 1000", SECONDS(60), 1000), 0);
    child_stop(s.child);
    child_stop(NULL);
    CHECK(!s.ended);
    story_end(&s);
}
