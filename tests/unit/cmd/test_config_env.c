#include "cmd/config_env.h"

#include "tests/check.h"

#include <stdlib.h>

static int zone(struct arena *a, const char *name, struct str *ret, struct err *err)
{
    const struct config_env s = { .zones = arena_printf(a, "%s/zone", getenv("CHECK_DATA")) };
    struct ucfg_env env = config_env_of(&s);
    return env.zone(env.ctx, str_from(name), a, ret, err);
}

TEST(config_env_read_a_zone_of_the_folder)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct str bytes = STR_NONE;
    CHECK_EQ(zone(&a, "Berlin", &bytes, &err), 0);
    CHECK(str_starts(bytes, STR("TZif")));
    CHECK_EQ(zone(&a, "Atlantis", &bytes, &err), -ERR_NOTFOUND);
}

TEST(config_env_refuse_names_that_lead_elsewhere)
{
    static const char *const names[] = {
        "", "/etc/passwd", "../vectors/time.json", "a/../Berlin", "Ber lin", "Berlin\n", "B%2e",
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct err err = { 0 };
        struct str bytes = STR_NONE;
        check_case((int64_t)i);
        CHECK_EQ(zone(&a, names[i], &bytes, &err), -ERR_INVALID);
        CHECK_STR(err.msg, "no name of a time zone");
    }
    check_case(-1);
}

TEST(config_env_have_the_environment)
{
    struct ucfg_env env = config_env_of(&config_env_host);
    struct str value = STR_NONE;
    CHECK(env.find(env.ctx, STR("CHECK_DATA"), &value));
    CHECK(value.n > 0);
    CHECK(!env.find(env.ctx, STR("SURELY_NOT_SET_BY_ANYBODY"), &value));
}
