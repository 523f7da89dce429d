/* Checks on Hypervisors, as the original's suite has them; alterHypervisor is told in
 * tests/e2e/test_hypervisors.py. */
#include "profile/hypervisor.h"

#include "profile/check/check.h"
#include "tests/check.h"
#include "tests/lib/check_fixture.h"

static const char checks[] =
    "  - {name: none, type: checkHypervisor, config: {}}\n"
    "  - {name: evicted, type: checkHypervisor, config: {evicted: true}}\n"
    "  - {name: kept, type: checkHypervisor, config: {evicted: false, specHash: ''}}\n"
    "  - {name: version, type: checkHypervisor, config: {libVirtVersion: '8.0'}}\n"
    "  - {name: ready, type: hypervisorCondition, config: {type: Ready, status: 'True'}}\n"
    "  - {name: gone, type: hypervisorCondition, config: {type: NonExistingField, status: 'a'}}\n";

struct fixture {
    struct check_fixture base;
    struct informer hypervisors;
    struct arena memory;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    check_fixture_begin(&f->base, checks);
    check_fixture_node(&f->base, "test-node", NULL, NULL);
    store_init(&f->hypervisors.store, &hypervisor_kind, NULL, 1);
    facts_set_hypervisors(f->base.facts, &f->hypervisors);
}

static void end(struct fixture *f)
{
    check_fixture_end(&f->base);
    store_done(&f->hypervisors.store);
    arena_done(&f->memory);
}

static void observe(struct fixture *f, const char *json)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(str_from(json), 0, &f->memory, &object, &err), 0);
    CHECK_EQ(store_observe(&f->hypervisors.store, object, false, &err), 0);
}

#define META "\"metadata\":{\"name\":\"test-node\",\"resourceVersion\":\"7\"}"

TEST(hypervisor_checks_compare_the_status)
{
    static const struct {
        const char *check;
        enum check_answer answer;
        const char *reason;
    } cases[] = {
        { "none", CHECK_PASS, "the node has a hypervisor" },
        { "evicted", CHECK_PASS, "evicted is 'true'" },
        { "kept", CHECK_FAIL, "evicted is 'true', not 'false', specHash is ''" },
        { "version", CHECK_FAIL, "libVirtVersion is '7', not '8.0'" },
        { "ready", CHECK_PASS, "condition Ready is 'True'" },
        { "gone", CHECK_FAIL, "the hypervisor has no condition NonExistingField" },
    };
    struct fixture f;
    begin(&f);
    f.hypervisors.synced = true;
    observe(&f,
            "{" META ",\"status\":{\"evicted\":true,\"libVirtVersion\":\"7\",\"numInstances\":5,"
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct check_verdict v = check_fixture_run(&f.base, cases[i].check, "test-node");
        CHECK_EQ(v.answer, cases[i].answer);
        CHECK_STR(v.reason, cases[i].reason);
    }
    check_case(-1);
    CHECK_STR(check_fixture_run(&f.base, "gone", "test-node").info,
              "{\"reason\":\"condition NonExistingField not present\"}");
    end(&f);
}

TEST(hypervisor_checks_say_what_is_missing)
{
    struct fixture f;
    begin(&f);
    struct check_verdict v = check_fixture_run(&f.base, "none", "test-node");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_STR(v.reason, "the hypervisors are not known yet");

    f.hypervisors.synced = true;
    v = check_fixture_run(&f.base, "none", "test-node");
    CHECK_EQ(v.answer, CHECK_ERROR);
    CHECK_STR(v.error, "hypervisors.kvm.cloud.sap \"test-node\" not found");

    f.hypervisors.absent = true;
    v = check_fixture_run(&f.base, "ready", "test-node");
    CHECK_STR(v.error,
              "the cluster has no kind hypervisors.kvm.cloud.sap: its CRD is not installed");

    f.hypervisors.absent = false;
    f.hypervisors.failing = true;
    (void)err_set(&f.hypervisors.trouble, ERR_DENIED, "the server answered 403: no");
    observe(&f, "{" META "}"); /* from before: it may be another one by now */
    v = check_fixture_run(&f.base, "ready", "test-node");
    CHECK_STR(v.error, "hypervisors.kvm.cloud.sap cannot be watched: the server answered 403: no");
    end(&f);
}

TEST(hypervisor_fields_have_the_types_of_the_original)
{
    static const struct {
        const char *kind;
        const char *instance;
        const char *problem; /* NULL: it is good */
    } cases[] = {
        { "check", "{type: checkHypervisor, name: x, config: {evicted: true}}", NULL },
        { "check", "{type: checkHypervisor, name: x, config: {value: test}}",
          "field value not found in HypervisorStatus" },
        { "check", "{type: checkHypervisor, name: x, config: {evicted: 'true'}}",
          "field evicted has incorrect type: expected bool, got string" },
        { "check", "{type: checkHypervisor, name: x, config: {numInstances: 5}}",
          "field numInstances has incorrect type: expected int, got uint64" },
        { "check", "{type: checkHypervisor, name: x, config: {numInstances: -5}}",
          "field numInstances has incorrect type: expected int, got int64" },
        { "check", "{type: checkHypervisor, name: x, config: {libVirtVersion: 8.0}}",
          "field libVirtVersion has incorrect type: expected string, got float64" },
        { "check", "{type: checkHypervisor, name: x, config: {traits: [a]}}",
          "field traits has incorrect type: expected []string, got []interface {}" },
        { "trigger", "{type: alterHypervisor, name: x, config: {maintenance: 'true'}}", NULL },
        { "trigger", "{type: alterHypervisor, name: x, config: {nope: a}}",
          "field nope not found in HypervisorSpec" },
        { "trigger", "{type: alterHypervisor, name: x, config: {maintenance: true}}",
          "field maintenance has incorrect type: expected string, got bool" },
        { "trigger", "{type: alterHypervisor, name: x, config: {installCertificate: 'yes please'}}",
          "field installCertificate has incorrect type: expected bool, got string" },
        { "trigger", "{type: alterHypervisor, name: x, config: {version: {a: b}}}",
          "field version has incorrect type: expected string, got map[string]interface {}" },
        { "check", "{type: hypervisorCondition, name: x, config: {status: a}}",
          "key 'type': found nothing, want a text that is not empty" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct problems problems = { .out = &a };
        struct config config;
        struct str text = arena_printf(&a, "intervals: {requeue: 1m}\ninstances:\n  %s:\n  - %s\n",
                                       cases[i].kind, cases[i].instance);
        int r = config_load(text, (struct ucfg_env){ 0 }, &a, &config, &problems);
        CHECK_EQ(r, cases[i].problem == NULL ? 0 : -ERR_INVALID);
        if (cases[i].problem != NULL) {
            CHECK_EQ(problems.n, 1);
            CHECK_STR(problems.items[0].text, cases[i].problem);
            CHECK_EQ(problems.items[0].pos.line, 4);
        }
    }
    check_case(-1);
}
