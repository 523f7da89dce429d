#include "profile/node_report.h"

#include "base/textwrap.h"
#include "tests/check.h"

#define NOW SECONDS(1794792706) /* 2026-11-16T01:31:46Z, a Monday */

static struct node_report_check checks[] = {
    { .name = STR_INIT("window"),
      .type = STR_INIT("timeWindow"),
      .answer = CHECK_FAIL,
      .info = STR_INIT("{\"reason\":\"current day of week forbidden\"}"),
      .reason = STR_INIT("Monday 01:31 UTC is outside of 08:00 to 16:00"),
      .next = NOW + HOURS(6) + MINUTES(28) + SECONDS(14) },
    { .name = STR_INIT("approved"),
      .type = STR_INIT("hasAnnotation"),
      .answer = CHECK_PASS,
      .reason = STR_INIT("annotation cloud.sap/approved is \"true\""),
      .next = USEC_NEVER },
    { .name = STR_INIT("blocked"),
      .type = STR_INIT("hasLabel"),
      .answer = CHECK_PASS,
      .next = USEC_NEVER },
    { .name = STR_INIT("spare"),
      .type = STR_INIT("nodeCount"),
      .answer = CHECK_FAIL,
      .info = STR_INIT("{\"current\":3,\"expected\":4}"),
      .reason = STR_INIT("there are 3 nodes, 4 are wanted"),
      .next = USEC_NEVER },
};

static struct node_report_transition transitions[] = {
    { .target = PROFILE_STATE_MAINTENANCE,
      .expression = STR_INIT("window && approved && (!blocked || (spare && approved))"),
      .next = NOW + HOURS(6) + MINUTES(28) + SECONDS(14),
      .checks = checks,
      .check_n = ARRAY_LEN(checks) },
};

static struct node_report_profile profiles[] = {
    { .name = STR_INIT("flatcar"),
      .state = PROFILE_STATE_REQUIRED,
      .next = PROFILE_STATE_REQUIRED,
      .since = NOW - HOURS(1) - MINUTES(4) - SECONDS(9),
      .transitions = transitions,
      .transition_n = ARRAY_LEN(transitions) },
    { .name = STR_INIT("default") },
};

static struct node_report_label labels[] = { { STR_INIT("kubernetes.io/os"), STR_INIT("linux") } };

static struct node_report sample(void)
{
    struct node_report r = {
        .node = STR("worker-03"),
        .state = STR("maintenance-required"),
        .ready = true,
        .cordoned = true,
        .updated = NOW - SECONDS(2),
        .now = NOW,
        .labels = labels,
        .label_n = 1,
        .profiles = profiles,
        .profile_n = ARRAY_LEN(profiles),
    };
    node_report_mark_blocking(&r);
    return r;
}

/* Each answer that the expression would need otherwise is marked, also behind a negation, and
 * nothing else is. */
TEST(node_report_mark_finds_what_stands_in_the_way)
{
    struct node_report r = sample();
    const struct node_report_check *c = r.profiles[0].transitions[0].checks;
    CHECK(c[0].holds);
    CHECK(!c[1].holds);
    CHECK(c[2].holds);
    CHECK(c[3].holds);
    CHECK(!c[1].negated);
    CHECK(c[2].negated);
}

/* A check behind '!' is shown by what it means for the transition: that it fails is what helps. */
TEST(node_report_shows_a_negated_check_by_what_it_means)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report_check three[] = {
        { .name = STR("busy"), .type = STR("hasLabel"), .answer = CHECK_FAIL, .next = USEC_NEVER },
        { .name = STR("night"), .type = STR("night"), .answer = CHECK_PASS, .next = USEC_NEVER },
        { .name = STR("gone"), .type = STR("gone"), .answer = CHECK_PENDING, .next = USEC_NEVER },
    };
    struct node_report_transition t = { .target = PROFILE_STATE_MAINTENANCE,
                                        .expression = STR("!busy && (night || !night) && !gone"),
                                        .next = USEC_NEVER,
                                        .checks = three,
                                        .check_n = 3 };
    struct node_report_profile p = { .name = STR("os"), .transitions = &t, .transition_n = 1 };
    struct node_report r = { .node = STR("n"), .now = NOW, .profiles = &p, .profile_n = 1 };
    node_report_mark_blocking(&r);
    node_report_print_text(&r, NODE_REPORT_TEXT, &out);
    CHECK(str_ends(buf_str(&out), STR("      pass     !busy (hasLabel)\n"
                                      "      pass     night\n" /* on both sides: as it answers */
                                      "    * pending  !gone\n")));
}

