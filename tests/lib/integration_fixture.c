#include "tests/lib/integration_fixture.h"

#include "format/json.h"
#include "format/json_writer.h"
#include "kinds/crd.h"
#include "sandbox/sim/sim_api.h"
#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)
#define LIMITS_PATH "/apis/repairman.k8s.io/v1/maintenancelimits"

static int fixture_read_file(void *ctx, struct str path, size_t max, struct arena *out,
                             struct str *ret, struct err *err)
{
    struct integration_fixture *f = ctx;
    f->reads++;
    if (f->file.p == NULL || f->file.n > max) {
        return err_set(err, ERR_NOTFOUND, STR_FMT ": there is no such file", STR_ARG(path));
    }
    *ret = arena_str(out, f->file);
    return 0;
}

static void fixture_open(struct integration_fixture *f, const char *provider)
{
    struct integrations_config config = { .files = &f->files };
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        config.enabled[i] = str_eq(str_from(integration_providers[i]->name), str_from(provider));
    }
    f->outbound = sim_outbound_new(virtual_loop_root(f->time), &f->inbox, NULL);
    f->api = sim_api_new(virtual_loop_root(f->time), f->server, NULL);
    f->core = core_new(&(struct core_config){ .loop = virtual_loop_root(f->time),
                                              .api = f->api,
                                              .metrics = &f->metrics,
                                              .identity = STR("a_1"),
                                              .use_limits = true,
                                              .limits = { .namespace = STR("default") } });
    config.outbound = f->outbound;
    integrations_init(&f->all, f->core, &config);
    CHECK_EQ(f->all.n, 1);
    core_start(f->core);
}

static void fixture_close(struct integration_fixture *f)
{
    integrations_done(&f->all);
    core_free(f->core);
    sim_outbound_free(f->outbound);
    sim_api_free(f->api);
}

void integration_fixture_init(struct integration_fixture *f, const char *provider)
{
    *f = (struct integration_fixture){ .time = virtual_loop_new(1, WALL) };
    f->files = (struct files){ .read = fixture_read_file, .ctx = f };
    f->server = apiserver_new(virtual_loop_root(f->time), 1);
    metrics_init(&f->metrics);
    inbox_init(&f->inbox);
    fixture_open(f, provider);
}

void integration_fixture_done(struct integration_fixture *f)
{
    fixture_close(f);
    inbox_done(&f->inbox);
    metrics_done(&f->metrics);
    apiserver_free(f->server);
    arena_done(&f->memory);
    virtual_loop_free(f->time);
}

void integration_fixture_restart(struct integration_fixture *f)
{
    const char *provider = f->all.items[0].provider->name;
    fixture_close(f);
    fixture_open(f, provider);
}

void integration_fixture_limit(struct integration_fixture *f, uint32_t count)
{
    for (size_t i = 0; i < crds_count; i++) {
        CLEANUP(buf_done)
        struct buf body = { 0 };
        struct json_writer w = json_writer_on(&body);
        jw_val(&w, crd_object(&crds[i], &f->memory));
        struct str text = arena_str(&f->memory, buf_str(&body));
        (void)integration_fixture_ask(
            f, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text.p);
    }
    struct str body =
        arena_printf(&f->memory,
                     "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
                     "\"metadata\":{\"name\":\"few\"},\"spec\":{\"type\":\"node\","
                     "\"limit\":0,\"minimum\":%u}}",
                     count);
    (void)integration_fixture_ask(f, "POST", LIMITS_PATH, body.p);
}

void integration_fixture_set_limit(struct integration_fixture *f, uint32_t count)
{
    struct str body = arena_printf(&f->memory, "{\"spec\":{\"minimum\":%u}}", count);
    (void)integration_fixture_ask(f, "PATCH", LIMITS_PATH "/few", body.p);
}

struct str integration_fixture_reservation(struct integration_fixture *f)
{
    const struct jval *limit = integration_fixture_ask(f, "GET", LIMITS_PATH "/few", NULL);
    const struct jval *list = jval_at(limit, "status.reservations");
    CHECK(list == NULL || list->n <= 1);
    JVAL_EACH (list, entry) {
        return jval_str(jval_get(entry, STR("requestName")));
    }
    return STR_NONE;
}

struct integration *integration_fixture_get(struct integration_fixture *f)
{
    return &f->all.items[0];
}

int integration_fixture_configure(struct integration_fixture *f, const char *yaml)
{
    return integration_configure(integration_fixture_get(f), STR("f.yaml"), str_from(yaml),
                                 (struct ucfg_env){ 0 });
}

void integration_fixture_run(struct integration_fixture *f, usec_t span)
{
    (void)virtual_loop_run(f->time, virtual_loop_now(f->time) + span);
    core_check(f->core);
}

const struct jval *integration_fixture_ask(struct integration_fixture *f, const char *method,
                                           const char *path, const char *body)
{
    struct apiserver_reply reply = { 0 };
    struct err err = { 0 };
    const struct jval *root = NULL;
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = body == NULL ? STR_NONE : str_from(body),
    };
    apiserver_handle(f->server, &request, &f->memory, &reply);
    if (reply.status / 100 != 2) {
        check_fail(__FILE__, __LINE__, "%s %s: %d " STR_FMT, method, path, reply.status,
                   STR_ARG(reply.body));
    }
    CHECK_EQ(json_parse(reply.body, 0, &f->memory, &root, &err), 0);
    return root;
}

const struct jval *integration_fixture_node(struct integration_fixture *f, const char *name,
                                            const char *path)
{
    struct str at = arena_printf(&f->memory, "/api/v1/nodes/%s", name);
    return jval_at(integration_fixture_ask(f, "GET", at.p, NULL), path);
}

struct str integration_fixture_label(struct integration_fixture *f, const char *node,
                                     struct str key)
{
    return jval_str(jval_get(integration_fixture_node(f, node, "metadata.labels"), key));
}
