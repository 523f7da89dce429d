#include "demo/script.h"

#include "base/timestamp.h"
#include "demo/examples.h"
#include "format/json.h"
#include "profile/controller.h"
#include "profile/node_report.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/world/world.h"

#define STORY_TICK MSECONDS(100)
#define STORY_STUCK SECONDS(20) /* how long a blocked drain is looked at before help comes */
#define STORY_KILL_AFTER 5u     /* nodes serviced */
#define PROFILE_LABEL "cloud.sap/maintenance-profile"

struct chapter {
    void (*begin)(struct story *s);
    bool (*reached)(struct story *s);
    void (*tell)(struct story *s, struct buf *out);
    usec_t limit; /* not reached by then: the story has failed */
    usec_t pause; /* after it, so that a reader can follow */
};

/* ── the world as it is ────────────────────────────────────────────────────────────────────── */

usec_t story_evening(usec_t wall)
{
    struct civil day = civil_from_sec(wall / SECONDS(1));
    day.hour = STORY_WINDOW_HOUR;
    day.minute = 0;
    day.second = 0;
    return SECONDS(civil_to_sec(&day)) - STORY_BEFORE;
}

usec_t story_elapsed(const struct story *s)
{
    return (s->over ? s->ended : loop_now(s->time)) - s->began;
}

uint64_t story_refused(const struct story *s)
{
    uint64_t sum = s->refused_of_the_dead;
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        if (s->replicas[i].controller != NULL) {
            struct controller_stats stats;
            controller_stats(s->replicas[i].controller, &stats);
            sum += stats.refused;
        }
    }
    return sum;
}

static struct str story_example(const char *name)
{
    for (size_t i = 0; i < examples_count; i++) {
        if (strcmp(examples[i].name, name) == 0) {
            return (struct str){ .p = (const char *)examples[i].bytes, .n = examples[i].n };
        }
    }
    return STR_NONE;
}

static void story_tell(struct story *s, struct str text)
{
    s->on_milestone(s->ctx, loop_wall(s->time), text);
}

static void story_end(struct story *s, bool failed)
{
    if (!s->over) {
        s->failed = failed;
        s->ended = loop_now(s->time);
        s->over = true;
    }
}

static void story_fail(struct story *s, const char *what, const struct err *err)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, "%s: %s", what, err->msg);
    story_tell(s, buf_str(&text));
    story_end(s, /* failed= */ true);
}

static struct story_replica *story_leader(struct story *s)
{
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        struct story_replica *r = &s->replicas[i];
        if (r->controller != NULL && controller_leading(r->controller)) {
            return r;
        }
    }
    return NULL;
}

/* The dashboard follows the leader; without one, whoever lives. */
static void story_follow(struct story *s)
{
    struct story_replica *r = story_leader(s);
    for (uint32_t i = 0; r == NULL && i < STORY_REPLICAS; i++) {
        if (s->replicas[i].controller != NULL) {
            r = &s->replicas[i];
        }
    }
    s->source.controller = r != NULL ? r->controller : NULL;
    s->source.identity = r != NULL ? r->name : STR_NONE;
}

/* Sees every write: a peak between two ticks counts as well. */
static void story_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct story *s = ctx;
    if (commit->group.n > 0) {
        return;
    }
    if (str_eq(commit->plural, STR("nodes"))) {
        struct scene scene;
        scene_look(s->server, &scene);
        s->peak = MAX(s->peak, scene.out);
        s->peak_zone = MAX(s->peak_zone, scene.out_zone);
        if (s->first_out == 0 && scene.out > 0) {
            s->first_out = loop_wall(s->time);
        }
    } else if (str_eq(commit->plural, STR("pods")) && commit->old != NULL &&
               str_starts(commit->user_agent, STR("drydock"))) {
        const struct jval *was = jval_at(commit->old, "metadata.deletionTimestamp");
        bool goes =
            commit->now == NULL || jval_at(commit->now, "metadata.deletionTimestamp") != NULL;
        bool went = was == NULL && goes; /* an eviction also writes a condition, which is no move */
        s->moved += went ? 1 : 0;
    }
}

