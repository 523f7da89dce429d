/* Links over networks that are as bad as they get. */
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/link_fixture.h"

#define CALM (LINK_BACKOFF_MAX + LINK_LISTING_MAX + LINK_SILENCE_MAX + MINUTES(1))

struct trial {
    struct link_world w;
    struct rng *rng;
    struct link_cluster *clusters[2];
    uint32_t nodes[2]; /* a bit for each that exists */
    uint32_t tokens[2];
    uint32_t sent;
    uint32_t answered;
};

static void node_name(char name[8], uint32_t i)
{
    (void)snprintf(name, 8, "n%u", i);
}

static void on_reply(void *ctx, const struct api_reply *reply UNUSED)
{
    struct trial *t = ctx;
    t->answered++;
}

static void send_some(struct trial *t, struct link_cluster *cluster)
{
    for (uint32_t i = rng_below(t->rng, 8); i > 0; i--) {
        char name[8];
        node_name(name, rng_below(t->rng, 8));
        struct str path = arena_printf(&t->w.memory, "/api/v1/nodes/%s", name);
        const struct api_request request = {
            .verb = API_PATCH,
            .path = path,
            .content_type = API_MERGE_PATCH,
            .body = arena_printf(&t->w.memory, "{\"metadata\":{\"labels\":{\"x\":\"%u\"}}}",
                                 rng_below(t->rng, 100)),
        };
        struct link_call *call = link_send(cluster->link, &request, on_reply, t);
        if (rng_chance(t->rng, 100)) {
            link_cancel(call);
        } else {
            t->sent++;
        }
    }
}

static void change_node(struct trial *t, uint32_t i)
{
    struct link_cluster *cluster = t->clusters[i];
    char name[8];
    uint32_t n = rng_below(t->rng, 8);
    node_name(name, n);
    if ((t->nodes[i] & (1u << n)) == 0) {
        link_cluster_node(cluster, name);
        t->nodes[i] |= 1u << n;
    } else if (rng_chance(t->rng, 300)) {
        link_cluster_node_delete(cluster, name);
        t->nodes[i] &= ~(1u << n);
    } else {
        link_cluster_label(cluster, name, KEYS_LEGACY "approve-deletion", rng_chance(t->rng, 500));
    }
}

static void rotate(struct trial *t, uint32_t i)
{
    char token[16];
    (void)snprintf(token, sizeof(token), "r%u", ++t->tokens[i]);
    apiserver_set_token(t->clusters[i]->server, str_from(token));
    if (rng_chance(t->rng, 500)) {
        link_world_run(&t->w, rng_usec(t->rng, 0, SECONDS(20)));
    }
    link_cluster_secret(t->clusters[i], token);
    if (rng_chance(t->rng, 500)) {
        link_cluster_watch_secret(t->clusters[i]);
    }
}

static void disturb(struct trial *t)
{
    uint32_t i = rng_below(t->rng, 2);
    struct link_cluster *cluster = t->clusters[i];
    switch (rng_below(t->rng, 12)) {
    case 0:
        cluster->faults.down = !cluster->faults.down;
        break;
    case 1:
        cluster->faults.partitioned = !cluster->faults.partitioned;
        break;
    case 2:
        t->w.faults.down = !t->w.faults.down;
        break;
    case 3:
        rotate(t, i);
        break;
    case 4:
        apiserver_restart(cluster->server);
        break;
    case 5:
        apiserver_compact(cluster->server);
        break;
    case 6:
        link_close(cluster->link);
        break;
    case 7:
        link_open(cluster->link, rng_chance(t->rng, 500));
        break;
    case 8:
        cluster->entry->refusal = rng_chance(t->rng, 300) ? "refused" : NULL;
        break;
    case 9:
        send_some(t, cluster);
        break;
    default:
        change_node(t, i);
        break;
    }
}

static void calm(struct trial *t)
{
    t->w.faults.calm = true;
    t->w.faults.down = false;
    for (uint32_t i = 0; i < 2; i++) {
        struct link_cluster *cluster = t->clusters[i];
        cluster->faults.calm = true;
        cluster->faults.down = false;
        cluster->faults.partitioned = false;
        cluster->entry->refusal = NULL;
        link_open(cluster->link, /* hurry= */ false);
    }
}

PROPERTY(link_is_fresh_and_right_again_when_faults_stop)
{
    struct trial t = { .rng = rng };
    link_world_begin(&t.w, rng_next(rng));
    faults_randomize(&t.w.faults);
    for (uint32_t i = 0; i < 2; i++) {
        t.clusters[i] = link_cluster_new(&t.w, i == 0 ? "east" : "west");
        faults_randomize(&t.clusters[i]->faults);
        link_open(t.clusters[i]->link, /* hurry= */ false);
    }
    for (uint32_t i = 0; i < 60; i++) {
        disturb(&t);
        link_world_run(&t.w, rng_usec(rng, 0, SECONDS(10)));
    }
    calm(&t);
    link_world_run(&t.w, CALM);
    for (uint32_t i = 0; i < 2; i++) {
        change_node(&t, i);
    }
    link_world_run(&t.w, SECONDS(5));
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(link_fresh(t.clusters[i]->link));
        CHECK(link_cluster_store_matches(t.clusters[i]));
        CHECK_STR(link_cluster_view(t.clusters[i]).trouble, "");
        CHECK_EQ(t.clusters[i]->entry->open, 1);
    }
    CHECK_EQ(t.answered, t.sent); /* each once */
    link_world_end(&t.w);
}

/* B5: whenever the process ends, the next one comes to the same. */
PROPERTY(link_made_after_a_crash_knows_what_the_cluster_knows)
{
    struct trial t = { .rng = rng };
    link_world_begin(&t.w, rng_next(rng));
    t.clusters[0] = link_cluster_new(&t.w, "east");
    t.clusters[1] = t.clusters[0];
    struct link_cluster *east = t.clusters[0];
    faults_randomize(&east->faults);
    link_open(east->link, /* hurry= */ false);
    for (uint32_t i = 0; i < 10; i++) {
        change_node(&t, 0);
        link_world_run(&t.w, rng_usec(rng, 0, MSECONDS(500)));
    }
    link_free(STEAL(east->link));
    CHECK_EQ(east->entry->open, 0);
    link_cluster_relink(east);
    east->faults.calm = true;
    link_open(east->link, /* hurry= */ false);
    link_world_run(&t.w, SECONDS(5));
    CHECK(link_fresh(east->link));
    CHECK(link_cluster_store_matches(east));
    link_world_end(&t.w);
}
