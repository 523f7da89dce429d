#include "cmd/story.h"

#include "format/json.h"
#include "profile/controller.h"
#include "sandbox/apiserver.h"
#include "sandbox/door.h"
#include "sandbox/world.h"

#define STORY_TICK MSECONDS(100)
#define STORY_WAVE 8u
#define STORY_WAVES 3u
#define STORY_ZONES 3u
#define STORY_DOWN SECONDS(10) /* how long the API server stays away */
#define STORY_STRIPPED 6u      /* nodes whose labels somebody deletes */
#define STATE_LABEL STR("cloud.sap/maintenance-state")
#define DATA_ANNOTATION STR("cloud.sap/maintenance-data")
#define ZONE_LABEL STR("topology.kubernetes.io/zone")

struct chapter {
    void (*begin)(struct story *s);
    bool (*reached)(struct story *s);
    void (*tell)(struct story *s, struct buf *out);
    usec_t limit; /* not reached by then: the story has failed */
    usec_t pause; /* after it, so that a reader can follow */
};

/* ── the world as it is ────────────────────────────────────────────────────────────────────── */

static void story_copy(char *out, size_t max, struct str text)
{
    size_t n = MIN(text.n, max - 1);
    memcpy(out, text.p, n);
    out[n] = '\0';
}

static bool story_node_ready(const struct jval *node)
{
    const struct jval *conditions = jval_at(node, "status.conditions");
    JVAL_EACH (conditions, condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Ready"))) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

static void story_visit(void *ctx, const struct jval *node)
{
    struct story_view *view = ctx;
    if (view->n == STORY_NODES_MAX) {
        return;
    }
    const struct jval *labels = jval_at(node, "metadata.labels");
    const struct jval *annotations = jval_at(node, "metadata.annotations");
    struct story_node *to = &view->nodes[view->n++];
    story_copy(to->name, sizeof(to->name), jval_str(jval_at(node, "metadata.name")));
    story_copy(to->zone, sizeof(to->zone), jval_str(jval_get(labels, ZONE_LABEL)));
    to->ready = story_node_ready(node);
    to->labelled = str_eq(jval_str(jval_get(labels, STATE_LABEL)), STR("operational")) &&
                   jval_str(jval_get(annotations, DATA_ANNOTATION)).n > 0;
    view->ready += to->ready ? 1 : 0;
    view->labelled += to->labelled ? 1 : 0;
}

void story_look(const struct story *s, struct story_view *ret)
{
    *ret = (struct story_view){ .n = 0 };
    apiserver_each(s->server, STR(""), STR("nodes"), STR(""), story_visit, ret);
}

usec_t story_elapsed(const struct story *s)
{
    return loop_now(s->time) - s->began;
}

uint64_t story_requests(const struct story *s)
{
    uint64_t sum = s->requests_of_the_dead;
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        sum += s->replicas[i].door != NULL ? door_sent(s->replicas[i].door) : 0;
    }
    return sum;
}

uint64_t story_writes(const struct story *s)
{
    uint64_t sum = s->writes_of_the_dead;
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        if (s->replicas[i].controller != NULL) {
            struct controller_stats stats;
            controller_stats(s->replicas[i].controller, &stats);
            sum += stats.patches;
        }
    }
    return sum;
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

static bool story_all_labelled(struct story *s)
{
    struct story_view view;
    story_look(s, &view);
    return view.n == world_nodes(s->world) && view.labelled == view.n && view.ready == view.n;
}

/* The leader knows exactly the nodes that there are. */
static bool story_caught_up(struct story *s)
{
    const struct story_replica *r = story_leader(s);
    return r != NULL && story_all_labelled(s) &&
           controller_node_count(r->controller) == world_nodes(s->world);
}

/* ── deeds ─────────────────────────────────────────────────────────────────────────────────── */

static void replica_on_leading(void *ctx, bool leading)
{
    struct story_replica *r = ctx;
    struct story *s = r->story;
    r->leading = leading;
    if (leading && s->led_last != r) {
        s->failovers += s->led_last != NULL ? 1 : 0;
        s->led_last = r;
    }
}

static void replica_start(struct story *s, struct story_replica *r)
{
    r->door = door_new(s->time, s->server, &s->network);
    struct controller_config config = {
        .identity = r->name,
        .lease_namespace = STR("kube-system"),
        .elect = true,
        .on_leading = replica_on_leading,
        .ctx = r,
    };
    r->controller = controller_new(s->time, r->door, NULL, &s->metrics, &config);
}

/* As kill -9: nothing more is sent, the lease is not given back. */
static void replica_kill(struct story *s, struct story_replica *r)
{
    if (r->controller == NULL) {
        return;
    }
    struct controller_stats stats;
    controller_stats(r->controller, &stats);
    s->writes_of_the_dead += stats.patches;
    s->requests_of_the_dead += door_sent(r->door);
    if (s->source.controller == r->controller) {
        s->source.controller = NULL;
    }
    controller_free(STEAL(r->controller));
    door_free(STEAL(r->door));
    r->leading = false;
}

static void story_fail(struct story *s, const struct err *err)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, "the sandbox refused: %s", err->msg);
    s->on_milestone(s->ctx, story_elapsed(s), buf_str(&text));
    s->failed = true;
    s->over = true;
}

