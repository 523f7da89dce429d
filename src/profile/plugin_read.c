/* Reads the configuration of a plugin by its keys in plugin_table.c, and checks the values. */
#include "base/base64.h"
#include "base/duration.h"
#include "calendar/window.h"
#include "format/template.h"
#include "profile/plugin_table.h"

static const char *const wanted[] = {
    [PLUGIN_TEXT] = "a text that is not empty",
    [PLUGIN_TEMPLATE] = "a template that is not empty",
    [PLUGIN_CHOICE] = NULL, /* its own words */
    [PLUGIN_BOOL] = "true or false",
    [PLUGIN_INT] = "an integer other than 0",
    [PLUGIN_DURATION] = "a duration such as 1h30m",
    [PLUGIN_SPAN] = "a duration such as 1h30m",
    [PLUGIN_CLOCK] = "a time such as '22:00'",
    [PLUGIN_CRON] = "a pattern such as '0 22 * * mon'",
    [PLUGIN_TEXTS] = "a list that is not empty",
    [PLUGIN_WEEKDAYS] = "weekdays such as [mon, fri]",
    [PLUGIN_DATES] = "days such as [Jan 1]",
};

static int read_choice(const struct plugin_key *key, struct str text, struct err *err)
{
    struct str rest = str_from(key->choices);
    struct str piece;
    while (str_split_next(&rest, '|', &piece)) {
        if (str_eq(piece, text)) {
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "found '" STR_FMT "', want one of %s",
                   STR_ARG(str_sub(text, 0, MIN(text.n, (size_t)64))), key->choices);
}

/* What a text means beyond being one. */
static int read_text(const struct plugin_key *key, struct str text, struct arena *out,
                     struct plugin_value *ret, struct err *err)
{
    uint32_t second = 0;
    int result = 0;
    switch (key->type) {
    case PLUGIN_CHOICE:
        return read_choice(key, text, err);
    case PLUGIN_SPAN:
        if (duration_parse(text, &ret->number, err) < 0) {
            return err_set(err, ERR_INVALID, "found '" STR_FMT "', want %s",
                           STR_ARG(str_sub(text, 0, MIN(text.n, (size_t)64))), wanted[PLUGIN_SPAN]);
        }
        return 0;
    case PLUGIN_CLOCK:
        result = day_parse_clock(text, &second, err);
        ret->number = second;
        return result;
    case PLUGIN_CRON:
        ret->cron = ARENA_NEW(out, struct cron);
        return cron_parse(text, ret->cron, err);
    default:
        return 0;
    }
}

static int read_items(const struct plugin_key *key, struct arena *out, struct plugin_value *ret,
                      struct err *err)
{
    int result = 0;
    if (key->type == PLUGIN_DATES) {
        ret->dates = ARENA_ARRAY(out, struct day_date, ret->item_n + 1);
    }
    for (uint32_t i = 0; result == 0 && i < ret->item_n; i++) {
        int weekday = 0;
        if (key->type == PLUGIN_WEEKDAYS) {
            result = day_parse_weekday(ret->items[i], &weekday, err);
            ret->number |= INT64_C(1) << weekday;
        } else if (key->type == PLUGIN_DATES) {
            result = day_parse_date(ret->items[i], &ret->dates[i], err);
        }
    }
    return result;
}

/* Messages are logged, so they do not show what a variable holds: it may be a secret. */
static int hide_variable(const struct plugin_key *key, const struct ucfg_value *v, int result,
                         struct err *err)
{
    bool variable = v != NULL && v->kind == UCFG_VALUE_VARIABLES;
    for (uint32_t i = 0; v != NULL && i < v->item_n; i++) {
        variable = variable || v->items[i]->kind == UCFG_VALUE_VARIABLES;
    }
    if (result == 0 || !variable) {
        return result;
    }
    return err_set(err, ERR_INVALID, "found something else behind its variable, want %s",
                   key->choices != NULL ? key->choices : wanted[key->type]);
}

/* Converts; `v` may be the default of the table. */
static int read_value(const struct plugin_key *key, const struct ucfg *u,
                      const struct ucfg_value *v, struct plugin_value *ret, struct err *err)
{
    struct ucfg_strs strs = { 0 };
    int result;
    switch (key->type) {
    case PLUGIN_BOOL:
        return ucfg_bool(u, v, &ret->truth, err);
    case PLUGIN_INT:
        return ucfg_int(u, v, &ret->number, err);
    case PLUGIN_DURATION:
        return ucfg_duration(u, v, &ret->number, err);
    case PLUGIN_TEXTS:
    case PLUGIN_WEEKDAYS:
    case PLUGIN_DATES:
        result = ucfg_strs(u, v, &strs, err);
        ret->items = strs.items;
        ret->item_n = strs.n;
        return result < 0 ? result : hide_variable(key, v, read_items(key, u->out, ret, err), err);
    case PLUGIN_TEXT:
    case PLUGIN_TEMPLATE:
    case PLUGIN_CHOICE:
    case PLUGIN_SPAN:
    case PLUGIN_CLOCK:
    case PLUGIN_CRON:
        break;
    }
    result = ucfg_str(u, v, &ret->text, err);
    if (result < 0 || ret->text.n == 0) {
        return result; /* whether it may be empty is asked elsewhere */
    }
    return hide_variable(key, v, read_text(key, ret->text, u->out, ret, err), err);
}

/* As go-ucfg understands "required": a list of one empty text was an empty text. */
static bool is_empty(const struct plugin_key *key, const struct ucfg_value *v,
                     const struct plugin_value *value)
{
    switch (key->type) {
    case PLUGIN_BOOL:
        return false;
    case PLUGIN_INT:
    case PLUGIN_DURATION:
        return value->number == 0;
    case PLUGIN_TEXTS:
    case PLUGIN_WEEKDAYS:
    case PLUGIN_DATES:
        return value->item_n == 0 || (v != NULL && v->kind != UCFG_VALUE_OBJ &&
                                      value->item_n == 1 && value->items[0].n == 0);
    default:
        return value->text.n == 0;
    }
}

static const struct ucfg_value *find_key(const struct ucfg_value *config, const char *key)
{
    struct str outer;
    struct str inner;
    if (str_cut(str_from(key), STR("."), &outer, &inner)) {
        return ucfg_get(ucfg_get(config, outer), inner);
    }
    return ucfg_get(config, str_from(key));
}

static bool is_given(const struct ucfg_value *config, const char *key)
{
    const struct ucfg_value *v = key != NULL ? find_key(config, key) : NULL;
    return v != NULL && v->kind != UCFG_VALUE_NULL;
}

/* A template that cannot be read fails when its message is due, as it does for the original; a
 * file that has one serves its nodes nevertheless. */
static void check_template(const struct plugin_key *key, const struct ucfg *u,
                           const struct ucfg_value *v, const struct plugin_value *value,
                           struct problems *problems)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct template *ignored = NULL;
    if (template_parse(value->text, &tmp, &ignored, &err) == 0) {
        return;
    }
    if (v->kind == UCFG_VALUE_VARIABLES) {
        (void)err_set(&err, ERR_INVALID, "found no template behind its variables");
    }
    problems_warn(problems, v->pos.line > 0 ? ucfg_place(u, v, value->text, err.pos) : value->pos,
                  "key '%s': %s; the message cannot be sent", key->name, err.msg);
}

