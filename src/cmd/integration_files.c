#include "cmd/integration_files.h"

#include "cmd/config_env.h"
#include "host/file.h"
#include "host/filewatch.h"

static int read_host_file(void *ctx, struct str path, size_t max, struct arena *out,
                          struct str *ret, struct err *err)
{
    (void)ctx; /* there is one machine */
    return file_read(path, max, out, ret, err);
}

const struct files integration_files_host = { .read = read_host_file };

static void integration_file_load(void *ctx)
{
    struct integration_file *f = ctx;
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct str text;
    if (file_read(f->path, INTEGRATION_FILE_BYTES_MAX, &tmp, &text, &err) < 0) {
        integration_configure_failed(f->integration, f->path, &err);
    } else if (integration_configure(f->integration, f->path, text,
                                     config_env_of(&config_env_host)) < 0) {
        /* What is wrong with it has been told where operators look. */
        log_debug(f->log, "the configuration file is not used", KV_STR("file", f->path));
    }
    arena_wipe(&tmp); /* passwords may be in it */
}

int integration_files_start(struct integration_files *s, struct integrations *all,
                            const struct str *paths, struct loop *loop, struct err *err)
{
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        const struct integration_provider *provider = integration_providers[i];
        struct integration_file *f = &s->items[i];
        f->integration = integrations_find(all, str_from(provider->name));
        f->path = paths[i].n > 0 ? paths[i] : str_from(provider->file);
        if (f->integration == NULL) {
            continue;
        }
        f->log = f->integration->core->log;
        f->watch = filewatch_new(loop, f->path, integration_file_load, f, err);
        if (f->watch == NULL) {
            return err_wrap(err, "--%s-config", provider->name);
        }
        integration_file_load(f);
    }
    return 0;
}

void integration_files_stop(struct integration_files *s)
{
    for (uint32_t i = 0; i < ARRAY_LEN(s->items); i++) {
        filewatch_free(STEAL(s->items[i].watch));
    }
}
