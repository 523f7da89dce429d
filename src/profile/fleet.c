/* Counts over all nodes, updated with every change of a node. */
#include "profile/fleet.h"

#include "base/alloc.h"
#include "calendar/elapsed.h"
#include "kinds/keys.h"
#include "kube/node.h"
#include "profile/check/check_plugin.h"
#include "profile/newest_version.h"

struct fleet_instance {
    const struct check_plugin *check;
    const void *prepared;
    uint32_t label_matches;        /* anyLabel */
    struct newest_version *newest; /* clusterSemver: one, or one a profile */
    uint32_t newest_n;
    uint32_t limit;    /* maxMaintenance: its number among the limits … */
    uint32_t value_at; /* … and where the values of its group begin */
};

/* What one limit reads of one node in maintenance. */
struct fleet_limit_entry {
    bool counts;            /* the node has the profile that the limit is for */
    bool unreadable;        /* its annotation; only where `since` is asked for */
    struct timestamp since; /* its transition */
};

/* A node that is in maintenance, or will be by a grant. */
struct maintained_node {
    struct str name;                   /* behind the struct */
    const struct store_item *item;     /* NULL: granted, and unknown */
    bool labelled;                     /* its state label says in-maintenance */
    bool marked;                       /* it does not, but the node has a profile's cordon */
    struct str profile;                /* of its grant; own memory; STR_NONE: not granted */
    struct fleet_limit_entry *entries; /* one a limit; own memory, as are the values behind it */
    const struct intern_text **values; /* of the keys of all groups; borrowed from the node */
    char name_bytes[];
};

struct fleet {
    const struct store *store;
    const struct config *config; /* NULL before the first */
    struct arena memory;         /* of what the configuration makes */
    struct arena tmp;
    struct fleet_instance *instances; /* one a check instance */
    uint32_t instance_n;
    struct profile_counts *profiles; /* one a configured profile */
    uint32_t *operational; /* operational nodes at the last fleet_changed, one a profile */
    uint32_t profile_n;
    uint32_t limit_n;
    uint32_t value_n;
    bool keeps_waiting;    /* an affinity check reads which nodes wait */
    struct map maintained; /* name → struct maintained_node */
    uint32_t count;
    uint64_t changed;
    uint64_t count_bits; /* of the instances that read the number of nodes */
    bool data_changed;
    const struct facts *facts; /* NULL: whatever they read counts as changed */
    bool usage_changed;
    uint64_t revision; /* counts the grants and ungrants … */
    uint64_t checked;  /* … and, plus the store's, at the last fleet_check */
};

static uint64_t bit_of(uint32_t index)
{
    return UINT64_C(1) << index % 64;
}

/* ── versions ──────────────────────────────────────────────────────────────────────────────── */

static bool has_profile(const struct node *node, struct str profile)
{
    struct str label = node_label(node, KEY_PROFILE);
    return label.p != NULL && profile_label_has(label, profile);
}

/* Whether the node's version counts for that profile, and which it is. */
static bool version_counts(const struct fleet *f, const struct fleet_instance *w, uint32_t profile,
                           const struct node *node, struct str *ret)
{
    const struct check_semver_config *prepared = w->prepared;
    *ret = node_label(node, prepared->key);
    return ret->p != NULL &&
           (!prepared->scoped || has_profile(node, f->config->profiles[profile].name));
}

/* No node has the newest version any more: the next newest is looked for. */
static void version_recount(struct fleet *f, struct fleet_instance *w, uint32_t profile,
                            const struct store_item *changed, const struct node *after)
{
    struct newest_version *newest = &w->newest[profile];
    struct str text;
    newest_version_reset(newest);
    /* The node that changed may not be in the store yet, or still be there. */
    MAP_EACH (&f->store->items, entry) {
        const struct store_item *item = map_item_value(entry);
        if (item != changed && version_counts(f, w, profile, item->object, &text)) {
            (void)newest_version_add(newest, text); /* the caller knows that it changed */
        }
    }
    if (after != NULL && version_counts(f, w, profile, after, &text)) {
        (void)newest_version_add(newest, text);
    }
}

