#include "tests/swarm/config_oracle.h"

#include "base/timestamp.h"
#include "kinds/keys.h"
#include "tests/swarm/check_basic.h"

static usec_t timestamp_usec(struct str text)
{
    struct timestamp stamp;
    struct err ignored = { 0 };
    return timestamp_parse(text, &stamp, &ignored) < 0 ? 0 : timestamp_to_usec(stamp);
}

static struct str label_value(const struct jval *object, struct str key)
{
    return jval_str(jval_get(jval_at(object, "metadata.labels"), key));
}

void node_data_read(const struct random_config *b, const struct jval *object, struct arena *tmp,
                    struct oracle_node *ret)
{
    *ret = (struct oracle_node){ .object = object,
                                 .name = jval_str(jval_at(object, "metadata.name")) };
    struct str data =
        jval_str(jval_get(jval_at(object, "metadata.annotations"), NODE_DATA_ANNOTATION));
    const struct jval *root = NULL;
    struct err ignored = { 0 };
    if (data.n > 0 && json_parse(data, 0, tmp, &root, &ignored) < 0) {
        return;
    }
    ret->readable = true;
    JVAL_EACH (jval_get(root, STR("Profiles")), v) {
        struct oracle_profile entry = { .transition = jval_str(jval_get(v, STR("Transition"))) };
        entry.since = timestamp_usec(entry.transition);
        struct str current = jval_str(jval_get(v, STR("Current")));
        struct str previous = jval_str(jval_get(v, STR("Previous")));
        ret->in_maintenance += str_eq(current, STR("in-maintenance")) ? 1 : 0;
        if (random_config_profile_find(b, jval_key(v), &entry.profile) &&
            random_config_state_find(current, &entry.current) &&
            random_config_state_find(previous, &entry.previous)) {
            ret->entries[ret->entry_n++] = entry;
        }
    }
}

const struct oracle_profile *node_data_find(const struct oracle_node *node, uint32_t profile)
{
    for (uint32_t i = 0; i < node->entry_n; i++) {
        if (node->entries[i].profile == profile) {
            return &node->entries[i];
        }
    }
    return NULL;
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

struct counted_nodes {
    const struct config_oracle *j;
    const struct oracle_node *node;
    const struct random_config_limit *limit;
    uint32_t n;
    uint32_t granted;
};

static bool label_names_profile(struct str label, uint32_t profile)
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

bool config_oracle_counts_node(const struct random_config *b, const struct jval *object,
                               uint32_t limit)
{
    int32_t profile = b->limits[limit].profile;
    return profile < 0 ||
           label_names_profile(label_value(object, PROFILE_LABEL), (uint32_t)profile);
}

/* When the node went where it is, as skipAfter sees it. */
static usec_t maintenance_since(const struct counted_nodes *c, const struct oracle_node *node)
{
    usec_t since = 0;
    for (uint32_t i = 0; i < node->entry_n; i++) {
        bool counts =
            c->limit->profile < 0 || node->entries[i].profile == (uint32_t)c->limit->profile;
        since = counts ? MAX(since, node->entries[i].since) : since;
    }
    return since;
}

static void counted_nodes_visit(void *ctx, const struct jval *object)
{
    struct counted_nodes *c = ctx;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    bool is = str_eq(label_value(object, STATE_LABEL), STR("in-maintenance"));
    /* What carries our mark counts for those that do not. */
    bool marked = jval_bool(jval_at(object, "spec.unschedulable"), false) &&
                  jval_get(jval_at(object, "metadata.annotations"), KEY_PROFILE_CORDON) != NULL;
    bool granted = !is && (jval_get(c->j->grants, name) != NULL || marked);
    if (str_eq(name, c->node->name) || (!is && !granted)) {
        return;
    }
    uint32_t limit = (uint32_t)(c->limit - c->j->config->limits);
    if (c->j->ignore != NULL && c->j->ignore(c->j->ctx, object, limit)) {
        return;
    }
    if (!config_oracle_counts_node(c->j->config, object, limit)) {
        return;
    }
    struct str zone = label_value(c->node->object, RANDOM_CONFIG_ZONE);
    if (c->limit->by_zone && zone.n > 0 && !str_eq(zone, label_value(object, RANDOM_CONFIG_ZONE))) {
        return;
    }
    if (is && c->limit->skip_after > 0) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct oracle_node other;
        node_data_read(c->j->config, object, &tmp, &other);
        if (c->j->wall - maintenance_since(c, &other) >= c->limit->skip_after + c->j->slack) {
            return;
        }
    }
    c->n += is ? 1 : 0;
    c->granted += granted ? 1 : 0;
}

uint32_t config_oracle_count(const struct config_oracle *j, const struct oracle_node *node,
                             uint32_t limit, uint32_t *ret_granted)
{
    struct counted_nodes c = { .j = j, .node = node, .limit = &j->config->limits[limit] };
    apiserver_each(j->server, STR(""), STR("nodes"), STR(""), counted_nodes_visit, &c);
    *ret_granted = c.granted;
    return c.n;
}

