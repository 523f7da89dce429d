#include "operation/template_expand.h"

#include "format/json_writer.h"

struct expander {
    const struct template_expand_input *in;
    struct arena *tmp;
    const struct jval *values[TEMPLATE_PARAMETERS_MAX]; /* of the template's parameters */
    struct json_writer writer;
    enum operation_payload payload;
    struct err *err;
};

/* Where a text stands. */
struct expand_place {
    const struct expand_place *parent;
    struct str key; /* empty: an element of a list */
};

/* ── Values ──────────────────────────────────────────────────────────────────────────────────── */

static int value_wrong(struct err *err, const struct template_parameter *p, const char *wanted)
{
    return err_set(err, ERR_INVALID, "parameter '" STR_FMT "': want %s", STR_ARG(p->name), wanted);
}

static int value_check_text(const struct template_parameter *p, const struct jval *v,
                            struct arena *tmp, struct err *err)
{
    bool matches = true;
    if (jval_kind(v) != JSTR) {
        return value_wrong(err, p, p->type == PARAMETER_LIST ? "a list of strings" : "a string");
    }
    if (p->pattern == NULL) {
        return 0;
    }
    int r = regex_match(p->pattern, jval_str(v), tmp, &matches, err);
    if (r < 0) {
        return err_wrap(err, "parameter '" STR_FMT "'", STR_ARG(p->name));
    }
    return matches ? 0
                   : err_set(err, ERR_INVALID,
                             "parameter '" STR_FMT "': want what matches '" STR_FMT "'",
                             STR_ARG(p->name), STR_ARG(p->pattern_text));
}

static int value_check_bounds(const struct template_parameter *p, int64_t n, struct err *err)
{
    if ((p->has_min && n < p->min) || (p->has_max && n > p->max)) {
        return err_set(err, ERR_INVALID, "parameter '" STR_FMT "': found %lld%s, want %s%lld",
                       STR_ARG(p->name), (long long)n, p->type == PARAMETER_LIST ? " elements" : "",
                       p->has_min && n < p->min ? "at least " : "at most ",
                       (long long)(p->has_min && n < p->min ? p->min : p->max));
    }
    return 0;
}

static int value_check_list(const struct template_parameter *p, const struct jval *v,
                            struct arena *tmp, struct err *err)
{
    if (jval_kind(v) != JARR) {
        return value_wrong(err, p, "a list of strings");
    }
    JVAL_EACH (v, item) {
        int r = value_check_text(p, item, tmp, err);
        if (r < 0) {
            return r;
        }
    }
    return value_check_bounds(p, v->n, err);
}

static int value_check_enum(const struct template_parameter *p, const struct jval *v,
                            struct err *err)
{
    CLEANUP(buf_done)
    struct buf list = { 0 };
    for (uint32_t i = 0; i < p->allowed.n; i++) {
        if (jval_kind(v) == JSTR && str_eq(p->allowed.items[i], jval_str(v))) {
            return 0;
        }
        buf_printf(&list, "%s" STR_FMT, i > 0 ? ", " : "", STR_ARG(p->allowed.items[i]));
    }
    return err_set(err, ERR_INVALID, "parameter '" STR_FMT "': want one of " STR_FMT,
                   STR_ARG(p->name), STR_ARG(buf_str(&list)));
}

static int value_check(const struct template_parameter *p, const struct jval *v, struct arena *tmp,
                       struct err *err)
{
    int64_t n = 0;
    if (p->secret) {
        const struct jval *ref = jval_get(v, STR("secretRef"));
        bool good = jval_str(jval_get(ref, STR("name"))).n > 0 &&
                    jval_str(jval_get(ref, STR("key"))).n > 0 && v->n == 1;
        return good ? 0 : value_wrong(err, p, "{secretRef: {name, key}}");
    }
    switch (p->type) {
    case PARAMETER_INT:
        return jval_i64(v, &n) ? value_check_bounds(p, n, err)
                               : value_wrong(err, p, "a whole number");
    case PARAMETER_BOOL:
        return jval_kind(v) == JBOOL ? 0 : value_wrong(err, p, "true or false");
    case PARAMETER_LIST:
        return value_check_list(p, v, tmp, err);
    case PARAMETER_MAP:
        return jval_kind(v) == JOBJ ? 0 : value_wrong(err, p, "a map");
    case PARAMETER_ENUM:
        return value_check_enum(p, v, err);
    case PARAMETER_STRING:
    default:
        return value_check_text(p, v, tmp, err);
    }
}

