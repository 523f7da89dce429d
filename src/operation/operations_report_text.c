/* The report of NodeMaintenances as text for people. */
#include "operation/operations_report.h"

#include "base/humantime.h"
#include "base/textwrap.h"

#define NAME_COLUMNS_MAX 28u /* of a name in a list; the rest of the line is for words */
#define NAMES_SHOWN 3u       /* of machines that wait for the same */

struct report_page {
    const struct operations_report *report;
    bool wide;
    struct textwrap line;
    struct arena tmp;
};

/* A field below the heading; nothing when there is nothing to say. */
static void page_field(struct report_page *p, const char *name, struct str text)
{
    if (text.n > 0) {
        p->line.hang = 12;
        textwrap_printf(&p->line, "  %s", name);
        textwrap_tab(&p->line, 12);
        textwrap_add(&p->line, text);
        textwrap_end(&p->line);
    }
}

static void page_title(struct report_page *p, const char *title, uint32_t n)
{
    textwrap_end(&p->line);
    p->line.hang = 2;
    textwrap_printf(&p->line, "%s (%u)", title, n);
    textwrap_end(&p->line);
}

/* A row of a list: a name, then words that go on below themselves. */
static void page_row(struct report_page *p, struct str name, uint32_t width, struct str words)
{
    p->line.hang = width + 4;
    textwrap_add(&p->line, STR("  "));
    textwrap_add(&p->line, name);
    textwrap_tab(&p->line, width + 4);
    textwrap_add(&p->line, words);
    textwrap_end(&p->line);
}

static uint32_t name_width(const struct report_page *p, struct str name, uint32_t so_far)
{
    uint32_t width = textwrap_width(name);
    return MAX(so_far, p->wide ? width : MIN(width, NAME_COLUMNS_MAX));
}

/* ── machines ──────────────────────────────────────────────────────────────────────────────── */

/* Those of a state, of one NodeMaintenance or, in the overview, of all. */
static void page_machines(struct report_page *p, enum operations_report_state state,
                          const char *title)
{
    const struct operations_report *r = p->report;
    uint32_t n = 0;
    uint32_t shown = 0;
    uint32_t width = 0;
    for (uint32_t i = 0; i < r->maintenance_n; i++) {
        const struct operations_report_maintenance *m = &r->maintenances[i];
        for (uint32_t k = 0; k < m->machine_n; k++) {
            if (m->machines[k].state == state) {
                width = name_width(p, m->machines[k].name, width);
                n++;
            }
        }
    }
    if (n == 0) {
        return;
    }
    page_title(p, title, n);
    uint32_t most = p->wide ? n : OPERATIONS_REPORT_SHOWN;
    for (uint32_t i = 0; i < r->maintenance_n; i++) {
        const struct operations_report_maintenance *m = &r->maintenances[i];
        for (uint32_t k = 0; k < m->machine_n && shown < most; k++) {
            const struct operations_report_machine *x = &m->machines[k];
            if (x->state == state) {
                struct str words = operations_report_words(x, r->now, &p->tmp);
                page_row(p, x->name, width,
                         r->one ? words
                                : arena_printf(&p->tmp, STR_FMT ": " STR_FMT, STR_ARG(m->name),
                                               STR_ARG(words)));
                shown++;
            }
        }
    }
    if (shown < n) {
        textwrap_printf(&p->line, "  and %u more; -o wide lists all", n - shown);
        textwrap_end(&p->line);
    }
}

/* Whether an earlier one waits for the same, and was shown with all that do. */
static bool waits_is_shown(const struct operations_report_maintenance *m, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (m->machines[i].state == REPORT_MACHINE_PENDING &&
            str_eq(m->machines[i].waits, m->machines[at].waits)) {
            return true;
        }
    }
    return false;
}

/* "worker-1, worker-2, worker-3 and 35 more" of those that wait for the same. */
static struct str waiting_names(const struct operations_report_maintenance *m, uint32_t first,
                                struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    uint32_t n = 0;
    for (uint32_t i = first; i < m->machine_n; i++) {
        const struct operations_report_machine *x = &m->machines[i];
        if (x->state == REPORT_MACHINE_PENDING && str_eq(x->waits, m->machines[first].waits)) {
            if (n < NAMES_SHOWN) {
                buf_printf(&text, "%s" STR_FMT, n > 0 ? ", " : "", STR_ARG(x->name));
            }
            n++;
        }
    }
    if (n > NAMES_SHOWN) {
        buf_printf(&text, " and %u more", n - NAMES_SHOWN);
    }
    return arena_str(out, buf_str(&text));
}

