#include "profile/report.h"

#include "base/stamp.h"

/* Reading goes on behind what is missing: a newer controller may say more, an older one less. Only
 * what has another meaning than we know is refused. */
struct reader {
    struct arena *out;
    struct err *err;
};

static struct str read_text(const struct reader *in, const struct jval *v, const char *key)
{
    return arena_str(in->out, jval_str(jval_get(v, str_from(key))));
}

static int read_time(const struct reader *in, const struct jval *v, const char *key, usec_t absent,
                     usec_t *ret)
{
    const struct jval *value = jval_get(v, str_from(key));
    *ret = absent;
    if (value == NULL) {
        return 0;
    }
    struct stamp at;
    if (stamp_parse(jval_str(value), &at, in->err) < 0) {
        return err_wrap(in->err, "'%s'", key);
    }
    *ret = stamp_to_usec(at);
    return 0;
}

static int read_state(const struct reader *in, const struct jval *v, const char *key,
                      enum label_state *ret)
{
    struct str name = jval_str(jval_get(v, str_from(key)));
    if (!label_state_parse(name, ret)) {
        return err_set(in->err, ERR_PROTO, "'%s' is '" STR_FMT "', which is no state", key,
                       STR_ARG(name));
    }
    return 0;
}

/* An array's length; more than a report can have is refused, not cut off. */
static int read_count(const struct reader *in, const struct jval *list, uint32_t *ret)
{
    uint32_t n = jval_kind(list) == JARR || jval_kind(list) == JOBJ ? list->n : 0;
    if (n > REPORT_PARTS_MAX) {
        return err_set(in->err, ERR_LIMIT, "a list has %u parts, at most %u are read", n,
                       REPORT_PARTS_MAX);
    }
    *ret = n;
    return 0;
}

static int read_check(const struct reader *in, const struct jval *v, struct report_check *ret)
{
    struct str answer = jval_str(jval_get(v, STR("answer")));
    *ret = (struct report_check){
        .name = read_text(in, v, "name"),
        .type = read_text(in, v, "type"),
        .reason = read_text(in, v, "reason"),
        .error = read_text(in, v, "error"),
        .holds = jval_bool(jval_get(v, STR("holds")), false),
    };
    while (!str_eq(report_answer_name(ret->answer), answer)) {
        if (ret->answer == CHECK_PENDING) {
            return err_set(in->err, ERR_PROTO, "check '" STR_FMT "': no such answer: '" STR_FMT "'",
                           STR_ARG(ret->name), STR_ARG(answer));
        }
        ret->answer++;
    }
    const struct jval *info = jval_get(v, STR("info"));
    if (jval_kind(info) == JOBJ && info->n > 0) {
        CLEANUP(buf_done)
        struct buf text = { 0 };
        struct jwriter w = jwriter_on(&text);
        jw_val(&w, info);
        ret->info = arena_str(in->out, buf_str(&text));
    }
    return read_time(in, v, "next", USEC_NEVER, &ret->next);
}

