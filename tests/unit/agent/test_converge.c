#include "agent/converge.h"

#include <unistd.h>

#include "sandbox/sim/virtual_loop.h"
#include "tests/lib/agent_fixture.h"

/* A type that notes in a file of the machine that it was refreshed. */
static int note_refresh(struct resource_call *call, struct err *err)
{
    struct root_place place;
    int r = root_walk(call->root, STR("/etc/refreshed"), 0, &place, err);
    if (r == 0) {
        r = root_append(call->root, &place, STR("x"), err);
        root_place_done(&place);
    }
    return r;
}

static struct resource_type listening;

static void make_listening(struct resource *r)
{
    if (str_eq(r->name, STR("listener"))) {
        listening = *r->type;
        listening.refresh = note_refresh;
        r->type = &listening;
    }
}

static const char config[] = "resources:\n"
                             "- {name: config, type: file, path: /etc/config, content: new, "
                             "notifies: [listener]}\n"
                             "- {name: listener, type: directory, path: /etc/listener}\n";

static void with_config(struct agent_fixture *f)
{
    agent_write(f, "/etc/config", "old");
    agent_mkdir(f, "/etc/listener");
    f->on_resource = make_listening;
}

TEST(converge_refreshes_once_and_a_second_run_changes_nothing)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    with_config(&f);
    agent_run(&f, config);
    CHECK_STR(agent_said(&f, "config"), "Ok, changed");
    CHECK_STR(agent_said(&f, "listener"), "Ok, refreshed");
    CHECK_STR(agent_read(&f, "/etc/refreshed"), "x");
    struct str before = agent_tree(&f);
    agent_run(&f, config);
    CHECK_STR(agent_said(&f, "config"), "Ok");
    CHECK_STR(agent_said(&f, "listener"), "Ok");
    CHECK_STR(agent_tree(&f), before);
    agent_fixture_done(&f);
}

static void judge_left(struct agent_fixture *f)
{
    struct str content = agent_read(f, "/etc/config");
    CHECK(str_eq(content, STR("old")) || str_eq(content, STR("new")));
}

/* A kill between the new file and the refresh does not lose the refresh. */
static void judge_refreshed(struct agent_fixture *f)
{
    CHECK_STR(agent_read(f, "/etc/config"), "new");
    CHECK(agent_read(f, "/etc/refreshed").n >= 1);
    CHECK(!str_eq(agent_read(f, "/etc/refreshed"), STR("(none)")));
}

TEST(converge_loses_no_refresh_wherever_it_is_killed)
{
    agent_kill_everywhere(config, with_config, judge_left, judge_refreshed);
}

TEST(converge_changes_nothing_in_a_noop_run)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    with_config(&f);
    struct str before = agent_tree(&f);
    agent_noop(&f, config);
    CHECK_STR(agent_said(&f, "config"), "Noop");
    CHECK_STR(agent_said(&f, "listener"), "Noop");
    CHECK_STR(agent_tree(&f), before);
    CHECK_EQ(agent_mode(&f, "/var"), 0); /* not even the agent's own folder */
    agent_fixture_done(&f);
}

TEST(converge_leaves_one_resource_alone_that_says_noop)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_run(&f, "resources:\n"
                  "- {name: a, type: file, path: /a, content: x, meta: {noop: true}}\n"
                  "- {name: b, type: file, path: /b, content: x}\n");
    CHECK_STR(agent_said(&f, "a"), "Noop");
    CHECK_STR(agent_said(&f, "b"), "Ok, changed");
    CHECK_STR(agent_read(&f, "/a"), "(none)");
    agent_fixture_done(&f);
}

TEST(converge_goes_on_with_the_others_when_one_fails)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/etc/a");
    agent_run(&f, "resources:\n"
                  "- {name: a, type: file, path: /etc/a, content: x}\n"
                  "- {name: b, type: file, path: /etc/b, content: x, requires: [a]}\n"
                  "- {name: c, type: file, path: /etc/c, content: x}\n");
    CHECK_STR(agent_said(&f, "a"), "Failed: '/etc/a' is a folder, want a file");
    CHECK_STR(agent_said(&f, "b"), "Blocked: waits for 'a', which is Failed");
    CHECK_STR(agent_said(&f, "c"), "Ok, changed");
    CHECK(!converge_is_good(&f.converge));
    agent_fixture_done(&f);
}

