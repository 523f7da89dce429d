#include "base/stamp.h"
#include "request/board.h"

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void print_time(struct jwriter *w, const char *key, usec_t wall)
{
    char text[STAMP_TEXT_MAX];
    if (wall > 0 && wall != USEC_NEVER) {
        jw_pair(w, key, stamp_print_seconds(wall, text));
    }
}

static void print_number(struct jwriter *w, const char *key, int64_t n)
{
    jw_key(w, str_from(key));
    jw_i64(w, n);
}

static void print_flag(struct jwriter *w, const char *key, bool truth)
{
    jw_key(w, str_from(key));
    jw_bool(w, truth);
}

static void print_holder(struct jwriter *w, const struct board_holder *h)
{
    jw_obj(w);
    jw_pair(w, "target", h->target);
    jw_pair(w, "uid", h->uid);
    jw_pair(w, "name", h->name);
    jw_pair(w, "client", h->client);
    jw_pair(w, "phase", h->phase);
    print_time(w, "since", h->since);
    print_time(w, "deadline", h->deadline);
    jw_obj_end(w);
}

static void print_limit(struct jwriter *w, const struct board_limit *l, uint32_t most)
{
    jw_obj(w);
    jw_pair(w, "name", l->name);
    jw_pair(w, "type", l->type);
    jw_pair(w, "standing", board_standing(l));
    jw_pair(w, "selects", l->selects);
    print_flag(w, "exclusive", l->exclusive);
    print_number(w, "percent", l->percent);
    print_number(w, "minimum", l->minimum);
    if (l->most != UINT32_MAX) {
        print_number(w, "maxCount", l->most);
    }
    print_flag(w, "computed", l->computed);
    print_number(w, "population", l->population);
    print_number(w, "allowed", l->allowed);
    print_number(w, "held", l->held);
    print_number(w, "unavailable", l->unavailable);
    print_number(w, "room", l->room);
    print_number(w, "waiting", l->waiting);
    print_flag(w, "paused", l->paused);
    print_flag(w, "overCommitted", l->over);
    jw_pair(w, "problem", l->problem);
    print_time(w, "gapEnd", l->gap_end);
    jw_key(w, STR("holders"));
    jw_arr(w);
    uint32_t n = most > 0 ? MIN(most, l->holder_n) : l->holder_n;
    for (uint32_t i = 0; i < n; i++) {
        print_holder(w, &l->holders[i]);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

static void print_claim(struct jwriter *w, const struct board_claim *c)
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
    print_flag(w, "waits", c->waits);
    print_flag(w, "ended", c->ended);
    print_number(w, "priority", c->priority);
    print_number(w, "position", c->position);
    print_time(w, "since", c->since);
    print_time(w, "deadline", c->deadline);
    print_time(w, "next", c->next);
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
    [BOARD_ALL] = STR_INIT("all"),
    [BOARD_REQUEST] = STR_INIT("request"),
    [BOARD_LIMIT] = STR_INIT("limit"),
};

/* Of each kind the first ones: who waits long stands before who holds otherwise. */
static void print_claims(const struct board *b, bool waits, uint32_t most, struct jwriter *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->claim_n; i++) {
        if (b->claims[i].waits == waits && (most == 0 || n < most)) {
            print_claim(w, &b->claims[i]);
            n++;
        }
    }
}

