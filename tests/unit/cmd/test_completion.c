#include "cmd/completion.h"

#include "host/child.h"
#include "host/loop.h"
#include "tests/check.h"

struct greet_config {
    struct str name;
    struct str mood;
    bool loud;
    struct str form;
};

static const struct option greet_flags[] = {
    { .name = "name",
      .kind = OPTION_FILE,
      OPTION(struct greet_config, name),
      .value = "FILE",
      .help = "whom" },
    { .name = "mood",
      .kind = OPTION_CHOICE,
      OPTION(struct greet_config, mood),
      .choices = "good|bad",
      .help = "how [it's \\ free]: any" },
    { .name = "loud", .kind = OPTION_BOOL, OPTION(struct greet_config, loud), .help = "shout" },
    { .name = "o",
      .kind = OPTION_CHOICE,
      OPTION(struct greet_config, form),
      .choices = "text|json",
      .help = "form",
      .also = "output" },
};

static const struct command greet = {
    .name = "greet",
    .args = "FILE…",
    .summary = "say: it's me",
    .options = { .options = greet_flags, .count = ARRAY_LEN(greet_flags) },
};

/* A node first, then one of its requests. */
static unsigned rest_names(const struct command_call *call)
{
    return call->arg_count == 0 ? COMMAND_NAMES_NODES : COMMAND_NAMES_REQUESTS;
}

static const struct command rest = {
    .name = "rest",
    .args = "NODE",
    .summary = "rests",
    .options = { .options = greet_flags, .count = ARRAY_LEN(greet_flags) },
    .config_size = sizeof(struct greet_config),
    .args_max = 2,
    .names = rest_names,
};
static const struct command *const items[] = { &greet, &rest, NULL };
static const struct command_list list = { .items = items };

struct shell_output {
    struct loop *loop;
    struct arena memory;
    struct str text;
    int exit_code;
    bool ended;
};

static void on_end(void *ctx, const struct child_result *result)
{
    struct shell_output *a = ctx;
    a->text = arena_str(&a->memory, str_trim(result->out));
    a->exit_code = result->exit_code;
    a->ended = true;
    CHECK_STR(result->complaint, "");
}

/* What bash would offer behind these words, the last of which is being written. */
static void check_bash(const char *words, const char *offers)
{
    CLEANUP(buf_done)
    struct buf script = { 0 };
    struct err err = { 0 };
    struct child *child = NULL;
    struct shell_output answer = { .loop = host_loop_new() };
    completion_print(&list, STR("bash"), &script);
    buf_add(&script, STR("drydock() { printf '%s\\n' \"asked:$*\"; echo 'worker-1\tis ready'; "
                         "echo :4; }\n"));
    buf_printf(&script,
               "COMP_WORDS=(drydock %s)\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_drydock\n"
               "echo \"${COMPREPLY[@]}\"\n",
               words);
    const struct str args[] = { STR_INIT("--norc"), STR_INIT("-uc"), buf_str(&script) };
    const struct str env[] = { STR_INIT("PATH=/usr/bin:/bin") };
    const struct child_spec spec = {
        .command = STR("bash"),
        .args = args,
        .args_n = ARRAY_LEN(args),
        .env = env,
        .env_n = ARRAY_LEN(env),
        .time_max = SECONDS(20),
        .output_max = 65536,
    };
    CHECK_EQ(child_start(answer.loop, &spec, on_end, &answer, &child, &err), 0);
    while (!answer.ended) {
        host_loop_turn(answer.loop, SECONDS(1));
    }
    CHECK_STR(answer.text, offers);
    CHECK_EQ(answer.exit_code, 0);
    host_loop_free(answer.loop);
    arena_done(&answer.memory);
}

TEST(completion_of_bash_offers_what_the_tables_have)
{
    check_bash("''", "greet rest completion version help");
    check_bash("gr", "greet");
    check_bash("greet --", "--name --mood --loud --output --help");
    check_bash("greet -o", "-o");
    check_bash("greet --output ''", "text json");
    check_bash("greet -o j", "json");
    check_bash("greet --mood ''", "good bad");
    check_bash("greet -mood b", "bad");
    check_bash("greet --mood = g", "good"); /* readline splits --mood=g so */
    check_bash("greet --mood =", "good bad");
    check_bash("greet --name /et", "/etc");
    check_bash("greet --loud /et", "/etc"); /* an argument, and arguments are files */
    check_bash("rest --he", "--help");
    check_bash("help ''", "greet rest");
    check_bash("completion ''", "bash zsh fish");
    check_bash("dance ''", "");
}

TEST(completion_of_bash_asks_drydock_for_names)
{
    check_bash("rest wo", "asked:__complete rest wo worker-1");
    check_bash("rest --loud ''", "asked:__complete rest --loud worker-1");
}

