/* What goes wrong between the bridge and its management cluster: late news, lost answers, a server
 * that was set back. */
#include "bridge/bridge_room.h"
#include "sandbox/door.h"
#include "tests/check.h"
#include "tests/lib/strait.h"

static void begin(struct strait *s, const struct bridge_config *config)
{
    strait_begin(s, "v1beta2");
    strait_shore(s, "east");
    strait_machine(s, "east", "e1", "enabled managed");
    strait_bridge(s, config);
    strait_run(s, SECONDS(5));
}

TEST(bridge_holds_when_the_management_cluster_is_set_back)
{
    struct strait s;
    begin(&s, NULL);
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(1));
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    /* What a backup brought back is older than what was known. */
    struct supply *const supplies[] = { &s.bridge->clusters, &s.bridge->machines };
    for (size_t i = 0; i < ARRAY_LEN(supplies); i++) {
        supplies[i]->store.version_max += 1000000;
        apiserver_compact(s.home);
        door_cut(s.api);
        strait_run(&s, MINUTES(10));
        CHECK(strait_hooked(&s, "e1"));
        CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
        CHECK_EQ(strait_events(&s, "NodeRequestDelivered"), 1);
    }
    strait_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "e1"));
    strait_end(&s);
}
