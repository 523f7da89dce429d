#include "tests/swarm/check_service.h"

#include "format/json_tree.h"
#include "kinds/keys.h"
#include "ledger/lease_grants.h"
#include "core/core.h"
#include "profile/node_edit.h"

#define REPEAT_INTERVAL_MIN HOURS(6) /* no notice of a configuration is due again before */

struct check_service_sent {
    struct check_sender sender;
};

struct check_service_notified {
    bool received;           /* somebody has taken it in */
    struct str tried_by;     /* who tried last; empty: nobody */
    uint32_t tried_term;     /* of it */
    uint64_t tried_version;  /* the configuration by which it did */
    struct str acked_by;     /* who knows that; empty: nobody */
    uint32_t term;           /* of it */
    usec_t at;               /* since when */
    uint64_t config_version; /* the configuration by which it was told */
};

struct check_service_entered {
    enum random_config_state state;
    usec_t at;       /* true time of the commit */
    uint32_t checks; /* of the step that led there */
    struct str transition;
    uint64_t config_version;
    uint32_t looked; /* how often the Node had been read then */
};

struct check_service_manual_cordon {
    bool by_hand;    /* cordoned by hand, and it carried no mark of ours */
    bool uncordoned; /* our cordon was lifted by hand */
};

struct check_service_granted {
    int64_t version; /* of the node, as recorded; 0: it is not */
    usec_t since;    /* true time of the record */
};

struct check_service_asked {
    usec_t at; /* true time of the last query to Prometheus */
};

struct check_service_looked {
    uint32_t n; /* how often the Node was read: each try of a message begins so */
};

void check_service_done(struct check_service *s)
{
    map_done(&s->granted);
    map_done(&s->asked);
    map_done(&s->looked);
    map_done(&s->sent);
    map_done(&s->notified);
    map_done(&s->entered);
    map_done(&s->manual_cordons);
    check_drain_rules_done(&s->rules);
    arena_done(&s->memory);
}

static void *find_or_add(struct check_service *s, struct map *map, struct str key, size_t size)
{
    void *value = map_find(map, key);
    if (value == NULL) {
        value = arena_alloc(&s->memory, size);
        (void)map_put(map, arena_str(&s->memory, key), value); /* it was not there */
    }
    return value;
}

static struct str annotation_of(const struct jval *object, struct str key)
{
    return jval_str(jval_get(jval_at(object, "metadata.annotations"), key));
}

static bool is_cordoned(const struct jval *object)
{
    return jval_bool(jval_at(object, "spec.unschedulable"), false);
}

/* What the leader's Lease records, in `tmp`; NULL: nothing. */
static const struct jval *grants_of(struct check_service *s, struct arena *tmp)
{
    const struct jval *lease = apiserver_find(s->server, STR("coordination.k8s.io"), STR("leases"),
                                              STR("default"), CORE_LEASE_NAME);
    const struct jval *grants = NULL;
    struct err ignored = { 0 };
    struct str note = annotation_of(lease, KEY_LEASE_GRANTS);
    if (note.n == 0 || json_parse(note, 0, tmp, &grants, &ignored) < 0) {
        return NULL;
    }
    return grants;
}

static struct str sent_key(struct arena *tmp, struct str writer, struct str node,
                           struct str version)
{
    return arena_printf(tmp, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(writer), STR_ARG(node),
                        STR_ARG(version));
}

/* As the profile was before; one that was not there began as operational in the same moment. */
static struct oracle_profile entry_before(const struct oracle_node *node, uint32_t profile,
                                          usec_t wall)
{
    const struct oracle_profile *entry = node_data_find(node, profile);
    return entry != NULL ? *entry : (struct oracle_profile){ .profile = profile, .since = wall };
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

/* I2: what a clock decides is decided when the request leaves. */
static void check_clock_checks(struct check_service *s, const struct check_sender *sender,
                               const struct oracle_node *before, const struct oracle_node *after)
{
    const struct random_config *b = &s->configs[sender->config];
    for (uint32_t i = 0; i < after->entry_n; i++) {
        const struct oracle_profile *new = &after->entries[i];
        struct oracle_profile old = entry_before(before, new->profile, sender->wall);
        const struct random_config_step *step =
            random_config_step_find(b, new->profile, old.current, new->current);
        if (step == NULL) {
            continue; /* judged when it takes effect */
        }
        if ((step->checks & CONFIG_BIT(CONFIG_CHECK_WINDOW)) != 0 &&
            !config_oracle_window_open(b, sender->wall)) {
            check_violation(s->basic,
                            "I2: " STR_FMT " takes " STR_FMT " into %s at %lld min of the day, the "
                            "window is %u to %u",
                            STR_ARG(sender->identity), STR_ARG(before->name),
                            random_config_state_name(new->current),
                            (long long)(sender->wall % DAYS(1) / MINUTES(1)), b->window_open,
                            b->window_close);
        }
        uint32_t wait_checks =
            CONFIG_BIT(CONFIG_CHECK_WAIT) | CONFIG_BIT(CONFIG_CHECK_WAIT_EXCLUDE);
        if ((step->checks & wait_checks) != 0 && sender->wall - old.since <= b->wait) {
            check_violation(
                s->basic, "I2: " STR_FMT " takes " STR_FMT " into %s after %lld ms, not %lld",
                STR_ARG(sender->identity), STR_ARG(before->name),
                random_config_state_name(new->current),
                (long long)((sender->wall - old.since) / 1000), (long long)(b->wait / 1000));
        }
    }
}

void check_service_on_query_send(struct check_service *s, const struct check_sender *sender)
{
    struct check_service_asked *asked = find_or_add(s, &s->asked, sender->identity, sizeof(*asked));
    asked->at = sender->now;
}

void check_service_on_lease_commit(struct check_service *s, usec_t now)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *grants = grants_of(s, &tmp);
    MAP_EACH (&s->granted, item) {
        struct check_service_granted *granted = map_item_value(item);
        granted->version = jval_get(grants, map_item_name(item)) == NULL ? 0 : granted->version;
    }
    JVAL_EACH (grants, entry) {
        struct check_service_granted *granted =
            find_or_add(s, &s->granted, jval_key(entry), sizeof(*granted));
        int64_t version = 0;
        (void)jval_i64(jval_get(entry, STR("version")), &version); /* a broken one has none */
        granted->since = version != granted->version ? now : granted->since;
        granted->version = version;
    }
}