/* Which drain waits, as the leader explains it. */
static void story_see_blocked(struct story *s, const struct scene *scene)
{
    struct story_replica *leader = story_leader(s);
    struct story_blocked found = { .seen = 0 };
    for (uint32_t i = 0; leader != NULL && i < scene->n; i++) {
        struct report report;
        struct str progress;
        struct str why;
        if (scene->nodes[i].state != SCENE_DRAINING ||
            !controller_explain(leader->controller, str_from(scene->nodes[i].name), &s->tmp,
                                &report) ||
            !str_cut(report.drain, STR("; "), &progress, &why)) {
            continue;
        }
        if (found.node[0] != '\0') {
            found.more++;
            continue;
        }
        (void)snprintf(found.node, sizeof(found.node), "%s", scene->nodes[i].name); /* it fits */
        (void)snprintf(found.why, sizeof(found.why), STR_FMT,
                       STR_ARG(why)); /* a longer reason says enough with its beginning */
        found.seen = loop_wall(s->time);
    }
    if (strcmp(found.node, s->blocked.node) == 0) {
        found.seen = s->blocked.seen;
    }
    s->blocked = found;
}

/* ── deeds ─────────────────────────────────────────────────────────────────────────────────── */

static void story_label(struct story *s, const char *node, const char *key, const char *value)
{
    struct apiserver_reply reply = { 0 };
    struct err err = { 0 };
    struct apiserver_request request = {
        .method = STR("PATCH"),
        .path = arena_printf(&s->tmp, "/api/v1/nodes/%s", node),
        .content_type = STR("application/merge-patch+json"),
        .user_agent = STR("update-agent"),
        .body = arena_printf(&s->tmp, "{\"metadata\":{\"labels\":{\"%s\":%s}}}", key, value),
    };
    apiserver_handle(s->server, &request, &s->tmp, &reply);
    if (reply.status != 200) {
        (void)err_set(&err, ERR_INVALID, STR_FMT, STR_ARG(reply.body));
        story_fail(s, "the sandbox refused a label", &err);
    }
}

/* The agents on all nodes: who may reboot does, and who is back asks for nothing more. */
static void story_update(struct story *s, const struct scene *scene)
{
    for (uint32_t i = 0; i < scene->n; i++) {
        const struct scene_node *node = &scene->nodes[i];
        struct err err = { 0 };
        if (node->needed && node->granted && !s->reboots[i]) {
            s->reboots[i] = true;
            if (world_reboot_node(s->world, str_from(node->name), &err) < 0) {
                story_fail(s, "the sandbox refused a reboot", &err);
            }
        } else if (s->reboots[i] && !node->rebooting && node->ready) {
            s->reboots[i] = false;
            story_label(s, node->name, UPDATE_IMAGE, "\"2\"");
            story_label(s, node->name, UPDATE_NEEDED, "null");
        }
    }
}

static void replica_on_leading(void *ctx, bool leading)
{
    struct story_replica *r = ctx;
    struct story *s = r->story;
    if (leading && s->led_last != r) {
        s->failovers += s->led_last != NULL ? 1 : 0;
        s->led_last = r;
    }
}

static void replica_start(struct story *s, struct story_replica *r)
{
    r->door = sim_api_new(s->time, s->server, &s->network);
    r->outbound = sim_outbound_new(s->time, &s->inbox, NULL);
    struct controller_config config = {
        .identity = r->name,
        .lease_namespace = STR("kube-system"),
        .elect = true,
        .outbound = r->outbound,
        .wait_for_setup = true,
        .on_leading = replica_on_leading,
        .ctx = r,
    };
    r->controller = controller_new(s->time, r->door, NULL, &s->metrics, &config);
    if (controller_configure(r->controller, STR("docs/examples/os-update.yaml"),
                             story_example("os-update.yaml"), (struct ucfg_env){ 0 }) < 0) {
        struct controller_setup setup;
        struct err err = { 0 };
        controller_setup(r->controller, &setup);
        (void)err_set(&err, ERR_INVALID, STR_FMT, STR_ARG(setup.error));
        story_fail(s, "the controller refused its configuration", &err);
    }
}