/* The checks let the node go, and a limit does not: that is no "yes". */
TEST(node_report_says_not_yet_while_a_limit_is_waited_for)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct node_report_transition t = { .target = PROFILE_STATE_MAINTENANCE,
                                        .expression = STR("due"),
                                        .passed = true,
                                        .chain_passed = true,
                                        .next = USEC_NEVER };
    struct node_report_profile p = { .name = STR("os"),
                                     .state = PROFILE_STATE_REQUIRED,
                                     .next = PROFILE_STATE_MAINTENANCE,
                                     .transitions = &t,
                                     .transition_n = 1 };
    struct node_report r = { .node = STR("n"),
                             .now = NOW,
                             .waits = STR("limit workers is full: 1 of 1"),
                             .profiles = &p,
                             .profile_n = 1 };
    node_report_print_text(&r, NODE_REPORT_TEXT, &out);
    CHECK_STR(buf_str(&out), "node n: no state yet, not ready\n"
                             "  waits    limit workers is full: 1 of 1\n"
                             "\n"
                             "profile os: maintenance-required\n"
                             "  to in-maintenance: not yet\n"
                             "      if       due\n"
                             "      held     limit workers is full: 1 of 1\n");
    CHECK_STR(node_report_summary(&r, &p, &a), "limit workers is full: 1 of 1");
    struct json_writer w = json_writer_on(&json);
    node_report_print_json(&r, &w);
    CHECK(str_contains(buf_str(&json), STR("\"passed\":false,\"chainPassed\":true,\"error\":\"\","
                                           "\"held\":\"limit workers is full: 1 of 1\"")));
    /* What the original says is left as it is. */
    buf_reset(&json);
    w = json_writer_on(&json);
    node_report_print_info(&r, &w);
    CHECK(str_contains(buf_str(&json), STR("{\"passed\":true,\"target\":\"in-maintenance\"")));
    r.waits = STR_NONE;
    CHECK_STR(node_report_summary(&r, &p, &a), "goes to in-maintenance");
    CHECK_STR(node_report_held(&r, &p, &t), "");
    /* Nor is a node on its way that is still being drained. */
    p.doing = r.drain = STR("draining: 1 pod is left");
    r.draining.running = true;
    CHECK_STR(node_report_held(&r, &p, &t), "the node is drained first");
}

/* Whose drain it is does not matter: the pod and its budget are what somebody has to see to. */
TEST(node_report_tells_of_a_blocked_drain)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct node_report r = {
        .node = STR("n"),
        .now = NOW,
        .drain = STR("draining: 1 pod is left; shop/web-0: its budget allows none"),
        .draining = { .running = true,
                      .blocked = true,
                      .left = 1,
                      .namespace = STR("shop"),
                      .pod = STR("web-0"),
                      .pdb = STR("web"),
                      .reason = STR("its budget allows none"),
                      .since = NOW - MINUTES(5) },
    };
    node_report_print_text(&r, NODE_REPORT_TEXT, &out);
    CHECK(
        str_ends(buf_str(&out),
                 STR("  blocked  draining: 1 pod is left; shop/web-0: its budget allows none\n")));
    struct json_writer w = json_writer_on(&json);
    node_report_print_json(&r, &w);
    CHECK(str_contains(
        buf_str(&json),
        STR("\"draining\":{\"blocked\":true,\"left\":1,\"namespace\":\"shop\",\"pod\":\"web-0\","
            "\"budget\":\"web\",\"reason\":\"its budget allows none\","
            "\"since\":\"2026-11-16T01:26:46Z\"}")));
}