/* P13: a recorded grant is followed by a query before its node goes. */
static void check_asked_again(struct check_service *s, const struct check_sender *sender,
                              struct str node)
{
    const struct check_service_granted *granted = map_find(&s->granted, node);
    const struct check_service_asked *asked = map_find(&s->asked, sender->identity);
    if (s->elect && s->limited && granted != NULL && granted->version != 0 &&
        (asked == NULL || asked->at < granted->since)) {
        check_violation(s->basic,
                        "P13: " STR_FMT " takes " STR_FMT " into maintenance and has not asked "
                        "Prometheus since its grant was recorded, %lld ms ago",
                        STR_ARG(sender->identity), STR_ARG(node),
                        (long long)((sender->now - granted->since) / 1000));
    }
}

/* P13: what Prometheus said long ago takes no node into maintenance. */
static void check_prometheus(struct check_service *s, const struct check_sender *sender,
                             const struct oracle_node *before, const struct oracle_node *after)
{
    for (uint32_t i = 0; i < after->entry_n; i++) {
        const struct oracle_profile *new = &after->entries[i];
        struct oracle_profile old = entry_before(before, new->profile, sender->wall);
        const struct random_config_step *step = random_config_step_find(
            &s->configs[sender->config], new->profile, old.current, new->current);
        if (step == NULL || new->current != CONFIG_STATE_MAINTENANCE ||
            (step->checks & CONFIG_BIT(CONFIG_CHECK_PROMETHEUS)) == 0) {
            continue;
        }
        check_asked_again(s, sender, before->name);
        if (sender->now - CHECK_SERVICE_ANSWER_MAX > s->prometheus_no_since) {
            check_violation(s->basic,
                            "P13: " STR_FMT " takes " STR_FMT " into maintenance although "
                            "Prometheus has said no for %lld ms",
                            STR_ARG(sender->identity), STR_ARG(before->name),
                            (long long)((sender->now - s->prometheus_no_since) / 1000));
        }
    }
}

/* P16: while everything is paused no node is taken into maintenance and no pod is evicted. */
static void check_paused(struct check_service *s, const struct check_sender *sender,
                         const char *what, struct str name)
{
    if (sender->now - CHECK_SERVICE_PAUSE_SEEN > s->paused_since) {
        check_violation(s->basic,
                        "P16: " STR_FMT " %s " STR_FMT " although everything has been paused for "
                        "%lld ms",
                        STR_ARG(sender->identity), what, STR_ARG(name),
                        (long long)((sender->now - s->paused_since) / 1000));
    }
}

static void check_enters_paused(struct check_service *s, const struct check_sender *sender,
                                const struct oracle_node *before, const struct oracle_node *after)
{
    for (uint32_t i = 0; i < after->entry_n; i++) {
        struct oracle_profile old = entry_before(before, after->entries[i].profile, sender->wall);
        if (after->entries[i].current == CONFIG_STATE_MAINTENANCE &&
            old.current != CONFIG_STATE_MAINTENANCE) {
            check_paused(s, sender, "takes into maintenance", before->name);
        }
    }
}

/* I7: a node goes into maintenance on the version for which the Lease records its grant. */
static void check_recorded(struct check_service *s, const struct check_sender *sender,
                           const struct oracle_node *before, const struct oracle_node *after,
                           struct str version)
{
    const struct check_service_granted *granted = map_find(&s->granted, before->name);
    uint64_t number = 0;
    for (uint32_t i = 0; i < after->entry_n; i++) {
        struct oracle_profile old = entry_before(before, after->entries[i].profile, sender->wall);
        if (after->entries[i].current != CONFIG_STATE_MAINTENANCE ||
            old.current == CONFIG_STATE_MAINTENANCE || !s->elect || !s->limited) {
            continue;
        }
        if (granted == NULL || !str_to_u64(version, &number) ||
            granted->version != (int64_t)number) {
            check_violation(s->basic,
                            "I7: " STR_FMT " takes " STR_FMT " into maintenance at version " STR_FMT
                            ", for which no grant is recorded",
                            STR_ARG(sender->identity), STR_ARG(before->name), STR_ARG(version));
        }
    }
}

