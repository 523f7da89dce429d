#include "cmd/command.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct greet_config {
    struct str name;
    struct str mood;
};

static const struct option greet_flags[] = {
    { .name = "name",
      .kind = OPTION_FILE,
      OPTION(struct greet_config, name),
      .value = "FILE",
      .initial = "world",
      .help = "whom" },
    { .name = "mood",
      .kind = OPTION_CHOICE,
      OPTION(struct greet_config, mood),
      .initial = "good",
      .choices = "good|bad",
      .help = "how" },
};

/* The exit code tells what arrived: no globals are needed to look inside. */
static int greet_run(const struct command_call *call)
{
    const struct greet_config *config = call->config;
    return (int)config->name.n * 10 + (int)call->arg_count;
}

static const struct command greet = {
    .name = "greet",
    .args = "WORD…",
    .summary = "greets",
    .text = "Greets whoever is there.",
    .options = { .options = greet_flags, .count = ARRAY_LEN(greet_flags) },
    .config_size = sizeof(struct greet_config),
    .args_min = 1,
    .args_max = 2,
    .run = greet_run,
};
static const struct command *const items[] = { &greet, NULL };
static const struct command_list list = { .items = items };

static int check_words(const struct command_call *call, struct err *err)
{
    return call->before_dashes == 1 ? 0 : err_set(err, ERR_INVALID, "want one word before '--'");
}

static int count_run(const struct command_call *call)
{
    return 100 + (int)call->arg_count;
}

static const struct command pick = {
    .name = "pick",
    .args = "WORD -- WORD…",
    .summary = "picks",
    .text = "Picks words.",
    .args_min = 2,
    .args_max = UINT32_MAX,
    .check = check_words,
    .run = count_run,
};
static const struct command *const more_items[] = { &greet, &pick, NULL };
static const struct command_list more = { .items = more_items };

static int run(const char *program, const char *a, const char *b, const char *c)
{
    char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)a, (char *)(uintptr_t)b,
                     (char *)(uintptr_t)c, NULL };
    return command_main(&list, argv);
}

TEST(command_main_runs_the_named_command)
{
    CHECK_EQ(run("/usr/bin/drydock", "greet", "a", NULL), 51);
    CHECK_EQ(run("kubectl-drydock", "greet", "--name=abc", "x"), 31);
}

/* Their exit codes tell the two apart. */
static int first_run(const struct command_call *call)
{
    return *(const bool *)call->config ? 21 : 20;
}

static int second_run(const struct command_call *call UNUSED)
{
    return 30;
}

static const struct option first_flags[] = {
    { .name = "enable-leader-election", .kind = OPTION_BOOL, .help = "as the original" },
};

TEST(command_main_knows_the_originals_programs_by_their_name)
{
    static const struct command controller = {
        .name = "controller",
        .options = { .options = first_flags, .count = ARRAY_LEN(first_flags) },
        .config_size = sizeof(bool),
        .run = first_run,
    };
    static const struct command bridge = { .name = "bridge", .run = second_run };
    static const struct command *const both[] = { &controller, &bridge, NULL };
    static const struct {
        const char *program;
        const char *argument;
        int want;
    } cases[] = {
        { "/manager", NULL, 20 },
        { "/manager", "--enable-leader-election", 21 },
        { "manager", "--nonsense", COMMAND_USAGE },
        { "/manager", "bridge", COMMAND_USAGE },
        { "/runtime-extension-maintenance-controller", NULL, 30 },
        { "/runtime-extension-maintenance-controller", "controller", COMMAND_USAGE },
        { "/usr/bin/drydock", "controller", 20 },
        { "/manager/drydock", NULL, COMMAND_USAGE },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *argv[] = { (char *)(uintptr_t)cases[i].program, (char *)(uintptr_t)cases[i].argument,
                         NULL };
        CHECK_EQ(command_main(&(struct command_list){ .items = both }, argv), cases[i].want);
    }
    char *nameless[] = { NULL };
    CHECK_EQ(command_main(&list, nameless), COMMAND_USAGE);
}

