#include "kinds/crd.h"

#include "tests/check.h"

static void check_chart(const struct asset *assets, size_t n, const char *folder)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (size_t i = 0; i < n; i++) {
        struct str path =
            arena_printf(&tmp, "../../deploy/helm/drydock/files/%s/%s", folder, assets[i].name);
        /* To mend: tools/manifests */
        CHECK_STR(check_data(path.p), asset_text(&assets[i]));
    }
}

TEST(crds_and_policies_of_the_chart_are_those_of_the_program)
{
    check_chart(crds, crds_count, "crds/requests");
    check_chart(operation_crds, operation_crds_count, "crds/operations");
    check_chart(policies, policies_count, "policies");
}