static void send_patch(struct check_service *s, const struct check_sender *sender,
                       const struct api_request *request)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *patch = NULL;
    struct str name = str_sub(request->path, STR("/api/v1/nodes/").n, request->path.n);
    if (json_parse(request->body, 0, &tmp, &patch, &ignored) < 0) {
        check_violation(s->basic, "P3: a patch that is no JSON");
        return;
    }
    struct str version = jval_str(jval_at(patch, "metadata.resourceVersion"));
    struct check_service_sent *sent =
        find_or_add(s, &s->sent, sent_key(&tmp, sender->identity, name, version), sizeof(*sent));
    sent->sender = *sender;
    const struct jval *object = apiserver_find(s->server, STR(""), STR("nodes"), STR(""), name);
    if (object == NULL || sender->config == CHECK_SERVICE_CONFIGS ||
        !str_eq(jval_str(jval_at(object, "metadata.resourceVersion")), version)) {
        return; /* it cannot take effect */
    }
    struct oracle_node before;
    struct oracle_node after;
    node_data_read(&s->configs[sender->config], object, &tmp, &before);
    node_data_read(&s->configs[sender->config], patch, &tmp, &after);
    check_clock_checks(s, sender, &before, &after);
    check_prometheus(s, sender, &before, &after);
    check_recorded(s, sender, &before, &after, version);
    check_enters_paused(s, sender, &before, &after);
}

/* The node may be drained: it is in maintenance by a profile that drains then, or on its way there
 * by a grant that is recorded. */
static bool may_drain(struct check_service *s, const struct check_sender *sender,
                      const struct jval *object)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct random_config *b = &s->configs[sender->config];
    struct oracle_node node;
    node_data_read(b, object, &tmp, &node);
    bool recorded = !s->elect || !s->limited || jval_get(grants_of(s, &tmp), node.name) != NULL;
    for (uint32_t i = 0; i < node.entry_n; i++) {
        const struct oracle_profile *e = &node.entries[i];
        const struct random_config_step *step =
            random_config_step_find(b, e->profile, e->current, CONFIG_STATE_MAINTENANCE);
        uint32_t enter = b->profiles[e->profile].enter[e->current];
        if ((enter & CONFIG_BIT(CONFIG_TRIGGER_DRAIN)) != 0 ||
            (step != NULL && (step->triggers & CONFIG_BIT(CONFIG_TRIGGER_DRAIN)) != 0 &&
             recorded)) {
            return true;
        }
    }
    return false;
}

/* I7: pods are sent away from nodes whose cordon and grant are on the server, and from no other. */
static void send_eviction(struct check_service *s, const struct check_sender *sender,
                          struct str namespace, struct str pod)
{
    const struct jval *object = apiserver_find(s->server, STR(""), STR("pods"), namespace, pod);
    struct str name = jval_str(jval_at(object, "spec.nodeName"));
    const struct jval *node =
        name.n == 0 ? NULL : apiserver_find(s->server, STR(""), STR("nodes"), STR(""), name);
    const struct check_service_manual_cordon *manual = map_find(&s->manual_cordons, name);
    /* A drain that another configuration wanted ends with the next turn. */
    if (node == NULL || sender->now - sender->config_since < SECONDS(1)) {
        return;
    }
    if (!is_cordoned(node) && (manual == NULL || !manual->uncordoned)) {
        check_violation(
            s->basic, "I7: " STR_FMT " evicts " STR_FMT " from " STR_FMT ", which is not cordoned",
            STR_ARG(sender->identity), STR_ARG(pod), STR_ARG(name));
    } else if (!may_drain(s, sender, node)) {
        check_violation(s->basic,
                        "I7: " STR_FMT " evicts " STR_FMT " from " STR_FMT
                        ", which nothing allows to be drained",
                        STR_ARG(sender->identity), STR_ARG(pod), STR_ARG(name));
    }
}

void check_service_on_send(struct check_service *s, const struct check_sender *sender,
                           const struct api_request *request)
{
    struct str head;
    struct str rest;
    struct str namespace;
    if (request->verb == API_PATCH && str_starts(request->path, STR("/api/v1/nodes/"))) {
        send_patch(s, sender, request);
        return;
    }
    if (request->verb == API_GET && str_cut_prefix(request->path, STR("/api/v1/nodes/"), &rest)) {
        struct check_service_looked *looked = find_or_add(s, &s->looked, rest, sizeof(*looked));
        looked->n++;
        return;
    }
    if (!str_cut(request->path, STR("/pods/"), &head, &rest) ||
        sender->config == CHECK_SERVICE_CONFIGS) {
        return;
    }
    namespace = str_sub(head, STR("/api/v1/namespaces/").n, head.n);
    struct str pod = str_sub(rest, 0, str_find_char(rest, '/'));
    if (request->verb == API_DELETE || request->verb == API_POST) {
        check_paused(s, sender, "evicts", pod);
        check_drain_rules_on_send(&s->rules, sender->identity, namespace, pod, sender->now);
    }
    if (request->verb == API_DELETE && !s->configs[sender->config].force) {
        check_violation(s->basic, "I5: " STR_FMT " deletes " STR_FMT " past its budget",
                        STR_ARG(sender->identity), STR_ARG(rest));
    } else if (request->verb == API_POST && str_ends(rest, STR("/eviction"))) {
        send_eviction(s, sender, namespace, pod);
    }
}

