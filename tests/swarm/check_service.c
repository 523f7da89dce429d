#include "tests/swarm/check_service.h"

#include "format/json_tree.h"
#include "ledger/lease_grants.h"
#include "profile/controller.h"
#include "profile/node_edit.h"

#define REPEAT_SOONEST HOURS(6) /* no notice of a blueprint is due again before */

struct service_sent {
    struct service_sender who;
};

struct service_told {
    bool heard;               /* somebody has taken it in */
    struct str by;            /* who knows that; empty: nobody */
    uint32_t term;            /* of it */
    usec_t at;                /* since when */
    uint64_t blueprint_count; /* the configuration by which it was told */
};

struct service_entered {
    enum blueprint_state state;
    usec_t at;     /* true time of the commit */
    uint32_t asks; /* of the step that led there */
    struct str transition;
    uint64_t blueprint_count;
};

struct service_hand {
    bool foreign;    /* cordoned by hand, and it carried no mark of ours */
    bool uncordoned; /* our cordon was lifted by hand */
};

void service_done(struct service *s)
{
    map_done(&s->sent);
    map_done(&s->told);
    map_done(&s->entered);
    map_done(&s->hands);
    rules_done(&s->rules);
    arena_done(&s->memory);
}

static void *find_or_make(struct service *s, struct map *map, struct str key, size_t size)
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
static const struct jval *grants_of(struct service *s, struct arena *tmp)
{
    const struct jval *lease = apiserver_find(s->server, STR("coordination.k8s.io"), STR("leases"),
                                              STR("default"), CONTROLLER_LEASE_NAME);
    const struct jval *grants = NULL;
    struct err ignored = { 0 };
    struct str note = annotation_of(lease, LEASE_GRANTS_ANNOTATION);
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
static struct judge_entry entry_before(const struct judge_node *node, uint32_t profile, usec_t wall)
{
    const struct judge_entry *entry = judge_find(node, profile);
    return entry != NULL ? *entry : (struct judge_entry){ .profile = profile, .since = wall };
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

/* I2: what a clock decides is decided when the request leaves. */
static void check_times(struct service *s, const struct service_sender *who,
                        const struct judge_node *before, const struct judge_node *after)
{
    const struct blueprint *b = &s->blueprints[who->blueprint];
    for (uint32_t i = 0; i < after->entry_n; i++) {
        const struct judge_entry *new = &after->entries[i];
        struct judge_entry old = entry_before(before, new->profile, who->wall);
        const struct blueprint_step *step =
            blueprint_step_find(b, new->profile, old.current, new->current);
        if (step == NULL) {
            continue; /* judged when it takes effect */
        }
        if ((step->asks & BIT(ASKS_WINDOW)) != 0 && !judge_window_open(b, who->wall)) {
            promise_break(
                s->promise,
                "I2: " STR_FMT " takes " STR_FMT " into %s at %lld min of the day, the "
                "window is %u to %u",
                STR_ARG(who->identity), STR_ARG(before->name), blueprint_state_name(new->current),
                (long long)(who->wall % DAYS(1) / MINUTES(1)), b->window_open, b->window_close);
        }
        uint32_t waits = BIT(ASKS_WAIT) | BIT(ASKS_WAIT_EXCLUDE);
        if ((step->asks & waits) != 0 && who->wall - old.since <= b->wait) {
            promise_break(
                s->promise, "I2: " STR_FMT " takes " STR_FMT " into %s after %lld ms, not %lld",
                STR_ARG(who->identity), STR_ARG(before->name), blueprint_state_name(new->current),
                (long long)((who->wall - old.since) / 1000), (long long)(b->wait / 1000));
        }
    }
}

static void send_patch(struct service *s, const struct service_sender *who,
                       const struct api_request *request)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *patch = NULL;
    struct str name = str_sub(request->path, STR("/api/v1/nodes/").n, request->path.n);
    if (json_parse(request->body, 0, &tmp, &patch, &ignored) < 0) {
        promise_break(s->promise, "§2.1: a patch that is no JSON");
        return;
    }
    struct str version = jval_str(jval_at(patch, "metadata.resourceVersion"));
    struct service_sent *sent =
        find_or_make(s, &s->sent, sent_key(&tmp, who->identity, name, version), sizeof(*sent));
    sent->who = *who;
    const struct jval *object = apiserver_find(s->server, STR(""), STR("nodes"), STR(""), name);
    if (object == NULL || who->blueprint == SERVICE_BLUEPRINTS ||
        !str_eq(jval_str(jval_at(object, "metadata.resourceVersion")), version)) {
        return; /* it cannot take effect */
    }
    struct judge_node before;
    struct judge_node after;
    judge_read(&s->blueprints[who->blueprint], object, &tmp, &before);
    judge_read(&s->blueprints[who->blueprint], patch, &tmp, &after);
    check_times(s, who, &before, &after);
}

/* The node may be drained: it is in maintenance by a profile that drains then, or on its way there
 * by a grant that is recorded. */
static bool may_drain(struct service *s, const struct service_sender *who,
                      const struct jval *object)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct blueprint *b = &s->blueprints[who->blueprint];
    struct judge_node node;
    judge_read(b, object, &tmp, &node);
    bool recorded = !s->elect || !s->limited || jval_get(grants_of(s, &tmp), node.name) != NULL;
    for (uint32_t i = 0; i < node.entry_n; i++) {
        const struct judge_entry *e = &node.entries[i];
        const struct blueprint_step *step =
            blueprint_step_find(b, e->profile, e->current, STATE_MAINTENANCE);
        uint32_t enter = b->profiles[e->profile].enter[e->current];
        if ((enter & BIT(DOES_DRAIN)) != 0 ||
            (step != NULL && (step->does & BIT(DOES_DRAIN)) != 0 && recorded)) {
            return true;
        }
    }
    return false;
}

