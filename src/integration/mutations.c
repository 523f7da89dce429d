/*
 * mutations: the known bugs of base/mutation.h that change what is decided about nodes on ESX
 * hosts: the facts before, the plan after. Only builds with the option `mutations` compile this
 * file.
 */
#include "integration/esx_decide.h"

void mutate_esx_facts(mutations_t set, usec_t now, struct esx_node_facts *facts)
{
    if (mutated(set, MUTATION_ESX_UNAPPROVED)) {
        facts->approved = true;
        facts->all_approved = true;
    }
    if (mutated(set, MUTATION_ESX_ONE_IS_ENOUGH)) {
        facts->all_approved = true;
    }
    if (mutated(set, MUTATION_ESX_BY_LABEL) && facts->label == ESX_TRUE) {
        facts->mode = ESX_TRUE;
    }
    if (mutated(set, MUTATION_ESX_UNDRAINED)) {
        facts->drained = true;
    }
    if (mutated(set, MUTATION_ESX_UNMARKED) && facts->mode == ESX_TRUE) {
        facts->initiated = true;
        facts->cordoned = true;
    }
    if (mutated(set, MUTATION_ESX_UNNOTED) && facts->shutdown_at == 0 && facts->mode == ESX_TRUE) {
        facts->shutdown_at = now;
    }
    if (mutated(set, MUTATION_ESX_ELSEWHERE)) {
        facts->elsewhere = false;
    }
    if (mutated(set, MUTATION_ESX_LET_GO) && facts->mode == ESX_FALSE) {
        facts->shutdown_at = 0;
    }
    if (mutated(set, MUTATION_ESX_CORDON_OURS) && !facts->initiated) {
        facts->cordoned = false;
    }
    if (mutated(set, MUTATION_ESX_UNRESERVED)) {
        facts->reserved = true;
    }
}

void mutate_esx_plan(mutations_t set, const struct esx_node_facts *facts, struct esx_plan *plan)
{
    if (mutated(set, MUTATION_ESX_LEFT_OFF) && plan->step == ESX_STEP_POWER_ON) {
        plan->step = ESX_STEP_WAIT;
    }
    if (mutated(set, MUTATION_ESX_ON_TOO_EARLY) && plan->step == ESX_STEP_OFF && !facts->calling) {
        plan->step = ESX_STEP_POWER_ON;
    }
}
