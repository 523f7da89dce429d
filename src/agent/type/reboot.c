/* reboot: that the machine is to be rebooted after something has changed. It is only noted; an
 * operation with a reboot policy does it while the node is out of service. */
#include "agent/type/reboot_mark.h"
#include "agent/type/type.h"

static const struct field fields[] = {
    { "state", FIELD_CHOICE, .initial = "onRefresh", .choices = "onRefresh|required",
      .help = "onRefresh: to be rebooted once one of those that notify it has changed; required: "
              "in any case" },
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    (void)err;                        /* the table has said it all */
    p->resource->id = STR("reboot:"); /* a machine has one */
    return 0;
}

static int check(struct resource_call *call, struct err *err)
{
    bool marked = false;
    int r = reboot_mark_look(call, &marked, err);
    if (r == 0 && !marked &&
        str_eq(resource_value(call->resource, "state")->text, STR("required"))) {
        resource_differs(call, "rebootRequired", STR("false"), STR("true"));
    }
    return r;
}

const struct resource_type resource_type_reboot = {
    .name = "reboot",
    .fields = FIELD_TABLE(fields),
    .help = "a reboot of the machine, when something that needs one has changed; it is only noted, "
            "in /run/reboot-required, where an operation with `reboot.policy: IfRequired` finds it",
    .example = "state: onRefresh",
    .prepare = prepare,
    .check = check,
    .apply = reboot_mark_set,
    .save = resource_save_nothing,
    .restore = resource_restore_nothing,
    .refresh = reboot_mark_set,
    .watch = { { WATCH_PATH, .path = "/run/reboot-required" } },
};
