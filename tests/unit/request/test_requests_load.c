/* Ten thousand MaintenanceRequests in front of a slow API server: whoever leads goes on leading,
 * and the work goes on. */
#include "core/core.h"
#include "format/json_writer.h"
#include "format/yaml.h"
#include "request/requests_part.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define WALL SECONDS(1767323045)
#define LOAD_REQUESTS 10000u
#define LOAD_IN_FLIGHT_MAX 128u    /* locks, writes and checks have a window of 32 each */
#define LOAD_LATENCY MSECONDS(200) /* each way: 80 requests a second by 32 connections */

static const char *const load_first[] = { "Pending" };
static const char *const load_later[] = { "Approved", "InProgress", "Completed" };

struct load {
    struct virtual_loop *time;
    struct apiserver *server;
    struct faults faults;
    struct api *api;
    struct core *core;
    struct requests_part requests;
    struct arena memory;
    uint32_t lost;           /* how often it ceased to lead */
    uint32_t most_in_flight; /* requests, those in the queue with them */
};

static void load_send(struct load *f, const char *method, const char *path, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = body,
    };
    apiserver_handle(f->server, &request, &tmp, &reply);
    if (reply.status >= 300) {
        check_fail(__FILE__, __LINE__, "%s %s: %d " STR_FMT, method, path, reply.status,
                   STR_ARG(reply.body));
    }
}

static void load_install(struct load *f, const char *file)
{
    struct ydoc doc = { 0 };
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    CHECK_EQ(ydoc_parse(arena_str(&f->memory, check_data(file)), &f->memory, &doc, &err), 0);
    jw_val(&w, doc.root);
    load_send(f, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", buf_str(&json));
}

/* One request a node. A state other than Pending stands there as another controller left it. */
static void load_fill(struct load *f, const char *const *states, uint32_t state_n)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t i = 0; i < LOAD_REQUESTS; i++) {
        const char *state = states[i % state_n];
        arena_reset(&tmp);
        load_send(f, "POST", "/api/v1/nodes",
                  arena_printf(&tmp, "{\"metadata\":{\"name\":\"n%u\"}}", i));
        load_send(f, "POST", "/apis/repairman.k8s.io/v1/maintenancerequests",
                  arena_printf(&tmp,
                               "{\"apiVersion\":\"repairman.k8s.io/v1\","
                               "\"kind\":\"MaintenanceRequest\",\"metadata\":{\"name\":\"r%u\","
                               "\"labels\":{\"maintenancerequests.repairman.k8s.io/clientname\":"
                               "\"actor\"}},\"spec\":{\"name\":\"n%u\",\"type\":\"node\","
                               "\"state\":\"%s\"}}",
                               i, i, state));
        if (!str_eq(str_from(state), STR("Pending"))) {
            load_send(
                f, "PATCH",
                arena_printf(&tmp, "/apis/repairman.k8s.io/v1/maintenancerequests/r%u/status", i).p,
                arena_printf(&tmp, "{\"status\":{\"phase\":\"%s\"}}", state));
        }
    }
}

static void load_on_leading(void *ctx, bool leading)
{
    struct load *f = ctx;
    f->lost += leading ? 0 : 1;
}

static void load_begin(struct load *f, const char *const *states, uint32_t state_n)
{
    *f = (struct load){ .time = virtual_loop_new(1, WALL) };
    struct loop *loop = virtual_loop_root(f->time);
    f->server = apiserver_new(loop, 1);
    faults_init(&f->faults, 1);
    f->faults.latency_min = LOAD_LATENCY;
    f->faults.latency_max = LOAD_LATENCY;
    f->api = sim_api_new(loop, f->server, &f->faults);
    load_install(f, "crds/maintenancerequests.repairman.k8s.io.yaml");
    load_install(f, "crds/maintenancelimits.repairman.k8s.io.yaml");
    load_install(f, "crds/maintenanceselectors.repairman.k8s.io.yaml");
    load_fill(f, states, state_n);
    f->core = core_new(&(struct core_config){ .loop = loop,
                                              .api = f->api,
                                              .identity = STR("a_1"),
                                              .elect = true,
                                              .use_limits = true,
                                              .limits = { .namespace = STR("default") },
                                              .on_leading = load_on_leading,
                                              .ctx = f });
    requests_part_init(&f->requests, f->core,
                       &(struct requests_config){ .skew_tolerance = SECONDS(5) });
    core_start(f->core);
}

static void load_end(struct load *f)
{
    core_check(f->core);
    requests_check(f->requests.requests);
    requests_part_done(&f->requests);
    core_free(f->core);
    sim_api_free(f->api);
    faults_done(&f->faults);
    apiserver_free(f->server);
    arena_done(&f->memory);
    CHECK_EQ(virtual_loop_armed(f->time), 0);
    virtual_loop_free(f->time);
}

struct load_count {
    struct str phase;
    uint32_t n;
};

static void load_count_phase(void *ctx, const struct jval *object)
{
    struct load_count *c = ctx;
    c->n += str_eq(jval_str(jval_at(object, "status.phase")), c->phase) ? 1 : 0;
}

static uint32_t load_in_phase(struct load *f, const char *phase)
{
    struct load_count c = { .phase = str_from(phase) };
    apiserver_each(f->server, STR("repairman.k8s.io"), STR("maintenancerequests"), STR(""),
                   load_count_phase, &c);
    return c.n;
}

/* Runs for `span`; the Lease stays with the one that has it. */
static void load_run(struct load *f, usec_t span)
{
    usec_t until = virtual_loop_now(f->time) + span;
    while (virtual_loop_now(f->time) < until) {
        (void)virtual_loop_run(f->time, MIN(until, virtual_loop_now(f->time) + SECONDS(1)));
        f->most_in_flight = MAX(f->most_in_flight, sim_api_in_flight(f->api));
    }
    const struct jval *lease = apiserver_find(f->server, STR("coordination.k8s.io"), STR("leases"),
                                              STR("default"), f->core->lease.config.name);
    CHECK_STR(jval_str(jval_at(lease, "spec.holderIdentity")), "a_1");
    int64_t transitions = -1;
    CHECK(jval_i64(jval_at(lease, "spec.leaseTransitions"), &transitions));
    CHECK_EQ(transitions, 0);
    CHECK_EQ(f->lost, 0);
    CHECK(core_holds_lease(f->core));
}

TEST(requests_that_wait_by_the_thousand_are_approved_and_the_lease_is_kept)
{
    struct load f;
    load_begin(&f, load_first, ARRAY_LEN(load_first));
    load_run(&f, MINUTES(2));
    uint32_t approved = load_in_phase(&f, "Approved");
    CHECK(approved > 0);
    load_run(&f, MINUTES(1));
    CHECK(load_in_phase(&f, "Approved") > approved);
    CHECK(f.most_in_flight <= LOAD_IN_FLIGHT_MAX);
    load_end(&f);
}

/* Another controller has left them so, and its successor takes all of them over. */
TEST(requests_in_every_later_state_by_the_thousand_are_taken_over_and_the_lease_is_kept)
{
    struct load f;
    load_begin(&f, load_later, ARRAY_LEN(load_later));
    load_run(&f, MINUTES(2));
    CHECK_EQ(load_in_phase(&f, "Approved") + load_in_phase(&f, "InProgress") +
                 load_in_phase(&f, "Completed"),
             LOAD_REQUESTS);
    CHECK(f.most_in_flight <= LOAD_IN_FLIGHT_MAX);
    load_end(&f);
}
