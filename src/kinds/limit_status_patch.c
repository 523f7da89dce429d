#include "kinds/limit_status_patch.h"

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

void status_condition_set(struct tree *list, const struct status_condition *c, int64_t generation,
                          usec_t now, struct arena *out)
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

static void limit_status_conditions(const struct limit_status *s, struct tree *status,
                                    struct limit_status_diff *diff, struct arena *a)
{
    const struct limit *l = s->limit;
    struct tree *list = list_at(a, status, "conditions");
    bool accepted = s->reason.n == 0;
    bool over_before = false;
    bool full_before = false;
    TREE_EACH (list, item) {
        full_before = full_before || str_eq(tree_text_at(item, "type"), STR("LedgerFull"));
        over_before = over_before || (str_eq(tree_text_at(item, "type"), STR("OverCommitted")) &&
                                      str_eq(tree_text_at(item, "status"), STR("True")));
    }
    status_condition_set(
        list,
        &(struct status_condition){ "Accepted", accepted, accepted ? STR("Accepted") : s->reason,
                                    accepted ? STR("the limit is in force") : s->problem },
        l->generation, s->now, a);
    if (!l->type_known) {
        return;
    }
    if (s->ledger_full || full_before) { /* no other limit has to have this one */
        status_condition_set(
            list,
            &(struct status_condition){
                "LedgerFull", s->ledger_full,
                s->ledger_full ? STR("TooManyReservations") : STR("Fits"),
                s->ledger_full
                    ? arena_printf(a,
                                   "%u reservations take %llu of %u bytes: nothing more is granted "
                                   "or adopted; divide what the limit selects among several",
                                   s->reservations->n, (unsigned long long)s->reservations->bytes,
                                   RESERVATIONS_BYTES_MAX)
                    : STR("") },
            l->generation, s->now, a);
    }
    bool known = l->unknown.n == 0;
    status_condition_set(list,
                         &(struct status_condition){
                             "PoliciesRecognized", known,
                             known ? STR("Recognized") : STR("UnknownPolicies"),
                             known ? STR("") : arena_concat(a, STR("ignored: "), l->unknown) },
                         l->generation, s->now, a);
    status_condition_set(list,
                         &(struct status_condition){
                             "Paused", l->paused, l->paused ? STR("Paused") : STR("NotPaused"),
                             l->paused ? STR("nothing new is granted") : STR("") },
                         l->generation, s->now, a);
    status_condition_set(
        list,
        &(struct status_condition){ "Computed", s->computed,
                                    s->computed ? STR("Computed") : STR("InputsUnknown"),
                                    s->computed ? STR("") : s->unknown },
        l->generation, s->now, a);
    if (!s->computed) {
        return;
    }
    if (s->overcommitted) {
        diff->overcommit_text = arena_printf(a, "%u granted and %u unavailable of %u allowed",
                                             s->targets, s->unavailable, s->nominal);
    }
    diff->overcommit_began = s->overcommitted && !over_before;
    status_condition_set(list,
                         &(struct status_condition){ "OverCommitted", s->overcommitted,
                                                     !s->overcommitted ? STR("WithinLimit")
                                                     : s->targets > s->nominal
                                                         ? STR("GrantsAboveNominal")
                                                         : STR("UnavailableAboveNominal"),
                                                     diff->overcommit_text },
                         l->generation, s->now, a);
}

static void limit_status_counts(const struct limit_status *s, struct tree *status,
                                struct limit_status_diff *diff, struct arena *a)
{
    set_number(a, status, "waiting", s->waiting);
    if (!s->computed) {
        return;
    }
    diff->limit = s->allowed;
    set_number(a, status, "limit", s->allowed);
    set_number(a, status, "population", s->population);
    set_number(a, status, "nominal", s->nominal);
    set_number(a, status, "unavailableCount", s->unavailable);
    if (s->policy_hit_n == 0) {
        (void)tree_del(status, STR("unavailable")); /* may not be there */
        return;
    }
    struct tree *map = tree_obj(a);
    for (uint32_t i = 0; i < s->policy_hit_n; i++) {
        tree_set(a, map, s->policy_hits[i].name, tree_str(a, s->policy_hits[i].policy));
    }
    tree_set(a, status, STR("unavailable"), map);
}

static void limit_status_reservations(const struct limit_status *s, struct tree *status,
                                      struct arena *a)
{
    const struct limit *l = s->limit;
    tree_set(a, status, STR("type"), tree_str(a, target_type_name(l->type)));
    set_number(a, status, "granted", s->reservations->n);
    if (s->reservations->n == 0) {
        (void)tree_del(status, STR("reservations")); /* may not be there */
    } else {
        tree_set(a, status, STR("reservations"), reservations_tree(s->reservations, a));
    }
    if (l->ledger_init_time == USEC_NEVER) {
        set_time(a, status, "ledgerInitTime", s->now);
    }
    if (s->granted) {
        set_time(a, status, "lastGrantTime", s->now);
    }
    if (s->released) {
        set_time(a, status, "lastReleaseTime", s->now);
    }
}

void limit_status_patch(const struct limit_status *s, struct arena *tmp, struct buf *out,
                        struct limit_status_diff *ret)
{
    const struct limit *l = s->limit;
    struct err err = { 0 };
    struct tree *old = NULL;
    struct tree *patch = NULL;
    struct limit_status_diff diff = { 0 };
    if (tree_parse(l->status, tmp, &old, &err) < 0) {
        old = tree_obj(tmp); /* it was printed by ourselves: cannot happen */
    }
    struct tree *status = tree_clone(tmp, old);
    set_number(tmp, status, "observedGeneration", l->generation);
    if (l->type_known) {
        limit_status_reservations(s, status, tmp);
        limit_status_counts(s, status, &diff, tmp);
    }
    limit_status_conditions(s, status, &diff, tmp);
    *ret = diff;
    if (mergepatch_create(old, status, tmp, &patch, &err) < 0 || patch->n == 0) {
        return;
    }
    diff.any = true;
    diff.reservations_changed = s->reservations_changed;
    diff.limit_changed =
        tree_get(patch, STR("limit")) != NULL || tree_get(patch, STR("unavailable")) != NULL;
    *ret = diff;
    tree_print(patch, out);
}
