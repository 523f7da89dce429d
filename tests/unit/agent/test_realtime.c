/* The whole agent on a temporary root and virtual time; inotify is real, and its events are there
 * as soon as the call that causes them is back. */
#include "agent/realtime.h"

#include <unistd.h>

#include "sandbox/sim/virtual_loop.h"
#include "tests/lib/agent_fixture.h"

struct fixture {
    struct agent_fixture machine;
    struct realtime *agent;
    const char *text;
    void (*on_change)(void *ctx);
    void *change_ctx;
    struct log log;
    struct buf lines;
    bool stopped;
};

static struct str source_name(void *ctx UNUSED)
{
    return STR("list.yaml");
}

static int source_read(void *ctx, struct arena *out, struct str *ret, struct err *err UNUSED)
{
    const struct fixture *f = ctx;
    *ret = arena_str(out, str_from(f->text));
    return 0;
}

static int source_follow(void *ctx, void (*on_change)(void *ctx), void *change_ctx,
                         struct err *err UNUSED)
{
    struct fixture *f = ctx;
    f->on_change = on_change;
    f->change_ctx = change_ctx;
    return 0;
}

static void write_line(void *ctx, struct str line)
{
    struct fixture *f = ctx;
    buf_add(&f->lines, line);
}

static void on_stopped(void *ctx)
{
    struct fixture *f = ctx;
    f->stopped = true;
}

static struct realtime_spec spec_of(struct fixture *f)
{
    return (struct realtime_spec){
        .loop = virtual_loop_root(f->machine.time),
        .root = &f->machine.root,
        .source = { .name = source_name, .read = source_read, .follow = source_follow, .ctx = f },
        .rules = { .allowed = DISRUPTION_VISIT, .retries = -1 },
        .state_dir = STR("/var/lib/drydock/agent"),
        .log = &f->log,
        .on_stopped = on_stopped,
        .ctx = f,
    };
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    agent_fixture_init(&f->machine);
    f->log = (struct log){ .write = write_line, .ctx = f };
}

static void fixture_done(struct fixture *f)
{
    realtime_free(f->agent);
    buf_done(&f->lines);
    agent_fixture_done(&f->machine);
}

/* Everything that is due within `time`. */
static void run_for(struct fixture *f, usec_t time)
{
    usec_t end = virtual_loop_now(f->machine.time) + time;
    if (f->agent != NULL) {
        realtime_read(f->agent);
    }
    while (virtual_loop_step(f->machine.time, end)) {
        realtime_read(f->agent);
    }
}

static void begin(struct fixture *f, const char *text)
{
    struct err err = { 0 };
    struct realtime_spec spec = spec_of(f);
    f->text = text;
    f->agent = realtime_new(&spec, &err);
    if (f->agent == NULL) {
        check_fail(__FILE__, __LINE__, "refused: %s", err.msg);
    }
    run_for(f, SECONDS(1));
}

static void change(struct fixture *f, const char *text)
{
    f->text = text;
    f->on_change(f->change_ctx);
    run_for(f, SECONDS(1));
}

static const struct vertex *vertex(const struct fixture *f, const char *name)
{
    const struct converge *c = realtime_converge(f->agent);
    for (uint32_t i = 0; i < c->spec.graph->resources->n; i++) {
        if (str_eq(c->spec.graph->resources->items[i].name, str_from(name))) {
            return &c->engine.vertices[i];
        }
    }
    check_fail(__FILE__, __LINE__, "there is no resource %s", name);
}

/* How often a text was told. */
static uint32_t said(struct fixture *f, const char *text)
{
    uint32_t n = 0;
    struct str rest = buf_str(&f->lines);
    struct str left;
    while (str_cut(rest, str_from(text), &left, &rest)) {
        n++;
    }
    return n;
}

static const char list[] = "resources:\n"
                           "- {name: dir, type: directory, path: /srv/d, mode: '0755'}\n"
                           "- {name: file, type: file, path: /srv/d/file, content: right}\n"
                           "- {name: link, type: symlink, path: /srv/link, target: d/file}\n"
                           "- {name: other, type: file, path: /etc/other, content: x}\n";

