/* The states of a link and its ways between them. */
#include "tests/lib/link_fixture.h"

#include "kinds/keys.h"
#include "tests/check.h"

#define APPROVE KEYS_LEGACY "approve-deletion"

/* ── opening ───────────────────────────────────────────────────────────────────────────────── */

TEST(link_that_nobody_opens_does_nothing)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    link_world_run(&w, HOURS(1));
    CHECK_EQ(link_state(east->link), LINK_IDLE);
    CHECK_EQ(link_world_secret_reads(&w), 0);
    CHECK_EQ(east->states, 0);
    CHECK_EQ(link_unreachable_since(east->link), 0);
    link_world_end(&w);
}

TEST(link_goes_from_its_secret_to_a_watch_of_the_nodes)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    link_world_run(&w, SECONDS(1));
    link_open(east->link, /* hurry= */ false);
    CHECK_EQ(link_state(east->link), LINK_IDLE); /* nothing happens inside the call */
    CHECK_EQ(link_unreachable_since(east->link), SECONDS(1));
    CHECK(link_world_until(&w, east, LINK_RESOLVING, 0));
    CHECK(link_world_until(&w, east, LINK_LISTING, SECONDS(1)));
    CHECK_EQ(east->states, 0);
    CHECK(!link_fresh(east->link));
    CHECK_EQ(link_unreachable_since(east->link), SECONDS(1));
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(1)));
    CHECK_EQ(east->states, 1);
    CHECK_EQ(east->fresh, 1);
    CHECK_EQ(east->node_updates, 1);
    CHECK_EQ(east->taken, 2);
    CHECK(link_fresh(east->link));
    CHECK(link_cluster_store_matches(east));
    CHECK_EQ(link_unreachable_since(east->link), 0);
    struct link_view view = link_cluster_view(east);
    CHECK_STR(view.trouble, "");
    CHECK_EQ(view.nodes, 2);
    CHECK_EQ(view.connects, 1);
    CHECK_EQ(view.failures, 0);
    CHECK_STR(view.cluster, "east");
    CHECK_STR(link_state_name(view.state), "watching");
    CHECK_EQ(east->entry->open, 1);
    link_world_end(&w);
}

TEST(link_tells_of_nodes_that_come_change_and_go)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    east->faults.latency_max = east->faults.latency_min;
    east->taken = 0;
    east->node_updates = 0;
    link_cluster_node(east, "c");
    link_cluster_node(east, "d");
    link_world_run(&w, SECONDS(1));
    CHECK_EQ(east->taken, 2);
    CHECK_EQ(east->node_updates, 1); /* once for both */
    link_cluster_label(east, "a", APPROVE, true);
    link_world_run(&w, SECONDS(1));
    CHECK_EQ(east->taken, 3);
    link_cluster_node_delete(east, "b");
    link_cluster_node_delete(east, "c");
    link_world_run(&w, SECONDS(1));
    CHECK_STR(buf_str(&east->gone), "b c ");
    CHECK_EQ(east->node_updates, 3);
    CHECK(link_cluster_store_matches(east));
    link_world_end(&w);
}

/* ── back-off ──────────────────────────────────────────────────────────────────────────────── */

TEST(link_waits_longer_after_each_failure_up_to_five_minutes)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    east->faults.down = true;
    link_open(east->link, /* hurry= */ false);
    usec_t wanted = LINK_BACKOFF_BASE;
    for (int i = 0; i < 12; i++) {
        CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(2)));
        usec_t wait = link_cluster_view(east).retry_at - link_cluster_view(east).since;
        CHECK(wait >= wanted / 2);
        CHECK(wait <= wanted);
        wanted = MIN(2 * wanted, LINK_BACKOFF_MAX);
        CHECK(link_world_until(&w, east, LINK_RESOLVING, LINK_BACKOFF_MAX));
    }
    CHECK_EQ(link_cluster_view(east).connects, 13);
    CHECK_EQ(link_cluster_view(east).failures, 12);
    CHECK_EQ(east->states, 0);
    CHECK_EQ(link_unreachable_since(east->link), 1);
    CHECK(str_contains(link_cluster_view(east).trouble, STR("connection refused")));
    /* One line about all of it. */
    CHECK_EQ(str_find(buf_str(&w.log), STR("out of reach")) != SIZE_MAX, true);
    CHECK_EQ(str_find_char(buf_str(&w.log), '\n'), w.log.n - 1);
    east->faults.down = false;
    CHECK(link_world_until(&w, east, LINK_WATCHING, LINK_BACKOFF_MAX));
    CHECK(str_contains(buf_str(&w.log), STR("workload cluster reached")));
    link_world_end(&w);
}