TEST(command_version_names_the_commit_where_it_is_known)
{
    static const struct {
        const char *commit;
        const char *want;
    } cases[] = {
        { NULL, "drydock " DRYDOCK_VERSION "\n" },
        { "", "drydock " DRYDOCK_VERSION "\n" },
        { "4ac92e4c", "drydock " DRYDOCK_VERSION " (4ac92e4c)\n" },
        { "4ac92e4c-dirty", "drydock " DRYDOCK_VERSION " (4ac92e4c-dirty)\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done)
        struct buf out = { 0 };
        command_version(&(struct command_list){ .commit = cases[i].commit }, &out);
        CHECK_STR(buf_str(&out), cases[i].want);
    }
}

TEST(command_main_refuses_bad_command_lines_with_2)
{
    CHECK_EQ(run("drydock", NULL, NULL, NULL), COMMAND_USAGE);
    CHECK_EQ(run("drydock", "dance", NULL, NULL), COMMAND_USAGE);
    CHECK_EQ(run("drydock", "greet", NULL, NULL), COMMAND_USAGE);
    CHECK_EQ(run("drydock", "greet", "--nome=x", "x"), COMMAND_USAGE);
    CHECK_EQ(run("drydock", "completion", "tcsh", NULL), COMMAND_USAGE);
    CHECK_EQ(run("drydock", "help", "dance", NULL), COMMAND_USAGE);
    char *argv[] = { (char *)(uintptr_t) "drydock", (char *)(uintptr_t) "greet",
                     (char *)(uintptr_t) "1",       (char *)(uintptr_t) "2",
                     (char *)(uintptr_t) "3",       NULL };
    CHECK_EQ(command_main(&list, argv), COMMAND_USAGE);
}

TEST(command_main_lets_a_command_check_its_arguments)
{
    char *const good[] = { (char *)(uintptr_t) "drydock", (char *)(uintptr_t) "pick",
                           (char *)(uintptr_t) "a",       (char *)(uintptr_t) "--",
                           (char *)(uintptr_t) "b",       NULL };
    char *const bad[] = { (char *)(uintptr_t) "drydock", (char *)(uintptr_t) "pick",
                          (char *)(uintptr_t) "--",      (char *)(uintptr_t) "a",
                          (char *)(uintptr_t) "b",       NULL };
    CHECK_EQ(command_main(&more, good), 102);
    CHECK_EQ(command_main(&more, bad), COMMAND_USAGE);
}

/* The same without what it prints: stdout is the test's own protocol. */
static int run_unheard(const char *program, const char *a, const char *b)
{
    (void)fflush(stdout);
    int out = dup(STDOUT_FILENO);
    int null = open("/dev/null", O_WRONLY);
    CHECK(out >= 0 && null >= 0 && dup2(null, STDOUT_FILENO) >= 0);
    int code = run(program, a, b, NULL);
    (void)fflush(stdout);
    CHECK(dup2(out, STDOUT_FILENO) >= 0);
    CHECK_EQ(close(null) + close(out), 0);
    return code;
}

TEST(command_main_helps_with_completion)
{
    CHECK_EQ(run_unheard("drydock", "completion", "--help"), COMMAND_OK);
    CHECK_EQ(run_unheard("drydock", "help", "completion"), COMMAND_OK);
    CHECK_EQ(run("drydock", "completion", NULL, NULL), COMMAND_USAGE);
    CHECK_EQ(run("drydock", "completion", "bash", "zsh"), COMMAND_USAGE);
    CHECK_EQ(run_unheard("/usr/bin/kubectl_complete-drydock", "gre", NULL), COMMAND_OK);
}

TEST(command_help_has_usage_text_and_flags)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    command_help(&greet, "kubectl drydock", &out);
    CHECK_STR(buf_str(&out), "usage: kubectl drydock greet [flags] WORD…\n\n"
                             "Greets whoever is there.\n\n"
                             "flags:\n"
                             "  --name FILE                 whom (default world)\n"
                             "  --mood good|bad             how (default good)\n");
}