/* I7: pods are sent away from nodes whose cordon and grant are on the server, and from no other. */
static void send_eviction(struct service *s, const struct service_sender *who, struct str space,
                          struct str pod)
{
    const struct jval *object = apiserver_find(s->server, STR(""), STR("pods"), space, pod);
    struct str name = jval_str(jval_at(object, "spec.nodeName"));
    const struct jval *node =
        name.n == 0 ? NULL : apiserver_find(s->server, STR(""), STR("nodes"), STR(""), name);
    const struct service_hand *hand = map_find(&s->hands, name);
    /* A drain that another configuration wanted ends with the next turn. */
    if (node == NULL || who->now - who->blueprint_since < SECONDS(1)) {
        return;
    }
    if (!is_cordoned(node) && (hand == NULL || !hand->uncordoned)) {
        promise_break(s->promise,
                      "I7: " STR_FMT " evicts " STR_FMT " from " STR_FMT ", which is not cordoned",
                      STR_ARG(who->identity), STR_ARG(pod), STR_ARG(name));
    } else if (!may_drain(s, who, node)) {
        promise_break(s->promise,
                      "I7: " STR_FMT " evicts " STR_FMT " from " STR_FMT
                      ", which nothing allows to be drained",
                      STR_ARG(who->identity), STR_ARG(pod), STR_ARG(name));
    }
}

void service_on_send(struct service *s, const struct service_sender *who,
                     const struct api_request *request)
{
    struct str head;
    struct str rest;
    struct str space;
    if (request->verb == API_PATCH && str_starts(request->path, STR("/api/v1/nodes/"))) {
        send_patch(s, who, request);
        return;
    }
    if (!str_cut(request->path, STR("/pods/"), &head, &rest) ||
        who->blueprint == SERVICE_BLUEPRINTS) {
        return;
    }
    space = str_sub(head, STR("/api/v1/namespaces/").n, head.n);
    struct str pod = str_sub(rest, 0, str_find_char(rest, '/'));
    if (request->verb == API_DELETE || request->verb == API_POST) {
        rules_on_send(&s->rules, who->identity, space, pod, who->now);
    }
    if (request->verb == API_DELETE && !s->blueprints[who->blueprint].force) {
        promise_break(s->promise, "I5: " STR_FMT " deletes " STR_FMT " past its budget",
                      STR_ARG(who->identity), STR_ARG(rest));
    } else if (request->verb == API_POST && str_ends(rest, STR("/eviction"))) {
        send_eviction(s, who, space, pod);
    }
}

