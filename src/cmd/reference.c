#include "cmd/reference.h"

#include "cmd/commands.h"
#include "profile/plugin_table.h"

#include <stdio.h>

#define REFERENCE_MAX ((size_t)1024 * 1024) /* the page has some 20 KiB */

static const char *const type_names[] = {
    [PLUGIN_TEXT] = "text",
    [PLUGIN_TEMPLATE] = "template",
    [PLUGIN_CHOICE] = "one of",
    [PLUGIN_BOOL] = "`true` or `false`",
    [PLUGIN_INT] = "whole number",
    [PLUGIN_DURATION] = "duration; a plain number is seconds",
    [PLUGIN_SPAN] = "duration, with its unit",
    [PLUGIN_CLOCK] = "time of day, `hh:mm`",
    [PLUGIN_CRON] = "cron expression",
    [PLUGIN_TEXTS] = "list of texts",
    [PLUGIN_WEEKDAYS] = "list of weekdays",
    [PLUGIN_DATES] = "list of days such as `Jan 2`",
};

static const struct {
    const char *title;
    const char *text;
} kinds[PLUGIN_KINDS] = {
    [PLUGIN_CHECK] = { "Checks",
                       "A check looks at a node and answers yes or no. Transitions name checks in "
                       "their `check` expression.\n" },
    [PLUGIN_NOTIFY] = { "Notifications",
                        "A notification sends a message about a node; its `schedule` says when. "
                        "States name notifications in their `notify` chain. With `required: true`, "
                        "beside `schedule`, the profile waits until the message is sent.\n" },
    [PLUGIN_TRIGGER] = { "Triggers",
                         "A trigger changes a node. States name triggers in their `enter` chain, "
                         "transitions in `trigger`.\n" },
};

/* A fragment of the tables as a sentence. */
static void add_sentence(const char *text, struct buf *out)
{
    char first = text[0];
    buf_add_char(out, first >= 'a' && first <= 'z' ? (char)(first - 'a' + 'A') : first);
    buf_printf(out, "%s.\n", text + 1);
}

/* A table's cell: its bars would end it. */
static void add_cell(const char *text, struct buf *out)
{
    for (const char *p = text; *p != '\0'; p++) {
        buf_add(out, *p == '|' ? STR("\\|") : (struct str){ .p = p, .n = 1 });
    }
}

static void add_type(const struct plugin_key *key, struct buf *out)
{
    ASSERT((size_t)key->type < ARRAY_LEN(type_names) && type_names[key->type] != NULL);
    buf_add(out, str_from(type_names[key->type]));
    struct str rest = str_from(key->type == PLUGIN_CHOICE ? key->choices : NULL);
    struct str piece;
    for (bool first = true; rest.p != NULL && str_split_next(&rest, '|', &piece); first = false) {
        buf_printf(out, "%s `" STR_FMT "`", first ? "" : ",", STR_ARG(piece));
    }
}

static void add_default(const struct plugin_key *key, struct buf *out)
{
    if (key->required && key->unless == NULL) {
        buf_add(out, STR("**required**"));
    } else if (key->required) {
        buf_printf(out, "**required** without `%s`", key->unless);
    } else if (key->initial != NULL) {
        buf_printf(out, "`%s`", key->initial);
    }
}

static void add_keys(const struct plugin *p, struct buf *out)
{
    if (p->key_n == 0) {
        buf_add(out, STR("\nIt has no keys.\n"));
        return;
    }
    buf_add(out, STR("\n| key | holds | default | meaning |\n|---|---|---|---|\n"));
    for (uint32_t i = 0; i < p->key_n; i++) {
        const struct plugin_key *key = &p->keys[i];
        buf_printf(out, "| `%s` | ", key->name);
        add_type(key, out);
        buf_add(out, STR(" | "));
        add_default(key, out);
        buf_add(out, STR(" | "));
        add_cell(key->help, out);
        buf_add(out, STR(" |\n"));
    }
}

static void add_plugin(const struct plugin *p, const char *kind, struct buf *out)
{
    buf_printf(out, "\n### %s\n\n", p->name);
    add_sentence(p->help, out);
    if (kind != NULL) {
        buf_printf(out,
                   "\n```yaml\ninstances:\n  %s:\n  - type: %s\n    name: example\n    config: "
                   "%s\n%s```\n",
                   kind, p->name, p->example,
                   str_eq(str_from(kind), str_from(plugin_kind_keys[PLUGIN_NOTIFY]))
                       ? "    schedule: {type: periodic, config: {interval: 24h}}\n"
                       : "");
    } else {
        buf_printf(out, "\n```yaml\nschedule:\n  type: %s\n  config: %s\n```\n", p->name,
                   p->example);
    }
    add_keys(p, out);
}

static void add_table(const struct plugin_table *table, const char *kind, struct buf *out)
{
    for (uint32_t i = 0; i < table->n; i++) {
        add_plugin(&table->items[i], kind, out);
    }
}

void reference_print(struct buf *out)
{
    buf_add(out, STR("# Plugins\n\n"
                     "<!-- Made by `drydock reference`; a test compares. -->\n\n"
                     "Every plugin that `maintenance.yaml` can name, with the keys of its "
                     "`config`. `drydock check FILE` says what is wrong with a file.\n\n"
                     "Durations are written as `1h30m`, `90s` or `500ms`. Weekdays are `monday` "
                     "or `mon`, in any case. A list of one element may be written without its "
                     "brackets. Values may hold variables, `${NAME}` or `${NAME:default}`, from "
                     "the environment or from keys at the top of the file.\n"));
    for (int kind = 0; kind < PLUGIN_KINDS; kind++) {
        buf_printf(out, "\n## %s\n\n%s", kinds[kind].title, kinds[kind].text);
        add_table(&plugin_tables[kind], plugin_kind_keys[kind], out);
    }
    buf_add(out, STR("\n## Schedules\n\nWhen a notification is sent.\n"));
    add_table(&plugin_schedules, NULL, out);
}

static int reference_run(const struct command_call *call UNUSED)
{
    CLEANUP(buf_done)
    struct buf out = { .max = REFERENCE_MAX };
    reference_print(&out);
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    return COMMAND_OK;
}

const struct command command_reference = {
    .name = "reference",
    .summary = "print the reference page of all plugins",
    .text = "Prints, as Markdown, every plugin that a configuration can name: its keys, what they "
            "hold, their defaults and an example. docs/plugins.md is this output.",
    .run = reference_run,
};