static bool version_change(struct fleet *f, struct fleet_instance *w, const struct store_item *item,
                           const struct node *before, const struct node *after)
{
    bool changed = false;
    struct str text;
    for (uint32_t i = 0; i < w->newest_n; i++) {
        struct newest_version *newest = &w->newest[i];
        if (before != NULL && version_counts(f, w, i, before, &text)) {
            newest_version_remove(newest, text);
        }
        if (after != NULL && version_counts(f, w, i, after, &text)) {
            changed = newest_version_add(newest, text) || changed;
        }
        if (newest_version_is_lost(newest)) {
            version_recount(f, w, i, item, after);
            changed = true;
        }
    }
    return changed;
}

/* ── labels ────────────────────────────────────────────────────────────────────────────────── */

static bool same_labels(const struct node *a, const struct node *b)
{
    return a->label_count == b->label_count &&
           (a->label_count == 0 ||
            memcmp(a->labels, b->labels, a->label_count * sizeof(a->labels[0])) == 0);
}

static bool label_matches(const struct check_key_config *key, const struct node *node)
{
    struct str value = node != NULL ? node_label(node, key->key) : STR_NONE;
    return value.p != NULL && (key->value.n == 0 || str_eq(value, key->value));
}

static void labels_change(struct fleet *f, const struct store_item *item, const struct node *before,
                          const struct node *after)
{
    for (uint32_t i = 0; i < f->instance_n; i++) {
        struct fleet_instance *w = &f->instances[i];
        if (w->check == &check_any_label) {
            uint32_t had = w->label_matches;
            w->label_matches += label_matches(w->prepared, after) ? 1 : 0;
            w->label_matches -= label_matches(w->prepared, before) ? 1 : 0;
            f->changed |= (had == 0) != (w->label_matches == 0) ? bit_of(i) : 0;
        } else if (w->check == &check_cluster_semver) {
            f->changed |= version_change(f, w, item, before, after) ? bit_of(i) : 0;
        }
    }
}

/* ── states of profiles ────────────────────────────────────────────────────────────────────── */

static void states_count(struct fleet *f, const struct store_item *item, struct str text, bool add)
{
    struct err err = { 0 };
    struct node_data data = { 0 };
    if (f->profile_n == 0) {
        return; /* nothing is configured yet */
    }
    arena_reset(&f->tmp);
    if (node_data_parse(text, &f->tmp, &data, &err) < 0) {
        return; /* a node whose data cannot be read is in no state */
    }
    for (uint32_t i = 0; i < f->profile_n; i++) {
        const struct node_data_profile *entry =
            node_data_find_profile(&data, f->config->profiles[i].name);
        enum profile_state state;
        if (entry != NULL && !entry->null && profile_state_parse(entry->current, &state)) {
            if (add) {
                profile_counts_add(&f->profiles[i], state, item,
                                   f->keeps_waiting ? &f->memory : NULL);
            } else {
                profile_counts_remove(&f->profiles[i], state, item);
            }
        }
    }
}

static void states_change(struct fleet *f, const struct store_item *item, struct str before,
                          struct str after)
{
    if (before.n > 0) {
        states_count(f, item, before, /* add= */ false);
    }
    if (after.n > 0) {
        states_count(f, item, after, /* add= */ true);
    }
    f->data_changed = true;
}

/* ── nodes in maintenance ──────────────────────────────────────────────────────────────────── */

/* The transition that skipAfter counts from: the profile's, or the newest. The
 * original crashed on a node that lacks the profile's entry; here the newest of the others counts.
 */
static void entry_read_since(const struct check_max_config *limit, const struct node_data *data,
                             struct fleet_limit_entry *entry)
{
    const struct node_data_profile *own =
        limit->profile.n > 0 ? node_data_find_profile(data, limit->profile) : NULL;
    if (own != NULL && !own->null) {
        entry->since = own->transition;
        return;
    }
    entry->since = timestamp_zero;
    for (uint32_t i = 0; i < data->profile_count; i++) {
        const struct node_data_profile *p = &data->profiles[i];
        if (!p->null && elapsed_order(p->transition, entry->since) > 0) {
            entry->since = p->transition;
        }
    }
}