/* ── commits ───────────────────────────────────────────────────────────────────────────────── */

/* The object without what a controller may change by any blueprint. */
static struct tree *rest_of(struct arena *tmp, const struct jval *object)
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
        (void)tree_del(labels, STATE_LABEL);       /* absent is fine */
        (void)tree_del(labels, BLUEPRINT_STARTED); /* absent is fine */
    }
    if (annotations != NULL) {
        (void)tree_del(annotations, DATA_ANNOTATION);     /* absent is fine */
        (void)tree_del(annotations, SUBJECT_CORDON_MARK); /* absent is fine */
        (void)tree_del(annotations, SUBJECT_FENCE);       /* absent is fine */
        (void)tree_del(annotations, BLUEPRINT_PHASE);     /* absent is fine */
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
static void check_cordon(struct service *s, struct str writer, const struct jval *before,
                         const struct jval *after)
{
    struct str name = jval_str(jval_at(after != NULL ? after : before, "metadata.name"));
    struct service_hand *hand = find_or_make(s, &s->hands, name, sizeof(*hand));
    bool was = is_cordoned(before);
    bool is = is_cordoned(after);
    struct str mark_before = annotation_of(before, SUBJECT_CORDON_MARK);
    if (before == NULL || after == NULL) {
        *hand = (struct service_hand){ .foreign = is };
        return;
    }
    if (was == is) {
        return;
    }
    if (writer.n == 0) {
        hand->foreign = is && annotation_of(after, SUBJECT_CORDON_MARK).n == 0;
        hand->uncordoned = !is;
        return;
    }
    if (!is && (mark_before.n == 0 || hand->foreign)) {
        promise_break(s->promise, "I4: " STR_FMT " uncordons " STR_FMT " that another cordoned",
                      STR_ARG(writer), STR_ARG(name));
    }
    if (is && annotation_of(after, SUBJECT_CORDON_MARK).n == 0) {
        promise_break(s->promise, "I4: " STR_FMT " cordons " STR_FMT " without its mark",
                      STR_ARG(writer), STR_ARG(name));
    }
    *hand = (struct service_hand){ 0 };
}

/* I8: who leaves a state has told all that was to be told on entry. */
static void check_told(struct service *s, const struct service_sender *who,
                       const struct judge_node *before, const struct judge_entry *old)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct blueprint *b = &s->blueprints[who->blueprint];
    struct str uid = jval_str(jval_at(before->object, "metadata.uid"));
    struct str key = arena_printf(&tmp, STR_FMT "/p%u", STR_ARG(uid), old->profile);
    const struct service_entered *entered = map_find(&s->entered, key);
    if (entered == NULL || entered->state != old->current ||
        entered->blueprint_count != who->blueprint_count ||
        !str_eq(entered->transition, old->transition)) {
        return; /* it began otherwise, or under another configuration */
    }
    for (uint32_t i = 0; i < BLUEPRINT_NOTICES; i++) {
        if ((b->profiles[old->profile].notify[old->current] & BIT(i)) == 0 ||
            b->notices[i].schedule != NOTICE_AT_ENTRY) {
            continue;
        }
        struct str message = arena_printf(
            &tmp, "n%u|" STR_FMT "|p%u|%s|" STR_FMT, i, STR_ARG(before->name), old->profile,
            blueprint_state_name(old->current), STR_ARG(old->transition));
        const struct service_told *told = map_find(&s->told, message);
        if (told == NULL || !told->heard) {
            promise_break(s->promise, "I8: nobody was told '" STR_FMT "' before the state ended",
                          STR_ARG(message));
        }
    }
}

struct line {
    struct service *s;
    const struct judge *j;
    const struct judge_node *node;
    const struct judge_entry *entry;
    const struct blueprint_step *step;
};

