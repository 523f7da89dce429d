/* Another configuration takes its place at any moment. */
#include "ledger/lease_grants.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *door;
    struct controller *c;
};

static void story_run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
    controller_check(s->c);
}

/* `checks` are lines of instances, between the hasLabels "asked" and "never". The profile q goes
 * nowhere; what its expression reads is known. */
static void configure(struct story *s, const char *checks, const char *expression, const char *q)
{
    struct str text = arena_printf(
        &s->memory,
        "intervals: {requeue: 24h}\n"
        "instances:\n"
        "  check:\n"
        "  - {type: hasLabel, name: asked, config: {key: asked}}\n"
        "%s"
        "  - {type: hasLabel, name: never, config: {key: never}}\n"
        "profiles:\n"
        "- name: p\n"
        "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
        "  maintenance-required: {transitions: [{check: '%s', next: in-maintenance}]}\n"
        "- name: q\n"
        "  operational: {transitions: [{check: '%s && never', next: maintenance-required}]}\n",
        checks, expression, q);
    CHECK_EQ(controller_configure(s->c, STR("f"), text, (struct ucfg_env){ 0 }), 0);
}

static void story_begin(struct story *s, bool elect)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    s->door = sim_api_new(virtual_loop_root(s->time), s->server, NULL);
    s->c = controller_open(&(struct core_config){ .loop = virtual_loop_root(s->time),
                                                  .api = s->door,
                                                  .identity = STR("a_1"),
                                                  .elect = elect },
                           &(struct controller_config){ 0 });
}

static void story_end(struct story *s)
{
    controller_close(s->c);
    sim_api_free(s->door);
    apiserver_free(s->server);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
}

static void add_node(struct story *s, const char *name, const char *profile)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = STR("POST"),
        .path = STR("/api/v1/nodes"),
        .content_type = API_JSON,
        .body = arena_printf(&s->memory,
                             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"asked\":\"\","
                             "\"cloud.sap/maintenance-profile\":\"%s\"}}}",
                             name, profile),
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status, 201);
}

static uint32_t in_maintenance(struct story *s)
{
    static const char *const names[] = { "n1", "n2", "n3" };
    uint32_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct controller_node node;
        n += controller_find_node(s->c, str_from(names[i]), &node) &&
                     str_eq(node.state, STR("in-maintenance"))
                 ? 1
                 : 0;
    }
    return n;
}

static struct str holder_of(struct story *s, const char *lease)
{
    return jval_str(jval_at(apiserver_find(s->server, STR("coordination.k8s.io"), STR("leases"),
                                           STR("default"), str_from(lease)),
                            "spec.holderIdentity"));
}

#define STAGGER(n)                                                                                 \
    "  - {type: stagger, name: " #n ", config: {leaseName: " #n ", leaseNamespace: default, "      \
    "duration: 1s}}\n"

/* Those that were to be taken next are not those that stand at their place now. */
TEST(reload_forgets_the_leases_that_were_to_be_taken)
{
    for (usec_t after = 0; after < MSECONDS(60); after += MSECONDS(1)) {
        check_case(after);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, /* elect= */ false);
        configure(&s, STAGGER(one) STAGGER(two) STAGGER(other), "asked && one && two", "other");
        add_node(&s, "m", "q");
        story_run(&s, SECONDS(5));
        add_node(&s, "n1", "p");
        story_run(&s, after);
        configure(&s, STAGGER(other) STAGGER(two) STAGGER(one), "asked", "other");
        story_run(&s, MINUTES(1));
        CHECK_EQ(in_maintenance(&s), 1);
        CHECK_STR(holder_of(&s, "other-0"), "m"); /* who had it made */
    }
    check_case(-1);
}

#define LIMIT(n) "  - {type: maxMaintenance, name: limit, config: {max: " #n "}}\n"

/* Whether a node is recorded as on its way. */
static bool ledger_has(struct story *s)
{
    const struct jval *lease = apiserver_find(s->server, STR("coordination.k8s.io"), STR("leases"),
                                              STR("default"), CORE_LEASE_NAME);
    struct str text = jval_str(jval_get(jval_at(lease, "metadata.annotations"), KEY_LEASE_GRANTS));
    return str_contains(text, STR("n1")) || str_contains(text, STR("n2")) ||
           str_contains(text, STR("n3"));
}

/* Who is recorded while the configuration changes neither exceeds the new limit nor stays in the
 * record. */
TEST(reload_decides_anew_what_was_being_recorded)
{
    for (usec_t after = 0; after < MSECONDS(60); after += MSECONDS(1)) {
        check_case(after);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, /* elect= */ true);
        configure(&s, LIMIT(2), "asked && limit", "asked");
        story_run(&s, SECONDS(5));
        add_node(&s, "n1", "p");
        add_node(&s, "n2", "p");
        add_node(&s, "n3", "p");
        story_run(&s, after);
        bool held = ledger_has(&s) || in_maintenance(&s) > 0;
        configure(&s, LIMIT(1), "asked && limit", "asked");
        story_run(&s, MINUTES(1));
        CHECK(in_maintenance(&s) == 1 || (held && in_maintenance(&s) == 2));
        CHECK(!ledger_has(&s));
        configure(&s, LIMIT(3), "asked && limit", "asked");
        story_run(&s, MINUTES(1));
        CHECK_EQ(in_maintenance(&s), 3);
        CHECK(!ledger_has(&s));
    }
    check_case(-1);
}

/* Of a node whose annotations `mark` and `other` are set; what its projection keeps of one. */
static struct str kept_of(struct story *s, struct str key)
{
    const struct store_item *item = store_find(&s->c->core->nodes.store, STR("n"));
    CHECK(item != NULL);
    return node_annotation(item->object, key);
}

TEST(reload_keeps_annotations_that_other_parts_read)
{
    static const struct str keep[] = { STR_INIT("example.com/mark"),
                                       STR_INIT("cloud.sap/maintenance-data") };
    static const struct core_part_ops ops = { 0 };
    struct core_part other = { .annotations = keep, .annotation_n = ARRAY_LEN(keep) };
    struct story s = { .time = virtual_loop_new(1, WALL) };
    s.server = apiserver_new(virtual_loop_root(s.time), 1);
    s.door = sim_api_new(virtual_loop_root(s.time), s.server, NULL);
    struct core *core = core_new(&(struct core_config){
        .loop = virtual_loop_root(s.time), .api = s.door, .identity = STR("a_1") });
    s.c = controller_new(core, &(struct controller_config){ 0 });
    core_join(core, &other, &ops);
    core_start(core);
    struct apiserver_request request = {
        .method = STR("POST"),
        .path = STR("/api/v1/nodes"),
        .body = STR("{\"metadata\":{\"name\":\"n\",\"annotations\":"
                    "{\"example.com/mark\":\"me\",\"other\":\"x\"}}}"),
    };
    struct apiserver_reply reply;
    apiserver_handle(s.server, &request, &s.memory, &reply);
    CHECK_EQ(reply.status, 201);
    story_run(&s, SECONDS(5));
    CHECK_STR(kept_of(&s, STR("example.com/mark")), "me");
    CHECK(kept_of(&s, STR("other")).p == NULL);
    configure(&s, "", "asked", "asked");
    story_run(&s, SECONDS(5));
    CHECK_STR(kept_of(&s, STR("example.com/mark")), "me");
    CHECK(kept_of(&s, KEY_DATA).n > 0);
    core_leave(&other);
    story_end(&s);
}
