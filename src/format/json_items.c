#include "format/json_items.h"

void json_items_init(struct json_items *s, struct str list)
{
    *s = (struct json_items){ .text = list };
}

static int json_items_fail(const struct json_items *s, const char *want, struct err *err)
{
    err->pos = json_pos(s->text, s->at);
    return err_set(err, ERR_PROTO, "line %u, column %u of the list: want %s", err->pos.line,
                   err->pos.column, want);
}

static void json_items_skip_space(struct json_items *s)
{
    while (s->at < s->text.n && strchr(" \t\r\n", s->text.p[s->at]) != NULL &&
           s->text.p[s->at] != '\0') {
        s->at++;
    }
}

static bool json_items_take(struct json_items *s, char c)
{
    json_items_skip_space(s);
    if (s->at < s->text.n && s->text.p[s->at] == c) {
        s->at++;
        return true;
    }
    return false;
}

/* Behind the opening quote: past the closing one. */
static bool json_items_skip_string(struct json_items *s)
{
    while (s->at < s->text.n) {
        char c = s->text.p[s->at++];
        if (c == '"') {
            return true;
        }
        if (c == '\\') {
            s->at++;
        }
    }
    return false;
}

/* Past one value, by counting brackets outside strings; its grammar is checked when the item is
 * parsed. */
static bool json_items_skip_value(struct json_items *s, struct str *ret)
{
    json_items_skip_space(s);
    size_t start = s->at;
    size_t depth = 0;
    while (s->at < s->text.n) {
        char c = s->text.p[s->at];
        if (depth == 0 && s->at > start && (c == ',' || c == '}' || c == ']')) {
            break;
        }
        s->at++;
        if (c == '"') {
            if (!json_items_skip_string(s)) {
                return false;
            }
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) {
                return false;
            }
            depth--;
        }
        if (depth == 0 && (c == '"' || c == '}' || c == ']')) {
            break;
        }
    }
    s->at = MIN(s->at, s->text.n);
    *ret = str_trim(str_sub(s->text, start, s->at - start));
    return depth == 0 && ret->n > 0;
}

/* Stands before a member of the list object: takes it, or enters "items". */
static int json_items_member(struct json_items *s, struct err *err)
{
    struct str key;
    if (s->at >= s->text.n || s->text.p[s->at] != '"' || !json_items_skip_value(s, &key) ||
        !json_items_take(s, ':')) {
        return json_items_fail(s, "a member", err);
    }
    if (str_eq(key, STR("\"items\"")) && json_items_take(s, '[')) {
        s->in_items = true;
        return 0;
    }
    struct str value;
    if (!json_items_skip_value(s, &value)) {
        return json_items_fail(s, "a value", err);
    }
    if (str_eq(key, STR("\"metadata\""))) {
        s->metadata = value;
    }
    return 0;
}

int json_items_next(struct json_items *s, struct str *ret_item, struct err *err)
{
    if (s->done) {
        return 0;
    }
    if (s->at == 0) {
        if (!json_items_take(s, '{')) {
            return json_items_fail(s, "'{'", err);
        }
    }
    for (;;) {
        bool comma = json_items_take(s, ',');
        if (!s->in_items) {
            if (!comma && json_items_take(s, '}')) {
                s->done = true;
                return 0;
            }
            json_items_skip_space(s);
            int r = json_items_member(s, err);
            if (r < 0) {
                return r;
            }
            continue;
        }
        if (!comma && json_items_take(s, ']')) {
            s->in_items = false;
            continue;
        }
        if (!json_items_skip_value(s, ret_item)) {
            return json_items_fail(s, "a whole item", err);
        }
        return 1;
    }
}
