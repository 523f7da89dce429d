#include "profile/roster.h"

#include <stdlib.h>

#include "base/stamp.h"

/* ---- counting ---- */

struct roster_profile *roster_profile(struct roster *s, struct arena *out, struct str name)
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
    s->profiles[at] = (struct roster_profile){ .name = arena_str(out, name) };
    return &s->profiles[at];
}

static void add_entry(struct roster *s, struct arena *out, const struct roster_entry *entry)
{
    if (s->entry_n == s->entry_cap) {
        ARENA_GROW(out, s->entries, s->entry_n, s->entry_cap);
    }
    s->entries[s->entry_n] = *entry;
    s->entries[s->entry_n].node = arena_str(out, entry->node);
    s->entries[s->entry_n].profile = arena_str(out, entry->profile);
    s->entries[s->entry_n].gist = arena_str(out, entry->gist);
    s->entry_n++;
}

void roster_add(struct roster *s, const struct report *r, struct arena *out)
{
    enum label_state state = LABEL_STATE_OPERATIONAL;
    (void)label_state_parse(r->state, &state); /* no label yet, or a strange one: at rest */
    s->nodes++;
    s->counts[state]++;
    if (r->error.n > 0) {
        add_entry(s, out,
                  &(struct roster_entry){
                      .node = r->node, .state = state, .failing = true, .gist = r->error });
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t i = 0; i < r->profile_n; i++) {
        const struct report_profile *p = &r->profiles[i];
        roster_profile(s, out, p->name)->counts[p->state]++;
        struct str gist = report_gist(r, p, &tmp);
        if (p->state != LABEL_STATE_OPERATIONAL || gist.n > 0) {
            add_entry(s, out,
                      &(struct roster_entry){ .node = r->node,
                                              .profile = p->name,
                                              .state = p->state,
                                              .since = p->since,
                                              .failing = p->error.n > 0,
                                              .gist = gist });
        }
        arena_reset(&tmp);
    }
}