static void read_key(const struct plugin_key *key, const struct ucfg *u,
                     const struct ucfg_value *config, struct plugin_value *ret,
                     struct problems *problems)
{
    struct err err = { 0 };
    const struct ucfg_value *v = find_key(config, key->name);
    struct ucfg_value initial = { .kind = UCFG_VALUE_STR,
                                  .text = str_from(key->initial != NULL ? key->initial : "") };
    ret->given = is_given(config, key->name);
    ret->pos = ret->given && v->pos.line > 0 ? v->pos : ret->pos;
    if (!ret->given && key->initial != NULL) {
        int result = read_value(key, u, &initial, ret, &err);
        ASSERT(result == 0);
        return;
    }
    bool required = key->required && !is_given(config, key->unless);
    bool failed = read_value(key, u, v, ret, &err) < 0;
    bool empty = !failed && is_empty(key, v, ret);
    if (failed && !(required && v != NULL && v->kind == UCFG_VALUE_STR && v->text.n == 0)) {
        problems_add(problems, ret->pos, "key '%s': %s", key->name, err.msg);
    } else if (failed || (required && empty)) {
        problems_add(problems, ret->pos, "key '%s': found %s, want %s", key->name,
                     !ret->given                                               ? "nothing"
                     : key->type == PLUGIN_INT || key->type == PLUGIN_DURATION ? "0"
                                                                               : "it empty",
                     key->choices != NULL ? key->choices : wanted[key->type]);
    } else if (key->type == PLUGIN_TEMPLATE && !empty) {
        check_template(key, u, v, ret, problems);
    }
}

/* What a window must be as a whole. */
static void check_window(const struct plugin *p, const struct plugin_value *values,
                         struct problems *problems)
{
    struct err err = { 0 };
    const struct plugin_value *cron = plugin_get(p, values, "cron");
    const struct plugin_value *duration = plugin_get(p, values, "duration");
    const struct plugin_value *end = plugin_get(p, values, "end");
    struct window window = { .weekdays = (uint8_t)plugin_get(p, values, "weekdays")->number,
                             .overnight = plugin_get(p, values, "overnight")->truth,
                             .open = (uint32_t)plugin_get(p, values, "start")->number,
                             .close = (uint32_t)end->number };
    if (cron->given) {
        if (duration->number <= 0) {
            problems_add(problems, duration->given ? duration->pos : cron->pos,
                         "key 'duration': found nothing above 0, want how long 'cron' opens");
        }
        if (end->given || plugin_get(p, values, "start")->given) {
            problems_add(problems, cron->pos,
                         "key 'cron': found 'start' or 'end' beside it, want one of both");
        }
    } else if (window_check(&window, &err) < 0) {
        problems_add(problems, end->pos, "key 'end': %s", err.msg);
    }
}

