/* providers: the entries of the table in integration.c, one a file. */
#pragma once

#include "integration/integration.h"

extern const struct integration_provider integration_esx;
extern const struct integration_provider integration_kubernikus;
