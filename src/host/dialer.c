#include "host/dialer.h"

#include "base/alloc.h"
#include "host/kubeconfig.h"
#include "host/transport.h"

struct host_dialer {
    struct dialer door; /* first */
    struct transport_group *group;
    struct host_dialer_config config;
};

static struct host_dialer *dialer_of(struct dialer *d)
{
    return CONTAINER_OF(d, struct host_dialer, door);
}

static int dial_check(const struct dialer_spec *spec, const struct cluster_access *access,
                      struct err *err)
{
    if (str_starts(access->proxy_url, STR("https://"))) {
        return err_set(err, ERR_INVALID,
                       "kubeconfig '" STR_FMT "': the proxy speaks TLS, want http:// or socks5://",
                       STR_ARG(spec->name));
    }
    return 0;
}

static struct api *dial_open(struct host_dialer *d, const struct dialer_spec *spec,
                             struct arena *tmp, struct err *err)
{
    const struct kubeconfig_source source = {
        .env = d->config.env,
        .foreign = true,
        .allow_insecure = d->config.allow_insecure,
        .allow_proxy = d->config.allow_proxy,
        .allow_local = d->config.allow_local,
        .token = spec->token,
    };
    const struct kubeconfig_text text = { .path = spec->name, .text = spec->kubeconfig };
    struct cluster_access access = { 0 };
    if (spec->kubeconfig.n > DIALER_KUBECONFIG_BYTES_MAX) {
        (void)err_set(err, ERR_LIMIT, "kubeconfig '" STR_FMT "': has %zu bytes, at most %zu",
                      STR_ARG(spec->name), spec->kubeconfig.n, DIALER_KUBECONFIG_BYTES_MAX);
        return NULL;
    }
    if (kubeconfig_parse(&source, &text, 1, tmp, &access, err) < 0 ||
        dial_check(spec, &access, err) < 0) {
        return NULL;
    }
    struct api *api = transport_group_join(d->group, &access, err);
    if (api == NULL) {
        (void)err_wrap(err, "kubeconfig '" STR_FMT "'", STR_ARG(spec->name));
    }
    return api;
}

static struct api *host_dial(struct dialer *door, const struct dialer_spec *spec, struct err *err)
{
    static const struct transport_limits limits = {
        .requests_max = DIALER_REQUESTS_MAX,
        .watches_max = DIALER_WATCHES_MAX,
        .connect_max = DIALER_CONNECT_MAX,
        .reply_bytes_max = DIALER_REPLY_BYTES_MAX,
        .line_bytes_max = DIALER_LINE_BYTES_MAX,
    };
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct api *api = dial_open(dialer_of(door), spec, &tmp, err);
    if (api != NULL) {
        transport_set_limits(api, &limits);
    }
    return api;
}

static void host_hang_up(struct dialer *door UNUSED, struct api *api)
{
    transport_free(api);
}

static const struct dialer_ops host_dialer_ops = { .dial = host_dial, .hang_up = host_hang_up };

struct dialer *host_dialer_new(struct loop *loop, const struct host_dialer_config *config)
{
    struct host_dialer *d = ALLOC_NEW(struct host_dialer);
    d->door.ops = &host_dialer_ops;
    d->group = transport_group_new(loop);
    d->config = *config;
    return &d->door;
}

void host_dialer_free(struct dialer *door)
{
    if (door == NULL) {
        return;
    }
    struct host_dialer *d = dialer_of(door);
    transport_group_free(d->group);
    alloc_free(d);
}