TEST(node_report_mark_names_only_what_is_not_known_while_something_is_not)
{
    struct node_report_check two[] = {
        { .name = STR("a"), .type = STR("x"), .answer = CHECK_PENDING },
        { .name = STR("b"), .type = STR("x"), .answer = CHECK_FAIL },
        { .name = STR("c"), .type = STR("x"), .answer = CHECK_ERROR, .error = STR("boom") },
    };
    struct node_report_transition t = { .expression = STR("a && b && c"),
                                        .checks = two,
                                        .check_n = 3 };
    struct node_report_profile p = { .name = STR("p"), .transitions = &t, .transition_n = 1 };
    struct node_report r = { .node = STR("n"), .profiles = &p, .profile_n = 1 };
    node_report_mark_blocking(&r);
    CHECK(two[0].holds);
    CHECK(!two[1].holds);
    CHECK(two[2].holds);
    t.expression = STR("a && || b"); /* of a server that is newer than we are */
    two[0].answer = CHECK_FAIL;
    two[2].answer = CHECK_FAIL;
    node_report_mark_blocking(&r);
    CHECK(!two[0].holds && !two[1].holds && !two[2].holds);
}

TEST(node_report_prints_a_text_of_eighty_columns)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report r = sample();
    struct node_report_unsent unsent = {
        .instance = STR("hook"),
        .profile = STR("flatcar"),
        .state = STR("maintenance-required"),
        .error = STR("webhook answered 503"),
        .next = NOW + SECONDS(90),
    };
    r.waits = STR("turn 3 of 12 to go into maintenance");
    r.unsent = &unsent;
    r.unsent_n = 1;
    node_report_print_text(&r, NODE_REPORT_TEXT, &out);
    CHECK_STR(buf_str(&out),
              "node worker-03: maintenance-required, ready, cordoned\n"
              "  waits    turn 3 of 12 to go into maintenance\n"
              "  unsent   hook about flatcar in maintenance-required: webhook answered 503;\n"
              "           next try in 1m30s (Mon 01:33:16 UTC)\n"
              "  decided  2s ago\n"
              "  labels   kubernetes.io/os=linux\n"
              "\n"
              "profile flatcar: maintenance-required for 1h4m\n"
              "  to in-maintenance: no; could change in 6h28m (Mon 08:00:00 UTC)\n"
              "      if       window && approved && (!blocked || (spare && approved))\n"
              "    * fail     window (timeWindow): Monday 01:31 UTC is outside of 08:00 to\n"
              "               16:00; could change in 6h28m (Mon 08:00:00 UTC)\n"
              "      pass     approved (hasAnnotation): annotation cloud.sap/approved is "
              "\"true\"\n"
              "    * fail     !blocked (hasLabel)\n"
              "    * fail     spare (nodeCount): there are 3 nodes, 4 are wanted\n"
              "\n"
              "profile default: operational\n"
              "  there is no transition out of this state\n");
    struct str rest = buf_str(&out);
    struct str line;
    while (str_split_next(&rest, '\n', &line)) {
        CHECK(textwrap_width(line) <= NODE_REPORT_COLUMNS);
    }
}

static struct node_report_claim claims[] = {
    { .who = STR_INIT("request mr-7 of kured"),
      .holds = true,
      .words = STR_INIT("InProgress"),
      .until = STR_INIT("its client says Completed"),
      .limits = STR_INIT("gpu, node"),
      .since = NOW - MINUTES(4),
      .deadline = NOW + SECONDS(9),
      .at_deadline = STR_INIT("it is closed") },
    { .who = STR_INIT("profile os"), .deadline = USEC_NEVER },
};