TEST(completion_of_zsh_describes_commands_and_flags)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    completion_print(&list, STR("zsh"), &out);
    struct str script = buf_str(&out);
    CHECK(str_starts(script, STR("#compdef drydock kubectl-drydock\n")));
    CHECK(str_contains(script, STR("    'greet:say: it'\\''s me'\n")));
    CHECK(
        str_contains(script, STR("    greet)\n      _arguments \\\n"
                                 "        '--name=[whom]:FILE:_files' \\\n"
                                 "        '--mood=[how \\[it'\\''s \\\\ free\\]\\: any]:mood:(good "
                                 "bad)' \\\n"
                                 "        '--loud[shout]' \\\n"
                                 "        '-o=[form]:o:(text json)' \\\n"
                                 "        '--output=[form]:o:(text json)' \\\n"
                                 "        '--help[print its help]' '*:file:_files' ;;\n")));
    CHECK(str_contains(script, STR("    rest)\n      _arguments \\\n")));
    CHECK(str_contains(script, STR("        '--help[print its help]' '*: :_drydock_names' ;;\n")));
    CHECK(str_contains(script, STR("'1:shell:(bash zsh fish)'")));
}

TEST(completion_of_fish_describes_commands_and_flags)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    completion_print(&list, STR("fish"), &out);
    struct str script = buf_str(&out);
    CHECK(str_contains(script, STR("complete -c drydock -n __fish_use_subcommand -a greet -d 'say: "
                                   "it\\'s me'\n")));
    CHECK(str_contains(script, STR("complete -c drydock -n '__fish_seen_subcommand_from greet' -l "
                                   "name -r -F -d 'whom'\n")));
    CHECK(str_contains(script, STR("-l mood -x -a 'good bad' -d 'how [it\\'s \\\\ free]: any'\n")));
    CHECK(str_contains(script, STR("-l loud -d 'shout'\n")));
    CHECK(str_contains(script, STR("-s o -l output -x -a 'text json' -d 'form'\n")));
    CHECK(str_contains(script,
                       STR("complete -c drydock -n '__fish_seen_subcommand_from greet' -F\n")));
    CHECK(!str_contains(script, STR("from rest' -F")));
    CHECK(str_contains(script, STR("from rest' -a '(drydock __complete (commandline -opc)[2..] ")));
}

TEST(completion_knows_its_shells)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CHECK(!completion_knows(STR("tcsh")));
    CHECK(!completion_knows(STR("")));
    completion_print(&list, STR("tcsh"), &out);
    CHECK_EQ(out.n, 0);
    struct str shells = STR(COMPLETION_SHELLS);
    struct str shell;
    while (str_split_next(&shells, '|', &shell)) {
        CHECK(completion_knows(shell));
        size_t before = out.n;
        completion_print(&list, shell, &out);
        CHECK(out.n > before);
    }
}

/* The cluster of these tests: it says what it was asked for. */
static void tell_source(const struct command_call *call, unsigned names, struct str prefix,
                        struct buf *out)
{
    const struct greet_config *config = call->config;
    buf_printf(out, "%s for '" STR_FMT "' of '" STR_FMT "'\n",
               names == COMMAND_NAMES_NODES ? "nodes" : "requests", STR_ARG(prefix),
               STR_ARG(config->name));
}

static void check_words(const char *a, const char *b, const char *c, const char *want)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    char *const words[] = { (char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c,
                            NULL };
    completion_words(&list, words, tell_source, &out);
    CHECK_STR(buf_str(&out), want);
}

TEST(completion_words_answers_as_cobra_does)
{
    check_words("gr", NULL, NULL, "greet\tsay: it's me\n:4\n");
    check_words("help", "re", NULL, "rest\trests\n:4\n");
    check_words("completion", "b", NULL, "bash\n:4\n");
    check_words("greet", "--mo", NULL, "--mood\thow [it's \\ free]: any\n:4\n");
    check_words("greet", "--mood", "", "good\nbad\n:4\n");
    check_words("greet", "--output", "j", "json\n:4\n");
    check_words("greet", "--name", "", ":0\n"); /* a file */
    check_words("greet", "", NULL, ":0\n");
    check_words("dance", "", NULL, ":4\n");
}

TEST(completion_words_asks_the_cluster_with_the_flags_that_are_there)
{
    check_words("rest", "wo", NULL, "nodes for 'wo' of ''\n:4\n");
    check_words("rest", "--name=x", "", "nodes for '' of 'x'\n:4\n");
    check_words("rest", "worker-1", "mr", "requests for 'mr' of ''\n:4\n");
    check_words("rest", "--nonsense", "", ":4\n");
}
