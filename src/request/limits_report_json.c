/* The report of limits as JSON, for the API and `-o json`. */
#include "request/limits_report.h"

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
    jw_pair_some(w, "atDeadline", h->at_deadline);
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
    jw_pair_some(w, "atDeadline", c->at_deadline);
    jw_pair_time(w, "next", c->next);
    jw_pair(w, "limit", c->limit);
    jw_key(w, STR("limits"));
    jw_strs(w, c->limits, c->limit_n);
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