/* Most of them wait for the same. */
static void page_pending(struct report_page *p, const struct operations_report_maintenance *m)
{
    uint32_t shown = 0;
    if (m->counts[REPORT_MACHINE_PENDING] == 0) {
        return;
    }
    page_title(p, "pending", m->counts[REPORT_MACHINE_PENDING]);
    for (uint32_t i = 0; i < m->machine_n && shown < OPERATIONS_REPORT_SHOWN; i++) {
        const struct operations_report_machine *x = &m->machines[i];
        if (x->state != REPORT_MACHINE_PENDING || waits_is_shown(m, i)) {
            continue;
        }
        p->line.hang = 4;
        textwrap_printf(&p->line, "  " STR_FMT ": wait%s: " STR_FMT,
                        STR_ARG(waiting_names(m, i, &p->tmp)),
                        m->counts[REPORT_MACHINE_PENDING] == 1 ? "s" : "", STR_ARG(x->waits));
        textwrap_end(&p->line);
        shown++;
    }
}

/* ── the overview ──────────────────────────────────────────────────────────────────────────── */

static struct str why_text(const struct report_page *p,
                           const struct operations_report_maintenance *m, struct arena *out)
{
    struct str when = humantime_at(p->report->now, m->next, out);
    struct str why = m->message.n > 0 ? m->message : m->reason;
    return when.n == 0 ? why
                       : arena_printf(out, STR_FMT "; next " STR_FMT, STR_ARG(why), STR_ARG(when));
}

static void page_overview(struct report_page *p)
{
    const struct operations_report *r = p->report;
    uint32_t name = textwrap_width(STR("operations"));
    for (uint32_t i = 0; i < r->maintenance_n; i++) {
        name = name_width(p, r->maintenances[i].name, name);
    }
    textwrap_add(&p->line, STR("operations"));
    textwrap_tab(&p->line, name + 2);
    textwrap_add(&p->line, STR("phase"));
    textwrap_tab(&p->line, name + 13);
    textwrap_add(&p->line, STR("done"));
    textwrap_tab(&p->line, name + 24);
    textwrap_add(&p->line, STR("failed"));
    textwrap_tab(&p->line, name + 32);
    textwrap_add(&p->line, STR("why"));
    textwrap_end(&p->line);
    for (uint32_t i = 0; i < r->maintenance_n; i++) {
        const struct operations_report_maintenance *m = &r->maintenances[i];
        p->line.hang = name + 32;
        textwrap_add(&p->line, m->name);
        textwrap_tab(&p->line, name + 2);
        textwrap_add(&p->line, m->phase.n > 0 ? m->phase : STR("-"));
        textwrap_tab(&p->line, name + 13);
        textwrap_printf(&p->line, "%u/%u",
                        m->counts[REPORT_MACHINE_DONE] + m->counts[REPORT_MACHINE_SKIPPED],
                        m->selected);
        textwrap_tab(&p->line, name + 24);
        textwrap_printf(&p->line, "%u", m->counts[REPORT_MACHINE_FAILED]);
        textwrap_tab(&p->line, name + 32);
        textwrap_add(&p->line, why_text(p, m, &p->tmp));
        textwrap_end(&p->line);
    }
    page_machines(p, REPORT_MACHINE_VISIT, "visits");
    page_machines(p, REPORT_MACHINE_FAILED, "failed");
}

/* ── one NodeMaintenance ───────────────────────────────────────────────────────────────────── */

static struct str window_text(const struct report_page *p,
                              const struct operations_report_maintenance *m, struct arena *out)
{
    usec_t now = p->report->now;
    struct str until = humantime_at(now, m->open_until, out);
    if (m->open) {
        return until.n > 0  ? arena_printf(out, "open; closes " STR_FMT, STR_ARG(until))
               : m->limited ? STR("open")
                            : STR("none: it is always open");
    }
    usec_t next = m->opening_n > 0 ? m->opening[0].start : m->next;
    struct str opens = humantime_at(now, next, out);
    return opens.n > 0 ? arena_printf(out, "shut; opens " STR_FMT, STR_ARG(opens))
                       : STR("shut, and it does not open again");
}

static struct str counts_text(const struct operations_report_maintenance *m, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, "%u of %u done",
               m->counts[REPORT_MACHINE_DONE] + m->counts[REPORT_MACHINE_SKIPPED], m->selected);
    for (uint32_t i = 0; i < REPORT_MACHINE_DONE; i++) {
        if (m->counts[i] > 0) {
            buf_printf(&text, ", %u " STR_FMT, m->counts[i],
                       STR_ARG(operations_report_state_name((enum operations_report_state)i)));
        }
    }
    return arena_str(out, buf_str(&text));
}

static struct str operation_text(const struct report_page *p,
                                 const struct operations_report_operation *op, struct arena *out)
{
    struct str next = humantime_at(p->report->now, op->next_tick, out);
    struct str last = op->tick > 0 ? humantime_since(p->report->now, op->tick, out) : STR_NONE;
    return arena_printf(out, STR_FMT "%s" STR_FMT ": %u done, %u failed%s" STR_FMT "%s%s" STR_FMT,
                        STR_ARG(op->type), op->version.n > 0 ? ", version " : "",
                        STR_ARG(op->version), op->succeeded, op->failed,
                        last.n > 0 ? "; last tick " : "", STR_ARG(last), last.n > 0 ? " ago" : "",
                        next.n > 0 ? "; next " : "", STR_ARG(next));
}