static uint32_t depth_of(const struct jval *v)
{
    uint32_t deepest = 0;
    JVAL_EACH (jval_kind(v) == JARR || jval_kind(v) == JOBJ ? v : NULL, item) {
        deepest = MAX(deepest, depth_of(item) + 1);
    }
    return deepest;
}

static int value_read(struct expander *e, uint32_t i, const struct jval *given)
{
    const struct template_parameter *p = &e->in->template->parameters[i];
    CLEANUP(buf_done)
    struct buf size = { .max = EXPAND_PARAMETER_MAX };
    const struct jval *v = jval_get(given, p->name);
    if (v == NULL && p->default_json.n == 0) {
        return err_set(e->err, ERR_INVALID,
                       "parameter '" STR_FMT "' is missing: want a value of type %s",
                       STR_ARG(p->name), parameter_type_name(p->type));
    }
    if (v == NULL) {
        int r = json_parse(p->default_json, 0, e->tmp, &v, e->err);
        if (r < 0) {
            return r;
        }
    }
    struct json_writer w = json_writer_on(&size);
    jw_val(&w, v);
    if (size.full) {
        return err_set(e->err, ERR_LIMIT, "parameter '" STR_FMT "': want at most %zu bytes",
                       STR_ARG(p->name), EXPAND_PARAMETER_MAX);
    }
    if (depth_of(v) > EXPAND_PARAMETER_DEPTH_MAX) {
        return err_set(e->err, ERR_LIMIT, "parameter '" STR_FMT "': want at most %u levels",
                       STR_ARG(p->name), EXPAND_PARAMETER_DEPTH_MAX);
    }
    e->values[i] = v;
    return value_check(p, v, e->tmp, e->err);
}

static int values_read(struct expander *e)
{
    const struct node_operation_template *t = e->in->template;
    const struct jval *given = NULL;
    int r = json_parse(e->in->parameters_json, 0, e->tmp, &given, e->err);
    if (r < 0) {
        return err_wrap(e->err, "parameters");
    }
    JVAL_EACH (given, item) {
        bool known = false;
        for (uint32_t i = 0; t != NULL && i < t->parameter_n; i++) {
            known = known || str_eq(t->parameters[i].name, jval_key(item));
        }
        if (!known) {
            return err_set(e->err, ERR_INVALID, "parameter '" STR_FMT "' is none of the template's",
                           STR_ARG(jval_key(item)));
        }
    }
    for (uint32_t i = 0; t != NULL && r == 0 && i < t->parameter_n; i++) {
        r = value_read(e, i, given);
    }
    return r;
}

/* ── Words of the machine ────────────────────────────────────────────────────────────────────── */

/* A member of the payload itself. */
static bool is_top(const struct expand_place *p)
{
    return p->parent != NULL && p->parent->parent == NULL;
}

/* Allowed are environment values and arguments of a job, and fields of resources that are no
 * references. */
static bool place_takes_words(const struct expander *e, const struct expand_place *at)
{
    bool value = false;
    bool args = false;
    for (const struct expand_place *p = at; p != NULL; p = p->parent) {
        if (str_ends(p->key, STR("From")) || str_ends(p->key, STR("Ref"))) {
            return false;
        }
        const struct expand_place *list = p->parent != NULL ? p->parent->parent : NULL;
        value = value || (str_eq(p->key, STR("value")) && list != NULL &&
                          str_eq(list->key, STR("env")) && is_top(list));
        args = args || (str_eq(p->key, STR("args")) && is_top(p));
    }
    return e->payload == PAYLOAD_RESOURCES || value || args;
}

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
            str_find_char(STR("._:/+~-"), c) == SIZE_MAX) {
            return false;
        }
    }
    return s.n <= EXPAND_WORD_MAX;
}