TEST(realtime_repairs_what_was_changed_and_looks_at_nothing_else)
{
    struct fixture f;
    fixture_init(&f);
    agent_mkdir(&f.machine, "/etc");
    agent_mkdir(&f.machine, "/srv");
    begin(&f, list);
    CHECK_EQ(said(&f, "resource changed"), 4);
    agent_write(&f.machine, "/srv/d/file", "wrong");
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/srv/d/file"), "right");
    CHECK_EQ(said(&f, "resource repaired"), 1);
    CHECK_EQ(unlink(agent_outside(&f.machine, "/srv/link")), 0);
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_link(&f.machine, "/srv/link"), "d/file");
    CHECK_EQ(said(&f, "resource repaired"), 2);
    CHECK_EQ(vertex(&f, "other")->contest == NULL, true);
    fixture_done(&f);
}

TEST(realtime_makes_a_removed_folder_again_with_what_was_in_it)
{
    struct fixture f;
    fixture_init(&f);
    agent_mkdir(&f.machine, "/etc");
    agent_mkdir(&f.machine, "/srv");
    begin(&f, list);
    CHECK_EQ(unlink(agent_outside(&f.machine, "/srv/d/file")), 0);
    CHECK_EQ(rmdir(agent_outside(&f.machine, "/srv/d")), 0);
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/srv/d/file"), "right");
    CHECK_EQ(said(&f, "resource repaired"), 2);
    CHECK_EQ(said(&f, "resource failed"), 0);
    fixture_done(&f);
}

TEST(realtime_does_not_look_at_its_own_changes)
{
    struct fixture f;
    fixture_init(&f);
    agent_mkdir(&f.machine, "/etc");
    agent_mkdir(&f.machine, "/srv");
    begin(&f, list);
    agent_write(&f.machine, "/etc/other", "wrong");
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/etc/other"), "x");
    /* Nothing is left that would wake it: no audit was asked for. */
    CHECK(!virtual_loop_step(f.machine.time, virtual_loop_now(f.machine.time) + DAYS(30)));
    fixture_done(&f);
}

TEST(realtime_looks_at_everything_now_and_then)
{
    struct fixture f;
    struct err err = { 0 };
    fixture_init(&f);
    struct realtime_spec spec = spec_of(&f);
    spec.audit = HOURS(6);
    spec.watches_max = 1; /* it sees next to nothing */
    f.text = "resources: [{name: a, type: file, path: /etc/a, content: right}]";
    agent_mkdir(&f.machine, "/etc");
    f.agent = realtime_new(&spec, &err);
    CHECK(f.agent != NULL);
    run_for(&f, SECONDS(1));
    CHECK_EQ(said(&f, "some resources cannot be watched and are polled"), 1);
    CHECK_EQ(said(&f, "fs.inotify.max_user_watches"), 1);
    agent_write(&f.machine, "/etc/a", "wrong");
    run_for(&f, REALTIME_POLL * 2);
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    CHECK_EQ(said(&f, "some resources cannot be watched and are polled"), 1);
    fixture_done(&f);

    /* A writer whom no event shows: the watch's news are thrown away. */
    fixture_init(&f);
    spec = spec_of(&f);
    spec.audit = HOURS(6);
    f.text = "resources: [{name: a, type: file, path: /etc/a, content: right}]";
    agent_mkdir(&f.machine, "/etc");
    f.agent = realtime_new(&spec, &err);
    CHECK(f.agent != NULL);
    run_for(&f, SECONDS(1));
    CHECK_EQ(said(&f, "cannot be watched"), 0);
    agent_write(&f.machine, "/etc/a", "wrong");
    struct realtime *deaf = STEAL(f.agent); /* so that nothing reads events */
    usec_t end = virtual_loop_now(f.machine.time) + HOURS(4);
    while (virtual_loop_step(f.machine.time, end)) {
    }
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "wrong");
    end = virtual_loop_now(f.machine.time) + HOURS(8);
    while (virtual_loop_step(f.machine.time, end)) {
    }
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    f.agent = deaf;
    fixture_done(&f);
}

