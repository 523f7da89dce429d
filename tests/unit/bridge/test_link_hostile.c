/* Clusters that are broken, hostile or only odd, played by hand; and Secrets that are. */
#include "base/limits.h"
#include "tests/check.h"
#include "tests/lib/fake_dialer.h"
#include "tests/lib/link_fixture.h"

struct fixture {
    struct link_world w;
    struct fake_dialer dialer;
    struct link_cluster *east;
    struct arena a;
};

static void begin(struct fixture *b)
{
    *b = (struct fixture){ 0 };
    link_world_begin(&b->w, 1);
    fake_dialer_init(&b->dialer);
    b->w.instead = &b->dialer.dialer;
    b->east = link_cluster_new(&b->w, "east");
    link_open(b->east->link, /* hurry= */ false);
    CHECK(link_world_until(&b->w, b->east, LINK_LISTING, SECONDS(1)));
}

static void end(struct fixture *b)
{
    link_world_end(&b->w);
    CHECK(!b->dialer.open);
    arena_done(&b->a);
}

static struct fake_watch *stream(struct fixture *b)
{
    CHECK(b->dialer.open);
    struct fake_watch *watch = fake_watch_first(&b->dialer.api);
    CHECK(watch != NULL);
    return watch;
}

static struct str event(struct fixture *b, const char *type, const char *name, uint32_t version)
{
    return arena_printf(&b->a,
                        "{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\","
                        "\"resourceVersion\":\"%u\"}}}",
                        type, name, version);
}

static struct str end_mark(struct fixture *b, uint32_t version)
{
    return arena_printf(
        &b->a,
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%u\","
        "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}",
        version);
}

static void sync_it(struct fixture *b)
{
    fake_watch_line(stream(b), event(b, "ADDED", "a", 100));
    fake_watch_line(stream(b), event(b, "ADDED", "b", 101));
    fake_watch_line(stream(b), end_mark(b, 102));
    CHECK(link_world_until(&b->w, b->east, LINK_WATCHING, 0));
    link_world_run(&b->w, 0);
}

static enum link_state state_of(struct fixture *b)
{
    link_world_run(&b->w, 0);
    return link_state(b->east->link);
}

static usec_t wait_of(struct fixture *b)
{
    struct link_view view = link_cluster_view(b->east);
    return view.retry_at - view.since;
}

/* Lets it come to a list again, however long that takes. */
static void next_list(struct fixture *b)
{
    CHECK(link_world_until(&b->w, b->east, LINK_LISTING, LINK_BACKOFF_MAX + SECONDS(5)));
}

/* ── what is asked for ─────────────────────────────────────────────────────────────────────── */

TEST(link_asks_for_metadata_alone)
{
    struct fixture b;
    begin(&b);
    CHECK_STR(stream(&b)->accept, API_METADATA);
    CHECK_EQ(stream(&b)->silence_max, LINK_SILENCE_MAX);
    CHECK(str_starts(stream(&b)->path, STR("/api/v1/nodes?")));
    fake_watch_end(&b.dialer.api, stream(&b), 400, STR("no streams here"));
    link_world_run(&b.w, 0);
    struct fake_call *page = fake_call_first(&b.dialer.api);
    CHECK(page != NULL);
    CHECK_STR(page->accept, API_METADATA_LIST);
    CHECK_STR(page->path, "/api/v1/nodes?limit=500");
    end(&b);
}

/* ── refusals ──────────────────────────────────────────────────────────────────────────────── */

TEST(link_reads_the_secret_once_more_after_a_401_and_then_waits)
{
    struct fixture b;
    begin(&b);
    fake_watch_end(&b.dialer.api, stream(&b), 401, STR("Unauthorized"));
    CHECK_EQ(state_of(&b), LINK_RESOLVING);
    CHECK(link_world_until(&b.w, b.east, LINK_LISTING, SECONDS(2)));
    fake_watch_end(&b.dialer.api, stream(&b), 401, STR("Unauthorized"));
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK_STR(link_cluster_view(b.east).trouble,
              "watch of /api/v1/nodes: the server answered 401: Unauthorized");
    next_list(&b);
    sync_it(&b);
    CHECK_STR(link_cluster_view(b.east).trouble, "");
    /* Once it was well for a while, the next one counts as the first. */
    link_world_run(&b.w, MINUTES(1));
    fake_watch_fail(&b.dialer.api, stream(&b), ERR_IO);
    link_world_run(&b.w, SECONDS(1));
    fake_watch_end(&b.dialer.api, stream(&b), 401, STR("Unauthorized"));
    CHECK_EQ(state_of(&b), LINK_RESOLVING);
    end(&b);
}

