/* drydock crds: prints the CustomResourceDefinitions of our kinds, and the admission policy for
 * requests. */
#include "cmd/commands.h"
#include "format/json_writer.h"
#include "kinds/crd.h"

#include <stdio.h>

#define CRDS_OUTPUT_MAX ((size_t)1024 * 1024) /* they have some 450 KiB */

struct crds_flags {
    struct str output;
    bool policies;
    bool operations;
};

static const struct option crds_options[] = {
    { "o", OPTION_CHOICE, OPTION(struct crds_flags, output), "FORM", "yaml", "yaml|json",
      "as YAML documents with their comments, or as one List in JSON", .also = "output" },
    { "policies", OPTION_BOOL, OPTION(struct crds_flags, policies), NULL, NULL, NULL,
      "instead: the admission policy by which only its creator changes a request" },
    { "operations", OPTION_BOOL, OPTION(struct crds_flags, operations), NULL, NULL, NULL,
      "only those of NodeMaintenances and what belongs to them" },
};

static void crds_print_yaml(const struct asset *objects, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        buf_add(out, out->n > 0 ? STR("---\n") : STR_NONE);
        buf_add(out, asset_text(&objects[i]));
    }
}

static void crds_add_json(struct json_writer *w, const struct asset *objects, size_t n)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (size_t i = 0; i < n; i++) {
        jw_val(w, crd_object(&objects[i], &tmp));
    }
}

static int crds_run(const struct command_call *call)
{
    const struct crds_flags *flags = call->config;
    CLEANUP(buf_done)
    struct buf out = { .max = CRDS_OUTPUT_MAX };
    if (flags->policies && flags->operations) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_INVALID, "want --policies or --operations, not both");
        (void)command_fail(call, &err);
        return COMMAND_USAGE;
    }
    const struct asset *first = flags->policies ? policies : crds;
    size_t first_n = flags->policies ? policies_count : flags->operations ? 0 : crds_count;
    size_t operations_n = flags->policies ? 0 : operation_crds_count;
    if (str_eq(flags->output, STR("json"))) {
        struct json_writer w = json_writer_on(&out);
        jw_obj(&w);
        jw_pair(&w, "apiVersion", STR("v1"));
        jw_pair(&w, "kind", STR("List"));
        jw_key(&w, STR("items"));
        jw_arr(&w);
        crds_add_json(&w, first, first_n);
        crds_add_json(&w, operation_crds, operations_n);
        jw_arr_end(&w);
        jw_obj_end(&w);
        buf_add(&out, STR("\n"));
    } else {
        crds_print_yaml(first, first_n, &out);
        crds_print_yaml(operation_crds, operations_n, &out);
    }
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    return COMMAND_OK;
}

const struct command command_crds = {
    .name = "crds",
    .summary = "print the CRDs of all our kinds",
    .text = "Prints the definitions of MaintenanceRequest, MaintenanceLimit and "
            "MaintenanceSelector, and of NodeMaintenance with the kinds that belong to it, for "
            "kubectl:\n\n"
            "  drydock crds | kubectl apply --server-side -f -\n\n"
            "'drydock controller --install-crds' applies the same by itself. With --policies it "
            "prints the ValidatingAdmissionPolicy by which only its creator and the controller "
            "change a MaintenanceRequest, and its binding.",
    .options = { .options = crds_options, .count = ARRAY_LEN(crds_options) },
    .config_size = sizeof(struct crds_flags),
    .run = crds_run,
};