static int compare_entries(const void *left, const void *right)
{
    const struct roster_entry *a = left;
    const struct roster_entry *b = right;
    if (a->failing != b->failing) {
        return a->failing ? -1 : 1;
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

void roster_sort(struct roster *s)
{
    if (s->entry_n > 0) {
        qsort(s->entries, s->entry_n, sizeof(*s->entries), compare_entries);
    }
}

/* ---- JSON ---- */

static void print_counts(struct jwriter *w, const uint32_t counts[LABEL_STATE_COUNT])
{
    for (uint32_t i = 0; i < LABEL_STATE_COUNT; i++) {
        jw_key(w, label_state_name(i));
        jw_i64(w, counts[i]);
    }
}

static void print_time(struct jwriter *w, const char *key, usec_t wall)
{
    char text[STAMP_TEXT_MAX];
    struct str printed;
    struct err err = { 0 };
    if (wall != 0 && stamp_print(stamp_from_usec(wall), text, &printed, &err) == 0) {
        jw_pair(w, key, printed);
    }
}

static void print_entry(struct jwriter *w, const struct roster_entry *e)
{
    jw_obj(w);
    jw_pair(w, "node", e->node);
    jw_pair(w, "profile", e->profile);
    jw_pair(w, "state", label_state_name(e->state));
    print_time(w, "since", e->since);
    jw_key(w, STR("failing"));
    jw_bool(w, e->failing);
    jw_pair(w, "gist", e->gist);
    jw_obj_end(w);
}

void roster_print_json(const struct roster *s, struct jwriter *w)
{
    jw_obj(w);
    jw_pair(w, "version", s->version);
    jw_pair(w, "title", s->title);
    jw_pair(w, "leader", s->leader);
    jw_pair(w, "why", s->why);
    jw_key(w, STR("config"));
    jw_obj(w);
    jw_pair(w, "file", s->config_file);
    jw_pair(w, "error", s->config_error);
    print_time(w, "loaded", s->config_loaded);
    jw_obj_end(w);
    print_time(w, "now", s->now);
    jw_key(w, STR("nodes"));
    jw_i64(w, s->nodes);
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
    jw_obj_end(w);
}

/* ---- reading ---- */

static void read_counts(const struct jval *v, uint32_t counts[LABEL_STATE_COUNT])
{
    for (uint32_t i = 0; i < LABEL_STATE_COUNT; i++) {
        int64_t n = 0;
        (void)jval_i64(jval_get(v, label_state_name(i)), &n); /* absent is none */
        counts[i] = n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
    }
}

static int read_time(const struct jval *v, const char *key, usec_t *ret, struct err *err)
{
    const struct jval *value = jval_get(v, str_from(key));
    struct stamp at;
    *ret = 0;
    if (value == NULL) {
        return 0;
    }
    if (stamp_parse(jval_str(value), &at, err) < 0) {
        return err_wrap(err, "'%s'", key);
    }
    *ret = stamp_to_usec(at);
    return 0;
}

static struct str read_text(const struct jval *v, const char *key, struct arena *out)
{
    return arena_str(out, jval_str(jval_get(v, str_from(key))));
}

static int read_entry(const struct jval *v, struct arena *out, struct roster_entry *ret,
                      struct err *err)
{
    *ret = (struct roster_entry){
        .node = read_text(v, "node", out),
        .profile = read_text(v, "profile", out),
        .failing = jval_bool(jval_get(v, STR("failing")), false),
        .gist = read_text(v, "gist", out),
    };
    struct str state = jval_str(jval_get(v, STR("state")));
    if (!label_state_parse(state, &ret->state)) {
        return err_set(err, ERR_PROTO, "node '" STR_FMT "': '" STR_FMT "' is no state",
                       STR_ARG(ret->node), STR_ARG(state));
    }
    return read_time(v, "since", &ret->since, err);
}

static int read_lists(const struct jval *root, struct arena *out, struct roster *ret,
                      struct err *err)
{
    const struct jval *profiles = jval_get(root, STR("profiles"));
    const struct jval *entries = jval_get(root, STR("entries"));
    uint32_t profile_n = jval_kind(profiles) == JARR ? profiles->n : 0;
    uint32_t entry_n = jval_kind(entries) == JARR ? entries->n : 0;
    if (profile_n > REPORT_PARTS_MAX || entry_n > ROSTER_ENTRIES_MAX) {
        return err_set(err, ERR_LIMIT, "found %u profiles and %u entries, at most %u and %u",
                       profile_n, entry_n, REPORT_PARTS_MAX, ROSTER_ENTRIES_MAX);
    }
    JVAL_EACH (profiles, v) {
        read_counts(v, roster_profile(ret, out, jval_str(jval_get(v, STR("name"))))->counts);
    }
    ret->entries = ARENA_ARRAY(out, struct roster_entry, entry_n);
    ret->entry_cap = entry_n;
    JVAL_EACH (entries, v) {
        int r = read_entry(v, out, &ret->entries[ret->entry_n++], err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int roster_parse(struct str text, struct arena *out, struct roster *ret, struct err *err)
{
    const struct jval *root;
    int64_t nodes = 0;
    int r = json_parse(text, 0, out, &root, err);
    if (r < 0) {
        return r;
    }
    if (!jval_i64(jval_get(root, STR("nodes")), &nodes) || nodes < 0 || nodes > UINT32_MAX) {
        return err_set(err, ERR_PROTO, "found %s that is no status", jkind_name(jval_kind(root)));
    }
    const struct jval *config = jval_get(root, STR("config"));
    struct roster s = {
        .version = read_text(root, "version", out),
        .title = read_text(root, "title", out),
        .leader = read_text(root, "leader", out),
        .why = read_text(root, "why", out),
        .config_file = read_text(config, "file", out),
        .config_error = read_text(config, "error", out),
        .nodes = (uint32_t)nodes,
    };
    read_counts(jval_get(root, STR("states")), s.counts);
    r = read_time(root, "now", &s.now, err);
    r = r < 0 ? r : read_time(config, "loaded", &s.config_loaded, err);
    r = r < 0 ? r : read_lists(root, out, &s, err);
    if (r < 0) {
        return r;
    }
    *ret = s;
    return 0;
}