/* Fails as long as the time is short. */
static struct agent_fixture *clock_of;

static int fail_early(struct resource_call *call UNUSED, struct err *err)
{
    return virtual_loop_now(clock_of->time) < SECONDS(6) ? err_set(err, ERR_IO, "not yet") : 0;
}

static struct resource_type slow;

static void make_slow(struct resource *r)
{
    slow = *r->type;
    slow.check = fail_early;
    r->type = &slow;
}

TEST(converge_tries_again_after_a_wait_that_doubles)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    clock_of = &f;
    f.on_resource = make_slow;
    agent_run(&f, "resources: [{name: a, type: file, path: /a, meta: {retries: 2}}]");
    CHECK_STR(agent_said(&f, "a"), "Failed: not yet");
    CHECK_EQ(agent_vertex(&f, "a")->tries, 3);
    CHECK(virtual_loop_now(f.time) >= MSECONDS(1500) && virtual_loop_now(f.time) <= SECONDS(3));
    agent_run(&f, "resources: [{name: a, type: file, path: /a, meta: {retries: -1}}]");
    CHECK_STR(agent_said(&f, "a"), "Ok");
    agent_fixture_done(&f);
}

TEST(converge_forgets_marks_of_resources_that_nobody_asks_for)
{
    struct agent_fixture f;
    struct err err = { 0 };
    struct journal j;
    struct str ids[] = { STR("directory:/etc/listener"), STR("exec:gone") };
    agent_fixture_init(&f);
    with_config(&f);
    agent_write(&f, "/etc/config", "new");
    CHECK_EQ(journal_open(&j, &f.root, STR("/var/lib/drydock/agent/journal"), 0, &err), 0);
    CHECK_EQ(journal_mark(&j, ids, 2, &err), 0);
    journal_done(&j);
    agent_run(&f, config);
    CHECK_STR(agent_said(&f, "config"), "Ok");
    CHECK_STR(agent_said(&f, "listener"), "Ok, refreshed"); /* the mark of a life before */
    CHECK_EQ(journal_open(&j, &f.root, STR("/var/lib/drydock/agent/journal"), 0, &err), 0);
    CHECK_EQ(map_count(&j.marks), 0);
    journal_done(&j);
    agent_fixture_done(&f);
}

/* ── what is taken off the list ────────────────────────────────────────────────────────────── */

#define KEEP_ONE "- {name: other, type: file, path: /etc/other, content: x}\n"

TEST(converge_takes_back_what_is_not_listed_any_more_the_last_first)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "before");
    CHECK_EQ(chmod(agent_outside(&f, "/etc/a"), 0600), 0);
    agent_write(&f, "/etc/gone", "still here");
    CHECK_EQ(symlink("before", agent_outside(&f, "/etc/link")), 0);
    agent_run(&f, "resources:\n" KEEP_ONE
                  "- {name: a, type: file, path: /etc/a, content: ours, mode: '0644', "
                  "meta: {onRemove: Restore}}\n"
                  "- {name: gone, type: file, path: /etc/gone, state: absent, "
                  "meta: {onRemove: Restore}}\n"
                  "- {name: link, type: symlink, path: /etc/link, target: ours, "
                  "meta: {onRemove: Restore}}\n"
                  "- {name: dir, type: directory, path: /srv/d, meta: {onRemove: Remove}}\n"
                  "- {name: in, type: file, path: /srv/d/f, content: x, meta: {onRemove: Remove}}\n"
                  "- {name: kept, type: file, path: /etc/kept, content: x}\n");
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/gone"), "(none)");
    agent_noop(&f, "resources:\n" KEEP_ONE);
    CHECK_EQ(f.converge.removal_n, 6);
    CHECK(!f.converge.removals[0].done);
    CHECK_STR(agent_read(&f, "/etc/a"), "ours");
    agent_run(&f, "resources:\n" KEEP_ONE);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/etc/a"), "before");
    CHECK_EQ(agent_mode(&f, "/etc/a"), 0600);
    CHECK_STR(agent_read(&f, "/etc/gone"), "still here");
    CHECK_STR(agent_link(&f, "/etc/link"), "before");
    CHECK_EQ(agent_mode(&f, "/srv/d"), 0);
    CHECK_STR(agent_read(&f, "/etc/kept"), "x");
    agent_run(&f, "resources:\n" KEEP_ONE);
    CHECK_EQ(f.converge.removal_n, 0);
    agent_fixture_done(&f);
}

