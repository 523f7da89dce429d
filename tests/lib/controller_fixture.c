#include "tests/lib/controller_fixture.h"

struct controller *controller_open(const struct core_config *core_config,
                                   const struct controller_config *config)
{
    struct core *core = core_new(core_config);
    struct controller *c = controller_new(core, config);
    core_start(core);
    return c;
}

void controller_close(struct controller *c)
{
    if (c != NULL) {
        struct core *core = controller_core(c);
        controller_free(c);
        core_free(core);
    }
}