/* False: it is no word of a machine at all. */
static bool word_find(const struct machine *m, struct str name, struct str *ret)
{
    static const struct machine_facts unknown = { 0 };
    const struct machine_facts *f = m != NULL && m->facts != NULL ? m->facts : &unknown;
    const struct {
        struct str name;
        struct str value;
    } words[] = {
        { STR_INIT("machine.name"), m != NULL ? m->name : STR_NONE },
        { STR_INIT("facts.osId"), f->os_id },
        { STR_INIT("facts.osVersion"), f->os_version },
        { STR_INIT("facts.arch"), f->arch },
        { STR_INIT("facts.kernel"), f->kernel },
    };
    struct str key;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(words[i].name, name)) {
            *ret = words[i].value;
            return true;
        }
    }
    if (!str_cut_prefix(name, STR("machine.labels['"), &key) ||
        !str_cut_suffix(key, STR("']"), &key)) {
        return false;
    }
    *ret = STR_NONE;
    if (m != NULL && !m->label(m->label_ctx, key, ret)) {
        *ret = STR_NONE; /* a label that is not there is empty */
    }
    return true;
}

static int word_expand(struct expander *e, struct str name, const struct expand_place *at,
                       struct buf *out)
{
    struct str word = STR_NONE;
    if (!word_find(e->in->machine, name, &word)) {
        return err_set(e->err, ERR_INVALID,
                       "${" STR_FMT "}: want a parameter, version, versionTag, machine.name, "
                       "machine.labels['...'] or facts.*",
                       STR_ARG(name));
    }
    if (!place_takes_words(e, at)) {
        return err_set(e->err, ERR_DENIED,
                       "${" STR_FMT "} is a word of the machine: it may stand in values of env, in "
                       "args and in fields of resources, and not in '" STR_FMT "'",
                       STR_ARG(name), STR_ARG(at->key));
    }
    if (e->in->machine == NULL) {
        buf_printf(out, "${" STR_FMT "}", STR_ARG(name));
        return 0;
    }
    if (!is_word(word)) {
        return err_set(e->err, ERR_DENIED,
                       "${" STR_FMT "}: want at most %u letters, digits and ._:/+~-", STR_ARG(name),
                       EXPAND_WORD_MAX);
    }
    buf_add(out, word);
    return 0;
}

/* ── Texts ───────────────────────────────────────────────────────────────────────────────────── */

static const struct jval *value_find(const struct expander *e, struct str name)
{
    const struct node_operation_template *t = e->in->template;
    for (uint32_t i = 0; t != NULL && i < t->parameter_n; i++) {
        if (str_eq(t->parameters[i].name, name)) {
            return e->values[i];
        }
    }
    return NULL;
}

static int name_expand(struct expander *e, struct str name, const struct expand_place *at,
                       struct buf *out)
{
    const struct jval *v = value_find(e, name);
    bool tag = str_eq(name, STR("versionTag"));
    if (v != NULL) {
        if (jval_kind(v) == JARR || jval_kind(v) == JOBJ) {
            return err_set(e->err, ERR_INVALID,
                           "parameter '" STR_FMT "' is a list, map or secret: want ${" STR_FMT
                           "} as the whole text",
                           STR_ARG(name), STR_ARG(name));
        }
        buf_add(out, jval_kind(v) == JBOOL  ? (jval_bool(v, false) ? STR("true") : STR("false"))
                     : jval_kind(v) == JNUM ? (struct str){ .p = v->p, .n = v->n }
                                            : jval_str(v));
        return 0;
    }
    if (!tag && !str_eq(name, STR("version"))) {
        return word_expand(e, name, at, out);
    }
    if (e->in->version.n == 0) {
        return err_set(e->err, ERR_INVALID, "${" STR_FMT "}: want an operation with a version",
                       STR_ARG(name));
    }
    for (size_t i = 0; i < e->in->version.n; i++) {
        char c = e->in->version.p[i];
        buf_add_char(out, tag && c == '+' ? '-' : c); /* an image's tag has no '+' */
    }
    return 0;
}