/* As kill -9: nothing more is sent, the lease is not given back. */
static void replica_kill(struct story *s, struct story_replica *r)
{
    if (r->controller == NULL) {
        return;
    }
    struct controller_stats stats;
    controller_stats(r->controller, &stats);
    s->refused_of_the_dead += stats.refused;
    if (s->source.controller == r->controller) {
        s->source.controller = NULL;
    }
    controller_free(STEAL(r->controller));
    sim_outbound_free(STEAL(r->outbound));
    sim_api_free(STEAL(r->door));
}

/* ── chapters ──────────────────────────────────────────────────────────────────────────────── */

static void gather_begin(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    for (uint32_t i = 0; i < scene.n; i++) {
        story_label(s, scene.nodes[i].name, PROFILE_LABEL, "\"os-update\"");
    }
}

static bool gather_reached(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    struct scene_pods pods = scene_pods(s->server, STR(""));
    return scene.n > 0 && scene.labelled == scene.n && scene.ready == scene.n && pods.all > 0 &&
           pods.ready == pods.all;
}

static void gather_tell(struct story *s, struct buf *out)
{
    struct scene_pods pods = scene_pods(s->server, STR(""));
    buf_printf(out,
               "a shop runs on %u nodes in three zones: %u pods, five budgets; " STR_FMT " leads",
               world_node_count(s->world), pods.all, STR_ARG(s->led_last->name));
}

static void release_begin(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    for (uint32_t i = 0; i < scene.n; i++) {
        story_label(s, scene.nodes[i].name, UPDATE_NEEDED, "\"true\"");
    }
}

static bool release_reached(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    return scene.states[SCENE_REQUIRED] == scene.n && s->inbox.arrived >= scene.n;
}

static void release_tell(struct story *s, struct buf *out)
{
    buf_printf(out,
               "an OS update is out: all %u nodes ask for maintenance, and %llu mails ask for "
               "approval",
               world_node_count(s->world), (unsigned long long)s->inbox.arrived);
}

/* Approves what waits in zones whose letter is in `zones`, but for the node that is lost. */
static void story_approve(struct story *s, struct str zones)
{
    struct scene scene;
    scene_look(s->server, &scene);
    s->counted = 0;
    for (uint32_t i = 0; i < scene.n; i++) {
        const struct scene_node *node = &scene.nodes[i];
        struct str zone = str_from(node->zone);
        bool meant = zone.n > 0 && str_find_char(zones, zone.p[zone.n - 1]) != SIZE_MAX;
        if (meant && node->needed && !node->approved && strcmp(node->name, s->lost) != 0) {
            story_label(s, node->name, UPDATE_APPROVED, "\"true\"");
            s->counted++;
        }
    }
}

static void approve_begin(struct story *s)
{
    story_approve(s, STR("ab"));
}

static bool approve_reached(struct story *s)
{
    return s->counted > 0;
}

static void approve_tell(struct story *s, struct buf *out)
{
    buf_printf(out,
               "zones a and b are approved: %u nodes wait for the window, which opens at 22:00",
               s->counted);
}

static void window_begin(struct story *s)
{
    (void)s; /* the clock does it */
}

static bool window_reached(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    s->counted = scene.out;
    return scene.out >= 2 * STORY_ZONE_LIMIT;
}

