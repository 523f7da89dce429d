#include "cmd/config_file.h"

#include "cmd/config_env.h"
#include "host/file.h"
#include "host/filewatch.h"

#include <unistd.h>

bool config_file_exists(struct str path)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    return access(arena_str(&tmp, path).p, F_OK) == 0;
}

static void config_file_load(void *ctx)
{
    struct config_file *s = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct str text;
    struct controller_config_state setup;
    controller_config_state(s->controller, &setup);
    if (s->optional && setup.file.n == 0 && !config_file_exists(s->path)) {
        log_info(s->log, "there is no configuration file: every node has the default profile alone",
                 KV_STR("file", s->path));
        return;
    }
    if (file_read(s->path, UCFG_BYTES_MAX, &tmp, &text, &err) < 0) {
        controller_configure_failed(s->controller, s->path, &err);
        return;
    }
    /* What is wrong with it has been told where operators look. */
    int r = controller_configure(s->controller, s->path, text, config_env_of(&config_env_host));
    if (r < 0) {
        log_debug(s->log, "the configuration file is not used", KV_STR("file", s->path));
    }
}

int config_file_start(struct config_file *s, struct loop *loop, struct err *err)
{
    s->watch = filewatch_new(loop, s->path, config_file_load, s, err);
    if (s->watch == NULL) {
        return err_wrap(err, "--config");
    }
    config_file_load(s);
    return 0;
}

void config_file_stop(struct config_file *s)
{
    filewatch_free(s->watch);
    s->watch = NULL;
}