TEST(link_to_an_address_where_nobody_listens_backs_off)
{
    struct link_world w;
    link_world_begin(&w, 1);
    struct arena a = { 0 };
    struct link_cluster *east = link_cluster_with_kubeconfig(
        &w, "east", sim_clusters_kubeconfig(STR("https://nowhere"), STR("t"), &a).p);
    arena_done(&a);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
    CHECK_STR(link_cluster_view(east).trouble, "watch of /api/v1/nodes: connection refused");
    link_world_run(&w, MINUTES(10));
    link_world_end(&w);
}

TEST(link_that_was_well_for_long_begins_its_waits_anew)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    east->faults.down = true;
    link_open(east->link, /* hurry= */ false);
    link_world_run(&w, MINUTES(30));
    east->faults.down = false;
    CHECK(link_world_until(&w, east, LINK_WATCHING, LINK_BACKOFF_MAX));
    link_world_run(&w, MINUTES(1));
    east->faults.down = true;
    apiserver_restart(east->server);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, MINUTES(1)));
    CHECK(link_cluster_view(east).retry_at - link_cluster_view(east).since <= LINK_BACKOFF_BASE);
    link_world_end(&w);
}

TEST(link_backs_off_while_its_secret_cannot_be_read)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    w.faults.down = true;
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
    CHECK_STR(link_cluster_view(east).trouble,
              "Secret 'default/east-kubeconfig': connection refused");
    w.faults.down = false;
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
    link_world_end(&w);
}

/* ── watching ──────────────────────────────────────────────────────────────────────────────── */

TEST(link_stays_fresh_over_streams_that_end_and_versions_that_expire)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_world_run(&w, HOURS(1)); /* the server ends streams every few minutes */
    apiserver_restart(east->server);
    link_world_run(&w, MINUTES(1));
    apiserver_compact(east->server); /* 410, and a new list */
    apiserver_restart(east->server);
    link_cluster_node(east, "c");
    link_cluster_node_delete(east, "a");
    link_world_run(&w, MINUTES(1));
    CHECK_EQ(east->states, 1);
    CHECK_EQ(link_cluster_view(east).connects, 1);
    CHECK(link_cluster_store_matches(east));
    CHECK_STR(buf_str(&east->gone), "a ");
    CHECK_STR(link_cluster_view(east).trouble, "");
    link_world_end(&w);
}

TEST(link_is_lost_when_its_watch_cannot_be_opened_for_long)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_world_run(&w, MINUTES(1));
    east->faults.down = true;
    apiserver_restart(east->server);
    usec_t cut = virtual_loop_now(w.time);
    link_world_run(&w, LINK_TROUBLE_MAX - SECONDS(1));
    CHECK(link_fresh(east->link));
    CHECK(
        str_contains(link_cluster_view(east).trouble, STR("connection"))); /* it says so already */
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(2)));
    CHECK(virtual_loop_now(w.time) - cut >= LINK_TROUBLE_MAX);
    CHECK_EQ(east->states, 2);
    CHECK_EQ(link_unreachable_since(east->link), virtual_loop_now(w.time));
    CHECK_EQ(store_count(link_nodes(east->link)), 0); /* nothing is known */
    CHECK_EQ(east->entry->open, 0);
    CHECK_STR(buf_str(&east->gone), ""); /* and nobody says that they were deleted */
    east->faults.down = false;
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(20)));
    CHECK(link_cluster_store_matches(east));
    CHECK_EQ(east->states, 3);
    link_world_end(&w);
}

TEST(link_stays_fresh_when_the_watch_comes_back_in_time)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    east->faults.down = true;
    apiserver_restart(east->server);
    link_cluster_node(east, "c");
    link_world_run(&w, SECONDS(5));
    east->faults.down = false;
    link_world_run(&w, MINUTES(2));
    CHECK_EQ(east->states, 1);
    CHECK(link_cluster_store_matches(east));
    CHECK_STR(link_cluster_view(east).trouble, "");
    link_world_end(&w);
}