static void window_tell(struct story *s, struct buf *out)
{
    struct civil at = civil_from_sec(s->first_out / SECONDS(1));
    buf_printf(
        out, "the window opens, and the first node goes at %02d:%02d:%02d; %u drain now, %u a zone",
        at.hour, at.minute, at.second, s->counted, STORY_ZONE_LIMIT);
}

struct story_search {
    struct story *story;
    const struct scene *scene;
};

/* A replica of payments whose node is still to come; best one that nobody has approved yet. */
static void lose_visit(void *ctx, const struct jval *pod)
{
    struct story_search *search = ctx;
    struct story *s = search->story;
    struct str app = jval_str(jval_get(jval_at(pod, "metadata.labels"), STR("app")));
    struct str name = jval_str(jval_at(pod, "spec.nodeName"));
    const struct scene_node *node = scene_find(search->scene, name);
    if (!str_eq(app, STR("payments")) || node == NULL || node->state != SCENE_REQUIRED) {
        return;
    }
    if (s->lost[0] == '\0' || !node->approved) {
        (void)snprintf(s->lost, sizeof(s->lost), "%s", node->name); /* it fits */
    }
}

static void lose_begin(struct story *s)
{
    struct scene scene;
    struct err err = { 0 };
    scene_look(s->server, &scene);
    struct story_search search = { .story = s, .scene = &scene };
    apiserver_each(s->server, STR(""), STR("pods"), STR("shop"), lose_visit, &search);
    const struct scene_node *node = scene_find(&scene, str_from(s->lost));
    if (node == NULL) {
        (void)err_set(&err, ERR_NOTFOUND, "all have been serviced already");
        story_fail(s, "no node of payments is left to lose", &err);
        return;
    }
    if (node->approved) {
        story_label(s, s->lost, UPDATE_APPROVED, "null");
    }
    if (world_fail_node(s->world, str_from(s->lost), &err) < 0) {
        story_fail(s, "the sandbox refused", &err);
    }
}

/* Drains close that budget too, for moments; what counts is that the node is known to be away. */
static bool lose_reached(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    const struct scene_node *node = scene_find(&scene, str_from(s->lost));
    const struct jval *budget = apiserver_find(
        s->server, STR("policy"), STR("poddisruptionbudgets"), STR("shop"), STR("payments"));
    int64_t allowed = 1;
    return node != NULL && !node->ready &&
           jval_i64(jval_at(budget, "status.disruptionsAllowed"), &allowed) && allowed == 0;
}

static void lose_tell(struct story *s, struct buf *out)
{
    buf_printf(out,
               "%s has lost its network: payments is down to two replicas, and its budget lets "
               "none of them go",
               s->lost);
}

static void rest_begin(struct story *s)
{
    story_approve(s, STR("c"));
}

static void rest_tell(struct story *s, struct buf *out)
{
    buf_printf(out, "zone c is approved too: %u more nodes", s->counted);
}

static bool kill_ripe(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    return scene.serviced >= STORY_KILL_AFTER && scene.states[SCENE_DRAINING] > 0;
}

static void kill_begin(struct story *s)
{
    s->victim = NULL;
}

static void kill_announce(struct story *s)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, STR_FMT ", the leader, is killed while %u nodes are out",
               STR_ARG(s->victim->name), s->counted);
    story_tell(s, buf_str(&text));
}

/* The leader dies while nodes are half drained; its successor has to finish what it began. */
static bool kill_reached(struct story *s)
{
    struct story_replica *leader = story_leader(s);
    usec_t now = loop_now(s->time);
    if (s->victim == NULL && leader != NULL && kill_ripe(s)) {
        struct scene scene;
        scene_look(s->server, &scene);
        s->victim = leader;
        s->counted = scene.out;
        s->chapter_at = now;
        replica_kill(s, leader);
        kill_announce(s);
        return false;
    }
    if (s->victim != NULL && s->took == 0 && leader != NULL && leader != s->victim) {
        s->took = now - s->chapter_at;
    }
    return s->took > 0;
}

