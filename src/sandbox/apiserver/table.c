#include "sandbox/apiserver/table.h"

#include "base/timestamp.h"
#include "format/jsonpath.h"
#include "sandbox/apiserver/table_cells.h"
#include "sandbox/apiserver/table_columns.h"

bool table_include_parse(struct str text, enum table_include *ret)
{
    static const char *const names[] = { "Metadata", "Object", "None" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(text, str_from(names[i])) || text.n == 0) {
            *ret = (enum table_include)i;
            return true;
        }
    }
    return false;
}

struct str table_age(struct arena *out, usec_t span)
{
    long long s = (long long)(span / SECONDS(1));
    long long minutes = s / 60;
    long long hours = minutes / 60;
    long long days = hours / 24;
    if (s < -1) {
        return STR("<invalid>");
    }
    if (s < 120) {
        return arena_printf(out, "%llds", s < 0 ? 0 : s);
    }
    if (minutes < 10 && s % 60 != 0) {
        return arena_printf(out, "%lldm%llds", minutes, s % 60);
    }
    if (minutes < 180) {
        return arena_printf(out, "%lldm", minutes);
    }
    if (hours < 8 && minutes % 60 != 0) {
        return arena_printf(out, "%lldh%lldm", hours, minutes % 60);
    }
    if (hours < 48) {
        return arena_printf(out, "%lldh", hours);
    }
    if (hours < 192 && hours % 24 != 0) {
        return arena_printf(out, "%lldd%lldh", days, hours % 24);
    }
    if (days < 730) {
        return arena_printf(out, "%lldd", days);
    }
    if (days < 2920 && days % 365 != 0) {
        return arena_printf(out, "%lldy%lldd", days / 365, days % 365);
    }
    return arena_printf(out, "%lldy", days / 365);
}

struct str table_age_since(struct arena *out, const struct tree *time, usec_t wall)
{
    struct timestamp stamp;
    struct err err;
    if (tree_text(time).n == 0 || timestamp_parse(tree_text(time), &stamp, &err) < 0) {
        return STR("<unknown>");
    }
    return table_age(out, wall - timestamp_to_usec(stamp));
}

static void column_add(struct arena *a, struct tree *list, const struct table_column *column,
                       struct str description)
{
    struct tree *c = tree_obj(a);
    tree_set(a, c, STR("name"), tree_str(a, str_from(column->name)));
    tree_set(a, c, STR("type"), tree_str(a, str_from(column->type)));
    tree_set(a, c, STR("format"), tree_str(a, str_from(column->format)));
    tree_set(a, c, STR("description"), tree_str(a, description));
    tree_set(a, c, STR("priority"), tree_i64(a, column->priority));
    tree_add(list, c);
}

static const struct table_column *column_find(struct str group, struct str plural, const char *name)
{
    for (uint32_t i = 0; i < table_columns_n; i++) {
        if (str_eq(group, str_from(table_columns[i].group)) &&
            str_eq(plural, str_from(table_columns[i].plural)) &&
            (name == NULL || strcmp(name, table_columns[i].name) == 0)) {
            return &table_columns[i];
        }
    }
    return NULL;
}

/* Name and age are described as those of namespaces are. */
static const struct table_column *column_common(const char *name)
{
    const struct table_column *column = column_find(STR(""), STR("namespaces"), name);
    ASSERT(column != NULL);
    return column;
}

static const struct tree *table_custom_columns(const struct kind *kind)
{
    const struct tree *list = tree_get(kind->version_spec, STR("additionalPrinterColumns"));
    return list != NULL && list->n > 0 ? list : NULL;
}

static void table_columns_add_custom(struct arena *a, const struct kind *kind, struct tree *list)
{
    column_add(a, list, column_common("Name"), str_from(column_common("Name")->description));
    if (table_custom_columns(kind) == NULL) {
        struct table_column age = *column_common("Age");
        age.type = "date";
        column_add(a, list, &age, str_from(age.description));
    }
    TREE_EACH (table_custom_columns(kind), c) {
        int64_t priority = 0;
        (void)tree_number(tree_get(c, STR("priority")), &priority); /* absent is 0 */
        struct table_column column = {
            .name = arena_str(a, tree_text_at(c, "name")).p,
            .type = arena_str(a, tree_text_at(c, "type")).p,
            .format = arena_str(a, tree_text_at(c, "format")).p,
            .priority = (int)priority,
        };
        struct str description = tree_text_at(c, "description");
        if (description.n == 0) {
            description = arena_concat(a, STR("what is at "), tree_text_at(c, "jsonPath"));
        }
        column_add(a, list, &column, description);
    }
}

static struct tree *table_columns_of_kind(struct arena *a, const struct kind *kind)
{
    struct tree *list = tree_arr(a);
    const struct table_column *first = column_find(kind->group, kind->plural, NULL);
    if (kind_is(kind, KIND_CUSTOM)) {
        table_columns_add_custom(a, kind, list);
    } else if (first == NULL) {
        column_add(a, list, column_common("Name"), str_from(column_common("Name")->description));
        column_add(a, list, column_common("Age"), str_from(column_common("Age")->description));
    } else {
        for (const struct table_column *c = first; c < table_columns + table_columns_n; c++) {
            if (!str_eq(kind->group, str_from(c->group)) ||
                !str_eq(kind->plural, str_from(c->plural))) {
                break;
            }
            column_add(a, list, c, str_from(c->description));
        }
    }
    return list;
}