/* What goes into the request line and the headers as it is. */
static void check_webhook(const struct plugin *p, const struct plugin_value *values,
                          struct problems *problems)
{
    const struct plugin_value *url = plugin_get(p, values, "url");
    const struct plugin_value *headers = plugin_get(p, values, "headers");
    const struct plugin_value *method = plugin_get(p, values, "method");
    const struct plugin_value *timeout = plugin_get(p, values, "timeout");
    const struct plugin_value *secret = plugin_get(p, values, "secret");
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str key;
    if (str_cut_prefix(secret->text, WEBHOOK_SECRET_PREFIX, &key) &&
        !base64_decode(key, &tmp, &key)) {
        problems_add(problems, secret->pos,
                     "key 'secret': found something else behind 'whsec_', want base64");
    }
    if (!str_starts(url->text, STR("http://")) && !str_starts(url->text, STR("https://"))) {
        problems_add(problems, url->pos,
                     "key 'url': found something else, want http://… or "
                     "https://…");
    }
    for (size_t i = 0; i < method->text.n; i++) {
        if (method->text.p[i] < 'A' || method->text.p[i] > 'Z') {
            problems_add(problems, method->pos,
                         "key 'method': found something else, want a "
                         "method such as POST");
            break;
        }
    }
    for (uint32_t i = 0; i < headers->item_n; i++) {
        struct str name;
        struct str value;
        if (!str_cut(headers->items[i], STR(":"), &name, &value) || str_trim(name).n == 0 ||
            str_find_char(headers->items[i], '\n') != SIZE_MAX) {
            problems_add(problems, headers->pos,
                         "key 'headers': found something else at %u, want 'Name: value'", i + 1);
        }
    }
    if (timeout->number <= 0) {
        problems_add(problems, timeout->pos,
                     "key 'timeout': found nothing above 0, want a "
                     "duration such as 30s");
    }
}

/* What Go's YAML library makes of a value. */
static const char *go_type(const struct ucfg_value *v)
{
    switch (v->kind) {
    case UCFG_VALUE_BOOL:
        return "bool";
    case UCFG_VALUE_INT:
        return "int64";
    case UCFG_VALUE_UINT:
        return "uint64";
    case UCFG_VALUE_FLOAT:
        return "float64";
    case UCFG_VALUE_STR:
    case UCFG_VALUE_VARIABLES:
        return "string";
    case UCFG_VALUE_OBJ:
        return v->list ? "[]interface {}" : "map[string]interface {}";
    case UCFG_VALUE_NULL:
        break;
    }
    return "nil";
}

/* The Go type of a field; empty: there is no such field. */
static struct str field_type(const struct plugin *p, struct str name)
{
    for (uint32_t i = 0; i < p->key_n; i++) {
        if (str_eq(str_from(p->keys[i].name), name)) {
            return p->keys[i].type == PLUGIN_BOOL ? STR("bool") : STR("string");
        }
    }
    struct str rest = str_from(p->others);
    struct str piece;
    struct str field;
    struct str type;
    while (str_split_next(&rest, '|', &piece)) {
        if (str_cut(piece, STR(":"), &field, &type) && str_eq(field, name)) {
            return type;
        }
    }
    return STR_NONE;
}

static void check_fields(const struct plugin *p, const struct ucfg *u,
                         const struct ucfg_value *config, struct problems *problems)
{
    for (uint32_t i = 0; config != NULL && i < config->member_n; i++) {
        const struct ucfg_value_member *member = &config->members[i];
        struct str name = str_sub(member->name, 0, MIN(member->name.n, (size_t)64));
        struct str type = field_type(p, member->name);
        struct ucfg_value is = *member->value;
        struct err err = { 0 };
        if (type.n == 0) {
            problems_add(problems, member->pos, "field " STR_FMT " not found in %s", STR_ARG(name),
                         p->fields_of);
        } else if (ucfg_resolve(u, member->value, &is, &err) < 0) {
            problems_add(problems, member->value->pos, "key '" STR_FMT "': %s", STR_ARG(name),
                         err.msg);
        } else if (!str_eq(type, str_from(go_type(&is)))) {
            problems_add(problems, member->value->pos,
                         "field " STR_FMT " has incorrect type: expected " STR_FMT ", got %s",
                         STR_ARG(name), STR_ARG(type), go_type(&is));
        }
    }
}

struct plugin_value *plugin_read(const struct plugin *p, const struct ucfg *u,
                                 const struct ucfg_value *config, struct pos at,
                                 struct problems *problems)
{
    struct plugin_value *values = ARENA_ARRAY(u->out, struct plugin_value, p->key_n + 1);
    uint32_t before = problems->errors;
    if (p->fields_of != NULL) {
        check_fields(p, u, config, problems);
        if (problems->errors > before) {
            return values;
        }
    }
    for (uint32_t i = 0; i < p->key_n; i++) {
        values[i].pos = at;
        read_key(&p->keys[i], u, config, &values[i], problems);
    }
    if (problems->errors == before && str_eq(str_from(p->name), STR("timeWindow"))) {
        check_window(p, values, problems);
    } else if (problems->errors == before && str_eq(str_from(p->name), STR("webhook"))) {
        check_webhook(p, values, problems);
    }
    return values;
}