/* ── commits ───────────────────────────────────────────────────────────────────────────────── */

/* The object without what a controller may change by any configuration. */
static struct tree *without_own_fields(struct arena *tmp, const struct jval *object)
{
    struct tree *t = tree_from(tmp, object);
    static const char *const paths[] = { "metadata.resourceVersion", "metadata.managedFields",
                                         "metadata.generation", "metadata.finalizers",
                                         "spec.unschedulable" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        (void)tree_del_at(t, paths[i]); /* absent is fine */
    }
    struct tree *labels = tree_at(t, "metadata.labels");
    struct tree *annotations = tree_at(t, "metadata.annotations");
    if (labels != NULL) {
        (void)tree_del(labels, STATE_LABEL);           /* absent is fine */
        (void)tree_del(labels, RANDOM_CONFIG_STARTED); /* absent is fine */
    }
    if (annotations != NULL) {
        (void)tree_del(annotations, NODE_DATA_ANNOTATION); /* absent is fine */
        (void)tree_del(annotations, KEY_PROFILE_CORDON);   /* absent is fine */
        (void)tree_del(annotations, KEY_FENCE);            /* absent is fine */
        (void)tree_del(annotations, KEY_ABORT);            /* absent is fine */
        (void)tree_del(annotations, RANDOM_CONFIG_PHASE);  /* absent is fine */
    }
    if (labels != NULL && labels->n == 0) {
        (void)tree_del_at(t, "metadata.labels");
    }
    if (annotations != NULL && annotations->n == 0) {
        (void)tree_del_at(t, "metadata.annotations");
    }
    return t;
}

/* I4, and who cordons what. */
static void check_cordon(struct check_service *s, struct str writer, const struct jval *before,
                         const struct jval *after)
{
    struct str name = jval_str(jval_at(after != NULL ? after : before, "metadata.name"));
    struct check_service_manual_cordon *manual =
        find_or_add(s, &s->manual_cordons, name, sizeof(*manual));
    bool was = is_cordoned(before);
    bool is = is_cordoned(after);
    struct str mark_before = annotation_of(before, KEY_PROFILE_CORDON);
    if (before == NULL || after == NULL) {
        *manual = (struct check_service_manual_cordon){ .by_hand = is };
        return;
    }
    if (was == is) {
        return;
    }
    if (writer.n == 0) {
        manual->by_hand = is && annotation_of(after, KEY_PROFILE_CORDON).n == 0;
        manual->uncordoned = !is;
        return;
    }
    if (!is && (mark_before.n == 0 || manual->by_hand)) {
        check_violation(s->basic, "I4: " STR_FMT " uncordons " STR_FMT " that another cordoned",
                        STR_ARG(writer), STR_ARG(name));
    }
    if (is && annotation_of(after, KEY_PROFILE_CORDON).n == 0) {
        check_violation(s->basic, "I4: " STR_FMT " cordons " STR_FMT " without its mark",
                        STR_ARG(writer), STR_ARG(name));
    }
    *manual = (struct check_service_manual_cordon){ 0 };
}

static uint32_t times_looked(const struct check_service *s, struct str node)
{
    const struct check_service_looked *looked = map_find(&s->looked, node);
    return looked != NULL ? looked->n : 0;
}

/* I8: who leaves a state has told all that was to be told on entry, or tried to. A try begins with
 * the Node; where that could not be read, no third party sees anything of it. */
static void check_notified(struct check_service *s, const struct check_sender *sender,
                           const struct oracle_node *before, const struct oracle_profile *old)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct random_config *b = &s->configs[sender->config];
    struct str uid = jval_str(jval_at(before->object, "metadata.uid"));
    struct str key = arena_printf(&tmp, STR_FMT "/p%u", STR_ARG(uid), old->profile);
    const struct check_service_entered *entered = map_find(&s->entered, key);
    if (entered == NULL || entered->state != old->current ||
        entered->config_version != sender->config_version ||
        !str_eq(entered->transition, old->transition)) {
        return; /* it began otherwise, or under another configuration */
    }
    uint32_t tries = times_looked(s, before->name) - entered->looked;
    for (uint32_t i = 0; i < RANDOM_CONFIG_NOTIFICATIONS; i++) {
        if ((b->profiles[old->profile].notify[old->current] & CONFIG_BIT(i)) == 0 ||
            b->notifications[i].schedule != NOTIFICATION_AT_ENTRY) {
            continue;
        }
        struct str message = arena_printf(
            &tmp, "n%u|" STR_FMT "|p%u|%s|" STR_FMT, i, STR_ARG(before->name), old->profile,
            random_config_state_name(old->current), STR_ARG(old->transition));
        const struct check_service_notified *notified = map_find(&s->notified, message);
        bool tried = notified != NULL && (notified->received || notified->tried_by.n > 0);
        if (!tried && tries == 0) {
            check_violation(s->basic,
                            "I8: nobody was to be told '" STR_FMT "' before the state ended",
                            STR_ARG(message));
        }
        tries -= tries > 0 ? 1 : 0;
    }
}