static void story_add_nodes(struct story *s, uint32_t n)
{
    struct err err = { 0 };
    for (uint32_t i = 0; i < n; i++) {
        if (world_add_node(s->world, STR_NONE, &err) < 0) {
            story_fail(s, &err);
            return;
        }
    }
}

static void story_remove_node(struct story *s)
{
    struct story_view view;
    struct err err = { 0 };
    story_look(s, &view);
    if (view.n == 0) {
        return;
    }
    story_copy(s->gone, sizeof(s->gone), str_from(view.nodes[rng_below(&s->rng, view.n)].name));
    if (world_remove_node(s->world, str_from(s->gone), &err) < 0) {
        story_fail(s, &err);
    }
}

/* Somebody deletes our label and annotation, with a tool of their own. */
static void story_strip(struct story *s, uint32_t count)
{
    struct story_view view;
    story_look(s, &view);
    s->counted = 0;
    uint32_t first = rng_below(&s->rng, MAX(view.n, 1u));
    for (uint32_t i = 0; i < count && i < view.n; i++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        const struct story_node *node = &view.nodes[(first + i * 5) % view.n];
        struct apiserver_reply reply = { 0 };
        struct apiserver_request request = {
            .method = STR("PATCH"),
            .path = arena_printf(&tmp, "/api/v1/nodes/%s", node->name),
            .content_type = STR("application/merge-patch+json"),
            .user_agent = STR("somebody"),
            .body = STR("{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":null},"
                        "\"annotations\":{\"cloud.sap/maintenance-data\":null}}}"),
        };
        apiserver_handle(s->server, &request, &tmp, &reply);
        s->counted += reply.status == 200 ? 1 : 0;
    }
}

/* ── chapters ──────────────────────────────────────────────────────────────────────────────── */

static void wave_begin(struct story *s)
{
    story_add_nodes(s, STORY_WAVE);
}

static void wave_tell(struct story *s, struct buf *out)
{
    struct story_view view;
    story_look(s, &view);
    buf_printf(out, "%u nodes booted; %u of %u are ready and labelled operational", STORY_WAVE,
               view.labelled, view.n);
}

static void kill_begin(struct story *s)
{
    s->victim = story_leader(s);
    if (s->victim != NULL) {
        replica_kill(s, s->victim);
        story_strip(s, 1);
    }
}

static bool kill_reached(struct story *s)
{
    struct story_replica *r = story_leader(s);
    if (s->took == 0 && r != NULL && r != s->victim) {
        s->took = loop_now(s->time) - s->chapter_at;
    }
    return s->victim != NULL && s->took > 0 && story_all_labelled(s);
}

static void kill_tell(struct story *s, struct buf *out)
{
    buf_printf(out,
               STR_FMT " was killed; " STR_FMT " leads after %.1f s and put back the label that "
                       "was lost meanwhile",
               STR_ARG(s->victim->name), STR_ARG(s->led_last->name), (double)s->took / 1e6);
    replica_start(s, s->victim);
}

static void outage_begin(struct story *s)
{
    s->network.down = true;
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        if (s->replicas[i].door != NULL) {
            door_cut(s->replicas[i].door);
        }
    }
    apiserver_restart(s->server);
    if (world_nodes(s->world) > STORY_WAVES * STORY_WAVE) {
        story_remove_node(s); /* a story that goes on and on does not grow */
    }
    story_strip(s, 3);
    story_add_nodes(s, 1);
}

static bool outage_reached(struct story *s)
{
    usec_t since = loop_now(s->time) - s->chapter_at;
    if (since < STORY_DOWN) {
        return false;
    }
    s->network.down = false;
    if (!story_caught_up(s)) {
        return false;
    }
    s->took = since - STORY_DOWN;
    return true;
}

static void outage_tell(struct story *s, struct buf *out)
{
    buf_printf(out,
               "the API server was away for %.0f s; %.1f s later all %u nodes are known and "
               "labelled, with the one that joined and the %u that lost their labels",
               (double)STORY_DOWN / 1e6, (double)s->took / 1e6, world_nodes(s->world), s->counted);
}

static void strip_begin(struct story *s)
{
    story_strip(s, STORY_STRIPPED);
}

static bool strip_reached(struct story *s)
{
    if (s->counted == 0 || !story_all_labelled(s)) {
        return false;
    }
    s->took = loop_now(s->time) - s->chapter_at;
    return true;
}

