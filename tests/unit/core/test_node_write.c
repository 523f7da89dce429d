#include "core/node_write.h"

#include "format/json.h"
#include "tests/check.h"
#include "tests/lib/integration_fixture.h"

struct fixture {
    struct integration_fixture base;
    struct node_write write;
    uint32_t changes;
};

static void on_change(void *ctx)
{
    struct fixture *f = ctx;
    f->changes++;
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    integration_fixture_init(&f->base, "kubernikus");
    (void)integration_fixture_ask(&f->base, "POST", "/api/v1/nodes",
                                  "{\"metadata\":{\"name\":\"a\"}}");
    integration_fixture_run(&f->base, SECONDS(1));
    node_write_init(&f->write, f->base.core, STR("a"), on_change, f);
}

static void end(struct fixture *f)
{
    node_write_done(&f->write);
    integration_fixture_done(&f->base);
}

static enum node_write_result step(struct fixture *f, const struct node_write_wish *wish)
{
    return node_write_step(&f->write, store_find(&f->base.core->nodes.store, STR("a")), wish);
}

TEST(node_write_sends_one_patch_for_all_that_is_missing)
{
    struct fixture f;
    struct node_write_wish wish = { .cordon = NODE_WRITE_CORDON };
    begin(&f);
    node_write_label(&wish, STR("x"), STR("1"));
    CHECK_EQ(step(&f, &wish), NODE_WRITE_PENDING);
    CHECK_EQ(step(&f, &wish), NODE_WRITE_PENDING);
    integration_fixture_run(&f.base, SECONDS(1));
    CHECK_EQ(f.changes, 1);
    CHECK_EQ(step(&f, &wish), NODE_WRITE_DONE);
    CHECK_EQ(f.write.sent, 1);
    CHECK_STR(integration_fixture_label(&f.base, "a", STR("x")), "1");
    CHECK(jval_bool(integration_fixture_node(&f.base, "a", "spec.unschedulable"), false));
    wish.cordon = NODE_WRITE_UNCORDON;
    CHECK_EQ(step(&f, &wish), NODE_WRITE_PENDING);
    integration_fixture_run(&f.base, SECONDS(1));
    CHECK(!jval_bool(integration_fixture_node(&f.base, "a", "spec.unschedulable"), false));
    end(&f);
}

TEST(node_write_does_not_write_on_a_version_that_is_old)
{
    struct fixture f;
    struct node_write_wish wish = { 0 };
    begin(&f);
    node_write_label(&wish, STR("x"), STR("1"));
    /* Somebody was faster, and the watch has not said so yet. */
    (void)integration_fixture_ask(&f.base, "PATCH", "/api/v1/nodes/a",
                                  "{\"metadata\":{\"labels\":{\"x\":\"theirs\"}}}");
    CHECK_EQ(step(&f, &wish), NODE_WRITE_PENDING);
    integration_fixture_run(&f.base, SECONDS(2));
    CHECK_STR(integration_fixture_label(&f.base, "a", STR("x")), "theirs");
    CHECK_EQ(f.changes, 1);
    CHECK_EQ(step(&f, &wish), NODE_WRITE_PENDING);
    integration_fixture_run(&f.base, SECONDS(2));
    CHECK_EQ(step(&f, &wish), NODE_WRITE_DONE);
    CHECK_STR(integration_fixture_label(&f.base, "a", STR("x")), "1");
    end(&f);
}