struct queue_check {
    struct check_service *s;
    const struct config_oracle *j;
    const struct oracle_node *node;
    const struct oracle_profile *entry;
    const struct random_config_step *step;
};

/* Somebody who waits longer for the same, and could go. */
static void queue_check_visit(void *ctx, const struct jval *object)
{
    struct queue_check *queue = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct oracle_node other;
    node_data_read(queue->j->config, object, &tmp, &other);
    const struct oracle_profile *e = node_data_find(&other, queue->entry->profile);
    struct str zone = jval_str(jval_get(jval_at(object, "metadata.labels"), RANDOM_CONFIG_ZONE));
    struct str own_zone =
        jval_str(jval_get(jval_at(queue->node->object, "metadata.labels"), RANDOM_CONFIG_ZONE));
    if (e == NULL || e->current != queue->entry->current || e->previous != e->current ||
        e->since >= queue->entry->since || other.in_maintenance > 0 || other.entry_n > 1 ||
        !str_eq(zone, own_zone) || jval_get(queue->j->grants, other.name) != NULL) {
        return;
    }
    uint32_t limits = CONFIG_BIT(CONFIG_CHECK_LIMIT_0) | CONFIG_BIT(CONFIG_CHECK_LIMIT_1);
    if (config_oracle_step(queue->j, &other, e, queue->step, limits) == CONFIG_ORACLE_YES) {
        check_violation(queue->s->basic,
                        "I9: " STR_FMT " goes before " STR_FMT ", which has waited longer",
                        STR_ARG(queue->node->name), STR_ARG(other.name));
    }
}

static void check_queue_order(struct check_service *s, const struct config_oracle *j,
                              const struct oracle_node *node, const struct oracle_profile *entry,
                              const struct random_config_step *step, usec_t now)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct config_oracle oracle_with_grants = *j;
    uint32_t undecided_checks =
        CONFIG_BIT(CONFIG_CHECK_WAIT) | CONFIG_BIT(CONFIG_CHECK_WAIT_EXCLUDE) |
        CONFIG_BIT(CONFIG_CHECK_STAGGER) | CONFIG_BIT(CONFIG_CHECK_PROMETHEUS) |
        CONFIG_BIT(CONFIG_CHECK_SEMVER) | CONFIG_BIT(CONFIG_CHECK_AFFINITY);
    uint32_t limits = CONFIG_BIT(CONFIG_CHECK_LIMIT_0) | CONFIG_BIT(CONFIG_CHECK_LIMIT_1);
    if (s->recovery_since == USEC_NEVER || now < s->recovery_since + CHECK_SERVICE_SETTLED ||
        (step->checks & undecided_checks) != 0 || (step->checks & limits) == 0) {
        return;
    }
    oracle_with_grants.grants = grants_of(s, &tmp);
    struct queue_check queue = { s, &oracle_with_grants, node, entry, step };
    apiserver_each(s->server, STR(""), STR("nodes"), STR(""), queue_check_visit, &queue);
}

struct pod_search {
    const struct check_drain_rules *rules;
    const struct jval *object; /* the node's */
    struct str node;
    struct str remaining;
};

static void pod_search_visit(void *ctx, const struct jval *object)
{
    struct pod_search *search = ctx;
    struct str phase = jval_str(jval_at(object, "status.phase"));
    bool finished = str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
    bool daemon = false;
    JVAL_EACH (jval_at(object, "metadata.ownerReferences"), owner) {
        daemon = daemon || str_eq(jval_str(jval_get(owner, STR("kind"))), STR("DaemonSet"));
    }
    if (str_eq(jval_str(jval_at(object, "spec.nodeName")), search->node) && !finished && !daemon &&
        !check_drain_rules_skips(search->rules, search->object, object)) {
        search->remaining = jval_str(jval_at(object, "metadata.name"));
    }
}

/* What the step and entering do to the node has been done with it, or before. */
static void check_effects(struct check_service *s, const struct random_config_step *step,
                          const struct oracle_node *node, const struct jval *after)
{
    const struct check_service_manual_cordon *manual = map_find(&s->manual_cordons, node->name);
    uint32_t cordon_triggers = CONFIG_BIT(CONFIG_TRIGGER_CORDON) | CONFIG_BIT(CONFIG_TRIGGER_DRAIN);
    if ((step->triggers & cordon_triggers) != 0 && !is_cordoned(after)) {
        check_violation(s->basic, "I7: " STR_FMT " is in maintenance and not cordoned",
                        STR_ARG(node->name));
    }
    if ((step->triggers & CONFIG_BIT(CONFIG_TRIGGER_DRAIN)) == 0 ||
        (manual != NULL && manual->uncordoned)) {
        return;
    }
    struct pod_search search = { .rules = &s->rules, .object = after, .node = node->name };
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), pod_search_visit, &search);
    if (search.remaining.n > 0) {
        check_violation(s->basic, "I7: " STR_FMT " is in maintenance while " STR_FMT " runs on it",
                        STR_ARG(node->name), STR_ARG(search.remaining));
    }
}

struct patch_arrival {
    struct check_service *s;
    usec_t sent_at;
    const struct oracle_node *node; /* who arrives */
    const struct random_config *config;
};