static void strip_tell(struct story *s, struct buf *out)
{
    buf_printf(out, "somebody deleted the labels of %u nodes; all are back within %.1f s",
               s->counted, (double)s->took / 1e6);
}

static void replace_begin(struct story *s)
{
    story_remove_node(s);
    story_add_nodes(s, 1);
}

static bool replace_reached(struct story *s)
{
    const struct story_replica *r = story_leader(s);
    struct controller_node known;
    return story_caught_up(s) && !controller_find_node(r->controller, str_from(s->gone), &known);
}

static void replace_tell(struct story *s, struct buf *out)
{
    struct story_view view;
    story_look(s, &view);
    buf_printf(out, "%s was replaced; its successor is ready and labelled, %u nodes in all",
               s->gone, view.n);
}

static const struct chapter chapters[] = {
    { wave_begin, story_caught_up, wave_tell, MINUTES(3), SECONDS(3) },
    { wave_begin, story_caught_up, wave_tell, MINUTES(3), SECONDS(3) },
    { wave_begin, story_caught_up, wave_tell, MINUTES(3), SECONDS(8) },
    { kill_begin, kill_reached, kill_tell, MINUTES(2), SECONDS(8) },
    { outage_begin, outage_reached, outage_tell, MINUTES(4), SECONDS(8) },
    { strip_begin, strip_reached, strip_tell, MINUTES(1), SECONDS(8) },
    { replace_begin, replace_reached, replace_tell, MINUTES(3), SECONDS(8) },
};
#define STORY_FIRST_AGAIN STORY_WAVES /* they come once */

static void chapter_begin(struct story *s)
{
    s->waiting = false;
    s->chapter_at = loop_now(s->time);
    s->took = 0;
    s->counted = 0;
    chapters[s->chapter].begin(s);
}

static void chapter_end(struct story *s)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    chapters[s->chapter].tell(s, &text);
    s->on_milestone(s->ctx, story_elapsed(s), buf_str(&text));
    s->until = loop_now(s->time) + chapters[s->chapter].pause;
    s->waiting = true;
    s->chapter++;
    if (s->chapter == ARRAY_LEN(chapters)) {
        s->over = !s->endless;
        s->chapter = STORY_FIRST_AGAIN;
    }
}

static void chapter_late(struct story *s)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct story_view view;
    story_look(s, &view);
    const struct story_replica *leader = story_leader(s);
    buf_printf(&text,
               "not reached within %.0f s: %u of %u nodes labelled, %u ready, leader " STR_FMT,
               (double)chapters[s->chapter].limit / 1e6, view.labelled, view.n, view.ready,
               STR_ARG(leader != NULL ? leader->name : STR("nobody")));
    s->on_milestone(s->ctx, story_elapsed(s), buf_str(&text));
    s->failed = true;
    s->over = true;
}

static void story_tick(void *ctx)
{
    struct story *s = ctx;
    usec_t now = loop_now(s->time);
    story_follow(s);
    if (s->waiting && now >= s->until) {
        chapter_begin(s);
    } else if (!s->waiting && chapters[s->chapter].reached(s)) {
        chapter_end(s);
    } else if (!s->waiting && now - s->chapter_at > chapters[s->chapter].limit) {
        chapter_late(s);
    }
    if (!s->over) {
        loop_timer_set(&s->tick, now + STORY_TICK);
    }
}

void story_init(struct story *s, struct loop *time, uint64_t seed, bool endless)
{
    *s = (struct story){ .time = time, .endless = endless };
    rng_init(&s->rng, seed);
    metrics_init(&s->metrics);
    faults_init(&s->network, seed);
    s->server = apiserver_new(time, seed);
    s->world = world_new(time, s->server,
                         &(struct world_config){ .seed = seed,
                                                 .zones = STORY_ZONES,
                                                 .heartbeats = WORLD_HEARTBEATS_BOTH,
                                                 .boot = SECONDS(12) });
    source_init(&s->source, NULL);
    s->source.title = STR("demo");
    static const struct str names[STORY_REPLICAS] = { STR_INIT("demo-0"), STR_INIT("demo-1") };
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        s->replicas[i] = (struct story_replica){ .story = s, .name = names[i] };
    }
    loop_timer_init(&s->tick, time, story_tick, s);
}

void story_begin(struct story *s)
{
    s->began = loop_now(s->time);
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        replica_start(s, &s->replicas[i]);
    }
    chapter_begin(s);
    loop_timer_set(&s->tick, s->began);
}

void story_done(struct story *s)
{
    loop_timer_done(&s->tick);
    for (uint32_t i = 0; i < STORY_REPLICAS; i++) {
        replica_kill(s, &s->replicas[i]);
    }
    source_done(&s->source);
    world_free(s->world);
    faults_done(&s->network);
    apiserver_free(s->server);
    metrics_done(&s->metrics);
}
