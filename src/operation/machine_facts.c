/* What a Node says of its machine, where no agent tells: the kubelet reports the operating system
 * as a line for people. */
#include "operation/operations_internal.h"

/* How the lines begin; the version follows. */
static const struct os_name {
    struct str begins;
    struct str id;
    struct str package_manager;
} os_names[] = {
    { STR_INIT("Debian GNU/Linux "), STR_INIT("debian"), STR_INIT("apt") },
    { STR_INIT("Ubuntu "), STR_INIT("ubuntu"), STR_INIT("apt") },
    { STR_INIT("Red Hat Enterprise Linux CoreOS "), STR_INIT("rhcos"), STR_INIT("") },
    { STR_INIT("Red Hat Enterprise Linux "), STR_INIT("rhel"), STR_INIT("dnf") },
    { STR_INIT("Rocky Linux "), STR_INIT("rocky"), STR_INIT("dnf") },
    { STR_INIT("AlmaLinux "), STR_INIT("almalinux"), STR_INIT("dnf") },
    { STR_INIT("CentOS Stream "), STR_INIT("centos"), STR_INIT("dnf") },
    { STR_INIT("CentOS Linux "), STR_INIT("centos"), STR_INIT("dnf") },
    { STR_INIT("Fedora Linux "), STR_INIT("fedora"), STR_INIT("dnf") },
    { STR_INIT("Amazon Linux "), STR_INIT("amzn"), STR_INIT("dnf") },
    { STR_INIT("Oracle Linux Server "), STR_INIT("ol"), STR_INIT("dnf") },
    { STR_INIT("SUSE Linux Enterprise Server "), STR_INIT("sles"), STR_INIT("zypper") },
    { STR_INIT("openSUSE Leap "), STR_INIT("opensuse-leap"), STR_INIT("zypper") },
    { STR_INIT("Alpine Linux v"), STR_INIT("alpine"), STR_INIT("apk") },
    { STR_INIT("Flatcar Container Linux by Kinvolk "), STR_INIT("flatcar"), STR_INIT("") },
};

/* "12" of "12 (bookworm)", "22.04.4" of "22.04.4 LTS". */
static struct str leading_version(struct str text)
{
    size_t n = 0;
    while (n < text.n && ((text.p[n] >= '0' && text.p[n] <= '9') || text.p[n] == '.')) {
        n++;
    }
    return str_sub(text, 0, n);
}

static void facts_add_os(struct str image, struct machine_facts *f)
{
    struct str rest;
    for (uint32_t i = 0; i < ARRAY_LEN(os_names); i++) {
        if (str_cut_prefix(image, os_names[i].begins, &rest)) {
            f->os_id = os_names[i].id;
            f->package_manager = os_names[i].package_manager;
            (void)str_cut_prefix(rest, STR("release "), &rest); /* some lines say so */
            f->os_version = leading_version(rest);
            return;
        }
    }
}

static void fact_prefer(struct str *fact, struct str said)
{
    *fact = said.n > 0 ? said : *fact;
}

void machine_facts_read(const struct node *node, const struct node_state *state,
                        struct machine_facts *ret)
{
    struct str kubelet = intern_str(node->kubelet_version);
    *ret = (struct machine_facts){
        .kernel = leading_version(intern_str(node->kernel)),
        .arch = intern_str(node->arch),
    };
    (void)str_cut_prefix(kubelet, STR("v"), &kubelet); /* as the kubelet writes it */
    ret->kubelet = leading_version(kubelet);
    facts_add_os(intern_str(node->os_image), ret);
    if (state != NULL && state->agent.given) {
        const struct machine_facts *said = &state->agent.facts;
        fact_prefer(&ret->os_id, said->os_id);
        fact_prefer(&ret->os_version, said->os_version);
        fact_prefer(&ret->kernel, said->kernel);
        fact_prefer(&ret->kubelet, said->kubelet);
        fact_prefer(&ret->arch, said->arch);
        fact_prefer(&ret->package_manager, said->package_manager);
    }
}