static void kill_tell(struct story *s, struct buf *out)
{
    buf_printf(out, STR_FMT " leads after %.1f s, counts who is out, and goes on",
               STR_ARG(s->led_last->name), (double)s->took / 1e6);
    replica_start(s, s->victim);
}

static void stuck_begin(struct story *s)
{
    (void)s; /* it happens by itself */
}

static bool stuck_reached(struct story *s)
{
    return s->blocked.node[0] != '\0' && loop_wall(s->time) - s->blocked.seen >= STORY_STUCK;
}

static void stuck_tell(struct story *s, struct buf *out)
{
    (void)snprintf(s->stuck, sizeof(s->stuck), "%s", s->blocked.node); /* it fits */
    buf_printf(out, "%s cannot be drained: %s", s->blocked.node, s->blocked.why);
}

static void help_begin(struct story *s)
{
    struct err err = { 0 };
    if (world_recover_node(s->world, str_from(s->lost), &err) < 0) {
        story_fail(s, "the sandbox refused", &err);
    }
}

static bool help_reached(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    const struct scene_node *node = scene_find(&scene, str_from(s->stuck));
    s->took = loop_now(s->time) - s->chapter_at;
    return node != NULL && node->state != SCENE_DRAINING;
}

static void help_tell(struct story *s, struct buf *out)
{
    buf_printf(out,
               "%s is back and payments has three replicas again; %s was drained within %.1f s",
               s->lost, s->stuck, (double)s->took / 1e6);
    s->lost[0] = '\0';
}

static void finish_begin(struct story *s)
{
    story_approve(s, STR("abc"));
}

static bool finish_reached(struct story *s)
{
    struct scene scene;
    scene_look(s->server, &scene);
    struct scene_pods pods = scene_pods(s->server, STR(""));
    return scene.serviced == scene.n && pods.ready == pods.all;
}

static void finish_tell(struct story *s, struct buf *out)
{
    buf_printf(out, "all %u nodes run the new image, and every pod of the shop is ready",
               world_node_count(s->world));
}

static const struct chapter chapters[] = {
    { gather_begin, gather_reached, gather_tell, MINUTES(1), SECONDS(4) },
    { release_begin, release_reached, release_tell, MINUTES(1), SECONDS(6) },
    { approve_begin, approve_reached, approve_tell, MINUTES(1), SECONDS(1) },
    { window_begin, window_reached, window_tell, MINUTES(2), SECONDS(2) },
    { lose_begin, lose_reached, lose_tell, MINUTES(2), SECONDS(6) },
    { rest_begin, approve_reached, rest_tell, MINUTES(1), SECONDS(1) },
    { kill_begin, kill_reached, kill_tell, MINUTES(3), SECONDS(2) },
    { stuck_begin, stuck_reached, stuck_tell, MINUTES(5), SECONDS(2) },
    { help_begin, help_reached, help_tell, MINUTES(3), SECONDS(1) },
    { finish_begin, finish_reached, finish_tell, MINUTES(8), 0 },
};

static void chapter_begin(struct story *s)
{
    s->waiting = false;
    s->chapter_at = loop_now(s->time);
    s->took = 0;
    chapters[s->chapter].begin(s);
}

static void chapter_end(struct story *s)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    chapters[s->chapter].tell(s, &text);
    story_tell(s, buf_str(&text));
    s->until = loop_now(s->time) + chapters[s->chapter].pause;
    s->waiting = true;
    s->chapter++;
    if (s->chapter == ARRAY_LEN(chapters)) {
        story_end(s, /* failed= */ false);
    }
}

static void chapter_late(struct story *s)
{
    struct scene scene;
    struct err err = { 0 };
    scene_look(s->server, &scene);
    const struct story_replica *leader = story_leader(s);
    (void)err_set(
        &err, ERR_TIMEOUT, "%u of %u nodes serviced, %u drain, %u in maintenance, leader " STR_FMT,
        scene.serviced, scene.n, scene.states[SCENE_DRAINING], scene.states[SCENE_MAINTENANCE],
        STR_ARG(leader != NULL ? leader->name : STR("nobody")));
    story_fail(s, "the story does not go on", &err);
}