TEST(link_that_is_fresh_only_for_moments_waits_ever_longer)
{
    struct fixture b;
    begin(&b);
    usec_t began = virtual_loop_now(b.w.time);
    for (int i = 0; i < 10; i++) {
        sync_it(&b);
        fake_watch_fail(&b.dialer.api, stream(&b), ERR_IO);
        link_world_run(&b.w, SECONDS(1));
        fake_watch_end(&b.dialer.api, stream(&b), 401, STR("Unauthorized"));
        next_list(&b);
    }
    CHECK(virtual_loop_now(b.w.time) - began > MINUTES(4));
    end(&b);
}

TEST(link_that_is_forbidden_to_list_waits_long)
{
    struct fixture b;
    begin(&b);
    fake_watch_end(&b.dialer.api, stream(&b), 403,
                   STR("{\"message\":\"nodes is forbidden: User x cannot watch\"}"));
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK(wait_of(&b) >= LINK_BACKOFF_MAX / 2);
    CHECK_STR(link_cluster_view(b.east).trouble, "watch of /api/v1/nodes: the server answered 403: "
                                                 "nodes is forbidden: User x cannot watch");
    CHECK(!b.dialer.open);
    next_list(&b); /* and a new role is found by itself */
    sync_it(&b);
    end(&b);
}

TEST(link_with_wrong_certificates_backs_off)
{
    struct fixture b;
    begin(&b);
    fake_watch_fail(&b.dialer.api, stream(&b),
                    ERR_DENIED); /* what a handshake that failed looks like */
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK(wait_of(&b) <= LINK_BACKOFF_BASE);
    CHECK_STR(link_cluster_view(b.east).trouble, "watch of /api/v1/nodes: connection lost");
    end(&b);
}

TEST(link_waits_as_long_as_an_overloaded_cluster_asks)
{
    struct fixture b;
    begin(&b);
    fake_watch_end(&b.dialer.api, stream(&b), 400, STR("no streams here"));
    link_world_run(&b.w, 0);
    fake_call_reply_after(&b.dialer.api, fake_call_first(&b.dialer.api), 429, SECONDS(30));
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK(wait_of(&b) >= SECONDS(30));
    end(&b);
}

/* ── lists without an end, and too long ones ───────────────────────────────────────────────── */

TEST(link_gives_up_a_stream_that_never_begins)
{
    struct fixture b;
    begin(&b);
    CHECK(link_world_until(&b.w, b.east, LINK_BACKOFF, LINK_LISTING_MAX));
    CHECK(!b.dialer.open);
    CHECK_EQ(b.dialer.dial_count, 1);
    end(&b);
}

TEST(link_gives_up_a_stream_that_drips)
{
    struct fixture b;
    begin(&b);
    uint32_t version = 100;
    while (state_of(&b) == LINK_LISTING) {
        CHECK(version < 1000);
        fake_watch_line(stream(&b), event(&b, "ADDED", "a", version++));
        link_world_run(&b.w, SECONDS(1));
    }
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK_EQ(version - 100, LINK_LISTING_MAX / SECONDS(1));
    CHECK_STR(link_cluster_view(b.east).trouble, "the list of Nodes is not complete after 60 s");
    end(&b);
}

TEST(link_gives_up_pages_without_end)
{
    struct fixture b;
    begin(&b);
    fake_watch_end(&b.dialer.api, stream(&b), 400, STR("no streams here"));
    uint32_t pages = 0;
    while (state_of(&b) == LINK_LISTING) {
        struct fake_call *page = fake_call_first(&b.dialer.api);
        CHECK(page != NULL);
        CHECK(pages < 1000);
        fake_call_reply(
            &b.dialer.api, page, 200,
            STR("{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"more\"},\"items\":["
                "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"4\"}}]}"));
        pages++;
        link_world_run(&b.w, SECONDS(1));
    }
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK_EQ(pages, 60);
    end(&b);
}