TEST(node_report_names_who_holds_the_node_and_who_asks_for_it)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report r = { .node = STR("n"), .now = NOW, .claims = claims, .claim_n = 2 };
    node_report_print_text(&r, NODE_REPORT_TEXT, &out);
    CHECK_STR(buf_str(&out),
              "node n: no state yet, not ready\n"
              "  held     by request mr-7 of kured for 4m: InProgress; until its client says\n"
              "           Completed; deadline in 9s (Mon 01:31:55 UTC), then it is closed;\n"
              "           under gpu, node\n"
              "  asked    by profile os\n");
}

/* The page in docs/ shows what is really printed. */
TEST(node_report_page_shows_the_real_output)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report r = sample();
    r.waits = STR("turn 3 of 12 to go into maintenance");
    r.profile_n = 1;
    node_report_print_text(&r, NODE_REPORT_TEXT, &out);
    CHECK(str_contains(check_data("../../docs/explain.md"), buf_str(&out)));
}

TEST(node_report_prints_what_failed_and_what_is_done)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report_transition t = { .target = PROFILE_STATE_OPERATIONAL,
                                        .expression = STR("up"),
                                        .chain_passed = true,
                                        .held = STR("another profile is in maintenance"),
                                        .next = USEC_NEVER };
    struct node_report_profile p = { .name = STR("os"),
                                     .state = PROFILE_STATE_MAINTENANCE,
                                     .next = PROFILE_STATE_OPERATIONAL,
                                     .error = STR("Trigger instance drain failed: no such thing"),
                                     .doing = STR("draining: 3 of 12 pods are left"),
                                     .transitions = &t,
                                     .transition_n = 1 };
    struct node_report r = { .node = STR("n"),
                             .error = STR("data annotation: boom"),
                             .deleting = true,
                             .now = NOW,
                             .profiles = &p,
                             .profile_n = 1 };
    node_report_print_text(&r, NODE_REPORT_TEXT, &out);
    CHECK_STR(buf_str(&out), "node n: no state yet, not ready, being deleted\n"
                             "  error    data annotation: boom\n"
                             "\n"
                             "profile os: in-maintenance, goes to operational\n"
                             "  error    Trigger instance drain failed: no such thing\n"
                             "  doing    draining: 3 of 12 pods are left\n"
                             "  to operational: not yet\n"
                             "      if       up\n"
                             "      held     another profile is in maintenance\n");
}

TEST(node_report_wide_has_the_raw_info_and_no_breaks)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report r = sample();
    node_report_print_text(&r, NODE_REPORT_WIDE, &out);
    CHECK(str_contains(buf_str(&out),
                       STR("\n    * fail     spare (nodeCount): there are 3 nodes, 4 are wanted  "
                           "{\"current\":3,\"expected\":4}\n")));
    CHECK(str_contains(buf_str(&out), STR("is outside of 08:00 to 16:00; could change in 6h28m")));
    CHECK(str_contains(buf_str(&out), STR(" !blocked (hasLabel)\n"))); /* it has none */
    struct node_report_check *spare = &r.profiles[0].transitions[0].checks[3];
    const struct node_report_check before = *spare;
    spare->answer = CHECK_ERROR;
    spare->error = STR("boom");
    buf_reset(&out);
    node_report_print_text(&r, NODE_REPORT_WIDE, &out);
    *spare = before;
    CHECK(str_contains(buf_str(&out), STR(" spare (nodeCount): boom  "
                                          "{\"current\":3,\"error\":\"boom\",\"expected\":4}\n")));
}

