/* Reads and writes the data annotation, with the rules of Go's encoding/json. */
#include "profile/node_data.h"

#include "base/utf8.h"
#include "format/json_writer.h"

/* What the walk over the annotation carries. */
struct node_data_reader {
    struct str text;
    struct arena *out;
    struct node_data *data;
    struct node_data_profile legacy; /* LastTransition, for all profiles of the old format */
    bool is_legacy;
    const struct jval *states; /* ProfileStates, PreviousStates of the old format */
    const struct jval *previous;
    struct err *err;
};

/* encoding/json's folding: ASCII case, and the two letters outside ASCII that fold into it. */
static bool node_data_key_is(struct str key, struct str wanted)
{
    if (str_eq(key, wanted)) {
        return true; /* as everybody writes it */
    }
    /* No letter folds into a shorter one. */
    if (key.n < wanted.n) {
        return false;
    }
    size_t at = 0;
    for (size_t i = 0; i < wanted.n; i++) {
        uint32_t point = 0;
        size_t n = utf8_decode(str_sub(key, at, SIZE_MAX), &point);
        if (n == 0) {
            return false;
        }
        at += n;
        point = point == 0x17f ? 's' : point == 0x212a ? 'k' : point;
        uint32_t w = (unsigned char)wanted.p[i];
        uint32_t low = point >= 'A' && point <= 'Z' ? point + 32 : point;
        if (low != (w >= 'A' && w <= 'Z' ? w + 32 : w)) {
            return false;
        }
    }
    return at == key.n;
}

static int node_data_fail_kind(struct node_data_reader *r, const char *where, const struct jval *v,
                               const char *want)
{
    return err_set(r->err, ERR_INVALID, "%s is %s, want %s", where, jkind_name(jval_kind(v)), want);
}

static int node_data_fail_key(struct node_data_reader *r, struct str key)
{
    return err_set(r->err, ERR_INVALID, "json: unknown field \"" STR_FMT "\"",
                   STR_ARG(str_sub(key, 0, 64)));
}

/* null leaves what was there. */
static int node_data_read_stamp(struct node_data_reader *r, const char *where, const struct jval *v,
                                struct timestamp *ret)
{
    if (jval_kind(v) == JNULL) {
        return 0;
    }
    if (jval_kind(v) != JSTR) {
        return node_data_fail_kind(r, where, v, "a time");
    }
    struct str text = jval_str(v);
    /* Go reads a time from the raw bytes between the quotes, so an escape is no time. The tape
     * points into the input only where there was none. */
    bool raw = text.n == 0 || (text.p >= r->text.p && text.p < r->text.p + r->text.n);
    if (!raw) {
        return err_set(r->err, ERR_INVALID, "%s: a time with an escape in it", where);
    }
    return timestamp_parse(text, ret, r->err);
}

static int node_data_read_str(struct node_data_reader *r, const char *where, const struct jval *v,
                              struct str *ret)
{
    if (jval_kind(v) == JNULL) {
        return 0;
    }
    if (jval_kind(v) != JSTR) {
        return node_data_fail_kind(r, where, v, "a string");
    }
    *ret = jval_str(v);
    return 0;
}

static int node_data_read_profile(struct node_data_reader *r, const struct jval *v)
{
    struct str name = jval_key(v);
    struct node_data_profile fresh = { .name = name, .transition = timestamp_zero };
    if (jval_kind(v) == JNULL) {
        fresh.null = true;
    } else if (jval_kind(v) != JOBJ) {
        return node_data_fail_kind(r, "an entry of Profiles", v, "an object");
    }
    if (jval_kind(v) == JOBJ) {
        JVAL_EACH (v, field) {
            struct str key = jval_key(field);
            int result;
            if (node_data_key_is(key, STR("Transition"))) {
                result = node_data_read_stamp(r, "Transition", field, &fresh.transition);
            } else if (node_data_key_is(key, STR("Current"))) {
                result = node_data_read_str(r, "Current", field, &fresh.current);
            } else if (node_data_key_is(key, STR("Previous"))) {
                result = node_data_read_str(r, "Previous", field, &fresh.previous);
            } else {
                result = node_data_fail_key(r, key);
            }
            if (result < 0) {
                return result;
            }
        }
    }
    if (r->data->profile_count >= NODE_DATA_ENTRIES_MAX) {
        return err_set(r->err, ERR_LIMIT, "more than %u profiles", NODE_DATA_ENTRIES_MAX);
    }
    *node_data_make_profile(r->data, r->out, name) =
        fresh; /* a duplicate entry replaces the earlier one */
    return 0;
}