TEST(link_takes_pages_of_a_cluster_whose_streams_end_early)
{
    struct fixture b;
    begin(&b);
    for (int i = 0; i < 2; i++) {
        fake_watch_open(stream(&b));
        fake_watch_end(&b.dialer.api, stream(&b), 200, STR_NONE);
        link_world_run(&b.w, SECONDS(1));
        CHECK_EQ(state_of(&b), LINK_LISTING);
    }
    struct fake_call *page = fake_call_first(&b.dialer.api);
    CHECK(page != NULL);
    fake_call_reply(&b.dialer.api, page, 200,
                    STR("{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":["
                        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"4\"}}]}"));
    CHECK_EQ(state_of(&b), LINK_WATCHING);
    CHECK_EQ(b.dialer.dial_count, 1);
    CHECK_STR(link_cluster_view(b.east).trouble, "");
    end(&b);
}

TEST(link_keeps_no_more_nodes_than_any_cluster_has)
{
    struct fixture b;
    begin(&b);
    uint32_t n = 0;
    while (n <= LINK_NODES_MAX) {
        char name[16];
        (void)snprintf(name, sizeof(name), "n%u", n);
        fake_watch_line(stream(&b), event(&b, "ADDED", name, 100 + n));
        n++;
        arena_reset(&b.a);
    }
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK(wait_of(&b) >= LINK_BACKOFF_MAX / 2);
    CHECK_STR(link_cluster_view(b.east).trouble, "the cluster has more than 20000 Nodes");
    CHECK_EQ(store_count(link_nodes(b.east->link)), 0);
    end(&b);
}

TEST(link_takes_as_many_nodes_as_the_limit)
{
    struct fixture b;
    begin(&b);
    for (uint32_t n = 0; n < LINK_NODES_MAX; n++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "n%u", n);
        fake_watch_line(stream(&b), event(&b, "ADDED", name, 100 + n));
        arena_reset(&b.a);
    }
    fake_watch_line(stream(&b), end_mark(&b, 100 + LINK_NODES_MAX));
    CHECK_EQ(state_of(&b), LINK_WATCHING);
    CHECK_EQ(b.east->taken, LINK_NODES_MAX);
    fake_watch_line(stream(&b), event(&b, "ADDED", "one-more", 200 + LINK_NODES_MAX));
    CHECK(!link_fresh(b.east->link));
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    end(&b);
}

TEST(link_bounds_what_comes_and_goes_in_one_turn)
{
    struct fixture b;
    begin(&b);
    sync_it(&b);
    for (uint32_t n = 0; link_fresh(b.east->link); n++) {
        CHECK(n <= LINK_NODES_MAX + 1);
        fake_watch_line(stream(&b), event(&b, "ADDED", "x", 200 + 2 * n));
        fake_watch_line(stream(&b), event(&b, "DELETED", "x", 201 + 2 * n));
        arena_reset(&b.a);
    }
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK_EQ(b.east->gone.n, 0);
    end(&b);
}

/* ── more than any real cluster sends ──────────────────────────────────────────────────────── */

/* It was closed with the reason, says so to people and metrics, and waits long. */
static void check_exceeded(struct fixture *b, const char *trouble)
{
    CHECK(!link_fresh(b->east->link));
    CHECK_EQ(state_of(b), LINK_BACKOFF);
    CHECK(wait_of(b) >= LINK_BACKOFF_MAX / 2);
    struct link_view view = link_cluster_view(b->east);
    CHECK_STR(view.trouble, trouble);
    CHECK_EQ(view.over_limit, 1);
    CHECK(str_contains(buf_str(&b->w.log), str_from(trouble)));
    CHECK_EQ(store_count(link_nodes(b->east->link)), 0);
    CHECK(!b->dialer.open);
}

/* And a cluster that sends what it should is taken again, by itself. */
static void check_recovers(struct fixture *b)
{
    next_list(b);
    sync_it(b);
    CHECK(link_fresh(b->east->link));
    CHECK_EQ(store_count(link_nodes(b->east->link)), 2);
    CHECK_EQ(link_cluster_view(b->east).over_limit, 1);
}

