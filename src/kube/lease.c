#include "kube/lease.h"

#include "base/timestamp.h"
#include "format/json_tree.h"

_Static_assert(LEASE_RENEW_DEADLINE < LEASE_DURATION, "stop before others may begin");
_Static_assert(LEASE_RETRY < LEASE_RENEW_DEADLINE, "there is a second try before the deadline");
_Static_assert(LEASE_RETRY + LEASE_TIMEOUT <= LEASE_RENEW_DEADLINE, "and it can be answered");

#define LEASE_DURATION_S_MAX 86400  /* of others' records: a day without a leader is enough */
#define LEASE_RETRY_SOON SECONDS(1) /* a holder whose renewal failed has until its deadline */

static void lease_on_timer(void *ctx);
static void lease_try(struct lease *l);

void lease_init(struct lease *l, struct client *client, const struct lease_config *config)
{
    *l = (struct lease){
        .client = client,
        .config = *config,
        .object = { .max = LEASE_BYTES_MAX },
        .record = { .max = LEASE_BYTES_MAX },
        .body = { .max = LEASE_BYTES_MAX },
    };
    for (uint32_t i = 0; i < LEASE_NOTES; i++) {
        l->notes[i].text.max = LEASE_BYTES_MAX;
    }
    ASSERT(config->identity.n > 0 && config->name.n > 0 && config->namespace.n > 0);
    loop_timer_init(&l->timer, client->loop, lease_on_timer, l);
}

void lease_done(struct lease *l)
{
    if (l->client == NULL) {
        return;
    }
    loop_timer_done(&l->timer);
    if (l->call != NULL) {
        api_cancel(l->client->api, STEAL(l->call));
    }
    buf_done(&l->object);
    buf_done(&l->record);
    buf_done(&l->path);
    buf_done(&l->body);
    buf_done(&l->holder);
    for (uint32_t i = 0; i < LEASE_NOTES; i++) {
        buf_done(&l->notes[i].text);
    }
    l->client = NULL;
}

void lease_start(struct lease *l)
{
    ASSERT(l->state == LEASE_IDLE);
    l->state = LEASE_FOLLOW;
    lease_try(l);
}

bool lease_is_held(const struct lease *l)
{
    if (l->state == LEASE_HOLD && mutated(l->client->mutations, MUTATION_LEASE_NEVER_STOPS)) {
        return true;
    }
    return l->state == LEASE_HOLD && loop_now(l->client->loop) < l->held_until;
}

struct str lease_holder(const struct lease *l)
{
    return buf_str(&l->holder);
}

static bool lease_holder_is_me(const struct lease *l)
{
    return str_eq(lease_holder(l), l->config.identity);
}

/* ── the record ────────────────────────────────────────────────────────────────────────────── */

/* Takes a Lease as the server gave it. A record that differs from the last one restarts the wait
 * of whoever does not hold it. */
static int lease_observe(struct lease *l, struct str json, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    if (json.n > LEASE_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "a Lease of %zu bytes, at most %zu", json.n,
                       LEASE_BYTES_MAX);
    }
    int r = json_parse(json, 0, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    if (jval_str(jval_at(root, "metadata.resourceVersion")).n == 0) {
        return err_set(err, ERR_PROTO, "a Lease without resourceVersion");
    }
    int64_t duration = 0;
    struct buf record = { .max = LEASE_BYTES_MAX };
    struct json_writer w = json_writer_on(&record);
    const struct jval *spec = jval_get(root, STR("spec"));
    if (spec != NULL) {
        jw_val(&w, spec);
    }
    if (!l->seen || !str_eq(buf_str(&record), buf_str(&l->record))) {
        l->observed_at = loop_now(l->client->loop);
    }
    buf_done(&l->record);
    l->record = record;
    (void)jval_i64(jval_get(spec, STR("leaseDurationSeconds")), &duration); /* absent: 0 */
    /* A record without one is somebody's mistake; the usual time is the careful answer. */
    duration = duration > 0 ? duration : LEASE_DURATION / SECONDS(1);
    l->duration_s = (uint32_t)MIN(duration, (int64_t)LEASE_DURATION_S_MAX);
    buf_reset(&l->holder);
    buf_add(&l->holder, jval_str(jval_get(spec, STR("holderIdentity"))));
    buf_reset(&l->object);
    buf_add(&l->object, json);
    l->seen = true;
    l->fresh = true;
    l->absent = false;
    l->unsure = false;
    if (l->config.on_read != NULL) {
        l->config.on_read(l->config.ctx, root);
    }
    return 0;
}

