#include "web/operations_api.h"

#include "base/map.h"
#include "web/http_reply.h"

static bool operations_api_report(const struct web_source *source, struct arena *out,
                                  struct operations_report *ret)
{
    return source->operations_report != NULL && source->operations_report(source->ctx, out, ret);
}

static void operations_api_print_report(struct operations_report *report, struct query_form form,
                                        struct buf *out)
{
    report->columns = form.columns;
    if (form.format == QUERY_FORMAT_JSON) {
        struct json_writer w = json_writer_on(out);
        operations_report_print_json(report, OPERATIONS_REPORT_WHOLE, &w);
    } else {
        operations_report_print_text(report, form.format == QUERY_FORMAT_WIDE, out);
    }
}

void operations_api_print(const struct web_source *source, struct query_form form, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct operations_report report;
    if (!operations_api_report(source, &tmp, &report)) {
        return;
    }
    if (form.format != QUERY_FORMAT_JSON) {
        if (report.maintenance_n == 0) {
            return;
        }
        buf_add(out, STR("\n"));
    }
    operations_api_print_report(&report, form, out);
}

void operations_api_print_brief(const struct web_source *source, struct json_writer *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct operations_report report;
    if (operations_api_report(source, &tmp, &report)) {
        operations_report_print_json(&report, OPERATIONS_REPORT_BRIEF, w);
    } else {
        jw_null(w);
    }
}

bool operations_api_print_changes(struct operations_api_sent *p, const struct web_source *source,
                                  struct loop *loop, struct buf *out)
{
    static const uint64_t key[2] = { 0, 0 }; /* compared with itself over time, by nobody else */
    uint64_t version =
        source->operations_report != NULL ? source->operations_version(source->ctx) : 0;
    if (version == p->version || loop_now(loop) - p->sent_at < OPERATIONS_API_EVERY) {
        return false;
    }
    struct json_writer w = json_writer_on(out);
    operations_api_print_brief(source, &w);
    uint64_t hash = map_hash(key, buf_str(out));
    bool changed = hash != p->hash;
    *p =
        (struct operations_api_sent){ .version = version, .hash = hash, .sent_at = loop_now(loop) };
    return changed;
}

void operations_api_of_node(const struct web_source *source, struct arena *out,
                            struct node_report *report)
{
    struct operations_report all;
    if (!operations_api_report(source, out, &all)) {
        return;
    }
    report->operations = ARENA_ARRAY(out, struct node_report_operation, all.maintenance_n);
    for (uint32_t i = 0; i < all.maintenance_n; i++) {
        const struct operations_report_maintenance *m = &all.maintenances[i];
        const struct operations_report_machine *x = operations_report_machine(m, report->node);
        if (x != NULL) {
            bool waits = x->state == REPORT_MACHINE_PENDING;
            report->operations[report->operation_n++] = (struct node_report_operation){
                .maintenance = m->name,
                .state = operations_report_state_name(x->state),
                .words = operations_report_words(x, all.now, out),
                .next = waits ? m->next : x->next,
            };
        }
    }
}

void operations_api_reply(const struct web_source *source, struct str name, struct query_form form,
                          struct inbound_exchange *x)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct operations_report report;
    if (!operations_api_report(source, &tmp, &report)) {
        http_reply_error(x, 404,
                         STR("this cluster has no NodeMaintenances: 'drydock crds | kubectl apply "
                             "-f -', and a controller that serves them"));
        return;
    }
    if (name.n > 0 && !operations_report_only(&report, name)) {
        http_reply_error(
            x, 404, arena_printf(&tmp, "there is no NodeMaintenance '" STR_FMT "'", STR_ARG(name)));
        return;
    }
    operations_api_print_report(&report, form, &out);
    http_reply_report(x, form.format, &out);
}