/* A Node of which one part is as long as told; %0*d makes a text of any length. */
static const struct {
    const char *metadata;
    int most;
    const char *trouble;
} lengths[] = {
    { "\"name\":\"%0*d\"", 253,
      "watch of /api/v1/nodes: a node with a name of 254 bytes, at most 253" },
    { "\"name\":\"x\",\"uid\":\"%0*d\"", 128,
      "watch of /api/v1/nodes: node 'x': a UID of 129 bytes, at most 128" },
    { "\"name\":\"x\",\"labels\":{\"%0*d\":\"\"}", 317,
      "watch of /api/v1/nodes: node 'x': a label key of 318 bytes, at most 317" },
    { "\"name\":\"x\",\"labels\":{\"a\":\"%0*d\"}", 63,
      "watch of /api/v1/nodes: node 'x': a label value of 64 bytes, at most 63" },
    { "\"name\":\"x\",\"annotations\":{\"%0*d\":\"\"}", 317,
      "watch of /api/v1/nodes: node 'x': an annotation key of 318 bytes, at most 317" },
    { "\"name\":\"x\",\"annotations\":{\"a\":\"%0*d\"}", 262143,
      "watch of /api/v1/nodes: node 'x': annotations of 262145 bytes, at most 262144" },
};

static struct str node_with(struct fixture *b, size_t i, int length)
{
    CLEANUP(buf_done)
    struct buf metadata = { 0 };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    buf_printf(&metadata, lengths[i].metadata, length, 0);
#pragma GCC diagnostic pop
    return arena_printf(&b->a,
                        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{" STR_FMT
                        ",\"resourceVersion\":\"%d\"}}}",
                        STR_ARG(buf_str(&metadata)), 200 + length);
}

TEST(link_refuses_what_is_longer_than_kubernetes_allows)
{
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        for (int watching = 0; watching < 2; watching++) {
            check_case((int64_t)i);
            struct fixture b;
            begin(&b);
            if (watching != 0) {
                sync_it(&b);
            }
            fake_watch_line(stream(&b), node_with(&b, i, lengths[i].most));
            link_world_run(&b.w, 0);
            CHECK_EQ(link_cluster_view(b.east).over_limit, 0);
            CHECK_EQ(store_count(link_nodes(b.east->link)), watching != 0 ? 3 : 1);
            fake_watch_line(stream(&b), node_with(&b, i, lengths[i].most + 1));
            check_exceeded(&b, lengths[i].trouble);
            check_recovers(&b);
            end(&b);
        }
    }
    check_case(-1);
}

TEST(link_keeps_no_more_bytes_than_its_budget)
{
    struct fixture b;
    begin(&b);
    uint32_t n = 0;
    size_t held = 0;
    while (link_nodes(b.east->link)->bytes <= LINK_BYTES_MAX) {
        CHECK(n < LINK_NODES_MAX);
        held = link_nodes(b.east->link)->bytes;
        /* The longest texts that are kept of a Node. */
        fake_watch_line(stream(&b),
                        arena_printf(&b.a,
                                     "{\"type\":\"ADDED\",\"object\":{\"metadata\":{"
                                     "\"name\":\"%0253u\",\"resourceVersion\":\"%u\","
                                     "\"annotations\":{\"cluster.x-k8s.io/machine\":\"%0600d\","
                                     "\"drydock.dev/deletion-request\":\"%0600d\","
                                     "\"drydock.dev/maintenance-request\":\"%0600d\"}}}}",
                                     n, 100 + n, 0, 0, 0));
        n++;
        arena_reset(&b.a);
    }
    CHECK(held > LINK_BYTES_MAX - 8192);
    check_exceeded(&b, "watch of /api/v1/nodes: the objects of kind node take more than 25165824 "
                       "bytes of memory");
    check_recovers(&b);
    end(&b);
}

TEST(link_has_memory_for_as_many_ordinary_nodes_as_the_limit)
{
    struct fixture b;
    begin(&b);
    for (uint32_t n = 0; n < LINK_NODES_MAX; n++) {
        fake_watch_line(stream(&b),
                        arena_printf(&b.a,
                                     "{\"type\":\"ADDED\",\"object\":{\"metadata\":{"
                                     "\"name\":\"%063u\",\"uid\":\"%036u\","
                                     "\"resourceVersion\":\"%u\",\"annotations\":{"
                                     "\"cluster.x-k8s.io/machine\":\"%063u\","
                                     "\"cluster.x-k8s.io/cluster-namespace\":\"%063d\","
                                     "\"drydock.dev/maintenance-request\":\"%040u\"}}}}",
                                     n, n, 100 + n, n, 0, n));
        arena_reset(&b.a);
    }
    fake_watch_line(stream(&b), end_mark(&b, 100 + LINK_NODES_MAX));
    CHECK_EQ(state_of(&b), LINK_WATCHING);
    CHECK_EQ(store_count(link_nodes(b.east->link)), LINK_NODES_MAX);
    end(&b);
}