/* Somebody who waits longer for the same, and could go. */
static void line_visit(void *ctx, const struct jval *object)
{
    struct line *line = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct judge_node other;
    judge_read(line->j->blueprint, object, &tmp, &other);
    const struct judge_entry *e = judge_find(&other, line->entry->profile);
    struct str zone = jval_str(jval_get(jval_at(object, "metadata.labels"), BLUEPRINT_ZONE));
    struct str mine =
        jval_str(jval_get(jval_at(line->node->object, "metadata.labels"), BLUEPRINT_ZONE));
    if (e == NULL || e->current != line->entry->current || e->previous != e->current ||
        e->since >= line->entry->since || other.in_maintenance > 0 || other.entry_n > 1 ||
        !str_eq(zone, mine) || jval_get(line->j->grants, other.name) != NULL) {
        return;
    }
    uint32_t limits = BIT(ASKS_LIMIT_0) | BIT(ASKS_LIMIT_1);
    if (judge_step(line->j, &other, e, line->step, limits) == JUDGED_YES) {
        promise_break(line->s->promise,
                      "I9: " STR_FMT " goes before " STR_FMT ", which has waited longer",
                      STR_ARG(line->node->name), STR_ARG(other.name));
    }
}

static void check_line(struct service *s, const struct judge *j, const struct judge_node *node,
                       const struct judge_entry *entry, const struct blueprint_step *step,
                       usec_t now)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct judge with = *j;
    uint32_t open = BIT(ASKS_WAIT) | BIT(ASKS_WAIT_EXCLUDE) | BIT(ASKS_STAGGER) |
                    BIT(ASKS_PROMETHEUS) | BIT(ASKS_NEWER) | BIT(ASKS_PODS);
    uint32_t limits = BIT(ASKS_LIMIT_0) | BIT(ASKS_LIMIT_1);
    if (s->calm_since == USEC_NEVER || now < s->calm_since + SERVICE_SETTLED ||
        (step->asks & open) != 0 || (step->asks & limits) == 0) {
        return;
    }
    with.grants = grants_of(s, &tmp);
    struct line line = { s, &with, node, entry, step };
    apiserver_each(s->server, STR(""), STR("nodes"), STR(""), line_visit, &line);
}

struct pods {
    const struct rules *rules;
    const struct jval *object; /* the node's */
    struct str node;
    struct str left;
};

static void pods_visit(void *ctx, const struct jval *object)
{
    struct pods *pods = ctx;
    struct str phase = jval_str(jval_at(object, "status.phase"));
    bool finished = str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
    bool daemon = false;
    JVAL_EACH (jval_at(object, "metadata.ownerReferences"), owner) {
        daemon = daemon || str_eq(jval_str(jval_get(owner, STR("kind"))), STR("DaemonSet"));
    }
    if (str_eq(jval_str(jval_at(object, "spec.nodeName")), pods->node) && !finished && !daemon &&
        !rules_skips(pods->rules, pods->object, object)) {
        pods->left = jval_str(jval_at(object, "metadata.name"));
    }
}

/* What the step and entering do to the node has been done with it, or before. */
static void check_effects(struct service *s, const struct blueprint_step *step,
                          const struct judge_node *node, const struct jval *after)
{
    const struct service_hand *hand = map_find(&s->hands, node->name);
    uint32_t cordons = BIT(DOES_CORDON) | BIT(DOES_DRAIN);
    if ((step->does & cordons) != 0 && !is_cordoned(after)) {
        promise_break(s->promise, "I7: " STR_FMT " is in maintenance and not cordoned",
                      STR_ARG(node->name));
    }
    if ((step->does & BIT(DOES_DRAIN)) == 0 || (hand != NULL && hand->uncordoned)) {
        return;
    }
    struct pods pods = { .rules = &s->rules, .object = after, .node = node->name };
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), pods_visit, &pods);
    if (pods.left.n > 0) {
        promise_break(s->promise, "I7: " STR_FMT " is in maintenance while " STR_FMT " runs on it",
                      STR_ARG(node->name), STR_ARG(pods.left));
    }
}

