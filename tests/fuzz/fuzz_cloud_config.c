/* cloudprovider.conf: whatever is in it, a value that was read is part of the text, or of what its
 * escapes stand for; an error shows none. */
#include "openstack/cloud_config.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct cloud_config c;
    struct err err = { 0 };
    if (cloud_config_parse(text, &a, &c, &err) < 0) {
        ASSERT(err.code == ERR_INVALID || err.code == ERR_LIMIT);
        ASSERT(err.msg[0] != '\0');
        return;
    }
    ASSERT(c.auth_url.n > 0 && c.username.n > 0 && c.password.n > 0 && c.tenant_id.n > 0);
    ASSERT(c.password.n <= text.n);
    ASSERT(str_contains(c.password, STR("\\")) || str_contains(c.password, STR("\"")) ||
           str_contains(text, c.password));
}
