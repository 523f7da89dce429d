#include "cmd/daemon.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

TEST(daemon_log_level_is_what_zap_would_take)
{
    static const struct {
        const char *level;
        bool devel;
        int want; /* -1: it is refused */
    } cases[] = {
        { "", true, LOG_DEBUG },    { "", false, LOG_INFO },      { "debug", false, LOG_DEBUG },
        { "info", true, LOG_INFO }, { "error", true, LOG_ERROR }, { "panic", true, LOG_ERROR },
        { "1", false, LOG_DEBUG },  { "12", false, LOG_DEBUG },   { "0", true, -1 },
        { "-1", true, -1 },         { "Info", true, -1 },         { "warn", true, -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct daemon_flags flags = {
            .zap_devel = cases[i].devel,
            .zap_log_level = str_from(cases[i].level),
        };
        enum log_level level = LOG_ERROR;
        struct err err = { 0 };
        int r = daemon_log_level(&flags, &level, &err);
        CHECK_EQ(r < 0, cases[i].want < 0);
        if (r < 0) {
            CHECK(str_contains(str_from(err.msg), STR("want debug, info, error, panic")));
        } else {
            CHECK_EQ((int)level, cases[i].want);
        }
    }
}

TEST(daemon_lease_namespace_of_the_flag_wins)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct daemon_flags flags = { .lease_namespace = STR("harbour") };
    struct daemon p = { .flags = &flags, .memory = &memory };
    struct err err = { 0 };
    struct str namespace = STR_NONE;
    CHECK_EQ(daemon_find_namespace(&p, &namespace, &err), 0);
    CHECK_STR(namespace, "harbour");
}

TEST(daemon_serves_no_metrics_when_their_address_is_off)
{
    static const struct {
        const char *address;
        bool serves;
    } cases[] = { { "", false }, { "0", false }, { ":8080", true }, { "127.0.0.1:0", true } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct daemon_flags flags = { .metrics_addr = str_from(cases[i].address) };
        const struct daemon p = { .flags = &flags };
        CHECK_EQ(daemon_serves_web(&p), cases[i].serves);
    }
}

/* In a child: a process cannot take it back, and the leak check reads its own memory. */
TEST(daemon_hides_its_memory_from_debuggers_and_core_files)
{
    CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit core = { .rlim_cur = 1, .rlim_max = 1 };
        daemon_hide_memory();
        bool good = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 && getrlimit(RLIMIT_CORE, &core) == 0 &&
                    core.rlim_cur == 0 && core.rlim_max == 0;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
