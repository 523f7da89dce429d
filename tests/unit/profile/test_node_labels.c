#include "profile/node_labels.h"

#include "tests/check.h"

TEST(label_profiles_stand_between_double_dashes)
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
        while (label_profile_next(str_from(cases[i].value), &at, &name)) {
            CHECK(n < 4 && cases[i].names[n] != NULL);
            CHECK_STR(name, cases[i].names[n]);
            CHECK(label_profile_has(str_from(cases[i].value), name));
            n++;
        }
        CHECK(n == 4 || cases[i].names[n] == NULL);
        CHECK(!label_profile_has(str_from(cases[i].value), STR("other")));
    }
}

TEST(label_states_have_names_and_an_order)
{
    for (int i = 0; i < LABEL_STATE_COUNT; i++) {
        enum label_state parsed = LABEL_STATE_COUNT;
        CHECK(label_state_parse(label_state_name((enum label_state)i), &parsed));
        CHECK_EQ(parsed, i);
    }
    enum label_state parsed;
    CHECK(!label_state_parse(STR("Operational"), &parsed));
    CHECK_EQ(label_state_worse(LABEL_STATE_REQUIRED, LABEL_STATE_OPERATIONAL),
             LABEL_STATE_REQUIRED);
    CHECK_EQ(label_state_worse(LABEL_STATE_REQUIRED, LABEL_STATE_MAINTENANCE),
             LABEL_STATE_MAINTENANCE);
}