TEST(realtime_adopts_a_new_list_and_touches_only_what_has_changed)
{
    struct fixture f;
    fixture_init(&f);
    agent_mkdir(&f.machine, "/etc");
    agent_mkdir(&f.machine, "/srv");
    begin(&f, list);
    agent_write(&f.machine, "/etc/other", "changed while the list changes");
    change(&f, "resources:\n"
               "- {name: dir, type: directory, path: /srv/d, mode: '0755'}\n"
               "- {name: file, type: file, path: /srv/d/file, content: newer}\n"
               "- {name: other, type: file, path: /etc/other, content: x}\n");
    CHECK_STR(agent_read(&f.machine, "/srv/d/file"), "newer");
    CHECK_STR(agent_read(&f.machine, "/etc/other"), "x"); /* no event was lost */
    CHECK_EQ(said(&f, "resource changed"), 5);
    CHECK_EQ(said(&f, "resource taken off the list"), 1);
    CHECK_EQ(said(&f, "list adopted"), 2);
    agent_write(&f.machine, "/srv/d/file", "wrong");
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/srv/d/file"), "newer");
    fixture_done(&f);
}

TEST(realtime_keeps_the_old_list_when_the_new_one_is_wrong)
{
    struct fixture f;
    fixture_init(&f);
    agent_mkdir(&f.machine, "/etc");
    begin(&f, "resources: [{name: a, type: file, path: /etc/a, content: right}]");
    change(&f, "resources:\n- {name: a, type: file, path: /etc/a, requires: [a]}\n");
    CHECK_EQ(said(&f, "list refused, the old one stays in force from=list.yaml line=2 column=3"),
             1);
    CHECK_EQ(said(&f, "resources go in a circle: 'a' waits for 'a'"), 1);
    agent_write(&f.machine, "/etc/a", "wrong");
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    change(&f, "resources: [{name: a, type: file, path: /etc/a, content: newer}]");
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "newer");
    fixture_done(&f);
}

TEST(realtime_backs_off_when_somebody_else_keeps_changing_it)
{
    struct fixture f;
    fixture_init(&f);
    agent_mkdir(&f.machine, "/etc");
    begin(&f, "resources: [{name: a, type: file, path: /etc/a, content: right}]");
    for (uint32_t i = 0; i < 5; i++) {
        agent_write(&f.machine, "/etc/a", "wrong");
        run_for(&f, SECONDS(1));
        CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    }
    agent_write(&f.machine, "/etc/a", "wrong");
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "wrong");
    CHECK_STR(vertex_state_names[vertex(&f, "a")->state], "Contested");
    CHECK_EQ(said(&f, "resource contested name=a"), 1);
    run_for(&f, SECONDS(11));
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    agent_write(&f.machine, "/etc/a", "wrong"); /* the next wait is longer */
    run_for(&f, SECONDS(9));
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "wrong");
    run_for(&f, SECONDS(12));
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    CHECK(engine_is_contested(&realtime_converge(f.agent)->engine, 0,
                              virtual_loop_now(f.machine.time)));
    /* Left alone for long enough, it is repaired at once again. */
    run_for(&f, MINUTES(11));
    CHECK(!engine_is_contested(&realtime_converge(f.agent)->engine, 0,
                               virtual_loop_now(f.machine.time)));
    agent_write(&f.machine, "/etc/a", "wrong");
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    fixture_done(&f);
}

/* The signal comes while the first file is being written. */
static void stop_now(void *ctx, const char *what UNUSED)
{
    struct fixture *f = ctx;
    if (f->agent != NULL && realtime_converge(f->agent)->working) {
        realtime_stop(f->agent);
    }
}

TEST(realtime_finishes_what_it_began_when_it_is_told_to_stop)
{
    struct fixture f;
    fixture_init(&f);
    agent_mkdir(&f.machine, "/etc");
    f.machine.root.on_step = stop_now;
    f.machine.root.step_ctx = &f;
    begin(&f, "resources:\n"
              "- {name: a, type: file, path: /etc/a, content: x}\n"
              "- {name: b, type: file, path: /etc/b, content: x}\n");
    CHECK(f.stopped);
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "x");
    CHECK_STR(agent_read(&f.machine, "/etc/b"), "(none)");
    fixture_done(&f);
}

