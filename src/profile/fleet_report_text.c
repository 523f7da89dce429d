/* The report of all nodes as text for people. */
#include "profile/fleet_report.h"

#include "base/humantime.h"
#include "base/textwrap.h"

#define NAME_COLUMNS_MAX 28u /* of a node's name; the rest of the line is for its summary */

struct fleet_report_page {
    const struct fleet_report *report;
    enum report_format form;
    struct textwrap line;
    struct arena tmp;
};

static void page_line(struct fleet_report_page *s, struct str text)
{
    textwrap_add(&s->line, text);
    textwrap_end(&s->line);
}

/* A field below the heading; nothing when there is nothing to say. */
static void page_field(struct fleet_report_page *s, const char *name, struct str text)
{
    if (text.n > 0) {
        s->line.hang = 9;
        textwrap_add(&s->line, str_from(name));
        textwrap_tab(&s->line, 9);
        page_line(s, text);
    }
}

static void page_number(struct fleet_report_page *s, uint32_t n, uint32_t column)
{
    struct str text = arena_printf(&s->tmp, "%u", n);
    textwrap_tab(&s->line, column - (uint32_t)text.n);
    textwrap_add(&s->line, text);
}

static void page_counts(struct fleet_report_page *s)
{
    const struct fleet_report *r = s->report;
    uint32_t name = 7;
    for (uint32_t i = 0; i < r->profile_n; i++) {
        name = MAX(name, textwrap_width(r->profiles[i].name));
    }
    static const uint32_t widths[PROFILE_STATE_COUNT] = { 13, 22, 16 };
    textwrap_end(&s->line);
    textwrap_add(&s->line, STR("profile"));
    uint32_t at = name;
    for (uint32_t i = 0; i < PROFILE_STATE_COUNT; i++) {
        struct str state = profile_state_name(i);
        at += widths[i];
        textwrap_tab(&s->line, at - (uint32_t)state.n);
        textwrap_add(&s->line, state);
    }
    textwrap_end(&s->line);
    for (uint32_t i = 0; i < r->profile_n; i++) {
        textwrap_add(&s->line, r->profiles[i].name);
        at = name;
        for (uint32_t k = 0; k < PROFILE_STATE_COUNT; k++) {
            at += widths[k];
            page_number(s, r->profiles[i].counts[k], at);
        }
        textwrap_end(&s->line);
    }
}

static void page_entry(struct fleet_report_page *s, const struct fleet_report_entry *e,
                       uint32_t name)
{
    struct textwrap *line = &s->line;
    line->hang = name + 4;
    textwrap_add(line, STR("  "));
    textwrap_add(line, e->node);
    textwrap_tab(line, name + 4);
    textwrap_add(line, e->profile.n > 0 ? e->profile
                       : e->draining    ? STR("a request")
                                        : STR("any profile"));
    if (e->since != 0) {
        textwrap_add(line, STR(", "));
        textwrap_add(line, humantime_since(s->report->now, e->since, &s->tmp));
    }
    if (e->summary.n > 0) {
        textwrap_add(line, STR(": "));
        textwrap_add(line, e->summary);
    }
    textwrap_end(line);
}

static struct str kind_name(const struct fleet_report_entry *e)
{
    static const struct str names[PROFILE_STATE_COUNT] = {
        [PROFILE_STATE_OPERATIONAL] = STR_INIT("operational, about to change"),
        [PROFILE_STATE_REQUIRED] = STR_INIT("waiting for maintenance"),
        [PROFILE_STATE_MAINTENANCE] = STR_INIT("in maintenance"),
    };
    return e->blocked    ? STR("blocked drains")
           : e->failing  ? STR("failing")
           : e->draining ? STR("draining")
                         : names[e->state];
}

/* Entries of one kind are neighbours, because they are sorted. */
static bool same_kind(const struct fleet_report_entry *a, const struct fleet_report_entry *b)
{
    return str_eq(kind_name(a), kind_name(b));
}

static void page_kind(struct fleet_report_page *s, const struct fleet_report_entry *entries,
                      uint32_t n)
{
    uint32_t shown = s->form == NODE_REPORT_WIDE ? n : MIN(n, FLEET_REPORT_SHOWN);
    uint32_t name = 0;
    for (uint32_t i = 0; i < shown; i++) {
        uint32_t width = textwrap_width(entries[i].node);
        name = MAX(name, s->form == NODE_REPORT_WIDE ? width : MIN(width, NAME_COLUMNS_MAX));
    }
    textwrap_end(&s->line);
    textwrap_add(&s->line, kind_name(&entries[0]));
    textwrap_printf(&s->line, " (%u)", n);
    textwrap_end(&s->line);
    for (uint32_t i = 0; i < shown; i++) {
        page_entry(s, &entries[i], name);
    }
    if (shown < n) {
        textwrap_printf(&s->line, "  and %u more; -o wide lists all", n - shown);
        textwrap_end(&s->line);
    }
}

static struct str page_heading(struct fleet_report_page *s)
{
    const struct fleet_report *r = s->report;
    struct str drains = STR_NONE;
    if (r->draining > 0) {
        drains =
            arena_printf(&s->tmp, "; %u draining, %u of them blocked", r->draining, r->blocked);
    }
    return arena_printf(
        &s->tmp, STR_FMT "%s%u node%s: %u operational, %u waiting, %u in maintenance" STR_FMT,
        STR_ARG(r->title), r->title.n > 0 ? ": " : "", r->nodes, r->nodes == 1 ? "" : "s",
        r->counts[PROFILE_STATE_OPERATIONAL], r->counts[PROFILE_STATE_REQUIRED],
        r->counts[PROFILE_STATE_MAINTENANCE], STR_ARG(drains));
}

void fleet_report_print_text(const struct fleet_report *r, enum report_format form, struct buf *out)
{
    struct fleet_report_page s = {
        .report = r,
        .form = form,
        .line = { .out = out,
                  .columns = form == NODE_REPORT_WIDE ? 0
                             : r->columns > 0         ? r->columns
                                                      : NODE_REPORT_COLUMNS },
    };
    s.line.hang = 2;
    page_line(&s, page_heading(&s));
    page_field(&s, "leader", r->leader.n > 0 ? r->leader : STR("nobody leads"));
    page_field(&s, "unready", r->why);
    page_field(&s, "PAUSED", r->paused);
    page_field(&s, "paused", r->pause);
    page_field(&s, "rights", r->denied);
    if (r->config_error.n > 0) {
        page_field(&s, "config",
                   r->config_loaded > 0 ? STR("the last good one stays in force")
                                        : STR("none is in force: profiles do nothing"));
        page_field(&s, "", r->config_error);
    } else {
        page_field(&s, "config", r->config_file);
    }
    struct str warnings = r->config_warnings;
    struct str warning;
    while (warnings.n > 0 && str_split_next(&warnings, '\n', &warning)) {
        page_field(&s, "warning", warning);
    }
    for (uint32_t i = 0; i < r->activity_n; i++) {
        const struct activity *a = &r->activities[i];
        page_field(&s, "outside",
                   arena_printf(&s.tmp, STR_FMT ": " STR_FMT, STR_ARG(a->who),
                                STR_ARG(activity_text(a, r->now, &s.tmp))));
    }
    if (r->profile_n > 0) {
        page_counts(&s);
    }
    for (uint32_t i = 0; i < r->entry_n;) {
        uint32_t n = 1;
        while (i + n < r->entry_n && same_kind(&r->entries[i], &r->entries[i + n])) {
            n++;
        }
        page_kind(&s, &r->entries[i], n);
        i += n;
    }
    arena_done(&s.tmp);
}
