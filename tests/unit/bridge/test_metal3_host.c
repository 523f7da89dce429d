#include "bridge/metal3_host.h"

#include "kinds/keys.h"
#include "tests/check.h"

struct fixture {
    struct store store;
    struct arena a;
};

static void fixture_begin(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    store_init(&f->store, &metal3_host_kind, NULL, 7);
}

static void fixture_end(struct fixture *f)
{
    store_check(&f->store);
    store_done(&f->store);
    arena_done(&f->a);
}

/* The host "metal/h1" with these annotations, and more members behind its metadata. */
static const struct metal3_host *observe(struct fixture *f, unsigned version,
                                         const char *annotations, const char *more)
{
    struct err err = { 0 };
    const struct jval *v = NULL;
    struct str text =
        arena_printf(&f->a,
                     "{\"metadata\":{\"name\":\"h1\",\"namespace\":\"metal\",\"uid\":\"u-1\","
                     "\"resourceVersion\":\"%u\",\"annotations\":{%s}}%s}",
                     version, annotations, more);
    CHECK_EQ(json_parse(text, 0, &f->a, &v, &err), 0);
    CHECK_EQ(store_observe(&f->store, v, false, &err), 0);
    store_check(&f->store);
    const struct store_item *item = store_find(&f->store, STR("metal/h1"));
    CHECK(item != NULL);
    return item->object;
}

#define REBOOT "\"reboot.metal3.io/runtime-extension-maintenance-controller\":"
#define OWNER "\"drydock.dev/reboot-owner\":"

TEST(metal3_host_keeps_what_decisions_use)
{
    struct fixture f;
    fixture_begin(&f);
    const struct metal3_host *h =
        observe(&f, 3, REBOOT "\"\"," OWNER "\"m-1\",\"other\":\"x\"",
                ",\"spec\":{\"online\":true,\"consumerRef\":{\"kind\":\"Metal3Machine\","
                "\"namespace\":\"metal\",\"name\":\"infra-1\"}},"
                "\"status\":{\"poweredOn\":true,\"provisioning\":{\"state\":\"provisioned\"}}");
    CHECK_STR(h->uid, "u-1");
    CHECK_STR(h->namespace, "metal");
    CHECK_STR(h->name, "h1");
    CHECK(h->provisioned);
    CHECK(h->powered_on);
    CHECK_STR(h->consumer_kind, "Metal3Machine");
    CHECK_STR(h->consumer_namespace, "metal");
    CHECK_STR(h->consumer_name, "infra-1");
    CHECK(!h->paused);
    CHECK(h->reboot);
    CHECK_STR(h->reboot_value, "");
    CHECK_STR(h->owner, "m-1");
    fixture_end(&f);
}

TEST(metal3_host_takes_what_is_absent_or_strange_for_nothing)
{
    static const char *const rests[] = {
        "",
        ",\"spec\":null,\"status\":null",
        ",\"spec\":{\"consumerRef\":null},\"status\":{\"provisioning\":{\"state\":\"\"}}",
        ",\"spec\":{\"consumerRef\":[1]},\"status\":{\"provisioning\":7,\"poweredOn\":\"yes\"}",
        ",\"spec\":3,\"status\":[]",
    };
    for (size_t i = 0; i < ARRAY_LEN(rests); i++) {
        struct fixture f;
        check_case((int64_t)i);
        fixture_begin(&f);
        const struct metal3_host *h = observe(&f, 1, "", rests[i]);
        CHECK(!h->provisioned);
        CHECK(!h->powered_on);
        CHECK_EQ(h->consumer_kind.n + h->consumer_namespace.n + h->consumer_name.n, 0);
        CHECK(!h->reboot);
        CHECK(h->reboot_value.p == NULL);
        CHECK(h->owner.p == NULL);
        fixture_end(&f);
    }
    check_case(-1);
}