TEST(link_notices_a_peer_that_falls_silent)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    east->faults.partitioned = true;
    CHECK(
        link_world_until(&w, east, LINK_BACKOFF, LINK_SILENCE_MAX + LINK_TROUBLE_MAX + SECONDS(2)));
    CHECK(virtual_loop_now(w.time) > SECONDS(60));
    east->faults.partitioned = false;
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(30)));
    link_world_end(&w);
}

/* ── closing (B17, B28) ────────────────────────────────────────────────────────────────────── */

TEST(link_closes_from_every_state)
{
    static const enum link_state states[] = { LINK_RESOLVING, LINK_LISTING, LINK_WATCHING,
                                              LINK_BACKOFF };
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        check_case((int64_t)i);
        struct link_world w;
        struct link_cluster *east = link_world_with_cluster(&w);
        east->entry->refusal = states[i] == LINK_BACKOFF ? "no" : NULL;
        link_open(east->link, /* hurry= */ false);
        CHECK(link_world_until(&w, east, states[i], SECONDS(1)));
        link_close(east->link);
        CHECK_EQ(link_state(east->link), states[i]); /* nothing happens inside the call */
        CHECK(link_world_until(&w, east, LINK_IDLE, 0));
        CHECK_EQ(east->idle, 1);
        CHECK_EQ(east->entry->open, 0);
        CHECK_EQ(link_unreachable_since(east->link), 0);
        CHECK_STR(link_cluster_view(east).trouble, "");
        CHECK_EQ(store_count(link_nodes(east->link)), 0);
        uint64_t reads = link_world_secret_reads(&w);
        link_world_run(&w, HOURS(1));
        CHECK_EQ(link_world_secret_reads(&w), reads);
        CHECK_EQ(east->idle, 1);
        east->entry->refusal = NULL;
        link_open(east->link, /* hurry= */ false);
        CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(1)));
        link_world_end(&w);
    }
    check_case(-1);
}

TEST(link_closed_and_opened_at_once_goes_on)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_close(east->link);
    link_open(east->link, /* hurry= */ false);
    link_world_run(&w, SECONDS(1));
    CHECK(link_fresh(east->link));
    CHECK_EQ(east->states, 1);
    link_world_end(&w);
}

static void free_it(struct link_cluster *cluster)
{
    link_free(STEAL(cluster->link));
}

TEST(link_may_be_freed_when_it_tells_of_its_state)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    east->on_state = free_it;
    link_open(east->link, /* hurry= */ false);
    link_world_run(&w, SECONDS(5));
    CHECK(east->link == NULL);
    CHECK_EQ(east->entry->open, 0);
    CHECK_EQ(east->node_updates, 0);
    link_world_end(&w);
}

TEST(link_may_be_freed_at_any_moment)
{
    for (usec_t at = 0; at < MSECONDS(30); at += 250) {
        struct link_world w;
        struct link_cluster *east = link_world_with_cluster(&w);
        link_open(east->link, /* hurry= */ false);
        link_world_run(&w, at);
        link_free(STEAL(east->link));
        CHECK_EQ(east->entry->open, 0);
        link_world_run(&w, SECONDS(60));
        link_world_end(&w);
    }
}

/* ── many ──────────────────────────────────────────────────────────────────────────────────── */

TEST(link_does_not_wait_for_a_dead_peer)
{
    struct link_world w;
    link_world_begin(&w, 1);
    struct link_cluster *dead = link_cluster_new(&w, "dead");
    dead->faults.partitioned = true; /* it takes connections and never answers */
    struct link_cluster *clusters[49];
    link_open(dead->link, /* hurry= */ false);
    for (size_t i = 0; i < ARRAY_LEN(clusters); i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "c%zu", i);
        clusters[i] = link_cluster_new(&w, name);
        link_cluster_node(clusters[i], "a");
        link_open(clusters[i]->link, /* hurry= */ false);
    }
    link_world_run(&w, SECONDS(3));
    for (int turn = 0; turn < 20; turn++) {
        for (size_t i = 0; i < ARRAY_LEN(clusters); i++) {
            CHECK(link_fresh(clusters[i]->link));
            link_cluster_label(clusters[i], "a", APPROVE, turn % 2 == 0);
        }
        link_world_run(&w, SECONDS(1));
        for (size_t i = 0; i < ARRAY_LEN(clusters); i++) {
            CHECK_EQ(clusters[i]->taken, turn + 2);
        }
    }
    CHECK(!link_fresh(dead->link));
    CHECK(link_cluster_view(dead).failures > 0);
    link_world_end(&w);
}

