#include "format/json_items.h"

void jsplit_init(struct jsplit *s, struct str list)
{
    *s = (struct jsplit){ .text = list };
}

static int jsplit_fail(const struct jsplit *s, const char *want, struct err *err)
{
    err->pos = json_pos(s->text, s->at);
    return err_set(err, ERR_PROTO, "line %u, column %u of the list: want %s", err->pos.line,
                   err->pos.column, want);
}

static void jsplit_skip_space(struct jsplit *s)
{
    while (s->at < s->text.n && strchr(" \t\r\n", s->text.p[s->at]) != NULL &&
           s->text.p[s->at] != '\0') {
        s->at++;
    }
}

static bool jsplit_take(struct jsplit *s, char c)
{
    jsplit_skip_space(s);
    if (s->at < s->text.n && s->text.p[s->at] == c) {
        s->at++;
        return true;
    }
    return false;
}

/* Behind the opening quote: past the closing one. */
static bool jsplit_skip_string(struct jsplit *s)
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
static bool jsplit_skip_value(struct jsplit *s, struct str *ret)
{
    jsplit_skip_space(s);
    size_t start = s->at;
    size_t depth = 0;
    while (s->at < s->text.n) {
        char c = s->text.p[s->at];
        if (depth == 0 && s->at > start && (c == ',' || c == '}' || c == ']')) {
            break;
        }
        s->at++;
        if (c == '"') {
            if (!jsplit_skip_string(s)) {
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
static int jsplit_member(struct jsplit *s, struct err *err)
{
    struct str key;
    if (s->at >= s->text.n || s->text.p[s->at] != '"' || !jsplit_skip_value(s, &key) ||
        !jsplit_take(s, ':')) {
        return jsplit_fail(s, "a member", err);
    }
    if (str_eq(key, STR("\"items\"")) && jsplit_take(s, '[')) {
        s->in_items = true;
        return 0;
    }
    struct str value;
    if (!jsplit_skip_value(s, &value)) {
        return jsplit_fail(s, "a value", err);
    }
    if (str_eq(key, STR("\"metadata\""))) {
        s->metadata = value;
    }
    return 0;
}

int jsplit_next(struct jsplit *s, struct str *ret_item, struct err *err)
{
    if (s->done) {
        return 0;
    }
    if (s->at == 0) {
        if (!jsplit_take(s, '{')) {
            return jsplit_fail(s, "'{'", err);
        }
    }
    for (;;) {
        bool comma = jsplit_take(s, ',');
        if (!s->in_items) {
            if (!comma && jsplit_take(s, '}')) {
                s->done = true;
                return 0;
            }
            jsplit_skip_space(s);
            int r = jsplit_member(s, err);
            if (r < 0) {
                return r;
            }
            continue;
        }
        if (!comma && jsplit_take(s, ']')) {
            s->in_items = false;
            continue;
        }
        if (!jsplit_skip_value(s, ret_item)) {
            return jsplit_fail(s, "a whole item", err);
        }
        return 1;
    }
}
