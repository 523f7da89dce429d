#include "tests/swarm/config_oracle.h"

#include "base/timestamp.h"
#include "tests/swarm/check_basic.h"

static usec_t usec_of(struct str text)
{
    struct timestamp stamp;
    struct err ignored = { 0 };
    return timestamp_parse(text, &stamp, &ignored) < 0 ? 0 : timestamp_to_usec(stamp);
}

static struct str label_of(const struct jval *object, struct str key)
{
    return jval_str(jval_get(jval_at(object, "metadata.labels"), key));
}

void judge_read(const struct blueprint *b, const struct jval *object, struct arena *tmp,
                struct judge_node *ret)
{
    *ret =
        (struct judge_node){ .object = object, .name = jval_str(jval_at(object, "metadata.name")) };
    struct str data = jval_str(jval_get(jval_at(object, "metadata.annotations"), DATA_ANNOTATION));
    const struct jval *root = NULL;
    struct err ignored = { 0 };
    if (data.n > 0 && json_parse(data, 0, tmp, &root, &ignored) < 0) {
        return;
    }
    ret->readable = true;
    JVAL_EACH (jval_get(root, STR("Profiles")), v) {
        struct judge_entry entry = { .transition = jval_str(jval_get(v, STR("Transition"))) };
        entry.since = usec_of(entry.transition);
        struct str current = jval_str(jval_get(v, STR("Current")));
        struct str previous = jval_str(jval_get(v, STR("Previous")));
        ret->in_maintenance += str_eq(current, STR("in-maintenance")) ? 1 : 0;
        if (blueprint_profile_find(b, jval_key(v), &entry.profile) &&
            blueprint_state_find(current, &entry.current) &&
            blueprint_state_find(previous, &entry.previous)) {
            ret->entries[ret->entry_n++] = entry;
        }
    }
}

const struct judge_entry *judge_find(const struct judge_node *node, uint32_t profile)
{
    for (uint32_t i = 0; i < node->entry_n; i++) {
        if (node->entries[i].profile == profile) {
            return &node->entries[i];
        }
    }
    return NULL;
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

struct count {
    const struct judge *j;
    const struct judge_node *node;
    const struct blueprint_limit *limit;
    uint32_t n;
    uint32_t granted;
};

static bool label_names(struct str label, uint32_t profile)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "p%u", profile);
    struct str piece;
    bool more = true;
    while (more) {
        more = str_cut(label, STR("--"), &piece, &label);
        if (str_eq(piece, str_from(name))) {
            return true;
        }
    }
    return false;
}

bool judge_is_counted(const struct blueprint *b, const struct jval *object, uint32_t limit)
{
    int32_t profile = b->limits[limit].profile;
    return profile < 0 || label_names(label_of(object, PROFILE_LABEL), (uint32_t)profile);
}

/* When the node went where it is, as skipAfter sees it. */
static usec_t since_of(const struct count *c, const struct judge_node *node)
{
    usec_t since = 0;
    for (uint32_t i = 0; i < node->entry_n; i++) {
        bool counts =
            c->limit->profile < 0 || node->entries[i].profile == (uint32_t)c->limit->profile;
        since = counts ? MAX(since, node->entries[i].since) : since;
    }
    return since;
}

static void count_visit(void *ctx, const struct jval *object)
{
    struct count *c = ctx;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    bool is = str_eq(label_of(object, STATE_LABEL), STR("in-maintenance"));
    bool granted = !is && jval_get(c->j->grants, name) != NULL;
    if (str_eq(name, c->node->name) || (!is && !granted)) {
        return;
    }
    uint32_t limit = (uint32_t)(c->limit - c->j->blueprint->limits);
    if (c->j->ignore != NULL && c->j->ignore(c->j->ctx, object, limit)) {
        return;
    }
    if (!judge_is_counted(c->j->blueprint, object, limit)) {
        return;
    }
    struct str zone = label_of(c->node->object, BLUEPRINT_ZONE);
    if (c->limit->by_zone && zone.n > 0 && !str_eq(zone, label_of(object, BLUEPRINT_ZONE))) {
        return;
    }
    if (is && c->limit->skip_after > 0) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct judge_node other;
        judge_read(c->j->blueprint, object, &tmp, &other);
        if (c->j->wall - since_of(c, &other) >= c->limit->skip_after + c->j->slack) {
            return;
        }
    }
    c->n += is ? 1 : 0;
    c->granted += granted ? 1 : 0;
}

