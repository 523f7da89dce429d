#include "integration/esx_config.h"

#include "integration/integration.h"
#include "tests/check.h"

static int load(const char *text, struct arena *out, struct esx_config **ret,
                struct problems *problems)
{
    void *config = NULL;
    problems->out = out;
    int r = integration_load(integration_find_provider(STR("esx")), str_from(text),
                             (struct ucfg_env){ 0 }, out, &config, problems);
    *ret = config;
    return r;
}

#define INTERVALS                                                                                  \
    "intervals:\n  check: {period: 5s, jitter: 0.1}\n"                                             \
    "  podEviction: {period: 20s, timeout: 5m}\n  vmShutdown: {period: 10s, timeout: 3m}\n"

TEST(esx_config_reads_the_file_of_the_original)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { 0 };
    struct esx_config *config;
    CHECK_EQ(load(INTERVALS "alarms: [one, two words]\nvCenters:\n"
                            "  templateUrl: https://$AZ.vc-$AZ.example\n  insecure: true\n"
                            "  credentials:\n    a: {username: u, password: p}\n"
                            "    b: {username: v}\n",
                  &a, &config, &problems),
             0);
    CHECK_EQ(problems.n, 0);
    CHECK_EQ(config->period, SECONDS(5));
    CHECK(config->jitter > 0.09 && config->jitter < 0.11);
    CHECK_EQ(config->eviction_timeout, MINUTES(5));
    CHECK_EQ(config->deletion_timeout, MINUTES(10)); /* not given */
    CHECK_EQ(config->shutdown_period, SECONDS(10));
    CHECK_EQ(config->shutdown_timeout, MINUTES(3));
    CHECK(config->insecure && !config->force && !config->whole_host);
    CHECK_EQ(config->alarms.n, 2);
    CHECK_STR(config->alarms.items[1], "two words");
    CHECK_EQ(config->login_n, 2);
    CHECK_STR(config->logins[0].zone, "a");
    CHECK_STR(config->logins[0].url, "https://a.vc-a.example/sdk");
    CHECK_STR(config->logins[0].password, "p");
    CHECK_STR(config->logins[1].url, "https://b.vc-b.example/sdk");
    CHECK_STR(config->logins[1].password, "");
}

TEST(esx_config_takes_a_zone_that_is_a_digit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { 0 };
    struct esx_config *config;
    CHECK_EQ(load(INTERVALS "wholeHost: true\nvCenters:\n  templateUrl: https://vc$AZ\n"
                            "  credentials: {'1': {username: u, password: p}}\n",
                  &a, &config, &problems),
             0);
    CHECK_EQ(config->login_n, 1);
    CHECK_STR(config->logins[0].url, "https://vc1/sdk");
    CHECK_STR(config->logins[0].user, "u");
    CHECK(config->whole_host);
}

TEST(esx_config_names_what_is_wrong)
{
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        { "intervals: {check: {period: 5s}}\n", "'intervals.check.jitter'" },
        { "intervals: {check: {period: 5s, jitter: 0.0001}}\n", "'intervals.check.jitter'" },
        { INTERVALS, "'vCenters.templateUrl'" },
        { INTERVALS "vCenters: {templateUrl: 'https://x'}\n", "'vCenters.credentials'" },
        { INTERVALS "vCenters: {templateUrl: 'https://x', credentials: {}}\n",
          "'vCenters.credentials'" },
        { INTERVALS "vCenters: {templateUrl: x, credentials: {a: {username: u}}}\n",
          "want a URL of https" },
        { INTERVALS "vCenters: {templateUrl: 'https://x', credentials: {a: {password: p}}}\n",
          "'vCenters.credentials.a.username'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct problems problems = { 0 };
        struct esx_config *config;
        bool found = false;
        check_case((int64_t)i);
        CHECK_EQ(load(cases[i].text, &a, &config, &problems), -ERR_INVALID);
        for (uint32_t k = 0; k < problems.n; k++) {
            found = found || str_contains(problems.items[k].text, str_from(cases[i].part));
        }
        CHECK(found);
    }
    check_case(-1);
}