TEST(realtime_refuses_to_begin_without_a_good_list)
{
    struct fixture f;
    struct err err = { 0 };
    fixture_init(&f);
    struct realtime_spec spec = spec_of(&f);
    f.text = "resources: 1";
    CHECK(realtime_new(&spec, &err) == NULL);
    CHECK_STR(err.msg, "field 'resources': found a number, want a list of resources");
    fixture_done(&f);
}

TEST(realtime_changes_nothing_in_a_noop_run)
{
    struct fixture f;
    struct err err = { 0 };
    fixture_init(&f);
    struct realtime_spec spec = spec_of(&f);
    spec.rules.noop = true;
    f.machine.root.read_only = true;
    agent_write(&f.machine, "/etc/a", "wrong");
    f.text = "resources: [{name: a, type: file, path: /etc/a, content: right}]";
    struct str before = agent_tree(&f.machine);
    f.agent = realtime_new(&spec, &err);
    CHECK(f.agent != NULL);
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_tree(&f.machine), before);
    CHECK_EQ(said(&f, "wouldChange=1"), 1);
    agent_write(&f.machine, "/etc/a", "right");
    run_for(&f, SECONDS(1));
    CHECK_STR(vertex_state_names[vertex(&f, "a")->state], "Ok");
    fixture_done(&f);
}

TEST(realtime_obeys_the_owner_of_the_machine_at_once)
{
    struct fixture f;
    fixture_init(&f);
    agent_write(&f.machine, VETO_PATH, "deny path /etc/a\n");
    begin(&f, "resources:\n"
              "- {name: a, type: file, path: /etc/a, content: right}\n"
              "- {name: b, type: file, path: /etc/b, content: right, requires: [a]}\n"
              "- {name: c, type: file, path: /etc/c, content: right}\n");
    CHECK_STR(vertex_state_names[vertex(&f, "a")->state], "Vetoed");
    CHECK_STR(vertex_message(vertex(&f, "a")), "line 1 of " VETO_PATH " forbids it");
    CHECK_STR(vertex_state_names[vertex(&f, "b")->state], "Blocked");
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "(none)");
    CHECK_STR(agent_read(&f.machine, "/etc/c"), "right");
    CHECK_EQ(said(&f, "resource vetoed name=a"), 1);
    agent_write(&f.machine, VETO_PATH, "deny pth /etc/a\n"); /* a slip of the pen */
    run_for(&f, SECONDS(1));
    CHECK_STR(vertex_state_names[vertex(&f, "c")->state], "Vetoed");
    CHECK_EQ(unlink(agent_outside(&f.machine, VETO_PATH)), 0);
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "right");
    CHECK_STR(agent_read(&f.machine, "/etc/b"), "right");
    agent_write(&f.machine, VETO_PATH, "mode noop\n");
    run_for(&f, SECONDS(1));
    agent_write(&f.machine, "/etc/c", "wrong");
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/etc/c"), "wrong");
    CHECK_STR(vertex_state_names[vertex(&f, "c")->state], "Noop");
    CHECK_EQ(said(&f, "nothing is changed: the machine's owner says 'mode noop'"), 1);
    CHECK_EQ(unlink(agent_outside(&f.machine, VETO_PATH)), 0);
    run_for(&f, SECONDS(1));
    CHECK_STR(agent_read(&f.machine, "/etc/c"), "right");
    fixture_done(&f);
}

TEST(realtime_takes_nothing_back_that_the_owner_forbids)
{
    struct fixture f;
    fixture_init(&f);
    agent_write(&f.machine, "/etc/a", "before");
    begin(&f, "resources:\n"
              "- {name: a, type: file, path: /etc/a, content: ours, meta: {onRemove: Restore}}\n"
              "- {name: b, type: file, path: /etc/b, content: x}\n");
    agent_write(&f.machine, VETO_PATH, "deny path /etc/a\n");
    change(&f, "resources: [{name: b, type: file, path: /etc/b, content: x}]");
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "ours");
    CHECK_EQ(said(&f, "resource taken off the list stays id=file:/etc/a"), 1);
    CHECK_EQ(unlink(agent_outside(&f.machine, VETO_PATH)), 0);
    run_for(&f, SECONDS(1)); /* now it may */
    CHECK_STR(agent_read(&f.machine, "/etc/a"), "before");
    fixture_done(&f);
}