struct arrival {
    struct service *s;
    usec_t sent_at;
    const struct judge_node *node; /* who arrives */
    const struct blueprint *blueprint;
};

/* Two patches on the wire may arrive in either order. A node that arrived after the patch had set
 * out might as well have come behind it, if the limit does not bind it, or does not count the one
 * that arrives now: then nobody had a reason to wait for it. */
static bool overtook(void *ctx, const struct jval *object, uint32_t limit)
{
    const struct arrival *arrival = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str uid = jval_str(jval_at(object, "metadata.uid"));
    for (uint32_t i = 0; i < BLUEPRINT_PROFILES_MAX; i++) {
        const struct service_entered *entered =
            map_find(&arrival->s->entered, arena_printf(&tmp, STR_FMT "/p%u", STR_ARG(uid), i));
        if (entered != NULL && entered->state == STATE_MAINTENANCE &&
            entered->at >= arrival->sent_at &&
            ((entered->asks & BIT(ASKS_LIMIT_0 + limit)) == 0 ||
             !judge_is_counted(arrival->blueprint, arrival->node->object, limit))) {
            return true;
        }
    }
    return false;
}

static void check_step(struct service *s, const struct service_sender *who,
                       const struct judge_node *before, const struct judge_entry *old,
                       const struct judge_entry *new, const struct jval *after)
{
    const struct blueprint *b = &s->blueprints[who->blueprint];
    const struct blueprint_step *step =
        blueprint_step_find(b, old->profile, old->current, new->current);
    if (step == NULL) {
        promise_break(s->promise,
                      "§2.5: " STR_FMT " takes p%u of " STR_FMT " from %s to %s, which is no "
                      "transition",
                      STR_ARG(who->identity), old->profile, STR_ARG(before->name),
                      blueprint_state_name(old->current), blueprint_state_name(new->current));
        return;
    }
    struct arrival arrival = { s, who->sent_at, before, b };
    struct judge judge = {
        .server = s->server,
        .blueprint = b,
        .wall = who->wall,
        .ignore = overtook,
        .ctx = &arrival,
    };
    /* What the clock says was judged at the sending; of the fleet only limits are exact. */
    static const enum blueprint_check exact[] = { ASKS_NEED,  ASKS_DONE,    ASKS_APPROVED,
                                                  ASKS_READY, ASKS_LIMIT_0, ASKS_LIMIT_1 };
    for (size_t i = 0; i < ARRAY_LEN(exact); i++) {
        if ((step->asks & BIT(exact[i])) != 0 &&
            judge_ask(&judge, before, old, exact[i]) == JUDGED_NO) {
            bool limit = exact[i] == ASKS_LIMIT_0 || exact[i] == ASKS_LIMIT_1;
            promise_break(s->promise,
                          "%s: " STR_FMT " takes p%u of " STR_FMT " to %s although check %u says "
                          "no",
                          limit ? "I1" : "§2.5", STR_ARG(who->identity), old->profile,
                          STR_ARG(before->name), blueprint_state_name(new->current),
                          (unsigned)exact[i]);
        }
    }
    check_told(s, who, before, old);
    check_effects(s, step, before, after);
    if (new->current == STATE_MAINTENANCE) {
        check_line(s, &judge, before, old, step, who->now);
    }
}

static void note_entry(struct service *s, const struct service_sender *who,
                       const struct judge_node *node, const struct judge_entry *was,
                       const struct judge_entry *entry)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct blueprint_step *step = blueprint_step_find(
        &s->blueprints[who->blueprint], entry->profile, was->current, entry->current);
    struct str uid = jval_str(jval_at(node->object, "metadata.uid"));
    struct str key = arena_printf(&tmp, STR_FMT "/p%u", STR_ARG(uid), entry->profile);
    struct service_entered *entered = find_or_make(s, &s->entered, key, sizeof(*entered));
    entered->state = entry->current;
    entered->at = who->now;
    entered->asks = step == NULL ? 0 : step->asks;
    entered->transition = arena_str(&s->memory, entry->transition);
    entered->blueprint_count = who->blueprint_count;
}

