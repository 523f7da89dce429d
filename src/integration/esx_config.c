#include "integration/esx_config.h"

#include "base/buf.h"
#include "format/unknown_keys.h"
#include "integration/file_reader.h"

#define ESX_JITTER_MIN 0.001          /* the original's own rule */
#define ESX_DRAIN_TIMEOUT MINUTES(10) /* of a pod's deletion, where nothing is said */

/* "https://vcenter-$AZ.example" for zone a, with /sdk. */
static struct str esx_url(struct str template, struct str zone, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf url = { 0 };
    struct str left;
    while (str_cut(template, STR("$AZ"), &left, &template)) {
        buf_add(&url, left);
        buf_add(&url, zone);
    }
    buf_add(&url, left);
    buf_add(&url, STR("/sdk"));
    return arena_str(out, buf_str(&url));
}

static void esx_read_intervals(const struct file_reader *r, struct esx_config *config)
{
    const struct ucfg_value *intervals =
        file_reader_obj(r, r->u->root, "intervals", "check|podDeletion|podEviction|vmShutdown");
    const struct ucfg_value *check =
        file_reader_obj(r, intervals, "intervals.check", "period|jitter");
    const struct ucfg_value *deletion =
        file_reader_obj(r, intervals, "intervals.podDeletion", "period|timeout");
    const struct ucfg_value *eviction =
        file_reader_obj(r, intervals, "intervals.podEviction", "period|timeout|force");
    const struct ucfg_value *shutdown =
        file_reader_obj(r, intervals, "intervals.vmShutdown", "period|timeout");
    config->period = file_reader_duration(r, check, "intervals.check.period", true);
    config->jitter = file_reader_real(r, check, "intervals.check.jitter", 0);
    if (config->jitter < ESX_JITTER_MIN) {
        problems_add(r->problems, file_reader_pos(r, check, "intervals.check.jitter"),
                     "key 'intervals.check.jitter': want a number, 0.001 at least");
    }
    /* The periods of pods have no effect: drains are moved by events. */
    (void)file_reader_duration(r, deletion, "intervals.podDeletion.period", false);
    config->deletion_timeout =
        file_reader_duration(r, deletion, "intervals.podDeletion.timeout", false);
    if (config->deletion_timeout == 0) {
        config->deletion_timeout = ESX_DRAIN_TIMEOUT;
    }
    (void)file_reader_duration(r, eviction, "intervals.podEviction.period", true); /* likewise */
    config->eviction_timeout =
        file_reader_duration(r, eviction, "intervals.podEviction.timeout", true);
    config->force = file_reader_bool(r, eviction, "intervals.podEviction.force");
    config->shutdown_period =
        file_reader_duration(r, shutdown, "intervals.vmShutdown.period", true);
    config->shutdown_timeout =
        file_reader_duration(r, shutdown, "intervals.vmShutdown.timeout", true);
}

static void esx_read_login(const struct file_reader *r, const struct ucfg_value *credentials,
                           struct str zone, struct str template, struct esx_config *config)
{
    struct arena *out = r->u->out;
    struct str path = arena_printf(out, "vCenters.credentials." STR_FMT, STR_ARG(zone));
    const struct ucfg_value *login = file_reader_obj(r, credentials, path.p, "username|password");
    if (zone.n != 1) {
        problems_warn(r->problems, file_reader_pos(r, credentials, path.p),
                      "key '" STR_FMT "': a zone is one character, the last of the zone label; "
                      "these credentials are never used",
                      STR_ARG(path));
    }
    if (config->login_n == ESX_ZONES_MAX) {
        problems_add(r->problems, file_reader_pos(r, credentials, path.p),
                     "key 'vCenters.credentials': there are more than %u zones", ESX_ZONES_MAX);
        return;
    }
    config->logins[config->login_n++] = (struct esx_zone_login){
        .zone = zone,
        .url = esx_url(template, zone, out),
        .user = file_reader_text(r, login, arena_printf(out, STR_FMT ".username", STR_ARG(path)).p,
                                 true),
        .password = file_reader_secret(
            r, login, arena_printf(out, STR_FMT ".password", STR_ARG(path)).p, false),
    };
}

static void esx_read_vcenters(const struct file_reader *r, struct esx_config *config)
{
    const struct ucfg_value *vcenters =
        file_reader_obj(r, r->u->root, "vCenters", "templateUrl|insecure|credentials");
    struct str template = file_reader_text(r, vcenters, "vCenters.templateUrl", true);
    config->insecure = file_reader_bool(r, vcenters, "vCenters.insecure");
    const struct ucfg_value *credentials =
        file_reader_obj(r, vcenters, "vCenters.credentials", NULL);
    if (template.n > 0 && !str_starts(template, STR("https://")) &&
        !str_starts(template, STR("http://"))) {
        problems_add(r->problems, file_reader_pos(r, vcenters, "vCenters.templateUrl"),
                     "key 'vCenters.templateUrl': want a URL of https, with $AZ for the zone");
    }
    for (uint32_t i = 0; credentials != NULL && i < credentials->member_n; i++) {
        esx_read_login(r, credentials, credentials->members[i].name, template, config);
    }
    /* A zone that is a digit is an index, to go-ucfg. */
    for (uint32_t i = 0; credentials != NULL && i < credentials->item_n; i++) {
        if (credentials->items[i]->kind != UCFG_VALUE_NULL) {
            struct ucfg_value_member member = { .name = arena_printf(r->u->out, "%u", i),
                                                .pos = credentials->items[i]->pos,
                                                .value = credentials->items[i] };
            const struct ucfg_value alone = {
                .kind = UCFG_VALUE_OBJ, .pos = member.pos, .member_n = 1, .members = &member
            };
            esx_read_login(r, &alone, member.name, template, config);
        }
    }
    if (config->login_n == 0) {
        problems_add(r->problems, file_reader_pos(r, vcenters, "vCenters.credentials"),
                     "key 'vCenters.credentials': want the credentials of one zone at least, as "
                     "'a: {username: …, password: …}'");
    }
}

void esx_config_read(const struct ucfg *u, void *ret, struct problems *problems)
{
    struct esx_config *config = ret;
    const struct file_reader r = { .u = u, .problems = problems };
    unknown_keys_warn_root(u, "intervals|alarms|vCenters|wholeHost", problems);
    esx_read_intervals(&r, config);
    config->alarms = file_reader_texts(&r, u->root, "alarms");
    config->whole_host = file_reader_bool(&r, u->root, "wholeHost");
    esx_read_vcenters(&r, config);
}