TEST(node_report_gist_says_what_a_profile_is_about)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct node_report r = sample();
    CHECK_STR(node_report_summary(&r, &r.profiles[0], &a),
              "window: Monday 01:31 UTC is outside of 08:00 to 16:00; !blocked is 'fail'; spare: "
              "there are 3 nodes, 4 are wanted");
    CHECK_STR(node_report_summary(&r, &r.profiles[1], &a), "");
    r.waits = STR("turn 3 of 12 to go into maintenance");
    CHECK_STR(node_report_summary(&r, &r.profiles[0], &a), "turn 3 of 12 to go into maintenance");
    struct node_report_profile p = { .state = PROFILE_STATE_MAINTENANCE,
                                     .next = PROFILE_STATE_MAINTENANCE };
    CHECK_STR(node_report_summary(&r, &p, &a), "stays: there is no transition out of this state");
    p.next = PROFILE_STATE_OPERATIONAL;
    CHECK_STR(node_report_summary(&r, &p, &a), "goes to operational");
    p.doing = STR("draining");
    CHECK_STR(node_report_summary(&r, &p, &a), "draining");
    p.error = STR("boom");
    CHECK_STR(node_report_summary(&r, &p, &a), "boom");
}

/* An element of the original's /api/v1/info, byte for byte. */
TEST(node_report_prints_the_original_info_element)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report_check check = { .name = STR("reboot_needed"),
                                       .type = STR("hasAnnotation"),
                                       .answer = CHECK_PASS };
    struct node_report_transition t = { .target = PROFILE_STATE_REQUIRED,
                                        .expression = STR("reboot_needed"),
                                        .passed = true,
                                        .chain_passed = true,
                                        .checks = &check,
                                        .check_n = 1 };
    struct node_report_profile p = {
        .name = STR("flatcar"), .next = PROFILE_STATE_REQUIRED, .transitions = &t, .transition_n = 1
    };
    struct node_report r = { .node = STR("n1"),
                             .updated = SECONDS(1783423279) + 123456,
                             .labels = labels,
                             .label_n = 1,
                             .profiles = &p,
                             .profile_n = 1 };
    struct json_writer w = json_writer_on(&out);
    node_report_print_info(&r, &w);
    CHECK_STR(buf_str(&out),
              "{\"node\":\"n1\",\"profiles\":[{\"applied\":{\"next\":\"maintenance-required\","
              "\"transitions\":[{\"passed\":true,\"target\":\"maintenance-required\",\"chain\":{"
              "\"passed\":true,\"info\":{\"reboot_needed\":{\"id\":\"hasAnnotation\",\"passed\":"
              "true,\"info\":{}}},\"expression\":\"reboot_needed\"},\"error\":\"\"}],\"error\":"
              "\"\"},\"name\":\"flatcar\",\"state\":\"operational\"}],\"labels\":{"
              "\"kubernetes.io/os\":\"linux\"},\"updated\":\"2026-07-07T11:21:19.123456Z\"}");
}

TEST(node_report_info_sorts_checks_and_survives_what_plugins_say)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_report_check three[] = {
        { .name = STR("q"),
          .type = STR("prometheusInstant"),
          .answer = CHECK_ERROR,
          .info = STR("{\"expr\":\"value\",\"query\":\"up\"}"),
          .error = STR("no \"vector\"") },
        { .name = STR("b"), .type = STR("wait"), .answer = CHECK_FAIL, .info = STR("{\"v\":NaN}") },
        { .name = STR("a"), .type = STR("wait"), .answer = CHECK_PENDING },
        { .name = STR("e"),
          .type = STR("wait"),
          .answer = CHECK_ERROR,
          .info = STR("{\"error\":\"old\",\"z\":1}"),
          .error = STR("new") },
    };
    struct node_report_transition t = { .expression = STR("q && a || b && e"),
                                        .error = STR("failed check instances: q"),
                                        .checks = three,
                                        .check_n = 4 };
    struct node_report_profile p = { .name = STR("p"), .transitions = &t, .transition_n = 1 };
    struct node_report r = { .node = STR("n"), .profiles = &p, .profile_n = 1 };
    struct json_writer w = json_writer_on(&out);
    node_report_print_info(&r, &w);
    CHECK(str_contains(
        buf_str(&out),
        STR("\"info\":{\"a\":{\"id\":\"wait\",\"passed\":false,\"info\":{}},\"b\":{\"id\":\"wait\","
            "\"passed\":false,\"info\":{\"invalid\":\"{\\\"v\\\":NaN}\"}},\"e\":{\"id\":\"wait\","
            "\"passed\":false,\"info\":{\"error\":\"new\",\"z\":1}},\"q\":{\"id\":"
            "\"prometheusInstant\",\"passed\":false,\"info\":{\"error\":\"no \\\"vector\\\"\","
            "\"expr\":\"value\",\"query\":\"up\"}}}")));
    CHECK(str_contains(buf_str(&out), STR("\"updated\":\"0001-01-01T00:00:00Z\"")));
}