static void check_state(struct service *s, struct str writer, const struct judge_node *after)
{
    enum blueprint_state worst = STATE_OPERATIONAL;
    for (uint32_t i = 0; i < after->entry_n; i++) {
        worst = MAX(worst, after->entries[i].current);
    }
    struct str state = jval_str(jval_get(jval_at(after->object, "metadata.labels"), STATE_LABEL));
    if (!after->readable) {
        promise_break(s->promise, "§1.3: " STR_FMT " wrote data on " STR_FMT " that is no JSON",
                      STR_ARG(writer), STR_ARG(after->name));
    } else if (after->in_maintenance > 1) {
        promise_break(s->promise, "I6: " STR_FMT " has %u profiles of " STR_FMT " in maintenance",
                      STR_ARG(writer), after->in_maintenance, STR_ARG(after->name));
    } else if (!str_eq(state, str_from(blueprint_state_name(worst)))) {
        promise_break(s->promise, "§1.4: " STR_FMT " wrote state '" STR_FMT "' on " STR_FMT,
                      STR_ARG(writer), STR_ARG(state), STR_ARG(after->name));
    }
}

static void check_write(struct service *s, struct str writer, const struct jval *before,
                        const struct jval *after, usec_t now)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str name = jval_str(jval_at(before, "metadata.name"));
    if (before == NULL ||
        (after == NULL && jval_at(before, "metadata.deletionTimestamp") == NULL)) {
        promise_break(s->promise, "I3: " STR_FMT " made or removed a node", STR_ARG(writer));
        return;
    }
    if (after == NULL) {
        return; /* the last finalizer of a node that is being deleted */
    }
    if (!tree_eq(rest_of(&tmp, before), rest_of(&tmp, after))) {
        promise_break(s->promise,
                      "I3: " STR_FMT " changed more of " STR_FMT " than is its business",
                      STR_ARG(writer), STR_ARG(name));
        return;
    }
    struct str version = jval_str(jval_at(before, "metadata.resourceVersion"));
    const struct service_sent *sent = map_find(&s->sent, sent_key(&tmp, writer, name, version));
    if (sent == NULL || sent->who.blueprint == SERVICE_BLUEPRINTS) {
        promise_break(s->promise, "I7: " STR_FMT " wrote " STR_FMT " at a version it did not name",
                      STR_ARG(writer), STR_ARG(name));
        return;
    }
    struct service_sender who = sent->who;
    struct judge_node old;
    struct judge_node new;
    who.sent_at = who.now;
    who.now = now;
    judge_read(&s->blueprints[who.blueprint], before, &tmp, &old);
    judge_read(&s->blueprints[who.blueprint], after, &tmp, &new);
    check_state(s, writer, &new);
    for (uint32_t i = 0; i < new.entry_n; i++) {
        struct judge_entry was = entry_before(&old, new.entries[i].profile, who.wall);
        if (was.current != new.entries[i].current) {
            check_step(s, &who, &old, &was, &new.entries[i], after);
            note_entry(s, &who, &new, &was, &new.entries[i]);
        }
    }
}