/* Another holds it, and its time has not run out since we saw it change. */
static bool lease_is_others(const struct lease *l)
{
    if (l->holder.n == 0 || lease_holder_is_me(l)) {
        return false;
    }
    if (mutated(l->client->mutations, MUTATION_LEASE_BY_WALL_CLOCK)) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct err ignored = { 0 };
        const struct jval *spec = NULL;
        struct timestamp renewed = timestamp_zero;
        if (json_parse(buf_str(&l->record), 0, &tmp, &spec, &ignored) < 0 ||
            timestamp_parse(jval_str(jval_get(spec, STR("renewTime"))), &renewed, &ignored) < 0) {
            return false;
        }
        return loop_wall(l->client->loop) < timestamp_to_usec(renewed) + SECONDS(l->duration_s);
    }
    return loop_now(l->client->loop) < l->observed_at + SECONDS(l->duration_s);
}

static bool lease_is_noting(const struct lease *l)
{
    bool noting = false;
    for (uint32_t i = 0; i < LEASE_NOTES; i++) {
        noting = noting || l->notes[i].noting;
    }
    return noting;
}

static void lease_compose_notes(const struct lease *l, struct arena *tmp, struct tree *root)
{
    for (uint32_t i = 0; i < LEASE_NOTES; i++) {
        const struct lease_note *note = &l->notes[i];
        if (!note->noting) {
            continue;
        }
        struct tree *annotations = tree_make_at(tmp, root, "metadata.annotations");
        if (note->text.n > 0) {
            tree_set(tmp, annotations, l->config.note_keys[i], tree_str(tmp, buf_str(&note->text)));
        } else {
            (void)tree_del(annotations, l->config.note_keys[i]); /* it may not be there */
        }
    }
}