static void page_operations(struct report_page *p, const struct operations_report_maintenance *m)
{
    uint32_t width = 0;
    for (uint32_t i = 0; i < m->operation_n; i++) {
        width = name_width(p, m->operations[i].name, width);
    }
    if (m->operation_n > 0) {
        page_title(p, "operations", m->operation_n);
    }
    for (uint32_t i = 0; i < m->operation_n; i++) {
        page_row(p, m->operations[i].name, width, operation_text(p, &m->operations[i], &p->tmp));
    }
}

static struct str wave_text(const struct report_page *p, const struct operations_report_wave *x,
                            struct arena *out)
{
    static const char *const states[] = {
        [WAVE_DONE] = "done",       [WAVE_NOW] = "now",
        [WAVE_SOAKING] = "soaking", [WAVE_APPROVAL] = "waits for 'drydock approve'",
        [WAVE_COMING] = "coming",
    };
    struct str until = humantime_at(p->report->now, x->soak_until, out);
    struct str soak = x->soak > 0 ? humantime_span(x->soak, out) : STR_NONE;
    struct str failed = x->failed > 0 ? arena_printf(out, ", %u failed", x->failed) : STR_NONE;
    bool ahead = x->state == WAVE_NOW || x->state == WAVE_COMING;
    return arena_printf(out, "%s%s" STR_FMT ": %u of %u done" STR_FMT "%s" STR_FMT "%s",
                        states[x->state], until.n > 0 ? ", ends " : "", STR_ARG(until), x->done,
                        x->machines, STR_ARG(failed), ahead && soak.n > 0 ? "; then soaks " : "",
                        STR_ARG(ahead ? soak : STR_NONE),
                        x->manual && x->state == WAVE_COMING ? "; needs approval" : "");
}

static void page_waves(struct report_page *p, const struct operations_report_maintenance *m)
{
    uint32_t width = 0;
    for (uint32_t i = 0; i < m->wave_n; i++) {
        width = name_width(p, m->waves[i].name, width);
    }
    if (m->wave_n > 0) {
        page_title(p, "waves", m->wave_n);
    }
    for (uint32_t i = 0; i < m->wave_n; i++) {
        page_row(p, m->waves[i].name, width, wave_text(p, &m->waves[i], &p->tmp));
    }
}

static void page_maintenance(struct report_page *p, const struct operations_report_maintenance *m)
{
    static const struct {
        enum operations_report_state state;
        const char *title;
    } lists[] = {
        { REPORT_MACHINE_VISIT, "visits" },
        { REPORT_MACHINE_FAILED, "failed" },
        { REPORT_MACHINE_BACKOFF, "to be tried again" },
        { REPORT_MACHINE_UNREACHABLE, "unreachable" },
        { REPORT_MACHINE_HELD, "held" },
    };
    struct arena *a = &p->tmp;
    p->line.hang = 2;
    textwrap_printf(&p->line, "node maintenance " STR_FMT ": " STR_FMT, STR_ARG(m->name),
                    STR_ARG(m->phase.n > 0 ? m->phase : STR("not looked at yet")));
    if (m->reason.n > 0) {
        textwrap_printf(&p->line, ", " STR_FMT, STR_ARG(m->reason));
    }
    textwrap_end(&p->line);
    page_field(p, "why", m->message);
    if (m->operation_n > 0) {
        page_field(p, "machines", counts_text(m, a));
        page_field(p, "window", window_text(p, m, a));
    }
    page_field(p, "next", humantime_at(p->report->now, m->next, a));
    if (m->priority != 0) {
        page_field(p, "priority", arena_printf(a, "%d", m->priority));
    }
    page_field(p, "revision", str_sub(m->revision, 0, MIN(m->revision.n, (size_t)16)));
    page_operations(p, m);
    page_waves(p, m);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        page_machines(p, lists[i].state, lists[i].title);
    }
    if (p->wide) {
        page_machines(p, REPORT_MACHINE_PENDING, "pending");
    } else {
        page_pending(p, m);
    }
}

void operations_report_print_text(const struct operations_report *r, bool wide, struct buf *out)
{
    struct report_page p = {
        .report = r,
        .wide = wide,
        .line = { .out = out,
                  .columns = wide             ? 0
                             : r->columns > 0 ? r->columns
                                              : OPERATIONS_REPORT_COLUMNS },
    };
    if (r->one && r->maintenance_n > 0) {
        page_maintenance(&p, &r->maintenances[0]);
    } else {
        page_overview(&p);
    }
    arena_done(&p.tmp);
}
