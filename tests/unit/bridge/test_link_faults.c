/* Links over networks that are as bad as they get. */
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/link_fixture.h"

#define CALM (LINK_BACKOFF_MAX + LINK_LISTING_MAX + LINK_SILENCE_MAX + MINUTES(1))

struct trial {
    struct link_world w;
    struct rng *rng;
    struct link_site *sites[2];
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

static void send_some(struct trial *t, struct link_site *site)
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
        struct link_call *call = link_send(site->link, &request, on_reply, t);
        if (rng_chance(t->rng, 100)) {
            link_cancel(call);
        } else {
            t->sent++;
        }
    }
}

static void change_node(struct trial *t, uint32_t i)
{
    struct link_site *site = t->sites[i];
    char name[8];
    uint32_t n = rng_below(t->rng, 8);
    node_name(name, n);
    if ((t->nodes[i] & (1u << n)) == 0) {
        link_site_node(site, name);
        t->nodes[i] |= 1u << n;
    } else if (rng_chance(t->rng, 300)) {
        link_site_node_delete(site, name);
        t->nodes[i] &= ~(1u << n);
    } else {
        link_site_label(site, name, KEYS_LEGACY "approve-deletion", rng_chance(t->rng, 500));
    }
}

static void rotate(struct trial *t, uint32_t i)
{
    char token[16];
    (void)snprintf(token, sizeof(token), "r%u", ++t->tokens[i]);
    apiserver_set_token(t->sites[i]->server, str_from(token));
    if (rng_chance(t->rng, 500)) {
        link_world_run(&t->w, rng_usec(t->rng, 0, SECONDS(20)));
    }
    link_site_secret(t->sites[i], token);
    if (rng_chance(t->rng, 500)) {
        link_site_follow(t->sites[i]);
    }
}

static void disturb(struct trial *t)
{
    uint32_t i = rng_below(t->rng, 2);
    struct link_site *site = t->sites[i];
    switch (rng_below(t->rng, 12)) {
    case 0:
        site->faults.down = !site->faults.down;
        break;
    case 1:
        site->faults.partitioned = !site->faults.partitioned;
        break;
    case 2:
        t->w.faults.down = !t->w.faults.down;
        break;
    case 3:
        rotate(t, i);
        break;
    case 4:
        apiserver_restart(site->server);
        break;
    case 5:
        apiserver_compact(site->server);
        break;
    case 6:
        link_close(site->link);
        break;
    case 7:
        link_open(site->link, rng_chance(t->rng, 500));
        break;
    case 8:
        site->entry->refusal = rng_chance(t->rng, 300) ? "refused" : NULL;
        break;
    case 9:
        send_some(t, site);
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
        struct link_site *site = t->sites[i];
        site->faults.calm = true;
        site->faults.down = false;
        site->faults.partitioned = false;
        site->entry->refusal = NULL;
        link_open(site->link, /* hurry= */ false);
    }
}

PROPERTY(link_is_fresh_and_right_again_when_faults_stop)
{
    struct trial t = { .rng = rng };
    link_world_begin(&t.w, rng_next(rng));
    faults_randomize(&t.w.faults);
    for (uint32_t i = 0; i < 2; i++) {
        t.sites[i] = link_site_new(&t.w, i == 0 ? "east" : "west");
        faults_randomize(&t.sites[i]->faults);
        link_open(t.sites[i]->link, /* hurry= */ false);
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
        CHECK(link_fresh(t.sites[i]->link));
        CHECK(link_site_agrees(t.sites[i]));
        CHECK_STR(link_site_view(t.sites[i]).trouble, "");
        CHECK_EQ(t.sites[i]->entry->open, 1);
    }
    CHECK_EQ(t.answered, t.sent); /* each once */
    link_world_end(&t.w);
}

/* C12.20: whenever the process ends, the next one comes to the same. */
PROPERTY(link_made_after_a_crash_knows_what_the_cluster_knows)
{
    struct trial t = { .rng = rng };
    link_world_begin(&t.w, rng_next(rng));
    t.sites[0] = link_site_new(&t.w, "east");
    t.sites[1] = t.sites[0];
    struct link_site *east = t.sites[0];
    faults_randomize(&east->faults);
    link_open(east->link, /* hurry= */ false);
    for (uint32_t i = 0; i < 10; i++) {
        change_node(&t, 0);
        link_world_run(&t.w, rng_usec(rng, 0, MSECONDS(500)));
    }
    link_free(STEAL(east->link));
    CHECK_EQ(east->entry->open, 0);
    link_site_relink(east);
    east->faults.calm = true;
    link_open(east->link, /* hurry= */ false);
    link_world_run(&t.w, SECONDS(5));
    CHECK(link_fresh(east->link));
    CHECK(link_site_agrees(east));
    link_world_end(&t.w);
}
