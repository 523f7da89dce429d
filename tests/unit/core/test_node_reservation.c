/* A part's place for a Node under the limits, on the sandbox's API server and in virtual time. The
 * integration in the fixture does nothing, since it has no configuration: it only says by a Node's
 * annotation whether it disturbs that Node. */
#include "core/node_reservation.h"

#include "format/json.h"
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/integration_fixture.h"

struct fixture {
    struct integration_fixture base;
    struct node_reservation reservation;
    struct core_part part; /* whose place it is */
    uint32_t changes;
    bool spins; /* each change asks again at once */
    bool already_true;
    bool confirmed; /* what the Node says when it is read once more */
};

static const struct store_item *item_of(struct fixture *f)
{
    return store_find(&f->base.core->nodes.store, STR("a"));
}

static bool on_confirm(void *ctx, const struct jval *node UNUSED)
{
    return ((struct fixture *)ctx)->confirmed;
}

/* Whether it is held; `ret_why` may be NULL. */
static bool take(struct fixture *f, struct str *ret_why)
{
    struct str why = STR_NONE;
    bool held = node_reservation_take(&f->reservation, item_of(f),
                                      &(struct node_reservation_spec){
                                          .name = STR("test/a"),
                                          .already_true = f->already_true,
                                          .confirm = on_confirm,
                                      },
                                      &why);
    if (ret_why != NULL) {
        *ret_why = why;
    }
    return held;
}

static void on_change(void *ctx)
{
    struct fixture *f = ctx;
    f->changes++;
    if (f->spins) {
        (void)take(f, NULL); /* as a turn does */
    }
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    integration_fixture_init(&f->base, "kubernikus");
    (void)integration_fixture_ask(&f->base, "POST", "/api/v1/nodes",
                                  "{\"metadata\":{\"name\":\"a\"}}");
}

/* The limits are known, and the reservation belongs to this core. */
static void settle(struct fixture *f)
{
    integration_fixture_run(&f->base, SECONDS(10));
    node_reservation_init(&f->reservation, f->base.core, on_change, f);
}

static void end(struct fixture *f)
{
    node_reservation_done(&f->reservation);
    integration_fixture_done(&f->base);
}

static void run(struct fixture *f)
{
    integration_fixture_run(&f->base, MINUTES(1));
}

static void disturb(struct fixture *f, const char *value)
{
    struct str body = arena_printf(
        &f->base.memory, "{\"metadata\":{\"annotations\":{\"" KEY_DELETING_TEXT "\":%s}}}", value);
    (void)integration_fixture_ask(&f->base, "PATCH", "/api/v1/nodes/a", body.p);
    run(f);
}

TEST(node_reservation_needs_nothing_where_there_are_no_limits)
{
    struct fixture f;
    struct str why = STR_NONE;
    begin(&f);
    node_reservation_init(&f.reservation, f.base.core, on_change, &f);
    integration_fixture_run(&f.base, MSECONDS(1));
    f.reservation.core->limits_known = false; /* the server has not said yet */
    CHECK(!take(&f, &why));
    CHECK_STR(why, "whether there are limits is not known yet");
    settle(&f);
    f.reservation.core->limits_known = true;
    CHECK(take(&f, NULL));
    end(&f);
}

TEST(node_reservation_waits_for_the_limit_and_is_told_when_it_has_room)
{
    struct fixture f;
    struct str why = STR_NONE;
    begin(&f);
    integration_fixture_limit(&f.base, 0);
    settle(&f);
    CHECK(!take(&f, NULL));
    run(&f);
    CHECK(!take(&f, &why));
    CHECK(str_contains(why, STR("few"))); /* names the limit */
    uint32_t changes = f.changes;
    integration_fixture_set_limit(&f.base, 1);
    run(&f);
    CHECK(f.changes > changes);
    CHECK(take(&f, NULL));
    CHECK_STR(integration_fixture_reservation(&f.base), "test/a");
    node_reservation_give(&f.reservation, &f.part, item_of(&f));
    run(&f);
    CHECK_EQ(integration_fixture_reservation(&f.base).n, 0);
    end(&f);
}