/* Two patches on the wire may arrive in either order. A node that arrived after the patch had set
 * out might as well have come behind it, if the limit does not bind it, or does not count the one
 * that arrives now: then nobody had a reason to wait for it. */
static bool arrived_meanwhile(void *ctx, const struct jval *object, uint32_t limit)
{
    const struct patch_arrival *arrival = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str uid = jval_str(jval_at(object, "metadata.uid"));
    for (uint32_t i = 0; i < RANDOM_CONFIG_PROFILES_MAX; i++) {
        const struct check_service_entered *entered =
            map_find(&arrival->s->entered, arena_printf(&tmp, STR_FMT "/p%u", STR_ARG(uid), i));
        if (entered != NULL && entered->state == CONFIG_STATE_MAINTENANCE &&
            entered->at >= arrival->sent_at &&
            ((entered->checks & CONFIG_BIT(CONFIG_CHECK_LIMIT_0 + limit)) == 0 ||
             !config_oracle_counts_node(arrival->config, arrival->node->object, limit))) {
            return true;
        }
    }
    return false;
}

static void check_step(struct check_service *s, const struct check_sender *sender,
                       const struct oracle_node *before, const struct oracle_profile *old,
                       const struct oracle_profile *new, const struct jval *after)
{
    const struct random_config *b = &s->configs[sender->config];
    const struct random_config_step *step =
        random_config_step_find(b, old->profile, old->current, new->current);
    if (step == NULL) {
        check_violation(s->basic,
                        "P4: " STR_FMT " takes p%u of " STR_FMT " from %s to %s, which is no "
                        "transition",
                        STR_ARG(sender->identity), old->profile, STR_ARG(before->name),
                        random_config_state_name(old->current),
                        random_config_state_name(new->current));
        return;
    }
    struct patch_arrival arrival = { s, sender->sent_at, before, b };
    struct config_oracle oracle = {
        .server = s->server,
        .config = b,
        .wall = sender->wall,
        .ignore = arrived_meanwhile,
        .ctx = &arrival,
    };
    /* What the clock says was judged at the sending; of the fleet only limits are exact. */
    static const enum random_config_check exact_checks[] = {
        CONFIG_CHECK_NEED,  CONFIG_CHECK_DONE,    CONFIG_CHECK_APPROVED,
        CONFIG_CHECK_READY, CONFIG_CHECK_LIMIT_0, CONFIG_CHECK_LIMIT_1
    };
    for (size_t i = 0; i < ARRAY_LEN(exact_checks); i++) {
        if ((step->checks & CONFIG_BIT(exact_checks[i])) != 0 &&
            config_oracle_check(&oracle, before, old, exact_checks[i]) == CONFIG_ORACLE_NO) {
            bool limit =
                exact_checks[i] == CONFIG_CHECK_LIMIT_0 || exact_checks[i] == CONFIG_CHECK_LIMIT_1;
            check_violation(s->basic,
                            "%s: " STR_FMT " takes p%u of " STR_FMT " to %s although check %u says "
                            "no",
                            limit ? "I1" : "P4", STR_ARG(sender->identity), old->profile,
                            STR_ARG(before->name), random_config_state_name(new->current),
                            (unsigned)exact_checks[i]);
        }
    }
    check_notified(s, sender, before, old);
    check_effects(s, step, before, after);
    if (new->current == CONFIG_STATE_MAINTENANCE) {
        check_queue_order(s, &oracle, before, old, step, sender->now);
    }
}

static void remember_entry(struct check_service *s, const struct check_sender *sender,
                           const struct oracle_node *node, const struct oracle_profile *was,
                           const struct oracle_profile *entry)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct random_config_step *step = random_config_step_find(
        &s->configs[sender->config], entry->profile, was->current, entry->current);
    struct str uid = jval_str(jval_at(node->object, "metadata.uid"));
    struct str key = arena_printf(&tmp, STR_FMT "/p%u", STR_ARG(uid), entry->profile);
    struct check_service_entered *entered = find_or_add(s, &s->entered, key, sizeof(*entered));
    entered->state = entry->current;
    entered->at = sender->now;
    entered->checks = step == NULL ? 0 : step->checks;
    entered->transition = arena_str(&s->memory, entry->transition);
    entered->config_version = sender->config_version;
    entered->looked = times_looked(s, node->name);
}

static void check_state(struct check_service *s, struct str writer, const struct oracle_node *after)
{
    enum random_config_state worst = CONFIG_STATE_OPERATIONAL;
    for (uint32_t i = 0; i < after->entry_n; i++) {
        worst = MAX(worst, after->entries[i].current);
    }
    struct str state = jval_str(jval_get(jval_at(after->object, "metadata.labels"), STATE_LABEL));
    if (!after->readable) {
        check_violation(s->basic, "P1: " STR_FMT " wrote data on " STR_FMT " that is no JSON",
                        STR_ARG(writer), STR_ARG(after->name));
    } else if (after->in_maintenance > 1) {
        check_violation(s->basic, "I6: " STR_FMT " has %u profiles of " STR_FMT " in maintenance",
                        STR_ARG(writer), after->in_maintenance, STR_ARG(after->name));
    } else if (!str_eq(state, str_from(random_config_state_name(worst)))) {
        check_violation(s->basic, "P2: " STR_FMT " wrote state '" STR_FMT "' on " STR_FMT,
                        STR_ARG(writer), STR_ARG(state), STR_ARG(after->name));
    }
}

