#include "cmd/config_env.h"

#include "calendar/zone.h"
#include "host/file.h"

#include <stdlib.h>

#define ZONE_NAME_MAX 100u /* "America/Argentina/ComodRivadavia" has 32 */

const struct config_env config_env_host = { .zones = STR_INIT("/usr/share/zoneinfo") };

static bool find_variable(void *ctx, struct str name, struct str *ret)
{
    (void)ctx; /* there is one environment */
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const char *value = getenv(arena_str(&tmp, name).p);
    *ret = str_from(value);
    return value != NULL;
}

/* The name becomes part of a path, which must not lead elsewhere. */
static bool is_zone_name(struct str name)
{
    bool good =
        name.n > 0 && name.n <= ZONE_NAME_MAX && name.p[0] != '/' && !str_contains(name, STR(".."));
    for (size_t i = 0; good && i < name.n; i++) {
        char c = name.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '/' || c == '_' || c == '-' || c == '+';
    }
    return good;
}

static int find_zone(void *ctx, struct str name, struct arena *out, struct str *ret,
                     struct err *err)
{
    const struct config_env *s = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (!is_zone_name(name)) {
        return err_set(err, ERR_INVALID, "no name of a time zone");
    }
    struct str path = arena_printf(&tmp, STR_FMT "/" STR_FMT, STR_ARG(s->zones), STR_ARG(name));
    return file_read(path, ZONE_BYTES_MAX, out, ret, err);
}

struct ucfg_env config_env_of(const struct config_env *s)
{
    /* The callbacks only read; a context is for whoever wants to write. */
    return (
        struct ucfg_env){ .find = find_variable, .zone = find_zone, .ctx = (void *)(uintptr_t)s };
}
