/* Makes the report of all nodes, and writes it as JSON. */
#include "profile/fleet_report.h"

#include <stdlib.h>

/* ── counting ──────────────────────────────────────────────────────────────────────────────── */

struct fleet_report_profile *fleet_report_profile(struct fleet_report *s, struct arena *out,
                                                  struct str name)
{
    uint32_t at = 0;
    while (at < s->profile_n && str_cmp(s->profiles[at].name, name) < 0) {
        at++;
    }
    if (at < s->profile_n && str_eq(s->profiles[at].name, name)) {
        return &s->profiles[at];
    }
    if (s->profile_n == s->profile_cap) {
        ARENA_GROW(out, s->profiles, s->profile_n, s->profile_cap);
    }
    for (uint32_t i = s->profile_n; i > at; i--) {
        s->profiles[i] = s->profiles[i - 1];
    }
    s->profile_n++;
    s->profiles[at] = (struct fleet_report_profile){ .name = arena_str(out, name) };
    return &s->profiles[at];
}

static void add_entry(struct fleet_report *s, struct arena *out,
                      const struct fleet_report_entry *entry)
{
    if (s->entry_n == s->entry_cap) {
        ARENA_GROW(out, s->entries, s->entry_n, s->entry_cap);
    }
    s->entries[s->entry_n] = *entry;
    s->entries[s->entry_n].node = arena_str(out, entry->node);
    s->entries[s->entry_n].profile = arena_str(out, entry->profile);
    s->entries[s->entry_n].summary = arena_str(out, entry->summary);
    s->entry_n++;
}

void fleet_report_add(struct fleet_report *s, const struct node_report *r, struct arena *out)
{
    enum profile_state state = PROFILE_STATE_OPERATIONAL;
    (void)profile_state_parse(r->state, &state); /* no label yet, or an unknown one: operational */
    s->nodes++;
    s->counts[state]++;
    s->draining += r->draining.running ? 1 : 0;
    s->blocked += r->draining.blocked ? 1 : 0;
    bool drain_shown = !r->draining.running;
    if (r->error.n > 0) {
        add_entry(s, out,
                  &(struct fleet_report_entry){
                      .node = r->node, .state = state, .failing = true, .summary = r->error });
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (r->orphan.n > 0) {
        add_entry(s, out,
                  &(struct fleet_report_entry){ .node = r->node,
                                                .state = state,
                                                .failing = true,
                                                .summary = node_report_orphan(r, &tmp) });
    }
    for (uint32_t i = 0; i < r->profile_n; i++) {
        const struct node_report_profile *p = &r->profiles[i];
        fleet_report_profile(s, out, p->name)->counts[p->state]++;
        struct str summary = node_report_summary(r, p, &tmp);
        bool drains = r->draining.running && p->doing.n > 0 && str_eq(p->doing, r->drain);
        drain_shown = drain_shown || drains;
        if (p->state != PROFILE_STATE_OPERATIONAL || summary.n > 0) {
            add_entry(s, out,
                      &(struct fleet_report_entry){ .node = r->node,
                                                    .profile = p->name,
                                                    .state = p->state,
                                                    .since = p->since,
                                                    .failing = p->error.n > 0,
                                                    .draining = drains,
                                                    .blocked = drains && r->draining.blocked,
                                                    .summary = summary });
        }
        arena_reset(&tmp);
    }
    if (!drain_shown) {
        add_entry(s, out,
                  &(struct fleet_report_entry){ .node = r->node,
                                                .state = state,
                                                .draining = true,
                                                .blocked = r->draining.blocked,
                                                .since = r->draining.since,
                                                .summary = r->drain });
    }
}

static int compare_entries(const void *left, const void *right)
{
    const struct fleet_report_entry *a = left;
    const struct fleet_report_entry *b = right;
    if (a->blocked != b->blocked) {
        return a->blocked ? -1 : 1;
    }
    if (!a->blocked && a->failing != b->failing) {
        return a->failing ? -1 : 1;
    }
    if (!a->blocked && !a->failing && a->draining != b->draining) {
        return a->draining ? -1 : 1;
    }
    if (a->state != b->state) {
        return a->state > b->state ? -1 : 1;
    }
    if (a->since != b->since) {
        return a->since < b->since ? -1 : 1;
    }
    int order = str_cmp(a->node, b->node);
    return order != 0 ? order : str_cmp(a->profile, b->profile);
}

void fleet_report_sort(struct fleet_report *s)
{
    if (s->entry_n > 0) {
        qsort(s->entries, s->entry_n, sizeof(*s->entries), compare_entries);
    }
}

/* ── JSON ──────────────────────────────────────────────────────────────────────────────────── */

static void print_counts(struct json_writer *w, const uint32_t counts[PROFILE_STATE_COUNT])
{
    for (uint32_t i = 0; i < PROFILE_STATE_COUNT; i++) {
        jw_key(w, profile_state_name(i));
        jw_i64(w, counts[i]);
    }
}

static void print_entry(struct json_writer *w, const struct fleet_report_entry *e)
{
    jw_obj(w);
    jw_pair(w, "node", e->node);
    jw_pair(w, "profile", e->profile);
    jw_pair(w, "state", profile_state_name(e->state));
    jw_pair_time(w, "since", e->since);
    jw_pair_bool(w, "failing", e->failing);
    if (e->draining) {
        jw_pair_bool(w, "draining", true);
        jw_pair_bool(w, "blocked", e->blocked);
    }
    jw_pair(w, "gist", e->summary);
    jw_obj_end(w);
}

void fleet_report_print_json(const struct fleet_report *s, struct json_writer *w)
{
    jw_obj(w);
    jw_pair(w, "version", s->version);
    jw_pair(w, "title", s->title);
    jw_pair(w, "leader", s->leader);
    jw_pair(w, "why", s->why);
    jw_pair_some(w, "paused", s->paused);
    jw_pair_some(w, "missingRight", s->denied);
    if (s->pause.n > 0) {
        jw_pair(w, "pause", s->pause);
    }
    jw_key(w, STR("config"));
    jw_obj(w);
    jw_pair(w, "file", s->config_file);
    jw_pair(w, "error", s->config_error);
    if (s->config_warnings.n > 0) {
        jw_pair(w, "warnings", s->config_warnings);
    }
    jw_pair_time(w, "loaded", s->config_loaded);
    jw_obj_end(w);
    activity_print_list(s->activities, s->activity_n, w);
    jw_pair_time(w, "now", s->now);
    jw_pair_i64(w, "nodes", s->nodes);
    jw_pair_i64(w, "draining", s->draining);
    jw_pair_i64(w, "blocked", s->blocked);
    jw_key(w, STR("states"));
    jw_obj(w);
    print_counts(w, s->counts);
    jw_obj_end(w);
    jw_key(w, STR("profiles"));
    jw_arr(w);
    for (uint32_t i = 0; i < s->profile_n; i++) {
        jw_obj(w);
        jw_pair(w, "name", s->profiles[i].name);
        print_counts(w, s->profiles[i].counts);
        jw_obj_end(w);
    }
    jw_arr_end(w);
    jw_key(w, STR("entries"));
    jw_arr(w);
    for (uint32_t i = 0; i < s->entry_n; i++) {
        print_entry(w, &s->entries[i]);
    }
    jw_arr_end(w);
    if (s->board.n > 0) {
        jw_key(w, STR("board"));
        jw_raw(w, s->board);
    }
    if (s->operations.n > 0) {
        jw_key(w, STR("operations"));
        jw_raw(w, s->operations);
    }
    jw_obj_end(w);
}
