/*
 * Two controllers, one sandbox, a bad network: a small swarm for every build. The full one, with
 * pods, budgets and crashes at every boundary, is tests/swarm.
 */
#include "format/json.h"
#include "profile/controller.h"
#include "profile/data.h"
#include "sandbox/apiserver.h"
#include "sandbox/door.h"
#include "sandbox/faults.h"
#include "sandbox/vloop.h"
#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)
#define STORM_SEEDS 20u
#define STORM_SEEDS_BUG 100u    /* a bug shows in some of them */
#define STORM_PATCHES_MAX 2000u /* sixty steps need some dozens */
#define STORM_NODES 12u

struct replica {
    struct loop *view;
    struct api *door;
    struct controller *c;
    unsigned lives;
    uint64_t patches;
};

struct storm {
    struct rng rng;
    struct vloop *time;
    struct apiserver *server;
    struct faults faults;
    struct replica replicas[2];
    struct arena a;
    mutations_t mutations;
    const char *violation; /* the first; NULL = none */
};

static void storm_blame(struct storm *s, const char *violation)
{
    s->violation = s->violation == NULL ? violation : s->violation;
}

static struct str storm_ask(struct storm *s, const char *method, const char *path, struct str body,
                            int *ret_status)
{
    struct apiserver_reply reply = { 0 };
    apiserver_handle(s->server,
                     &(struct apiserver_request){
                         .method = str_from(method),
                         .path = str_from(path),
                         .content_type = str_eq(str_from(method), STR("PATCH"))
                                             ? STR("application/merge-patch+json")
                                             : STR("application/json"),
                         .body = body,
                     },
                     &s->a, &reply);
    *ret_status = reply.status;
    return reply.body;
}

static void replica_live(struct storm *s, unsigned i)
{
    struct replica *r = &s->replicas[i];
    char identity[32];
    (void)snprintf(identity, sizeof(identity), "host%u_%u", i, ++r->lives);
    r->door = door_new(r->view, s->server, &s->faults);
    r->c = controller_new(r->view, r->door, NULL, NULL,
                          &(struct controller_config){
                              .identity = str_from(identity),
                              .elect = true,
                              .window = 4,
                              .mutations = s->mutations,
                          });
}

static void replica_crash(struct replica *r)
{
    controller_free(r->c);
    door_free(r->door);
    r->c = NULL;
    r->door = NULL;
}

static void storm_node(struct storm *s)
{
    int status = 0;
    unsigned i = rng_below(&s->rng, STORM_NODES);
    const char *path = arena_printf(&s->a, "/api/v1/nodes/n%u", i).p;
    switch (rng_below(&s->rng, 3)) {
    case 0:
        (void)storm_ask(s, "POST", "/api/v1/nodes",
                        arena_printf(&s->a,
                                     "{\"apiVersion\":\"v1\",\"kind\":\"Node\","
                                     "\"metadata\":{\"name\":\"n%u\"}}",
                                     i),
                        &status);
        break;
    case 1:
        (void)storm_ask(s, "DELETE", path, STR(""), &status);
        break;
    default:
        /* A neighbour's label, and now and then a hand on ours. */
        (void)storm_ask(s, "PATCH", path,
                        rng_chance(&s->rng, 700)
                            ? arena_printf(&s->a, "{\"metadata\":{\"labels\":{\"x\":\"%u\"}}}",
                                           rng_below(&s->rng, 100))
                            : STR("{\"metadata\":{\"labels\":{"
                                  "\"cloud.sap/maintenance-state\":null}}}"),
                        &status);
        break;
    }
}

static void storm_trouble(struct storm *s)
{
    unsigned i = rng_below(&s->rng, 2);
    struct replica *r = &s->replicas[i];
    switch (rng_below(&s->rng, 12)) {
    case 0:
        apiserver_compact(s->server);
        break;
    case 1:
        apiserver_restart(s->server);
        break;
    case 2:
        door_cut(r->door);
        break;
    case 3:
        vloop_freeze(r->view, !vloop_frozen(r->view));
        break;
    case 4:
        s->faults.down = !s->faults.down && rng_chance(&s->rng, 500);
        break;
    case 5:
        s->faults.parted = !s->faults.parted && rng_chance(&s->rng, 500);
        break;
    case 6:
        vloop_step_wall(r->view, rng_usec(&s->rng, -MINUTES(5), MINUTES(5)));
        break;
    case 7:
        if (!vloop_frozen(r->view)) {
            replica_crash(r);
            replica_live(s, i);
        }
        break;
    default:
        storm_node(s);
        break;
    }
}

static void storm_look(struct storm *s)
{
    for (int i = 0; i < 2; i++) {
        struct controller_stats stats;
        controller_check(s->replicas[i].c);
        controller_stats(s->replicas[i].c, &stats);
        if (stats.patches > STORM_PATCHES_MAX) {
            storm_blame(s, "patches without end");
        }
        if (stats.patches > s->replicas[i].patches && !controller_leading(s->replicas[i].c)) {
            storm_blame(s, "one acts that does not lead");
        }
        s->replicas[i].patches = stats.patches;
    }
    if (controller_leading(s->replicas[0].c) && controller_leading(s->replicas[1].c)) {
        storm_blame(s, "two lead at once");
    }
}