static const char flooded[] = "the server sends more than 320000 KiB and then 8192 KiB a second";

TEST(link_gives_up_a_cluster_that_sends_events_without_end)
{
    static const char *const lines[] = {
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\","
        "\"resourceVersion\":\"100\"}}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"102\"}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        check_case((int64_t)i);
        struct fixture b;
        begin(&b);
        sync_it(&b);
        uint32_t sent = 0;
        while (link_fresh(b.east->link)) {
            CHECK(sent <= LINK_TRAFFIC_BURST);
            fake_watch_line(stream(&b), str_from(lines[i]));
            sent++;
        }
        CHECK(sent > LINK_TRAFFIC_BURST - 10);
        check_exceeded(&b, arena_printf(&b.a, "watch of /api/v1/nodes: %s", flooded).p);
        check_recovers(&b);
        end(&b);
    }
    check_case(-1);
}

TEST(link_bears_a_thousand_changes_a_second)
{
    struct fixture b;
    begin(&b);
    sync_it(&b);
    struct str line = arena_printf(
        &b.a,
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"annotations\":{"
        "\"x\":\"%06000d\"},\"resourceVersion\":\"100\"}}}",
        0);
    for (uint32_t i = 0; i < 60000; i++) {
        fake_watch_line(stream(&b), line);
        if (i % 100 == 0) {
            link_world_run(&b.w, MSECONDS(100));
        }
    }
    CHECK(link_fresh(b.east->link));
    end(&b);
}

TEST(link_gives_up_a_cluster_whose_pages_are_too_many)
{
    struct fixture b;
    begin(&b);
    fake_watch_end(&b.dialer.api, stream(&b), 400, STR("no streams here"));
    CLEANUP(buf_done)
    struct buf page = { 0 };
    buf_add(&page, STR("{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"more\"},"
                       "\"items\":["));
    for (uint32_t i = 0; i < 20000; i++) {
        buf_printf(&page, "%s{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"4\"}}",
                   i > 0 ? "," : "");
    }
    buf_add(&page, STR("]}"));
    uint32_t pages = 0;
    while (state_of(&b) == LINK_LISTING) {
        CHECK(pages <= LINK_TRAFFIC_BURST / 20000);
        fake_call_reply(&b.dialer.api, fake_call_first(&b.dialer.api), 200, buf_str(&page));
        pages++;
    }
    check_exceeded(&b, arena_printf(&b.a, "list /api/v1/nodes: %s", flooded).p);
    end(&b);
}

static void ignore_reply(void *ctx UNUSED, const struct api_reply *reply UNUSED)
{
}

TEST(link_gives_up_a_cluster_whose_answers_are_too_long)
{
    struct fixture b;
    begin(&b);
    sync_it(&b);
    struct str body = arena_printf(&b.a, "%04194304d", 0);
    uint32_t replies = 0;
    while (link_fresh(b.east->link)) {
        CHECK(replies <= 2 * LINK_TRAFFIC_BURST / 4096);
        (void)link_send(b.east->link, &(struct api_request){ .path = STR("/x") }, ignore_reply,
                        NULL);
        link_world_run(&b.w, SECONDS(1) / LINK_RATE + 1);
        fake_call_reply(&b.dialer.api, fake_call_first(&b.dialer.api), 200, body);
        replies++;
    }
    check_exceeded(&b, flooded);
    end(&b);
}

/* ── lists again ───────────────────────────────────────────────────────────────────────────── */

static void expire(struct fixture *b)
{
    fake_watch_line(stream(b),
                    STR("{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"old\"}}"));
    link_world_run(&b->w, SECONDS(1));
}

TEST(link_stays_fresh_while_it_lists_again_for_a_moment)
{
    struct fixture b;
    begin(&b);
    sync_it(&b);
    link_world_run(&b.w, MINUTES(1));
    expire(&b);
    CHECK(link_fresh(b.east->link));
    fake_watch_line(stream(&b), event(&b, "ADDED", "b", 103));
    CHECK_EQ(store_count(link_nodes(b.east->link)), 2); /* all of the old is there */
    fake_watch_line(stream(&b), end_mark(&b, 200));
    link_world_run(&b.w, MINUTES(1));
    CHECK(link_fresh(b.east->link));
    CHECK_EQ(b.east->states, 1);
    CHECK_STR(buf_str(&b.east->gone), "a ");
    CHECK_EQ(store_count(link_nodes(b.east->link)), 1);
    end(&b);
}

