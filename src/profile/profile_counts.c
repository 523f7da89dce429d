/* Counts the nodes of one profile by state, and sums up the pods of those that wait. */
#include "profile/profile_counts.h"

void profile_counts_add(struct profile_counts *s, enum profile_state state,
                        const struct store_item *item, struct arena *memory)
{
    if (state == PROFILE_STATE_REQUIRED && memory != NULL) {
        if (s->counts[state] == s->waiting_cap) {
            ARENA_GROW(memory, s->waiting, s->counts[state], s->waiting_cap);
        }
        s->waiting[s->counts[state]] = item;
        s->changes++;
    }
    s->counts[state]++;
}

void profile_counts_remove(struct profile_counts *s, enum profile_state state,
                           const struct store_item *item)
{
    ASSERT(s->counts[state] > 0);
    s->counts[state]--;
    if (state == PROFILE_STATE_REQUIRED && s->waiting != NULL) {
        uint32_t last = s->counts[state];
        uint32_t i = 0;
        while (i < last && s->waiting[i] != item) {
            i++;
        }
        ASSERT(s->waiting[i] == item);
        s->waiting[i] = s->waiting[last];
        s->changes++;
    }
}

static void profile_counts_sum_pods(const struct profile_counts *s, const struct facts *facts,
                                    struct profile_counts_pods *ret)
{
    *ret = (struct profile_counts_pods){ 0 };
    uint32_t n = s->waiting != NULL ? s->counts[PROFILE_STATE_REQUIRED] : 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct store_item *item = s->waiting[i];
        struct facts_affinity fact = facts_affinity(facts, item->name);
        if (!fact.known) {
            if (ret->unknown_n < PROFILE_COUNTS_UNKNOWN_MAX) {
                ret->unknown[ret->unknown_n++] = item;
            }
        } else if (fact.error.n > 0) {
            ret->broken = ret->broken == NULL ? item : ret->broken;
        } else if (!fact.has && (ret->without == NULL || (fact.live && !ret->without_live))) {
            ret->without = item;
            ret->without_live = fact.live;
        }
        if (ret->without_live) {
            break; /* one such node is reason enough */
        }
    }
    if (ret->without != NULL) {
        ret->broken = NULL;
        ret->unknown_n = 0;
    }
}

uint32_t profile_counts_unwatched(const struct profile_counts *s, const struct facts *facts)
{
    uint32_t n = s->waiting != NULL ? s->counts[PROFILE_STATE_REQUIRED] : 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct facts_affinity fact = facts_affinity(facts, s->waiting[i]->name);
        kept += fact.known && !fact.live && fact.error.n == 0 ? 1 : 0;
    }
    return kept;
}

void profile_counts_pods(const struct profile_counts *s, const struct facts *facts,
                         struct profile_counts_pods *ret)
{
    if (s->sum_of == facts && s->sum_changes == s->changes &&
        s->sum_facts == facts_affinity_changes(facts)) {
        *ret = s->sum;
    } else {
        profile_counts_sum_pods(s, facts, ret);
    }
}

bool profile_counts_refresh(struct profile_counts *s, const struct facts *facts)
{
    struct profile_counts_pods sum;
    profile_counts_pods(s, facts, &sum);
    /* A node that waits for another, whose pods are not watched, has those pods read again. */
    bool differs = s->sum_of != facts || (sum.without == NULL) != (s->sum.without == NULL) ||
                   sum.without_live != s->sum.without_live ||
                   (sum.broken == NULL) != (s->sum.broken == NULL) ||
                   (sum.unknown_n == 0) != (s->sum.unknown_n == 0);
    s->sum = sum;
    s->sum_of = facts;
    s->sum_changes = s->changes;
    s->sum_facts = facts_affinity_changes(facts);
    return differs;
}