TEST(metal3_host_is_provisioned_in_that_state_alone)
{
    static const char *const states[] = {
        "",
        "registering",
        "inspecting",
        "available",
        "provisioning",
        "preparing",
        "deprovisioning",
        "deleting",
        "powering off",
        "Provisioned",
        "unmanaged",
        "provisioned ",
        "matched",
        "externally provisioned",
    };
    struct fixture f;
    fixture_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        check_case((int64_t)i);
        struct str more =
            arena_printf(&f.a, ",\"status\":{\"provisioning\":{\"state\":\"%s\"}}", states[i]);
        CHECK(!observe(&f, (unsigned)i + 1, "", more.p)->provisioned);
    }
    check_case(-1);
    fixture_end(&f);
}

TEST(metal3_host_is_paused_by_either_annotation_whatever_its_value)
{
    static const struct {
        const char *annotations;
        bool paused;
    } cases[] = {
        { "\"baremetalhost.metal3.io/paused\":\"\"", true },
        { "\"baremetalhost.metal3.io/paused\":\"metal3.io/capm3\"", true },
        { "\"cluster.x-k8s.io/paused\":\"false\"", true },
        { "\"cluster.x-k8s.io/paused-not\":\"true\"", false },
        { "\"baremetalhost.metal3.io/detached\":\"\"", false },
    };
    struct fixture f;
    fixture_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(observe(&f, (unsigned)i + 1, cases[i].annotations, "")->paused, cases[i].paused);
    }
    check_case(-1);
    fixture_end(&f);
}

TEST(metal3_host_cuts_off_what_is_too_long_to_be_ours)
{
    struct fixture f;
    char text[METAL3_HOST_TEXT_MAX + 10];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    fixture_begin(&f);
    struct str annotations = arena_printf(&f.a, REBOOT "\"%s\"," OWNER "\"%s\"", text, text);
    const struct metal3_host *h = observe(&f, 1, annotations.p, "");
    CHECK_EQ(h->reboot_value.n, METAL3_HOST_TEXT_MAX);
    CHECK_EQ(h->owner.n, METAL3_HOST_TEXT_MAX);
    fixture_end(&f);
}

/* Every field that counts makes it dirty, and what others write does not. */
TEST(metal3_host_changes_are_seen_and_others_are_not)
{
    static const struct {
        const char *annotations;
        const char *more;
        bool dirty;
    } steps[] = {
        { "", "", true },
        { "\"other\":\"x\"", ",\"status\":{\"goodCredentials\":{}}", false },
        { "", ",\"status\":{\"poweredOn\":true}", true },
        { "", ",\"status\":{\"poweredOn\":true,\"provisioning\":{\"state\":\"available\"}}",
          false },
        { "", ",\"status\":{\"poweredOn\":true,\"provisioning\":{\"state\":\"provisioned\"}}",
          true },
        { "", "", true },
        { REBOOT "\"\"", "", true },
        { REBOOT "\"{}\"", "", true },
        { REBOOT "\"{}\"," OWNER "\"\"", "", true },
        { REBOOT "\"{}\"," OWNER "\"m\"", "", true },
        { REBOOT "\"{}\"," OWNER "\"m\"", ",\"spec\":{\"online\":false}", false },
        { "\"cluster.x-k8s.io/paused\":\"\"", "", true },
        { "", ",\"spec\":{\"consumerRef\":{\"name\":\"a\"}}", true },
        { "", ",\"spec\":{\"consumerRef\":{\"name\":\"a\",\"kind\":\"k\"}}", true },
        { "", ",\"spec\":{\"consumerRef\":{\"name\":\"a\",\"namespace\":\"k\"}}", true },
        { "", ",\"spec\":{\"consumerRef\":{\"name\":\"b\",\"namespace\":\"k\"}}", true },
    };
    struct fixture f;
    fixture_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        check_case((int64_t)i);
        (void)observe(&f, (unsigned)i + 1, steps[i].annotations, steps[i].more);
        CHECK_EQ(store_take(&f.store) != NULL, steps[i].dirty);
    }
    check_case(-1);
    fixture_end(&f);
}
