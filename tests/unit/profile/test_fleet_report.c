#include "profile/fleet_report.h"

#include "base/textwrap.h"
#include "tests/check.h"

#define NOW SECONDS(1794792706) /* 2026-11-16T01:31:46Z */

struct given {
    const char *node;
    const char *profile;
    enum profile_state state;
    usec_t since;
    const char *doing;
    const char *error;
};

static void add(struct fleet_report *s, struct arena *a, const struct given *g)
{
    struct node_report_profile p = { .name = str_from(g->profile),
                                     .state = g->state,
                                     .next = g->state,
                                     .since = g->since,
                                     .doing = str_from(g->doing),
                                     .error = str_from(g->error) };
    struct node_report r = { .node = str_from(g->node),
                             .state = profile_state_name(g->state),
                             .now = NOW,
                             .profiles = &p,
                             .profile_n = 1 };
    fleet_report_add(s, &r, a);
}

static struct fleet_report sample(struct arena *a)
{
    static const struct given given[] = {
        { "n4", "os", PROFILE_STATE_REQUIRED, NOW - MINUTES(90), NULL, NULL },
        { "n1", "os", PROFILE_STATE_OPERATIONAL, NOW - HOURS(30), NULL, NULL },
        { "n3", "os", PROFILE_STATE_MAINTENANCE, NOW - SECONDS(252),
          "draining: 3 of 12 pods are left, default/web-0 waits for the budget web: 2 of 3 are "
          "healthy, 2 must be",
          NULL },
        { "n2", "kernel", PROFILE_STATE_REQUIRED, NOW - HOURS(2), NULL, NULL },
        { "n5", "os", PROFILE_STATE_REQUIRED, NOW - SECONDS(5), NULL, "no route to \"mail\"" },
    };
    struct fleet_report s = { .version = STR("1"),
                              .title = STR("kind"),
                              .leader = STR("pod-0_x"),
                              .config_file = STR("config/maintenance.yaml"),
                              .config_loaded = NOW - HOURS(3),
                              .now = NOW };
    (void)fleet_report_profile(&s, a, STR("unused"));
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        add(&s, a, &given[i]);
    }
    fleet_report_add(
        &s, &(struct node_report){ .node = STR("n6"), .error = STR("annotation: no JSON") }, a);
    fleet_report_sort(&s);
    return s;
}

TEST(fleet_report_prints_who_waits_for_what)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct fleet_report s = sample(&a);
    fleet_report_print_text(&s, NODE_REPORT_TEXT, &out);
    CHECK_STR(buf_str(&out),
              "kind: 6 nodes: 2 operational, 3 waiting, 1 in maintenance\n"
              "leader   pod-0_x\n"
              "config   config/maintenance.yaml\n"
              "\n"
              "profile  operational  maintenance-required  in-maintenance\n"
              "kernel             0                     1               0\n"
              "os                 1                     2               1\n"
              "unused             0                     0               0\n"
              "\n"
              "failing (2)\n"
              "  n5  os, 5s: no route to \"mail\"\n"
              "  n6  any profile: annotation: no JSON\n"
              "\n"
              "in maintenance (1)\n"
              "  n3  os, 4m12s: draining: 3 of 12 pods are left, default/web-0 waits for the\n"
              "      budget web: 2 of 3 are healthy, 2 must be\n"
              "\n"
              "waiting for maintenance (2)\n"
              "  n2  kernel, 2h: stays: there is no transition out of this state\n"
              "  n4  os, 1h30m: stays: there is no transition out of this state\n");
}

/* Whoever is woken at night sees the blocked drain first, whoever it is for. */
TEST(fleet_report_has_blocked_drains_first)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct fleet_report s = { .now = NOW };
    struct str drain = STR("draining: 1 pod is left; shop/web-0: its budget allows none");
    struct node_report_profile os = { .name = STR("os"),
                                      .state = PROFILE_STATE_REQUIRED,
                                      .next = PROFILE_STATE_REQUIRED,
                                      .doing = drain };
    struct node_report_profile failing = { .name = STR("os"), .error = STR("boom") };
    const struct node_report_drain blocked = { .running = true, .blocked = true, .left = 1 };
    fleet_report_add(
        &s, &(struct node_report){ .node = STR("bad"), .profiles = &failing, .profile_n = 1 }, &a);
    fleet_report_add(&s,
                     &(struct node_report){ .node = STR("by-profile"),
                                            .drain = drain,
                                            .draining = blocked,
                                            .profiles = &os,
                                            .profile_n = 1 },
                     &a);
    fleet_report_add(&s,
                     &(struct node_report){ .node = STR("by-request"),
                                            .drain = STR("draining: 2 pods are left"),
                                            .draining = { .running = true, .left = 2 } },
                     &a);
    fleet_report_add(
        &s, &(struct node_report){ .node = STR("held-up"), .drain = drain, .draining = blocked },
        &a);
    fleet_report_sort(&s);
    fleet_report_print_text(&s, NODE_REPORT_TEXT, &out);
    CHECK(str_starts(buf_str(&out),
                     STR("4 nodes: 4 operational, 0 waiting, 0 in maintenance; 3 draining, 2 of "
                         "them\n  blocked\n")));
    CHECK(str_ends(
        buf_str(&out),
        STR("blocked drains (2)\n"
            "  by-profile  os: draining: 1 pod is left; shop/web-0: its budget allows none\n"
            "  held-up     a request: draining: 1 pod is left; shop/web-0: its budget allows\n"
            "              none\n"
            "\n"
            "failing (1)\n"
            "  bad  os: boom\n"
            "\n"
            "draining (1)\n"
            "  by-request  a request: draining: 2 pods are left\n")));
}