/* Its place is not waited for; but it is written down, once the Node says so itself. */
TEST(node_reservation_of_a_fact_is_above_the_limit)
{
    struct fixture f;
    begin(&f);
    integration_fixture_limit(&f.base, 0);
    settle(&f);
    f.already_true = true;
    CHECK(!take(&f, NULL));
    run(&f);
    CHECK(!take(&f, NULL)); /* the Node did not confirm it */
    CHECK_EQ(integration_fixture_reservation(&f.base).n, 0);
    node_reservation_done(&f.reservation);
    settle(&f);
    f.confirmed = true;
    CHECK(!take(&f, NULL));
    run(&f);
    CHECK(take(&f, NULL));
    CHECK_STR(integration_fixture_reservation(&f.base), "test/a");
    end(&f);
}

TEST(node_reservation_that_waits_becomes_a_fact_without_waiting)
{
    struct fixture f;
    begin(&f);
    integration_fixture_limit(&f.base, 0);
    settle(&f);
    CHECK(!take(&f, NULL));
    run(&f);
    f.already_true = true;
    f.confirmed = true;
    CHECK(!take(&f, NULL));
    run(&f);
    CHECK(take(&f, NULL));
    end(&f);
}

/* A part asks again whenever it is told of a change. While nobody may act yet, a fact waits, too:
 * to make another ask each time would be a change each time, and never end. */
TEST(node_reservation_of_a_fact_asks_once_however_often_it_is_wanted)
{
    struct fixture f;
    begin(&f);
    integration_fixture_limit(&f.base, 1);
    settle(&f);
    f.spins = true;
    f.already_true = true;
    f.confirmed = true;
    CHECK(!take(&f, NULL));
    struct ask *ask = f.reservation.ask;
    CHECK(ask != NULL && ask_stage(ask) == ASK_WAITING);
    CHECK(!take(&f, NULL));
    CHECK(f.reservation.ask == ask);
    run(&f);
    CHECK(f.changes < 20);
    CHECK(take(&f, NULL));
    end(&f);
}

TEST(node_reservation_stays_while_another_part_disturbs_the_node)
{
    struct fixture f;
    begin(&f);
    integration_fixture_limit(&f.base, 1);
    settle(&f);
    CHECK(!take(&f, NULL));
    run(&f);
    CHECK(take(&f, NULL));
    disturb(&f, "\"true\"");
    node_reservation_give(&f.reservation, &f.part, item_of(&f));
    run(&f);
    CHECK_STR(integration_fixture_reservation(&f.base), "test/a");
    disturb(&f, "null");
    node_reservation_give(&f.reservation, &f.part, item_of(&f));
    run(&f);
    CHECK_EQ(integration_fixture_reservation(&f.base).n, 0);
    end(&f);
}

/* Two parts, one place: the second is covered by the first one's. */
TEST(node_reservation_covers_other_parts)
{
    struct fixture f;
    struct fixture other = { 0 };
    struct str why = STR_NONE;
    begin(&f);
    integration_fixture_limit(&f.base, 1);
    settle(&f);
    node_reservation_init(&other.reservation, f.base.core, on_change, &other);
    CHECK(!take(&f, NULL));
    const struct node_reservation_spec spec = { .name = STR("other/a"), .confirm = on_confirm };
    CHECK(!node_reservation_take(&other.reservation, item_of(&f), &spec, &why));
    CHECK_STR(why, "another part of the controller asks for the node");
    run(&f);
    CHECK(node_reservation_take(&other.reservation, item_of(&f), &spec, &why));
    CHECK_STR(integration_fixture_reservation(&f.base), "test/a");
    node_reservation_done(&other.reservation);
    end(&f);
}