static void maintained_read_node(struct fleet *f, struct maintained_node *m,
                                 const struct node *node)
{
    struct err err = { 0 };
    struct node_data data = { 0 };
    arena_reset(&f->tmp);
    bool unreadable = node_data_parse(node_annotation(node, KEY_DATA), &f->tmp, &data, &err) < 0;
    for (uint32_t i = 0; i < f->instance_n; i++) {
        const struct fleet_instance *w = &f->instances[i];
        if (w->check != &check_max_maintenance) {
            continue;
        }
        const struct check_max_config *limit = w->prepared;
        struct fleet_limit_entry *entry = &m->entries[w->limit];
        *entry = (struct fleet_limit_entry){
            .counts = limit->profile.n == 0 || has_profile(node, limit->profile),
            .unreadable = unreadable,
        };
        if (!unreadable) {
            entry_read_since(limit, &data, entry);
        }
        for (uint32_t k = 0; k < limit->key_n; k++) {
            const struct intern_text **value = &m->values[w->value_at + k];
            *value = NULL;
            for (uint32_t n = 0; n < node->label_count; n++) {
                if (str_eq(intern_str(node->labels[n].key), limit->keys[k])) {
                    *value = node->labels[n].value;
                }
            }
        }
    }
}

/* Reads again what the limits use of the node. */
static void maintained_read(struct fleet *f, struct maintained_node *m)
{
    if (m->entries == NULL) {
        m->entries =
            alloc_bytes(f->limit_n * sizeof(*m->entries) + f->value_n * sizeof(*m->values) + 1);
        m->values = (const struct intern_text **)(void *)(m->entries + f->limit_n);
    }
    if (m->item != NULL) {
        maintained_read_node(f, m, m->item->object);
    } else {
        for (uint32_t i = 0; i < f->instance_n; i++) {
            const struct fleet_instance *w = &f->instances[i];
            if (w->check == &check_max_maintenance) {
                const struct check_max_config *limit = w->prepared;
                m->entries[w->limit].counts =
                    limit->profile.n == 0 || str_eq(limit->profile, m->profile);
            }
        }
    }
    f->usage_changed = true;
}

static bool is_granted(const struct maintained_node *m)
{
    return m->profile.p != NULL;
}

static struct maintained_node *maintained_make(struct fleet *f, struct str name)
{
    struct maintained_node *m = map_find(&f->maintained, name);
    if (m == NULL) {
        ASSERT(name.p != NULL);
        m = alloc_bytes(sizeof(*m) + name.n + 1);
        memcpy(m->name_bytes, name.p, name.n);
        m->name = (struct str){ .p = m->name_bytes, .n = name.n };
        (void)map_put(&f->maintained, name, m); /* it was not there */
    }
    return m;
}

static void maintained_forget_profile(struct maintained_node *m)
{
    /* fleet_grant made the copy. */
    alloc_free((void *)(uintptr_t)m->profile.p);
    m->profile = STR_NONE;
}

static void maintained_drop(struct fleet *f, struct maintained_node *m)
{
    (void)map_del(&f->maintained, m->name); /* it is `m` */
    f->usage_changed = true;
    maintained_forget_profile(m);
    alloc_free(m->entries);
    alloc_free(m);
}

static bool is_in_maintenance(const struct node *node)
{
    enum profile_state state;
    return node != NULL && profile_state_parse(node_label(node, KEY_STATE), &state) &&
           state == PROFILE_STATE_MAINTENANCE;
}

/* A node that lost its data and its state is still out of service while it has our cordon. */
static bool is_cordoned_by_profile(const struct node *node)
{
    return node != NULL && node->unschedulable && node_annotation(node, KEY_PROFILE_CORDON).n > 0;
}

/* The node is new, has changed, or (`node` NULL) is gone. */
static void maintained_change(struct fleet *f, const struct store_item *item,
                              const struct node *node)
{
    struct maintained_node *m = map_find(&f->maintained, item->name);
    bool labelled = is_in_maintenance(node);
    bool marked = !labelled && is_cordoned_by_profile(node);
    if (m == NULL && !labelled && !marked) {
        return;
    }
    if (m != NULL && !labelled && !marked && !is_granted(m)) {
        maintained_drop(f, m);
        return;
    }
    m = maintained_make(f, item->name);
    m->item = node != NULL ? item : NULL;
    m->labelled = labelled;
    m->marked = marked;
    if (node == NULL) {
        alloc_free(m->entries);
        m->entries = NULL;
    }
    maintained_read(f, m);
}

