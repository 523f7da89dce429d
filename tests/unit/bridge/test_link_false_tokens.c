/* Clusters that are right in all but one thing: what they say of their tokens, or that the list
 * through the next door never ends. */
#include "tests/lib/link_fixture.h"

#include "base/alloc.h"
#include "base/timestamp.h"
#include "bridge/workload_token.h"
#include "tests/check.h"

#define RENEWAL SECONDS(WORKLOAD_TOKEN_SECONDS *WORKLOAD_TOKEN_RENEW_PERCENT / 100)

/* Doors of the world's own dialer, with somebody in between. */
struct cheat {
    struct dialer dialer; /* first */
    struct link_world *w;
    usec_t life;         /* of tokens, as they say; 0 = the truth */
    uint32_t dial_count; /* doors */
    uint32_t dumb;       /* the streams of doors from this one on have no end mark; 0 = none is */
};

struct cheat_door {
    struct api api; /* first */
    struct cheat *cheat;
    struct api *inner;
    uint32_t number;
    api_on_reply on_token; /* one at a time */
    void *token_ctx;
    api_on_event on_event; /* likewise */
    void *event_ctx;
};

static struct cheat_door *cheat_door_of(struct api *api)
{
    return CONTAINER_OF(api, struct cheat_door, api);
}

static void cheat_on_token(void *ctx, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct cheat_door *door = ctx;
    struct api_reply told = *reply;
    if (reply->status == 201 && door->cheat->life > 0) {
        char until[TIMESTAMP_TEXT_MAX];
        usec_t end = loop_wall(door->cheat->w->loop) + door->cheat->life;
        told.date = 0;
        told.body = arena_printf(
            &tmp, "{\"status\":{\"token\":\"t1\",\"expirationTimestamp\":\"" STR_FMT "\"}}",
            STR_ARG(timestamp_print_micro(end, until)));
    }
    door->on_token(door->token_ctx, &told);
}

static struct api_call *cheat_send(struct api *api, const struct api_request *request,
                                   api_on_reply on_reply, void *ctx)
{
    struct cheat_door *door = cheat_door_of(api);
    if (!str_contains(request->path, STR("/token"))) {
        return api_send(door->inner, request, on_reply, ctx);
    }
    door->on_token = on_reply;
    door->token_ctx = ctx;
    return api_send(door->inner, request, cheat_on_token, door);
}

static void cheat_cancel(struct api *api, struct api_call *call)
{
    api_cancel(cheat_door_of(api)->inner, call);
}

static void cheat_on_event(void *ctx, const struct api_watch_event *event)
{
    const struct cheat_door *door = ctx;
    bool dumb = door->cheat->dumb > 0 && door->number >= door->cheat->dumb;
    if (!dumb || !str_contains(event->line, STR("initial-events-end"))) {
        door->on_event(door->event_ctx, event);
    }
}

static struct api_watch *cheat_watch(struct api *api, const struct api_watch_spec *spec,
                                     api_on_event on_event, void *ctx)
{
    struct cheat_door *door = cheat_door_of(api);
    door->on_event = on_event;
    door->event_ctx = ctx;
    return api_watch(door->inner, spec, cheat_on_event, door);
}

static void cheat_watch_stop(struct api *api, struct api_watch *watch)
{
    api_watch_stop(cheat_door_of(api)->inner, watch);
}

static struct api *cheat_dial(struct dialer *dialer, const struct dialer_spec *spec,
                              struct err *err)
{
    static const struct api_ops ops = {
        .send = cheat_send,
        .cancel = cheat_cancel,
        .watch = cheat_watch,
        .watch_stop = cheat_watch_stop,
    };
    struct cheat *c = CONTAINER_OF(dialer, struct cheat, dialer);
    struct api *inner = dialer_open(c->w->dialer, spec, err);
    if (inner == NULL) {
        return NULL;
    }
    struct cheat_door *door = ALLOC_NEW(struct cheat_door);
    door->api.ops = &ops;
    door->cheat = c;
    door->inner = inner;
    door->number = ++c->dial_count;
    return &door->api;
}

static void cheat_hang_up(struct dialer *dialer, struct api *api)
{
    struct cheat *c = CONTAINER_OF(dialer, struct cheat, dialer);
    struct cheat_door *door = cheat_door_of(api);
    dialer_hang_up(c->w->dialer, door->inner);
    alloc_free(door);
}

static struct link_cluster *begin(struct link_world *w, struct cheat *c)
{
    static const struct dialer_ops ops = { .dial = cheat_dial, .hang_up = cheat_hang_up };
    link_world_begin(w, 1);
    c->dialer.ops = &ops;
    c->w = w;
    w->instead = &c->dialer;
    w->manage = true;
    struct link_cluster *east = link_cluster_new(w, "east");
    link_cluster_node(east, "a");
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(w, east, LINK_WATCHING, SECONDS(3)));
    return east;
}

/* What each renewal takes is taken from all links: reads of Secrets, and turns to connect. */
TEST(link_does_not_renew_tokens_all_the_time_however_short_they_live)
{
    static const usec_t lives[] = { MSECONDS(600), SECONDS(1), SECONDS(10) };
    for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
        struct link_world w;
        struct cheat cheat = { .life = lives[i] };
        struct link_cluster *east = begin(&w, &cheat);
        link_cluster_watch_secret(east);
        uint64_t before = link_world_secret_reads(&w);
        link_world_run(&w, MINUTES(10));
        CHECK(link_world_secret_reads(&w) - before <= 12);
        CHECK(link_fresh(east->link));
        link_world_end(&w);
    }
}

/* As after a 410: what is known is old, and nobody says when it will be new. */
TEST(link_is_lost_when_the_list_through_the_next_door_does_not_end)
{
    struct link_world w;
    struct cheat cheat = { .dumb = 3 }; /* the administrator's, the first token's, … */
    struct link_cluster *east = begin(&w, &cheat);
    link_cluster_watch_secret(east);
    link_world_run(&w, RENEWAL - SECONDS(5));
    while (cheat.dial_count < 4) {
        link_world_run(&w, SECONDS(1));
    }
    CHECK(link_fresh(east->link));
    for (int i = 0; i < 20; i++) { /* it drips, so that nobody finds the stream silent */
        link_cluster_label(east, "a", "x", i % 2 == 0);
        link_world_run(&w, SECONDS(1));
    }
    CHECK(!link_fresh(east->link));
    CHECK(str_contains(link_cluster_view(east).trouble, STR("the new list of Nodes")));
    link_world_end(&w);
}