TEST(link_is_lost_when_the_new_list_drips)
{
    struct fixture b;
    begin(&b);
    sync_it(&b);
    link_world_run(&b.w, MINUTES(1));
    usec_t began = virtual_loop_now(b.w.time);
    expire(&b);
    uint32_t version = 200;
    while (link_fresh(b.east->link)) {
        CHECK(version < 300);
        fake_watch_line(stream(&b), event(&b, "ADDED", "b", version++));
        link_world_run(&b.w, MSECONDS(500));
    }
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK(virtual_loop_now(b.w.time) - began <= LINK_TROUBLE_MAX + SECONDS(1));
    CHECK(virtual_loop_now(b.w.time) - began >= LINK_TROUBLE_MAX);
    end(&b);
}

TEST(link_is_not_fresh_with_nothing_when_versions_go_backwards)
{
    struct fixture b;
    begin(&b);
    sync_it(&b);
    expire(&b);
    fake_watch_line(stream(&b), event(&b, "ADDED", "a", 10));
    fake_watch_line(stream(&b), end_mark(&b, 11)); /* a backup was restored */
    CHECK(!link_fresh(b.east->link));              /* at once: the store is empty */
    CHECK_EQ(state_of(&b), LINK_BACKOFF);
    CHECK_STR(link_cluster_view(b.east).trouble, "the cluster's versions have gone backwards");
    CHECK_EQ(b.east->gone.n, 0);
    next_list(&b);
    fake_watch_line(stream(&b), event(&b, "ADDED", "a", 10));
    fake_watch_line(stream(&b), end_mark(&b, 11));
    CHECK_EQ(state_of(&b), LINK_WATCHING);
    end(&b);
}

TEST(link_survives_lines_that_are_none)
{
    static const char *const lines[] = {
        "",
        "null",
        "[]",
        "{",
        "{\"type\":\"ADDED\"}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\"}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}",
        "{\"type\":\"BOOKMARK\",\"object\":{}}",
        "{\"type\":\"ERROR\",\"object\":{\"code\":401}}",
        "{\"type\":\"ERROR\",\"object\":{\"code\":-1}}",
        "{\"type\":\"ELSE\",\"object\":{}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        for (int watching = 0; watching < 2; watching++) {
            check_case((int64_t)i);
            struct fixture b;
            begin(&b);
            if (watching != 0) {
                sync_it(&b);
            }
            fake_watch_line(stream(&b), str_from(lines[i]));
            link_world_run(&b.w, SECONDS(2));
            next_list(&b);
            CHECK(b.dialer.open);
            end(&b);
        }
    }
    check_case(-1);
}

/* ── streams that are cut ────────────────────────────────────────────────────────────────── */

/* Plays a stream of changes from a version on, to the byte where it is cut. */
static const char *const recorded[] = {
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"110\"}}}"
    "\n",
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"111\"}}}\n",
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"112\"}}}\n",
    "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"113\"}}}"
    "\n",
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"114\"}}}"
    "\n",
};
static const uint32_t recorded_versions[] = { 110, 111, 112, 113, 114 };

static void play(struct fixture *b, uint64_t after, size_t bytes, bool half_lines)
{
    for (size_t i = 0; i < ARRAY_LEN(recorded) && bytes > 0; i++) {
        if (recorded_versions[i] <= after) {
            continue;
        }
        struct str line = str_from(recorded[i]);
        size_t n = MIN(bytes, line.n);
        bytes -= n;
        if (n == line.n) {
            fake_watch_line(stream(b), str_sub(line, 0, n - 1));
        } else if (half_lines) {
            fake_watch_line(stream(b), str_sub(line, 0, n)); /* by a proxy that ends it in order */
        }
    }
}

