/* Links and their Secrets: what is wrong with one, and what follows when it changes. */
#include "base/alloc.h"
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/link_fixture.h"

#define APPROVE KEYS_LEGACY "approve-deletion"

/* ── Secrets ───────────────────────────────────────────────────────────────────────────────── */

TEST(link_names_the_secret_and_what_is_wrong_with_it)
{
    static const struct {
        const char *text; /* NULL = there is no Secret */
        const char *trouble;
    } cases[] = {
        { NULL,
          "Secret 'default/east-kubeconfig': there is none, want one with a kubeconfig in its "
          "key 'value'" },
        { "",
          "Secret 'default/east-kubeconfig': its key 'value' is empty, want a kubeconfig there" },
        { "\n",
          "Secret 'default/east-kubeconfig': its key 'value' is empty, want a kubeconfig there" },
        { "clusters: []",
          "Secret 'default/east-kubeconfig': the kubeconfig names no server of a cluster" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct link_world w;
        link_world_begin(&w, i);
        struct link_cluster *east = link_cluster_with_kubeconfig(&w, "east", cases[i].text);
        link_open(east->link, /* hurry= */ false);
        CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
        CHECK_STR(link_cluster_view(east).trouble, cases[i].trouble);
        CHECK_EQ(link_cluster_view(east).failures, 1);
        CHECK_EQ(east->states, 0);
        CHECK(link_unreachable_since(east->link) > 0);
        link_world_end(&w);
    }
    check_case(-1);
}

TEST(link_names_a_secret_without_the_key)
{
    struct link_world w;
    link_world_begin(&w, 1);
    struct link_cluster *east = link_cluster_with_kubeconfig(&w, "east", NULL);
    struct apiserver_reply reply = { 0 };
    apiserver_handle(
        w.server,
        &(struct apiserver_request){
            .method = STR("POST"),
            .path = STR("/api/v1/namespaces/default/secrets"),
            .content_type = STR("application/json"),
            .body = STR("{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":"
                        "{\"name\":\"east-kubeconfig\"},\"data\":{\"valu\":\"YQ==\"}}"),
        },
        &w.memory, &reply);
    CHECK_EQ(reply.status, 201);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
    CHECK_STR(link_cluster_view(east).trouble, "Secret 'default/east-kubeconfig': it has no key "
                                               "'value', want a kubeconfig there");
    link_world_end(&w);
}

TEST(link_does_not_take_a_secret_of_any_size)
{
    struct link_world w;
    link_world_begin(&w, 1);
    struct link_cluster *east = link_cluster_with_kubeconfig(&w, "east", NULL);
    char *huge = alloc_bytes(LINK_SECRET_BYTES_MAX + 8);
    memset(huge, '#', LINK_SECRET_BYTES_MAX + 8);
    link_cluster_secret_text(east, (struct str){ huge, LINK_SECRET_BYTES_MAX + 8 });
    alloc_free(huge);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
    CHECK_STR(link_cluster_view(east).trouble,
              "Secret 'default/east-kubeconfig': a kubeconfig of more than 524288 bytes");
    link_world_end(&w);
}

TEST(link_says_why_a_kubeconfig_was_refused)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    east->entry->refusal = "'exec' is not taken from a Secret";
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
    CHECK_STR(link_cluster_view(east).trouble,
              "Secret 'default/east-kubeconfig': 'exec' is not taken from a Secret");
    CHECK_EQ(east->entry->open, 0);
    link_world_end(&w);
}

TEST(link_asks_for_a_secret_whose_name_needs_care)
{
    struct link_world w;
    link_world_begin(&w, 1);
    struct link_cluster *odd = link_cluster_with_kubeconfig(&w, "../nodes/a?x", NULL);
    link_open(odd->link, /* hurry= */ false);
    CHECK(link_world_until(&w, odd, LINK_BACKOFF, SECONDS(1)));
    CHECK_STR(link_cluster_view(odd).trouble,
              "Secret 'default/../nodes/a?x-kubeconfig': there is none, "
              "want one with a kubeconfig in its key 'value'");
    link_world_end(&w);
}

TEST(link_begins_when_its_secret_comes)
{
    struct link_world w;
    link_world_begin(&w, 1);
    struct link_cluster *east = link_cluster_with_kubeconfig(&w, "east", NULL);
    link_cluster_watch_secret(east);
    link_open(east->link, /* hurry= */ false);
    link_world_run(&w, HOURS(1));
    CHECK_EQ(link_state(east->link), LINK_BACKOFF);
    CHECK(link_cluster_view(east).retry_at > loop_now(w.loop) + SECONDS(1));
    link_cluster_secret(east, "t1");
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(1)));
    link_world_end(&w);
}