static int read_transition(const struct reader *in, const struct jval *v,
                           struct report_transition *ret)
{
    *ret = (struct report_transition){
        .expression = read_text(in, v, "expression"),
        .passed = jval_bool(jval_get(v, STR("passed")), false),
        .chain_passed = jval_bool(jval_get(v, STR("chainPassed")), false),
        .error = read_text(in, v, "error"),
        .held = read_text(in, v, "held"),
    };
    const struct jval *checks = jval_get(v, STR("checks"));
    uint32_t n = 0;
    int r = read_state(in, v, "target", &ret->target);
    r = r < 0 ? r : read_time(in, v, "next", USEC_NEVER, &ret->next);
    r = r < 0 ? r : read_count(in, checks, &n);
    if (r < 0) {
        return r;
    }
    ret->checks = ARENA_ARRAY(in->out, struct report_check, n);
    JVAL_EACH (checks, check) {
        r = read_check(in, check, &ret->checks[ret->check_n++]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_profile(const struct reader *in, const struct jval *v, struct report_profile *ret)
{
    *ret = (struct report_profile){
        .name = read_text(in, v, "name"),
        .error = read_text(in, v, "error"),
        .doing = read_text(in, v, "doing"),
    };
    const struct jval *transitions = jval_get(v, STR("transitions"));
    uint32_t n = 0;
    int r = read_state(in, v, "state", &ret->state);
    r = r < 0 ? r : read_state(in, v, "next", &ret->next);
    r = r < 0 ? r : read_time(in, v, "since", 0, &ret->since);
    r = r < 0 ? r : read_count(in, transitions, &n);
    if (r < 0) {
        return r;
    }
    ret->transitions = ARENA_ARRAY(in->out, struct report_transition, n);
    JVAL_EACH (transitions, transition) {
        r = read_transition(in, transition, &ret->transitions[ret->transition_n++]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_labels(const struct reader *in, const struct jval *labels, struct report *ret)
{
    uint32_t n = 0;
    int r = jval_kind(labels) == JOBJ ? read_count(in, labels, &n) : 0;
    if (r < 0 || n == 0) {
        return r;
    }
    ret->labels = ARENA_ARRAY(in->out, struct report_label, n);
    JVAL_EACH (labels, label) {
        ret->labels[ret->label_n++] = (struct report_label){
            .key = arena_str(in->out, jval_key(label)),
            .value = arena_str(in->out, jval_str(label)),
        };
    }
    return 0;
}

static int read_claims(const struct reader *in, const struct jval *list, struct report *ret)
{
    uint32_t n = 0;
    int r = read_count(in, list, &n);
    if (r < 0 || n == 0) {
        return r;
    }
    ret->claims = ARENA_ARRAY(in->out, struct report_claim, n);
    JVAL_EACH (list, v) {
        struct report_claim *c = &ret->claims[ret->claim_n++];
        *c = (struct report_claim){
            .who = read_text(in, v, "who"),
            .holds = jval_bool(jval_get(v, STR("holds")), false),
            .words = read_text(in, v, "words"),
            .until = read_text(in, v, "until"),
            .limits = read_text(in, v, "limits"),
        };
        r = read_time(in, v, "since", 0, &c->since);
        r = r < 0 ? r : read_time(in, v, "deadline", USEC_NEVER, &c->deadline);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_report(const struct reader *in, const struct jval *v, struct report *ret)
{
    *ret = (struct report){
        .node = read_text(in, v, "node"),
        .state = read_text(in, v, "state"),
        .error = read_text(in, v, "error"),
        .ready = jval_bool(jval_get(v, STR("ready")), false),
        .cordoned = jval_bool(jval_get(v, STR("cordoned")), false),
        .deleting = jval_bool(jval_get(v, STR("deleting")), false),
        .waits = read_text(in, v, "waits"),
        .drain = read_text(in, v, "drain"),
    };
    const struct jval *profiles = jval_get(v, STR("profiles"));
    uint32_t n = 0;
    int r = read_time(in, v, "updated", 0, &ret->updated);
    r = r < 0 ? r : read_time(in, v, "now", 0, &ret->now);
    r = r < 0 ? r : read_labels(in, jval_get(v, STR("labels")), ret);
    r = r < 0 ? r : read_claims(in, jval_get(v, STR("claims")), ret);
    r = r < 0 ? r : read_count(in, profiles, &n);
    if (r < 0) {
        return r;
    }
    ret->profiles = ARENA_ARRAY(in->out, struct report_profile, n);
    JVAL_EACH (profiles, profile) {
        r = read_profile(in, profile, &ret->profiles[ret->profile_n++]);
        if (r < 0) {
            return err_wrap(in->err, "profile '" STR_FMT "'",
                            STR_ARG(jval_str(jval_get(profile, STR("name")))));
        }
    }
    return 0;
}

int report_parse(struct str text, struct arena *out, struct report *ret, struct err *err)
{
    const struct jval *root;
    struct report report;
    int r = json_parse(text, 0, out, &root, err);
    if (r < 0) {
        return r;
    }
    if (jval_str(jval_get(root, STR("node"))).p == NULL) {
        return err_set(err, ERR_PROTO, "found %s that is no report of a node",
                       jkind_name(jval_kind(root)));
    }
    r = read_report(&(struct reader){ .out = out, .err = err }, root, &report);
    if (r < 0) {
        return r;
    }
    *ret = report;
    return 0;
}