static int text_expand(struct expander *e, struct str text, const struct expand_place *at)
{
    CLEANUP(buf_done)
    struct buf out = { .max = EXPAND_OUTPUT_MAX };
    struct str rest = text;
    int r = 0;
    while (r == 0 && rest.n > 0) {
        size_t i = str_find(rest, STR("${"));
        if (i == SIZE_MAX) {
            buf_add(&out, rest);
            break;
        }
        if (i > 0 && rest.p[i - 1] == '$') {
            buf_add(&out, str_sub(rest, 0, i - 1));
            buf_add(&out, STR("${"));
            rest = str_sub(rest, i + 2, rest.n - i - 2);
            continue;
        }
        size_t end = str_find_char(str_sub(rest, i, rest.n - i), '}');
        if (end == SIZE_MAX) {
            return err_set(e->err, ERR_INVALID, "'" STR_FMT "': want a '}' behind '${', or '$${'",
                           STR_ARG(at->key));
        }
        buf_add(&out, str_sub(rest, 0, i));
        r = name_expand(e, str_sub(rest, i + 2, end - 2), at, &out);
        rest = str_sub(rest, i + end + 1, rest.n - i - end - 1);
    }
    if (r == 0 && out.full) {
        return err_set(e->err, ERR_LIMIT, "want at most %zu bytes after expansion",
                       EXPAND_OUTPUT_MAX);
    }
    if (r == 0) {
        jw_str(&e->writer, buf_str(&out));
    }
    return r;
}

/* The parameter whose name is the whole text. */
static const struct jval *whole_value(const struct expander *e, struct str text)
{
    struct str name;
    bool whole = str_cut_prefix(text, STR("${"), &name) && str_cut_suffix(name, STR("}"), &name);
    return whole ? value_find(e, name) : NULL;
}

static int value_expand(struct expander *e, const struct jval *v, const struct expand_place *at)
{
    int r = 0;
    if (e->writer.out->full) {
        return err_set(e->err, ERR_LIMIT, "want at most %zu bytes after expansion",
                       EXPAND_OUTPUT_MAX);
    }
    if (e->writer.depth > EXPAND_DEPTH_MAX) {
        return err_set(e->err, ERR_LIMIT, "want at most %u levels", EXPAND_DEPTH_MAX);
    }
    switch (jval_kind(v)) {
    case JSTR: {
        const struct jval *whole = whole_value(e, jval_str(v));
        if (whole != NULL || str_eq(at->key, STR("script"))) {
            jw_val(&e->writer, whole != NULL && !str_eq(at->key, STR("script")) ? whole : v);
            return 0;
        }
        return text_expand(e, jval_str(v), at);
    }
    case JARR:
        jw_arr(&e->writer);
        for (const struct jval *i = jval_first(v); r == 0 && i != NULL; i = jval_next(v, i)) {
            r = value_expand(e, i, &(struct expand_place){ .parent = at });
        }
        if (r == 0) {
            jw_arr_end(&e->writer);
        }
        return r;
    case JOBJ:
        jw_obj(&e->writer);
        for (const struct jval *i = jval_first(v); r == 0 && i != NULL; i = jval_next(v, i)) {
            jw_key(&e->writer, jval_key(i));
            r = value_expand(e, i, &(struct expand_place){ .parent = at, .key = jval_key(i) });
        }
        if (r == 0) { /* the document of a failure ends where it is */
            jw_obj_end(&e->writer);
        }
        return r;
    case JNULL:
    case JBOOL:
    case JNUM:
    default:
        jw_val(&e->writer, v);
        return 0;
    }
}

static int json_expand(const struct template_expand_input *in, struct str json, struct arena *out,
                       struct str *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { .max = EXPAND_OUTPUT_MAX };
    const struct node_operation_template *t = in->template;
    struct expander e = { .in = in,
                          .tmp = &tmp,
                          .writer = json_writer_on(&text),
                          .payload = t != NULL ? t->payload : in->payload,
                          .err = err };
    const struct jval *payload = NULL;
    int r = json_parse(json, 0, &tmp, &payload, err);
    if (r == 0) {
        r = values_read(&e);
    }
    if (r == 0) {
        r = value_expand(&e, payload, &(struct expand_place){ 0 });
    }
    if (r == 0 && text.full) {
        r = err_set(err, ERR_LIMIT, "want at most %zu bytes after expansion", EXPAND_OUTPUT_MAX);
    }
    if (r < 0) {
        return r;
    }
    *ret = arena_str(out, buf_str(&text));
    return 0;
}