TEST(converge_keeps_the_first_original_through_later_changes)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "first");
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, content: second}]");
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, content: third, "
                  "meta: {onRemove: Restore}}]");
    agent_run(&f, "resources:\n" KEEP_ONE);
    CHECK_STR(agent_read(&f, "/etc/a"), "first");
    agent_fixture_done(&f);
}

TEST(converge_leaves_a_folder_of_its_own_that_somebody_uses)
{
    struct agent_fixture f;
    agent_fixture_init(&f);
    agent_mkdir(&f, "/etc");
    agent_run(&f, "resources:\n" KEEP_ONE "- {name: dir, type: directory, path: /srv/d, "
                  "meta: {onRemove: Restore}}\n");
    agent_write(&f, "/srv/d/foreign", "x");
    agent_run(&f, "resources:\n" KEEP_ONE);
    CHECK(converge_is_good(&f.converge));
    CHECK_STR(agent_read(&f, "/srv/d/foreign"), "x");
    agent_fixture_done(&f);
}

TEST(converge_keeps_originals_from_other_readers)
{
    struct agent_fixture f;
    struct err err = { 0 };
    struct str *names;
    uint32_t n;
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "secret");
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, content: x}]");
    CHECK_EQ(root_list(&f.root, STR("/var/lib/drydock/agent/orig"), 0, &f.memory, &names, &n, &err),
             0);
    CHECK_EQ(n, 2);
    for (uint32_t i = 0; i < n; i++) {
        struct str path =
            arena_printf(&f.memory, "/var/lib/drydock/agent/orig/" STR_FMT, STR_ARG(names[i]));
        CHECK_EQ(agent_mode(&f, path.p), 0600);
    }
    agent_fixture_done(&f);
}

TEST(converge_tells_no_values_of_a_sensitive_resource)
{
    struct agent_fixture f;
    CLEANUP(buf_done)
    struct buf out = { 0 };
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "old-secret");
    agent_run(&f, "resources: [{name: a, type: file, path: /etc/a, content: new-secret, "
                  "meta: {sensitive: true}}]");
    converge_print_text(&f.converge, &out);
    converge_print_json(&f.converge, &out);
    CHECK(!str_contains(buf_str(&out), STR("secret")));
    CHECK(str_contains(buf_str(&out), STR("    content differs\n")));
    agent_fixture_done(&f);
}

TEST(converge_prints_what_it_did)
{
    struct agent_fixture f;
    CLEANUP(buf_done)
    struct buf out = { 0 };
    agent_fixture_init(&f);
    agent_write(&f, "/etc/a", "one\ntwo\n");
    agent_run(&f, "resources:\n"
                  "- {name: a, type: file, path: /etc/a, content: \"one\\ntoo\\n\"}\n"
                  "- {name: b, type: fil}\n");
    converge_print_text(&f.converge, &out);
    CHECK_STR(buf_str(&out), "changed: a (file:/etc/a)\n"
                             "    content: 'line 2: two' → 'line 2: too'\n"
                             "failed: b (invalid:b): Invalid: unknown type 'fil', did you mean "
                             "'file'?\n"
                             "1 of 2 right, 1 changed, 1 failed\n");
    buf_reset(&out);
    converge_print_json(&f.converge, &out);
    CHECK_STR(
        buf_str(&out),
        "{\"counts\":{\"total\":2,\"ok\":1,\"noop\":0,\"failed\":1,\"blocked\":0,"
        "\"deferred\":0,\"contested\":0,\"vetoed\":0,\"changed\":1},\"resources\":[{\"name\":\"a\","
        "\"id\":\"file:/etc/a\","
        "\"state\":\"Ok\",\"changed\":true,\"refreshed\":false,\"differences\":[{"
        "\"property\":\"content\",\"was\":\"line 2: two\",\"want\":\"line 2: too\"}]},{"
        "\"name\":\"b\",\"id\":\"invalid:b\",\"state\":\"Failed\",\"changed\":false,"
        "\"refreshed\":false,\"reason\":\"Invalid\",\"message\":\"unknown type 'fil', did you "
        "mean 'file'?\",\"tries\":0,\"differences\":[]}],\"removed\":[]}\n");
    agent_fixture_done(&f);
}
