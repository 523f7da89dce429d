#include "sandbox/sim/dialer.h"

#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

struct dialer_fixture {
    struct virtual_loop *time;
    struct apiserver *server;
    struct faults faults;
    struct sim_clusters clusters;
    struct sim_cluster *east;
    struct dialer *dialer;
    struct arena memory;
    int status;      /* of the last answer */
    uint32_t events; /* of watches */
    int ended;       /* the status a watch ended with */
    char err[512];
};

static void fixture_init(struct dialer_fixture *b)
{
    *b = (struct dialer_fixture){ .time = virtual_loop_new(1, 0) };
    b->server = apiserver_new(virtual_loop_root(b->time), 1);
    apiserver_set_token(b->server, STR("secret"));
    faults_init(&b->faults, 1);
    sim_clusters_init(&b->clusters);
    b->east = sim_clusters_add(&b->clusters, STR("https://east"), b->server, &b->faults);
    b->dialer = sim_dialer_new(virtual_loop_root(b->time), &b->clusters);
}

static void fixture_done(struct dialer_fixture *b)
{
    sim_dialer_free(b->dialer);
    sim_clusters_done(&b->clusters);
    faults_done(&b->faults);
    apiserver_free(b->server);
    CHECK_EQ(virtual_loop_armed(b->time), 0);
    virtual_loop_free(b->time);
    arena_done(&b->memory);
}

static struct api *request_send(struct dialer_fixture *b, const char *address, const char *token,
                                const char *instead)
{
    struct err err = { 0 };
    struct str text = sim_clusters_kubeconfig(str_from(address), str_from(token), &b->memory);
    struct api *api = dialer_open(
        b->dialer,
        &(struct dialer_spec){ .name = STR("x"), .kubeconfig = text, .token = str_from(instead) },
        &err);
    CHECK((api == NULL) == (err.code != 0));
    (void)snprintf(b->err, sizeof(b->err), "%s", err.msg);
    return api;
}

static void on_reply(void *ctx, const struct api_reply *reply)
{
    struct dialer_fixture *b = ctx;
    b->status = reply->status;
    if (reply->err != NULL) {
        (void)snprintf(b->err, sizeof(b->err), "%s", reply->err->msg);
    }
}

static void on_event(void *ctx, const struct api_watch_event *event)
{
    struct dialer_fixture *b = ctx;
    b->events++;
    b->ended = event->kind == API_WATCH_END ? event->status : b->ended;
}

static int get(struct dialer_fixture *b, struct api *api)
{
    b->status = -1;
    (void)api_send(api, &(struct api_request){ .path = STR("/api/v1/nodes") }, on_reply, b);
    (void)virtual_loop_run(b->time, virtual_loop_now(b->time) + SECONDS(40));
    return b->status;
}

TEST(dialer_leads_to_the_server_behind_the_address)
{
    static const struct {
        const char *address;
        const char *token;
        const char *instead;
        int status;
    } cases[] = {
        { "https://east", "secret", NULL, 200 },      { "https://east", "", NULL, 200 },
        { "https://east", "other", NULL, 401 },       { "https://east", "other", "secret", 200 },
        { "https://east", "secret", "another", 401 }, { "https://west", "secret", NULL, 0 },
        { "https://east:6443", "secret", NULL, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct dialer_fixture b;
        fixture_init(&b);
        struct api *api = request_send(&b, cases[i].address, cases[i].token, cases[i].instead);
        CHECK(api != NULL);
        CHECK_EQ(get(&b, api), cases[i].status);
        if (cases[i].status == 0) {
            CHECK_STR(b.err, "connection refused");
        }
        CHECK_EQ(sim_dialer_open(b.dialer), 1);
        CHECK_EQ(b.east->open, cases[i].status != 0);
        dialer_hang_up(b.dialer, api);
        dialer_hang_up(b.dialer, NULL);
        CHECK_EQ(sim_dialer_open(b.dialer), 0);
        CHECK_EQ(b.east->open, 0);
        fixture_done(&b);
    }
    check_case(-1);
}

TEST(dialer_says_what_is_wrong_with_a_kubeconfig)
{
    struct dialer_fixture b;
    fixture_init(&b);
    struct err err = { 0 };
    CHECK(dialer_open(b.dialer, &(struct dialer_spec){ .kubeconfig = STR("{}") }, &err) == NULL);
    CHECK_STR(err.msg, "the kubeconfig names no server of a cluster");
    CHECK(dialer_open(b.dialer, &(struct dialer_spec){ .kubeconfig = STR("{") }, &err) == NULL);
    b.east->refusal = "certificates are out of date";
    CHECK(request_send(&b, "https://east", "secret", NULL) == NULL);
    CHECK_STR(b.err, "certificates are out of date");
    CHECK_EQ(b.east->dial_count, 1);
    CHECK_EQ(sim_dialer_open(b.dialer), 0);
    fixture_done(&b);
}

TEST(dialer_door_loses_its_rights_when_the_token_changes)
{
    struct dialer_fixture b;
    fixture_init(&b);
    struct api *api = request_send(&b, "https://east", "secret", NULL);
    CHECK_EQ(get(&b, api), 200);
    (void)api_watch(api, &(struct api_watch_spec){ .path = STR("/api/v1/nodes?watch=1") }, on_event,
                    &b);
    (void)virtual_loop_run(b.time, virtual_loop_now(b.time) + SECONDS(1));
    apiserver_set_token(b.server, STR("rotated"));
    CHECK_EQ(get(&b, api), 401);
    CHECK_EQ(b.ended, 0); /* a stream that is open stays so, as with the real one */
    (void)api_watch(api, &(struct api_watch_spec){ .path = STR("/api/v1/nodes?watch=1") }, on_event,
                    &b);
    (void)virtual_loop_run(b.time, virtual_loop_now(b.time) + SECONDS(1));
    CHECK_EQ(b.ended, 401);
    CHECK_EQ(get(&b, request_send(&b, "https://east", "rotated", NULL)), 200);
    fixture_done(&b); /* with doors open, as after a crash */
}