void fleet_grant(struct fleet *f, struct str node, struct str profile)
{
    struct maintained_node *m = maintained_make(f, node);
    char *copy = alloc_bytes(profile.n + 1);
    if (profile.n > 0) {
        memcpy(copy, profile.p, profile.n);
    }
    f->revision++;
    maintained_forget_profile(m);
    m->profile = (struct str){ .p = copy, .n = profile.n };
    m->item = store_find(f->store, node);
    maintained_read(f, m);
}

void fleet_ungrant(struct fleet *f, struct str node)
{
    struct maintained_node *m = map_find(&f->maintained, node);
    f->revision++;
    if (m == NULL || !is_granted(m)) {
        return;
    }
    if (!m->labelled && !m->marked) {
        maintained_drop(f, m);
        return;
    }
    maintained_forget_profile(m);
    f->usage_changed = true;
}

bool fleet_is_granted(const struct fleet *f, struct str node)
{
    const struct maintained_node *m = map_find(&f->maintained, node);
    return m != NULL && is_granted(m);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct fleet *fleet_new(const struct store *store)
{
    struct fleet *f = ALLOC_NEW(struct fleet);
    f->store = store;
    map_init(&f->maintained, store->items.key[0], store->items.key[1]);
    MAP_EACH (&store->items, entry) {
        fleet_on_change(f, map_item_value(entry), NULL);
    }
    return f;
}

static void fleet_unconfigure(struct fleet *f)
{
    for (uint32_t i = 0; i < f->instance_n; i++) {
        struct fleet_instance *w = &f->instances[i];
        for (uint32_t k = 0; k < w->newest_n; k++) {
            newest_version_done(&w->newest[k]);
        }
    }
    MAP_EACH (&f->maintained, entry) {
        struct maintained_node *m = map_item_value(entry);
        alloc_free(m->entries);
        m->entries = NULL;
    }
    arena_done(&f->memory);
}

void fleet_free(struct fleet *f)
{
    if (f == NULL) {
        return;
    }
    fleet_unconfigure(f);
    MAP_EACH (&f->maintained, entry) {
        maintained_drop(f, map_item_value(entry));
    }
    map_done(&f->maintained);
    arena_done(&f->tmp);
    alloc_free(f);
}

static void instance_init(struct fleet *f, uint32_t index, const struct config_instance *instance)
{
    struct fleet_instance *w = &f->instances[index];
    w->check = instance->check;
    w->prepared = instance->prepared;
    if (w->check == &check_cluster_semver) {
        const struct check_semver_config *prepared = w->prepared;
        w->newest_n = prepared->scoped ? f->profile_n : 1;
        w->newest = ARENA_ARRAY(&f->memory, struct newest_version, w->newest_n);
    } else if (w->check == &check_max_maintenance) {
        const struct check_max_config *limit = w->prepared;
        w->limit = f->limit_n++;
        w->value_at = f->value_n;
        f->value_n += limit->key_n;
    } else if (w->check == &check_affinity) {
        f->keeps_waiting = true;
    } else if (w->check == &check_node_count || w->check == &check_kubernikus_count) {
        f->count_bits |= bit_of(index);
    }
}

void fleet_configure(struct fleet *f, const struct config *config)
{
    const struct config_instances *checks = &config->instances[PLUGIN_CHECK];
    f->revision++;
    fleet_unconfigure(f);
    f->config = config;
    f->limit_n = 0;
    f->value_n = 0;
    f->count_bits = 0;
    f->keeps_waiting = false;
    f->profile_n = config->profile_n;
    f->profiles = ARENA_ARRAY(&f->memory, struct profile_counts, config->profile_n + 1);
    f->operational = ARENA_ARRAY(&f->memory, uint32_t, config->profile_n + 1);
    f->instance_n = checks->n;
    f->instances = ARENA_ARRAY(&f->memory, struct fleet_instance, checks->n + 1);
    for (uint32_t i = 0; i < checks->n; i++) {
        instance_init(f, i, &checks->items[i]);
    }
    MAP_EACH (&f->store->items, entry) {
        const struct store_item *item = map_item_value(entry);
        labels_change(f, item, NULL, item->object);
        states_change(f, item, STR_NONE, node_annotation(item->object, KEY_DATA));
    }
    MAP_EACH (&f->maintained, entry) {
        maintained_read(f, map_item_value(entry));
    }
    f->changed = UINT64_MAX;
    f->usage_changed = true;
}

void fleet_set_facts(struct fleet *f, const struct facts *facts)
{
    f->facts = facts;
}

/* ── observing ─────────────────────────────────────────────────────────────────────────────── */

void fleet_on_change(struct fleet *f, const struct store_item *item, const void *before)
{
    const struct node *was = before;
    const struct node *is = item->object;
    struct str data_was = was != NULL ? node_annotation(was, KEY_DATA) : STR_NONE;
    struct str data_is = node_annotation(is, KEY_DATA);
    bool labels = was == NULL || !same_labels(was, is);
    bool data = was == NULL || !str_eq(data_was, data_is);
    f->revision++;
    if (was == NULL) {
        f->count++;
        f->changed |= f->count_bits;
    }
    if (labels) {
        labels_change(f, item, was, is);
    }
    if (data) {
        states_change(f, item, data_was, data_is);
    }
    bool cordon = is_cordoned_by_profile(was) != is_cordoned_by_profile(is);
    if (labels || data || cordon) {
        maintained_change(f, item, is);
    }
}

void fleet_on_gone(struct fleet *f, const struct store_item *item)
{
    const struct node *was = item->object;
    f->revision++;
    ASSERT(f->count > 0);
    f->count--;
    f->changed |= f->count_bits;
    labels_change(f, item, was, NULL);
    states_change(f, item, node_annotation(was, KEY_DATA), STR_NONE);
    maintained_change(f, item, NULL);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

/* Whether there are enough operational nodes now and were not before, or the other way round. */
static bool crosses_minimum(const struct fleet *f, int64_t minimum)
{
    for (uint32_t i = 0; minimum > 0 && i < f->profile_n; i++) {
        if ((f->operational[i] >= minimum) !=
            (f->profiles[i].counts[PROFILE_STATE_OPERATIONAL] >= minimum)) {
            return true;
        }
    }
    return false;
}

/* Affinity checks read the states and pods of all nodes, but few changes matter to them: most nodes
 * that wait have several others before them. */
static uint64_t affinity_changed(struct fleet *f)
{
    bool differs = f->facts == NULL && f->data_changed;
    uint64_t bits = 0;
    f->data_changed = false;
    for (uint32_t i = 0; f->facts != NULL && i < f->profile_n; i++) {
        differs = profile_counts_refresh(&f->profiles[i], f->facts) || differs;
    }
    for (uint32_t i = 0; i < f->instance_n; i++) {
        const struct fleet_instance *w = &f->instances[i];
        if (w->check == &check_affinity) {
            const struct check_affinity_config *enough = w->prepared;
            bits |= differs || crosses_minimum(f, enough->operational) ? bit_of(i) : 0;
        }
    }
    for (uint32_t i = 0; i < f->profile_n; i++) {
        f->operational[i] = f->profiles[i].counts[PROFILE_STATE_OPERATIONAL];
    }
    return bits;
}

uint64_t fleet_changed(struct fleet *f)
{
    uint64_t changed = f->changed | (f->keeps_waiting ? affinity_changed(f) : 0);
    f->changed = 0;
    return changed;
}

bool fleet_usage_changed(struct fleet *f)
{
    bool changed = f->usage_changed;
    f->usage_changed = false;
    return changed;
}

uint32_t fleet_count(const struct fleet *f)
{
    return f->count;
}

uint32_t fleet_in_maintenance(const struct fleet *f)
{
    return map_count(&f->maintained);
}

uint32_t fleet_profile_count(const struct fleet *f, uint32_t profile, enum profile_state state)
{
    ASSERT(profile < f->profile_n);
    return f->profiles[profile].counts[state];
}

static const struct profile_counts *find_profile(const struct fleet *f, struct str name)
{
    for (uint32_t i = 0; i < f->profile_n; i++) {
        if (str_eq(f->config->profiles[i].name, name)) {
            return &f->profiles[i];
        }
    }
    return NULL;
}

uint32_t fleet_operational(const struct fleet *f, struct str profile)
{
    const struct profile_counts *p = find_profile(f, profile);
    return p != NULL ? p->counts[PROFILE_STATE_OPERATIONAL] : 0;
}

uint32_t fleet_waiting_pods(const struct fleet *f, struct str profile, const struct facts *facts,
                            struct profile_counts_pods *ret)
{
    const struct profile_counts *p = find_profile(f, profile);
    ASSERT(f->keeps_waiting);
    *ret = (struct profile_counts_pods){ 0 };
    if (p == NULL) {
        return 0;
    }
    profile_counts_pods(p, facts, ret);
    return p->counts[PROFILE_STATE_REQUIRED];
}

uint32_t fleet_unwatched_pods(const struct fleet *f, struct str profile, const struct facts *facts)
{
    const struct profile_counts *p = find_profile(f, profile);
    return p != NULL ? profile_counts_unwatched(p, facts) : 0;
}

bool fleet_is_waiting(struct fleet *f, const struct store_item *item)
{
    struct err err = { 0 };
    struct node_data data = { 0 };
    bool waits = false;
    arena_reset(&f->tmp);
    if (node_data_parse(node_annotation(item->object, KEY_DATA), &f->tmp, &data, &err) < 0) {
        return false; /* a node whose data cannot be read is in no state */
    }
    for (uint32_t i = 0; i < f->profile_n; i++) {
        const struct node_data_profile *entry =
            node_data_find_profile(&data, f->config->profiles[i].name);
        enum profile_state state;
        waits = waits ||
                (entry != NULL && !entry->null && profile_state_parse(entry->current, &state) &&
                 state == PROFILE_STATE_REQUIRED);
    }
    return waits;
}

uint32_t fleet_any_label(const struct fleet *f, uint32_t index)
{
    ASSERT(index < f->instance_n);
    ASSERT(f->instances[index].check == &check_any_label);
    return f->instances[index].label_matches;
}

struct str fleet_semver(const struct fleet *f, uint32_t index, struct str profile,
                        struct semver *ret)
{
    ASSERT(index < f->instance_n);
    const struct fleet_instance *w = &f->instances[index];
    ASSERT(w->check == &check_cluster_semver);
    const struct profile_counts *p = find_profile(f, profile);
    const struct check_semver_config *prepared = w->prepared;
    const struct semver least = { .minor = 1, .prerelease = STR(""), .build = STR("") };
    const struct newest_version *newest = NULL;
    if (!prepared->scoped) {
        newest = &w->newest[0];
    } else if (p != NULL) {
        newest = &w->newest[p - f->profiles];
    }
    if (newest == NULL || newest->holders == 0 || semver_cmp(&newest->version, &least) <= 0) {
        *ret = least;
        return STR("0.1.0");
    }
    *ret = newest->version;
    return buf_str(&newest->text);
}

static bool in_group(const struct check_max_config *limit, const struct fleet_group_query *query,
                     const struct intern_text *const *values)
{
    for (uint32_t i = 0; i < limit->key_n; i++) {
        struct str want = query->values[i];
        struct str have = intern_str(values[i]);
        /* Equal labels of nodes are the same text in memory. */
        if (want.n > 0 && have.p != want.p && !str_eq(have, want)) {
            return false;
        }
    }
    return true;
}

/* Whether it counts by its age; a grant that the node does not show yet is new. */
static bool is_recent(const struct check_max_config *limit, const struct fleet_group_query *query,
                      const struct maintained_node *m, const struct fleet_limit_entry *entry,
                      struct fleet_group_usage *ret)
{
    if (limit->skip_after_ns == 0 || !m->labelled) {
        return true;
    }
    if (entry->unreadable) {
        ret->unreadable = m->name;
        return true;
    }
    struct timestamp end = elapsed_after(entry->since, elapsed_from_ns(limit->skip_after_ns));
    if (elapsed_order(query->now, end) >= 0) {
        return false;
    }
    ret->next = MIN(ret->next, elapsed_wake(end));
    return true;
}

struct fleet_group_usage fleet_group_usage(const struct fleet *f,
                                           const struct fleet_group_query *query)
{
    ASSERT(query->index < f->instance_n);
    const struct fleet_instance *w = &f->instances[query->index];
    ASSERT(w->check == &check_max_maintenance);
    const struct check_max_config *limit = w->prepared;
    struct fleet_group_usage usage = { .next = USEC_NEVER };
    /* Nodes with our cordon do not wait for each other: each holds the place that it asks for. */
    const struct maintained_node *asking = map_find(&f->maintained, query->self);
    bool asking_marked = asking != NULL && asking->marked;
    MAP_EACH (&f->maintained, item) {
        const struct maintained_node *m = map_item_value(item);
        const struct fleet_limit_entry *entry = &m->entries[w->limit];
        bool self = (query->granted || is_granted(m)) && str_eq(m->name, query->self);
        self = self || (asking_marked && m->marked && !is_granted(m));
        /* A node that is granted and unknown may come with any labels. */
        if (entry->counts && !self &&
            (m->item == NULL || in_group(limit, query, m->values + w->value_at)) &&
            is_recent(limit, query, m, entry, &usage)) {
            usage.count++;
        }
    }
    return usage;
}

/* ── checking ──────────────────────────────────────────────────────────────────────────────── */

static void check_newest_version(const struct fleet *a, const struct fleet *b, uint32_t index)
{
    const struct fleet_instance *w = &a->instances[index];
    for (uint32_t i = 0; i < w->newest_n; i++) {
        const struct newest_version *x = &w->newest[i];
        const struct newest_version *y = &b->instances[index].newest[i];
        ASSERT(x->holders == y->holders);
        ASSERT(x->holders == 0 || semver_cmp(&x->version, &y->version) == 0);
    }
}

static void check_profile_counts(const struct fleet *f, const struct profile_counts *a,
                                 const struct profile_counts *b)
{
    for (int i = 0; i < PROFILE_STATE_COUNT; i++) {
        ASSERT(a->counts[i] == b->counts[i]);
    }
    uint32_t n = f->keeps_waiting ? a->counts[PROFILE_STATE_REQUIRED] : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n && b->waiting[k] != a->waiting[i]) {
            k++;
        }
        ASSERT(k < n);
    }
}