/* ── rotation (B26) ────────────────────────────────────────────────────────────────────────── */

TEST(link_takes_a_new_secret_within_seconds_and_closes_the_old_connection)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_cluster_watch_secret(east);
    link_world_run(&w, MINUTES(1));
    CHECK_EQ(link_cluster_view(east).connects, 1); /* it was read in that version */
    apiserver_set_token(east->server, STR("t2"));
    link_cluster_secret(east, "t2");
    link_cluster_watch_secret(east);
    usec_t changed = virtual_loop_now(w.time);
    CHECK(link_world_until(&w, east, LINK_RESOLVING, 0));
    CHECK_EQ(east->entry->open, 0);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
    CHECK(virtual_loop_now(w.time) - changed <= SECONDS(5));
    CHECK_EQ(east->entry->open, 1);
    CHECK_EQ(link_cluster_view(east).connects, 2);
    CHECK_EQ(link_cluster_view(east).failures, 0); /* no 401 was needed */
    CHECK(link_cluster_store_matches(east));
    link_world_end(&w);
}

TEST(link_told_twice_of_one_version_reads_once)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    for (int i = 0; i < 10; i++) {
        link_on_secret(east->link, 1); /* what a watch that is behind would say */
        link_world_run(&w, SECONDS(5));
    }
    CHECK_EQ(link_cluster_view(east).connects, 2);
    link_cluster_watch_secret(east);
    link_world_run(&w, SECONDS(5));
    CHECK_EQ(link_cluster_view(east).connects, 2);
    link_world_end(&w);
}

TEST(link_told_of_the_version_it_is_reading_reads_once)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    link_open(east->link, /* hurry= */ false);
    link_world_run(&w, 0);
    CHECK_EQ(link_world_secret_reads(&w), 1);
    link_cluster_watch_secret(east); /* the answer is under way */
    link_world_run(&w, SECONDS(10));
    CHECK(link_fresh(east->link));
    CHECK_EQ(link_cluster_view(east).connects, 1);
    link_world_end(&w);
}

TEST(link_told_of_a_newer_version_than_it_reads_reads_again)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_LISTING, SECONDS(1)));
    apiserver_set_token(east->server, STR("t2"));
    link_cluster_secret(east, "t2");
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_RESOLVING, 0));
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(3)));
    CHECK_EQ(link_cluster_view(east).connects, 2);
    link_world_end(&w);
}

TEST(link_begins_its_waits_anew_with_another_secret)
{
    struct link_world w;
    struct link_cluster *east = link_world_with_cluster(&w);
    apiserver_set_token(east->server, STR("t3"));
    link_cluster_watch_secret(east);
    link_open(east->link, /* hurry= */ false);
    link_world_run(&w, HOURS(1));
    CHECK(link_cluster_view(east).retry_at - link_cluster_view(east).since >= LINK_BACKOFF_MAX / 2);
    link_cluster_secret(east, "t2"); /* not the right one, either */
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_RESOLVING, 0));
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(5)));
    CHECK(link_cluster_view(east).retry_at - link_cluster_view(east).since <= LINK_BACKOFF_BASE);
    link_world_end(&w);
}

TEST(link_whose_secret_is_gone_gives_the_connection_up)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_cluster_watch_secret(east);
    link_cluster_secret_delete(east);
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(2)));
    CHECK(str_contains(link_cluster_view(east).trouble, STR("there is none")));
    link_world_end(&w);
}

TEST(link_whose_secret_changes_all_the_time_tries_once_a_second)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    for (int i = 0; i < 1000; i++) {
        link_on_secret(east->link, 100000 + (uint64_t)i);
        link_world_run(&w, MSECONDS(10));
    }
    CHECK(link_cluster_view(east).connects <= 12);
    CHECK(link_cluster_view(east).connects >= 9);
    link_world_end(&w);
}

TEST(link_reads_the_secret_again_by_itself_every_ten_minutes)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_world_run(&w, MINUTES(35));
    CHECK_EQ(link_world_secret_reads(&w), 4);
    CHECK_EQ(link_cluster_view(east).connects, 1);
    CHECK_EQ(east->states, 1);
    struct str text = sim_clusters_kubeconfig(STR("https://east"), STR("t1"), &w.memory);
    link_cluster_secret_text(east, arena_concat(&w.memory, text, STR("# another version")));
    link_world_run(&w, LINK_REREAD + SECONDS(5));
    CHECK_EQ(link_cluster_view(east).connects, 2);
    CHECK(link_fresh(east->link));
    CHECK_EQ(east->states, 3);
    link_world_end(&w);
}

