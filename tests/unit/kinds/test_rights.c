#include "kinds/rights.h"

#include "tests/check.h"

TEST(rights_name_roles_and_uses_that_are_listed)
{
    for (uint32_t i = 0; i < rights_count; i++) {
        const struct right *r = &rights[i];
        CHECK(rights_has_role(str_from(r->role)));
        CHECK(r->use == NULL || rights_has_use(str_from(r->use)));
        CHECK(r->resources[0] != '\0' && r->verbs[0] != '\0' && r->why[0] != '\0');
    }
    CHECK(!rights_has_role(STR("nobody")));
    CHECK(!rights_has_use(STR("nothing")));
}

TEST(rights_have_something_for_every_use)
{
    for (uint32_t i = 0; i < right_uses_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < rights_count; k++) {
            found = found || (rights[k].use != NULL &&
                              str_eq(str_from(rights[k].role), str_from(right_uses[i].role)) &&
                              str_eq(str_from(rights[k].use), str_from(right_uses[i].name)));
        }
        CHECK(found);
    }
}

/* No pattern is ever asked for, nor the rights by which somebody gets all others. */
TEST(rights_are_never_wide)
{
    for (uint32_t i = 0; i < rights_count; i++) {
        const struct right *r = &rights[i];
        const char *const texts[] = { r->group, r->resources, r->verbs };
        for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
            CHECK(!str_contains(str_from(texts[k]), STR("*")));
        }
        CHECK(!str_contains(str_from(r->verbs), STR("escalate")));
        CHECK(!str_contains(str_from(r->verbs), STR("impersonate")));
        bool secrets = str_contains(str_from(r->resources), STR("secrets"));
        CHECK(!secrets || str_eq(str_from(r->role), STR("bridge")) || r->scope != RIGHT_CLUSTER);
    }
}

static const struct right_rule *rule_of(const struct right_rule *rules, uint32_t n,
                                        struct str resource)
{
    const struct right_rule *found = NULL;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < rules[i].resource_n; k++) {
            if (str_eq(rules[i].resources[k], resource)) {
                CHECK(found == NULL); /* a resource is in one rule */
                found = &rules[i];
            }
        }
    }
    return found;
}

TEST(rights_of_one_resource_become_one_rule)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct right_rule *rules = NULL;
    uint32_t n = rights_rules(
        &(struct right_query){ .role = STR("controller"), .scope = RIGHT_CLUSTER }, &tmp, &rules);
    const struct right_rule *pods = rule_of(rules, n, STR("pods"));
    CHECK(pods != NULL);
    CHECK_EQ(pods->verb_n, 3);
    CHECK_STR(pods->verbs[0], "list");
    CHECK_STR(pods->verbs[1], "watch");
    CHECK_STR(pods->verbs[2], "delete");
    const struct right_rule *workloads = rule_of(rules, n, STR("deployments"));
    CHECK(workloads != NULL && workloads == rule_of(rules, n, STR("statefulsets")));
}

TEST(rights_that_are_not_used_are_left_out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct right_rule *rules = NULL;
    const struct str without[] = { STR("forced-drains"), STR("requests"), STR("workloads") };
    const struct right_query query = { .role = STR("controller"),
                                       .scope = RIGHT_CLUSTER,
                                       .leave_out = without,
                                       .leave_out_n = ARRAY_LEN(without) };
    uint32_t n = rights_rules(&query, &tmp, &rules);
    CHECK_EQ(rule_of(rules, n, STR("pods"))->verb_n, 2);
    CHECK(rule_of(rules, n, STR("maintenancerequests")) == NULL);
    /* Another use still needs a part of it. */
    CHECK_EQ(rule_of(rules, n, STR("deployments"))->verb_n, 1);
    CHECK(rule_of(rules, n, STR("nodes")) != NULL);
    CHECK_EQ(rights_rules(&(struct right_query){ .role = STR("actor"), .scope = RIGHT_HOME }, &tmp,
                          &rules),
             0);
}
