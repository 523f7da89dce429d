#include "cmd/report_output.h"

#include "base/map.h"
#include "cmd/report_colour.h"
#include "format/json.h"
#include "format/yaml_writer.h"
#include "kinds/keys.h"

bool report_output_is_json(struct str form)
{
    return str_eq(form, STR("json")) || str_eq(form, STR("yaml")) || str_eq(form, STR("name"));
}

static void add_name(const char *kind, struct str name, struct buf *out)
{
    if (name.n > 0) {
        buf_printf(out, "%s/" STR_FMT "\n", kind, STR_ARG(name));
    }
}

/* Nodes that are not at rest, each once. */
static void add_fleet(const struct jval *root, struct buf *out)
{
    struct map seen;
    const struct jval *entries = jval_get(root, STR("entries"));
    map_init(&seen, 0, 0);
    JVAL_EACH (jval_kind(entries) == JARR ? entries : NULL, entry) {
        struct str node = jval_str(jval_get(entry, STR("node")));
        if (map_put(&seen, node, &seen) == NULL) {
            add_name("node", node, out);
        }
    }
    map_done(&seen);
}

static void add_names(const struct jval *root, enum report_about about, struct buf *out)
{
    const struct jval *claim = jval_first(jval_get(root, STR("claims")));
    const struct jval *limit = jval_first(jval_get(root, STR("limits")));
    switch (about) {
    case REPORT_ABOUT_FLEET:
        add_fleet(root, out);
        break;
    case REPORT_ABOUT_NODE:
        add_name("node", jval_str(jval_get(root, STR("node"))), out);
        break;
    case REPORT_ABOUT_REQUEST:
        add_name("maintenancerequest." MAINTENANCE_GROUP, jval_str(jval_get(claim, STR("name"))),
                 out);
        break;
    case REPORT_ABOUT_LIMIT:
        add_name("maintenancelimit." MAINTENANCE_GROUP, jval_str(jval_get(limit, STR("name"))),
                 out);
        break;
    case REPORT_ABOUT_MAINTENANCE:
        add_name("nodemaintenance." OPERATION_GROUP,
                 jval_str(jval_get(jval_first(jval_get(root, STR("maintenances"))), STR("name"))),
                 out);
        break;
    case REPORT_ABOUT_MACHINE:
        add_name("machine." CAPI_GROUP, jval_str(jval_get(root, STR("name"))), out);
        break;
    }
}

int report_output_add(struct str form, enum report_about about, bool colour, struct str body,
                      struct buf *out, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root;
    if (!report_output_is_json(form)) {
        if (colour) {
            report_colour_add(body, out);
        } else {
            buf_add(out, body);
        }
        return 0;
    }
    if (str_eq(form, STR("json"))) {
        buf_add(out, body);
        buf_add(out, STR("\n"));
        return 0;
    }
    int r = json_parse(body, 0, &tmp, &root, err);
    if (r < 0) {
        return err_wrap(err, "the answer cannot be read");
    }
    if (str_eq(form, STR("yaml"))) {
        yaml_write(root, out);
    } else {
        add_names(root, about, out);
    }
    return 0;
}