int template_expand(const struct template_expand_input *in, struct arena *out, struct str *ret,
                    struct err *err)
{
    return json_expand(in, in->template != NULL ? in->template->payload_json : in->payload_json,
                       out, ret, err);
}

int template_expand_defaults(const struct template_expand_input *in, struct arena *out,
                             struct str *ret, struct err *err)
{
    ASSERT(in->template != NULL);
    struct template_expand_input plain = *in;
    plain.machine = NULL; /* all machines have the same */
    return json_expand(&plain, in->template->defaults_json, out, ret, err);
}

/* ── Variables ───────────────────────────────────────────────────────────────────────────────── */

/* "DD_MIN_FREE" for minFree. Each capital is a word of its own: so no two names are one variable.
 */
static struct str variable_name(struct str name, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_add(&text, STR("DD_"));
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c >= 'A' && c <= 'Z') {
            buf_add_char(&text, '_');
        }
        buf_add_char(&text, c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
    }
    return arena_str(out, buf_str(&text));
}

/* A value, or one of several that stand in a line each. */
static int variable_add(const struct template_parameter *p, const struct jval *v, bool line,
                        struct buf *out, struct err *err)
{
    struct str text = jval_str(v);
    if (line && str_find_char(text, '\n') != SIZE_MAX) {
        return value_wrong(err, p, "values without line breaks");
    }
    if (str_find_char(text, '\0') != SIZE_MAX) {
        return value_wrong(err, p, "a text without NUL");
    }
    if (jval_kind(v) == JSTR) {
        buf_add(out, text);
    } else {
        struct json_writer w = json_writer_on(out);
        jw_val(&w, v);
    }
    return 0;
}

static int variable_print(const struct template_parameter *p, const struct jval *v, struct buf *out,
                          struct err *err)
{
    bool map = jval_kind(v) == JOBJ;
    bool first = true;
    if (!map && jval_kind(v) != JARR) {
        return variable_add(p, v, /* line= */ false, out, err);
    }
    JVAL_EACH (v, item) {
        struct str key = map ? jval_key(item) : STR_NONE;
        if (str_find_char(key, '\n') != SIZE_MAX || str_find_char(key, '\0') != SIZE_MAX) {
            return value_wrong(err, p, "names without line breaks");
        }
        buf_add(out, first ? STR_NONE : STR("\n"));
        buf_printf(out, STR_FMT "%s", STR_ARG(key), map ? "=" : "");
        int r = variable_add(p, item, /* line= */ true, out, err);
        if (r < 0) {
            return r;
        }
        first = false;
    }
    return 0;
}

int template_variables(const struct template_expand_input *in, struct arena *out,
                       const struct run_job_parameter **ret, uint32_t *ret_n, struct err *err)
{
    ASSERT(in->template != NULL);
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct node_operation_template *t = in->template;
    struct expander e = { .in = in, .tmp = &tmp, .err = err };
    struct run_job_parameter *items = ARENA_ARRAY(out, struct run_job_parameter, t->parameter_n);
    size_t bytes = 0;
    uint32_t n = 0;
    int r = values_read(&e);
    for (uint32_t i = 0; r == 0 && i < t->parameter_n; i++) {
        CLEANUP(buf_done)
        struct buf text = { .max = EXPAND_OUTPUT_MAX };
        struct run_job_parameter *item = &items[n++];
        *item = (struct run_job_parameter){ .name = variable_name(t->parameters[i].name, out) };
        if (t->parameters[i].secret) {
            item->secret = arena_str(out, jval_str(jval_at(e.values[i], "secretRef.name")));
            item->secret_key = arena_str(out, jval_str(jval_at(e.values[i], "secretRef.key")));
            continue;
        }
        r = variable_print(&t->parameters[i], e.values[i], &text, err);
        bytes += text.n;
        if (r == 0 && (text.full || bytes > EXPAND_OUTPUT_MAX)) {
            r = err_set(err, ERR_LIMIT, "want at most %zu bytes of parameters", EXPAND_OUTPUT_MAX);
        }
        item->value = arena_str(out, buf_str(&text));
    }
    if (r < 0) {
        return r;
    }
    *ret = items;
    *ret_n = n;
    return 0;
}