/* Writes the Lease with us as its holder (or nobody) into `body`; what we do not know stays. */
static int lease_compose(struct lease *l, bool release, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct tree *root = NULL;
    bool mine = lease_holder_is_me(l);
    if (l->absent) {
        root = tree_obj(&tmp);
        tree_set(&tmp, root, STR("apiVersion"), tree_str(&tmp, STR("coordination.k8s.io/v1")));
        tree_set(&tmp, root, STR("kind"), tree_str(&tmp, STR("Lease")));
        tree_set_at(&tmp, root, "metadata.name", tree_str(&tmp, l->config.name));
        tree_set_at(&tmp, root, "metadata.namespace", tree_str(&tmp, l->config.namespace));
    } else {
        int r = tree_parse(buf_str(&l->object), &tmp, &root, err);
        if (r < 0) {
            return r;
        }
    }
    char text[TIMESTAMP_TEXT_MAX];
    struct str now = timestamp_print_micro(loop_wall(l->client->loop), text);
    struct tree *spec = tree_make_at(&tmp, root, "spec");
    int64_t transitions = 0;
    (void)tree_number(tree_get(spec, STR("leaseTransitions")), &transitions); /* absent: 0 */
    transitions += !l->absent && !mine && !release ? 1 : 0;
    tree_set(&tmp, spec, STR("holderIdentity"),
             tree_str(&tmp, release ? STR("") : l->config.identity));
    tree_set(&tmp, spec, STR("leaseDurationSeconds"),
             tree_i64(&tmp, release ? 1 : LEASE_DURATION / SECONDS(1)));
    if (!mine || release || tree_get(spec, STR("acquireTime")) == NULL) {
        tree_set(&tmp, spec, STR("acquireTime"), tree_str(&tmp, now));
    }
    tree_set(&tmp, spec, STR("renewTime"), tree_str(&tmp, now));
    tree_set(&tmp, spec, STR("leaseTransitions"), tree_i64(&tmp, transitions));
    if (mine) {
        lease_compose_notes(l, &tmp, root);
    }
    bool force = lease_is_noting(l) && mutated(l->client->mutations, MUTATION_LEDGER_BY_FORCE);
    if (force || (release && mutated(l->client->mutations, MUTATION_RELEASE_OTHERS))) {
        (void)tree_del_at(root, "metadata.resourceVersion"); /* as the bug would */
    }
    buf_reset(&l->body);
    tree_print(root, &l->body);
    return l->body.full
               ? err_set(err, ERR_LIMIT, "the Lease is larger than %zu bytes", LEASE_BYTES_MAX)
               : 0;
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void lease_on_reply(void *ctx, const struct api_reply *reply);

static void lease_send(struct lease *l, enum api_verb verb, bool giving)
{
    ASSERT(l->call == NULL);
    buf_reset(&l->path);
    buf_add(&l->path, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    client_add_segment(&l->path, l->config.namespace);
    buf_add(&l->path, STR("/leases"));
    if (verb != API_POST) {
        buf_add_char(&l->path, '/');
        client_add_segment(&l->path, l->config.name);
    }
    const struct api_request request = {
        .verb = verb,
        .path = buf_str(&l->path),
        .body = verb == API_GET ? STR_NONE : buf_str(&l->body),
        .timeout = LEASE_TIMEOUT,
        .own_connection = true,
    };
    l->verb = verb;
    l->giving = giving;
    l->note_sent =
        verb == API_GET || !lease_is_noting(l) || !lease_holder_is_me(l) ? 0 : l->note_serial;
    l->sent_at = loop_now(l->client->loop);
    l->call = api_send(l->client->api, &request, lease_on_reply, l);
}

static void lease_over(struct lease *l)
{
    l->state = LEASE_OVER;
    loop_timer_stop(&l->timer);
    if (l->config.on_released != NULL) {
        l->config.on_released(l->config.ctx);
    }
}

static void lease_report(struct lease *l, const struct err *err)
{
    if (l->config.on_error != NULL) {
        l->config.on_error(l->config.ctx, err);
    }
}

/* Ends holding when its time is up, or when the Lease is seen to name another. */
static void lease_notice(struct lease *l)
{
    bool lost = !lease_is_held(l) || (l->fresh && !l->absent && !lease_holder_is_me(l));
    if (l->state == LEASE_HOLD && lost &&
        !mutated(l->client->mutations, MUTATION_LEASE_NEVER_STOPS)) {
        l->state = LEASE_FOLLOW;
        for (uint32_t i = 0; i < LEASE_NOTES; i++) {
            l->notes[i].noting = false; /* another's notes are not ours to overwrite */
        }
        l->config.on_change(l->config.ctx, false);
    }
}

/* Sets when to try next, and wakes then or when holding or releasing must end. */
static void lease_schedule(struct lease *l, usec_t next_try)
{
    usec_t at = l->call != NULL ? USEC_NEVER : next_try;
    l->next_try = next_try;
    if (l->state == LEASE_HOLD && !mutated(l->client->mutations, MUTATION_LEASE_NEVER_STOPS)) {
        usec_t now = loop_now(l->client->loop);
        at = MIN(at, MAX(l->held_until, now));
    } else if (l->state == LEASE_RELEASE) {
        at = MIN(at, l->release_end);
    }
    if (at != USEC_NEVER && l->state != LEASE_OVER) {
        loop_timer_set(&l->timer, at);
    } else {
        loop_timer_stop(&l->timer);
    }
}

/* Followers scatter, as client-go's jitter of 1.2 has it, so that they do not all try at once. They
 * do not sleep beyond the end of a record that they have not seen renewed. */
static usec_t lease_retry_at(struct lease *l)
{
    usec_t now = loop_now(l->client->loop);
    if (l->state != LEASE_FOLLOW) {
        return now + LEASE_RETRY_SOON;
    }
    usec_t scatter = (usec_t)(loop_random(l->client->loop) % (uint64_t)(LEASE_RETRY * 6 / 5));
    usec_t end = l->observed_at + SECONDS(l->duration_s);
    usec_t next = now + LEASE_RETRY + scatter;
    return lease_is_others(l) && end > now ? MIN(next, end + scatter / 10) : next;
}

/* One step: looks if what is known may be old, otherwise writes if that is allowed now. */
static void lease_try(struct lease *l)
{
    struct err err = { 0 };
    bool release = l->state == LEASE_RELEASE;
    if (l->call != NULL) {
        return;
    }
    if (!l->fresh) {
        lease_send(l, API_GET, /* giving= */ false);
    } else if (release && (l->absent || !lease_holder_is_me(l)) &&
               !mutated(l->client->mutations, MUTATION_RELEASE_OTHERS)) {
        lease_over(l);
        return;
    } else if (release || !lease_is_others(l)) {
        if (lease_compose(l, release, &err) == 0) {
            lease_send(l, l->absent ? API_POST : API_PUT, release);
        } else {
            l->fresh = false;
            lease_report(l, &err);
        }
    }
    lease_schedule(l, lease_retry_at(l));
}

static void lease_on_timer(void *ctx)
{
    struct lease *l = ctx;
    usec_t now = loop_now(l->client->loop);
    lease_notice(l);
    if (l->state == LEASE_RELEASE && now >= l->release_end) {
        if (l->call != NULL) {
            api_cancel(l->client->api, STEAL(l->call));
        }
        lease_over(l);
        return;
    }
    if (l->call != NULL || now < l->next_try) {
        lease_schedule(l, l->next_try);
        return;
    }
    if (l->state == LEASE_FOLLOW) {
        l->fresh = false; /* the record may have been renewed since */
    }
    lease_try(l);
}

/* A write went through: the lease is ours from its sending on, or nobody's. */
static void lease_on_written(struct lease *l)
{
    usec_t now = loop_now(l->client->loop);
    if (l->giving) {
        lease_over(l);
        return;
    }
    l->renewals++;
    l->held_until = l->sent_at + LEASE_RENEW_DEADLINE;
    bool noted = l->note_sent > l->note_written;
    l->note_written = MAX(l->note_written, l->note_sent);
    if (l->state == LEASE_FOLLOW && now < l->held_until) {
        l->state = LEASE_HOLD;
        l->config.on_change(l->config.ctx, true);
    }
    lease_notice(l);
    if (l->state == LEASE_RELEASE) {
        lease_try(l);
    } else if (l->state == LEASE_HOLD && lease_is_noting(l) && l->note_serial > l->note_written) {
        lease_try(l);
    } else if (l->state == LEASE_HOLD) {
        lease_schedule(l, MAX(now, l->sent_at + LEASE_RETRY));
    } else if (l->state == LEASE_FOLLOW) {
        lease_schedule(l, lease_retry_at(l));
    }
    if (noted && l->state == LEASE_HOLD && l->config.on_noted != NULL) {
        l->config.on_noted(l->config.ctx, l->note_written);
    }
}

static void lease_on_reply(void *ctx, const struct api_reply *reply)
{
    struct lease *l = ctx;
    struct err err = { 0 };
    l->call = NULL;
    enum retry_verdict verdict = client_note(l->client, l->verb, reply);
    bool failed = false;
    if (verdict == RETRY_DONE) {
        failed = lease_observe(l, reply->body, &err) < 0;
    } else if (verdict == RETRY_ABSENT && l->verb != API_POST) {
        /* For a POST it is the namespace that is missing. */
        l->fresh = true;
        l->absent = true;
        l->seen = false;
        buf_reset(&l->holder);
    } else if (verdict == RETRY_OBSERVE) {
        l->fresh = false;
        l->absent = false;
        l->conflicts++;
    } else {
        client_explain(reply->status, reply->body, reply->err, &err);
        failed = true;
    }
    if (failed) {
        l->fresh = false;
        l->unsure = l->unsure || l->verb != API_GET;
        (void)err_wrap(&err, "lease " STR_FMT "/" STR_FMT, STR_ARG(l->config.namespace),
                       STR_ARG(l->config.name));
        lease_report(l, &err);
        lease_notice(l);
        lease_schedule(l, lease_retry_at(l));
    } else if (verdict == RETRY_DONE && l->verb != API_GET) {
        lease_on_written(l);
    } else {
        lease_notice(l);
        bool wait = verdict == RETRY_OBSERVE && l->state == LEASE_FOLLOW;
        if (wait) {
            lease_schedule(l, lease_retry_at(l)); /* another was faster; it has earned its turn */
        } else {
            lease_try(l);
        }
    }
}

void lease_release(struct lease *l)
{
    if (l->state == LEASE_RELEASE || l->state == LEASE_OVER) {
        return;
    }
    bool held = l->state == LEASE_HOLD;
    if (l->call == NULL && !l->unsure && !lease_holder_is_me(l)) {
        l->fresh = true; /* another's, as far as we know: there is nothing to give back */
    }
    l->state = LEASE_RELEASE;
    l->release_end = loop_now(l->client->loop) + LEASE_RELEASE_MAX;
    lease_schedule(l, loop_now(l->client->loop));
    if (held) {
        l->config.on_change(l->config.ctx, false);
    }
}

uint64_t lease_note(struct lease *l, uint32_t which, struct str note, bool hurry)
{
    ASSERT(which < LEASE_NOTES);
    ASSERT(l->state == LEASE_HOLD && l->config.note_keys[which].n > 0);
    buf_reset(&l->notes[which].text);
    buf_add(&l->notes[which].text, note);
    l->note_serial++;
    l->notes[which].noting = true;
    if (l->call == NULL && hurry) {
        lease_try(l);
    }
    return l->note_serial;
}

struct str lease_read_note(const struct lease *l, uint32_t which, struct arena *out)
{
    ASSERT(which < LEASE_NOTES);
    const struct jval *root = NULL;
    struct err ignored = { 0 };
    if (l->object.n == 0 || json_parse(buf_str(&l->object), 0, out, &root, &ignored) < 0) {
        return STR_NONE;
    }
    return arena_str(
        out, jval_str(jval_get(jval_at(root, "metadata.annotations"), l->config.note_keys[which])));
}

void lease_check(const struct lease *l)
{
    ASSERT(l->state != LEASE_HOLD || l->held_until > 0);
    ASSERT(l->state != LEASE_OVER || l->call == NULL);
    ASSERT(!lease_is_held(l) || l->state == LEASE_HOLD);
}