TEST(node_report_json_has_everything)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct node_report r = sample();
    r.claims = claims;
    r.claim_n = 2;
    struct json_writer w = json_writer_on(&json);
    node_report_print_json(&r, &w);
    CHECK_STR(
        buf_str(&json),
        "{\"node\":\"worker-03\",\"state\":\"maintenance-required\",\"error\":\"\",\"ready\":"
        "true,\"cordoned\":true,\"deleting\":false,\"updated\":\"2026-11-16T01:31:44Z\",\"now"
        "\":\"2026-11-16T01:31:46Z\",\"waits\":\"\",\"drain\":\"\",\"orphanCordon\":\"\","
        "\"labels\":{\"kubernetes.i"
        "o/os\":\"linux\"},\"unsent\":[],\"claims\":[{\"who\":\"request mr-7 of "
        "kured\",\"holds\":true,\"wo"
        "rds\":\"InProgress\",\"until\":\"its client says Completed\",\"limits\":\"gpu, node"
        "\",\"since\":\"2026-11-16T01:27:46Z\",\"deadline\":\"2026-11-16T01:31:55Z\","
        "\"atDeadline\":\"it is closed\"},{\"who"
        "\":\"profile os\",\"holds\":false,\"words\":\"\",\"until\":\"\",\"limits\":\"\"}],\""
        "profiles\":[{\"name\":\"flatcar\",\"state\":\"maintenance-required\",\"next\":\"main"
        "tenance-required\",\"since\":\"2026-11-16T00:27:37Z\",\"error\":\"\",\"doing\":\"\","
        "\"gist\":\"window: Monday 01:31 UTC is outside of 08:00 to 16:00; !blocked is 'fail';"
        " spare: there are 3 nodes, 4 are wanted\",\"transitions\":[{\"target\":\"in-maintena"
        "nce\",\"expression\":\"window \\u0026\\u0026 approved \\u0026\\u0026 (!blocked || (s"
        "pare \\u0026\\u0026 approved))\",\"passed\":false,\"chainPassed\":false,\"error\":\""
        "\",\"held\":\"\",\"next\":\"2026-11-16T08:00:00Z\",\"checks\":[{\"name\":\"window\","
        "\"type\":\"timeWindow\",\"answer\":\"fail\",\"holds\":true,\"reason\":\"Monday 01:31"
        " UTC is outside of 08:00 to 16:00\",\"error\":\"\",\"next\":\"2026-11-16T08:00:00Z\""
        ",\"info\":{\"reason\":\"current day of week forbidden\"}},{\"name\":\"approved\",\"t"
        "ype\":\"hasAnnotation\",\"answer\":\"pass\",\"holds\":false,\"reason\":\"annotation "
        "cloud.sap/approved is \\\"true\\\"\",\"error\":\"\",\"info\":{}},{\"name\":\"blocked"
        "\",\"type\":\"hasLabel\",\"answer\":\"pass\",\"holds\":true,\"negated\":true,"
        "\"reason\":\"\",\"error"
        "\":\"\",\"info\":{}},{\"name\":\"spare\",\"type\":\"nodeCount\",\"answer\":\"fail\","
        "\"holds\":true,\"reason\":\"there are 3 nodes, 4 are wanted\",\"error\":\"\",\"info"
        "\":{\"current\":3,\"expected\":4}}]}]},{\"name\":\"default\",\"state\":\"operational"
        "\",\"next\":\"operational\",\"error\":\"\",\"doing\":\"\",\"gist\":\"\",\"transition"
        "s\":[]}]}");
}
