/* Whatever a vCenter answers is read or refused; what was read of it is whole. */
#include "integration/vim25.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct vim25_answer answer;
    struct vim25_service service;
    struct vim25_objects objects = { 0 };
    struct vim25_ref ref;
    struct str token;
    struct err err = { 0 };
    if (vim25_parse(text, &a, &answer, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    ASSERT((answer.fault == VIM25_OK) == (answer.result != NULL));
    ASSERT(answer.fault == VIM25_OK || answer.fault_text.n > 0);
    if (vim25_read_service(&answer, &service, &err) == 0) {
        ASSERT(service.root.id.n > 0 && service.session_manager.id.n > 0);
    }
    if (vim25_read_ref(&answer, &ref, &err) == 0) {
        ASSERT(ref.id.n > 0 && ref.type.n > 0);
    }
    if (vim25_read_objects(&answer, &a, &objects, &token, &err) < 0) {
        return;
    }
    for (uint32_t i = 0; i < objects.host_n; i++) {
        ASSERT(objects.hosts[i].ref.id.n > 0);
        for (uint32_t k = 0; k < objects.hosts[i].task_n; k++) {
            ASSERT(objects.hosts[i].tasks[k].id.n > 0);
        }
    }
    for (uint32_t i = 0; i < objects.vm_n; i++) {
        ASSERT(objects.vms[i].ref.id.n > 0);
    }
}
