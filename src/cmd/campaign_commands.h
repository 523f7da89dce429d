/*
 * campaign_commands: pause and resume of one NodeMaintenance, for the commands that pause
 * everything when none is named.
 */
#pragma once

#include "client/client_session.h"

NODISCARD
int campaign_pause(struct client_session *session, struct str name, struct err *err);
NODISCARD
int campaign_resume(struct client_session *session, struct str name, struct arena *tmp,
                    struct err *err);