static void storm_run(struct storm *s, usec_t span)
{
    usec_t until = vloop_now(s->time) + span;
    while (s->violation == NULL && vloop_step(s->time, until)) {
        storm_look(s);
    }
}

static void storm_check_node(struct storm *s, const struct jval *node)
{
    struct err err = { 0 };
    struct data d;
    struct str name = jval_str(jval_at(node, "metadata.name"));
    struct str state =
        jval_str(jval_get(jval_at(node, "metadata.labels"), STR("cloud.sap/maintenance-state")));
    struct str text = jval_str(jval_get(jval_at(node, "metadata.annotations"), DATA_ANNOTATION));
    if (!str_eq(state, STR("operational"))) {
        storm_blame(s, "a node without its state");
        return;
    }
    CLEANUP(buf_done)
    struct buf again = { 0 };
    if (text.n == 0 || data_parse(text, &s->a, &d, &err) < 0 || data_print(&d, &again, &err) < 0 ||
        !str_eq(buf_str(&again), text) || d.profile_count != 1) {
        storm_blame(s, "a node without its data");
    }
    for (int i = 0; i < 2; i++) {
        struct controller_node known;
        if (!controller_find_node(s->replicas[i].c, name, &known) || !str_eq(known.data, text)) {
            storm_blame(s, "a controller that does not know a node");
        }
    }
}

/* When faults stop, everything is as it should be within a few minutes. */
static void storm_settle(struct storm *s)
{
    int status = 0;
    uint32_t count = 0;
    struct err err = { 0 };
    const struct jval *list = NULL;
    s->faults.calm = true;
    s->faults.down = false;
    s->faults.parted = false;
    vloop_freeze(s->replicas[0].view, false);
    vloop_freeze(s->replicas[1].view, false);
    storm_run(s, MINUTES(12)); /* back-off of a node goes up to five minutes */
    if (s->violation != NULL) {
        return;
    }
    struct str body = storm_ask(s, "GET", "/api/v1/nodes", STR(""), &status);
    CHECK_EQ(status, 200);
    CHECK_EQ(json_parse(body, 0, &s->a, &list, &err), 0);
    const struct jval *items = jval_get(list, STR("items"));
    JVAL_EACH (items, node) {
        storm_check_node(s, node);
        count++;
    }
    for (int i = 0; i < 2; i++) {
        if (controller_node_count(s->replicas[i].c) != count) {
            storm_blame(s, "a controller that knows a node which is gone");
        }
    }
    if (controller_leading(s->replicas[0].c) == controller_leading(s->replicas[1].c)) {
        storm_blame(s, "not exactly one leads");
    }
}

static const char *storm(uint64_t seed, mutations_t mutations)
{
    struct storm s = { .time = vloop_new(seed, WALL), .mutations = mutations };
    rng_init(&s.rng, seed);
    s.server = apiserver_new(vloop_root(s.time), seed);
    faults_init(&s.faults, seed);
    faults_draw(&s.faults);
    for (unsigned i = 0; i < 2; i++) {
        s.replicas[i].view = vloop_view(s.time, rng_usec(&s.rng, -MINUTES(10), MINUTES(10)));
        replica_live(&s, i);
    }
    for (int step = 0; step < 60 && s.violation == NULL; step++) {
        storm_trouble(&s);
        storm_run(&s, rng_usec(&s.rng, 0, SECONDS(8)));
    }
    if (s.violation == NULL) {
        storm_settle(&s);
    }
    for (int i = 0; i < 2; i++) {
        vloop_freeze(s.replicas[i].view, false);
        replica_crash(&s.replicas[i]);
        vloop_view_free(s.replicas[i].view);
    }
    faults_done(&s.faults);
    apiserver_free(s.server);
    vloop_free(s.time);
    arena_done(&s.a);
    return s.violation;
}

TEST(controllers_keep_their_promises_in_a_storm)
{
    for (uint64_t seed = 1; seed <= STORM_SEEDS; seed++) {
        const char *violation = storm(seed, 0);
        if (violation != NULL) {
            check_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed, violation);
        }
    }
}

TEST(a_storm_finds_known_bugs)
{
    static const enum mutation wanted[] = {
        MUTATION_LOSE_DELETIONS,      MUTATION_IGNORE_410,        MUTATION_NO_RESYNC_AFTER_CUT,
        MUTATION_LEASE_BY_WALL_CLOCK, MUTATION_LEASE_NEVER_STOPS, MUTATION_DROP_FAILED_NODE,
        MUTATION_DATA_BYTES_WRONG,    MUTATION_ACT_WITHOUT_LEASE,
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        uint64_t seed = 1;
        while (seed <= STORM_SEEDS_BUG && storm(seed, MUTATION_BIT(wanted[i])) == NULL) {
            seed++;
        }
        if (seed > STORM_SEEDS_BUG) {
            check_fail(__FILE__, __LINE__, "mutation %d was not found", (int)wanted[i]);
        }
    }
}