TEST(fleet_report_says_what_is_wrong_with_the_controller)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct fleet_report s = { .why = STR("nodes are not known yet"),
                              .pause = STR("no requests until noon"),
                              .denied = STR("it may not watch limits"),
                              .config_file = STR("a.yaml"),
                              .config_error = STR("a.yaml:3:1: found a tab") };
    fleet_report_print_text(&s, NODE_REPORT_TEXT, &out);
    CHECK_STR(buf_str(&out), "0 nodes: 0 operational, 0 waiting, 0 in maintenance\n"
                             "leader   nobody leads\n"
                             "unready  nodes are not known yet\n"
                             "paused   no requests until noon\n"
                             "rights   it may not watch limits\n"
                             "config   none is in force: profiles do nothing\n"
                             "         a.yaml:3:1: found a tab\n");
    s.config_loaded = SECONDS(1767323045);
    buf_reset(&out);
    fleet_report_print_text(&s, NODE_REPORT_TEXT, &out);
    CHECK(str_contains(buf_str(&out), STR("config   the last good one stays in force\n")));
}

TEST(fleet_report_shows_twenty_of_a_kind_and_all_when_wide)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct fleet_report s = { .now = NOW };
    for (uint32_t i = 0; i < 25; i++) {
        struct str name = arena_printf(&a, "ip-10-0-%02u-117.eu-central-1.compute.internal", i);
        add(&s, &a,
            &(struct given){ name.p, "os", PROFILE_STATE_REQUIRED, NOW - SECONDS(i), "", "" });
    }
    fleet_report_sort(&s);
    fleet_report_print_text(&s, NODE_REPORT_TEXT, &out);
    CHECK(str_contains(buf_str(&out), STR("  and 5 more; -o wide lists all\n")));
    CHECK(!str_contains(buf_str(&out), STR("ip-10-0-04-117"))); /* the five youngest */
    struct str rest = buf_str(&out);
    struct str line;
    while (str_split_next(&rest, '\n', &line)) {
        CHECK(textwrap_width(line) <= NODE_REPORT_COLUMNS);
    }
    buf_reset(&out);
    fleet_report_print_text(&s, NODE_REPORT_WIDE, &out);
    CHECK(str_contains(buf_str(&out), STR("ip-10-0-04-117")));
}

TEST(fleet_report_json_has_everything)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct fleet_report s = sample(&a);
    struct json_writer w = json_writer_on(&json);
    fleet_report_print_json(&s, &w);
    CHECK_STR(buf_str(&json),
              "{\"version\":\"1\",\"title\":\"kind\",\"leader\":\"pod-0_x\",\"why\":\"\",\"config\""
              ":{\"file\":\"config/maintenance.yaml\",\"error\":\"\",\"loaded\":\"2026-11-15T22:31:"
              "46Z\"},\"now\":\"2026-11-16T01:31:46Z\",\"nodes\":6,\"draining\":0,\"blocked\":0,"
              "\"states\":{\"operational\":2,\""
              "maintenance-required\":3,\"in-maintenance\":1},\"profiles\":[{\"name\":\"kernel\",\""
              "operational\":0,\"maintenance-required\":1,\"in-maintenance\":0},{\"name\":\"os\",\""
              "operational\":1,\"maintenance-required\":2,\"in-maintenance\":1},{\"name\":\"unused"
              "\",\"operational\":0,\"maintenance-required\":0,\"in-maintenance\":0}],\"entries\":["
              "{\"node\":\"n5\",\"profile\":\"os\",\"state\":\"maintenance-required\",\"since\":\"2"
              "026-11-16T01:31:41Z\",\"failing\":true,\"gist\":\"no route to \\\"mail\\\"\"},{\"nod"
              "e\":\"n6\",\"profile\":\"\",\"state\":\"operational\",\"failing\":true,\"gist\":\"an"
              "notation: no JSON\"},{\"node\":\"n3\",\"profile\":\"os\",\"state\":\"in-maintenance"
              "\",\"since\":\"2026-11-16T01:27:34Z\",\"failing\":false,\"gist\":\"draining: 3 of 12"
              " pods are left, default/web-0 waits for the budget web: 2 of 3 are healthy, 2 must b"
              "e\"},{\"node\":\"n2\",\"profile\":\"kernel\",\"state\":\"maintenance-required\",\"si"
              "nce\":\"2026-11-15T23:31:46Z\",\"failing\":false,\"gist\":\"stays: there is no trans"
              "ition out of this state\"},{\"node\":\"n4\",\"profile\":\"os\",\"state\":\"maintenan"
              "ce-required\",\"since\":\"2026-11-16T00:01:46Z\",\"failing\":false,\"gist\":\"stays:"
              " there is no transition out of this state\"}]}");
}