static bool has_abort(const struct jval *object)
{
    return jval_get(jval_at(object, "metadata.annotations"), KEY_ABORT) != NULL;
}

/* P15: whoever takes the wish to abort away has followed it. Whether this write did. */
static bool check_aborted(struct check_service *s, struct str writer, const struct jval *before,
                          const struct oracle_node *after)
{
    bool done = has_abort(before) && !has_abort(after->object);
    if (!has_abort(before) && has_abort(after->object)) {
        check_violation(s->basic, "P15: " STR_FMT " asks itself to abort " STR_FMT, STR_ARG(writer),
                        STR_ARG(after->name));
    }
    for (uint32_t i = 0; done && i < after->entry_n; i++) {
        if (after->entries[i].current != CONFIG_STATE_OPERATIONAL) {
            check_violation(s->basic, "P15: " STR_FMT " aborts " STR_FMT ", and p%u is %s",
                            STR_ARG(writer), STR_ARG(after->name), after->entries[i].profile,
                            random_config_state_name(after->entries[i].current));
        }
    }
    if (done && annotation_of(after->object, KEY_PROFILE_CORDON).n > 0) {
        check_violation(s->basic, "P15: " STR_FMT " aborts " STR_FMT " and leaves its cordon",
                        STR_ARG(writer), STR_ARG(after->name));
    }
    return done;
}

static void check_write(struct check_service *s, struct str writer, const struct jval *before,
                        const struct jval *after, usec_t now)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str name = jval_str(jval_at(before, "metadata.name"));
    if (before == NULL ||
        (after == NULL && jval_at(before, "metadata.deletionTimestamp") == NULL)) {
        check_violation(s->basic, "I3: " STR_FMT " made or removed a node", STR_ARG(writer));
        return;
    }
    if (after == NULL) {
        return; /* the last finalizer of a node that is being deleted */
    }
    if (!tree_eq(without_own_fields(&tmp, before), without_own_fields(&tmp, after))) {
        check_violation(s->basic,
                        "I3: " STR_FMT " changed more of " STR_FMT " than is its business",
                        STR_ARG(writer), STR_ARG(name));
        return;
    }
    struct str version = jval_str(jval_at(before, "metadata.resourceVersion"));
    const struct check_service_sent *sent =
        map_find(&s->sent, sent_key(&tmp, writer, name, version));
    if (sent == NULL || sent->sender.config == CHECK_SERVICE_CONFIGS) {
        check_violation(s->basic, "I7: " STR_FMT " wrote " STR_FMT " at a version it did not name",
                        STR_ARG(writer), STR_ARG(name));
        return;
    }
    struct check_sender sender = sent->sender;
    struct oracle_node old;
    struct oracle_node new;
    sender.sent_at = sender.now;
    sender.now = now;
    node_data_read(&s->configs[sender.config], before, &tmp, &old);
    node_data_read(&s->configs[sender.config], after, &tmp, &new);
    check_state(s, writer, &new);
    bool aborted = check_aborted(s, writer, before, &new);
    for (uint32_t i = 0; i < new.entry_n; i++) {
        struct oracle_profile was = entry_before(&old, new.entries[i].profile, sender.wall);
        if (was.current != new.entries[i].current) {
            if (!aborted) {
                check_step(s, &sender, &old, &was, &new.entries[i], after);
            }
            remember_entry(s, &sender, &new, &was, &new.entries[i]);
        }
    }
}

void check_service_on_node_commit(struct check_service *s, struct str writer,
                                  const struct jval *before, const struct jval *after, usec_t now)
{
    if (writer.n > 0) {
        check_write(s, writer, before, after, now);
    }
    check_cordon(s, writer, before, after);
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

struct str check_service_message(struct str text)
{
    struct str head;
    struct str rest;
    struct str message;
    if (!str_cut(text, STR("MSG|"), &head, &rest) || !str_cut(rest, STR("|END"), &message, &rest)) {
        return STR_NONE;
    }
    return message;
}

void check_service_on_notify_send(struct check_service *s, const struct check_sender *sender,
                                  struct str message)
{
    struct check_service_notified *notified =
        find_or_add(s, &s->notified, message, sizeof(*notified));
    if (notified->acked_by.n > 0 && str_eq(notified->acked_by, sender->identity) &&
        notified->term == sender->term && notified->config_version == sender->config_version &&
        sender->now - notified->at < REPEAT_INTERVAL_MIN) {
        check_violation(s->basic,
                        "I7: " STR_FMT " tells '" STR_FMT "' again, %lld ms after it was heard",
                        STR_ARG(sender->identity), STR_ARG(message),
                        (long long)((sender->now - notified->at) / 1000));
    }
    notified->tried_by = arena_str(&s->memory, sender->identity);
    notified->tried_term = sender->term;
    notified->tried_version = sender->config_version;
}

void check_service_on_notify_received(struct check_service *s, struct str message)
{
    struct check_service_notified *notified =
        find_or_add(s, &s->notified, message, sizeof(*notified));
    notified->received = true;
}

void check_service_on_notify_acked(struct check_service *s, const struct check_sender *sender,
                                   struct str message)
{
    struct check_service_notified *notified =
        find_or_add(s, &s->notified, message, sizeof(*notified));
    notified->acked_by = arena_str(&s->memory, sender->identity);
    notified->term = sender->term;
    notified->at = sender->now;
    notified->config_version = sender->config_version;
}

/* ── at rest ───────────────────────────────────────────────────────────────────────────────── */

struct end_check {
    struct check_service *s;
    struct config_oracle oracle;
};

static bool drains_now(const struct random_config *b, const struct oracle_profile *e,
                       const struct random_config_step *step)
{
    uint32_t triggers =
        b->profiles[e->profile].enter[e->current] | (step != NULL ? step->triggers : 0);
    return (triggers & CONFIG_BIT(CONFIG_TRIGGER_DRAIN)) != 0;
}

static void pdb_closed_visit(void *ctx, const struct jval *object)
{
    bool *pdb_closed = ctx;
    int64_t allowed = 0;
    (void)jval_i64(jval_at(object, "status.disruptionsAllowed"), &allowed); /* absent: 0 */
    *pdb_closed = *pdb_closed || allowed <= 0;
}

/* Pods are left on it, and there is a budget that lets none go: in a fleet with too few nodes. */
static bool is_blocked_by_pdb(struct check_service *s, const struct oracle_node *node)
{
    struct pod_search search = { .rules = &s->rules, .object = node->object, .node = node->name };
    bool pdb_closed = false;
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), pod_search_visit, &search);
    apiserver_each(s->server, STR("policy"), STR("poddisruptionbudgets"), STR(""), pdb_closed_visit,
                   &pdb_closed);
    return search.remaining.n > 0 && pdb_closed;
}

