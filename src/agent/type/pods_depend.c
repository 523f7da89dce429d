#include "agent/type/pods_depend.h"

bool pods_depend_on(struct str name)
{
    static const struct str names[] = {
        STR_INIT("kubelet"), STR_INIT("containerd"), STR_INIT("crio"), STR_INIT("cri-o"),
        STR_INIT("docker"),  STR_INIT("k3s"),        STR_INIT("rke2"),
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_starts(name, names[i])) {
            return true;
        }
    }
    return false;
}
