/* uninstall: takes away what a controller has left in the cluster, or says what that would be. */
#include "client/client_session.h"
#include "client/uninstall.h"
#include "cmd/commands.h"

#include <stdio.h>

struct uninstall_flags {
    struct str kubeconfig;
    struct str kubecontext;
    struct str ns;
    bool crds;
    bool dry_run;
    bool yes;
};

static const struct option uninstall_options[] = {
    { "kubeconfig", OPTION_FILE, OPTION(struct uninstall_flags, kubeconfig), "FILE", "", NULL,
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },
    { "context", OPTION_TEXT, OPTION(struct uninstall_flags, kubecontext), "NAME", "", NULL,
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",
      .also = "kubecontext" },
    { "n", OPTION_TEXT, OPTION(struct uninstall_flags, ns), "NAME", "", NULL,
      "only the Leases of that namespace; otherwise of all", .also = "namespace" },
    { "crds", OPTION_BOOL, OPTION(struct uninstall_flags, crds), NULL, NULL, NULL,
      "delete the CRDs, too, and with them every object of these kinds" },
    { "dry-run", OPTION_BOOL, OPTION(struct uninstall_flags, dry_run), NULL, NULL, NULL,
      "change nothing, as without --yes" },
    { "yes", OPTION_BOOL, OPTION(struct uninstall_flags, yes), NULL, NULL, NULL,
      "do it; without, it is only shown" },
};

static void uninstall_print(void *ctx, struct str text)
{
    uint32_t *changes = ctx;
    (*changes)++;
    printf(STR_FMT "\n", STR_ARG(text));
}

static int uninstall_check(const struct command_call *call, struct err *err)
{
    const struct uninstall_flags *flags = call->config;
    return flags->yes && flags->dry_run
               ? err_set(err, ERR_INVALID, "want --yes or --dry-run, not both")
               : 0;
}

static int uninstall_call(const struct command_call *call)
{
    const struct uninstall_flags *flags = call->config;
    struct err err = { 0 };
    uint32_t changes = 0;
    struct client_session session = { 0 };
    const struct uninstall_config config = {
        .apply = flags->yes,
        .crds = flags->crds,
        .ns = flags->ns,
        .on_change = uninstall_print,
        .ctx = &changes,
    };
    int r = client_session_init(&session, flags->kubeconfig,
                                command_kubecontext(flags->kubecontext), &err);
    if (r == 0) {
        session.blocking_api.fail_fast = true;
        r = uninstall_run(&session.blocking_api, &config, &err);
    }
    client_session_done(&session);
    if (r < 0) {
        return command_fail(call, &err);
    }
    if (changes == 0) {
        printf("there is nothing of drydock left\n");
    } else if (flags->yes) {
        printf("done: %u changes\n", changes);
    } else {
        printf("nothing was changed: --yes makes these %u changes\n", changes);
    }
    return COMMAND_OK;
}

const struct command command_uninstall = {
    .name = "uninstall",
    .summary = "take away what the controller has left in the cluster",
    .text =
        "For the end of an installation, when the controller runs no more: removes its labels and "
        "annotations from Nodes and lifts the cordons that a mark says are its own, deletes Jobs "
        "of NodeMaintenances and removes their finalizers, and deletes the controller's Lease and "
        "the locks of targets. With --crds the CRDs go, and every MaintenanceRequest, "
        "MaintenanceLimit and NodeMaintenance with them.\n\n"
        "Without --yes it only prints what it would do. Labels and annotations that people set, "
        "and cordons without a mark, stay. A node whose visit failed stays cordoned, and so does "
        "one whose server was being deleted. While a controller leads nothing is done. What a "
        "bridge has written on Machines is not touched.\n\n"
        "Exit code 0: it is done, or shown. 1: it could not be finished; run it again. 2: the "
        "command line is wrong.",
    .options = { .options = uninstall_options, .count = ARRAY_LEN(uninstall_options) },
    .config_size = sizeof(struct uninstall_flags),
    .check = uninstall_check,
    .run = uninstall_call,
};