static void end_check_visit(void *ctx, const struct jval *object)
{
    struct end_check *rest = ctx;
    struct check_service *s = rest->s;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct oracle_node node;
    node_data_read(rest->oracle.config, object, &tmp, &node);
    check_state(s, STR("somebody"), &node);
    if (!is_cordoned(object) && annotation_of(object, KEY_PROFILE_CORDON).n > 0) {
        check_violation(s->basic, "I4: " STR_FMT " carries the mark of a cordon it does not have",
                        STR_ARG(node.name));
    }
    if (has_abort(object)) {
        check_violation(s->basic, "P15: " STR_FMT " was to be aborted, and nobody has done it",
                        STR_ARG(node.name));
    }
    struct str mark = annotation_of(object, KEY_PROFILE_CORDON);
    uint32_t owner = 0;
    if (is_cordoned(object) && mark.n > 0 &&
        (!random_config_profile_find(rest->oracle.config, mark, &owner) ||
         node_data_find(&node, owner) == NULL)) {
        check_violation(s->basic, "P15: " STR_FMT " is cordoned by '" STR_FMT "', which has left",
                        STR_ARG(node.name), STR_ARG(mark));
    }
    for (uint32_t i = 0; i < node.entry_n; i++) {
        const struct oracle_profile *e = &node.entries[i];
        for (unsigned to = 0; to < CONFIG_STATE_COUNT; to++) {
            const struct random_config_step *step = random_config_step_find(
                rest->oracle.config, e->profile, e->current, (enum random_config_state)to);
            bool is_blocked =
                (to == CONFIG_STATE_MAINTENANCE && node.in_maintenance > 0) ||
                rest->oracle.wall - e->since < rest->oracle.slack ||
                (drains_now(rest->oracle.config, e, step) && is_blocked_by_pdb(s, &node));
            if (step != NULL && !is_blocked &&
                config_oracle_step(&rest->oracle, &node, e, step, 0) == CONFIG_ORACLE_YES) {
                check_violation(
                    s->basic, "I9: p%u of " STR_FMT " stays %s although nothing keeps it from %s",
                    e->profile, STR_ARG(node.name), random_config_state_name(e->current),
                    random_config_state_name((enum random_config_state)to));
            }
        }
    }
}

/* I8: what the leader tried to tell while it led it has told by now. */
static void check_all_told(struct check_service *s, const struct check_sender *sender)
{
    MAP_EACH (&s->notified, item) {
        const struct check_service_notified *notified = map_item_value(item);
        struct str text = map_item_name(item);
        struct str rest;
        struct str node;
        bool named = str_cut(text, STR("|"), &rest, &text) && str_cut(text, STR("|"), &node, &text);
        if (named && !notified->received && str_eq(notified->tried_by, sender->identity) &&
            notified->tried_term == sender->term &&
            notified->tried_version == sender->config_version &&
            apiserver_find(s->server, STR(""), STR("nodes"), STR(""), node) != NULL) {
            check_violation(s->basic, "I8: nobody has been told '" STR_FMT "' in the end",
                            STR_ARG(map_item_name(item)));
        }
    }
}

void check_service_at_end(struct check_service *s, const struct check_sender *sender)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (s->told_in_the_end) {
        check_all_told(s, sender);
    }
    struct end_check rest = {
        .s = s,
        .oracle = {
            .server = s->server,
            .config = &s->configs[sender->config],
            .wall = sender->wall,
            .slack = MINUTES(2),
            .grants = grants_of(s, &tmp),
        },
    };
    apiserver_each(s->server, STR(""), STR("nodes"), STR(""), end_check_visit, &rest);
}