/* Answers what is asked for now: the rest of the stream, or the list as it is in the end. */
static void resume(struct fixture *b)
{
    struct str path = stream(b)->path;
    size_t at = str_find(path, STR("resourceVersion="));
    struct str rest = at == SIZE_MAX ? STR_NONE : str_sub(path, at + 16, path.n);
    struct str text = STR_NONE;
    (void)str_cut(rest, STR("&"), &text, &rest);
    uint64_t version = 0;
    if (str_to_u64(text, &version)) {
        play(b, version, SIZE_MAX, /* half_lines= */ false);
    } else {
        fake_watch_line(stream(b), event(b, "ADDED", "a", 110));
        fake_watch_line(stream(b), event(b, "ADDED", "c", 114));
        fake_watch_line(stream(b), end_mark(b, 114));
    }
}

TEST(link_loses_nothing_when_its_stream_is_cut_at_any_byte)
{
    size_t total = 0;
    for (size_t i = 0; i < ARRAY_LEN(recorded); i++) {
        total += strlen(recorded[i]);
    }
    for (size_t bytes = 0; bytes <= total; bytes++) {
        for (int half_lines = 0; half_lines < 2; half_lines++) {
            check_case((int64_t)bytes);
            struct fixture b;
            begin(&b);
            sync_it(&b);
            play(&b, 102, bytes, half_lines != 0);
            if (b.dialer.api.watch_count > 0) {
                fake_watch_fail(&b.dialer.api, stream(&b), ERR_IO);
            }
            link_world_run(&b.w, SECONDS(2));
            resume(&b);
            link_world_run(&b.w, SECONDS(1));
            CHECK(link_fresh(b.east->link));
            CHECK_EQ(b.dialer.dial_count, 1);
            struct store *nodes = link_nodes(b.east->link);
            CHECK_EQ(store_count(nodes), 2);
            CHECK_EQ(store_find(nodes, STR("a"))->version, 110);
            CHECK_EQ(store_find(nodes, STR("c"))->version, 114);
            CHECK_STR(buf_str(&b.east->gone), "b ");
            end(&b);
        }
    }
    check_case(-1);
}

/* ── Secrets that no API server would give ─────────────────────────────────────────────────── */

static void ignore_it(void *ctx UNUSED, struct link *l UNUSED)
{
}

TEST(link_survives_any_answer_to_the_question_for_its_secret)
{
    static const struct {
        int status;
        const char *body;
        const char *trouble;
    } cases[] = {
        { 200, "{\"data\":{\"value\":\"%%%\"}}", "its key 'value' is not in base64" },
        { 200, "{\"data\":{\"value\":\"YQ=\"}}", "its key 'value' is not in base64" },
        { 200, "{\"data\":{\"value\":5}}", "it has no key 'value', want a kubeconfig there" },
        { 200, "{\"data\":{\"value\":null}}", "it has no key 'value', want a kubeconfig there" },
        { 200, "{\"data\":[]}", "it has no key 'value', want a kubeconfig there" },
        { 200, "[]", "it has no key 'value', want a kubeconfig there" },
        { 403, "{\"message\":\"secrets is forbidden\"}",
          "the server answered 403: secrets is forbidden" },
        { 500, "", "the server answered 500" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct virtual_loop *time = virtual_loop_new(1, 0);
        struct fake_api api;
        struct fake_dialer dialer;
        struct client management;
        struct ratelimit connects = { .rate = 50, .burst = 50 };
        fake_api_init(&api);
        fake_dialer_init(&dialer);
        client_init(&management, virtual_loop_root(time), &api.api);
        struct link *l = link_new(&(struct link_config){
            .management = &management,
            .dialer = &dialer.dialer,
            .connects = &connects,
            .namespace = STR("s"),
            .cluster = STR("c"),
            .on_state = ignore_it,
            .on_nodes = ignore_it,
        });
        link_open(l, /* hurry= */ false);
        (void)virtual_loop_run(time, 0);
        CHECK_STR(fake_call_first(&api)->path, "/api/v1/namespaces/s/secrets/c-kubeconfig");
        fake_call_reply(&api, fake_call_first(&api), cases[i].status, str_from(cases[i].body));
        link_check(l);
        (void)virtual_loop_run(time, 0);
        link_check(l);
        struct link_view view;
        link_view(l, &view);
        CHECK_EQ(view.state, LINK_BACKOFF);
        struct str trouble = STR_NONE;
        CHECK(str_cut_prefix(view.trouble, STR("Secret 's/c-kubeconfig': "), &trouble));
        CHECK_STR(trouble, cases[i].trouble);
        CHECK_EQ(dialer.dial_count, 0);
        link_free(l);
        fake_api_done(&api);
        virtual_loop_free(time);
    }
    check_case(-1);
}
