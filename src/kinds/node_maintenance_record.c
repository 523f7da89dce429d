/* What of a NodeMaintenance's status decisions are based on. */
#include "kinds/node_maintenance_internal.h"

static void places_read(const struct spec_node *status, struct maintenance_record *r)
{
    struct spec_node list = spec_member(status, "visits");
    struct maintenance_place *places = ARENA_ARRAY(status->reader->out, struct maintenance_place,
                                                   MIN(spec_count(&list), MAINTENANCE_VISITS_MAX));
    r->places = places;
    SPEC_EACH(&list, MAINTENANCE_VISITS_MAX, item)
    {
        places[r->place_n++] = (struct maintenance_place){
            .machine = spec_text(&item, "machine"),
            .uid = spec_text(&item, "uid"),
            .request = spec_text(&item, "request"),
            .since = spec_time(&item, "since"),
            .pending = spec_bool(&item, "pending", false),
            .gate = spec_text(&item, "gate"),
        };
    }
}

static void operation_records_read(const struct spec_node *status, struct maintenance_record *r)
{
    struct spec_node list = spec_member(status, "operations");
    struct maintenance_operation_record *items =
        ARENA_ARRAY(status->reader->out, struct maintenance_operation_record,
                    MIN(spec_count(&list), OPERATIONS_MAX));
    r->operations = items;
    SPEC_EACH(&list, OPERATIONS_MAX, item)
    {
        items[r->operation_n++] = (struct maintenance_operation_record){
            .name = spec_text(&item, "name"),
            .revision = spec_text(&item, "revision"),
            .last_tick = spec_time(&item, "lastTick"),
        };
    }
}

static void durations_read(const struct jval *list, struct maintenance_record *r)
{
    int64_t seconds = 0;
    JVAL_EACH (list, item) {
        if (jval_i64(item, &seconds) && seconds >= 0 && seconds <= INT32_MAX &&
            r->duration_n < MAINTENANCE_DURATIONS_MAX) {
            r->durations[r->duration_n++] = SECONDS(seconds);
        }
    }
}

void maintenance_record_read(const struct jval *object, struct arena *out,
                             struct maintenance_record *ret)
{
    struct spec_reader reader = { .out = out };
    struct spec_node status = spec_root(&reader, object, "status");
    struct spec_node wave = spec_member(&status, "wave");
    struct spec_node gate = spec_member(&status, "gate");
    struct spec_node handled = spec_member(&status, "handled");
    *ret = (struct maintenance_record){
        .wave = {
            .given = wave.value != NULL,
            .index = (uint32_t)spec_number(&wave, "index", 0, 0, MAINTENANCE_WAVES_MAX),
            .revision = spec_text(&wave, "revision"),
            .tick = spec_time(&wave, "tick"),
            .complete_at = spec_time(&wave, "completeAt"),
            .soak_until = spec_time(&wave, "soakUntil"),
            .restarts = (uint32_t)spec_number(&wave, "restarts", 0, 0, INT32_MAX),
            .trouble = spec_bool(&wave, "trouble", false),
            .approved_by = spec_text(&wave, "approvedBy"),
        },
        .gate = {
            .place = spec_text(&gate, "place"),
            .revision = spec_text(&gate, "revision"),
            .since = spec_time(&gate, "since"),
            .next = spec_time(&gate, "next"),
            .timed_out = spec_time(&gate, "timedOutAt"),
            .message = spec_text(&gate, "message"),
        },
        .approved = spec_texts(&handled, "approve", MAINTENANCE_HANDLED_MAX),
        .resumed = spec_text(&handled, "resume"),
        .reran = spec_text(&handled, "rerun"),
        .ran = spec_text(&handled, "run"),
        .json = spec_read_status(object, out),
    };
    durations_read(jval_get(status.value, STR("visitSeconds")), ret);
    places_read(&status, ret);
    operation_records_read(&status, ret);
}