static int node_data_read_profiles(struct node_data_reader *r, const struct jval *v)
{
    if (jval_kind(v) == JNULL) {
        r->data->profile_count = 0;
        return 0;
    }
    if (jval_kind(v) != JOBJ) {
        return node_data_fail_kind(r, "Profiles", v, "an object");
    }
    JVAL_EACH (v, entry) {
        int result = node_data_read_profile(r, entry);
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

/* Where `name` is, or would be. */
static uint32_t notification_index(const struct node_data *d, struct str name)
{
    uint32_t low = 0;
    uint32_t high = d->notification_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(d->notifications[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct node_data_notification *node_data_notification(struct node_data *d, struct arena *a,
                                                      struct str name)
{
    uint32_t i = notification_index(d, name);
    if (i < d->notification_count && str_eq(d->notifications[i].name, name)) {
        return &d->notifications[i];
    }
    ARENA_GROW(a, d->notifications, d->notification_count, d->notification_cap);
    memmove(&d->notifications[i + 1], &d->notifications[i],
            (d->notification_count - i) * sizeof(d->notifications[0]));
    d->notifications[i] = (struct node_data_notification){ .name = name, .at = timestamp_zero };
    d->notification_count++;
    return &d->notifications[i];
}

static int node_data_read_notification(struct node_data_reader *r, const struct jval *v)
{
    struct node_data *d = r->data;
    struct timestamp at = timestamp_zero;
    int result = node_data_read_stamp(r, "an entry of Notifications", v, &at);
    if (result < 0) {
        return result;
    }
    if (d->notification_count >= NODE_DATA_ENTRIES_MAX) {
        return err_set(r->err, ERR_LIMIT, "more than %u notifications", NODE_DATA_ENTRIES_MAX);
    }
    node_data_notification(d, r->out, jval_key(v))->at = at;
    return 0;
}

static int node_data_read_notifications(struct node_data_reader *r, const struct jval *v)
{
    if (jval_kind(v) == JNULL) {
        r->data->notification_count = 0;
        return 0;
    }
    if (jval_kind(v) != JOBJ) {
        return node_data_fail_kind(r, "Notifications", v, "an object");
    }
    JVAL_EACH (v, entry) {
        int result = node_data_read_notification(r, entry);
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

static int node_data_read_states(struct node_data_reader *r, const char *where,
                                 const struct jval *v, const struct jval **ret)
{
    if (jval_kind(v) != JOBJ && jval_kind(v) != JNULL) {
        return node_data_fail_kind(r, where, v, "an object");
    }
    JVAL_EACH (v, state) {
        if (jval_kind(state) != JSTR) {
            return node_data_fail_kind(r, where, state, "a string");
        }
    }
    *ret = v;
    return 0;
}

static int node_data_read_root(struct node_data_reader *r, const struct jval *root)
{
    JVAL_EACH (root, v) {
        struct str key = jval_key(v);
        int result;
        if (node_data_key_is(key, STR("Profiles"))) {
            result = node_data_read_profiles(r, v);
        } else if (node_data_key_is(key, STR("Notifications"))) {
            result = node_data_read_notifications(r, v);
        } else if (node_data_key_is(key, STR("LastTransition"))) {
            r->is_legacy = true;
            result = node_data_read_stamp(r, "LastTransition", v, &r->legacy.transition);
        } else if (node_data_key_is(key, STR("LastNotificationTimes"))) {
            r->is_legacy = true;
            result = node_data_read_notifications(r, v);
        } else if (node_data_key_is(key, STR("ProfileStates"))) {
            r->is_legacy = true;
            result = node_data_read_states(r, "ProfileStates", v, &r->states);
        } else if (node_data_key_is(key, STR("PreviousStates"))) {
            r->is_legacy = true;
            result = node_data_read_states(r, "PreviousStates", v, &r->previous);
        } else {
            result = node_data_fail_key(r, key);
        }
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

/* The old format had one transition for all profiles, and the states in maps of their own. */
static int node_data_migrate(struct node_data_reader *r)
{
    JVAL_EACH (r->states, state) {
        if (r->data->profile_count >= NODE_DATA_ENTRIES_MAX) {
            return err_set(r->err, ERR_LIMIT, "more than %u profiles", NODE_DATA_ENTRIES_MAX);
        }
        struct str name = jval_key(state);
        const struct jval *previous = jval_get(r->previous, name);
        *node_data_make_profile(r->data, r->out, name) = (struct node_data_profile){
            .name = name,
            .transition = r->legacy.transition,
            .current = jval_str(state),
            .previous = previous != NULL ? jval_str(previous) : jval_str(state),
        };
    }
    return 0;
}

int node_data_parse(struct str text, struct arena *out, struct node_data *ret, struct err *err)
{
    struct node_data data = { 0 };
    if (text.n == 0) {
        *ret = data;
        return 0;
    }
    struct node_data_reader r = {
        .text = text,
        .out = out,
        .data = &data,
        .legacy = { .transition = timestamp_zero },
        .err = err,
    };
    const struct jval *root = NULL;
    int result = json_parse(text, JSON_GO | JSON_TRAILING, out, &root, err);
    if (result == 0 && jval_kind(root) != JOBJ && jval_kind(root) != JNULL) {
        result = node_data_fail_kind(&r, "the value", root, "an object");
    }
    if (result == 0 && jval_kind(root) == JOBJ) {
        result = node_data_read_root(&r, root);
    }
    if (result == 0 && r.is_legacy) {
        result = node_data_migrate(&r);
    }
    if (result < 0) {
        return err_wrap(err, "failed to parse json value in data annotation");
    }
    *ret = data;
    return 0;
}

static int node_data_print_stamp(struct json_writer *w, struct timestamp s, struct err *err)
{
    char out[TIMESTAMP_TEXT_MAX];
    struct str text;
    int r = timestamp_print(s, out, &text, err);
    if (r == 0) {
        jw_str(w, text);
    }
    return r;
}

int node_data_print(const struct node_data *d, struct buf *out, struct err *err)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("Profiles"));
    jw_obj(&w);
    for (uint32_t i = 0; i < d->profile_count; i++) {
        const struct node_data_profile *p = &d->profiles[i];
        jw_key(&w, p->name);
        if (p->null) {
            jw_null(&w);
            continue;
        }
        jw_obj(&w);
        jw_key(&w, STR("Transition"));
        int r = node_data_print_stamp(&w, p->transition, err);
        if (r < 0) {
            return err_wrap(err, "profile '" STR_FMT "'", STR_ARG(str_sub(p->name, 0, 64)));
        }
        jw_pair(&w, "Current", p->current);
        jw_pair(&w, "Previous", p->previous);
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
    jw_key(&w, STR("Notifications"));
    jw_obj(&w);
    for (uint32_t i = 0; i < d->notification_count; i++) {
        jw_key(&w, d->notifications[i].name);
        int r = node_data_print_stamp(&w, d->notifications[i].at, err);
        if (r < 0) {
            return err_wrap(err, "notification '" STR_FMT "'",
                            STR_ARG(str_sub(d->notifications[i].name, 0, 64)));
        }
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    return 0;
}

static uint32_t profile_index(const struct node_data *d, struct str name)
{
    uint32_t low = 0;
    uint32_t high = d->profile_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(d->profiles[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct node_data_profile *node_data_find_profile(const struct node_data *d, struct str name)
{
    uint32_t i = profile_index(d, name);
    return i < d->profile_count && str_eq(d->profiles[i].name, name) ? &d->profiles[i] : NULL;
}

struct node_data_profile *node_data_make_profile(struct node_data *d, struct arena *a,
                                                 struct str name)
{
    uint32_t i = profile_index(d, name);
    if (i < d->profile_count && str_eq(d->profiles[i].name, name)) {
        return &d->profiles[i];
    }
    ARENA_GROW(a, d->profiles, d->profile_count, d->profile_cap);
    memmove(&d->profiles[i + 1], &d->profiles[i], (d->profile_count - i) * sizeof(d->profiles[0]));
    d->profiles[i] = (struct node_data_profile){ .name = name, .transition = timestamp_zero };
    d->profile_count++;
    return &d->profiles[i];
}

void node_data_remove_profile(struct node_data *d, struct node_data_profile *p)
{
    uint32_t i = (uint32_t)(p - d->profiles);
    ASSERT(i < d->profile_count);
    memmove(p, p + 1, (d->profile_count - i - 1) * sizeof(*p));
    d->profile_count--;
}