struct tree *table_new(struct arena *a, const struct table_spec *spec, const struct tree *metadata)
{
    struct tree *table = tree_obj(a);
    tree_set(a, table, STR("kind"), tree_str(a, STR("Table")));
    tree_set(a, table, STR("apiVersion"), tree_str(a, STR("meta.k8s.io/v1")));
    tree_set(a, table, STR("metadata"), metadata != NULL ? tree_clone(a, metadata) : tree_obj(a));
    tree_set(a, table, STR("columnDefinitions"),
             spec->no_columns ? tree_null(a) : table_columns_of_kind(a, spec->kind));
    tree_set(a, table, STR("rows"), tree_arr(a));
    return table;
}

struct tree *table_metadata(struct arena *a, const struct tree *object)
{
    struct tree *partial = tree_obj(a);
    const struct tree *metadata = tree_get(object, STR("metadata"));
    tree_set(a, partial, STR("kind"), tree_str(a, STR("PartialObjectMetadata")));
    tree_set(a, partial, STR("apiVersion"), tree_str(a, STR("meta.k8s.io/v1")));
    tree_set(a, partial, STR("metadata"), metadata != NULL ? tree_clone(a, metadata) : tree_obj(a));
    return partial;
}

static void cells_custom_column(struct cells *c, const struct tree *column)
{
    struct str type = tree_text_at(column, "type");
    const struct tree *value = jsonpath_find(c->object, tree_text_at(column, "jsonPath"));
    struct tree *cell = tree_null(c->a);
    double f;
    enum jkind kind = tree_kind(value);
    if (value == NULL || kind == JNULL) {
        tree_add(c->row, cell);
        return;
    }
    if (str_eq(type, STR("string"))) {
        struct str text = kind == JSTR ? value->text : tree_json(c->a, value);
        cell = tree_str(c->a, text);
    } else if (str_eq(type, STR("date"))) {
        struct str age = table_age_since(c->a, value, c->wall);
        cell = tree_str(c->a, str_eq(age, STR("<unknown>")) ? STR("<invalid>") : age);
    } else if ((str_eq(type, STR("boolean")) && kind == JBOOL) ||
               (str_eq(type, STR("number")) && kind == JNUM)) {
        cell = tree_clone(c->a, value);
    } else if (str_eq(type, STR("integer")) && kind == JNUM && str_to_f64(value->text, &f)) {
        int64_t n;
        cell = tree_i64(c->a, tree_number(value, &n) ? n : (int64_t)MAX(MIN(f, 9e18), -9e18));
    }
    tree_add(c->row, cell);
}

static void table_row_conditions(struct arena *a, struct tree *row, const struct tree *object)
{
    struct str phase = tree_text_at(object, "status.phase");
    bool failed = str_eq(phase, STR("Failed"));
    if (!failed && !str_eq(phase, STR("Succeeded"))) {
        return;
    }
    struct tree *condition = tree_obj(a);
    tree_set(a, condition, STR("type"), tree_str(a, STR("Completed")));
    tree_set(a, condition, STR("status"), tree_str(a, STR("True")));
    tree_set(a, condition, STR("reason"), tree_str(a, phase));
    tree_set(
        a, condition, STR("message"),
        tree_str(a, failed ? STR("The pod failed.") : STR("The pod has completed successfully.")));
    struct tree *list = tree_arr(a);
    tree_add(list, condition);
    tree_set(a, row, STR("conditions"), list);
}

void table_add(struct arena *a, const struct table_spec *spec, struct tree *table,
               const struct tree *object)
{
    struct tree *row = tree_obj(a);
    struct cells cells = { .a = a, .wall = spec->wall, .row = tree_arr(a), .object = object };
    tree_set(a, row, STR("cells"), cells.row);
    if (kind_is(spec->kind, KIND_CUSTOM) && table_custom_columns(spec->kind) != NULL) {
        cells_name(&cells);
        TREE_EACH (table_custom_columns(spec->kind), column) {
            cells_custom_column(&cells, column);
        }
    } else if (kind_is(spec->kind, KIND_CUSTOM) || !cells_add_kind(&cells, spec->kind)) {
        cells_name(&cells);
        cells_age(&cells);
    }
    if (spec->kind->group.n == 0 && str_eq(spec->kind->plural, STR("pods"))) {
        table_row_conditions(a, row, object);
    }
    struct tree *shown = tree_null(a);
    if (spec->include == TABLE_INCLUDE_METADATA) {
        shown = table_metadata(a, object);
    } else if (spec->include == TABLE_INCLUDE_OBJECT) {
        shown = tree_clone(a, object);
    }
    tree_set(a, row, STR("object"), shown);
    tree_add(tree_get(table, STR("rows")), row);
}