static void story_tick(void *ctx)
{
    struct story *s = ctx;
    struct scene scene;
    usec_t now = loop_now(s->time);
    arena_reset(&s->tmp);
    story_follow(s);
    scene_look(s->server, &scene);
    story_update(s, &scene);
    story_see_blocked(s, &scene);
    if (s->over) {
        /* The world goes on for whoever watches. */
    } else if (s->waiting && now >= s->until) {
        chapter_begin(s);
    } else if (!s->waiting && chapters[s->chapter].reached(s)) {
        chapter_end(s);
    } else if (!s->waiting && now - s->chapter_at > chapters[s->chapter].limit) {
        chapter_late(s);
    }
    loop_timer_set(&s->tick, now + STORY_TICK);
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

void story_init(struct story *s, struct loop *time, uint64_t seed)
{
    *s = (struct story){ .time = time, .seed = seed };
    metrics_init(&s->metrics);
    faults_init(&s->network, seed);
    inbox_init(&s->inbox);
    s->server = apiserver_new(time, seed);
    source_init(&s->source, NULL);
    s->source.title = STR("demo");
    s->source.web.clock = time; /* its windows and waits are told in the world's time */
    static const struct str names[STORY_REPLICAS] = { STR_INIT("demo-0"), STR_INIT("demo-1") };
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        s->replicas[i] = (struct story_replica){ .story = s, .name = names[i] };
    }
    loop_timer_init(&s->tick, time, story_tick, s);
    s->began = loop_now(time);
}

void story_begin(struct story *s)
{
    struct world_config config = { .seed = s->seed };
    struct err err = { 0 };
    struct str *objects = NULL;
    uint32_t objects_n = 0;
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    s->began = loop_now(s->time);
    loop_timer_set(&s->tick, s->began);
    int r =
        world_file_read(story_example("shop.yaml"), &memory, &config, &objects, &objects_n, &err);
    ASSERT(r == 0); /* it is our own file, and a test reads it */
    s->world = world_new(s->time, s->server, &config);
    apiserver_on_commit_check(s->server, story_on_commit, s);
    if (world_create_objects(s->world, objects, objects_n, &err) < 0) {
        story_fail(s, "the sandbox refused the shop", &err);
        return;
    }
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        replica_start(s, &s->replicas[i]);
    }
    chapter_begin(s);
}

void story_sum(const struct story *s, struct buf *out)
{
    struct scene scene;
    scene_look(s->server, &scene);
    uint64_t refused = story_refused(s);
    long long seconds = (long long)(story_elapsed(s) / SECONDS(1));
    buf_printf(
        out,
        "%u of %u nodes serviced; peak %u in maintenance, %u a zone (limit %u)\n"
        "%llu pods moved, %llu eviction%s refused, %llu messages, %u failover%s, %lldm%02llds",
        scene.serviced, scene.n, s->peak, s->peak_zone, STORY_ZONE_LIMIT,
        (unsigned long long)s->moved, (unsigned long long)refused, refused == 1 ? "" : "s",
        (unsigned long long)s->inbox.arrived, s->failovers, s->failovers == 1 ? "" : "s",
        seconds / 60, seconds % 60);
}

void story_done(struct story *s)
{
    loop_timer_done(&s->tick);
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        replica_kill(s, &s->replicas[i]);
    }
    source_done(&s->source);
    apiserver_on_commit_check(s->server, NULL, NULL);
    world_free(s->world);
    faults_done(&s->network);
    apiserver_free(s->server);
    inbox_done(&s->inbox);
    metrics_done(&s->metrics);
    arena_done(&s->tmp);
}