static void check_maintained(const struct fleet *f, const struct maintained_node *a,
                             const struct maintained_node *b)
{
    ASSERT(a->item == b->item);
    ASSERT(a->labelled == b->labelled);
    ASSERT(a->marked == b->marked);
    ASSERT(is_granted(a) == is_granted(b));
    for (uint32_t i = 0; i < f->limit_n; i++) {
        ASSERT(a->entries[i].counts == b->entries[i].counts);
        ASSERT(a->entries[i].unreadable == b->entries[i].unreadable);
        ASSERT(elapsed_order(a->entries[i].since, b->entries[i].since) == 0);
    }
    ASSERT(f->value_n == 0 || memcmp(a->values, b->values, f->value_n * sizeof(a->values[0])) == 0);
}

void fleet_check(struct fleet *f)
{
    /* Counting everything again is expensive: it is done only when something has changed. */
    uint64_t known = f->revision + f->store->revision;
    if (f->checked == known) {
        return;
    }
    f->checked = known;
    struct fleet *again = fleet_new(f->store);
    MAP_EACH (&f->maintained, entry) {
        const struct maintained_node *m = map_item_value(entry);
        if (is_granted(m)) {
            fleet_grant(again, m->name, m->profile);
        }
    }
    if (f->config != NULL) {
        fleet_configure(again, f->config);
    }
    ASSERT(f->count == again->count);
    ASSERT(map_count(&f->maintained) == map_count(&again->maintained));
    for (uint32_t i = 0; i < f->instance_n; i++) {
        ASSERT(f->instances[i].label_matches == again->instances[i].label_matches);
        check_newest_version(f, again, i);
    }
    for (uint32_t i = 0; i < f->profile_n; i++) {
        check_profile_counts(f, &f->profiles[i], &again->profiles[i]);
    }
    MAP_EACH (&f->maintained, entry) {
        const struct maintained_node *m = map_item_value(entry);
        const struct maintained_node *same = map_find(&again->maintained, m->name);
        ASSERT(same != NULL);
        check_maintained(f, m, same);
    }
    fleet_free(again);
}