uint32_t judge_count(const struct judge *j, const struct judge_node *node, uint32_t limit,
                     uint32_t *ret_granted)
{
    struct count c = { .j = j, .node = node, .limit = &j->blueprint->limits[limit] };
    apiserver_each(j->server, STR(""), STR("nodes"), STR(""), count_visit, &c);
    *ret_granted = c.granted;
    return c.n;
}

static enum judgement judge_limit(const struct judge *j, const struct judge_node *node,
                                  uint32_t limit)
{
    uint32_t granted = 0;
    uint32_t n = judge_count(j, node, limit, &granted);
    if (n >= j->blueprint->limits[limit].max) {
        return JUDGED_NO;
    }
    return n + granted >= j->blueprint->limits[limit].max ? JUDGED_OPEN : JUDGED_YES;
}

/* ── the other checks ──────────────────────────────────────────────────────────────────────── */

bool judge_window_open(const struct blueprint *b, usec_t wall)
{
    usec_t clock = wall % DAYS(1);
    return clock > MINUTES(b->window_open) && clock < MINUTES(b->window_close);
}

static enum judgement judge_window(const struct judge *j)
{
    if (!judge_window_open(j->blueprint, j->wall)) {
        return JUDGED_NO;
    }
    return judge_window_open(j->blueprint, j->wall - j->slack) ? JUDGED_YES : JUDGED_OPEN;
}

static enum judgement judge_wait(const struct judge *j, const struct judge_entry *entry)
{
    usec_t over = j->wall - entry->since - j->blueprint->wait;
    return over <= 0 ? JUDGED_NO : over <= j->slack ? JUDGED_OPEN : JUDGED_YES;
}

static enum judgement judge_ready(const struct judge_node *node)
{
    JVAL_EACH (jval_at(node->object, "status.conditions"), v) {
        if (str_eq(jval_str(jval_get(v, STR("type"))), STR("Ready"))) {
            bool is = str_eq(jval_str(jval_get(v, STR("status"))), STR("True"));
            return is ? JUDGED_YES : JUDGED_NO;
        }
    }
    return JUDGED_NO;
}

struct any {
    struct str key;
    bool found;
};

static void any_visit(void *ctx, const struct jval *object)
{
    struct any *any = ctx;
    any->found = any->found || label_of(object, any->key).n > 0;
}

static enum judgement yes_if(bool is)
{
    return is ? JUDGED_YES : JUDGED_NO;
}

enum judgement judge_ask(const struct judge *j, const struct judge_node *node,
                         const struct judge_entry *entry, enum blueprint_check ask)
{
    char need[32];
    struct any any = { .key = BLUEPRINT_GO };
    (void)snprintf(need, sizeof(need), "example.com/need-p%u", entry->profile);
    bool needs = str_eq(label_of(node->object, str_from(need)), STR("true"));
    switch (ask) {
    case ASKS_NEED:
        return yes_if(needs);
    case ASKS_DONE:
        return yes_if(!needs);
    case ASKS_APPROVED:
        return yes_if(jval_get(jval_at(node->object, "metadata.annotations"), BLUEPRINT_APPROVED) !=
                      NULL);
    case ASKS_LIMIT_0:
    case ASKS_LIMIT_1:
        return judge_limit(j, node, (uint32_t)ask - ASKS_LIMIT_0);
    case ASKS_WINDOW:
        return judge_window(j);
    case ASKS_WAIT:
        return judge_wait(j, entry);
    case ASKS_WAIT_EXCLUDE:
        return judge_wait(j, entry) == JUDGED_NO ? JUDGED_NO : JUDGED_OPEN;
    case ASKS_READY:
        return judge_ready(node);
    case ASKS_COUNT:
        return yes_if(apiserver_count(j->server, STR(""), STR("nodes")) >= 2);
    case ASKS_ANY:
        apiserver_each(j->server, STR(""), STR("nodes"), STR(""), any_visit, &any);
        return yes_if(any.found);
    case ASKS_STAGGER:
    case ASKS_PROMETHEUS:
    case ASKS_NEWER:
    case ASKS_PODS:
    default:
        return JUDGED_OPEN;
    }
}

enum judgement judge_step(const struct judge *j, const struct judge_node *node,
                          const struct judge_entry *entry, const struct blueprint_step *step,
                          uint32_t without)
{
    enum judgement all = JUDGED_YES;
    for (unsigned i = 0; i < ASKS && all != JUDGED_NO; i++) {
        if ((step->asks & ~without & BIT(i)) != 0) {
            all = MIN(all, judge_ask(j, node, entry, (enum blueprint_check)i));
        }
    }
    return all;
}