static enum config_oracle_verdict
config_oracle_limit(const struct config_oracle *j, const struct oracle_node *node, uint32_t limit)
{
    uint32_t granted = 0;
    uint32_t n = config_oracle_count(j, node, limit, &granted);
    if (n >= j->config->limits[limit].max) {
        return CONFIG_ORACLE_NO;
    }
    return n + granted >= j->config->limits[limit].max ? CONFIG_ORACLE_UNDECIDED
                                                       : CONFIG_ORACLE_YES;
}

/* ── the other checks ──────────────────────────────────────────────────────────────────────── */

bool config_oracle_window_open(const struct random_config *b, usec_t wall)
{
    usec_t clock = wall % DAYS(1);
    return clock > MINUTES(b->window_open) && clock < MINUTES(b->window_close);
}

static enum config_oracle_verdict config_oracle_window(const struct config_oracle *j)
{
    if (!config_oracle_window_open(j->config, j->wall)) {
        return CONFIG_ORACLE_NO;
    }
    return config_oracle_window_open(j->config, j->wall - j->slack) ? CONFIG_ORACLE_YES
                                                                    : CONFIG_ORACLE_UNDECIDED;
}

static enum config_oracle_verdict config_oracle_wait(const struct config_oracle *j,
                                                     const struct oracle_profile *entry)
{
    usec_t past = j->wall - entry->since - j->config->wait;
    return past <= 0          ? CONFIG_ORACLE_NO
           : past <= j->slack ? CONFIG_ORACLE_UNDECIDED
                              : CONFIG_ORACLE_YES;
}

static enum config_oracle_verdict config_oracle_ready(const struct oracle_node *node)
{
    JVAL_EACH (jval_at(node->object, "status.conditions"), v) {
        if (str_eq(jval_str(jval_get(v, STR("type"))), STR("Ready"))) {
            bool is = str_eq(jval_str(jval_get(v, STR("status"))), STR("True"));
            return is ? CONFIG_ORACLE_YES : CONFIG_ORACLE_NO;
        }
    }
    return CONFIG_ORACLE_NO;
}

struct label_search {
    struct str key;
    bool found;
};

static void label_search_visit(void *ctx, const struct jval *object)
{
    struct label_search *search = ctx;
    search->found = search->found || label_value(object, search->key).n > 0;
}

static enum config_oracle_verdict verdict_if(bool is)
{
    return is ? CONFIG_ORACLE_YES : CONFIG_ORACLE_NO;
}

enum config_oracle_verdict config_oracle_check(const struct config_oracle *j,
                                               const struct oracle_node *node,
                                               const struct oracle_profile *entry,
                                               enum random_config_check check)
{
    char need[32];
    struct label_search search = { .key = RANDOM_CONFIG_GO };
    (void)snprintf(need, sizeof(need), "example.com/need-p%u", entry->profile);
    bool needs = str_eq(label_value(node->object, str_from(need)), STR("true"));
    switch (check) {
    case CONFIG_CHECK_NEED:
        return verdict_if(needs);
    case CONFIG_CHECK_DONE:
        return verdict_if(!needs);
    case CONFIG_CHECK_APPROVED:
        return verdict_if(jval_get(jval_at(node->object, "metadata.annotations"),
                                   RANDOM_CONFIG_APPROVED) != NULL);
    case CONFIG_CHECK_LIMIT_0:
    case CONFIG_CHECK_LIMIT_1:
        return config_oracle_limit(j, node, (uint32_t)check - CONFIG_CHECK_LIMIT_0);
    case CONFIG_CHECK_WINDOW:
        return config_oracle_window(j);
    case CONFIG_CHECK_WAIT:
        return config_oracle_wait(j, entry);
    case CONFIG_CHECK_WAIT_EXCLUDE:
        return config_oracle_wait(j, entry) == CONFIG_ORACLE_NO ? CONFIG_ORACLE_NO
                                                                : CONFIG_ORACLE_UNDECIDED;
    case CONFIG_CHECK_READY:
        return config_oracle_ready(node);
    case CONFIG_CHECK_NODE_COUNT:
        return verdict_if(apiserver_count(j->server, STR(""), STR("nodes")) >= 2);
    case CONFIG_CHECK_ANY_LABEL:
        apiserver_each(j->server, STR(""), STR("nodes"), STR(""), label_search_visit, &search);
        return verdict_if(search.found);
    case CONFIG_CHECK_STAGGER:
    case CONFIG_CHECK_PROMETHEUS:
    case CONFIG_CHECK_SEMVER:
    case CONFIG_CHECK_AFFINITY:
    default:
        return CONFIG_ORACLE_UNDECIDED;
    }
}

enum config_oracle_verdict config_oracle_step(const struct config_oracle *j,
                                              const struct oracle_node *node,
                                              const struct oracle_profile *entry,
                                              const struct random_config_step *step,
                                              uint32_t without)
{
    enum config_oracle_verdict all = CONFIG_ORACLE_YES;
    for (unsigned i = 0; i < CONFIG_CHECK_COUNT && all != CONFIG_ORACLE_NO; i++) {
        if ((step->checks & ~without & CONFIG_BIT(i)) != 0) {
            all = MIN(all, config_oracle_check(j, node, entry, (enum random_config_check)i));
        }
    }
    return all;
}
