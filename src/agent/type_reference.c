#include "agent/type_reference.h"

#include "agent/resource.h"

static void add_sentence(const char *text, struct buf *out)
{
    char first = text[0];
    buf_add_char(out, first >= 'a' && first <= 'z' ? (char)(first - 'a' + 'A') : first);
    buf_printf(out, "%s.\n", text + 1);
}

/* A table's cell: its bars would end it. */
static void add_cell(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '|') {
            buf_add_char(out, '\\');
        }
        buf_add_char(out, text.p[i]);
    }
}

static void add_fields(const struct field_table *table, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    buf_add(out, STR("\n| field | holds | default | meaning |\n|---|---|---|---|\n"));
    for (uint32_t i = 0; i < table->n; i++) {
        const struct field *field = &table->items[i];
        buf_printf(out, "| `%s` | ", field->name);
        add_cell(field_wanted(field, &tmp), out);
        buf_add(out, STR(" | "));
        if (field->required) {
            buf_add(out, STR("**required**"));
        } else if (field->initial != NULL) {
            buf_printf(out, "`%s`", field->initial);
        }
        buf_add(out, STR(" | "));
        add_cell(str_from(field->help), out);
        buf_add(out, STR(" |\n"));
    }
}

static void add_type(const struct resource_type *type, struct buf *out)
{
    buf_printf(out, "\n## %s\n\n", type->name);
    add_sentence(type->help, out);
    buf_printf(out, "\n```yaml\nresources:\n- {name: example, type: %s, %s}\n```\n", type->name,
               type->example);
    add_fields(&type->fields, out);
}

void type_reference_print(struct buf *out)
{
    buf_add(out,
            STR("# Resources\n\n"
                "<!-- Made by `drydock-agent --reference`; a test compares. -->\n\n"
                "Every type of resource that [drydock-agent](agent.md) knows, with its fields. "
                "Beside these each resource has a `name`, a `type`, the lists `requires` and "
                "`notifies` with names of others, and `meta`.\n\n"
                "## meta\n\nHow a resource is handled.\n"));
    add_fields(&resource_meta_fields, out);
    for (const struct resource_type *const *t = resource_types; *t != NULL; t++) {
        add_type(*t, out);
    }
}
