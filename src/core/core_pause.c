/*
 * The pause of everything: while the controller's Lease has the annotation KEY_ALL_PAUSED, nothing
 * new is granted and no pod is evicted. Its value is the reason, for people.
 *
 * The Lease is there without CRDs, outlives every process, and whoever leads has read it: with
 * election it is read and written every few seconds anyway, so a pause is seen within 5 s and costs
 * no request and no right. Without election it is watched for this alone.
 */
#include "core/core_internal.h"

#include "kinds/keys.h"

#define PAUSE_REASON_MAX 256u /* bytes that are shown */

bool core_may_grant(const struct core *c)
{
    return core_grants_stopped(c).n == 0;
}

struct str core_grants_stopped(const struct core *c)
{
    if (mutated(c->config.mutations, MUTATION_ALL_PAUSED_IGNORED)) {
        return STR_NONE;
    }
    return c->pause_known ? c->paused : STR("whether everything is paused is not known yet");
}

static void pause_record(struct core *c)
{
    bool paused = c->paused.n > 0;
    recorder_add(&c->recorder,
                 &(struct recorder_event){
                     .type = paused ? STR("Warning") : STR("Normal"),
                     .reason = paused ? STR("EverythingPaused") : STR("EverythingResumed"),
                     .action = paused ? STR("Pause") : STR("Resume"),
                     .note = paused ? c->paused : STR("nothing is paused any more"),
                     .regarding = { .kind = STR("Lease"),
                                    .api_version = STR("coordination.k8s.io/v1"),
                                    .name = c->config.lease_name,
                                    .namespace = c->config.lease_namespace },
                 });
}

/* `reason` NULL: nothing is paused. */
static void pause_set(struct core *c, const struct str *reason)
{
    bool known = c->pause_known;
    CLEANUP(buf_done)
    struct buf text = { 0 };
    if (reason != NULL) {
        size_t n = MIN(reason->n, (size_t)PAUSE_REASON_MAX);
        while (n < reason->n && n > 0 && ((unsigned char)reason->p[n] & 0xC0) == 0x80) {
            n--; /* not within a character */
        }
        buf_add(&text, STR("everything is paused"));
        buf_add(&text, n > 0 ? STR(": ") : STR(""));
        for (size_t i = 0; i < n; i++) {
            buf_add_char(&text, (unsigned char)reason->p[i] < ' ' ? ' ' : reason->p[i]);
        }
    }
    c->pause_known = true;
    if (known && str_eq(buf_str(&text), c->paused)) {
        return;
    }
    bool was = c->paused.n > 0;
    buf_reset(&c->paused_text);
    buf_add(&c->paused_text, buf_str(&text));
    c->paused = buf_str(&c->paused_text);
    bool paused = c->paused.n > 0;
    metric_set(c->metrics.paused, paused ? 1 : 0);
    if (paused) {
        log_warn(c->log, "Nothing new is granted", KV_STR("why", c->paused));
    } else if (was) {
        log_info(c->log, "Nothing is paused any more");
    }
    if (c->leading && (paused || was)) {
        pause_record(c);
    }
    drains_pause(c->drains, !core_may_grant(c));
    CORE_EACH_PART(c, p, on_capacity);
    core_tell_may_act(c);
}

void core_pause_read(void *ctx, const struct jval *lease)
{
    struct core *c = ctx;
    const struct jval *value = jval_get(jval_at(lease, "metadata.annotations"), KEY_ALL_PAUSED);
    struct str reason = jval_str(value);
    pause_set(c, value != NULL ? &reason : NULL);
}

/* ── without election ──────────────────────────────────────────────────────────────────────── */

static void pause_on_list(void *ctx)
{
    struct core *c = ctx;
    c->pause_seen = false;
}

static int pause_on_object(void *ctx, const struct jval *object, bool deleted,
                           struct err *err UNUSED)
{
    struct core *c = ctx;
    if (!str_eq(jval_str(jval_at(object, "metadata.name")), c->config.lease_name)) {
        return 0; /* a server that does not know the selector */
    }
    c->pause_seen = !deleted;
    if (deleted) {
        pause_set(c, NULL);
    } else {
        core_pause_read(c, object);
    }
    return 0;
}

static bool pause_on_synced(void *ctx, uint64_t version UNUSED)
{
    struct core *c = ctx;
    if (!c->pause_seen) {
        pause_set(c, NULL);
    }
    return true;
}

static void pause_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct core *c = ctx;
    if (err->code != ERR_DENIED) {
        return; /* it is tried again; until the first answer nothing is granted */
    }
    if (!c->pause_denied) {
        log_warn(c->log, "Everything cannot be paused: the leader's Lease may not be watched",
                 KV_ERR(err));
    }
    c->pause_denied = true;
    if (!c->pause_known) {
        pause_set(c, NULL);
    }
}

void core_pause_init(struct core *c)
{
    drains_pause(c->drains, !core_may_grant(c));
    if (c->config.elect) {
        return;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_add(&text, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    client_add_segment(&text, c->config.lease_namespace);
    buf_add(&text, STR("/leases"));
    c->pause_path = arena_str(&c->memory, buf_str(&text));
    buf_reset(&text);
    buf_add(&text, STR("&fieldSelector=metadata.name%3D"));
    client_add_segment(&text, c->config.lease_name);
    c->pause_query = arena_str(&c->memory, buf_str(&text));
    reflector_init(&c->pause, &c->client,
                   &(struct reflector_config){
                       .path = c->pause_path,
                       .query = c->pause_query,
                       .metadata_only = true,
                       .on_list = pause_on_list,
                       .on_object = pause_on_object,
                       .on_synced = pause_on_synced,
                       .on_error = pause_on_error,
                       .ctx = c,
                   });
}

void core_pause_start(struct core *c)
{
    if (!c->config.elect) {
        reflector_start(&c->pause);
    }
}

void core_pause_done(struct core *c)
{
    if (!c->config.elect) {
        reflector_done(&c->pause);
    }
    buf_done(&c->paused_text);
}
