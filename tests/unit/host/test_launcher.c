#include "host/launcher.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/arena.h"
#include "host/loop.h"
#include "tests/check.h"

struct bench {
    struct arena memory;
    struct launcher *launcher;
    struct loop *loop;
    bool ended;
    int exit_code;
    bool timed_out;
    struct str out;
};

static void bench_init(struct bench *b)
{
    struct err err = { 0 };
    *b = (struct bench){ 0 };
    CHECK_EQ(launcher_new(STR("/"), &b->launcher, &err), 0);
    b->loop = host_loop_new();
}

static void bench_done(struct bench *b)
{
    launcher_free(b->launcher);
    host_loop_free(b->loop);
    arena_done(&b->memory);
}

static void on_end(void *ctx, const struct launcher_result *result)
{
    struct bench *b = ctx;
    b->ended = true;
    b->exit_code = result->exit_code;
    b->timed_out = result->timed_out;
    b->out = arena_str(&b->memory, result->out);
}

static struct launcher_command shell(const struct str argv[3])
{
    return (struct launcher_command){
        .argv = argv, .argv_n = 3, .uid = geteuid(), .gid = getegid(), .time_max = MINUTES(5)
    };
}

static void run(struct bench *b, const struct launcher_command *command)
{
    struct err err = { 0 };
    b->ended = false;
    CHECK_EQ(launcher_run(b->launcher, b->loop, command, on_end, b, &err), 0);
    while (!b->ended) {
        host_loop_turn(b->loop, SECONDS(10));
    }
}

static void run_script(struct bench *b, const char *script)
{
    const struct str argv[] = { STR("/bin/sh"), STR("-c"), str_from(script) };
    struct launcher_command command = shell(argv);
    run(b, &command);
}

TEST(launcher_tells_exit_code_and_output)
{
    struct bench b;
    bench_init(&b);
    run_script(&b, "echo out; echo err >&2; exit 3");
    CHECK_EQ(b.exit_code, 3);
    CHECK_STR(b.out, "out\nerr\n");
    run_script(&b, "kill -TERM $$");
    CHECK_EQ(b.exit_code, 128 + SIGTERM);
    CHECK(!b.timed_out);
    bench_done(&b);
}

TEST(launcher_gives_input_environment_and_folder_and_nothing_else)
{
    struct bench b;
    bench_init(&b);
    const struct str argv[] = { STR("/bin/sh"), STR("-c"),
                                STR("cat; pwd; echo $A-$HOME-; ls /proc/self/fd") };
    const struct str env[] = { STR("A=x y"), STR("PATH=/usr/bin:/bin") };
    struct launcher_command command = shell(argv);
    command.env = env;
    command.env_n = 2;
    command.cwd = STR("/usr");
    command.input = STR("input\n");
    run(&b, &command);
    /* 3 is ls's own, for the folder that it lists. */
    CHECK_STR(b.out, "input\n/usr\nx y--\n0\n1\n2\n3\n");
    bench_done(&b);
}

TEST(launcher_says_when_a_program_is_not_there)
{
    struct bench b;
    bench_init(&b);
    const struct str argv[] = { STR("/none"), STR("-c"), STR("x") };
    struct launcher_command command = shell(argv);
    run(&b, &command);
    CHECK_EQ(b.exit_code, 127);
    CHECK_STR(b.out, "cannot run '/none': No such file or directory\n");
    bench_done(&b);
}

TEST(launcher_ends_the_whole_group_at_the_deadline)
{
    struct bench b;
    bench_init(&b);
    const struct str argv[] = { STR("/bin/sh"), STR("-c"),
                                STR("tail -f /dev/null & echo $!; wait") };
    struct launcher_command command = shell(argv);
    command.time_max = MSECONDS(300);
    run(&b, &command);
    CHECK(b.timed_out);
    CHECK_EQ(b.exit_code, 128 + SIGKILL);
    uint32_t pid;
    CHECK(str_to_u32(str_trim(b.out), &pid));
    /* Its child was in the group: it is gone, or is being buried. */
    for (usec_t until = loop_now(b.loop) + SECONDS(30);;) {
        struct str path = arena_printf(&b.memory, "/proc/%u/exe", pid);
        if (access(path.p, F_OK) < 0) {
            break;
        }
        CHECK(loop_now(b.loop) < until);
        host_loop_turn(b.loop, MSECONDS(20));
    }
    bench_done(&b);
}

TEST(launcher_keeps_the_beginning_of_much_output_and_lets_the_program_end)
{
    struct bench b;
    bench_init(&b);
    run_script(&b, "head -c 1000000 /dev/zero | tr '\\0' x; exit 5");
    CHECK_EQ(b.exit_code, 5);
    CHECK_EQ(b.out.n, LAUNCHER_OUTPUT_MAX);
    bench_done(&b);
}

TEST(launcher_runs_many_at_once)
{
    struct bench a;
    struct bench b;
    struct err err = { 0 };
    bench_init(&a);
    bench_init(&b);
    const struct str first[] = { STR("/bin/sh"), STR("-c"), STR("read x; echo 1$x") };
    const struct str second[] = { STR("/bin/sh"), STR("-c"), STR("echo 2") };
    struct launcher_command one = shell(first);
    struct launcher_command two = shell(second);
    one.input = STR("y\n");
    CHECK_EQ(launcher_run(a.launcher, a.loop, &one, on_end, &a, &err), 0);
    CHECK_EQ(launcher_run(a.launcher, a.loop, &two, on_end, &b, &err), 0);
    while (!a.ended || !b.ended) {
        host_loop_turn(a.loop, SECONDS(10));
    }
    CHECK_STR(a.out, "1y\n");
    CHECK_STR(b.out, "2\n");
    bench_done(&b);
    bench_done(&a);
}

TEST(launcher_refuses_what_cannot_be_an_argument)
{
    struct bench b;
    struct err err = { 0 };
    bench_init(&b);
    const struct str argv[] = { STR("/bin/sh"), STR("-c"), STR("a\0b") };
    struct launcher_command command = shell(argv);
    CHECK_EQ(launcher_run(b.launcher, b.loop, &command, on_end, &b, &err), -ERR_INVALID);
    bench_done(&b);
}

TEST(launcher_changes_the_user_when_it_may)
{
    struct bench b;
    bench_init(&b);
    if (geteuid() == 0) {
        const struct str argv[] = { STR("/usr/bin/id"), STR("-u"), STR("-r") };
        struct launcher_command command = shell(argv);
        command.uid = 1234;
        command.gid = 1234;
        run(&b, &command);
        CHECK_STR(b.out, "1234\n");
    }
    bench_done(&b);
}