TEST(link_that_follows_the_secret_does_not_read_again_by_itself)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_cluster_watch_secret(east);
    link_world_run(&w, HOURS(2));
    CHECK_EQ(link_world_secret_reads(&w), 1);
    link_world_end(&w);
}

/* Its type cannot be changed, so somebody deletes it and makes another: that one is not watched. */
TEST(link_whose_secret_was_replaced_by_one_that_is_not_watched_reads_again_by_itself)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_cluster_watch_secret(east);
    link_cluster_secret_delete(east);
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(2)));
    link_cluster_secret(east, "t1");
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
    uint64_t before = link_cluster_view(east).connects;
    struct str text = sim_clusters_kubeconfig(STR("https://east"), STR("t1"), &w.memory);
    link_cluster_secret_text(east, arena_concat(&w.memory, text, STR("# another version")));
    link_world_run(&w, LINK_REREAD + SECONDS(5));
    CHECK_EQ(link_cluster_view(east).connects, before + 1);
    CHECK(link_fresh(east->link));
    link_world_end(&w);
}

TEST(link_keeps_a_connection_that_works_when_the_secret_cannot_be_read)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    w.faults.down = true;
    link_world_run(&w, HOURS(1));
    CHECK(link_fresh(east->link));
    CHECK_EQ(east->states, 1);
    link_world_end(&w);
}

TEST(link_reads_the_secret_at_once_when_its_password_is_refused)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_world_run(&w, MINUTES(1));
    apiserver_set_token(east->server, STR("t2"));
    link_cluster_secret(east, "t2"); /* nobody tells the link */
    apiserver_restart(east->server);
    usec_t cut = virtual_loop_now(w.time);
    CHECK(link_world_until(&w, east, LINK_RESOLVING, SECONDS(2)));
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(2)));
    CHECK(virtual_loop_now(w.time) - cut < SECONDS(2));
    CHECK_EQ(link_cluster_view(east).failures, 1);
    link_world_end(&w);
}

TEST(link_recovers_by_itself_after_ten_passwords_were_refused)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_world_run(&w, MINUTES(1));
    apiserver_set_token(east->server, STR("t2"));
    apiserver_restart(east->server);
    usec_t began = virtual_loop_now(w.time);
    while (link_cluster_view(east).failures < 10) {
        link_world_run(&w, SECONDS(10));
        CHECK(virtual_loop_now(w.time) - began < HOURS(1));
    }
    CHECK(!link_fresh(east->link));
    CHECK(str_contains(link_cluster_view(east).trouble, STR("401")));
    /* At once the first time, then ever more slowly. */
    CHECK(virtual_loop_now(w.time) - began > MINUTES(3));
    link_cluster_secret(east, "t2");
    CHECK(link_world_until(&w, east, LINK_WATCHING, LINK_BACKOFF_MAX + SECONDS(5)));
    CHECK(link_cluster_store_matches(east));
    link_world_end(&w);
}

TEST(link_recovers_at_once_when_the_good_secret_is_seen)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    link_cluster_watch_secret(east);
    apiserver_set_token(east->server, STR("t2"));
    apiserver_restart(east->server);
    link_world_run(&w, HOURS(1));
    CHECK_EQ(link_state(east->link), LINK_BACKOFF);
    link_cluster_secret(east, "t2");
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(2)));
    link_world_end(&w);
}

TEST(link_does_not_compare_the_versions_of_two_servers)
{
    struct link_world w;
    struct link_cluster *east = link_world_fresh(&w);
    for (int i = 0; i < 20; i++) {
        link_cluster_label(east, "a", APPROVE, i % 2 == 0);
    }
    link_world_run(&w, SECONDS(1));
    /* Behind the same address another server answers, whose versions are lower. */
    struct apiserver *restored = apiserver_new(w.loop, 7);
    apiserver_set_token(restored, STR("t2"));
    struct apiserver *old = east->server;
    link_cluster_secret(east, "t2");
    east->server = restored;
    east->entry->server = restored;
    link_cluster_node(east, "z");
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_RESOLVING, SECONDS(1)));
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(3)));
    CHECK(link_cluster_store_matches(east));
    apiserver_free(old);
    link_world_end(&w);
}
