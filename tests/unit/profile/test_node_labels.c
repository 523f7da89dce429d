#include "profile/node_labels.h"

#include "tests/check.h"

TEST(profile_labels_stand_between_double_dashes)
{
    static const struct {
        const char *value;
        const char *names[4];
    } cases[] = {
        { "", { "default" } },          { "a", { "a" } },
        { "a--b", { "a", "b" } },       { "a---b", { "a", "-b" } },
        { "a----b", { "a", "", "b" } }, { "--a", { "", "a" } },
        { "a--", { "a", "" } },         { " a --b", { " a ", "b" } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t at = 0;
        size_t n = 0;
        struct str name;
        check_case((int64_t)i);
        while (profile_label_next(str_from(cases[i].value), &at, &name)) {
            CHECK(n < 4 && cases[i].names[n] != NULL);
            CHECK_STR(name, cases[i].names[n]);
            CHECK(profile_label_has(str_from(cases[i].value), name));
            n++;
        }
        CHECK(n == 4 || cases[i].names[n] == NULL);
        CHECK(!profile_label_has(str_from(cases[i].value), STR("other")));
    }
}

TEST(profile_states_have_names_and_an_order)
{
    for (int i = 0; i < PROFILE_STATE_COUNT; i++) {
        enum profile_state parsed = PROFILE_STATE_COUNT;
        CHECK(profile_state_parse(profile_state_name((enum profile_state)i), &parsed));
        CHECK_EQ(parsed, i);
    }
    enum profile_state parsed;
    CHECK(!profile_state_parse(STR("Operational"), &parsed));
    CHECK_EQ(profile_state_worse(PROFILE_STATE_REQUIRED, PROFILE_STATE_OPERATIONAL),
             PROFILE_STATE_REQUIRED);
    CHECK_EQ(profile_state_worse(PROFILE_STATE_REQUIRED, PROFILE_STATE_MAINTENANCE),
             PROFILE_STATE_MAINTENANCE);
}
