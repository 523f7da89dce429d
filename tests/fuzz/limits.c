#include "tests/fuzz/limits.h"

#include "agent/journal.h"
#include "agent/root.h"
#include "base/limits.h"
#include "calendar/cron.h"
#include "calendar/ics.h"
#include "calendar/rrule.h"
#include "calendar/zone.h"
#include "drain/drain_rules.h"
#include "format/cel.h"
#include "format/check_expr.h"
#include "format/gval.h"
#include "format/template.h"
#include "format/xml.h"
#include "core/secret_source.h"
#include "host/file.h"
#include "host/http_server.h"
#include "host/smtp.h"
#include "operation/convert.h"
#include "format/ucfg.h"

static const struct fuzz_limit limits[] = {
    { .target = STR_INIT("alert_record"), .bytes = ANNOTATIONS_BYTES_MAX },
    { .target = STR_INIT("accounts"), .bytes = ROOT_FILE_MAX },
    { .target = STR_INIT("authorized_keys"), .bytes = ROOT_FILE_MAX },
    { .target = STR_INIT("cel"), .bytes = CEL_TEXT_MAX },
    { .target = STR_INIT("cloud_config"), .bytes = SECRET_SOURCE_BYTES_MAX },
    { .target = STR_INIT("config"), .bytes = UCFG_BYTES_MAX },
    { .target = STR_INIT("convert"), .bytes = CONVERT_BYTES_MAX },
    { .target = STR_INIT("cron"), .bytes = CRON_TEXT_MAX },
    { .target = STR_INIT("data"), .bytes = ANNOTATIONS_BYTES_MAX },
    { .target = STR_INIT("dpkg_status"), .bytes = ROOT_FILE_MAX },
    { .target = STR_INIT("duration"),
      .bytes = ANNOTATIONS_BYTES_MAX }, /* in an annotation or a configuration */
    { .target = STR_INIT("expr"), .bytes = CHECK_EXPR_BYTES_MAX },
    { .target = STR_INIT("fstab"), .bytes = ROOT_FILE_MAX },
    { .target = STR_INIT("ics"), .bytes = ICS_BYTES_MAX },
    { .target = STR_INIT("journal"), .bytes = JOURNAL_BYTES_MAX },
    { .target = STR_INIT("json"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("kernel_cmdline"), .bytes = ROOT_FILE_MAX },
    { .target = STR_INIT("kernel_tables"), .bytes = ROOT_FILE_MAX },
    /* Only the sandbox applies these. Each operation looks through the members of its object, and
     * the sandbox serves the person who started it. */
    { .target = STR_INIT("jsonpatch"), .bytes = REQUEST_BYTES_MAX, .any_time = true },
    { .target = STR_INIT("jsplit"), .bytes = REPLY_BYTES_MAX },
    { .target = STR_INIT("kubeconfig"),
      .bytes = CONFIG_FILE_BYTES_MAX }, /* a foreign one is much smaller */
    { .target = STR_INIT("limit"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("machine"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("maintenance_window"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("mergepatch"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("mrequest"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("node_maintenance"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("node_operation_template"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("node_series"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("node_state"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("promexpr"), .bytes = GVAL_BYTES_MAX },
    { .target = STR_INIT("protobuf"), .bytes = REQUEST_BYTES_MAX },
    { .target = STR_INIT("quantity"),
      .bytes = REQUEST_BYTES_MAX }, /* of a container, in a request to the sandbox */
    { .target = STR_INIT("resources"), .bytes = CONFIG_FILE_BYTES_MAX },
    { .target = STR_INIT("route"), .bytes = HTTP_HEADER_BYTES_MAX },
    { .target = STR_INIT("rrule"), .bytes = RRULE_TEXT_MAX },
    { .target = STR_INIT("rulebook"), .bytes = DRAIN_RULES_BYTES_MAX },
    { .target = STR_INIT("schema"), .bytes = REQUEST_BYTES_MAX },
    { .target = STR_INIT("selector"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("semver"), .bytes = UCFG_TEXT_MAX },
    { .target = STR_INIT("setting"), .bytes = ROOT_FILE_MAX },
    { .target = STR_INIT("smtp"), .bytes = SMTP_REPLY_MAX },
    { .target = STR_INIT("stamp"), .bytes = ANNOTATIONS_BYTES_MAX },
    { .target = STR_INIT("strategic"), .bytes = REQUEST_BYTES_MAX },
    { .target = STR_INIT("template"), .bytes = TEMPLATE_TEXT_MAX },
    { .target = STR_INIT("template_expand"), .bytes = OBJECT_BYTES_MAX },
    { .target = STR_INIT("vim25"), .bytes = XML_BYTES_MAX },
    { .target = STR_INIT("xml"), .bytes = XML_BYTES_MAX },
    { .target = STR_INIT("text_edit"), .bytes = ROOT_FILE_MAX },
    { .target = STR_INIT("yaml"), .bytes = CONFIG_FILE_BYTES_MAX },
    { .target = STR_INIT("zone"), .bytes = ZONE_BYTES_MAX },
};

const struct fuzz_limit *fuzz_limit_find(struct str target)
{
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        if (str_eq(limits[i].target, target)) {
            return &limits[i];
        }
    }
    return NULL;
}