static void ignore_it(void *ctx UNUSED, struct link *l UNUSED)
{
}

TEST(link_of_one_name_in_two_namespaces_are_two)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    struct link *other = link_new(&(struct link_config){
        .management = &w.management,
        .dialer = w.dialer,
        .connects = &w.connects,
        .namespace = STR("another"),
        .cluster = STR("east"),
        .on_state = ignore_it,
        .on_nodes = ignore_it,
    });
    link_open(other, /* hurry= */ false);
    link_world_run(&w, MSECONDS(100));
    struct link_view view;
    link_view(other, &view);
    CHECK_EQ(view.state, LINK_BACKOFF);
    CHECK(str_starts(view.trouble, STR("Secret 'another/east-kubeconfig': ")));
    link_free(other);
    CHECK(link_fresh(east->link));
    link_world_end(&w);
}

#define CROWD 200

static void begin_crowd(struct link_world *w, struct link_cluster **clusters)
{
    for (size_t i = 0; i < CROWD; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "c%zu", i);
        clusters[i] = link_cluster_new(w, name);
        link_open(clusters[i]->link, /* hurry= */ false);
    }
}

static void count_event(void *ctx, const struct virtual_loop_event *event UNUSED)
{
    uint64_t *n = ctx;
    (*n)++;
}

TEST(links_connect_at_the_rate_they_share_and_the_hurried_go_first)
{
    struct link_world w;
    struct link_cluster *clusters[CROWD];
    uint64_t events = 0;
    link_world_begin(&w, 1);
    virtual_loop_trace(w.time, count_event, &events);
    begin_crowd(&w, clusters);
    link_world_run(&w, MSECONDS(500));
    usec_t asked = virtual_loop_now(w.time);
    link_open(clusters[199]->link, /* hurry= */ true);
    link_open(clusters[198]->link, /* hurry= */ true);
    link_world_run(&w, SECONDS(10));
    usec_t last = 0;
    for (size_t i = 0; i < CROWD; i++) {
        CHECK(link_fresh(clusters[i]->link));
        last = MAX(last, clusters[i]->fresh_at);
    }
    CHECK(last >= SECONDS(3));
    CHECK(last <= SECONDS(5));
    CHECK(clusters[199]->fresh_at <= asked + MSECONDS(50));
    CHECK(clusters[198]->fresh_at <= asked + MSECONDS(50));
    /* Those who wait do not all wake for each that may go. */
    CHECK(events < (uint64_t)CROWD * 40);
    link_world_end(&w);
}

TEST(link_in_a_hurry_keeps_the_rate_too)
{
    struct link_world w;
    struct link_cluster *clusters[CROWD];
    link_world_begin(&w, 1);
    begin_crowd(&w, clusters);
    for (size_t i = 0; i < CROWD; i++) {
        link_open(clusters[i]->link, /* hurry= */ true);
    }
    usec_t last = 0;
    link_world_run(&w, SECONDS(10));
    for (size_t i = 0; i < CROWD; i++) {
        last = MAX(last, clusters[i]->fresh_at);
    }
    CHECK(last >= SECONDS(2)); /* a second of it was taken in advance */
    CHECK(last <= SECONDS(3));
    link_world_end(&w);
}

TEST(link_that_was_fresh_goes_before_those_who_never_were)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    struct link_cluster *west = link_cluster_new(&w, "west");
    link_cluster_watch_secret(east);
    link_world_run(&w, SECONDS(5));
    for (int i = 0; i < 75; i++) { /* others take all there is, and half a second more */
        ratelimit_take(&w.connects, virtual_loop_now(w.time));
    }
    link_open(west->link, /* hurry= */ false);
    link_cluster_secret(east, "t2");
    apiserver_set_token(east->server, STR("t2"));
    link_cluster_watch_secret(east);
    link_world_run(&w, MSECONDS(50));
    CHECK(link_fresh(east->link));
    CHECK_EQ(link_cluster_view(east).connects, 2);
    CHECK_EQ(link_cluster_view(west).connects, 0);
    link_world_run(&w, SECONDS(1));
    CHECK(link_fresh(west->link));
    link_world_end(&w);
}