void service_on_node_commit(struct service *s, struct str writer, const struct jval *before,
                            const struct jval *after, usec_t now)
{
    if (writer.n > 0) {
        check_write(s, writer, before, after, now);
    }
    check_cordon(s, writer, before, after);
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

struct str service_message(struct str text)
{
    struct str head;
    struct str rest;
    struct str message;
    if (!str_cut(text, STR("MSG|"), &head, &rest) || !str_cut(rest, STR("|END"), &message, &rest)) {
        return STR_NONE;
    }
    return message;
}

void service_on_tell(struct service *s, const struct service_sender *who, struct str message)
{
    struct service_told *told = find_or_make(s, &s->told, message, sizeof(*told));
    if (told->by.n > 0 && str_eq(told->by, who->identity) && told->term == who->term &&
        told->blueprint_count == who->blueprint_count && who->now - told->at < REPEAT_SOONEST) {
        promise_break(
            s->promise, "I7: " STR_FMT " tells '" STR_FMT "' again, %lld ms after it was heard",
            STR_ARG(who->identity), STR_ARG(message), (long long)((who->now - told->at) / 1000));
    }
}

void service_on_heard(struct service *s, struct str message)
{
    struct service_told *told = find_or_make(s, &s->told, message, sizeof(*told));
    told->heard = true;
}

void service_on_told(struct service *s, const struct service_sender *who, struct str message)
{
    struct service_told *told = find_or_make(s, &s->told, message, sizeof(*told));
    told->by = arena_str(&s->memory, who->identity);
    told->term = who->term;
    told->at = who->now;
    told->blueprint_count = who->blueprint_count;
}

/* ── at rest ───────────────────────────────────────────────────────────────────────────────── */

struct rest {
    struct service *s;
    struct judge judge;
};

static bool drains_now(const struct blueprint *b, const struct judge_entry *e,
                       const struct blueprint_step *step)
{
    uint32_t does = b->profiles[e->profile].enter[e->current] | (step != NULL ? step->does : 0);
    return (does & BIT(DOES_DRAIN)) != 0;
}

static void closed_visit(void *ctx, const struct jval *object)
{
    bool *closed = ctx;
    int64_t allowed = 0;
    (void)jval_i64(jval_at(object, "status.disruptionsAllowed"), &allowed); /* absent: 0 */
    *closed = *closed || allowed <= 0;
}

/* Pods are left on it, and there is a budget that lets none go: in a fleet with too few nodes. */
static bool is_kept_by_budget(struct service *s, const struct judge_node *node)
{
    struct pods pods = { .rules = &s->rules, .object = node->object, .node = node->name };
    bool closed = false;
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), pods_visit, &pods);
    apiserver_each(s->server, STR("policy"), STR("poddisruptionbudgets"), STR(""), closed_visit,
                   &closed);
    return pods.left.n > 0 && closed;
}

static void rest_visit(void *ctx, const struct jval *object)
{
    struct rest *rest = ctx;
    struct service *s = rest->s;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct judge_node node;
    judge_read(rest->judge.blueprint, object, &tmp, &node);
    check_state(s, STR("somebody"), &node);
    if (!is_cordoned(object) && annotation_of(object, SUBJECT_CORDON_MARK).n > 0) {
        promise_break(s->promise, "I4: " STR_FMT " carries the mark of a cordon it does not have",
                      STR_ARG(node.name));
    }
    for (uint32_t i = 0; i < node.entry_n; i++) {
        const struct judge_entry *e = &node.entries[i];
        for (unsigned to = 0; to < STATE_COUNT; to++) {
            const struct blueprint_step *step = blueprint_step_find(
                rest->judge.blueprint, e->profile, e->current, (enum blueprint_state)to);
            bool held = (to == STATE_MAINTENANCE && node.in_maintenance > 0) ||
                        rest->judge.wall - e->since < rest->judge.slack ||
                        (drains_now(rest->judge.blueprint, e, step) && is_kept_by_budget(s, &node));
            if (step != NULL && !held &&
                judge_step(&rest->judge, &node, e, step, 0) == JUDGED_YES) {
                promise_break(s->promise,
                              "I9: p%u of " STR_FMT " stays %s although nothing keeps it from %s",
                              e->profile, STR_ARG(node.name), blueprint_state_name(e->current),
                              blueprint_state_name((enum blueprint_state)to));
            }
        }
    }
}

void service_at_rest(struct service *s, const struct service_sender *who)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct rest rest = {
        .s = s,
        .judge = {
            .server = s->server,
            .blueprint = &s->blueprints[who->blueprint],
            .wall = who->wall,
            .slack = MINUTES(2),
            .grants = grants_of(s, &tmp),
        },
    };
    apiserver_each(s->server, STR(""), STR("nodes"), STR(""), rest_visit, &rest);
}
