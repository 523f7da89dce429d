#include "format/json_fields.h"
#include "request/limits_report.h"

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void print_holder(struct json_writer *w, const struct limits_report_holder *h)
{
    jw_obj(w);
    jw_pair(w, "target", h->target);
    jw_pair(w, "uid", h->uid);
    jw_pair(w, "name", h->name);
    jw_pair(w, "client", h->client);
    jw_pair(w, "phase", h->phase);
    jw_pair_time(w, "since", h->since);
    jw_pair_time(w, "deadline", h->deadline);
    jw_obj_end(w);
}

static void print_limit(struct json_writer *w, const struct limits_report_limit *l, uint32_t most)
{
    jw_obj(w);
    jw_pair(w, "name", l->name);
    jw_pair(w, "type", l->type);
    jw_pair(w, "standing", limits_report_limit_state(l));
    jw_pair(w, "selects", l->selects);
    jw_pair_bool(w, "exclusive", l->exclusive);
    jw_pair_i64(w, "percent", l->percent);
    jw_pair_i64(w, "minimum", l->minimum);
    if (l->most != UINT32_MAX) {
        jw_pair_i64(w, "maxCount", l->most);
    }
    jw_pair_bool(w, "computed", l->computed);
    jw_pair_i64(w, "population", l->population);
    jw_pair_i64(w, "allowed", l->allowed);
    jw_pair_i64(w, "held", l->held);
    jw_pair_i64(w, "unavailable", l->unavailable);
    jw_pair_i64(w, "room", l->room);
    jw_pair_i64(w, "waiting", l->waiting);
    jw_pair_bool(w, "paused", l->paused);
    jw_pair_bool(w, "overCommitted", l->over);
    jw_pair(w, "problem", l->problem);
    jw_pair_time(w, "gapEnd", l->gap_end);
    jw_key(w, STR("holders"));
    jw_arr(w);
    uint32_t n = most > 0 ? MIN(most, l->holder_n) : l->holder_n;
    for (uint32_t i = 0; i < n; i++) {
        print_holder(w, &l->holders[i]);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

static void print_claim(struct json_writer *w, const struct limits_report_claim *c)
{
    jw_obj(w);
    jw_pair(w, "name", c->name);
    jw_pair(w, "uid", c->uid);
    jw_pair(w, "client", c->client);
    jw_pair(w, "type", c->type);
    jw_pair(w, "target", c->target);
    jw_pair(w, "phase", c->phase);
    jw_pair(w, "step", c->step);
    jw_pair(w, "reason", c->reason);
    jw_pair(w, "message", c->message);
    jw_pair(w, "until", c->until);
    jw_pair_bool(w, "waits", c->waits);
    jw_pair_bool(w, "ended", c->ended);
    jw_pair_i64(w, "priority", c->priority);
    jw_pair_i64(w, "position", c->position);
    jw_pair_time(w, "since", c->since);
    jw_pair_time(w, "deadline", c->deadline);
    jw_pair_time(w, "next", c->next);
    jw_pair(w, "limit", c->limit);
    jw_key(w, STR("limits"));
    jw_arr(w);
    for (uint32_t i = 0; i < c->limit_n; i++) {
        jw_str(w, c->limits[i]);
    }
    jw_arr_end(w);
    if (c->blocker != NULL) {
        jw_key(w, STR("blocker"));
        print_holder(w, c->blocker);
    }
    jw_obj_end(w);
}

static const struct str abouts[] = {
    [LIMITS_REPORT_ALL] = STR_INIT("all"),
    [LIMITS_REPORT_REQUEST] = STR_INIT("request"),
    [LIMITS_REPORT_LIMIT] = STR_INIT("limit"),
};

/* Of each kind the first ones: who waits long stands before who holds otherwise. */
static void print_claims(const struct limits_report *b, bool waits, uint32_t most,
                         struct json_writer *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->claim_n; i++) {
        if (b->claims[i].waits == waits && (most == 0 || n < most)) {
            print_claim(w, &b->claims[i]);
            n++;
        }
    }
}

void limits_report_print_json(const struct limits_report *b, uint32_t most, struct json_writer *w)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < b->claim_n; i++) {
        waiting += b->claims[i].waits ? 1 : 0;
    }
    jw_obj(w);
    jw_pair_time(w, "now", b->now);
    jw_pair(w, "about", abouts[b->about]);
    jw_key(w, STR("limits"));
    jw_arr(w);
    for (uint32_t i = 0; i < b->limit_n; i++) {
        print_limit(w, &b->limits[i], most);
    }
    jw_arr_end(w);
    jw_pair_i64(w, "waiting", waiting);
    jw_pair_i64(w, "holding", b->claim_n - waiting);
    jw_key(w, STR("claims"));
    jw_arr(w);
    if (b->about == LIMITS_REPORT_REQUEST) {
        for (uint32_t i = 0; i < b->claim_n; i++) {
            print_claim(w, &b->claims[i]);
        }
    } else {
        print_claims(b, /* waits= */ true, most, w);
        print_claims(b, /* waits= */ false, most, w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static int read_holder(const struct json_fields *in, const struct jval *v,
                       struct limits_report_holder *ret)
{
    *ret = (struct limits_report_holder){
        .target = jr_text(in, v, "target"),
        .uid = jr_text(in, v, "uid"),
        .name = jr_text(in, v, "name"),
        .client = jr_text(in, v, "client"),
        .phase = jr_text(in, v, "phase"),
    };
    int r = jr_time(in, v, "since", 0, &ret->since);
    return r < 0 ? r : jr_time(in, v, "deadline", USEC_NEVER, &ret->deadline);
}

static int read_limit(const struct json_fields *in, const struct jval *v,
                      struct limits_report_limit *ret)
{
    *ret = (struct limits_report_limit){
        .name = jr_text(in, v, "name"),
        .type = jr_text(in, v, "type"),
        .selects = jr_text(in, v, "selects"),
        .exclusive = jr_bool(v, "exclusive"),
        .percent = jr_u32(v, "percent", 0),
        .minimum = jr_u32(v, "minimum", 0),
        .most = jr_u32(v, "maxCount", UINT32_MAX),
        .computed = jr_bool(v, "computed"),
        .population = jr_u32(v, "population", 0),
        .allowed = jr_u32(v, "allowed", 0),
        .held = jr_u32(v, "held", 0),
        .unavailable = jr_u32(v, "unavailable", 0),
        .room = jr_u32(v, "room", 0),
        .waiting = jr_u32(v, "waiting", 0),
        .paused = jr_bool(v, "paused"),
        .over = jr_bool(v, "overCommitted"),
        .problem = jr_text(in, v, "problem"),
    };
    const struct jval *holders = jval_get(v, STR("holders"));
    uint32_t n;
    int r = jr_time(in, v, "gapEnd", 0, &ret->gap_end);
    r = r < 0 ? r : jr_count(in, holders, LIMITS_REPORT_ITEMS_MAX, &n);
    if (r < 0) {
        return r;
    }
    ret->holders = ARENA_ARRAY(in->out, struct limits_report_holder, n + 1);
    JVAL_EACH (n > 0 ? holders : NULL, holder) {
        r = read_holder(in, holder, &ret->holders[ret->holder_n++]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_claim_lists(const struct json_fields *in, const struct jval *v,
                            struct limits_report_claim *ret)
{
    const struct jval *limits = jval_get(v, STR("limits"));
    const struct jval *blocker = jval_get(v, STR("blocker"));
    uint32_t n;
    int r = jr_count(in, limits, LIMITS_REPORT_ITEMS_MAX, &n);
    if (r < 0) {
        return r;
    }
    struct str *names = ARENA_ARRAY(in->out, struct str, n + 1);
    JVAL_EACH (n > 0 ? limits : NULL, name) {
        names[ret->limit_n++] = arena_str(in->out, jval_str(name));
    }
    ret->limits = names;
    if (jval_kind(blocker) == JOBJ) {
        struct limits_report_holder *h = ARENA_NEW(in->out, struct limits_report_holder);
        r = read_holder(in, blocker, h);
        ret->blocker = h;
    }
    return r;
}

static int read_claim(const struct json_fields *in, const struct jval *v,
                      struct limits_report_claim *ret)
{
    int64_t priority = 0;
    (void)jval_i64(jval_get(v, STR("priority")), &priority); /* absent is 0 */
    *ret = (struct limits_report_claim){
        .uid = jr_text(in, v, "uid"),
        .name = jr_text(in, v, "name"),
        .client = jr_text(in, v, "client"),
        .type = jr_text(in, v, "type"),
        .target = jr_text(in, v, "target"),
        .phase = jr_text(in, v, "phase"),
        .step = jr_text(in, v, "step"),
        .reason = jr_text(in, v, "reason"),
        .message = jr_text(in, v, "message"),
        .until = jr_text(in, v, "until"),
        .waits = jr_bool(v, "waits"),
        .ended = jr_bool(v, "ended"),
        .priority = (int32_t)MAX(INT32_MIN, MIN(INT32_MAX, priority)),
        .position = jr_u32(v, "position", 0),
        .limit = jr_text(in, v, "limit"),
    };
    int r = jr_time(in, v, "since", 0, &ret->since);
    r = r < 0 ? r : jr_time(in, v, "deadline", USEC_NEVER, &ret->deadline);
    r = r < 0 ? r : jr_time(in, v, "next", USEC_NEVER, &ret->next);
    return r < 0 ? r : read_claim_lists(in, v, ret);
}

int limits_report_read(const struct jval *v, struct arena *out, struct limits_report *ret,
                       struct err *err)
{
    const struct json_fields in = { .out = out, .err = err };
    const struct jval *limits = jval_get(v, STR("limits"));
    const struct jval *claims = jval_get(v, STR("claims"));
    struct limits_report b = { 0 };
    if (jval_kind(limits) != JARR || jval_kind(claims) != JARR) {
        return err_set(err, ERR_PROTO, "found %s that is no board of limits",
                       jkind_name(jval_kind(v)));
    }
    struct str about = jval_str(jval_get(v, STR("about")));
    while (b.about < LIMITS_REPORT_LIMIT && !str_eq(abouts[b.about], about)) {
        b.about++;
    }
    int r = jr_time(&in, v, "now", 0, &b.now);
    r = r < 0 ? r : jr_count(&in, limits, LIMITS_REPORT_ITEMS_MAX, &b.limit_cap);
    r = r < 0 ? r : jr_count(&in, claims, LIMITS_REPORT_ITEMS_MAX, &b.claim_cap);
    if (r < 0) {
        return r;
    }
    b.limits = ARENA_ARRAY(out, struct limits_report_limit, b.limit_cap + 1);
    b.claims = ARENA_ARRAY(out, struct limits_report_claim, b.claim_cap + 1);
    JVAL_EACH (limits, limit) {
        r = r < 0 ? r : read_limit(&in, limit, &b.limits[b.limit_n++]);
    }
    JVAL_EACH (claims, claim) {
        r = r < 0 ? r : read_claim(&in, claim, &b.claims[b.claim_n++]);
    }
    if (r < 0) {
        return r;
    }
    *ret = b;
    return 0;
}
