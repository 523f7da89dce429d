#include "profile/node_report.h"

#include "format/json_fields.h"

static int read_state(const struct json_fields *in, const struct jval *v, const char *key,
                      enum profile_state *ret)
{
    struct str name = jval_str(jval_get(v, str_from(key)));
    if (!profile_state_parse(name, ret)) {
        return err_set(in->err, ERR_PROTO, "'%s' is '" STR_FMT "', which is no state", key,
                       STR_ARG(name));
    }
    return 0;
}

static int read_check(const struct json_fields *in, const struct jval *v,
                      struct node_report_check *ret)
{
    struct str answer = jval_str(jval_get(v, STR("answer")));
    *ret = (struct node_report_check){
        .name = jr_text(in, v, "name"),
        .type = jr_text(in, v, "type"),
        .reason = jr_text(in, v, "reason"),
        .error = jr_text(in, v, "error"),
        .holds = jr_bool(v, "holds"),
    };
    while (!str_eq(node_report_answer_name(ret->answer), answer)) {
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
        struct json_writer w = json_writer_on(&text);
        jw_val(&w, info);
        ret->info = arena_str(in->out, buf_str(&text));
    }
    return jr_time(in, v, "next", USEC_NEVER, &ret->next);
}

static int read_transition(const struct json_fields *in, const struct jval *v,
                           struct node_report_transition *ret)
{
    *ret = (struct node_report_transition){
        .expression = jr_text(in, v, "expression"),
        .passed = jr_bool(v, "passed"),
        .chain_passed = jr_bool(v, "chainPassed"),
        .error = jr_text(in, v, "error"),
        .held = jr_text(in, v, "held"),
    };
    const struct jval *checks = jval_get(v, STR("checks"));
    uint32_t n = 0;
    int r = read_state(in, v, "target", &ret->target);
    r = r < 0 ? r : jr_time(in, v, "next", USEC_NEVER, &ret->next);
    r = r < 0 ? r : jr_count(in, checks, NODE_REPORT_ITEMS_MAX, &n);
    if (r < 0) {
        return r;
    }
    ret->checks = ARENA_ARRAY(in->out, struct node_report_check, n);
    JVAL_EACH (checks, check) {
        r = read_check(in, check, &ret->checks[ret->check_n++]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_profile(const struct json_fields *in, const struct jval *v,
                        struct node_report_profile *ret)
{
    *ret = (struct node_report_profile){
        .name = jr_text(in, v, "name"),
        .error = jr_text(in, v, "error"),
        .doing = jr_text(in, v, "doing"),
    };
    const struct jval *transitions = jval_get(v, STR("transitions"));
    uint32_t n = 0;
    int r = read_state(in, v, "state", &ret->state);
    r = r < 0 ? r : read_state(in, v, "next", &ret->next);
    r = r < 0 ? r : jr_time(in, v, "since", 0, &ret->since);
    r = r < 0 ? r : jr_count(in, transitions, NODE_REPORT_ITEMS_MAX, &n);
    if (r < 0) {
        return r;
    }
    ret->transitions = ARENA_ARRAY(in->out, struct node_report_transition, n);
    JVAL_EACH (transitions, transition) {
        r = read_transition(in, transition, &ret->transitions[ret->transition_n++]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_labels(const struct json_fields *in, const struct jval *labels,
                       struct node_report *ret)
{
    uint32_t n = 0;
    int r = jval_kind(labels) == JOBJ ? jr_count(in, labels, NODE_REPORT_ITEMS_MAX, &n) : 0;
    if (r < 0 || n == 0) {
        return r;
    }
    ret->labels = ARENA_ARRAY(in->out, struct node_report_label, n);
    JVAL_EACH (labels, label) {
        ret->labels[ret->label_n++] = (struct node_report_label){
            .key = arena_str(in->out, jval_key(label)),
            .value = arena_str(in->out, jval_str(label)),
        };
    }
    return 0;
}

static int read_claims(const struct json_fields *in, const struct jval *list,
                       struct node_report *ret)
{
    uint32_t n = 0;
    int r = jr_count(in, list, NODE_REPORT_ITEMS_MAX, &n);
    if (r < 0 || n == 0) {
        return r;
    }
    ret->claims = ARENA_ARRAY(in->out, struct node_report_claim, n);
    JVAL_EACH (list, v) {
        struct node_report_claim *c = &ret->claims[ret->claim_n++];
        *c = (struct node_report_claim){
            .who = jr_text(in, v, "who"),
            .holds = jr_bool(v, "holds"),
            .words = jr_text(in, v, "words"),
            .until = jr_text(in, v, "until"),
            .limits = jr_text(in, v, "limits"),
        };
        r = jr_time(in, v, "since", 0, &c->since);
        r = r < 0 ? r : jr_time(in, v, "deadline", USEC_NEVER, &c->deadline);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_report(const struct json_fields *in, const struct jval *v, struct node_report *ret)
{
    *ret = (struct node_report){
        .node = jr_text(in, v, "node"),
        .state = jr_text(in, v, "state"),
        .error = jr_text(in, v, "error"),
        .ready = jr_bool(v, "ready"),
        .cordoned = jr_bool(v, "cordoned"),
        .deleting = jr_bool(v, "deleting"),
        .waits = jr_text(in, v, "waits"),
        .drain = jr_text(in, v, "drain"),
    };
    const struct jval *profiles = jval_get(v, STR("profiles"));
    uint32_t n = 0;
    int r = jr_time(in, v, "updated", 0, &ret->updated);
    r = r < 0 ? r : jr_time(in, v, "now", 0, &ret->now);
    r = r < 0 ? r : read_labels(in, jval_get(v, STR("labels")), ret);
    r = r < 0 ? r : read_claims(in, jval_get(v, STR("claims")), ret);
    r = r < 0 ? r : jr_count(in, profiles, NODE_REPORT_ITEMS_MAX, &n);
    if (r < 0) {
        return r;
    }
    ret->profiles = ARENA_ARRAY(in->out, struct node_report_profile, n);
    JVAL_EACH (profiles, profile) {
        r = read_profile(in, profile, &ret->profiles[ret->profile_n++]);
        if (r < 0) {
            return err_wrap(in->err, "profile '" STR_FMT "'",
                            STR_ARG(jval_str(jval_get(profile, STR("name")))));
        }
    }
    return 0;
}

int node_report_parse(struct str text, struct arena *out, struct node_report *ret, struct err *err)
{
    const struct jval *root;
    struct node_report report;
    int r = json_parse(text, 0, out, &root, err);
    if (r < 0) {
        return r;
    }
    if (jval_str(jval_get(root, STR("node"))).p == NULL) {
        return err_set(err, ERR_PROTO, "found %s that is no report of a node",
                       jkind_name(jval_kind(root)));
    }
    r = read_report(&(struct json_fields){ .out = out, .err = err }, root, &report);
    if (r < 0) {
        return r;
    }
    *ret = report;
    return 0;
}
