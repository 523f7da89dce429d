#include "ledger/limit_status_patch.h"

#include "base/timestamp.h"
#include "format/mergepatch.h"

static void set_number(struct arena *a, struct tree *status, const char *key, int64_t n)
{
    tree_set(a, status, str_from(key), tree_i64(a, n));
}

static void set_time(struct arena *a, struct tree *status, const char *key, usec_t wall)
{
    char text[TIMESTAMP_TEXT_MAX];
    tree_set(a, status, str_from(key), tree_str(a, timestamp_print_seconds(wall, text)));
}

void statement_set_condition(struct tree *list, const struct statement_condition *c,
                             int64_t generation, usec_t now, struct arena *out)
{
    struct tree *entry = NULL;
    struct str status = c->status ? STR("True") : STR("False");
    TREE_EACH (list, item) {
        if (str_eq(tree_text_at(item, "type"), str_from(c->type))) {
            entry = item;
        }
    }
    if (entry == NULL) {
        entry = tree_obj(out);
        tree_set(out, entry, STR("type"), tree_str(out, str_from(c->type)));
        tree_add(list, entry);
    }
    if (!str_eq(tree_text_at(entry, "status"), status)) {
        tree_set(out, entry, STR("status"), tree_str(out, status));
        set_time(out, entry, "lastTransitionTime", now);
    }
    set_number(out, entry, "observedGeneration", generation);
    tree_set(out, entry, STR("reason"), tree_str(out, c->reason));
    tree_set(out, entry, STR("message"), tree_str(out, c->message));
}

static struct tree *list_at(struct arena *a, struct tree *obj, const char *key)
{
    struct tree *list = tree_get(obj, str_from(key));
    if (tree_kind(list) != JARR) {
        list = tree_arr(a);
        tree_set(a, obj, str_from(key), list);
    }
    return list;
}

static void state_conditions(const struct statement *s, struct tree *status,
                             struct statement_diff *diff, struct arena *a)
{
    const struct limit *l = s->limit;
    struct tree *list = list_at(a, status, "conditions");
    bool accepted = s->reason.n == 0;
    bool over_before = false;
    TREE_EACH (list, item) {
        over_before = over_before || (str_eq(tree_text_at(item, "type"), STR("OverCommitted")) &&
                                      str_eq(tree_text_at(item, "status"), STR("True")));
    }
    statement_set_condition(
        list,
        &(struct statement_condition){ "Accepted", accepted, accepted ? STR("Accepted") : s->reason,
                                       accepted ? STR("the limit is in force") : s->problem },
        l->generation, s->now, a);
    if (!l->governs) {
        return;
    }
    bool known = l->unknown.n == 0;
    statement_set_condition(list,
                            &(struct statement_condition){
                                "PoliciesRecognized", known,
                                known ? STR("Recognized") : STR("UnknownPolicies"),
                                known ? STR("") : arena_concat(a, STR("ignored: "), l->unknown) },
                            l->generation, s->now, a);
    statement_set_condition(list,
                            &(struct statement_condition){
                                "Paused", l->paused, l->paused ? STR("Paused") : STR("NotPaused"),
                                l->paused ? STR("nothing new is granted") : STR("") },
                            l->generation, s->now, a);
    statement_set_condition(
        list,
        &(struct statement_condition){ "Computed", s->computed,
                                       s->computed ? STR("Computed") : STR("InputsUnknown"),
                                       s->computed ? STR("") : s->unknown },
        l->generation, s->now, a);
    if (!s->computed) {
        return;
    }
    bool over = limit_is_over(l, &s->tally);
    uint32_t nominal = limit_nominal(l, s->tally.population);
    if (over) {
        diff->over = arena_printf(a, "%u granted and %u unavailable of %u allowed",
                                  s->tally.granted, s->tally.unavailable, nominal);
    }
    diff->over_began = over && !over_before;
    statement_set_condition(list,
                            &(struct statement_condition){ "OverCommitted", over,
                                                           !over ? STR("WithinLimit")
                                                           : s->tally.granted > nominal
                                                               ? STR("GrantsAboveNominal")
                                                               : STR("UnavailableAboveNominal"),
                                                           diff->over },
                            l->generation, s->now, a);
}

static void state_numbers(const struct statement *s, struct tree *status,
                          struct statement_diff *diff, struct arena *a)
{
    const struct limit *l = s->limit;
    set_number(a, status, "waiting", s->waiting);
    if (!s->computed) {
        return;
    }
    diff->limit = limit_count(l, &s->tally);
    set_number(a, status, "limit", diff->limit);
    set_number(a, status, "population", s->tally.population);
    set_number(a, status, "nominal", limit_nominal(l, s->tally.population));
    set_number(a, status, "unavailableCount", s->unavailable);
    if (s->hit_n == 0) {
        (void)tree_del(status, STR("unavailable")); /* may not be there */
        return;
    }
    struct tree *map = tree_obj(a);
    for (uint32_t i = 0; i < s->hit_n; i++) {
        tree_set(a, map, s->hits[i].name, tree_str(a, s->hits[i].policy));
    }
    tree_set(a, status, STR("unavailable"), map);
}

static void state_books(const struct statement *s, struct tree *status, struct arena *a)
{
    const struct limit *l = s->limit;
    tree_set(a, status, STR("type"), tree_str(a, target_type_name(l->type)));
    set_number(a, status, "granted", s->books->n);
    if (s->books->n == 0) {
        (void)tree_del(status, STR("reservations")); /* may not be there */
    } else {
        tree_set(a, status, STR("reservations"), reserves_tree(s->books, a));
    }
    if (l->ledger_init == USEC_NEVER) {
        set_time(a, status, "ledgerInitTime", s->now);
    }
    if (s->granted) {
        set_time(a, status, "lastGrantTime", s->now);
    }
    if (s->released) {
        set_time(a, status, "lastReleaseTime", s->now);
    }
}

void statement_patch(const struct statement *s, struct arena *tmp, struct buf *out,
                     struct statement_diff *ret)
{
    const struct limit *l = s->limit;
    struct err err = { 0 };
    struct tree *old = NULL;
    struct tree *patch = NULL;
    struct statement_diff diff = { 0 };
    if (tree_parse(l->status, tmp, &old, &err) < 0) {
        old = tree_obj(tmp); /* it was printed by ourselves: cannot happen */
    }
    struct tree *status = tree_clone(tmp, old);
    set_number(tmp, status, "observedGeneration", l->generation);
    if (l->governs) {
        state_books(s, status, tmp);
        state_numbers(s, status, &diff, tmp);
    }
    state_conditions(s, status, &diff, tmp);
    *ret = diff;
    if (mergepatch_create(old, status, tmp, &patch, &err) < 0 || patch->n == 0) {
        return;
    }
    diff.any = true;
    diff.ledger = s->ledger;
    diff.told =
        tree_get(patch, STR("limit")) != NULL || tree_get(patch, STR("unavailable")) != NULL;
    *ret = diff;
    tree_print(patch, out);
}