void board_print_json(const struct board *b, uint32_t most, struct jwriter *w)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < b->claim_n; i++) {
        waiting += b->claims[i].waits ? 1 : 0;
    }
    jw_obj(w);
    print_time(w, "now", b->now);
    jw_pair(w, "about", abouts[b->about]);
    jw_key(w, STR("limits"));
    jw_arr(w);
    for (uint32_t i = 0; i < b->limit_n; i++) {
        print_limit(w, &b->limits[i], most);
    }
    jw_arr_end(w);
    print_number(w, "waiting", waiting);
    print_number(w, "holding", b->claim_n - waiting);
    jw_key(w, STR("claims"));
    jw_arr(w);
    if (b->about == BOARD_REQUEST) {
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

/* As with reports: what is missing is empty, what has another meaning is refused. */
struct reader {
    struct arena *out;
    struct err *err;
};

static struct str read_text(const struct reader *in, const struct jval *v, const char *key)
{
    return arena_str(in->out, jval_str(jval_get(v, str_from(key))));
}

static uint32_t read_number(const struct jval *v, const char *key, uint32_t absent)
{
    int64_t n;
    return jval_i64(jval_get(v, str_from(key)), &n) && n >= 0 && n <= UINT32_MAX ? (uint32_t)n
                                                                                 : absent;
}

static bool read_flag(const struct jval *v, const char *key)
{
    return jval_bool(jval_get(v, str_from(key)), false);
}

static int read_time(const struct reader *in, const struct jval *v, const char *key, usec_t absent,
                     usec_t *ret)
{
    const struct jval *value = jval_get(v, str_from(key));
    struct stamp at;
    *ret = absent;
    if (value == NULL) {
        return 0;
    }
    if (stamp_parse(jval_str(value), &at, in->err) < 0) {
        return err_wrap(in->err, "'%s'", key);
    }
    *ret = stamp_to_usec(at);
    return 0;
}

static int read_count(const struct reader *in, const struct jval *list, uint32_t *ret)
{
    *ret = jval_kind(list) == JARR ? list->n : 0;
    return *ret <= BOARD_PARTS_MAX
               ? 0
               : err_set(in->err, ERR_LIMIT, "a list has %u parts, at most %u are read", *ret,
                         BOARD_PARTS_MAX);
}

static int read_holder(const struct reader *in, const struct jval *v, struct board_holder *ret)
{
    *ret = (struct board_holder){
        .target = read_text(in, v, "target"),
        .uid = read_text(in, v, "uid"),
        .name = read_text(in, v, "name"),
        .client = read_text(in, v, "client"),
        .phase = read_text(in, v, "phase"),
    };
    int r = read_time(in, v, "since", 0, &ret->since);
    return r < 0 ? r : read_time(in, v, "deadline", USEC_NEVER, &ret->deadline);
}

static int read_limit(const struct reader *in, const struct jval *v, struct board_limit *ret)
{
    *ret = (struct board_limit){
        .name = read_text(in, v, "name"),
        .type = read_text(in, v, "type"),
        .selects = read_text(in, v, "selects"),
        .exclusive = read_flag(v, "exclusive"),
        .percent = read_number(v, "percent", 0),
        .minimum = read_number(v, "minimum", 0),
        .most = read_number(v, "maxCount", UINT32_MAX),
        .computed = read_flag(v, "computed"),
        .population = read_number(v, "population", 0),
        .allowed = read_number(v, "allowed", 0),
        .held = read_number(v, "held", 0),
        .unavailable = read_number(v, "unavailable", 0),
        .room = read_number(v, "room", 0),
        .waiting = read_number(v, "waiting", 0),
        .paused = read_flag(v, "paused"),
        .over = read_flag(v, "overCommitted"),
        .problem = read_text(in, v, "problem"),
    };
    const struct jval *holders = jval_get(v, STR("holders"));
    uint32_t n;
    int r = read_time(in, v, "gapEnd", 0, &ret->gap_end);
    r = r < 0 ? r : read_count(in, holders, &n);
    if (r < 0) {
        return r;
    }
    ret->holders = ARENA_ARRAY(in->out, struct board_holder, n + 1);
    JVAL_EACH (n > 0 ? holders : NULL, holder) {
        r = read_holder(in, holder, &ret->holders[ret->holder_n++]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_claim_lists(const struct reader *in, const struct jval *v, struct board_claim *ret)
{
    const struct jval *limits = jval_get(v, STR("limits"));
    const struct jval *blocker = jval_get(v, STR("blocker"));
    uint32_t n;
    int r = read_count(in, limits, &n);
    if (r < 0) {
        return r;
    }
    struct str *names = ARENA_ARRAY(in->out, struct str, n + 1);
    JVAL_EACH (n > 0 ? limits : NULL, name) {
        names[ret->limit_n++] = arena_str(in->out, jval_str(name));
    }
    ret->limits = names;
    if (jval_kind(blocker) == JOBJ) {
        struct board_holder *h = ARENA_NEW(in->out, struct board_holder);
        r = read_holder(in, blocker, h);
        ret->blocker = h;
    }
    return r;
}

static int read_claim(const struct reader *in, const struct jval *v, struct board_claim *ret)
{
    int64_t priority = 0;
    (void)jval_i64(jval_get(v, STR("priority")), &priority); /* absent is 0 */
    *ret = (struct board_claim){
        .uid = read_text(in, v, "uid"),
        .name = read_text(in, v, "name"),
        .client = read_text(in, v, "client"),
        .type = read_text(in, v, "type"),
        .target = read_text(in, v, "target"),
        .phase = read_text(in, v, "phase"),
        .step = read_text(in, v, "step"),
        .reason = read_text(in, v, "reason"),
        .message = read_text(in, v, "message"),
        .until = read_text(in, v, "until"),
        .waits = read_flag(v, "waits"),
        .ended = read_flag(v, "ended"),
        .priority = (int32_t)MAX(INT32_MIN, MIN(INT32_MAX, priority)),
        .position = read_number(v, "position", 0),
        .limit = read_text(in, v, "limit"),
    };
    int r = read_time(in, v, "since", 0, &ret->since);
    r = r < 0 ? r : read_time(in, v, "deadline", USEC_NEVER, &ret->deadline);
    r = r < 0 ? r : read_time(in, v, "next", USEC_NEVER, &ret->next);
    return r < 0 ? r : read_claim_lists(in, v, ret);
}

int board_read(const struct jval *v, struct arena *out, struct board *ret, struct err *err)
{
    const struct reader in = { .out = out, .err = err };
    const struct jval *limits = jval_get(v, STR("limits"));
    const struct jval *claims = jval_get(v, STR("claims"));
    struct board b = { 0 };
    if (jval_kind(limits) != JARR || jval_kind(claims) != JARR) {
        return err_set(err, ERR_PROTO, "found %s that is no board of limits",
                       jkind_name(jval_kind(v)));
    }
    struct str about = jval_str(jval_get(v, STR("about")));
    while (b.about < BOARD_LIMIT && !str_eq(abouts[b.about], about)) {
        b.about++;
    }
    int r = read_time(&in, v, "now", 0, &b.now);
    r = r < 0 ? r : read_count(&in, limits, &b.limit_cap);
    r = r < 0 ? r : read_count(&in, claims, &b.claim_cap);
    if (r < 0) {
        return r;
    }
    b.limits = ARENA_ARRAY(out, struct board_limit, b.limit_cap + 1);
    b.claims = ARENA_ARRAY(out, struct board_claim, b.claim_cap + 1);
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
